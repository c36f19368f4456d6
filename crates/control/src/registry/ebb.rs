//! `ebb`, `ebb-plain`: an RTO that waits out a queue and repeats a loss at once.
//!
//! **Source.** Coapace; described and measured in docs/ebb.md. It is no published mechanism.
//!
//! **Idea.** The round-trip time tells an error from congestion. While it is close to the least one measured, no queue
//! stands, a loss is an error, and retransmissions follow soon. While it is above, timeouts triple, and the timeout that
//! an answer needed is held by later exchanges until an answer to a first transmission shows that the queue has ebbed.
//!
//! With a marking, every answer tells which transmission it answers. A retransmission that overtook a late answer is known
//! to have been needless, and nothing is held.

use crate::estimator::{Estimator, GRANULARITY, Learning, MIN_RTO};
use crate::fine::Fine;
use crate::parameters::parameters;
use crate::{Controller, Cue, Duration, Entry, Gauges, Limits, Marking, Mechanism, Notes, Origin, Outcome, Ratio};

parameters! {
    /// An RTO that waits out a queue and repeats a loss at once.
    pub struct Ebb {
        /// RTO before the first sample, the ACK_TIMEOUT of RFC 7252 §4.8.
        initial_rto: Duration = Duration::from_secs(2),
        /// Lower bound of the RTO.
        min_rto: Duration = MIN_RTO,
        /// Upper bound of every timeout. Counts as 268 s if above.
        max_rto: Duration = Duration::from_secs(60),
        /// K, the weight of RTTVAR in the RTO.
        k: u8 = 4,
        /// Greatest factor of the dither of a timeout.
        dither: Ratio = Ratio::new(5, 4),
        /// Factor of the first backoff while nothing is measured.
        blind: Ratio = Ratio::new(6, 1),
        /// Factor of every other backoff.
        backoff: Ratio = Ratio::new(3, 1),
        /// Factor of a backoff while the path is calm.
        calm_backoff: Ratio = Ratio::new(3, 2),
        /// The number of backoffs of an exchange that are calm ones.
        calm_retransmits: u8 = 2,
        /// The path is calm while SRTT is at most so many times the least round-trip time.
        calm: Ratio = Ratio::new(6, 5),
        /// Share of the held timeout that a later exchange starts from.
        hold: Ratio = Ratio::new(1, 1),
        /// Share of the distance to SRTT by which each sample raises the least round-trip time.
        forget: Ratio = Ratio::new(0, 1),
        /// Marking of transmissions.
        marking: Marking = Marking::None,
        /// G, the granularity of the clock and the lower bound of K·RTTVAR, RFC 6298 §2.3.
        granularity: Duration = GRANULARITY,
    }
    presets {}
}

/// State of [`Ebb`] for one destination.
#[derive(Clone, Copy, Debug)]
pub struct EbbState {
    estimator: Estimator,
    /// The least round-trip time.
    least: Fine,
    /// The timeout that later exchanges hold, or zero.
    held: Fine,
}

/// State of [`Ebb`] for one exchange.
#[derive(Clone, Copy, Debug)]
pub struct EbbExchange {
    timeout: Fine,
    retransmits: u8,
}

impl Controller for Ebb {
    type State = EbbState;
    type Exchange = EbbExchange;

    fn state(&self) -> EbbState {
        EbbState { estimator: Estimator::new(), least: Fine::ZERO, held: Fine::ZERO }
    }

    fn on_start(&self, state: &mut EbbState, cue: Cue) -> (EbbExchange, Duration) {
        let timeout = self.rto(state).dithered(self.dither, cue.draw).at_most(self.max_rto);
        (EbbExchange { timeout, retransmits: 0 }, timeout.into())
    }

    fn on_retransmit(&self, state: &mut EbbState, exchange: &mut EbbExchange, _: Cue) -> Duration {
        exchange.retransmits = exchange.retransmits.saturating_add(1);
        let factor = if !state.estimator.is_measured() && exchange.retransmits == 1 {
            self.blind
        } else if self.is_calm(state) && exchange.retransmits <= self.calm_retransmits {
            self.calm_backoff
        } else {
            self.backoff
        };
        exchange.timeout = exchange.timeout.by(factor).at_most(self.max_rto);
        exchange.timeout.into()
    }

    fn on_end(&self, state: &mut EbbState, exchange: EbbExchange, outcome: Outcome, _: Cue) {
        let sample = match outcome {
            Outcome::Acked(sample) => sample,
            Outcome::GivenUp => {
                state.held = exchange.timeout;
                return;
            }
            Outcome::Reset | Outcome::Cancelled => return,
        };
        if let Some(rtt) = sample.unambiguous() {
            state.estimator.update(rtt, Learning::RFC6298);
            let rtt = Fine::from(rtt).max(Fine::SHORTEST);
            state.least = if state.least == Fine::ZERO { rtt } else {
                state.least.blend(self.forget, state.estimator.srtt().unwrap_or(rtt)).min(rtt)
            };
        }
        let needless = sample.answered.is_some_and(|answer| answer.ordinal < sample.retransmits);
        state.held = if sample.retransmits == 0 || needless || self.is_calm(state) {
            Fine::ZERO
        } else {
            exchange.timeout
        };
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        self.max_rto.times(retransmits.into())
    }

    fn limits(&self, state: &EbbState) -> Limits {
        Limits::with_gauges(self.gauges(state), self.marking)
    }

    #[inline(always)]
    fn gauges(&self, state: &EbbState) -> Gauges {
        state.estimator.gauges(self.rto(state).at_most(self.max_rto))
    }
}

impl Ebb {
    /// Returns the RTO before dither.
    fn rto(&self, state: &EbbState) -> Fine {
        let estimate = state.estimator.rto(self.k, self.granularity).unwrap_or(self.initial_rto.into());
        estimate.at_least(self.min_rto).max(state.held.by(self.hold))
    }

    /// Returns whether no queue stands.
    fn is_calm(&self, state: &EbbState) -> bool {
        state.estimator.srtt().is_some_and(|srtt| srtt <= state.least.by(self.calm))
    }
}

const NOTES: Notes = Notes {
    status: "No publication but this repository.",
    use_when: "You cannot say beforehand whether losses will be errors or congestion.",
    avoid_when: "x",
    hazards: "x",
};

/// The entry `ebb`.
pub(crate) const EBB: Entry = Entry {
    name: "ebb",
    summary: "soon again where the round-trip time says that no queue stands, tripled and held where one does",
    source: "Coapace, docs/ebb.md",
    notes: NOTES,
    origin: Origin::Coapace,
    mechanism: Mechanism::Ebb(Ebb { marking: Marking::TokenOnRetransmit, ..Ebb::DEFAULT }),
};

/// The entry `ebb-plain`.
pub(crate) const EBB_PLAIN: Entry = Entry {
    name: "ebb-plain",
    summary: "`ebb` without the ordinal in the token of retransmissions",
    source: "Coapace, docs/ebb.md",
    notes: NOTES,
    origin: Origin::Coapace,
    mechanism: Mechanism::Ebb(Ebb::DEFAULT),
};

const _: () = assert!(size_of::<EbbState>() <= 24);
