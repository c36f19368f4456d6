//! The steps of `draft.rs` that differ in variants and implementations of CoCoA. Each step has an enumeration of its
//! rules, with their sources, and a method that applies the chosen rule. Each rule is chosen by a parameter.

use super::draft::seconds;
use super::{Cocoa, CocoaExchange, CocoaState};
use crate::estimator::Estimator;
use crate::fine::Fine;
use crate::parameters::choice;
use crate::stamp::Stamp;
use crate::{Duration, Instant, Marking, Outcome, Ratio, division};

choice! {
    /// The duration that decides the backoff factor, by its place below, in or above the band.
    pub enum VbfOn {
        /// The RTO that the exchange started from, before dither: one factor for all timeouts of the exchange (the text of
        /// draft-ietf-core-cocoa-03 §4.2.1).
        Initial = "initial",
        /// The current timeout, so the factor may change at each retransmission (the pseudo-code of
        /// draft-ietf-core-cocoa-03 §4.2.1, and libcoap in Raitahila 2019).
        Current = "current",
        /// The first timeout with its dither: one factor for all later timeouts of the exchange (Californium 3).
        Dithered = "dithered",
    }
}

choice! {
    /// The range of RTOs that have the middle backoff factor and do not age.
    pub enum Band {
        /// From `vbf_low` to `vbf_high` (draft-ietf-core-cocoa-03 §4.2.1).
        Fixed = "fixed",
        /// From 1/3 to 5/3 of the strong estimate (Meng et al. 2017, CoCoA-I).
        Strong = "strong",
    }
}

impl Cocoa {
    /// Returns the lower and upper end of the band.
    pub(super) fn band(&self, state: &CocoaState) -> (Fine, Fine) {
        match self.band {
            Band::Fixed => (self.vbf_low.into(), self.vbf_high.into()),
            Band::Strong => {
                let measured = state.strong.rto(self.k_strong, self.granularity);
                // Before a strong sample the band lies around the initial RTO.
                let strong = measured.unwrap_or(self.initial_rto.into());
                (strong.by(Ratio::new(1, 3)), strong.by(Ratio::new(5, 3)))
            }
        }
    }
}

choice! {
    /// The estimator that takes the sample if a marking shows that a retransmission was answered.
    pub enum EstimatorOf {
        /// The strong estimator: the sample is as certain as the sample of a first transmission.
        Strong = "strong",
        /// The weak estimator. Meng et al. 2017 (CoCoA-I, §III) do not say which estimator takes the sample.
        Weak = "weak",
    }
}

choice! {
    /// How the weak estimator changes if an exchange is given up.
    pub enum SampleOfGiveUp {
        /// The estimator does not change (draft-ietf-core-cocoa-03 §4.2).
        Keep = "keep",
        /// The duration of the exchange is a weak sample (Betzler's er-cocoa for Contiki).
        Weak = "weak-sample",
    }
}

choice! {
    /// The weight of a new strong estimate in the RTO.
    pub enum Weighting {
        /// The fixed weight `strong_weight` (draft-ietf-core-cocoa-03 §4.2).
        Fixed = "fixed",
        /// 1/2, 3/4, 7/8 … up to 0.99 while strong samples follow each other (Rathod 2022 §5.2, algorithm 2).
        Gsrtc = "gsrtc",
    }
}

choice! {
    /// The effect on the RTO of an exchange that was answered after a retransmission, or given up.
    pub enum AfterBackoff {
        /// The RTO does not change (draft-ietf-core-cocoa-03).
        Forget = "forget",
        /// The RTO becomes the last timeout of the exchange (Fullbackoff1, Rathod 2022 §5.1).
        Take = "take",
        /// The RTO becomes the last timeout of the exchange if that is longer (Fullbackoff2, Rathod 2022 §5.1).
        Maximum = "maximum",
    }
}

/// The measurements of an ended exchange: its round-trip time, if it has one, and its number of retransmissions. `None`
/// if the exchange changes nothing.
type Evidence = Option<(Option<Duration>, u8)>;

impl Cocoa {
    /// Returns whether an exchange that ends with a Reset or is given up can be a sample. In the draft it cannot.
    pub(super) const fn samples_without_ack(&self) -> bool {
        self.sample_reset.is_on() || matches!(self.give_up, SampleOfGiveUp::Weak)
    }

    /// Returns the measurements of an ended exchange, as the parameters require. In the draft only acknowledged
    /// exchanges are measured, and the round-trip time counts from the first transmission on.
    pub(super) fn evidence(&self, exchange: CocoaExchange, outcome: Outcome, now: Instant) -> Evidence {
        let (elapsed, n) = (Some(exchange.elapsed(now)), exchange.retransmits);
        Some(match outcome {
            Outcome::Acked(sample) => match sample.answered {
                Some(answer) if self.marking != Marking::None => {
                    let is_strong = self.marked_retransmission == EstimatorOf::Strong;
                    // The answer is unambiguous, so it counts as a weak sample after any number of retransmissions.
                    (Some(answer.since), if is_strong { 0 } else { answer.ordinal.min(1) })
                }
                _ => (Some(sample.since_first), sample.retransmits),
            },
            Outcome::Reset if self.sample_reset.is_on() => (elapsed, n),
            // Without an answer it is never a strong sample.
            Outcome::GivenUp if self.give_up == SampleOfGiveUp::Weak => (elapsed, n.max(1)),
            // An exchange that is given up leaves its backoff.
            Outcome::GivenUp if self.after_backoff != AfterBackoff::Forget => (None, 1),
            // It ends a run of strong samples.
            Outcome::GivenUp if self.weighting == Weighting::Gsrtc => (None, 1),
            Outcome::GivenUp | Outcome::Reset | Outcome::Cancelled => return None,
        })
    }

