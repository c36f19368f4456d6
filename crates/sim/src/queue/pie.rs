//! PIE, proportional integral controller enhanced.
//!
//! **Source.** RFC 8033 §4 and §5.1.
//!
//! **Idea.** A packet that comes is dropped with a probability that is corrected at regular moments: by how far the delay is
//! from its reference, and by how much it grew since the last moment.
//!
//! **Readings where the source is open.** The delay is the number of bytes that wait divided by the rate of the link
//! (§4.3, Little's law with the known rate in place of an estimated one). The corrections are computed when they
//! matter: between two packets that come or go the delay is constant, so the result is the same as with a timer.

use super::Verdict;
use super::lane::WaitingPacket;
use crate::{Span, Time};

/// The parameters of PIE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieConfig {
    /// QDELAY_REF: the delay that is aimed at.
    pub target: Span,
    /// T_UPDATE: the time from one correction of the probability to the next; not 0.
    pub update: Span,
    /// MAX_BURST: the time during which an idle queue may grow without drops.
    pub max_burst: Span,
    /// The weight of the deviation from the target in a correction of the probability, in 1/s.
    pub alpha: f64,
    /// The weight of the growth of the delay in a correction of the probability, in 1/s.
    pub beta: f64,
    /// MEAN_PKTSIZE: a queue of up to two such packets is never too long.
    pub mean_packet_bytes: u32,
    /// The largest probability at which packets are marked in place of being dropped (RFC 8033 §5.1).
    pub mark_limit: f64,
}

impl PieConfig {
    /// The constants of RFC 8033 §4 and §5.1. The size of a packet is RFC 8034's.
    pub const RFC_8033: Self = Self {
        target: Span::from_millis(15),
        update: Span::from_millis(15),
        max_burst: Span::from_millis(150),
        alpha: 0.125,
        beta: 1.25,
        mean_packet_bytes: 1_024,
        mark_limit: 0.1,
    };
    /// Constants for a link of some 60 kbit/s with small packets and a round-trip time of some 600 ms: the target of
    /// [`CodelConfig::SLOW_LINK`](super::CodelConfig::SLOW_LINK), and a burst of a round trip. Chosen.
    pub const SLOW_LINK: Self = Self {
        target: Span::from_millis(60),
        max_burst: Span::from_millis(600),
        mean_packet_bytes: 60,
        ..Self::RFC_8033
    };
}

/// The state of PIE.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pie {
    config: PieConfig,
    bits_per_second: u64,
    probability: f64,
    /// The delay at the last correction, in seconds.
    last_delay_s: f64,
    burst: Span,
    next_update: Time,
    /// The sum of the probabilities since the last drop. It keeps drops apart from each other (RFC 8033 §5.4).
    accumulated: f64,
}

impl Pie {
    pub(super) fn new(config: PieConfig, bits_per_second: u64) -> Self {
        Self {
            config,
            bits_per_second,
            probability: 0.0,
            last_delay_s: 0.0,
            burst: config.max_burst,
            next_update: Time::ZERO + config.update,
            accumulated: 0.0,
        }
    }

    /// Makes the corrections of the probability that are due by `now`, with `bytes` waiting in the buffer. Call it
    /// before the number of bytes changes.
    pub(super) fn advance(&mut self, now: Time, bytes: u64) {
        let update = self.config.update.max(Span::from_nanos(1));
        let delay_s = self.delay_s(bytes);
        while self.next_update <= now {
            self.correct(delay_s);
            self.next_update = self.next_update + update;
            if self.is_at_rest(delay_s) {
                // Nothing changes any more, however many corrections follow.
                let missed = (now - self.next_update).as_nanos() / update.as_nanos();
                self.next_update = self.next_update + update * missed;
                if self.next_update <= now {
                    self.next_update = self.next_update + update;
                }
            }
        }
    }

    /// Returns the verdict on a packet that arrives while `bytes` wait. `draw` is a random number in [0, 1).
    pub(super) fn admit(&mut self, bytes: u64, packet: &WaitingPacket, draw: f64) -> Verdict {
        let half_s = self.config.target.as_secs_f64() / 2.0;
        // An idle queue may grow by a burst again before packets are dropped (RFC 8033 §4.4).
        if self.probability == 0.0 && self.delay_s(bytes) < half_s && self.last_delay_s < half_s {
            self.burst = self.config.max_burst;
        }
        if self.burst > Span::ZERO || !self.strikes(bytes, draw) {
            return Verdict::Keep;
        }
        // Beyond the limit senders do not heed marks enough, so packets are dropped (RFC 8033 §5.1).
        if packet.is_markable && self.probability <= self.config.mark_limit {
            Verdict::Mark
        } else {
            Verdict::Drop
        }
    }

    /// Returns whether to mark or drop a packet that arrives while `bytes` wait.
    fn strikes(&mut self, bytes: u64, draw: f64) -> bool {
        let is_calm = self.last_delay_s < self.config.target.as_secs_f64() / 2.0 && self.probability < 0.2;
        // Small queues are left alone, whatever the probability (RFC 8033 §4.1).
        if is_calm || bytes <= 2 * u64::from(self.config.mean_packet_bytes) {
            return false;
        }
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += self.probability;
        // Drops come neither close together nor far apart: from a sum of 0.85 on, and at 8.5 at the latest (RFC 8033 §5.4).
        let strikes = self.accumulated >= 0.85 && (self.accumulated >= 8.5 || draw < self.probability);
        if strikes {
            self.accumulated = 0.0;
        }
        strikes
    }

    fn delay_s(&self, bytes: u64) -> f64 {
        bytes as f64 * 8.0 / self.bits_per_second as f64
    }

