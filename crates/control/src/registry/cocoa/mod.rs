//! `cocoa`: CoCoA, and its relatives made of the same parts: `cocoa0`, `cocoa-plus`, `cocoa-strong`, `fullbackoff1-cocoa`,
//! `fullbackoff2-cocoa`, `gsrtc` and `cocoa-i`. `entries.rs` has the relatives, with their sources and differences.
//!
//! **Source.** draft-ietf-core-cocoa-03 (2018, expired).
//!
//! **Idea.** Retransmitted exchanges are samples, too, with less weight: a strong and a weak estimator are blended into one
//! RTO. The backoff factor is large where the RTO is short, and small where it is long. An RTO that no sample renews ages
//! towards the band of 1 to 3 s.
//!
//! **Readings where the draft is open**
//! * The backoff factor is chosen once for an exchange, from the RTO before dither. The pseudo-code of §4.2.1 chooses it at
//!   each step (`vbf_on=current`). From 2 s on that is more aggressive than RFC 7252: it gives up after 34.5 s, not 62 s.
//! * An RTO of exactly 1 s or 3 s lies in the band.
//! * Only the first timeout of an exchange is dithered. Read literally, the draft dithers retransmissions too
//!   (`redither=on`).
//! * The truncation at 32 s holds for the backoff. A first timeout may be longer, and then stays.
//! * The overall RTO ages, cumulatively, before an exchange starts, and only after the first sample.
//! * Before the first sample, the k-th of several exchanges under way waits k times the RTO, which is not learnt. An exchange
//!   counts from the departure of its first transmission on.
//! * A Reset is no sample.
//! * A backoff is forgotten when its exchange ends, given up or not.
//!
//! **Differences from the source**
//! * The RTO is 50 ms at least (`min_rto`). The draft has no lower bound, and the presets have none or their own.
//! * The RTO is 60 s at most (`max_rto`). The draft has no upper bound of the estimate. RFC 8085 §3.1.1 allows this one.
//!
//! **Unsafe as published**
//! * Weak samples are ambiguous. RFC 8085 §3.1.1 forbids their use. An answer that is lost makes the RTO grow; one that is
//!   late makes it shrink. This is so here too.
//! * MAX_TRANSMIT_SPAN is 128 s, and here up to 240 s, where RFC 7252 has 45 s.

mod ageing;
mod entries;
mod exchange;
#[cfg(test)]
mod tests;

pub use ageing::Ageing;
pub(crate) use entries::*;
pub use exchange::CocoaExchange;
use exchange::moment;

use crate::estimator::{Estimator, GRANULARITY, Learning, MIN_RTO, UNBOUNDED};
use crate::fine::Fine;
use crate::parameters::{Switch, choice, parameters};
use crate::stamp::Stamp;
use crate::{Controller, Cue, Duration, Gauges, Limits, Marking, Outcome, Ratio};

