//! A mechanism whose limits a test sets, and which notes what it is told.

use std::cell::RefCell;
use std::sync::Arc;

use coapace_control::{Controller, Cue, Duration, Gauges, Instant, Limits, Marking, Outcome};
use coapace_proto::{Config, Setup};

/// What the mechanism was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Started,
    Retransmitted,
    Acked,
    GivenUp,
    Other,
}

/// Timeouts of 2 s, doubled.
#[derive(Debug)]
pub(crate) struct Noting {
    pub(crate) limits: Limits,
    pub(crate) told: RefCell<Vec<Told>>,
}

impl Noting {
    pub(crate) const LIMITS: Limits = Limits {
        nstart: None,
        next_confirmable: Instant::ZERO,
        non_gap: Duration::ZERO,
        marking: Marking::None,
        final_wait: true,
    };

    pub(crate) fn set_up(limits: Limits, config: Config) -> Arc<Setup<Self>> {
        let controller = Self { limits, told: RefCell::new(Vec::new()) };
        Arc::new(Setup { controller, config })
    }
}

impl Controller for Noting {
    type State = ();
    type Exchange = Duration;

    fn state(&self) {}

    fn on_start(&self, (): &mut (), _: Cue) -> (Duration, Duration) {
        self.told.borrow_mut().push(Told::Started);
        (Duration::from_secs(2), Duration::from_secs(2))
    }

    fn on_retransmit(&self, (): &mut (), exchange: &mut Duration, _: Cue) -> Duration {
        self.told.borrow_mut().push(Told::Retransmitted);
        *exchange = exchange.doubled();
        *exchange
    }

    fn on_end(&self, (): &mut (), _: Duration, outcome: Outcome, _: Cue) {
        self.told.borrow_mut().push(match outcome {
            Outcome::Acked(_) => Told::Acked,
            Outcome::GivenUp => Told::GivenUp,
            _ => Told::Other,
        });
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        Duration::from_secs(2).times((1 << retransmits) - 1)
    }

    fn limits(&self, (): &()) -> Limits {
        self.limits
    }

    fn gauges(&self, (): &()) -> Gauges {
        Gauges::default()
    }
}
