//! The path between clients and servers that a scenario is made of.

/// The size of the largest buffer in bytes. It is never full.
const ENDLESS: f64 = 1e8;

/// The least and the greatest mean length of a burst of losses in a scenario, in packets.
const BURST: [f64; 2] = [1.05, 200.0];

/// The share of packets that is lost in the bad state of a path with bursts.
pub const BAD: f64 = 0.8;

/// A path that delays, limits and queues alike in both directions, and loses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EstimatedLink {
    /// Bits per second of IP packets, each way.
    pub rate_bps: f64,
    /// Bytes that may wait, each way; `None` without a limit.
    pub buffer_bytes: Option<f64>,
    /// The round-trip time without queues, jitter and transmission times, in seconds.
    pub delay_s: f64,
    /// The most that jitter adds to a round trip, in seconds.
    pub jitter_s: f64,
    /// The share of round trips that the path loses, apart from full buffers.
    pub loss: f64,
    /// The part of that loss that requests suffer, from 0 (only answers are lost) to 1 (only requests are lost).
    pub up_share: f64,
    /// The mean length of a burst of losses in packets; `None` if losses are single.
    pub burst_packets: Option<f64>,
}

impl EstimatedLink {
    /// Returns the link with every number in the range of a scenario.
    #[must_use]
    pub fn clamped(self) -> Self {
        Self {
            rate_bps: self.rate_bps.clamp(100.0, 1e9),
            buffer_bytes: self.buffer_bytes.map(|bytes| bytes.clamp(300.0, ENDLESS)),
            delay_s: self.delay_s.clamp(0.0, 600.0),
            jitter_s: self.jitter_s.clamp(0.0, 600.0),
            loss: self.loss.clamp(0.0, 0.95),
            up_share: self.up_share.clamp(0.0, 1.0),
            burst_packets: self.burst_packets.map(|packets| packets.clamp(BURST[0], BURST[1])),
        }
    }

    /// Returns the share of packets that are lost on the way up if `is_up`, or else on the way down.
    pub fn loss_of(&self, is_up: bool) -> f64 {
        let share = if is_up { self.up_share } else { 1.0 - self.up_share };
        1.0 - (1.0 - self.loss).powf(share)
    }

    /// Returns the value of `loss` of one hop in a scenario file.
    pub(super) fn loss_text(&self, is_up: bool) -> String {
        let each = self.loss_of(is_up);
        match self.burst_packets {
            Some(packets) if each > 1e-4 => {
                // The bad state loses more than the average. It is so long that the good state lasts for one packet at least.
                let bad = BAD.max(each + 0.05).min(1.0);
                let least = (each / (bad - each)).ceil().max(1.0);
                format!(
                    "{{ good = \"0 %\", bad = \"{:.2} %\", average = \"{:.3} %\", mean_bad_packets = {:.0} }}",
                    bad * 100.0,
                    each * 100.0,
                    packets.round().max(least)
                )
            }
            _ => format!("\"{:.3} %\"", each * 100.0),
        }
    }
}
