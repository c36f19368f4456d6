//! RED, random early detection.
//!
//! **Source.** Floyd, Jacobson 1993, values 1 and 2, with queues counted in packets; RFC 2309. The gentle variant, in which the
//! probability grows from its largest value to 1 between the upper threshold and twice that, is Floyd 2000.
//!
//! **Idea.** A packet that comes is dropped with a probability that grows with the average length of the queue.
//!
//! **Readings where the source is open.** While the queue is empty, the average decays as if small packets of a typical
//! length passed through. This length is taken from the packet that ends the idle time. Above the upper threshold
//! packets are dropped, not marked (RFC 3168 §7).

use super::Verdict;
use super::lane::WaitingPacket;
use crate::Time;

/// The parameters of RED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// min_th: the lower threshold of the average length, in packets.
    pub min_packets: u32,
    /// max_th: the upper threshold of the average length, in packets; more than `min_packets`.
    pub max_packets: u32,
    /// max_p: the probability at the upper threshold.
    pub max_probability: f64,
    /// w_q: the weight of the present length in the average.
    pub weight: f64,
    /// True if the probability keeps growing above the upper threshold, from its largest value to 1; false if it is 1
    /// there.
    pub is_gentle: bool,
}

impl RedConfig {
    /// Floyd's later advice (1997, 2000): a largest probability of 10 %, and gentle.
    pub const GENTLE: Self = Self { max_probability: 0.1, is_gentle: true, ..Self::FLOYD_1993 };
    /// The parameters of Floyd, Jacobson 1993 §§6–7.
    pub const FLOYD_1993: Self =
        Self { min_packets: 5, max_packets: 15, max_probability: 0.02, weight: 0.002, is_gentle: false };
}

/// The state of RED.
#[derive(Clone, Copy, Debug)]
pub(super) struct Red {
    config: RedConfig,
    bits_per_second: u64,
    average: f64,
    /// The number of packets since the last one marked or dropped, while the average is above the lower threshold.
    count: u32,
    /// The time at which the queue became empty; `None` after the next packet has arrived.
    empty_since: Option<Time>,
}

impl Red {
    pub(super) fn new(config: RedConfig, bits_per_second: u64) -> Self {
        Self { config, bits_per_second, average: 0.0, count: 0, empty_since: Some(Time::ZERO) }
    }

    /// Records that the last packet left the queue at `now`.
    pub(super) fn becomes_empty(&mut self, now: Time) {
        self.empty_since = Some(now);
    }

    /// Returns the verdict on a packet that arrives while `packets` wait. `draw` is a random number in [0, 1).
    pub(super) fn admit(&mut self, now: Time, packets: usize, packet: &WaitingPacket, draw: f64) -> Verdict {
        let RedConfig { weight, is_gentle, .. } = self.config;
        let (min_packets, max_packets) = self.thresholds();
        // The average falls as if small packets had passed through the empty queue (Floyd, Jacobson 1993, value 2).
        if let Some(since) = self.empty_since.take() {
            let typical_s = f64::from(packet.wire_bytes.max(1)) * 8.0 / self.bits_per_second as f64;
            self.average *= libm::pow(1.0 - weight, (now - since).as_secs_f64() / typical_s);
        }
        self.average += weight * (packets as f64 - self.average);
        if self.average < min_packets {
            self.count = 0;
            return Verdict::Keep;
        }
        let is_over = self.average >= max_packets;
        if is_over && !(is_gentle && self.average < 2.0 * max_packets) {
            self.count = 0;
            return Verdict::Drop;
        }
        self.count += 1;
        if draw >= spread(self.probability(), self.count) {
            return Verdict::Keep;
        }
        self.count = 0;
        if is_over { Verdict::Drop } else { Verdict::Mark }
    }

    fn thresholds(&self) -> (f64, f64) {
        (f64::from(self.config.min_packets), f64::from(self.config.max_packets))
    }

    /// Returns p_b: the probability of marking or dropping a packet, as the average length of the queue alone decides
    /// it.
    fn probability(&self) -> f64 {
        let max_probability = self.config.max_probability;
        let (min_packets, max_packets) = self.thresholds();
        if self.average < max_packets {
            max_probability * (self.average - min_packets) / (max_packets - min_packets)
        } else {
            max_probability + (1.0 - max_probability) * (self.average - max_packets) / max_packets
        }
    }
}

