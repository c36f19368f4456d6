//! The round-trip time estimator of RFC 6298 §2, which several mechanisms share.

use crate::fine::Fine;
use crate::{Duration, Gauges, Ratio};

/// The default of G, the granularity of the clock (RFC 6298 §2.3): timers of operating systems count milliseconds.
pub const GRANULARITY: Duration = Duration::from_millis(1);

/// The default lower bound of an RTO that is estimated from round-trip times.
///
/// Scheduling, garbage collection or a clock tick of 10 ms on an RTOS add some tens of milliseconds to a round trip of
/// less than one millisecond. A timeout shorter than these delays expires even if the network lost nothing. TCP in
/// Linux uses 200 ms, because its receivers delay acknowledgements by up to 40 ms and other systems by 200 ms. CoAP
/// acknowledges at once, so a quarter of Linux's bound is enough. RFC 8961 §4 requires no particular minimum. Published
/// mechanisms have no lower bound or another one: see the presets.
pub const MIN_RTO: Duration = Duration::from_millis(50);

/// A lower bound of one microsecond, which has no effect.
pub(crate) const UNBOUNDED: Duration = Duration::from_micros(1);

/// SRTT and RTTVAR, the averages of round-trip times. The mechanism chooses which samples to use, and the weight K of
/// RTTVAR in the RTO.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimator {
    /// SRTT; zero only before the first sample.
    srtt: Fine,
    rttvar: Fine,
}

/// How an [`Estimator`] updates its averages with a sample.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Learning {
    /// RTTVAR after the first sample, as a share of that sample.
    pub(crate) first_rttvar: Ratio,
    /// The weight of a new sample in SRTT.
    pub(crate) srtt_gain: Ratio,
    /// The weight of a new deviation in RTTVAR.
    pub(crate) rttvar_gain: Ratio,
    /// The unit that SRTT and RTTVAR are rounded to.
    pub(crate) tick: Duration,
}

impl Learning {
    /// The rule of RFC 6298 §2.2 and §2.3.
    pub(crate) const RFC6298: Self = Self {
        first_rttvar: Ratio::new(1, 2),
        srtt_gain: Ratio::new(1, 8),
        rttvar_gain: Ratio::new(1, 4),
        tick: Duration::from_micros(1),
    };
}

impl Estimator {
    pub(crate) fn new() -> Self {
        let zero = Fine::stored_zero();
        Self { srtt: zero, rttvar: zero }
    }

    /// Returns an estimator with these values, for mechanisms that update SRTT and RTTVAR by another rule. `srtt` is
    /// above zero.
    pub(crate) const fn of(srtt: Fine, rttvar: Fine) -> Self {
        Self { srtt, rttvar }
    }

    /// Updates SRTT and RTTVAR with the sample `rtt`.
    #[inline(always)]
    pub(crate) fn update(&mut self, rtt: Duration, learning: Learning) {
        self.take(Fine::sample(rtt, learning.tick), learning);
    }

    /// Updates SRTT and RTTVAR with a sample that is already rounded to ticks.
    #[inline(always)]
    pub(crate) fn take(&mut self, rtt: Fine, learning: Learning) {
        let Learning { first_rttvar, srtt_gain, rttvar_gain, tick } = learning;
        if self.is_measured() {
            // RTTVAR comes first, because it takes the difference to the old SRTT.
            self.rttvar = self.rttvar.blend(rttvar_gain, self.srtt.distance(rtt)).rounded(tick);
            self.srtt = self.srtt.blend(srtt_gain, rtt).rounded(tick);
        } else {
            // The first sample is SRTT itself (RFC 6298 §2.2).
            *self = Self { srtt: rtt, rttvar: rtt.by(first_rttvar).floored(tick) };
        }
    }

    pub(crate) fn is_measured(&self) -> bool {
        self.srtt > Fine::ZERO
    }

    pub(crate) fn srtt(&self) -> Option<Fine> {
        self.is_measured().then_some(self.srtt)
    }

    pub(crate) fn rttvar(&self) -> Fine {
        self.rttvar
    }

    /// Returns SRTT + max(`granularity`, `k`·RTTVAR), neither bounded nor dithered; `None` before the first sample.
    #[inline(always)]
    pub(crate) fn rto(&self, k: u8, granularity: Duration) -> Option<Fine> {
        // The product has 40 and 8 bits.
        let variation = (self.rttvar.units() * u64::from(k)).max(Fine::from(granularity).units());
        self.is_measured().then(|| Fine::from_units(self.srtt.units() + variation))
    }

    /// Returns gauges with this `rto`, and with the SRTT and RTTVAR of this estimator.
    #[inline(always)]
    pub(crate) fn gauges(&self, rto: Fine) -> Gauges {
        if !self.is_measured() {
            return Gauges { rto: rto.into(), ..Gauges::default() };
        }
        Gauges {
            rto: rto.into(),
            srtt: Some(self.srtt.into()),
            rttvar: Some(self.rttvar.into()),
            rate_per_ks: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the RTO in microseconds after each of the samples 100, 100, 100, 200 and 100 ms.
    fn series(learning: Learning) -> [u64; 5] {
        let mut estimator = Estimator::new();
        [100, 100, 100, 200, 100].map(|ms| {
            estimator.update(Duration::from_millis(ms), learning);
            Duration::from(estimator.rto(4, Duration::ZERO).unwrap()).as_micros()
        })
    }

    #[test]
    fn the_initial_variance_affects_the_rto_of_the_next_samples() {
        assert_eq!(series(Learning::RFC6298), [300_000, 250_000, 212_500, 296_875, 261_719]);
        let eighth = Learning { first_rttvar: Ratio::new(1, 8), ..Learning::RFC6298 };
        assert_eq!(series(eighth), [150_000, 137_500, 128_125, 233_594, 214_258]);
    }

    #[test]
    fn after_a_steady_round_trip_time_the_rto_exceeds_it_by_the_clock_granularity() {
        let mut estimator = Estimator::new();
        for _ in 0..200 {
            estimator.update(Duration::from_millis(100), Learning::RFC6298);
        }
        let rto = estimator.rto(4, Duration::from_millis(1)).unwrap();
        assert_eq!(Duration::from(rto), Duration::from_millis(101));
    }

    #[test]
    fn srtt_and_rttvar_are_rounded_down_to_ticks() {
        let learning = Learning { tick: Duration::from_millis(1), ..Learning::RFC6298 };
        let mut estimator = Estimator::new();
        estimator.update(Duration::from_micros(101_999), learning); // 101, and half of it rounded down
        assert_eq!(estimator.rto(4, Duration::ZERO).map(Duration::from), Some(Duration::from_millis(301)));
        estimator.update(Duration::from_millis(104), learning); // 101.375 and 38.25
        assert_eq!(estimator.rto(4, Duration::ZERO).map(Duration::from), Some(Duration::from_millis(253)));
    }

    #[test]
    fn a_sample_of_0_ms_counts_as_a_measurement() {
        let mut estimator = Estimator::new();
        estimator.update(Duration::ZERO, Learning::RFC6298);
        assert!(estimator.is_measured());
        estimator.update(Duration::MAX, Learning::RFC6298);
        assert!(estimator.rto(255, Duration::MAX) > estimator.srtt());
    }
}
