//! `twin`: RFC 7252 §4.2 written again. Its decisions equal those of the built-in `default`, so the test can compare them.

use coapace_control::{
    Controller, Cue, Draw, Duration, Gauges, Limits, Marking, Notes, Outcome, OwnMechanism, Ratio, packed,
    parameters,
};

parameters! {
    /// The retransmission timer of RFC 7252.
    pub(crate) struct Twin {
        /// ACK_TIMEOUT, RFC 7252 §4.8.
        ack_timeout: Duration = Duration::from_secs(2),
        /// ACK_RANDOM_FACTOR, RFC 7252 §4.8.
        ack_random_factor: Ratio = Ratio::new(3, 2),
    }
    presets {
        /// Contiki's Erbium waits 3 s.
        "erbium" => |before| Self { ack_timeout: Duration::from_secs(3), ..before },
    }
}

packed! {
    /// An exchange: the random draw behind all its timeouts, and the number of times that the timeout was doubled.
    pub(crate) struct TwinExchange { draw: Draw, doublings: u8 }
}

impl Controller for Twin {
    type State = (); // it learns nothing
    type Exchange = TwinExchange;

    fn state(&self) {}

    fn on_start(&self, (): &mut (), cue: Cue) -> (TwinExchange, Duration) {
        let exchange = TwinExchange { draw: cue.draw, doublings: 0 };
        (exchange, self.timeout(exchange))
    }

    fn on_retransmit(&self, (): &mut (), exchange: &mut TwinExchange, _: Cue) -> Duration {
        exchange.doublings = exchange.doublings.saturating_add(1);
        self.timeout(*exchange)
    }

    fn on_end(&self, (): &mut (), _: TwinExchange, _: Outcome, _: Cue) {}

    fn max_span(&self, retransmits: u8) -> Duration {
        let longest = self.ack_random_factor.of(self.ack_timeout);
        (0..retransmits)
            .fold(Duration::ZERO, |span, doublings| span + doubled(longest, doublings).min(LONGEST))
    }

    fn limits(&self, (): &()) -> Limits {
        Limits::with_gauges(self.gauges(&()), Marking::None)
    }

    fn gauges(&self, (): &()) -> Gauges {
        Gauges { rto: self.ack_timeout, ..Gauges::default() }
    }
}

impl Twin {
    fn timeout(&self, exchange: TwinExchange) -> Duration {
        let base = doubled(self.ack_timeout, exchange.doublings);
        exchange.draw.dither(base, self.ack_random_factor).min(LONGEST)
    }
}

/// The upper bound of timeouts (RFC 8085 §3.1.1).
const LONGEST: Duration = Duration::from_secs(60);

/// Returns `span` doubled this many times.
fn doubled(span: Duration, doublings: u8) -> Duration {
    span.times(1_u32.checked_shl(doublings.into()).unwrap_or(u32::MAX))
}

impl OwnMechanism for Twin {
    const NAME: &'static str = "twin";
    const SUMMARY: &'static str = "the timer of RFC 7252, written again";
    const SOURCE: &'static str = "RFC 7252 §4.2";
    const NOTES: Notes = Notes {
        status: "An example.",
        use_when: "Learning how a mechanism is written.",
        avoid_when: "Always else: `default` is the same.",
        hazards: "Those of `default`.",
    };
}
