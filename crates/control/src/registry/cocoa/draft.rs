//! The mechanism of draft-ietf-core-cocoa-03: an exchange from its start to its end, then the estimators (§4.2), the
//! variable backoff factor (§4.2.1) and ageing (§4.3). Fields of `self` are parameters. Some steps differ in variants
//! and implementations of CoCoA. They call methods of `variants.rs`, whose comments state the rule of the draft.

use super::{Ageing, Cocoa, CocoaExchange, VbfOn};
use crate::estimator::{Estimator, Learning};
use crate::fine::Fine;
use crate::stamp::Stamp;
use crate::{Controller, Cue, Duration, Gauges, Instant, Limits, Outcome, Ratio};

/// State of [`Cocoa`] for one destination.
#[derive(Clone, Copy, Debug)]
pub struct CocoaState {
    /// The estimator that takes the samples of exchanges without a retransmission.
    pub(super) strong: Estimator,
    /// The estimator that takes the samples of retransmitted exchanges.
    pub(super) weak: Estimator,
    /// The overall RTO, blended from the strong and the weak estimates.
    pub(super) rto: Fine,
    /// The last time at which a sample, or ageing, changed the RTO.
    pub(super) renewed: Stamp,
    /// If positive, the number of strong samples since the last retransmission. If negative, the number of
    /// retransmissions since the last strong sample. Only variants of CoCoA use this count.
    pub(super) streak: i8,
}

