//! `cocoa`: draft-ietf-core-cocoa-03 (2018, expired). `cocoa-plus`: CoCoA+, Betzler et al. 2015.
//!
//! Idea: learn from retransmitted exchanges too, with less weight (strong and weak estimator, blended into one RTO); back
//! off faster where the RTO is short and slower where it is long; let what was not renewed age towards 1-3 s.
//!
//! Where the draft is open: the backoff factor is chosen once for an exchange, from the RTO before dither (the
//! pseudo-code of §4.2.1 chooses at each step, which from 2 s on is more aggressive than RFC 7252: 34.5 s until it gives
//! up, not 62 s; that is `vbf_on=current`). An RTO of exactly 1 s or 3 s is in the middle. One dither an exchange, on the
//! first timeout. The truncation at 32 s holds for every timeout, the dithered first one included, and for the RTO kept.
//! It is the overall RTO that ages, cumulatively, before an exchange starts, and only once something was measured. A
//! Reset is no sample. What an exchange that is given up has cost is forgotten: the next starts from the same RTO.
//!
//! Unsafe as published: a weak sample is an ambiguous one, which RFC 8085 §3.1.1 forbids to use; an answer that is lost
//! makes RTO grow, one that is late makes it shrink. MAX_TRANSMIT_SPAN is 128 s, not RFC 7252's 45 s.

use crate::estimator::{Estimator, FIRST_RTTVAR};
use crate::fine::Fine;
use crate::parameters::{choice, parameters};
use crate::stamp::Stamp;
use crate::{Controller, Cue, Duration, Entry, Gauges, Instant, Limits, Marking, Mechanism, Outcome, Ratio};

parameters! {
    /// CoCoA, with a strong and a weak estimator.
    pub struct Cocoa {
        /// RTO before the first sample, draft-ietf-core-cocoa-03 §4.1.
        initial_rto: Duration = Duration::from_secs(2),
        /// Upper bound of one timeout and of the RTO, draft-ietf-core-cocoa-03 §4.2.1. Counts as 268 s if above.
        max_rto: Duration = Duration::from_secs(32),
        /// ACK_RANDOM_FACTOR: the first timeout is U(RTO, ACK_RANDOM_FACTOR·RTO), draft-ietf-core-cocoa-03 §4.2.1.
        ack_random_factor: Ratio = Ratio::new(3, 2),
        /// K of the strong estimator, draft-ietf-core-cocoa-03 §4.2.
        k_strong: u8 = 4,
        /// K of the weak estimator, draft-ietf-core-cocoa-03 §4.2.
        k_weak: u8 = 1,
        /// Weight of a new strong estimate in the RTO, draft-ietf-core-cocoa-03 §4.2.
        strong_weight: Ratio = Ratio::new(1, 2),
        /// Weight of a new weak estimate in the RTO, draft-ietf-core-cocoa-03 §4.2.
        weak_weight: Ratio = Ratio::new(1, 4),
        /// Most retransmissions of an exchange that still makes a weak sample, draft-ietf-core-cocoa-03 §4.2.
        max_weak_n: u8 = 2,
        /// Backoff factor below `vbf_low`, draft-ietf-core-cocoa-03 §4.2.1.
        vbf_small: Ratio = Ratio::new(3, 1),
        /// Backoff factor from `vbf_low` to `vbf_high`, draft-ietf-core-cocoa-03 §4.2.1.
        vbf_middle: Ratio = Ratio::new(2, 1),
        /// Backoff factor above `vbf_high`, draft-ietf-core-cocoa-03 §4.2.1.
        vbf_large: Ratio = Ratio::new(3, 2),
        /// RTO below which the backoff factor is `vbf_small`, draft-ietf-core-cocoa-03 §4.2.1.
        vbf_low: Duration = Duration::from_secs(1),
        /// RTO above which the backoff factor is `vbf_large`, draft-ietf-core-cocoa-03 §4.2.1.
        vbf_high: Duration = Duration::from_secs(3),
        /// What the backoff factor is chosen from, draft-ietf-core-cocoa-03 §4.2.1.
        vbf_on: VbfOn = VbfOn::Initial,
        /// How an RTO that was not renewed ages, draft-ietf-core-cocoa-03 §4.3.
        ageing: Ageing = Ageing::Draft03,
        /// G, the granularity of the clock and the least weight of RTTVAR, RFC 6298 §2.3.
        granularity: Duration = Duration::from_micros(1),
    }
    presets {
        /// As draft-ietf-core-cocoa-03 says.
        "draft-03" => |_| Self::DEFAULT,
        /// The libcoap of the FASOR experiments (Raitahila 2019): the draft without ageing, and with the backoff factor
        /// chosen from the timeout in force.
        "libcoap-2019" => |_| Self { vbf_on: VbfOn::Current, ageing: Ageing::Off, ..Self::DEFAULT },
    }
}

