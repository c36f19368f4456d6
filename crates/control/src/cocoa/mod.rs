//! `cocoa`: draft-ietf-core-cocoa-03 (2018, expired), and the relatives that are made of the same parts: `cocoa0`,
//! `cocoa-plus`, `cocoa-strong`, `fullbackoff1-cocoa`, `fullbackoff2-cocoa`, `gsrtc`, `cocoa-i`; see `entries.rs`.
//!
//! Idea: learn from retransmitted exchanges too, with less weight (strong and weak estimator, blended into one RTO); back
//! off faster where the RTO is short and slower where it is long; let what was not renewed age towards 1-3 s.
//!
//! Where the draft is open: the backoff factor is chosen once for an exchange, from the RTO before dither (the
//! pseudo-code of §4.2.1 chooses at each step, which from 2 s on is more aggressive than RFC 7252: 34.5 s until it gives
//! up, not 62 s; that is `vbf_on=current`). An RTO of exactly 1 s or 3 s is in the middle. One dither an exchange, on the
//! first timeout (read literally the draft dithers retransmissions too: `redither=on`). The truncation at 32 s holds for
//! every timeout, the dithered first one included, and for the RTO kept. It is the overall RTO that ages, cumulatively,
//! before an exchange starts, and only once something was measured. A Reset is no sample. What an exchange that is given
//! up has cost is forgotten: the next starts from the same RTO.
//!
//! Unsafe as published: a weak sample is an ambiguous one, which RFC 8085 §3.1.1 forbids to use; an answer that is lost
//! makes RTO grow, one that is late makes it shrink. MAX_TRANSMIT_SPAN is 128 s, not RFC 7252's 45 s.

mod ageing;
mod entries;
#[cfg(test)]
mod tests;

pub use ageing::Ageing;
pub(crate) use entries::*;

use crate::estimator::{Estimator, Learning};
use crate::fine::Fine;
use crate::parameters::{Switch, choice, parameters};
use crate::stamp::Stamp;
use crate::{Controller, Cue, Duration, Gauges, Limits, Marking, Outcome, Ratio};

