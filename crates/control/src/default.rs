//! `default`: RFC 7252 §4.2, §4.8.
//!
//! Idea: draw the first timeout afresh for every exchange from U(ACK_TIMEOUT, ACK_TIMEOUT·ACK_RANDOM_FACTOR), double it
//! at every retransmission, learn nothing.
//!
//! Differences from the source: an upper bound of 60 s for one timeout, as RFC 8085 §3.1.1 allows and as Raitahila 2019
//! measured it. With the RFC's own MAX_RETRANSMIT it is out of reach (the last timeout is at most 48 s).

use crate::parameters::{Switch, parameters};
use crate::{
    Controller, Cue, Draw, Duration, Entry, Gauges, Limits, Marking, Mechanism, Outcome, Ratio, notes,
};

parameters! {
    /// RFC 7252's own retransmission timer.
    pub struct DefaultTimer {
        /// ACK_TIMEOUT, RFC 7252 §4.8.
        ack_timeout: Duration = Duration::from_secs(2),
        /// ACK_RANDOM_FACTOR, RFC 7252 §4.8; what is below 1 counts as 1.
        ack_random_factor: Ratio = Ratio::new(3, 2),
        /// Upper bound of one timeout; RFC 8085 §3.1.1 asks for 60 s at least.
        max_rto: Duration = Duration::from_secs(60),
        /// Whether the last retransmission is waited for, RFC 7252 §4.2.
        final_wait: Switch = Switch::On,
    }
    presets {
        /// As RFC 7252 §4.8 says; the bound is out of reach with its MAX_RETRANSMIT of 4.
        "rfc7252" => |_| Self::DEFAULT,
        /// Contiki's Erbium, the "default CoAP" of most results from Cooja: ACK_TIMEOUT 3 s, and an exchange is given up
        /// the moment its last retransmission departs, which no answer to that one can reach in time.
        "erbium" => |_| Self {
            ack_timeout: Duration::from_secs(3), final_wait: Switch::Off, ..Self::DEFAULT
        },
    }
}

/// One exchange of [`DefaultTimer`]: its one draw, from which every timeout follows without rounding the one before.
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
        // No round-trip time is ever measured, so RFC 7641 §4.5.1 has the last word on the gap. What RFC 7252 §4.7 itself
        // asks for, PROBING_RATE, is the endpoint's, and stricter: at 1 byte/s the least message is 4 s.
        let limits = Limits::with_gauges(self.gauges(&()), Marking::None);
        Limits { final_wait: self.final_wait.is_on(), ..limits }
    }

    #[inline(always)]
    fn gauges(&self, (): &()) -> Gauges {
        Gauges { rto: self.ack_timeout, ..Gauges::default() }
    }
}

/// `default`.
pub(crate) const DEFAULT: Entry = Entry {
    name: "default",
    summary: "fixed timeout drawn from 2-3 s, doubled at every retransmission, nothing learnt",
    source: "RFC 7252 §4.2, §4.8",
    notes: notes::DEFAULT,
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