parameters! {
    /// CoCoA, with a strong and a weak estimator.
    pub struct Cocoa {
        /// RTO before the first sample, draft-ietf-core-cocoa-03 §4.1.
        initial_rto: Duration = Duration::from_secs(2),
        /// Lower bound of the RTO, a quarter of that of Linux: above delays of schedulers and clock ticks of 10 ms. The draft
        /// has none. Ageing leads to 2 s, even if that is below.
        min_rto: Duration = MIN_RTO,
        /// Lower bound of a first timeout. The draft has none; Californium 3 has 500 ms.
        min_timeout: Duration = UNBOUNDED,
        /// Upper bound of the RTO. The longer of it and `max_timeout` bounds a first timeout. The draft has none; RFC 8085
        /// §3.1.1 asks for 60 s at least. Counts as 268 s if above.
        max_rto: Duration = Duration::from_secs(60),
        /// Upper bound of an estimate before it is blended into the RTO. The draft has none; er-cocoa has 60 s.
        max_estimate: Duration = Duration::from_secs(268),
        /// Upper bound of a backoff, draft-ietf-core-cocoa-03 §4.2.1. A longer timeout is not backed off. Counts as 268 s if
        /// above.
        max_timeout: Duration = Duration::from_secs(32),
        /// ACK_RANDOM_FACTOR: the first timeout is U(RTO, ACK_RANDOM_FACTOR·RTO), draft-ietf-core-cocoa-03 §4.2.1.
        ack_random_factor: Ratio = Ratio::new(3, 2),
        /// Whether each retransmission is dithered again, from the undithered backoff.
        redither: Switch = Switch::Off,
        /// K of the strong estimator, draft-ietf-core-cocoa-03 §4.2.
        k_strong: u8 = 4,
        /// K of the weak estimator, draft-ietf-core-cocoa-03 §4.2.
        k_weak: u8 = 1,
        /// Weight of a new strong estimate in the RTO, draft-ietf-core-cocoa-03 §4.2.
        strong_weight: Ratio = Ratio::new(1, 2),
        /// Weight of a new weak estimate in the RTO, draft-ietf-core-cocoa-03 §4.2.
        weak_weight: Ratio = Ratio::new(1, 4),
        /// Whether the strong weight adapts.
        weighting: Weighting = Weighting::Fixed,
        /// Maximum number of retransmissions after which an exchange is still a weak sample, draft-ietf-core-cocoa-03 §4.2.
        max_weak_n: u8 = 2,
        /// Gain of SRTT, RFC 6298 §2.3.
        srtt_gain: Ratio = Ratio::new(1, 8),
        /// Gain of RTTVAR, RFC 6298 §2.3.
        rttvar_gain: Ratio = Ratio::new(1, 4),
        /// Backoff factor below `vbf_low`, draft-ietf-core-cocoa-03 §4.2.1.
        vbf_small: Ratio = Ratio::new(3, 1),
        /// Backoff factor from `vbf_low` to `vbf_high`, draft-ietf-core-cocoa-03 §4.2.1.
        vbf_middle: Ratio = Ratio::new(2, 1),
        /// Backoff factor above `vbf_high`, draft-ietf-core-cocoa-03 §4.2.1.
        vbf_large: Ratio = Ratio::new(3, 2),
        /// RTO below which the backoff factor is `vbf_small` and an RTO ages upwards, draft-ietf-core-cocoa-03 §4.2.1.
        vbf_low: Duration = Duration::from_secs(1),
        /// RTO above which the backoff factor is `vbf_large` and an RTO ages downwards, draft-ietf-core-cocoa-03 §4.2.1.
        vbf_high: Duration = Duration::from_secs(3),
        /// Span of time that the backoff factor is chosen from, draft-ietf-core-cocoa-03 §4.2.1.
        vbf_on: VbfOn = VbfOn::Initial,
        /// Whether the band between `vbf_low` and `vbf_high` is fixed or moves with the strong estimate.
        band: Band = Band::Fixed,
        /// Rule by which an RTO ages that no sample renews, draft-ietf-core-cocoa-03 §4.3.
        ageing: Ageing = Ageing::Draft03,
        /// Effect on the RTO of the backoff of an exchange that was answered after a retransmission, or given up.
        after_backoff: AfterBackoff = AfterBackoff::Forget,
        /// Number of retransmissions since the last strong sample beyond which the strong estimator is forgotten; 0 for never.
        forget_strong_after: u8 = 0,
        /// Effect of an exchange that is given up on the weak estimator.
        give_up: SampleOfGiveUp = SampleOfGiveUp::Keep,
        /// Whether a Reset is a sample like an acknowledgement.
        sample_reset: Switch = Switch::Off,
        /// Marking of transmissions.
        marking: Marking = Marking::None,
        /// Estimator that takes the answer to a marked retransmission.
        marked_retransmission: EstimatorOf = EstimatorOf::Strong,
        /// G, the granularity of the clock and the lower bound of K·RTTVAR, RFC 6298 §2.3.
        granularity: Duration = GRANULARITY,
        /// Unit that estimates are rounded to and timeouts are rounded down to; 1us rounds nothing.
        tick: Duration = Duration::from_micros(1),
        /// Whether the last retransmission is waited for, RFC 7252 §4.2.
        final_wait: Switch = Switch::On,
    }
    presets {
        /// The rules of draft-ietf-core-cocoa-03. Unsafe as published: no lower bound of the RTO, so that on a short path a
        /// delay of a scheduler counts as a loss.
        "draft-03" => |_| Self::PUBLISHED,
        /// The pseudo-code of draft-ietf-core-cocoa-03 §4.2.1 to the letter: the backoff factor chosen at each step, and
        /// each retransmission dithered. Unsafe like `draft-03`, and more aggressive than RFC 7252 from 2 s on.
        "draft-literal" => |_| Self { vbf_on: VbfOn::Current, redither: Switch::On, ..Self::PUBLISHED },
        /// The libcoap of the FASOR experiments (Raitahila 2019): the draft without ageing, and with the backoff factor
        /// chosen from the timeout in force. Unsafe like `draft-literal`.
        "libcoap-2019" => |_| Self { vbf_on: VbfOn::Current, ageing: Ageing::Off, ..Self::PUBLISHED },
        /// Betzler et al. 2015 with the printed gains, 1/4 of SRTT and 1/8 of RTTVAR, and no lower bound of the RTO:
        /// `cocoa0` stays that, any other becomes `cocoa-plus`. Unsafe like `draft-03`.
        "paper-2015" => |old| Self {
            min_rto: UNBOUNDED,
            srtt_gain: Ratio::new(1, 4),
            rttvar_gain: Ratio::new(1, 8),
            ..if matches!(old.ageing, Ageing::Cocoa0) { Self::COCOA0 } else { Self::COCOA_PLUS }
        },
        /// GSRTC built on Fullbackoff2 (Rathod 2022 §5.2.1 and §5.3.3): the backoff of a retransmitted exchange is taken over if
        /// it is the longer. Algorithm 2 does not print this.
        "gsrtc-on-fullbackoff2" => |_| Self { weighting: Weighting::Gsrtc, ..Self::FULLBACKOFF2 },
        /// Californium 1.0 to 2.8: the gains of SRTT and RTTVAR exchanged, an RTO of up to 32 s and a backoff of up to 60 s, and
        /// an RTO that ages past the band. Unsafe like `draft-03`.
        "californium-2" => |old| Self {
            min_rto: UNBOUNDED,
            max_rto: Duration::from_secs(32),
            max_timeout: Duration::from_secs(60),
            max_weak_n: if old.max_weak_n == 0 { 0 } else { 2 },
            srtt_gain: Ratio::new(1, 4),
            rttvar_gain: Ratio::new(1, 8),
            ageing: Ageing::Californium2,
            granularity: UNBOUNDED,
            tick: Duration::from_millis(1),
            ..Self::DEFAULT
        },
        /// Californium 3: the gains of SRTT and RTTVAR exchanged, a granularity of 100 ms, an RTO of up to 32 s, timeouts of
        /// 0.5 s to 60 s, the backoff factor chosen from the dithered timeout, ageing that takes effect an exchange late.
        "californium-3" => |old| Self {
            min_rto: UNBOUNDED,
            max_rto: Duration::from_secs(32),
            min_timeout: Duration::from_millis(500),
            max_timeout: Duration::from_secs(60),
            max_weak_n: if old.max_weak_n == 0 { 0 } else { 2 },
            srtt_gain: Ratio::new(1, 4),
            rttvar_gain: Ratio::new(1, 8),
            vbf_on: VbfOn::Dithered,
            ageing: Ageing::Californium3,
            granularity: Duration::from_millis(100),
            tick: Duration::from_millis(1),
            ..Self::DEFAULT
        },
        /// Betzler's er-cocoa for Contiki, behind many results from Cooja: 3/4 for a new weak estimate instead of 1/4, a
        /// weak sample of any exchange, given up or not, a Reset sampled like an acknowledgement, estimates bounded by 60 s
        /// before they are blended, a factor of 2.5 below 1 s, timeouts without a bound, the strong estimator forgotten after
        /// more than three retransmissions. Unsafe as published: nothing bounds a timeout, from below or from above. Not
        /// reproduced: ticks of 1/128 s, and before the first sample a second dither on the first timeout.
        "er-cocoa" => |_| Self::ER_COCOA,
    }
}

