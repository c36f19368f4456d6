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
        /// Factor of the later backoffs while nothing is measured.
        blind_later: Ratio = Ratio::new(3, 1),
        /// Factor of a backoff while a queue stands.
        backoff: Ratio = Ratio::new(3, 1),
        /// Factor of later ones.
        backoff_later: Ratio = Ratio::new(3, 1),
        /// Factor of a backoff while the path is calm.
        calm_backoff: Ratio = Ratio::new(3, 2),
        /// Factor of later ones.
        calm_later: Ratio = Ratio::new(3, 1),
        /// The number of backoffs of an exchange that are not later ones.
        early: u8 = 2,
        /// The path is calm while SRTT is at most so many times the least round-trip time.
        calm: Ratio = Ratio::new(6, 5),
        /// The path is calm while SRTT exceeds the least round-trip time by this at most, too.
        calm_add: Duration = Duration::from_micros(1),
        /// The path is calm while SRTT is at most this, too.
        calm_below: Duration = Duration::from_micros(1),
        /// While a queue stands, the first timeout is at least this.
        busy_timeout: Duration = Duration::from_micros(1),
        /// Each later one is at least so many times the one before.
        busy_factor: Ratio = Ratio::new(2, 1),
        /// Share of the last timeout that later exchanges hold.
        hold: Ratio = Ratio::new(1, 1),
        /// Share of the held timeout that an answer to a first transmission leaves.
        release: Ratio = Ratio::new(0, 1),
        /// Share of the held timeout that a needless retransmission leaves.
        release_needless: Ratio = Ratio::new(0, 1),
        /// Share of the distance to SRTT by which each sample raises the least round-trip time.
        forget: Ratio = Ratio::new(0, 1),
        /// Gain of SRTT.
        alpha: Ratio = Ratio::new(1, 8),
        /// Gain of RTTVAR.
        beta: Ratio = Ratio::new(1, 4),
        /// RTTVAR of the first sample, in shares of it.
        first: Ratio = Ratio::new(1, 2),
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
    floor: Fine,
    retransmits: u8,
}

impl Controller for Ebb {
    type State = EbbState;
    type Exchange = EbbExchange;

    fn state(&self) -> EbbState {
        EbbState { estimator: Estimator::new(), least: Fine::ZERO, held: Fine::ZERO }
    }

    fn on_start(&self, state: &mut EbbState, cue: Cue) -> (EbbExchange, Duration) {
        let floor = Fine::from(self.busy_timeout).dithered(Ratio::new(3, 2), cue.draw);
        let mut timeout = self.rto(state).dithered(self.dither, cue.draw);
        if self.is_busy(state) { timeout = timeout.max(floor); }
        let timeout = timeout.at_most(self.max_rto);
        (EbbExchange { timeout, floor, retransmits: 0 }, timeout.into())
    }

    fn on_retransmit(&self, state: &mut EbbState, exchange: &mut EbbExchange, _: Cue) -> Duration {
        exchange.retransmits = exchange.retransmits.saturating_add(1);
        let is_early = exchange.retransmits <= self.early;
        let factor = match (state.estimator.is_measured(), self.is_calm(state)) {
            (false, _) if exchange.retransmits == 1 => self.blind,
            (false, _) => self.blind_later,
            (true, true) if is_early => self.calm_backoff,
            (true, true) => self.calm_later,
            (true, false) if is_early => self.backoff,
            (true, false) => self.backoff_later,
        };
        exchange.timeout = exchange.timeout.by(factor);
        exchange.floor = exchange.floor.by(self.busy_factor);
        if self.is_busy(state) { exchange.timeout = exchange.timeout.max(exchange.floor); }
        exchange.timeout = exchange.timeout.at_most(self.max_rto);
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
            let learning = Learning { first_rttvar: self.first, srtt_gain: self.alpha, rttvar_gain: self.beta, ..Learning::RFC6298 };
            state.estimator.update(rtt, learning);
            let rtt = Fine::from(rtt).max(Fine::SHORTEST);
            state.least = if state.least == Fine::ZERO { rtt } else {
                state.least.blend(self.forget, state.estimator.srtt().unwrap_or(rtt)).min(rtt)
            };
        }
        let needless = match sample.answered {
            Some(answer) => answer.ordinal < sample.retransmits,
            // Sooner than any answer came before: it answers an earlier transmission.
            None => sample.retransmits > 0 && Fine::from(sample.since_last) < state.least,
        };
        state.held = if sample.retransmits == 0 {
            state.held.by(self.release)
        } else if needless {
            state.held.by(self.release_needless)
        } else if self.is_calm(state) {
            Fine::ZERO
        } else {
            exchange.timeout.by(self.hold)
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
        estimate.at_least(self.min_rto).max(state.held)
    }

    fn is_busy(&self, state: &EbbState) -> bool {
        state.estimator.is_measured() && !self.is_calm(state)
    }

    /// Returns whether no queue stands.
    fn is_calm(&self, state: &EbbState) -> bool {
        state.estimator.srtt().is_some_and(|srtt| srtt <= state.least.by(self.calm).max(state.least + self.calm_add.into()).max(self.calm_below.into()))
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
