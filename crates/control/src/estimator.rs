//! The round-trip time estimator of RFC 6298 §2, shared by every mechanism that has one.

use crate::fine::Fine;
use crate::{Duration, Gauges, Ratio};

/// SRTT and RTTVAR. Which samples it is fed, and what K its RTO has, is the mechanism's affair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimator {
    /// Zero before the first sample, never after.
    srtt: Fine,
    rttvar: Fine,
}

/// Gain of SRTT, RFC 6298 §2.3.
const ALPHA: Ratio = Ratio::new(1, 8);
/// Gain of RTTVAR, RFC 6298 §2.3.
const BETA: Ratio = Ratio::new(1, 4);
/// RTTVAR of the first sample r is r/2, RFC 6298 §2.2.
pub(crate) const FIRST_RTTVAR: Ratio = Ratio::new(1, 2);

impl Estimator {
    pub(crate) const NEW: Self = Self { srtt: Fine::ZERO, rttvar: Fine::ZERO };

    /// Takes in the sample `rtt`; if it is the first, RTTVAR is `first_rttvar`·`rtt`.
    pub(crate) fn update(&mut self, rtt: Duration, first_rttvar: Ratio) {
        let rtt = Fine::from(rtt).max(Fine::SHORTEST);
        if self.is_measured() {
            // RTTVAR first: its difference is to the old SRTT.
            self.rttvar = self.rttvar.blend(BETA, self.srtt.max(rtt) - self.srtt.min(rtt));
            self.srtt = self.srtt.blend(ALPHA, rtt);
        } else {
            *self = Self { srtt: rtt, rttvar: rtt.by(first_rttvar) };
        }
    }

    pub(crate) fn is_measured(&self) -> bool {
        self.srtt > Fine::ZERO
    }

    pub(crate) fn srtt(&self) -> Option<Fine> {
        self.is_measured().then_some(self.srtt)
    }

    /// SRTT + max(G, `k`·RTTVAR), once measured. No bounds.
    pub(crate) fn rto(&self, k: u8, granularity: Duration) -> Option<Fine> {
        self.is_measured().then(|| self.srtt + self.rttvar.times(k as u64).max(granularity.into()))
    }

    /// The gauges of a mechanism whose `rto` rests on this estimator.
    pub(crate) fn gauges(&self, rto: Fine) -> Gauges {
        let measured = |span: Fine| self.is_measured().then(|| span.into());
        Gauges {
            rto: rto.into(),
            srtt: measured(self.srtt),
            rttvar: measured(self.rttvar),
            rate_per_ks: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RTO in microseconds after each sample of 100, 100, 100, 200, 100 ms.
    fn series(first_rttvar: Ratio) -> [u64; 5] {
        let mut estimator = Estimator::NEW;
        [100, 100, 100, 200, 100].map(|ms| {
            estimator.update(Duration::from_millis(ms), first_rttvar);
            Duration::from(estimator.rto(4, Duration::ZERO).unwrap()).as_micros()
        })
    }

    #[test]
    fn the_first_variance_decides_the_next_samples() {
        assert_eq!(series(FIRST_RTTVAR), [300_000, 250_000, 212_500, 296_875, 261_719]);
        assert_eq!(series(Ratio::new(1, 8)), [150_000, 137_500, 128_125, 233_594, 214_258]);
    }

    #[test]
    fn a_steady_round_trip_time_leaves_rto_above_it_by_the_granularity() {
        let mut estimator = Estimator::NEW;
        for _ in 0..200 {
            estimator.update(Duration::from_millis(100), FIRST_RTTVAR);
        }
        let rto = estimator.rto(4, Duration::from_millis(1)).unwrap();
        assert_eq!(Duration::from(rto), Duration::from_millis(101));
    }

    #[test]
    fn a_sample_of_no_time_still_counts_as_measured() {
        let mut estimator = Estimator::NEW;
        estimator.update(Duration::ZERO, FIRST_RTTVAR);
        assert!(estimator.is_measured());
        estimator.update(Duration::MAX, FIRST_RTTVAR);
        assert!(estimator.rto(255, Duration::MAX) > estimator.srtt());
    }
}