    /// Counts an exchange with this many retransmissions in [`CocoaState::streak`], if a parameter needs that count.
    /// The draft does not need it.
    pub(super) fn count(&self, state: &mut CocoaState, retransmits: u8) {
        if self.weighting == Weighting::Gsrtc || self.forget_strong_after > 0 {
            // An exchange may have 255 retransmissions, which a streak of 8 bits cannot hold.
            let (streak, n) = (i16::from(state.streak), i16::from(retransmits));
            let streak = if n == 0 { streak.max(0) + 1 } else { streak.min(0) - n };
            state.streak = streak.clamp(i8::MIN.into(), i8::MAX.into()) as i8;
        }
    }

    /// Returns the weight of a new strong estimate in the RTO. `streak` includes the sample of this estimate.
    pub(super) fn strong_weight(&self, streak: i8) -> Ratio {
        match (self.weighting, streak) {
            (Weighting::Fixed, _) => self.strong_weight,
            (Weighting::Gsrtc, 1..=6) => Ratio::new((1 << streak) - 1, 1 << streak),
            // The next weight, 127/128, is above the limit of 0.99.
            (Weighting::Gsrtc, _) => Ratio::new(99, 100),
        }
    }

    /// Changes the RTO and the strong estimator after a retransmitted exchange, as `after_backoff` and
    /// `forget_strong_after` say. Returns whether the RTO was set. In the draft neither changes.
    pub(super) fn mind_backoff(&self, state: &mut CocoaState, exchange: CocoaExchange) -> bool {
        if self.forget_strong_after > 0 && state.streak.unsigned_abs() > self.forget_strong_after {
            // The exchange was retransmitted, so the streak is negative.
            state.strong = Estimator::new();
        }
        state.rto = match self.after_backoff {
            AfterBackoff::Forget => return false,
            AfterBackoff::Take => exchange.timeout,
            AfterBackoff::Maximum => state.rto.max(exchange.timeout),
        };
        true
    }
}

choice! {
    /// The rule by which an RTO ages if no new samples come.
    pub enum Ageing {
        /// Below the band the RTO is doubled after 16 RTO. Above the band it becomes 1 s + RTO/2 after 4 RTO. Both are
        /// repeated while the idle time lasts (draft-ietf-core-cocoa-03 §4.3).
        Draft03 = "draft-03" | "on",
        /// An RTO below 1 s becomes 1 s after 16 RTO (draft-bormann-core-cocoa-00).
        Cocoa0 = "cocoa-0",
        /// Like `cocoa-0`, and an RTO above 2 s becomes (2 s + RTO)/2 after more than 30 s (Betzler et al. 2015 §3).
        CocoaPlus = "cocoa-plus",
        /// An RTO below 1 s becomes 1 s after 16 RTO, and an RTO above 3 s becomes 1 s + RTO/2 after 4 RTO. Ageing does
        /// not restart the idle time, so the RTO ages once at each start of an exchange (Betzler's er-cocoa for
        /// Contiki).
        ErCocoa = "er-cocoa",
        /// Like the draft, but the time of each step and the band depend on the RTO from before all steps. An RTO of
        /// 0.1 s becomes 409.6 s after 20 s, which the upper bound limits to 32 s (Californium 1.0 to 2.8).
        Californium2 = "californium-2",
        /// Like the draft, but the RTO ages after the timeout is chosen, so that ageing first affects the next exchange
        /// (Californium 3).
        Californium3 = "californium-3",
        /// No ageing.
        Off = "off",
    }
}

impl Ageing {
    /// Returns the RTO that an exchange starts from, and the RTO that decides its backoff factor. In the draft both are
    /// the aged RTO.
    pub(super) fn in_force(self, unaged: Fine, aged: Fine) -> (Fine, Fine) {
        match self {
            // Californium 2 chooses the factor before it ages the RTO, Californium 3 ages it after it has taken the timeout.
            Self::Californium2 => (aged, unaged),
            Self::Californium3 => (unaged, unaged),
            _ => (aged, aged),
        }
    }
}

impl Cocoa {
    /// Ages the RTO in one go at the start of an exchange, however long the idle time was: for all rules except the
    /// draft's and Californium 3's.
    pub(super) fn age_once(&self, state: &mut CocoaState, band: (Fine, Fine), now: Instant) {
        let idle = state.renewed.until(now);
        let rto = state.rto;
        let small = || rto < band.0 && idle > Duration::from(rto).times(16);
        let large = || rto > seconds(2) && idle > Duration::from_secs(30);
        let due = || self.next_age(rto, band).filter(|&(patience, _)| idle > patience);
        state.rto = match self.ageing {
            Ageing::Cocoa0 | Ageing::CocoaPlus if small() => seconds(1),
            Ageing::CocoaPlus if large() => (seconds(2) + rto).halved(1),
            Ageing::ErCocoa => match due() {
                // A short RTO becomes 1 s in one step, and is not doubled.
                Some((_, aged)) if aged > rto => seconds(1),
                Some((_, aged)) => aged,
                None => return,
            },
            Ageing::Californium2 => {
                let Some((patience, _)) = due() else { return };
                // A step takes more than its time: 32 RTO are one step of 16. After 63 steps, further ones change nothing.
                let steps = division::by(idle.as_micros() - 1, patience.as_micros()).min(63);
                let step = |aged: Fine, _| if rto < band.0 { aged.twice() } else { self.eased(aged) };
                (0..steps).fold(rto, step).min(self.max_rto.into())
            }
            _ => return,
        };
        // er-cocoa leaves the idle time as it is, so the RTO ages again at the next start.
        if self.ageing != Ageing::ErCocoa {
            state.renewed = Stamp::of(now);
        }
    }
}