    /// Returns whether further corrections with this delay would change nothing.
    fn is_at_rest(&self, delay_s: f64) -> bool {
        delay_s == 0.0 && self.last_delay_s == 0.0 && self.probability == 0.0 && self.burst == Span::ZERO
    }

    /// Corrects the probability for a delay of `delay_s` seconds (RFC 8033 §4.2).
    fn correct(&mut self, delay_s: f64) {
        let target_s = self.config.target.as_secs_f64();
        let mut step =
            self.config.alpha * (delay_s - target_s) + self.config.beta * (delay_s - self.last_delay_s);
        // The step is scaled down while the probability is small, so that it does not swing (RFC 8033 §4.2).
        let scales = [(1e-6, 2_048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
        step /= scales.iter().find(|(bound, _)| self.probability < *bound).map_or(1.0, |(_, scale)| *scale);
        // A large probability grows by 2 % at most (RFC 8033 §5.5, cap of the adjustment).
        if self.probability >= 0.1 {
            step = step.min(0.02);
        }
        self.probability += step;
        // The probability decays by 2 % at each correction while the queue is short (RFC 8033 §4.2).
        if delay_s < target_s / 2.0 && self.last_delay_s < target_s / 2.0 {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.last_delay_s = delay_s;
        self.burst = self.burst - self.config.update;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: WaitingPacket =
        WaitingPacket { place: 0, arrived: Time::ZERO, wire_bytes: 1_000, is_markable: true };

    /// Returns the state of a link that sends a byte in a microsecond.
    fn pie() -> Pie {
        Pie::new(PieConfig::RFC_8033, 8_000_000)
    }

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn pie_probabilities_equal_values_worked_out_manually() {
        let mut pie = pie();
        pie.advance(at(15), 20_000);
        // (0.125 · (0.020 − 0.015) + 1.25 · 0.020) / 2048.
        let first = 0.025_625 / 2_048.0;
        assert!((pie.probability - first).abs() < 1e-15);
        pie.advance(at(30), 40_000);
        // 1.25e-5 is below 1e-4: (0.125 · 0.025 + 1.25 · 0.020) / 128.
        let second = first + 0.028_125 / 128.0;
        assert!((pie.probability - second).abs() < 1e-15);
        pie.advance(at(45), 40_000);
        // 2.3e-4 is below 1e-3, and the delay did not grow: 0.125 · 0.025 / 32.
        let third = second + 0.003_125 / 32.0;
        assert!((pie.probability - third).abs() < 1e-15);
        // A calm queue decays: (0.125 · −0.015 + 1.25 · −0.040) / 32 is more than there is.
        pie.advance(at(60), 0);
        assert!(pie.probability == 0.0);
    }

    #[test]
    fn the_drop_probability_of_pie_decays_by_two_percent_without_a_queue() {
        let mut pie = Pie { probability: 0.5, last_delay_s: 0.005, ..pie() };
        pie.advance(at(15), 5_000);
        assert!((pie.probability - (0.5 - 0.125 * 0.010) * 0.98).abs() < 1e-12);
    }

    #[test]
    fn pie_lets_a_burst_of_150_ms_pass_at_any_probability() {
        let mut pie = Pie { probability: 1.0, last_delay_s: 0.1, ..pie() };
        for n in 0..10 {
            pie.advance(at(15 * n), 100_000);
            assert_eq!(pie.admit(100_000, &PACKET, 0.0), Verdict::Keep, "{n}");
        }
        pie.advance(at(150), 100_000);
        assert_eq!(pie.admit(100_000, &PACKET, 0.0), Verdict::Drop);
        // Up to 10 % a packet is marked. Two packets are never too many.
        let mut pie = Pie { probability: 0.09, burst: Span::ZERO, accumulated: 1.0, ..pie };
        assert_eq!(pie.admit(100_000, &PACKET, 0.0), Verdict::Mark);
        assert_eq!(Pie { probability: 1.0, ..pie }.admit(2_048, &PACKET, 0.0), Verdict::Keep);
    }

    #[test]
    fn pie_spaces_its_drops_instead_of_dropping_in_a_row() {
        let mut pie = Pie { probability: 0.05, last_delay_s: 0.1, burst: Span::ZERO, ..pie() };
        let luck = crate::Luck::new(1).stream("pie");
        let hits: Vec<u64> = (0..200_000)
            .filter(|&n| pie.admit(100_000, &PACKET, luck.unit(n, 0, 0)) != Verdict::Keep)
            .collect();
        let gaps: Vec<_> = hits.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // The sum reaches 0.85 with the 17th packet and 8.5 with the 170th (RFC 8033 §5.4), or the next by rounding.
        assert!(gaps.iter().all(|gap| (17..=171).contains(gap)));
        let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
        // 16 packets without a chance, and then 1/0.05 on average.
        assert!((mean - 36.0).abs() < 1.0, "{mean}");
    }

    #[test]
    fn pie_skips_a_long_silence_with_the_same_result_as_step_by_step() {
        let (mut slow, mut fast) = (Pie { probability: 0.3, ..pie() }, Pie { probability: 0.3, ..pie() });
        (1..=4_000).for_each(|n| slow.advance(at(15 * n + 7), 0));
        fast.advance(at(15 * 4_000 + 7), 0);
        assert_eq!((slow.next_update, slow.burst), (fast.next_update, fast.burst));
        assert_eq!(slow.probability.to_bits(), fast.probability.to_bits());
        fast.advance(Time::from_secs(1_000_000_000), 0);
        assert!(fast.next_update > Time::from_secs(1_000_000_000));
    }
}
