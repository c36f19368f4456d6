//! How long an endpoint waits for a peer that does not answer.

use coapace_control::{Draw, Duration, Ratio};

/// The retransmission timer of RFC 7252 (§4.2, §4.8). It keeps an endpoint with a faster mechanism from giving up
/// earlier than RFC 7252 does.
///
/// On a path with a round trip of 1 ms, a mechanism may have made all its retransmissions within a tenth of a second.
/// If it gave up then, a reboot or a slow answer would be an error. An application that repeats the request at once
/// would send hundreds of datagrams to a dead peer, while RFC 7252 sends five. Two rules prevent that:
///
/// * If the sum of the mechanism's timeouts is shorter than [`least_wait`](Self::least_wait), the endpoint waits until
///   [`max_wait`](Self::max_wait) has passed since the first transmission. One more copy departs when
///   [`max_span`](Self::max_span) has passed, unless MAX_RETRANSMIT is 0. So no more than MAX_RETRANSMIT + 1
///   transmissions depart in any period as long as `max_span`, as with RFC 7252. If the additional copy departs late,
///   because the device slept, the endpoint waits [`last_wait`](Self::last_wait) for its answer.
/// * A peer that let MAX_RETRANSMIT + 1 timeouts pass without an answer is *silent* until it answers. No timeout
///   towards a silent peer is shorter than the RFC 7252 timeout of the same transmission. So the next exchange with
///   that peer does not begin with short timeouts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// ACK_TIMEOUT: the shortest timeout of a first transmission.
    pub ack_timeout: Duration,
    /// ACK_RANDOM_FACTOR: the largest factor by which dither lengthens a timeout.
    pub ack_random_factor: Ratio,
}

/// The upper bound of a timeout. RFC 8085 §3.1.1 allows a bound of 60 s or more.
const LONGEST: Duration = Duration::from_secs(60);

impl Patience {
    /// The parameters of RFC 7252 §4.8. With 4 retransmissions, an exchange without an answer ends after at least 62 s,
    /// or after 93 s if the mechanism is fast.
    pub const RFC7252: Self =
        Self { ack_timeout: Duration::from_secs(2), ack_random_factor: Ratio::new(3, 2) };

    /// Returns the timeout of RFC 7252 after `retransmits` retransmissions: ACK_TIMEOUT, doubled each time, dithered, at most
    /// 60 s.
    pub fn timeout(&self, retransmits: u8, draw: Draw) -> Duration {
        // After 32 doublings every timeout is above `LONGEST`.
        let doubled = 1u32.checked_shl(retransmits.into()).unwrap_or(u32::MAX);
        draw.dither(self.ack_timeout.times(doubled), self.ack_random_factor).min(LONGEST)
    }

    /// Returns the shortest time after which RFC 7252 gives up: the sum of its timeouts without dither. That is 62 s
    /// with the parameters of RFC 7252.
    pub fn least_wait(&self, max_retransmit: u8) -> Duration {
        sum(self.ack_timeout, u16::from(max_retransmit) + 1)
    }

    /// Returns MAX_TRANSMIT_WAIT, the longest time after which RFC 7252 gives up (§4.8.2). That is 93 s with the
    /// parameters of RFC 7252.
    pub fn max_wait(&self, max_retransmit: u8) -> Duration {
        sum(self.longest_first(), u16::from(max_retransmit) + 1)
    }

    /// Returns MAX_TRANSMIT_SPAN, the longest time until the last retransmission (RFC 7252 §4.8.2). That is 45 s with
    /// the parameters of RFC 7252.
    pub fn max_span(&self, max_retransmit: u8) -> Duration {
        sum(self.longest_first(), max_retransmit.into())
    }

    /// Returns how long the endpoint waits at least for an answer to its additional copy, even if that departs late:
    /// [`max_wait`](Self::max_wait) less [`least_wait`](Self::least_wait). That is 31 s with the parameters of
    /// RFC 7252.
    pub fn last_wait(&self, max_retransmit: u8) -> Duration {
        self.max_wait(max_retransmit) - self.least_wait(max_retransmit)
    }

    /// Returns the longest timeout of a first transmission.
    fn longest_first(&self) -> Duration {
        self.ack_random_factor.of(self.ack_timeout).max(self.ack_timeout)
    }
}

/// Returns the sum of `count` timeouts. Each is twice as long as the previous one, up to [`LONGEST`].
fn sum(mut timeout: Duration, count: u16) -> Duration {
    let mut sum = Duration::ZERO;
    for _ in 0..count {
        sum += timeout.min(LONGEST);
        timeout = timeout.doubled();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_spans_agree_with_rfc_7252() {
        assert_eq!(Patience::RFC7252.least_wait(4), Duration::from_secs(62));
        assert_eq!(Patience::RFC7252.max_wait(4), Duration::from_secs(93));
        assert_eq!(Patience::RFC7252.max_span(4), Duration::from_secs(45));
        assert_eq!(Patience::RFC7252.last_wait(4), Duration::from_secs(31));
        assert_eq!(Patience::RFC7252.max_wait(0), Duration::from_secs(3));
        assert_eq!(Patience::RFC7252.max_wait(5), Duration::from_secs(93 + 60), "no timeout is above 60 s");
    }

    #[test]
    fn the_patience_timeout_doubles_with_every_retransmission_up_to_a_minute() {
        let timeouts =
            [0, 1, 4, 5, 200].map(|n| Patience::RFC7252.timeout(n, Draw::ZERO).as_micros() / 1_000_000);
        assert_eq!(timeouts, [2, 4, 32, 60, 60]);
    }
}
