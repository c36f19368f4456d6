//! `default`: the retransmission timer of CoAP.
//!
//! **Source.** RFC 7252 §4.2, §4.8.
//!
//! **Idea.** The first timeout of every exchange is drawn from U(ACK_TIMEOUT, ACK_TIMEOUT·ACK_RANDOM_FACTOR). Every
//! retransmission doubles it. Nothing is learnt.
//!
//! **Differences from the source**
//! * One timeout is at most 60 s (`max_rto`). RFC 8085 §3.1.1 allows such a bound, and Raitahila 2019 measured with it. With
//!   the RFC's MAX_RETRANSMIT of 4 it is out of reach: the last timeout is 48 s at most.

use crate::parameters::{Switch, parameters};
use crate::{
    Controller, Cue, Draw, Duration, Entry, Gauges, Limits, Marking, Mechanism, Notes, Origin, Outcome, Ratio,
};

parameters! {
    /// The retransmission timer of RFC 7252.
    pub struct DefaultTimer {
        /// ACK_TIMEOUT, RFC 7252 §4.8.
        ack_timeout: Duration = Duration::from_secs(2),
        /// ACK_RANDOM_FACTOR, RFC 7252 §4.8; a value below 1 counts as 1.
        ack_random_factor: Ratio = Ratio::new(3, 2),
        /// Upper bound of one timeout; RFC 8085 §3.1.1 asks for 60 s at least.
        max_rto: Duration = Duration::from_secs(60),
        /// Whether the last retransmission is waited for, RFC 7252 §4.2.
        final_wait: Switch = Switch::On,
    }
    presets {
        /// The parameters of RFC 7252 §4.8. The upper bound is out of reach with its MAX_RETRANSMIT of 4.
        "rfc7252" => |_| Self::DEFAULT,
        /// Contiki's Erbium, the "default CoAP" of most results from Cooja: ACK_TIMEOUT 3 s, and an exchange is given up
        /// at the moment its last retransmission departs, so that no answer to that one is in time.
        "erbium" => |_| Self {
            ack_timeout: Duration::from_secs(3), final_wait: Switch::Off, ..Self::DEFAULT
        },
    }
}

/// State of [`DefaultTimer`] for one exchange: its draw. Each timeout is computed from the draw, so rounding errors do not
/// add up.
#[derive(Clone, Copy, Debug)]
pub struct DefaultExchange {
    draw: Draw,
    retransmits: u8,
}

impl DefaultTimer {
    fn timeout(&self, exchange: DefaultExchange) -> Duration {
        let doubled = 1u32.checked_shl(exchange.retransmits.into()).unwrap_or(u32::MAX);
        exchange.draw.dither(self.ack_timeout.times(doubled), self.ack_random_factor).min(self.max_rto)
    }
}

impl Controller for DefaultTimer {
    type State = ();
    type Exchange = DefaultExchange;

    fn state(&self) {}

    fn on_start(&self, (): &mut (), cue: Cue) -> (DefaultExchange, Duration) {
        let exchange = DefaultExchange { draw: cue.draw, retransmits: 0 };
        (exchange, self.timeout(exchange))
    }

    fn on_retransmit(&self, (): &mut (), exchange: &mut DefaultExchange, _: Cue) -> Duration {
        exchange.retransmits = exchange.retransmits.saturating_add(1);
        self.timeout(*exchange)
    }

    fn on_end(&self, (): &mut (), _: DefaultExchange, _: Outcome, _: Cue) {}

    fn max_span(&self, retransmits: u8) -> Duration {
        let mut timeout = self.ack_random_factor.of(self.ack_timeout).max(self.ack_timeout);
        let mut span = Duration::ZERO;
        for _ in 0..retransmits {
            span += timeout.min(self.max_rto);
            timeout = timeout.doubled();
        }
        span
    }

    fn limits(&self, (): &()) -> Limits {
        // No round-trip time is ever measured, so the gap is the 3 s of RFC 7641 §4.5.1 at least. The endpoint enforces
        // PROBING_RATE (RFC 7252 §4.7), which is stricter: at 1 byte/s the shortest message takes 4 s.
        let limits = Limits::with_gauges(self.gauges(&()), Marking::None);
        Limits { final_wait: self.final_wait.is_on(), ..limits }
    }

    #[inline(always)]
    fn gauges(&self, (): &()) -> Gauges {
        Gauges { rto: self.ack_timeout, ..Gauges::default() }
    }
}

/// The entry `default`.
pub(crate) const DEFAULT: Entry = Entry {
    name: "default",
    summary: "fixed timeout drawn from 2-3 s, doubled at every retransmission, nothing learnt",
    source: "RFC 7252 §4.2, §4.8",
    origin: Origin::Published,
    notes: Notes {
        status: "RFC 7252, a Proposed Standard. Every implementation of CoAP has it.",
        use_when: "Round trips are well below 2 s, messages are rare, and neither RAM nor code can be \
            spent. It keeps nothing of a destination.",
        avoid_when: "Round trips come near 2 s or beyond, like those of NB-IoT, or many devices answer to \
            one event.",
        hazards: "It learns nothing. Where the round-trip time exceeds the timeout it retransmits every \
            message needlessly, and goes on doing so. With many clients and long queues that is congestion \
            collapse.",
    },
    mechanism: Mechanism::Default(DefaultTimer::DEFAULT),
};

// Nothing is kept between exchanges.
const _: () = assert!(size_of::<<DefaultTimer as Controller>::State>() == 0);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    #[test]
    fn an_exchange_waits_93_seconds_at_most() {
        let draw = Draw::from_bits(u32::MAX);
        let (mut exchange, mut wait) = DefaultTimer::DEFAULT.on_start(&mut (), Cue { draw, ..at(0) });
        for _ in 0..4 {
            wait += DefaultTimer::DEFAULT.on_retransmit(&mut (), &mut exchange, at(0));
        }
        assert_eq!(wait, Duration::from_secs(93)); // MAX_TRANSMIT_WAIT, RFC 7252 §4.8.2
    }

    #[test]
    fn non_confirmable_messages_that_nothing_answers_are_3_s_apart_or_an_ack_timeout() {
        assert_eq!(DefaultTimer::DEFAULT.limits(&()).non_gap, Duration::from_secs(3));
        let slow = DefaultTimer { ack_timeout: Duration::from_secs(5), ..DefaultTimer::DEFAULT };
        assert_eq!(slow.limits(&()).non_gap, Duration::from_secs(5));
    }

    #[test]
    fn the_span_is_max_transmit_span() {
        assert_eq!(DefaultTimer::DEFAULT.max_span(4), Duration::from_secs(45)); // RFC 7252 §4.8.2
    }

    #[test]
    fn the_bound_holds_however_often_a_message_is_retransmitted() {
        let (mut exchange, _) = DefaultTimer::DEFAULT.on_start(&mut (), at(0));
        for _ in 0..300 {
            DefaultTimer::DEFAULT.on_retransmit(&mut (), &mut exchange, at(0));
        }
        assert_eq!(DefaultTimer::DEFAULT.timeout(exchange), Duration::from_secs(60));
    }
}
