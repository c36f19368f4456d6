//! A mechanism that notes its calls. The test sets its limits.

use std::sync::{Arc, Mutex};

use coapace_control::{Controller, Cue, Duration, Gauges, Instant, Limits, Marking, Outcome};
use coapace_proto::{Config, Setup};

/// A call of the mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotedCall {
    Started,
    Retransmitted,
    Acked,
    GivenUp,
    Other,
}

/// A mechanism with timeouts of 2 s, doubled, and one confirmable message every `limits.next_confirmable`.
#[derive(Debug)]
pub(crate) struct Noting {
    limits: Limits,
    pub(crate) calls: Mutex<Vec<NotedCall>>,
}

impl Noting {
    pub(crate) const LIMITS: Limits = Limits {
        nstart: None,
        next_confirmable: Instant::ZERO,
        overtaken: None,
        non_gap: Duration::ZERO,
        marking: Marking::None,
        final_wait: true,
    };

    pub(crate) fn with(limits: Limits) -> Self {
        Self { limits, calls: Mutex::new(Vec::new()) }
    }

    pub(crate) fn set_up(limits: Limits, config: Config) -> Arc<Setup<Self>> {
        let controller = Self::with(limits);
        Arc::new(Setup { controller, config, bulk: None })
    }
}

impl Controller for Noting {
    /// The earliest moment for the next confirmable message.
    type State = Instant;
    type Exchange = Duration;

    fn state(&self) -> Instant {
        self.limits.next_confirmable
    }

    fn on_start(&self, next: &mut Instant, cue: Cue) -> (Duration, Duration) {
        if self.limits.next_confirmable != Instant::ZERO {
            *next = cue.now + self.limits.next_confirmable.since(Instant::ZERO);
        }
        self.calls.lock().unwrap().push(NotedCall::Started);
        (Duration::from_secs(2), Duration::from_secs(2))
    }

    fn on_retransmit(&self, _: &mut Instant, exchange: &mut Duration, _: Cue) -> Duration {
        self.calls.lock().unwrap().push(NotedCall::Retransmitted);
        *exchange = exchange.doubled();
        *exchange
    }

    fn on_end(&self, _: &mut Instant, _: Duration, outcome: Outcome, _: Cue) {
        self.calls.lock().unwrap().push(match outcome {
            Outcome::Acked(_) => NotedCall::Acked,
            Outcome::GivenUp => NotedCall::GivenUp,
            _ => NotedCall::Other,
        });
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        Duration::from_secs(2).times((1 << retransmits) - 1)
    }

    fn limits(&self, &next_confirmable: &Instant) -> Limits {
        Limits { next_confirmable, ..self.limits }
    }

    fn gauges(&self, _: &Instant) -> Gauges {
        Gauges::default()
    }
}
