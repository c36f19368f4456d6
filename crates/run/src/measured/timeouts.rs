//! The timeouts that clients armed.

use coapace_control::Duration;
use serde::{Deserialize, Serialize};

/// Sums over the timeouts of first transmissions of confirmable messages. Timeouts of retransmissions do not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts {
    /// The number of timeouts, and their sum in microseconds.
    pub first: (u64, u64),
    /// The longest timeout, in microseconds.
    pub max_us: u64,
    /// The number of known RTOs at first transmissions, before dither, and their sum in microseconds.
    pub rto: (u64, u64),
}

impl Timeouts {
    /// Counts the timeout of a `first` transmission and ignores later ones. `rto` is the mechanism's estimate at that moment.
    pub(crate) fn add(&mut self, first: bool, timeout: Duration, rto: Option<Duration>) {
        if first {
            let us = timeout.as_micros();
            add(&mut self.first, us);
            self.max_us = self.max_us.max(us);
        }
        if let Some(rto) = rto {
            add(&mut self.rto, rto.as_micros());
        }
    }

    /// Adds the timeouts of another client.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (sum, more) in [(&mut self.first, other.first), (&mut self.rto, other.rto)] {
            *sum = (sum.0 + more.0, sum.1.saturating_add(more.1));
        }
        self.max_us = self.max_us.max(other.max_us);
    }

    /// Returns the mean timeout of first transmissions, dither included, in seconds: the "initial RTO" of Betzler et al. 2015,
    /// and the RTO "for a transaction that is initiated" of Rathod 2022 §6.2.2.
    pub fn initial_s(&self) -> Option<f64> {
        mean_s(self.first)
    }

    /// Returns the longest timeout of a first transmission, dither included, in seconds.
    pub fn max_s(&self) -> Option<f64> {
        (self.first.0 > 0).then_some(self.max_us as f64 / 1e6)
    }

    /// Returns the mean RTO before dither, in seconds.
    pub fn rto_s(&self) -> Option<f64> {
        mean_s(self.rto)
    }
}

fn add(sum: &mut (u64, u64), us: u64) {
    *sum = (sum.0 + 1, sum.1.saturating_add(us));
}

fn mean_s((count, sum_us): (u64, u64)) -> Option<f64> {
    (count > 0).then(|| sum_us as f64 / count as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_timeouts_of_first_transmissions_count() {
        let mut timeouts = Timeouts::default();
        timeouts.add(true, Duration::from_secs(2), Some(Duration::from_millis(1_500)));
        timeouts.add(false, Duration::from_secs(4), None);
        let mut both = Timeouts::default();
        both.add(true, Duration::from_secs(3), Some(Duration::from_millis(2_500)));
        both.merge(&timeouts);
        assert_eq!((both.initial_s(), both.max_s(), both.rto_s()), (Some(2.5), Some(3.0), Some(2.0)));
        assert_eq!((Timeouts::default().initial_s(), Timeouts::default().max_s()), (None, None));
    }
}