impl CocoaState {
    fn is_measured(&self) -> bool {
        self.strong.is_measured() || self.weak.is_measured()
    }
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
        // Only an estimate ages, and there is none before the first sample (§4.3).
        if measured {
            self.age(state, band, cue.now);
        }
        let (one, judged) = self.ageing.in_force(unaged, state.rto);
        // The blind rule: before the first sample, the k-th exchange under way waits k·2 s (§4.1). This is not learnt, and the
        // backoff factor is chosen from one RTO.
        let rto = if measured { one } else { one.times(cue.outstanding.max(1)) };
        let longest = Fine::from(self.longest());
        let timeout = self.dithered(rto, cue).at_least(self.min_timeout).min(longest);
        let factor = self.backoff_factor(band, if self.vbf_on == VbfOn::Dithered { timeout } else { judged });
        // If each timeout is dithered, the backoff grows without dither. Otherwise the dithers would multiply.
        let base = if self.redither.is_on() { rto.min(longest) } else { timeout };
        let began = if self.samples_without_ack() { Fine::fitting(cue.now.as_micros()) } else { Fine::ZERO };
        (CocoaExchange { timeout, base, began, factor, retransmits: 0 }, timeout.into())
    }

    fn on_retransmit(&self, state: &mut CocoaState, exchange: &mut CocoaExchange, cue: Cue) -> Duration {
        let factor = match self.vbf_on {
            VbfOn::Initial | VbfOn::Dithered => exchange.factor,
            // The pseudo-code of §4.2.1 chooses it again at each step.
            VbfOn::Current => self.backoff_factor(self.band(state), exchange.base),
        };
        // An acknowledgement brings the number of retransmissions itself.
        if self.samples_without_ack() {
            exchange.count();
        }
        // The truncation holds for the backoff (§4.2.1). A first timeout that is longer stays.
        exchange.back_off(factor, self.max_timeout.into());
        exchange.wait_for(exchange.base.floored(self.tick));
        if self.redither.is_on() {
            exchange.timeout = self.dithered(exchange.base, cue).min(self.longest().into());
        }
        exchange.timeout.into()
    }

    fn on_end(&self, state: &mut CocoaState, exchange: CocoaExchange, outcome: Outcome, cue: Cue) {
        let Some((rtt, retransmits)) = self.evidence(exchange, outcome, cue.now) else { return };
        self.count(state, retransmits);
        let learnt = rtt.is_some_and(|rtt| self.blend(state, rtt, retransmits));
        // The sample comes first: a variant may replace the RTO that it made.
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

impl Cocoa {
    /// Blends a sample into the RTO (§4.2). The sample is strong if there was no retransmission, weak after one or two,
    /// and ignored after more. Returns false if it was ignored.
    fn blend(&self, state: &mut CocoaState, rtt: Duration, retransmits: u8) -> bool {
        let (estimator, k, weight) = match retransmits {
            // §4.2: K is 4 for a strong sample and 1 for a weak one, and the weights are 1/2 and 1/4.
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

    #[inline(always)]
    fn bounded(&self, rto: Fine) -> Fine {
        rto.min(self.max_rto.into()).at_least(self.min_rto)
    }

    /// Returns the longest possible timeout: the longest RTO, or the longest backoff (§4.2.1).
    fn longest(&self) -> Duration {
        self.max_rto.max(self.max_timeout)
    }

    /// Returns a timeout that the random number of `cue` chooses between `span` and ACK_RANDOM_FACTOR·`span` (§4.2.1).
    fn dithered(&self, span: Fine, cue: Cue) -> Fine {
        span.dithered(self.ack_random_factor, cue.draw).floored(self.tick)
    }

    /// Returns the variable backoff factor (VBF) for `rto`: one factor below the band, one in the band, and one above
    /// it (§4.2.1).
    fn backoff_factor(&self, (low, high): (Fine, Fine), rto: Fine) -> Ratio {
        // Copies, for a choice among fields of `self` would link all parameters into firmware, where they are constants.
        let Self { vbf_small, vbf_middle, vbf_large, .. } = *self;
        match rto {
            _ if rto < low => vbf_small,
            _ if rto > high => vbf_large,
            _ => vbf_middle,
        }
    }

    /// Ages the RTO by the time since it was last changed (§4.3). Must not be called before the first sample.
    fn age(&self, state: &mut CocoaState, band: (Fine, Fine), now: Instant) {
        // Californium 3 ages like the draft, but later.
        if !matches!(self.ageing, Ageing::Draft03 | Ageing::Californium3) {
            return self.age_once(state, band, now);
        }
        let mut idle = state.renewed.until(now);
        while let Some((patience, aged)) = self.next_age(state.rto, band)
            && idle > patience
        {
            (idle, state.rto) = (idle - patience, aged);
            // The rest of the idle time counts towards the next step. Californium 3 drops it.
            let rest = if self.ageing == Ageing::Draft03 { idle } else { Duration::ZERO };
            state.renewed = Stamp::before(now, rest);
        }
    }

    /// Returns how long an RTO may go without a new sample before it ages, and the RTO after it has aged once (§4.3);
    /// `None` if `rto` does not age.
    pub(super) fn next_age(&self, rto: Fine, (low, high): (Fine, Fine)) -> Option<(Duration, Fine)> {
        // A band that moves (`Band::Strong`) may lie out of reach: above the upper bound, or below the 2 s that 1 s + RTO/2
        // tends to. Ageing ends where it makes no progress.
        let (doubled, eased) = (rto.twice().min(self.max_rto.into()), self.eased(rto));
        // §4.3: a short RTO ages after 16 times itself, a long one after 4 times itself.
        let (times, aged) = match rto {
            _ if rto < low && doubled > rto => (16, doubled),
            _ if rto > high && eased < rto => (4, eased),
            _ => return None,
        };
        Some((Duration::from(rto).times(times), aged))
    }

    /// Returns 1 s + RTO/2: the RTO after one step of ageing, for an RTO above the band.
    pub(super) fn eased(&self, rto: Fine) -> Fine {
        Fine::fitting(seconds(1).units() + rto.by(Ratio::new(1, 2)).units()).floored(self.tick)
    }
}

pub(super) const fn seconds(seconds: u64) -> Fine {
    Fine::from_duration(Duration::from_secs(seconds))
}
