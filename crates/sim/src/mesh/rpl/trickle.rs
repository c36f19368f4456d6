//! Trickle (RFC 6206): the timing of DIOs, which are rare while nothing changes.

use super::NodeDraws;
use crate::mesh::RplConfig;
use crate::{Span, Time};

/// The timer of a node's DIOs. It does not run until its first [`reset`](Self::reset).
#[derive(Clone, Copy, Debug)]
pub(super) struct Trickle {
    /// I, the length of the interval; 0 before the first.
    interval: Span,
    /// t, the time at which to send a DIO, unless enough other nodes have sent one; `Time::MAX` once t has passed.
    send: Time,
    /// The end of the interval.
    end: Time,
    /// c, the number of consistent DIOs heard within the interval.
    heard: u8,
}

impl Trickle {
    pub(super) const STOPPED: Self = Self { interval: Span::ZERO, send: Time::MAX, end: Time::MAX, heard: 0 };

    /// Begins an interval of Imin after an inconsistency, unless the present interval is Imin already (RFC 6206 §4.2, rule 6).
    /// Returns whether it began one.
    pub(super) fn reset(&mut self, now: Time, config: &RplConfig, draws: &mut NodeDraws) -> bool {
        if self.interval == shortest(config) {
            return false;
        }
        self.begin(now, shortest(config), draws);
        true
    }

    /// Counts a consistent DIO of another node.
    pub(super) fn hear(&mut self) {
        self.heard = self.heard.saturating_add(1);
    }

    /// Returns the time at which to call [`handle_timeout`](Self::handle_timeout).
    pub(super) fn poll_timeout(&self) -> Time {
        self.send.min(self.end)
    }

    /// Handles the timeout at t or at the end of the interval. If t has come, returns whether to send a DIO; if not,
    /// returns `None`.
    pub(super) fn handle_timeout(
        &mut self,
        now: Time,
        config: &RplConfig,
        draws: &mut NodeDraws,
    ) -> Option<bool> {
        let mut sends = None;
        if self.send <= now {
            self.send = Time::MAX;
            sends = Some(config.dio_redundancy == 0 || self.heard < config.dio_redundancy);
        }
        if self.end <= now {
            // 64 doublings or more do not fit the factor: the interval then grows without a bound.
            let times = 1u64.checked_shl(u32::from(config.dio_doublings)).unwrap_or(u64::MAX);
            self.begin(now, (self.interval * 2).min(shortest(config) * times), draws);
        }
        sends
    }

    fn begin(&mut self, now: Time, interval: Span, draws: &mut NodeDraws) {
        let half = interval / 2;
        self.interval = interval;
        // t lies in the second half, so that everybody has time to listen first (RFC 6206 §4.2).
        self.send = now + half + draws.within(interval - half);
        self.end = now + interval;
        self.heard = 0;
    }
}

/// Returns Imin, or 1 ns if it is zero: with intervals of zero, time would not advance.
fn shortest(config: &RplConfig) -> Span {
    config.dio_interval_min.max(Span::from_nanos(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Luck, NodeId};

    const MS: Span = Span::from_millis(1);

    fn draws() -> NodeDraws {
        NodeDraws::new(Luck::new(1).stream("trickle"), NodeId(1))
    }

    /// Returns the lengths of the first `count` intervals, and the times within them at which a DIO was sent.
    fn intervals(config: &RplConfig, count: usize, hears: u8) -> Vec<(Span, Option<Span>)> {
        let (mut trickle, mut draws) = (Trickle::STOPPED, draws());
        let mut result = Vec::new();
        let mut start = Time::ZERO;
        assert!(trickle.reset(start, config, &mut draws));
        while result.len() < count {
            let end = trickle.end;
            let mut sent = None;
            (0..hears).for_each(|_| trickle.hear());
            while trickle.end == end {
                let now = trickle.poll_timeout();
                if trickle.handle_timeout(now, config, &mut draws) == Some(true) {
                    assert_eq!(sent.replace(now - start), None, "twice in an interval");
                }
            }
            result.push((end - start, sent));
            start = end;
        }
        result
    }

    #[test]
    fn trickle_intervals_double_up_to_the_longest_with_one_message_in_the_second_half() {
        let config = RplConfig { dio_interval_min: MS * 8, dio_doublings: 3, ..RplConfig::STANDARD };
        let intervals = intervals(&config, 6, 0);
        assert_eq!(
            intervals.iter().map(|i| i.0).collect::<Vec<_>>(),
            [8, 16, 32, 64, 64, 64].map(Span::from_millis)
        );
        for (length, sent) in intervals {
            let sent = sent.expect("nobody else sent");
            assert!((length / 2..length).contains(&sent), "{sent:?} of {length:?}");
        }
    }

    #[test]
    fn trickle_suppresses_a_message_after_as_many_heard_as_the_redundancy_constant() {
        let config = RplConfig { dio_redundancy: 3, ..RplConfig::STANDARD };
        assert!(intervals(&config, 4, 3).iter().all(|(_, sent)| sent.is_none()));
        assert!(intervals(&config, 4, 2).iter().all(|(_, sent)| sent.is_some()));
        let never = RplConfig { dio_redundancy: 0, ..config };
        assert!(intervals(&never, 4, 255).iter().all(|(_, sent)| sent.is_some()));
    }

    #[test]
    fn a_trickle_reset_restarts_the_shortest_interval_unless_already_in_it() {
        let config = RplConfig::CONTIKI_3;
        let (mut trickle, mut draws) = (Trickle::STOPPED, draws());
        assert_eq!(trickle.poll_timeout(), Time::MAX);
        assert!(trickle.reset(Time::ZERO, &config, &mut draws));
        let before = trickle.poll_timeout();
        assert!(!trickle.reset(Time::ZERO + MS, &config, &mut draws));
        assert_eq!(trickle.poll_timeout(), before);
        let end = trickle.end;
        trickle.handle_timeout(end, &config, &mut draws);
        assert_eq!(trickle.interval, config.dio_interval_min * 2);
        assert!(trickle.reset(end + MS, &config, &mut draws));
        assert_eq!(trickle.end, end + MS + config.dio_interval_min);
    }

    #[test]
    fn trickle_with_255_doublings_does_not_overflow() {
        let config = RplConfig { dio_interval_min: Span::MAX / 2, dio_doublings: 255, ..RplConfig::STANDARD };
        let (mut trickle, mut draws) = (Trickle::STOPPED, draws());
        trickle.reset(Time::ZERO, &config, &mut draws);
        for _ in 0..4 {
            let now = trickle.poll_timeout();
            trickle.handle_timeout(now, &config, &mut draws);
        }
        assert!(trickle.interval > Span::MAX / 2);
    }
}
