//! The steps of `draft.rs` that relatives and implementations of CoCoA replace, in its order: an enumeration for each, whose
//! variants name their source, and the methods that apply them. Parameters choose the variants one by one.

use super::draft::seconds;
use super::{Cocoa, CocoaExchange, CocoaState};
use crate::estimator::Estimator;
use crate::fine::Fine;
use crate::parameters::choice;
use crate::stamp::Stamp;
use crate::{Duration, Instant, Marking, Outcome, Ratio, division};

choice! {
    /// The span of time that a backoff factor is chosen from.
    pub enum VbfOn {
        /// The RTO that the exchange started from, before dither: one factor for all its timeouts (the text of
        /// draft-ietf-core-cocoa-03 §4.2.1).
        Initial = "initial",
        /// The timeout in force: a factor for each step (the pseudo-code of draft-ietf-core-cocoa-03 §4.2.1, and libcoap in
        /// Raitahila 2019).
        Current = "current",
        /// The first timeout with its dither: one factor for all that follow (Californium 3).
        Dithered = "dithered",
    }
}

choice! {
    /// The band of RTOs that have the middle backoff factor and do not age.
    pub enum Band {
        /// From `vbf_low` to `vbf_high` (draft-ietf-core-cocoa-03 §4.2.1).
        Fixed = "fixed",
        /// From 1/3 to 5/3 of the strong estimate (Meng et al. 2017, CoCoA-I).
        Strong = "strong",
    }
}

impl Cocoa {
    /// Returns the ends of the band.
    pub(super) fn band(&self, state: &CocoaState) -> (Fine, Fine) {
        match self.band {
            Band::Fixed => (self.vbf_low.into(), self.vbf_high.into()),
            Band::Strong => {
                let measured = state.strong.rto(self.k_strong, self.granularity);
                let strong = measured.unwrap_or(self.initial_rto.into());
                (strong.by(Ratio::new(1, 3)), strong.by(Ratio::new(5, 3)))
            }
        }
    }
}

choice! {
    /// The estimator of an answer to a marked retransmission.
    pub enum EstimatorOf {
        /// The strong estimator: the answer is as certain as one to a first transmission.
        Strong = "strong",
        /// The weak estimator. Meng et al. 2017 (CoCoA-I, §III) do not say which of the two takes it.
        Weak = "weak",
    }
}

choice! {
    /// The effect of an exchange that is given up on the weak estimator.
    pub enum SampleOfGiveUp {
        /// The estimator stays (draft-ietf-core-cocoa-03 §4.2).
        Keep = "keep",
        /// The duration of the exchange is a weak sample (Betzler's er-cocoa for Contiki).
        Weak = "weak-sample",
    }
}

choice! {
    /// The weight of a new strong estimate.
    pub enum Weighting {
        /// `strong_weight` (draft-ietf-core-cocoa-03 §4.2).
        Fixed = "fixed",
        /// 1/2, 3/4, 7/8 … up to 0.99 while strong samples follow each other (Rathod 2022 §5.2, algorithm 2).
        Gsrtc = "gsrtc",
    }
}

choice! {
    /// The effect on the RTO of a backoff that was answered or given up.
    pub enum AfterBackoff {
        /// The RTO stays (draft-ietf-core-cocoa-03).
        Forget = "forget",
        /// The RTO becomes the timeout that was in force (Fullbackoff1, Rathod 2022 §5.1).
        Take = "take",
        /// The RTO becomes that timeout if it is longer (Fullbackoff2, Rathod 2022 §5.1).
        Maximum = "maximum",
    }
}

/// The round-trip time of an exchange that has ended, if it has one, and the number of retransmissions that it counts with;
/// `None` if it changes nothing.
type Evidence = Option<(Option<Duration>, u8)>;

impl Cocoa {
    /// Returns whether the end of an exchange can be a sample without an acknowledgement. In the draft it never is one.
    pub(super) const fn samples_without_ack(&self) -> bool {
        self.sample_reset.is_on() || matches!(self.give_up, SampleOfGiveUp::Weak)
    }

