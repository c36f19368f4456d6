//! CoDel, controlled delay.
//!
//! **Source.** RFC 8289 §5 (pseudo-code); marking in place of dropping as RFC 8289 §3.1 and RFC 8290 §3 allow.
//!
//! **Idea.** A queue whose packets all waited longer than a target for a whole interval is a standing queue. From then on a
//! packet is dropped when it is taken out, and the next one after interval/√count, until a packet waited less.

use super::lane::{PacketLane, WaitingPacket};
use crate::{Span, Time};

/// The parameters of CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelConfig {
    /// TARGET: the acceptable wait of a standing queue. RFC 8289 §4.4 asks for at least the transmission time of a packet of the
    /// largest size.
    pub target: Span,
    /// INTERVAL: the time during which packets must wait longer than the target before drops begin; about the largest
    /// usual round-trip time.
    pub interval: Span,
    /// MAXPACKET: a queue of no more bytes than this is never too long.
    pub mtu_bytes: u32,
}

impl CodelConfig {
    /// The constants of RFC 8289 §4.2 and §4.3, for links of 4 Mbit/s and more.
    pub const RFC_8289: Self =
        Self { target: Span::from_millis(5), interval: Span::from_millis(100), mtu_bytes: 1_514 };
    /// Constants for a link of some 60 kbit/s with a round-trip time of some 600 ms. The target is above the 39.5 ms that 296
    /// bytes take at 60 kbit/s, and 5 to 10 % of the interval, as RFC 8289 §4.3 recommends. Chosen.
    pub const SLOW_LINK: Self =
        Self { target: Span::from_millis(60), interval: Span::from_millis(800), mtu_bytes: 296 };
}

/// The state of CoDel, of a whole buffer or of one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Codel {
    /// The time from which on packets are dropped, if all waits until then are above the target; `None` while the waits
    /// are below it.
    first_above: Option<Time>,
    is_dropping: bool,
    /// The time of the next drop.
    next_drop: Time,
    /// The number of drops since the dropping state was entered.
    count: u32,
    /// The value of `count` when the dropping state was last entered.
    last_count: u32,
}

impl Codel {
    /// Removes the next packet from `lane`. Returns the packet, and true if it is to be marked; `None` if no packet is
    /// left. Adds the packets that are dropped before it to `discarded`.
    pub(super) fn pop(
        &mut self,
        config: &CodelConfig,
        now: Time,
        lane: &mut PacketLane,
        discarded: &mut Vec<WaitingPacket>,
    ) -> Option<(WaitingPacket, bool)> {
        let (mut packet, mut is_late) = self.take(config, now, lane)?;
        // The queue has stood too long. Drops come faster until a packet waited less than the target.
        if self.is_dropping {
            self.is_dropping = is_late;
            while self.is_dropping && now >= self.next_drop {
                self.count += 1;
                // A mark takes the place of the drop, so the packet stays and the next drop is planned all the same.
                if packet.is_markable {
                    self.next_drop = control_law(config, self.next_drop, self.count);
                    return Some((packet, true));
                }
                // A late packet leaves more than MAXPACKET bytes behind it, so there is a next one.
                discarded.push(packet);
                (packet, is_late) = self.take(config, now, lane)?;
                if is_late {
                    self.next_drop = control_law(config, self.next_drop, self.count);
                } else {
                    self.is_dropping = false;
                }
            }
        // The queue has been above the target for a whole interval for the first time.
        } else if is_late {
            self.is_dropping = true;
            // A new episode soon after the last begins with the rate that controlled that one.
            let grown = self.count - self.last_count;
            let is_soon = now - self.next_drop < config.interval * 16;
            self.count = if grown > 1 && is_soon { grown } else { 1 };
            self.last_count = self.count;
            self.next_drop = control_law(config, now, self.count);
            if packet.is_markable {
                return Some((packet, true));
            }
            discarded.push(packet);
            (packet, _) = self.take(config, now, lane)?;
        }
        Some((packet, false))
    }

    /// Removes a packet from `lane`. Returns the packet and whether the waits have been above the target for an
    /// interval. An empty queue ends the dropping state.
    fn take(
        &mut self,
        config: &CodelConfig,
        now: Time,
        lane: &mut PacketLane,
    ) -> Option<(WaitingPacket, bool)> {
        let Some(packet) = lane.pop() else {
            (self.first_above, self.is_dropping) = (None, false);
            return None;
        };
        // A short wait, or a queue of one packet, shows that the queue is not standing.
        if now - packet.arrived < config.target || lane.bytes() <= u64::from(config.mtu_bytes) {
            self.first_above = None;
            return Some((packet, false));
        }
        let first_above = *self.first_above.get_or_insert(now + config.interval);
        Some((packet, now >= first_above))
    }
}

