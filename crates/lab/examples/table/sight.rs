//! The features that a policy sees at a decision, quantised to 32 cells.

use coapace_control::packed;

/// The number of cells: 8 kinds of path, twice two.
pub(crate) const CELLS: usize = 32;

/// The names of the kinds of path, in the order of their cells.
pub(crate) const PATHS: [&str; 8] = [
    "unmeasured",
    "calm steady",
    "calm wide",
    "near",
    "risen steady",
    "risen wide",
    "high steady",
    "high wide",
];

/// The path is calm up to this many times the least round-trip time, as with `ebb`.
const CALM: f64 = 1.15;

/// The path is near above that, up to this many seconds above the least round-trip time. `ebb` calls it calm, too.
const MARGIN_S: f64 = 0.06;

/// The path is risen above that, up to this many times the least round-trip time, and high further up.
const RISEN: f64 = 2.0;

/// The round-trip time is wide if RTTVAR is more than this share of SRTT, or else steady. A jitter of a tenth of the round
/// trip makes about 0.03.
const WIDE: f64 = 0.125;

packed! {
    /// The estimates of a destination, in seconds, as `ebb` makes them.
    #[derive(PartialEq)]
    pub(crate) struct Estimates {
        /// SRTT (RFC 6298); zero before the first sample.
        pub(crate) srtt: f64,
        /// RTTVAR (RFC 6298), with a gain of 1/2.
        pub(crate) rttvar: f64,
        /// The least round-trip time.
        pub(crate) least: f64,
    }
}

impl Estimates {
    /// The estimates before the first sample.
    pub(crate) const NONE: Self = Self { srtt: 0.0, rttvar: 0.0, least: 0.0 };

    /// Takes in a sample in seconds.
    pub(crate) fn learn(&mut self, rtt: f64) {
        let rtt = rtt.max(1e-6);
        if self.srtt > 0.0 {
            self.rttvar += ((self.srtt - rtt).abs() - self.rttvar) / 2.0;
            self.srtt += (rtt - self.srtt) / 8.0;
            self.least = (self.least + (self.srtt - self.least) / 64.0).min(rtt);
        } else {
            *self = Self { srtt: rtt, rttvar: rtt / 2.0, least: rtt };
        }
    }

    /// Returns the RTO in seconds, without bounds; `None` before the first sample.
    pub(crate) fn rto(&self) -> Option<f64> {
        (self.srtt > 0.0).then(|| self.srtt + (3.0 * self.rttvar).max(0.001))
    }

    /// Returns the place of the kind of path in [`PATHS`]. An answer that names no transmission, and came `late` seconds after
    /// the last one, counts like an SRTT of `late`.
    pub(crate) fn path(&self, late: f64) -> usize {
        let seen = self.srtt.max(late);
        let is_wide = usize::from(self.rttvar > WIDE * self.srtt);
        match self.least {
            _ if self.srtt == 0.0 => 0,
            least if seen <= CALM * least => 1 + is_wide,
            least if seen <= least + MARGIN_S => 3,
            least if seen <= RISEN * least => 4 + is_wide,
            _ => 6 + is_wide,
        }
    }
}

/// Returns the cell of a kind of path, of whether the last exchange had lost a transmission, and of whether this is not the
/// first retransmission of its exchange.
pub(crate) fn cell(path: usize, was_lossy: bool, is_again: bool) -> usize {
    4 * path + 2 * usize::from(was_lossy) + usize::from(is_again)
}

/// Returns the features of a cell: the kind of path, whether the last exchange had lost a transmission, and whether this is not
/// the first retransmission, the last two as 0 or 1.
pub(crate) fn features(cell: usize) -> [usize; 3] {
    [cell / 4, cell / 2 % 2, cell % 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_path_follow_the_rise_of_the_round_trip_time() {
        let path = |srtt, rttvar, least| PATHS[Estimates { srtt, rttvar, least }.path(0.0)];
        assert_eq!(Estimates::NONE.path(9.0), 0);
        assert_eq!(path(1.1, 0.03, 1.0), "calm steady");
        assert_eq!(path(1.1, 0.3, 1.0), "calm wide");
        assert_eq!(path(0.07, 0.03, 0.02), "near");
        assert_eq!(path(1.5, 0.03, 1.0), "risen steady");
        assert_eq!(path(1.5, 0.5, 1.0), "risen wide");
        assert_eq!(path(3.0, 0.03, 1.0), "high steady");
        assert_eq!(path(3.0, 1.0, 1.0), "high wide");
        assert_eq!(PATHS[Estimates { srtt: 1.0, rttvar: 0.0, least: 1.0 }.path(1.6)], "risen steady");
    }

    #[test]
    fn every_cell_has_a_number_of_its_own() {
        let mut cells = Vec::new();
        for path in 0..PATHS.len() {
            for (was_lossy, is_again) in [(false, false), (false, true), (true, false), (true, true)] {
                cells.push(cell(path, was_lossy, is_again));
                let features = features(cell(path, was_lossy, is_again));
                assert_eq!(features, [path, usize::from(was_lossy), usize::from(is_again)]);
            }
        }
        assert_eq!(cells, (0..CELLS).collect::<Vec<_>>());
    }
}