choice! {
    /// The span of time that a backoff factor is chosen from.
    pub enum VbfOn {
        /// The RTO that the exchange started from, before dither: one factor for all its timeouts.
        Initial = "initial",
        /// The timeout in force: a factor for each step.
        Current = "current",
        /// The first timeout with its dither: one factor for all that follow.
        Dithered = "dithered",
    }
}

choice! {
    /// The weight of a new strong estimate.
    pub enum Weighting {
        /// `strong_weight`.
        Fixed = "fixed",
        /// 1/2, 3/4, 7/8 … up to 0.99 while strong samples follow each other (Rathod 2022 §5.2, algorithm 2).
        Gsrtc = "gsrtc",
    }
}

choice! {
    /// The band of middle RTOs.
    pub enum Band {
        /// From `vbf_low` to `vbf_high`.
        Fixed = "fixed",
        /// From 1/3 to 5/3 of the strong estimate (Meng et al. 2017).
        Strong = "strong",
    }
}

choice! {
    /// An estimator of the two.
    pub enum EstimatorOf {
        /// The strong estimator.
        Strong = "strong",
        /// The weak estimator.
        Weak = "weak",
    }
}

choice! {
    /// The effect on the RTO of a backoff that was answered or given up.
    pub enum AfterBackoff {
        /// The RTO stays.
        Forget = "forget",
        /// The RTO becomes the timeout that was in force.
        Take = "take",
        /// The RTO becomes that timeout if it is longer.
        Maximum = "maximum",
    }
}

