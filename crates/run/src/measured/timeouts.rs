//! The timeouts that clients armed.

use std::collections::VecDeque;

use coapace_control::Duration;
use coapace_proto::Step;
use serde::{Deserialize, Serialize};

/// Sums and maxima of the timeouts of confirmable messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts {
    /// The number of timeouts of first transmissions, and their sum in microseconds.
    pub first: (u64, u64),
    /// The longest timeout of a first transmission, in microseconds.
    pub max_us: u64,
    /// The number of first transmissions for which the mechanism's RTO was known, and the sum of these RTOs, before
    /// dither, in microseconds.
    pub rto: (u64, u64),
    /// The number of timeouts that expired, and their sum in microseconds. The timeout before a last retransmission
    /// that arms no timeout does not count.
    #[serde(default)]
    pub expired: (u64, u64),
    /// The longest expired timeout, in microseconds.
    #[serde(default)]
    pub expired_max_us: u64,
}

/// The timeouts of a client, some of which may still expire.
#[derive(Debug, Default)]
pub(crate) struct ArmedTimeouts {
    pub(crate) sums: Timeouts,
    /// For each exchange, its number and its last timeout; the latest timeout comes last.
    armed: VecDeque<(u32, Duration)>,
}

/// The maximum number of exchanges of a client whose last timeout is remembered. If this many later exchanges begin
/// before an exchange ends, its expired timeouts do not count.
const MOST_ARMED: usize = 64;

impl ArmedTimeouts {
    /// Counts the timeout of a transmission, and the expired timeout before it. If `is_measured` is false, only
    /// remembers the timeout, which counts if it expires later. `rto` is the mechanism's estimate at that moment.
    pub(crate) fn arm(&mut self, step: Step, timeout: Duration, rto: Option<Duration>, is_measured: bool) {
        let first = step.transmission == 0;
        // A first transmission has no timeout before it. A retransmission most often belongs to one of the latest exchanges.
        let place = if first {
            None
        } else {
            self.armed.iter().rposition(|(exchange, _)| *exchange == step.exchange)
        };
        let before = place.and_then(|place| self.armed.remove(place));
        if self.armed.len() == MOST_ARMED {
            self.armed.pop_front();
        }
        self.armed.push_back((step.exchange, timeout));
        // The timeout is remembered all the same: if it expires after the warm-up, it counts.
        if !is_measured {
            return;
        }
        if first {
            add(&mut self.sums.first, timeout.as_micros());
            self.sums.max_us = self.sums.max_us.max(timeout.as_micros());
        // A retransmission departs because the timeout before it has expired.
        } else if let Some((_, before)) = before {
            add(&mut self.sums.expired, before.as_micros());
            self.sums.expired_max_us = self.sums.expired_max_us.max(before.as_micros());
        }
        if let Some(rto) = rto.filter(|_| first) {
            add(&mut self.sums.rto, rto.as_micros());
        }
    }
}

impl Timeouts {
    /// Adds the sums of another client.
    pub(crate) fn merge(&mut self, other: &Self) {
        let sums = [&mut self.first, &mut self.rto, &mut self.expired];
        for (sum, more) in sums.into_iter().zip([other.first, other.rto, other.expired]) {
            *sum = (sum.0 + more.0, sum.1.saturating_add(more.1));
        }
        self.max_us = self.max_us.max(other.max_us);
        self.expired_max_us = self.expired_max_us.max(other.expired_max_us);
    }

    /// Returns the mean timeout of first transmissions, dither included, in seconds: the "initial RTO" of Betzler et
    /// al. 2015. Returns `None` without timeouts.
    pub fn initial_s(&self) -> Option<f64> {
        mean_s(self.first)
    }

    /// Returns the longest timeout of a first transmission, dither included, in seconds.
    pub fn max_s(&self) -> Option<f64> {
        (self.first.0 > 0).then_some(self.max_us as f64 / 1e6)
    }

    /// Returns the mean of the expired timeouts ([`expired`](Self::expired)), in seconds; `None` if there are none.
    pub fn expired_s(&self) -> Option<f64> {
        mean_s(self.expired)
    }

    /// Returns the longest of the expired timeouts ([`expired`](Self::expired)), in seconds; `None` if there are none.
    pub fn expired_max_s(&self) -> Option<f64> {
        (self.expired.0 > 0).then_some(self.expired_max_us as f64 / 1e6)
    }

    /// Returns the mean RTO at first transmissions, before dither, in seconds; `None` if no RTO was known.
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
    fn first_timeouts_and_expired_timeouts_are_counted_separately() {
        let [one, other] = [(7, 0), (8, 0)].map(|(exchange, transmission)| Step { exchange, transmission });
        let secs = Duration::from_secs;
        let mut client = ArmedTimeouts::default();
        client.arm(one, secs(2), Some(Duration::from_millis(1_500)), true);
        client.arm(other, secs(3), Some(Duration::from_millis(2_500)), true);
        client.arm(Step { transmission: 1, ..one }, secs(4), None, true);
        client.arm(Step { transmission: 2, ..one }, secs(8), None, true);
        let mut both = Timeouts::default();
        both.merge(&client.sums);
        assert_eq!((both.initial_s(), both.max_s(), both.rto_s()), (Some(2.5), Some(3.0), Some(2.0)));
        // The timeouts of 3 s and 8 s have not expired.
        assert_eq!(
            (both.expired, both.expired_s(), both.expired_max_s()),
            ((2, 6_000_000), Some(3.0), Some(4.0))
        );
        let none = Timeouts::default();
        assert_eq!((none.initial_s(), none.max_s(), none.expired_max_s()), (None, None, None));
    }

    #[test]
    fn timeouts_armed_during_the_warm_up_count_if_they_expire_after_it() {
        let first = Step { exchange: 0, transmission: 0 };
        let mut client = ArmedTimeouts::default();
        client.arm(first, Duration::from_secs(2), None, false);
        client.arm(Step { transmission: 1, ..first }, Duration::from_secs(4), None, true);
        assert_eq!((client.sums.first.0, client.sums.expired_s()), (0, Some(2.0)));
    }
}
