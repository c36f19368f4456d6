//! How long an endpoint holds on to a peer that says nothing.

use coapace_control::{Draw, Duration, Ratio};

/// RFC 7252's own retransmission timer (§4.2, §4.8), which bounds from below how soon an endpoint despairs of a peer.
///
/// A mechanism that follows a path of 1 ms has made all its retransmissions within a tenth of a second. Giving up then would
/// turn a reboot or a slow answer into an error, and an application that asks again at once would send a dead peer hundreds
/// of datagrams where RFC 7252 sends five. So:
///
/// * An exchange ends no sooner than RFC 7252's would: if the mechanism's timeouts together are shorter than
///   [`least_wait`](Self::least_wait), the peer is waited for until [`max_wait`](Self::max_wait) has passed since the first
///   transmission. When [`max_span`](Self::max_span) has passed, one more copy departs, unless MAX_RETRANSMIT is 0. So no
///   span of that length sees more than the MAX_RETRANSMIT + 1 transmissions that RFC 7252 makes in it.
/// * A peer that let MAX_RETRANSMIT + 1 timeouts pass without an answer is silent. As long as it is, no timeout towards it is
///   shorter than RFC 7252's would be at that transmission: the backoff outlives the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// ACK_TIMEOUT.
    pub ack_timeout: Duration,
    /// ACK_RANDOM_FACTOR.
    pub ack_random_factor: Ratio,
}

/// RFC 8085 §3.1.1: a timeout need not grow beyond this.
const LONGEST: Duration = Duration::from_secs(60);

impl Patience {
    /// The parameters of RFC 7252 §4.8: an exchange of 4 retransmissions ends after 62 s at least, and a fast one after 93 s.
    pub const RFC7252: Self =
        Self { ack_timeout: Duration::from_secs(2), ack_random_factor: Ratio::new(3, 2) };

    /// The timeout of RFC 7252 after `retransmits` retransmissions: ACK_TIMEOUT doubled each time, dithered, 60 s at most.
    pub fn timeout(&self, retransmits: u8, draw: Draw) -> Duration {
        let doubled = 1u32.checked_shl(retransmits.into()).unwrap_or(u32::MAX);
        draw.dither(self.ack_timeout.times(doubled), self.ack_random_factor).min(LONGEST)
    }

    /// The shortest time after which RFC 7252 gives up: all of its timeouts without dither, 62 s with its parameters.
    pub fn least_wait(&self, max_retransmit: u8) -> Duration {
        sum(self.ack_timeout, u16::from(max_retransmit) + 1)
    }

    /// MAX_TRANSMIT_WAIT (RFC 7252 §4.8.2): the longest, 93 s with its parameters.
    pub fn max_wait(&self, max_retransmit: u8) -> Duration {
        sum(self.longest_first(), u16::from(max_retransmit) + 1)
    }

    /// MAX_TRANSMIT_SPAN (RFC 7252 §4.8.2): the longest time until the last retransmission, 45 s with its parameters.
    pub fn max_span(&self, max_retransmit: u8) -> Duration {
        sum(self.longest_first(), max_retransmit.into())
    }

    fn longest_first(&self) -> Duration {
        self.ack_random_factor.of(self.ack_timeout).max(self.ack_timeout)
    }
}

/// So many timeouts, of which each is twice the one before.
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
    fn the_spans_are_those_of_rfc_7252() {
        assert_eq!(Patience::RFC7252.least_wait(4), Duration::from_secs(62));
        assert_eq!(Patience::RFC7252.max_wait(4), Duration::from_secs(93));
        assert_eq!(Patience::RFC7252.max_span(4), Duration::from_secs(45));
        assert_eq!(Patience::RFC7252.max_wait(0), Duration::from_secs(3));
        assert_eq!(Patience::RFC7252.max_wait(5), Duration::from_secs(93 + 60), "no timeout is above 60 s");
    }

    #[test]
    fn a_timeout_doubles_with_every_retransmission_up_to_a_minute() {
        let timeouts =
            [0, 1, 4, 5, 200].map(|n| Patience::RFC7252.timeout(n, Draw::ZERO).as_micros() / 1_000_000);
        assert_eq!(timeouts, [2, 4, 32, 60, 60]);
    }
}