choice! {
    /// The effect of an exchange that is given up on the weak estimator.
    pub enum SampleOfGiveUp {
        /// The estimator stays.
        Keep = "keep",
        /// The duration of the exchange is a weak sample.
        Weak = "weak-sample",
    }
}

/// State of [`Cocoa`] for one destination.
#[derive(Clone, Copy, Debug)]
pub struct CocoaState {
    strong: Estimator,
    weak: Estimator,
    rto: Fine,
    /// The last time that a sample, or ageing, changed the RTO.
    renewed: Stamp,
    /// If positive, the number of strong samples since the last retransmission. If negative, the number of retransmissions
    /// since the last strong sample.
    streak: i8,
}

impl Controller for Cocoa {
    type State = CocoaState;
    type Exchange = CocoaExchange;

    fn state(&self) -> CocoaState {
        let rto = self.bounded(self.initial_rto.into());
        let new = Estimator::new();
        CocoaState { strong: new, weak: new, rto, renewed: Stamp::default(), streak: 0 }
    }

    fn on_start(&self, state: &mut CocoaState, cue: Cue) -> (CocoaExchange, Duration) {
        let (unaged, band, measured) = (state.rto, self.band(state), state.is_measured());
        if measured && self.ageing != Ageing::Californium3 {
            self.age(state, band, cue.now);
        }
        let one = state.rto;
        // The blind rule: before the first sample, the k-th exchange under way waits k·2 s (§4.1). This is not learnt.
        let rto = if measured { one } else { one.times(cue.outstanding.max(1)) };
        let longest = Fine::from(self.longest());
        let timeout = self.dithered(rto, cue).at_least(self.min_timeout).min(longest);
        let factor = self.backoff_factor(
            band,
            match (self.vbf_on, self.ageing) {
                (VbfOn::Dithered, _) => timeout,
                (_, Ageing::Californium2) => unaged,
                _ => one,
            },
        );
        if measured && self.ageing == Ageing::Californium3 {
            self.age(state, band, cue.now);
        }
        let base = if self.redither.is_on() { rto.min(longest) } else { timeout };
        let began = if self.samples_without_ack() { moment(cue.now) } else { Fine::ZERO };
        (CocoaExchange { timeout, base, began, factor, retransmits: 0 }, timeout.into())
    }

