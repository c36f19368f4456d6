//! `default`: RFC 7252 §4.2, §4.8.
//!
//! Idea: draw the first timeout afresh for every exchange from U(ACK_TIMEOUT, ACK_TIMEOUT·ACK_RANDOM_FACTOR), double it
//! at every retransmission, learn nothing.
//!
//! Differences from the source: an upper bound of 60 s for one timeout, as RFC 8085 §3.1.1 allows and as Raitahila 2019
//! measured it. With the RFC's own MAX_RETRANSMIT it is out of reach (the last timeout is at most 48 s).

use crate::parameters::parameters;
use crate::{Controller, Cue, Duration, Entry, Gauges, Instant, Limits, Marking, Mechanism, Outcome, Ratio};

parameters! {
    /// RFC 7252's own retransmission timer.
    pub struct DefaultTimer {
        /// ACK_TIMEOUT, RFC 7252 §4.8.
        ack_timeout: Duration = Duration::from_secs(2),
        /// ACK_RANDOM_FACTOR, RFC 7252 §4.8.
        ack_random_factor: Ratio = Ratio::new(3, 2),
        /// Upper bound of one timeout; RFC 8085 §3.1.1 asks for 60 s at least.
        max_rto: Duration = Duration::from_secs(60),
    }
    presets {
        /// As RFC 7252 §4.8 says.
        "rfc7252" => {},
    }
}

impl Controller for DefaultTimer {
    type State = ();
    /// The timeout in force.
    type Exchange = Duration;

    fn state(&self) {}

    fn on_start(&self, (): &mut (), cue: Cue) -> (Duration, Duration) {
        let timeout = cue.draw.dither(self.ack_timeout, self.ack_random_factor).min(self.max_rto);
        (timeout, timeout)
    }

    fn on_retransmit(&self, (): &mut (), timeout: &mut Duration, _: Cue) -> Duration {
        *timeout = timeout.doubled().min(self.max_rto);
        *timeout
    }

    fn on_end(&self, (): &mut (), _: Duration, _: Outcome, _: Cue) {}

    fn max_span(&self, retransmits: u8) -> Duration {
        let mut timeout = self.ack_random_factor.of(self.ack_timeout);
        let mut span = Duration::ZERO;
        for _ in 0..retransmits {
            span += timeout.min(self.max_rto);
            timeout = timeout.doubled();
        }
        span
    }

    fn limits(&self, (): &()) -> Limits {
        Limits { nstart: None, next_confirmable: Instant::ZERO, non_gap: Duration::ZERO, marking: Marking::None }
    }

    fn gauges(&self, (): &()) -> Gauges {
        Gauges { rto: self.ack_timeout, ..Gauges::default() }
    }
}

/// `default`.
pub(crate) const DEFAULT: Entry = Entry {
    name: "default",
    summary: "fixed timeout drawn from 2-3 s, doubled at every retransmission, nothing learnt",
    source: "RFC 7252 §4.2, §4.8",
    mechanism: Mechanism::Default(DefaultTimer::DEFAULT),
};

// Nothing is kept between exchanges.
const _: () = assert!(size_of::<<DefaultTimer as Controller>::State>() == 0);