    /// Returns the evidence of an exchange. In the draft that is an acknowledgement, with the time from the first transmission on.
    pub(super) fn evidence(&self, exchange: CocoaExchange, outcome: Outcome, now: Instant) -> Evidence {
        let (elapsed, n) = (Some(exchange.elapsed(now)), exchange.retransmits);
        Some(match outcome {
            Outcome::Acked(sample) => match sample.answered {
                Some(answer) if self.marking != Marking::None => {
                    let is_strong = self.marked_retransmission == EstimatorOf::Strong;
                    (Some(answer.since), if is_strong { 0 } else { answer.ordinal.min(1) })
                }
                _ => (Some(sample.since_first), sample.retransmits),
            },
            Outcome::Reset if self.sample_reset.is_on() => (elapsed, n),
            Outcome::GivenUp if self.give_up == SampleOfGiveUp::Weak => (elapsed, n.max(1)),
            // An exchange that is given up leaves its backoff.
            Outcome::GivenUp if self.after_backoff != AfterBackoff::Forget => (None, 1),
            // It ends a run of strong samples.
            Outcome::GivenUp if self.weighting == Weighting::Gsrtc => (None, 1),
            Outcome::GivenUp | Outcome::Reset | Outcome::Cancelled => return None,
        })
    }

    /// Counts an exchange with so many retransmissions in the streak, where a rule asks for it. The draft has none.
    pub(super) fn count(&self, state: &mut CocoaState, retransmits: u8) {
        if self.weighting == Weighting::Gsrtc || self.forget_strong_after > 0 {
            let (streak, n) = (i16::from(state.streak), i16::from(retransmits));
            let streak = if n == 0 { streak.max(0) + 1 } else { streak.min(0) - n };
            state.streak = streak.clamp(i8::MIN.into(), i8::MAX.into()) as i8;
        }
    }

    /// Returns the weight of a strong estimate. `streak` counts its sample already.
    pub(super) fn strong_weight(&self, streak: i8) -> Ratio {
        match (self.weighting, streak) {
            (Weighting::Fixed, _) => self.strong_weight,
            (Weighting::Gsrtc, 1..=6) => Ratio::new((1 << streak) - 1, 1 << streak),
            (Weighting::Gsrtc, _) => Ratio::new(99, 100),
        }
    }

    /// Applies what a retransmitted exchange changes beside its sample. Returns whether that is the RTO. In the draft it
    /// changes nothing.
    pub(super) fn mind_backoff(&self, state: &mut CocoaState, exchange: CocoaExchange) -> bool {
        if self.forget_strong_after > 0 && state.streak.unsigned_abs() > self.forget_strong_after {
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
    /// The rule by which an RTO ages that no sample renews.
    pub enum Ageing {
        /// Below the band it is doubled after 16 RTO; above it becomes 1 s + RTO/2 after 4 RTO; as often as the time allows
        /// (draft-ietf-core-cocoa-03 §4.3).
        Draft03 = "draft-03" | "on",
        /// Below 1 s it becomes 1 s after 16 RTO (draft-bormann-core-cocoa-00).
        Cocoa0 = "cocoa-0",
        /// Like `cocoa-0`; above 2 s it becomes (2 s + RTO)/2 after more than 30 s (Betzler et al. 2015 §3).
        CocoaPlus = "cocoa-plus",
        /// Below 1 s it becomes 1 s after 16 RTO; above 3 s it becomes 1 s + RTO/2 after 4 RTO. Ageing does not restart the
        /// idle time, so this happens once at each start (Betzler's er-cocoa for Contiki).
        ErCocoa = "er-cocoa",
        /// Like the draft, but each step takes the time, and asks for the band, of the RTO that ageing began with. An RTO of
        /// 0.1 s becomes 409.6 s after 20 s, which the upper bound makes 32 s (Californium 1.0 to 2.8).
        Californium2 = "californium-2",
        /// Like the draft, but after the timeout was taken, so that the next exchange is the first to feel it (Californium 3).
        Californium3 = "californium-3",
        /// No ageing.
        Off = "off",
    }
}

impl Ageing {
    /// Returns the RTO that an exchange starts from and the RTO that its backoff factor is chosen from. The draft takes the aged
    /// one for both.
    pub(super) fn in_force(self, unaged: Fine, aged: Fine) -> (Fine, Fine) {
        match self {
            Self::Californium2 => (aged, unaged),
            Self::Californium3 => (unaged, unaged),
            _ => (aged, aged),
        }
    }
}

impl Cocoa {
    /// Ages the RTO by a rule that does so once at a start, whatever time is left.
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
        if self.ageing != Ageing::ErCocoa {
            state.renewed = Stamp::of(now);
        }
    }
}