    fn on_retransmit(&self, state: &mut CocoaState, exchange: &mut CocoaExchange, cue: Cue) -> Duration {
        let factor = match self.vbf_on {
            VbfOn::Initial | VbfOn::Dithered => exchange.factor,
            VbfOn::Current => self.backoff_factor(self.band(state), exchange.base),
        };
        if self.samples_without_ack() {
            exchange.count();
        }
        exchange.back_off(factor, self.max_timeout.into());
        exchange.base = exchange.base.floored(self.tick);
        exchange.timeout = exchange.base;
        if self.redither.is_on() {
            exchange.timeout = self.dithered(exchange.base, cue).min(self.longest().into());
        }
        exchange.timeout.into()
    }

    fn on_end(&self, state: &mut CocoaState, exchange: CocoaExchange, outcome: Outcome, cue: Cue) {
        let (rtt, retransmits) = match outcome {
            Outcome::Acked(sample) => match sample.answered {
                Some(answer) if self.marking != Marking::None => {
                    let is_strong = self.marked_retransmission == EstimatorOf::Strong;
                    (Some(answer.since), if is_strong { 0 } else { answer.ordinal.min(1) })
                }
                _ => (Some(sample.since_first), sample.retransmits),
            },
            Outcome::Reset if self.sample_reset.is_on() => {
                (Some(exchange.elapsed(cue.now)), exchange.retransmits)
            }
            Outcome::GivenUp if self.give_up == SampleOfGiveUp::Weak => {
                (Some(exchange.elapsed(cue.now)), exchange.retransmits.max(1))
            }
            // An exchange that is given up leaves its backoff, and ends a run of strong samples.
            Outcome::GivenUp
                if self.after_backoff != AfterBackoff::Forget || self.weighting == Weighting::Gsrtc =>
            {
                (None, 1)
            }
            Outcome::GivenUp | Outcome::Reset | Outcome::Cancelled => return,
        };
        if self.weighting == Weighting::Gsrtc || self.forget_strong_after > 0 {
            state.count(retransmits);
        }
        let learnt = rtt.is_some_and(|rtt| self.blend(state, rtt, retransmits));
        let kept = retransmits > 0 && self.mind_backoff(state, exchange);
        if learnt || kept {
            state.rto = self.bounded(state.rto);
            state.renewed = Stamp::of(cue.now);
        }
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        self.longest().times(retransmits.into())
    }

    fn limits(&self, state: &CocoaState) -> Limits {
        let limits = Limits::with_gauges(self.gauges(state), self.marking);
        Limits { final_wait: self.final_wait.is_on(), ..limits }
    }

    /// Reports SRTT and RTTVAR of the strong estimator, or of the weak one before the first strong sample.
    #[inline(always)]
    fn gauges(&self, state: &CocoaState) -> Gauges {
        let estimator = if state.strong.is_measured() { &state.strong } else { &state.weak };
        estimator.gauges(state.rto)
    }
}

impl CocoaState {
    fn is_measured(&self) -> bool {
        self.strong.is_measured() || self.weak.is_measured()
    }

    /// Counts an exchange with so many retransmissions in the streak.
    fn count(&mut self, retransmits: u8) {
        let streak = i16::from(self.streak);
        let streak =
            if retransmits == 0 { streak.max(0) + 1 } else { streak.min(0) - i16::from(retransmits) };
        self.streak = streak.clamp(i8::MIN.into(), i8::MAX.into()) as i8;
    }
}