choice! {
    /// What a backoff factor is chosen from.
    pub enum VbfOn {
        /// The RTO that the exchange started from, before dither: one factor for all its timeouts.
        Initial = "initial",
        /// The timeout in force: a factor for each step.
        Current = "current",
    }
}

choice! {
    /// How an RTO ages that no sample renews.
    pub enum Ageing {
        /// Below 1 s doubled after 16 RTO, above 3 s made 1 s + RTO/2 after 4 RTO (draft-ietf-core-cocoa-03 §4.3).
        Draft03 = "draft-03" | "on",
        /// Above 2 s made (2 s + RTO)/2 after 30 s (Betzler et al. 2015).
        CocoaPlus = "cocoa-plus",
        /// Not at all.
        Off = "off",
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
}

/// What [`Cocoa`] remembers of one exchange.
#[derive(Clone, Copy, Debug)]
pub struct CocoaExchange {
    timeout: Fine,
    factor: Ratio,
}

impl Controller for Cocoa {
    type State = CocoaState;
    type Exchange = CocoaExchange;

    fn state(&self) -> CocoaState {
        let rto = self.initial_rto.min(self.max_rto).into();
        CocoaState { strong: Estimator::NEW, weak: Estimator::NEW, rto, renewed: Stamp::default() }
    }

    fn on_start(&self, state: &mut CocoaState, cue: Cue) -> (CocoaExchange, Duration) {
        let rto = if state.is_measured() {
            self.age(state, cue.now);
            state.rto
        } else {
            // Blind: the k-th exchange at once waits k·2 s (§4.1). This is not learnt.
            state.rto.times(cue.outstanding.max(1).into())
        };
        let dither = (rto.by(self.ack_random_factor) - rto).drawn(cue.draw);
        let timeout = (rto + dither).min(self.max_rto.into());
        (CocoaExchange { timeout, factor: self.backoff_factor(state.rto) }, timeout.into())
    }

    fn on_retransmit(&self, _: &mut CocoaState, exchange: &mut CocoaExchange, _: Cue) -> Duration {
        let factor = match self.vbf_on {
            VbfOn::Initial => exchange.factor,
            VbfOn::Current => self.backoff_factor(exchange.timeout),
        };
        exchange.timeout = exchange.timeout.by(factor).min(self.max_rto.into());
        exchange.timeout.into()
    }

    fn on_end(&self, state: &mut CocoaState, _: CocoaExchange, outcome: Outcome, cue: Cue) {
        let Outcome::Acked(sample) = outcome else { return };
        let (estimator, k, weight) = match sample.retransmits {
            0 => (&mut state.strong, self.k_strong, self.strong_weight),
            n if n <= self.max_weak_n => (&mut state.weak, self.k_weak, self.weak_weight),
            _ => return,
        };
        estimator.update(sample.since_first, FIRST_RTTVAR);
        if let Some(estimate) = estimator.rto(k, self.granularity) {
            state.rto = state.rto.blend(weight, estimate).min(self.max_rto.into());
        }
        state.renewed = Stamp::of(cue.now);
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        self.max_rto.times(retransmits.into())
    }

    fn limits(&self, state: &CocoaState) -> Limits {
        Limits::with_gauges(self.gauges(state), Marking::None)
    }

    /// SRTT and RTTVAR are the strong estimator's; the weak one's as long as there is none.
    fn gauges(&self, state: &CocoaState) -> Gauges {
        let estimator = if state.strong.is_measured() { &state.strong } else { &state.weak };
        estimator.gauges(state.rto)
    }
}

impl CocoaState {
    fn is_measured(&self) -> bool {
        self.strong.is_measured() || self.weak.is_measured()
    }
}

impl Cocoa {
    /// The variable backoff factor (VBF), draft-ietf-core-cocoa-03 §4.2.1.
    fn backoff_factor(&self, rto: Fine) -> Ratio {
        if rto < self.vbf_low.into() {
            self.vbf_small
        } else if rto > self.vbf_high.into() {
            self.vbf_large
        } else {
            self.vbf_middle
        }
    }

    /// Ages the RTO by the time that has passed since it was renewed.
    fn age(&self, state: &mut CocoaState, now: Instant) {
        let mut idle = state.renewed.until(now);
        match self.ageing {
            Ageing::Draft03 => {
                while let Some((patience, aged)) = next_age(state.rto)
                    && idle > patience
                {
                    (idle, state.rto) = (idle - patience, aged);
                    // What is left of the idle time counts towards the next step.
                    state.renewed = Stamp::before(now, idle);
                }
            }
            Ageing::CocoaPlus => {
                if state.rto > seconds(2) && idle >= Duration::from_secs(30) {
                    state.rto = (seconds(2) + state.rto).by(Ratio::new(1, 2));
                    state.renewed = Stamp::of(now);
                }
            }
            Ageing::Off => {}
        }
    }
}

/// How long an RTO stands unless it is renewed, and what it is then; `None` if it stands for ever.
/// draft-ietf-core-cocoa-03 §4.3.
fn next_age(rto: Fine) -> Option<(Duration, Fine)> {
    let stands_for = |times| Duration::from(rto).times(times);
    if Fine::ZERO < rto && rto < seconds(1) {
        Some((stands_for(16), rto.times(2)))
    } else if rto > seconds(3) {
        Some((stands_for(4), seconds(1) + rto.by(Ratio::new(1, 2))))
    } else {
        None
    }
}

const fn seconds(seconds: u64) -> Fine {
    Fine::from_duration(Duration::from_secs(seconds))
}

/// `cocoa`.
pub(crate) const COCOA: Entry = Entry {
    name: "cocoa",
    summary: "strong and weak estimator blended into one RTO, variable backoff factor, ageing",
    source: "draft-ietf-core-cocoa-03",
    mechanism: Mechanism::Cocoa(Cocoa::DEFAULT),
};

/// `cocoa-plus`. The paper has no truncation at 32 s; 60 s is what RFC 8085 §3.1.1 asks for at least.
pub(crate) const COCOA_PLUS: Entry = Entry {
    name: "cocoa-plus",
    summary: "CoCoA as first published: one retransmission at most for a weak sample, factor 1.3 above 3 s",
    source: "Betzler, Gomez, Demirkol, Paradells 2015, CoCoA+",
    mechanism: Mechanism::Cocoa(Cocoa {
        max_rto: Duration::from_secs(60),
        max_weak_n: 1,
        vbf_large: Ratio::new(13, 10),
        ageing: Ageing::CocoaPlus,
        ..Cocoa::DEFAULT
    }),
};

// Published: 29 bytes.
const _: () = assert!(size_of::<CocoaState>() <= 29);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Draw;
    use crate::testing::{acked, at, exchange, timeouts};

    const COCOA: Cocoa = Cocoa::DEFAULT;

    fn with_rto(us: u64) -> CocoaState {
        let mut state = COCOA.state();
        state.strong.update(Duration::from_secs(1), FIRST_RTTVAR);
        state.rto = Duration::from_micros(us).into();
        state
    }

    fn aged(mechanism: Cocoa, rto_ms: u64, idle_s: u64) -> u64 {
        let state = &mut with_rto(rto_ms * 1_000);
        let _ = mechanism.on_start(state, at(idle_s * 1_000));
        mechanism.gauges(state).rto.as_micros() / 1_000
    }

    #[test]
    fn strong_and_weak_samples_are_blended_and_a_third_retransmission_makes_none() {
        let state = &mut COCOA.state();
        let samples = [(1_000, 0), (1_000, 0), (1_000, 0), (3_500, 1), (9_000, 2), (20_000, 3), (1_200, 0)];
        let rto = samples.map(|(rtt, retransmits)| {
            state.renewed = Stamp::default(); // no ageing between them
            exchange(&COCOA, state, rtt, retransmits)
        });
        assert_eq!(rto, [2_500_000, 2_500_000, 2_312_500, 3_046_875, 4_003_906, 4_003_906, 3_036_328]);
    }

    #[test]
    fn the_backoff_factor_is_3_below_1_s_and_1_5_above_3_s_and_2_on_the_boundaries() {
        let series = |us| timeouts(&COCOA, &mut with_rto(us), 4).1;
        assert_eq!(series(300_000), [300, 900, 2_700, 8_100, 24_300]);
        assert_eq!(series(900_000), [900, 2_700, 8_100, 24_300, 32_000]);
        assert_eq!(series(1_000_000), [1_000, 2_000, 4_000, 8_000, 16_000]);
        assert_eq!(series(3_000_000), [3_000, 6_000, 12_000, 24_000, 32_000]);
        assert_eq!(series(7_000_000), [7_000, 10_500, 15_750, 23_625, 32_000]);
    }

    #[test]
    fn the_literal_draft_backs_off_less_at_each_step() {
        let literal = Cocoa { vbf_on: VbfOn::Current, ..COCOA };
        assert_eq!(timeouts(&literal, &mut with_rto(2_000_000), 4).1, [2_000, 4_000, 6_000, 9_000, 13_500]);
        assert_eq!(timeouts(&literal, &mut with_rto(900_000), 4).1, [900, 2_700, 5_400, 8_100, 12_150]);
    }

    #[test]
    fn the_factor_is_chosen_before_dither_and_the_dithered_timeout_is_truncated() {
        let dithered =
            |us| COCOA.on_start(&mut with_rto(us), Cue { draw: Draw::from_bits(1 << 31), ..at(0) });
        assert_eq!(dithered(2_900_000).0.factor, COCOA.vbf_middle); // 3.6 s is armed
        assert_eq!(dithered(30_000_000).1, Duration::from_secs(32));
    }

    #[test]
    fn an_rto_that_is_not_renewed_ages_into_the_dead_zone_and_stays_there() {
        let cases = [(50, 10, 400), (300, 20, 1_200), (300, 100, 1_200), (32_000, 60, 32_000)];
        for (rto, idle, expected) in cases.into_iter().chain([(32_000, 200, 9_500), (10_000, 300, 3_000)]) {
            assert_eq!(aged(COCOA, rto, idle), expected, "{rto} ms after {idle} s");
        }
        assert_eq!(aged(COCOA, 10_000, 40), 10_000, "40 s are not more than 4 RTO");
        assert_eq!(aged(COCOA, 500, 8), 500, "8 s are not more than 16 RTO");
        assert_eq!(aged(Cocoa { ageing: Ageing::Off, ..COCOA }, 10_000, 300), 10_000);
    }

    #[test]
    fn ageing_twice_is_ageing_once() {
        let state = &mut with_rto(32_000_000);
        for ms in [100_000, 150_000, 200_000] {
            let _ = COCOA.on_start(state, at(ms));
        }
        assert_eq!(COCOA.gauges(state).rto, Duration::from_millis(9_500));
    }

    #[test]
    fn cocoa_plus_ages_one_step_at_a_transmission_and_again_30_s_later() {
        let plus = Cocoa { ageing: Ageing::CocoaPlus, ..COCOA };
        assert_eq!(aged(plus, 10_000, 29), 10_000);
        assert_eq!(aged(plus, 10_000, 300), 6_000);
        let state = &mut with_rto(10_000_000);
        for ms in [30_000, 59_999, 60_000] {
            let _ = plus.on_start(state, at(ms));
        }
        assert_eq!(plus.gauges(state).rto, Duration::from_secs(4));
    }

    #[test]
    fn before_anything_is_measured_parallel_exchanges_wait_a_multiple_that_is_not_learnt() {
        let state = &mut COCOA.state();
        let (third, timeout) = COCOA.on_start(state, Cue { outstanding: 3, ..at(0) });
        assert_eq!(timeout, Duration::from_secs(6));
        COCOA.on_end(state, third, acked(1_000, 0), at(1_000));
        assert_eq!(COCOA.gauges(state).rto, Duration::from_millis(2_500)); // half of 3 s, half of 2 s
        let (_, timeout) = COCOA.on_start(state, Cue { outstanding: 3, ..at(1_000) });
        assert_eq!(timeout, Duration::from_millis(2_500));
    }

    #[test]
    fn reset_and_give_up_leave_the_rto_as_it_is() {
        let state = &mut with_rto(1_500_000);
        for outcome in [Outcome::Reset, Outcome::GivenUp, Outcome::Cancelled] {
            let (ended, _) = timeouts(&COCOA, state, 4);
            COCOA.on_end(state, ended, outcome, at(5_000));
            assert_eq!(COCOA.gauges(state).rto, Duration::from_millis(1_500));
        }
    }
}