/// Returns p_a: the probability of marking or dropping packet number `count`, counted from 1, since the last packet
/// that was marked or dropped. It makes the distance between such packets uniform (Floyd, Jacobson 1993 §8).
fn spread(probability: f64, count: u32) -> f64 {
    // Near the end of the uniform range the quotient would exceed 1, and then become negative.
    let left = 1.0 - f64::from(count - 1) * probability;
    if left <= probability { 1.0 } else { probability / left }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: WaitingPacket =
        WaitingPacket { place: 0, arrived: Time::ZERO, wire_bytes: 1_000, is_markable: false };

    #[test]
    fn the_average_queue_of_red_in_a_burst_follows_equation_1() {
        // Floyd, Jacobson 1993 §6: after a burst of L packets into an empty queue the average is
        // L + 1 + ((1 − w)^(L + 1) − 1)/w, and with L = 50 a weight up to 0.0042 (rounded) keeps it below 5 packets.
        for (weight, is_below) in [(0.002, true), (0.004_15, true), (0.004_25, false)] {
            let config = RedConfig { weight, max_packets: 100, ..RedConfig::FLOYD_1993 };
            let mut red = Red::new(config, 8_000_000);
            (1..=50).for_each(|length| {
                red.admit(Time::ZERO, length, &PACKET, 1.0);
            });
            let expected = 51.0 + ((1.0_f64 - weight).powi(51) - 1.0) / weight;
            assert!((red.average - expected).abs() < 1e-9, "{} instead of {expected}", red.average);
            assert_eq!(red.average < 5.0, is_below, "{weight}");
        }
    }

    #[test]
    fn the_drop_probability_of_red_is_linear_and_then_gentle() {
        let at = |config, average| Red { average, ..Red::new(config, 8_000) }.probability();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} instead of {b}");
        close(at(RedConfig::FLOYD_1993, 10.0), 0.01);
        close(at(RedConfig::GENTLE, 10.0), 0.05);
        close(at(RedConfig::GENTLE, 15.0), 0.1);
        close(at(RedConfig::GENTLE, 22.5), 0.55);
        let mut red = Red { average: 15.1, ..Red::new(RedConfig::FLOYD_1993, 8_000) };
        assert_eq!(red.admit(Time::ZERO, 16, &PACKET, 1.0), Verdict::Drop);
        let mut red = Red { average: 15.1, empty_since: None, ..Red::new(RedConfig::GENTLE, 8_000) };
        assert_eq!(red.admit(Time::ZERO, 16, &PACKET, 1.0), Verdict::Keep);
        assert_eq!(red.admit(Time::ZERO, 16, &PACKET, 0.0), Verdict::Drop, "RFC 3168 §7");
    }

    #[test]
    fn the_number_of_packets_between_drops_of_red_is_uniform() {
        // Floyd, Jacobson 1993 §8, method 2: uniform over 1 to 1/p packets; with p = 0.02 the mean is 25.5.
        let luck = crate::Luck::new(1).stream("red");
        let (mut hits, mut count) = (Vec::new(), 0);
        for n in 0..500_000 {
            count += 1;
            if luck.unit(n, 0, 0) < spread(0.02, count) {
                hits.push(count);
                count = 0;
            }
        }
        let mean = f64::from(hits.iter().sum::<u32>()) / hits.len() as f64;
        assert!((mean - 25.5).abs() < 0.3, "{mean}");
        assert_eq!((hits.iter().min(), hits.iter().max()), (Some(&1), Some(&50)));
    }

    #[test]
    fn the_average_queue_of_red_decays_during_silence() {
        let mut red = Red { average: 10.0, ..Red::new(RedConfig::GENTLE, 8_000_000) };
        red.becomes_empty(Time::ZERO);
        // 500 packets of a millisecond could have left: 10 · 0.998^500, and the packet itself.
        red.admit(Time::from_nanos(500_000_000), 0, &PACKET, 1.0);
        assert!((red.average - 10.0 * 0.998_f64.powi(501)).abs() < 1e-9);
    }
}