impl Cocoa {
    /// The parameters of Betzler's er-cocoa for Contiki.
    pub(crate) const ER_COCOA: Self = Self {
        max_estimate: Duration::from_secs(60),
        max_timeout: Duration::from_secs(268),
        weak_weight: Ratio::new(3, 4),
        max_weak_n: 255,
        vbf_small: Ratio::new(5, 2),
        ageing: Ageing::ErCocoa,
        forget_strong_after: 3,
        give_up: SampleOfGiveUp::Weak,
        sample_reset: Switch::On,
        granularity: UNBOUNDED,
        final_wait: Switch::Off,
        ..Self::PUBLISHED
    };

    /// The rules of draft-ietf-core-cocoa-03, without the lower bound of the RTO that this crate adds.
    const PUBLISHED: Self = Self { min_rto: UNBOUNDED, ..Self::DEFAULT };

    #[inline(always)]
    fn bounded(&self, rto: Fine) -> Fine {
        rto.min(self.max_rto.into()).at_least(self.min_rto)
    }

    /// Returns the longest timeout: that of the longest RTO, or the longest backoff.
    fn longest(&self) -> Duration {
        self.max_rto.max(self.max_timeout)
    }

    /// Returns whether the end of an exchange can be a sample without an acknowledgement.
    const fn samples_without_ack(&self) -> bool {
        self.sample_reset.is_on() || matches!(self.give_up, SampleOfGiveUp::Weak)
    }

    /// Returns U(`span`, ACK_RANDOM_FACTOR·`span`).
    fn dithered(&self, span: Fine, cue: Cue) -> Fine {
        span.dithered(self.ack_random_factor, cue.draw).floored(self.tick)
    }

    /// Takes in a sample, draft-ietf-core-cocoa-03 §4.2. Returns whether it counts.
    fn blend(&self, state: &mut CocoaState, rtt: Duration, retransmits: u8) -> bool {
        let (estimator, k, weight) = match retransmits {
            0 => (&mut state.strong, self.k_strong, self.strong_weight(state.streak)),
            n if n <= self.max_weak_n => (&mut state.weak, self.k_weak, self.weak_weight),
            _ => return false,
        };
        let Self { srtt_gain, rttvar_gain, tick, .. } = *self;
        estimator.update(rtt, Learning { srtt_gain, rttvar_gain, tick, ..Learning::RFC6298 });
        if let Some(estimate) = estimator.rto(k, self.granularity) {
            state.rto = state.rto.blend(weight, estimate.at_most(self.max_estimate)).rounded(self.tick);
        }
        true
    }

    /// Applies the effects of a retransmitted exchange that are not those of its sample. Returns whether they set the RTO.
    fn mind_backoff(&self, state: &mut CocoaState, exchange: CocoaExchange) -> bool {
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

    /// Returns the weight of a strong estimate. `streak` counts its sample already.
    fn strong_weight(&self, streak: i8) -> Ratio {
        match (self.weighting, streak) {
            (Weighting::Fixed, _) => self.strong_weight,
            (Weighting::Gsrtc, 1..=6) => Ratio::new((1 << streak) - 1, 1 << streak),
            (Weighting::Gsrtc, _) => Ratio::new(99, 100),
        }
    }

    /// Returns the variable backoff factor (VBF), draft-ietf-core-cocoa-03 §4.2.1.
    fn backoff_factor(&self, (low, high): (Fine, Fine), rto: Fine) -> Ratio {
        let Self { vbf_small, vbf_middle, vbf_large, .. } = *self;
        if rto < low {
            vbf_small
        } else if rto > high {
            vbf_large
        } else {
            vbf_middle
        }
    }

    /// Returns the ends of the band of RTOs that have the middle backoff factor and do not age.
    fn band(&self, state: &CocoaState) -> (Fine, Fine) {
        match self.band {
            Band::Fixed => (self.vbf_low.into(), self.vbf_high.into()),
            Band::Strong => {
                let strong = state.strong.rto(self.k_strong, self.granularity);
                let strong = strong.unwrap_or(self.initial_rto.into());
                (strong.by(Ratio::new(1, 3)), strong.by(Ratio::new(5, 3)))
            }
        }
    }
}