parameters! {
    /// CoCoA, with a strong and a weak estimator.
    pub struct Cocoa {
        /// RTO before the first sample, draft-ietf-core-cocoa-03 §4.1.
        initial_rto: Duration = Duration::from_secs(2),
        /// Lower bound of a first timeout. The draft has none.
        min_timeout: Duration = Duration::from_micros(1),
        /// Upper bound of the RTO, draft-ietf-core-cocoa-03 §4.2.1. Counts as 268 s if above.
        max_rto: Duration = Duration::from_secs(32),
        /// Upper bound of one timeout, draft-ietf-core-cocoa-03 §4.2.1. Counts as 268 s if above.
        max_timeout: Duration = Duration::from_secs(32),
        /// ACK_RANDOM_FACTOR: the first timeout is U(RTO, ACK_RANDOM_FACTOR·RTO), draft-ietf-core-cocoa-03 §4.2.1.
        ack_random_factor: Ratio = Ratio::new(3, 2),
        /// Whether each retransmission is dithered anew, from the undithered backoff.
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
        /// Most retransmissions of an exchange that still makes a weak sample, draft-ietf-core-cocoa-03 §4.2.
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
        /// What the backoff factor is chosen from, draft-ietf-core-cocoa-03 §4.2.1.
        vbf_on: VbfOn = VbfOn::Initial,
        /// Whether the band between `vbf_low` and `vbf_high` stands or moves with the strong estimate.
        band: Band = Band::Fixed,
        /// How an RTO that was not renewed ages, draft-ietf-core-cocoa-03 §4.3.
        ageing: Ageing = Ageing::Draft03,
        /// What the RTO makes of the backoff of an exchange that was answered after a retransmission.
        after_backoff: AfterBackoff = AfterBackoff::Forget,
        /// Retransmissions since the last strong sample beyond which the strong estimator is forgotten; 0 for never.
        forget_strong_after: u8 = 0,
        /// What an exchange that is given up teaches.
        give_up: SampleOfGiveUp = SampleOfGiveUp::Keep,
        /// How an answer names the transmission it answers; what is named is a strong sample.
        marking: Marking = Marking::None,
        /// G, the granularity of the clock and the least weight of RTTVAR, RFC 6298 §2.3.
        granularity: Duration = Duration::from_micros(1),
        /// What estimates are rounded to and timeouts rounded down to; 1us rounds nothing.
        tick: Duration = Duration::from_micros(1),
        /// Whether the last retransmission is waited for, RFC 7252 §4.2.
        final_wait: Switch = Switch::On,
    }
    presets {
        /// As draft-ietf-core-cocoa-03 says.
        "draft-03" => |_| Self::DEFAULT,
        /// The pseudo-code of draft-ietf-core-cocoa-03 §4.2.1 to the letter: the backoff factor chosen at each step, and
        /// each retransmission dithered.
        "draft-literal" => |_| Self { vbf_on: VbfOn::Current, redither: Switch::On, ..Self::DEFAULT },
        /// The libcoap of the FASOR experiments (Raitahila 2019): the draft without ageing, and with the backoff factor
        /// chosen from the timeout in force.
        "libcoap-2019" => |_| Self { vbf_on: VbfOn::Current, ageing: Ageing::Off, ..Self::DEFAULT },
        /// Californium 1.0 to 2.8: the gains of SRTT and RTTVAR exchanged, a backoff of up to 60 s, and an RTO that ages
        /// past the band.
        "californium-2" => |old| Self {
            max_timeout: Duration::from_secs(60),
            max_weak_n: if old.max_weak_n == 0 { 0 } else { 2 },
            srtt_gain: Ratio::new(1, 4),
            rttvar_gain: Ratio::new(1, 8),
            ageing: Ageing::Californium2,
            tick: Duration::from_millis(1),
            ..Self::DEFAULT
        },
        /// Californium 3: the gains of SRTT and RTTVAR exchanged, a granularity of 100 ms, timeouts of 0.5 s to 60 s, the
        /// backoff factor chosen from the dithered timeout, ageing that takes effect an exchange late.
        "californium-3" => |old| Self {
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
        /// weak sample of any exchange, given up or not, a factor of 2.5 below 1 s, timeouts without a bound, the strong
        /// estimator forgotten after more than three retransmissions. Not reproduced: ticks of 1/128 s, and before the
        /// first sample a second dither on the first timeout.
        "er-cocoa" => |_| Self::ER_COCOA,
    }
}

choice! {
    /// What a backoff factor is chosen from.
    pub enum VbfOn {
        /// The RTO that the exchange started from, before dither: one factor for all its timeouts.
        Initial = "initial",
        /// The timeout in force: a factor for each step.
        Current = "current",
        /// The first timeout as it was armed: one factor for all that follow.
        Dithered = "dithered",
    }
}

choice! {
    /// How the weight of a new strong estimate is found.
    pub enum Weighting {
        /// It is `strong_weight`.
        Fixed = "fixed",
        /// 1/2, 3/4, 7/8 … up to 0.99 as strong samples follow each other (Rathod 2022 §5.2, algorithm 2).
        Gsrtc = "gsrtc",
    }
}

choice! {
    /// Where the band of middle RTOs lies.
    pub enum Band {
        /// From `vbf_low` to `vbf_high`.
        Fixed = "fixed",
        /// From 1/3 to 5/3 of the strong estimate (Meng et al. 2017).
        Strong = "strong",
    }
}

choice! {
    /// What the RTO makes of a backoff that was answered.
    pub enum AfterBackoff {
        /// Nothing.
        Forget = "forget",
        /// It becomes the timeout that was in force.
        Take = "take",
        /// It becomes that if it is longer.
        Maximum = "maximum",
    }
}

choice! {
    /// What an exchange that is given up teaches.
    pub enum SampleOfGiveUp {
        /// Nothing.
        Keep = "keep",
        /// It is a weak sample of the time that it took.
        Weak = "weak-sample",
    }
}

/// What [`Cocoa`] remembers of one destination.
#[derive(Clone, Copy, Debug)]
pub struct CocoaState {
    strong: Estimator,
    weak: Estimator,
    rto: Fine,
    /// When a sample, or age, last changed the RTO.
    renewed: Stamp,
    /// Strong samples since the last retransmission, or less than zero, retransmissions since the last strong sample.
    streak: i8,
}

/// What [`Cocoa`] remembers of one exchange.
#[derive(Clone, Copy, Debug)]
pub struct CocoaExchange {
    timeout: Fine,
    /// What the next timeout is backed off from: this one, or where each is dithered, this one without.
    base: Fine,
    /// Before this timeout was armed.
    waited: Fine,
    factor: Ratio,
    retransmits: u8,
}

impl Controller for Cocoa {
    type State = CocoaState;
    type Exchange = CocoaExchange;

    fn state(&self) -> CocoaState {
        let rto = self.initial_rto.min(self.max_rto).into();
        let new = Estimator::new();
        CocoaState { strong: new, weak: new, rto, renewed: Stamp::default(), streak: 0 }
    }

    fn on_start(&self, state: &mut CocoaState, cue: Cue) -> (CocoaExchange, Duration) {
        let (unaged, band, measured) = (state.rto, self.band(state), state.is_measured());
        if measured && self.ageing != Ageing::Californium3 {
            self.age(state, band, cue.now);
        }
        let rto = if measured {
            state.rto
        } else {
            // Blind: the k-th exchange at once waits k·2 s (§4.1). This is not learnt.
            state.rto.times(cue.outstanding.max(1))
        };
        let timeout = self.dithered(rto, cue).max(self.min_timeout.into()).min(self.max_timeout.into());
        let factor = self.backoff_factor(
            band,
            match (self.vbf_on, self.ageing) {
                (VbfOn::Dithered, _) => timeout,
                (_, Ageing::Californium2) => unaged,
                _ => state.rto,
            },
        );
        if measured && self.ageing == Ageing::Californium3 {
            self.age(state, band, cue.now);
        }
        let base = if self.redither.is_on() { rto.min(self.max_timeout.into()) } else { timeout };
        (CocoaExchange { timeout, base, waited: Fine::ZERO, factor, retransmits: 0 }, timeout.into())
    }

    fn on_retransmit(&self, state: &mut CocoaState, exchange: &mut CocoaExchange, cue: Cue) -> Duration {
        let factor = match self.vbf_on {
            VbfOn::Initial | VbfOn::Dithered => exchange.factor,
            VbfOn::Current => self.backoff_factor(self.band(state), exchange.base),
        };
        if self.give_up == SampleOfGiveUp::Weak {
            exchange.count();
        }
        exchange.back_off(factor, self.max_timeout.into());
        exchange.base = exchange.base.floored(self.tick);
        exchange.timeout = exchange.base;
        if self.redither.is_on() {
            exchange.timeout = self.dithered(exchange.base, cue).min(self.max_timeout.into());
        }
        exchange.timeout.into()
    }

    fn on_end(&self, state: &mut CocoaState, exchange: CocoaExchange, outcome: Outcome, cue: Cue) {
        let (rtt, retransmits) = match outcome {
            Outcome::Acked(sample) => match sample.unambiguous() {
                Some(rtt) if self.marking != Marking::None => (rtt, 0),
                _ => (sample.since_first, sample.retransmits),
            },
            Outcome::GivenUp if self.give_up == SampleOfGiveUp::Weak => {
                (self.given_up_after(exchange), exchange.retransmits.max(1))
            }
            Outcome::GivenUp | Outcome::Reset | Outcome::Cancelled => return,
        };
        if self.weighting == Weighting::Gsrtc || self.forget_strong_after > 0 {
            state.count(retransmits);
        }
        let learnt = self.blend(state, rtt, retransmits);
        let kept = retransmits > 0 && self.mind_backoff(state, exchange);
        if learnt || kept {
            state.rto = state.rto.min(self.max_rto.into());
            state.renewed = Stamp::of(cue.now);
        }
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        self.max_timeout.times(retransmits.into())
    }

    fn limits(&self, state: &CocoaState) -> Limits {
        let limits = Limits::with_gauges(self.gauges(state), self.marking);
        Limits { final_wait: self.final_wait.is_on(), ..limits }
    }

    /// SRTT and RTTVAR are the strong estimator's; the weak one's as long as there is none.
    #[inline(always)]
    fn gauges(&self, state: &CocoaState) -> Gauges {
        state.gauges()
    }
}

impl CocoaState {
    #[inline(always)]
    pub(crate) fn gauges(&self) -> Gauges {
        let estimator = if self.strong.is_measured() { &self.strong } else { &self.weak };
        estimator.gauges(self.rto)
    }

    fn is_measured(&self) -> bool {
        self.strong.is_measured() || self.weak.is_measured()
    }

    /// An exchange was answered after so many retransmissions.
    fn count(&mut self, retransmits: u8) {
        let streak = i16::from(self.streak);
        let streak =
            if retransmits == 0 { streak.max(0) + 1 } else { streak.min(0) - i16::from(retransmits) };
        self.streak = streak.clamp(i8::MIN.into(), i8::MAX.into()) as i8;
    }
}

impl CocoaExchange {
    /// One that waits for `timeout` after its first transmission.
    pub(crate) fn waiting(timeout: Fine) -> Self {
        Self { timeout, base: timeout, waited: Fine::ZERO, factor: Ratio::new(1, 1), retransmits: 0 }
    }

    pub(crate) fn timeout(&self) -> Fine {
        self.timeout
    }

    /// The timeout passed: for what is learnt from an exchange that is given up.
    pub(crate) fn count(&mut self) {
        self.retransmits = self.retransmits.saturating_add(1);
        self.waited = self.waited + self.timeout;
    }

    /// The next timeout is `factor` times as long, or `bound`.
    pub(crate) fn back_off(&mut self, factor: Ratio, bound: Fine) {
        self.base = self.base.by(factor).min(bound).max(Fine::SHORTEST);
        self.timeout = self.base;
    }
}

impl Cocoa {
    /// Betzler's er-cocoa for Contiki.
    pub(crate) const ER_COCOA: Self = Self {
        max_rto: Duration::from_secs(60),
        max_timeout: Duration::from_secs(268),
        weak_weight: Ratio::new(3, 4),
        max_weak_n: 255,
        vbf_small: Ratio::new(5, 2),
        ageing: Ageing::ErCocoa,
        forget_strong_after: 3,
        give_up: SampleOfGiveUp::Weak,
        final_wait: Switch::Off,
        ..Self::DEFAULT
    };

    /// The time an exchange has taken that is given up now.
    pub(crate) fn given_up_after(&self, exchange: CocoaExchange) -> Duration {
        let last = if self.final_wait.is_on() { exchange.timeout } else { Fine::ZERO };
        (exchange.waited + last).into()
    }

    /// U(`span`, ACK_RANDOM_FACTOR·`span`).
    fn dithered(&self, span: Fine, cue: Cue) -> Fine {
        span.dithered(self.ack_random_factor, cue.draw).floored(self.tick)
    }

    /// Takes in a sample, draft-ietf-core-cocoa-03 §4.2. Whether it is one.
    fn blend(&self, state: &mut CocoaState, rtt: Duration, retransmits: u8) -> bool {
        let (estimator, k, weight) = match retransmits {
            0 => (&mut state.strong, self.k_strong, self.strong_weight(state.streak)),
            n if n <= self.max_weak_n => (&mut state.weak, self.k_weak, self.weak_weight),
            _ => return false,
        };
        let Self { srtt_gain, rttvar_gain, tick, .. } = *self;
        estimator.update(rtt, Learning { srtt_gain, rttvar_gain, tick, ..Learning::RFC6298 });
        if let Some(estimate) = estimator.rto(k, self.granularity) {
            state.rto = state.rto.blend(weight, estimate).rounded(self.tick);
        }
        true
    }

    /// What an exchange that needed retransmissions leaves beside its sample. Whether that is an RTO.
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

    /// The weight of a strong estimate, the sample that made it counted.
    fn strong_weight(&self, streak: i8) -> Ratio {
        match (self.weighting, streak) {
            (Weighting::Fixed, _) => self.strong_weight,
            (Weighting::Gsrtc, 1..=6) => Ratio::new((1 << streak) - 1, 1 << streak),
            (Weighting::Gsrtc, _) => Ratio::new(99, 100),
        }
    }

    /// The variable backoff factor (VBF), draft-ietf-core-cocoa-03 §4.2.1.
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

    /// The RTOs that are backed off from by the middle factor, and do not age.
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
