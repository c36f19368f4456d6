//! The path between clients and servers in a fitted scenario.

/// The size of the largest buffer of a fitted path, in bytes. It is never full.
const ENDLESS: f64 = 1e8;

/// The smallest and largest mean length of a burst of losses in a scenario, in packets.
const BURST: [f64; 2] = [1.05, 200.0];

/// The share of packets lost in the bad state of a path with bursts.
pub const BAD: f64 = 0.8;

/// A path with equal delay, rate and buffer in both directions, and with losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EstimatedLink {
    /// The rate in bits per second of IP packets, in each direction.
    pub rate_bps: f64,
    /// The bytes that may be queued in each direction; `None` without a limit.
    pub buffer_bytes: Option<f64>,
    /// The round-trip time without queueing, jitter and transmission times, in seconds.
    pub delay_s: f64,
    /// The most that jitter adds to a round trip, in seconds.
    pub jitter_s: f64,
    /// The share of round trips lost on the path, apart from drops at full buffers.
    pub loss: f64,
    /// The part of `loss` that affects requests, from 0 (only answers are lost) to 1 (only requests are lost).
    pub up_share: f64,
    /// The mean length of a burst of losses in packets; `None` if losses are independent.
    pub burst_packets: Option<f64>,
}

impl EstimatedLink {
    /// Returns the link with every number limited to the range of a scenario.
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

    /// Returns the share of packets lost on the way to the server if `is_up`, otherwise on the way to the clients.
    pub fn loss_of(&self, is_up: bool) -> f64 {
        let share = if is_up { self.up_share } else { 1.0 - self.up_share };
        // A round trip survives if both ways do: (1 − up)(1 − down) = 1 − loss.
        1.0 - (1.0 - self.loss).powf(share)
    }

    /// Returns the value of the key `loss` in a scenario file, for the hop to the server if `is_up`, otherwise to the
    /// clients.
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