/// Returns the time of the drop after the drop at `time`, which was number `count` of the present dropping state (RFC
/// 8289 §4.1).
fn control_law(config: &CodelConfig, time: Time, count: u32) -> Time {
    // Square roots and quotients are exact in IEEE 754, and so the same on every machine.
    #[allow(clippy::cast_sign_loss)]
    let step = (config.interval.as_nanos() as f64 / f64::from(count).sqrt()) as u64;
    time + Span::from_nanos(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: CodelConfig = CodelConfig::RFC_8289;
    const MS: u64 = 1_000_000;

    fn packet(arrived_ns: u64, is_markable: bool) -> WaitingPacket {
        WaitingPacket { place: 0, arrived: Time::from_nanos(arrived_ns), wire_bytes: 1_514, is_markable }
    }

    /// Returns the moments in ms of drops or marks, and the longest wait, of a link that carries a packet a millisecond and gets
    /// one every `gap_us`. `is_markable` packets are marked.
    fn overload(gap_us: u64, is_markable: bool, until_ms: u64) -> (Vec<u64>, usize) {
        let (mut codel, mut lane, mut discarded) = (Codel::default(), PacketLane::default(), Vec::new());
        let (mut moments, mut arrivals) = (Vec::new(), 0);
        for ms in 0..until_ms {
            let now = Time::from_nanos(ms * MS);
            while arrivals * gap_us * 1_000 <= ms * MS {
                lane.push(packet(arrivals * gap_us * 1_000, is_markable));
                arrivals += 1;
            }
            let marked = codel.pop(&CONFIG, now, &mut lane, &mut discarded).is_some_and(|(_, marked)| marked);
            moments.extend(std::iter::repeat_n(ms, discarded.len() + usize::from(marked)));
            discarded.clear();
        }
        (moments, lane.len())
    }

    #[test]
    fn codel_drops_of_an_unresponsive_load_follow_the_inverse_square_root() {
        // Worked by hand from RFC 8289 §4.1: intervals of 100, 70.7, 57.7, 50 and 44.7 ms.
        for is_markable in [false, true] {
            let (moments, left) = overload(500, is_markable, 1_000);
            let first = moments[0];
            // The sixth millisecond's packet is the first that waited 5 ms; 100 ms later the first is dropped.
            assert!((105..=112).contains(&first), "{first}");
            let since: Vec<_> = moments[1..6].iter().map(|ms| ms - first).collect();
            for (since, expected) in since.iter().zip([100.0, 170.7, 228.4, 278.4, 323.2]) {
                assert!((*since as f64 - expected).abs() <= 1.0, "{since} instead of {expected}");
            }
            assert!(left > 300, "an unresponsive load overwhelms CoDel, as RFC 8289 §1 says: {left}");
        }
    }

    #[test]
    fn codel_does_not_drop_from_a_short_queue_or_a_short_burst() {
        // A packet a millisecond, as many as the link carries.
        assert_eq!(overload(1_000, false, 5_000).0, []);
        let (mut codel, mut lane, mut discarded) = (Codel::default(), PacketLane::default(), Vec::new());
        (0..100).for_each(|_| lane.push(packet(0, false)));
        for ms in 0..100 {
            assert!(codel.pop(&CONFIG, Time::from_nanos(ms * MS), &mut lane, &mut discarded).is_some());
        }
        assert_eq!(discarded, []);
    }

    #[test]
    fn codel_keeps_the_queue_of_a_responsive_load_near_its_target() {
        // A load that adds a packet to its window every round trip, and halves it for every packet that it loses: 20 ms of
        // propagation, a packet a millisecond. Its queue without CoDel would grow without bound.
        let (mut codel, mut lane, mut discarded) = (Codel::default(), PacketLane::default(), Vec::new());
        let (mut window, mut out, mut waits, mut answers) = (10.0_f64, 0.0, Vec::new(), Vec::new());
        for ms in 0..60_000u64 {
            let now = Time::from_nanos(ms * MS);
            answers.retain(|&(at, lost)| {
                if at <= ms {
                    out -= 1.0;
                    window = if lost { (window / 2.0).max(2.0) } else { window + 1.0 / window };
                }
                at > ms
            });
            while out + 1.0 <= window {
                lane.push(packet(ms * MS, false));
                out += 1.0;
            }
            if let Some((packet, _)) = codel.pop(&CONFIG, now, &mut lane, &mut discarded) {
                answers.push((ms + 20, false));
                waits.push((now - packet.arrived).as_nanos() as f64 / MS as f64);
            }
            answers.extend(discarded.drain(..).map(|_| (ms + 20, true)));
        }
        let settled = &waits[waits.len() / 2..];
        let mean = settled.iter().sum::<f64>() / settled.len() as f64;
        assert!((2.0..=10.0).contains(&mean), "{mean} ms instead of about 5");
        assert!(settled.len() as f64 > 0.9 * 30_000.0, "the link is used: {}", settled.len());
    }
}
