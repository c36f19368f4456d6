//! `fasor`, `fasor-token`, `fasor-option`: Fast-Slow RTO (FASOR).
//!
//! **Source.** draft-ietf-core-fasor-02 (2023, expired); Raitahila 2019 (thesis) §7.
//!
//! **Idea.** A fast RTO follows the round-trip time closely. A slow RTO is 1.5 times the duration of the last
//! retransmitted exchange, so that a congested link can drain. After one retransmitted exchange, the next one has the
//! slow RTO as its second timeout. After several in a row, it has it as its first. After an answer to a first
//! transmission, exchanges start from the fast RTO again.
//!
//! With a marking, every answer that identifies its transmission is a sample. Retransmissions still change the state.
//!
//! The thesis developed FASOR from two variants with an `initial_k` of 4 (§7.1.1, §8.1). With `slow`, the exchange
//! after a retransmitted one starts from the slow RTO. `fast-slow` has the three states of FASOR, and backs off the
//! slow RTO where FASOR returns to the fast one.
//!
//! **Readings where the sources are open or differ**
//! * The first sample r makes RTTVAR = r/8 (§4.1). The draft's pseudo-code has r/2, which is `initial_k=4`.
//! * An exchange draws one dither, on the fast RTO, and doubling doubles the dithered value. The thesis adds the same dither
//!   to the slow RTO (`slow_dither=on`). The draft does not dither the slow RTO.
//! * If exchanges overlap, one that began before the last ambiguous answer does not return the state to normal.
//! * The draft adds for the option (§4.4) that the fast RTO is at least the sample before. This needs no code: a sample r
//!   that differs from SRTT by d adds d to 4·RTTVAR, so with K = 4 the RTO after it is above r in any case.
//!
//! **Differences from the source**
//! * The fast RTO is 50 ms at least (`min_rto`). The draft advises against the second of RFC 6298 (§4.1) and asks for no
//!   other bound.
//! * No timeout exceeds `max_rto`. The draft does not bound the slow RTO: an answer after 80 s would make it 120 s.
//! * An exchange that is given up changes the state like an ambiguous answer, so its backoff affects the next exchange.
//!   In the sources only the arrival of an answer changes the state (`give_up=keep`).
//!
//! **Unsafe as published**
//! * Without a lower bound of the RTO, a delay of a scheduler on a short path counts as a loss.
//! * An exchange that is given up leaves no backoff.
//! * The draft does not dither the slow RTO, so clients with equal slow RTOs may retransmit in step. This mechanism
//!   does the same.

use crate::estimator::{Estimator, GRANULARITY, Learning, MIN_RTO, UNBOUNDED};
use crate::fine::Fine;
use crate::parameters::{Switch, choice, parameters};
use crate::{
    Controller, Cue, Duration, Entry, Gauges, Limits, Marking, Mechanism, Notes, Origin, Outcome, Ratio,
};

parameters! {
    /// The Fast-Slow RTO.
    pub struct Fasor {
        /// Fast RTO before the first sample, draft-ietf-core-fasor-02 §4.1.
        initial_rto: Duration = Duration::from_secs(2),
        /// Lower bound of the fast RTO, 50 ms by default: a quarter of the 200 ms of Linux, and longer than delays of
        /// schedulers and clock ticks of 10 ms. The draft has no lower bound.
        min_rto: Duration = MIN_RTO,
        /// Upper bound of every timeout, draft-ietf-core-fasor-02 §4.1: 60 s at least. A longer value counts as 268 s.
        max_rto: Duration = Duration::from_secs(60),
        /// RTTVAR after the first sample r, in units of r/8: 1 makes an RTO of 1.5 r (draft-ietf-core-fasor-02 §4.1), 4
        /// makes the RTO of RFC 6298, 3 r.
        initial_k: u8 = 1,
        /// Which timeouts follow after retransmitted exchanges, Raitahila 2019 §7.
        variant: Variant = Variant::Normal,
        /// Whether the slow RTO is dithered by the same amount as the fast RTO, Raitahila 2019 §7.
        slow_dither: Switch = Switch::Off,
        /// How the state changes if an exchange is given up. The sources do not say.
        give_up: GiveUp = GiveUp::Advance,
        /// How transmissions carry their ordinal, draft-ietf-core-fasor-02 §4.4, §4.5.
        marking: Marking = Marking::None,
        /// G, the granularity of the clock and the lower bound of 4·RTTVAR, RFC 6298 §2.3.
        granularity: Duration = GRANULARITY,
    }
    presets {
        /// The rules of draft-ietf-core-fasor-02. Unsafe as published: no lower bound of the RTO, so that on a short path a
        /// delay of a scheduler counts as a loss, and an exchange that is given up leaves no backoff.
        "draft-02" => |old| Self { marking: old.marking, ..Self::PUBLISHED },
        /// The libcoap of Raitahila 2019: the slow RTO is dithered. An ordinal in the token is in the first
        /// transmission, too, because the published traffic has one byte more in each direction. Unsafe like
        /// `draft-02`.
        "libcoap-2019" => |old| Self {
            marking: if old.marking == Marking::TokenOnRetransmit { Marking::Token } else { old.marking },
            ..Self::THESIS
        },
        /// A development variant of Raitahila 2019: the exchange after a retransmitted one starts from the slow RTO.
        /// Unsafe like `draft-02`.
        "slow" => |old| Self {
            variant: Variant::Slow, initial_k: 4, marking: old.marking, ..Self::THESIS
        },
        /// A development variant of Raitahila 2019: the exchange after a retransmitted one backs off from the slow RTO.
        /// After two or more in a row, it starts from the slow RTO. Unsafe like `draft-02`.
        "fast-slow" => |old| Self {
            variant: Variant::FastSlow, initial_k: 4, marking: old.marking, ..Self::THESIS
        },
    }
}

choice! {
    /// The rule that chooses the timeouts of an exchange after retransmitted exchanges.
    pub enum Variant {
        /// After one retransmitted exchange: the fast RTO, the slow RTO, the fast RTO, doubled from there. After more:
        /// the slow RTO, then the fast RTO, doubled from there.
        Normal = "normal",
        /// After any number of retransmitted exchanges: the slow RTO, doubled from there.
        Slow = "slow",
        /// After one retransmitted exchange: the fast RTO, then the slow RTO, doubled from there. After more: the slow
        /// RTO, doubled from there (Raitahila 2019 §7.1.1).
        FastSlow = "fast-slow",
    }
}

choice! {
    /// How the state changes if an exchange is given up.
    pub enum GiveUp {
        /// The state does not change.
        Keep = "keep",
        /// The state changes as if an ambiguous answer had come at the end of the last timeout.
        Advance = "advance",
    }
}

/// The series of timeouts of an exchange. f is the dithered fast RTO, and s is the slow RTO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeoutSeries {
    /// f, 2f, 4f …: the state that the thesis calls NORMAL and the draft FAST.
    Fast,
    /// f, max(s, 2f), 2f, 4f …
    FastSlowFast,
    /// s, f, 2f, 4f …
    SlowFast,
    /// s, 2s, 4s …
    Slow,
    /// f, m, 2m, 4m … with m = max(s, 2f).
    FastSlow,
}

/// State of [`Fasor`] for one destination.
#[derive(Clone, Copy, Debug)]
pub struct FasorState {
    estimator: Estimator,
    slow: Fine,
    series: TimeoutSeries,
    /// The number of ambiguous answers from this destination, modulo 256.
    ambiguous: u8,
}

/// State of [`Fasor`] for one exchange.
#[derive(Clone, Copy, Debug)]
pub struct FasorExchange {
    fast: Fine,
    slow: Fine,
    series: TimeoutSeries,
    retransmits: u8,
    /// The value of [`FasorState::ambiguous`] when the exchange began.
    ambiguous: u8,
    /// The sum of the timeouts that the exchange has armed so far.
    waited: Fine,
}

impl Controller for Fasor {
    type State = FasorState;
    type Exchange = FasorExchange;

    fn state(&self) -> FasorState {
        FasorState {
            estimator: Estimator::new(),
            slow: Fine::ZERO,
            series: TimeoutSeries::Fast,
            ambiguous: 0,
        }
    }

    fn on_start(&self, state: &mut FasorState, cue: Cue) -> (FasorExchange, Duration) {
        let fast = self.fast(state);
        // An RTO of 3·r is what RFC 6298 makes of a first sample r.
        let srtt = state.estimator.srtt().unwrap_or(fast.by(Ratio::new(1, 3)));
        let least = srtt.by(Ratio::new(1, 4));
        let dither = least + (srtt - least).drawn(cue.draw);
        let fast = fast + dither;
        // The thesis dithers the slow RTO by the same amount. The draft does not (see above).
        let slow = if self.slow_dither == Switch::On { state.slow + dither } else { state.slow };
        let (series, ambiguous) = (state.series, state.ambiguous);
        let timeout = self.timeout(series, fast, slow, 0);
        (FasorExchange { fast, slow, series, retransmits: 0, ambiguous, waited: timeout }, timeout.into())
    }

    fn on_retransmit(&self, _: &mut FasorState, exchange: &mut FasorExchange, _: Cue) -> Duration {
        let FasorExchange { fast, slow, series, .. } = *exchange;
        exchange.retransmits = exchange.retransmits.saturating_add(1);
        let timeout = self.timeout(series, fast, slow, exchange.retransmits);
        exchange.waited = exchange.waited + timeout;
        timeout.into()
    }

    fn on_end(&self, state: &mut FasorState, exchange: FasorExchange, outcome: Outcome, _: Cue) {
        let waited = match outcome {
            Outcome::Acked(sample) => {
                if let Some(rtt) = sample.unambiguous() {
                    let first_rttvar = Ratio::new(self.initial_k.into(), 8);
                    state.estimator.update(rtt, Learning { first_rttvar, ..Learning::RFC6298 });
                }
                if sample.retransmits == 0 {
                    // An exchange from before the last ambiguous answer says nothing about the congestion since then.
                    if exchange.ambiguous == state.ambiguous {
                        state.series = TimeoutSeries::Fast;
                    }
                    return;
                }
                sample.since_first.into()
            }
            Outcome::GivenUp if self.give_up == GiveUp::Advance => exchange.waited,
            Outcome::GivenUp | Outcome::Reset | Outcome::Cancelled => return,
        };
        self.suspect_congestion(state, waited);
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        self.max_rto.times(retransmits.into())
    }

    fn limits(&self, state: &FasorState) -> Limits {
        Limits::with_gauges(self.gauges(state), self.marking)
    }

    #[inline(always)]
    fn gauges(&self, state: &FasorState) -> Gauges {
        // The slow RTO follows the duration of an exchange, and is not an estimate of a round trip.
        state.estimator.gauges(self.fast(state).min(self.max_rto.into()))
    }
}

impl Fasor {
    /// The rules of draft-ietf-core-fasor-02, without the additions of this crate.
    const PUBLISHED: Self = Self { min_rto: UNBOUNDED, give_up: GiveUp::Keep, ..Self::DEFAULT };

    /// The rules of Raitahila 2019, without the additions of this crate.
    const THESIS: Self = Self { slow_dither: Switch::On, ..Self::PUBLISHED };

    /// Returns the fast RTO before dither.
    fn fast(&self, state: &FasorState) -> Fine {
        state.estimator.rto(4, self.granularity).unwrap_or(self.initial_rto.into()).at_least(self.min_rto)
    }

    /// Returns the timeout to arm at the transmission of ordinal `n`.
    #[inline(always)]
    fn timeout(&self, series: TimeoutSeries, fast: Fine, slow: Fine, n: u8) -> Fine {
        let (from, doublings) = match (series, n) {
            (TimeoutSeries::Fast, _) | (TimeoutSeries::FastSlowFast | TimeoutSeries::FastSlow, 0) => {
                (fast, n)
            }
            (TimeoutSeries::Slow, _) | (TimeoutSeries::SlowFast, 0) => (slow, n),
            (TimeoutSeries::FastSlowFast, 1) | (TimeoutSeries::FastSlow, _) => {
                // n is 1 or more from here on, because the arms above have taken 0.
                (slow.max(fast.twice()), n - 1)
            }
            (TimeoutSeries::FastSlowFast | TimeoutSeries::SlowFast, _) => (fast, n - 1),
        };
        from.doubled(doublings).min(self.max_rto.into())
    }

    /// Sets the slow RTO after a retransmitted exchange that took `elapsed`, and changes the timeouts of later
    /// exchanges to the next series.
    fn suspect_congestion(&self, state: &mut FasorState, elapsed: Fine) {
        state.slow = elapsed.max(Fine::SHORTEST).by(Ratio::new(3, 2));
        // It may wrap, because exchanges only compare it for equality.
        state.ambiguous = state.ambiguous.wrapping_add(1);
        state.series = match (self.variant, state.series) {
            (Variant::Normal, TimeoutSeries::Fast) => TimeoutSeries::FastSlowFast,
            (Variant::Normal, _) => TimeoutSeries::SlowFast,
            (Variant::FastSlow, TimeoutSeries::Fast) => TimeoutSeries::FastSlow,
            (Variant::Slow | Variant::FastSlow, _) => TimeoutSeries::Slow,
        };
    }
}

const fn entry(name: &'static str, summary: &'static str, notes: Notes, marking: Marking) -> Entry {
    let mechanism = Mechanism::Fasor(Fasor { marking, ..Fasor::DEFAULT });
    let source = "draft-ietf-core-fasor-02; Raitahila 2019";
    Entry { name, summary, source, origin: Origin::Published, notes, mechanism }
}

/// The registry entry `fasor`.
pub(crate) const FASOR: Entry = entry(
    "fasor",
    "a fast RTO near the round-trip time, a slow one to drain a congested link, chosen by recent retransmissions",
    Notes {
        status: "An Internet-Draft of the CoRE working group, expired in 2023, and a thesis that measured \
            it. There is a patent declaration (summary of the CoRE session at IETF 104): ask your lawyers.",
        use_when: "Losses are sometimes errors and sometimes congestion, and nothing on the wire may change.",
        avoid_when: "Exchanges are minutes apart: estimates do not age, so an old one counts like a new \
            one.",
        hazards: "Without a marking a retransmitted exchange is not a sample of the round-trip time, so \
            after a rise the estimate stays behind until an exchange needs no retransmission. The slow RTO \
            is not dithered.",
    },
    Marking::None,
);

/// The registry entry `fasor-token`.
pub(crate) const FASOR_TOKEN: Entry = entry(
    "fasor-token",
    "FASOR with the transmission's ordinal in the token, so that every answer is a sample",
    Notes {
        status: "An Internet-Draft of the CoRE working group, expired in 2023 (§4.5), and a thesis that \
            measured it. There is a patent declaration (summary of the CoRE session at IETF 104): ask your lawyers.",
        use_when: "`fasor` would fit, and a byte in the token of retransmissions can be spared: every \
            answer is a sample then, with any peer.",
        avoid_when: "Exchanges are minutes apart, or tokens mean something to you.",
        hazards: "The slow RTO is not dithered. Retransmissions differ from the first transmission by a \
            byte of the token.",
    },
    Marking::TokenOnRetransmit,
);

/// The registry entry `fasor-option`.
pub(crate) const FASOR_OPTION: Entry = entry(
    "fasor-option",
    "FASOR with the transmission's ordinal in an elective option, where the peer echoes it",
    Notes {
        status: "An Internet-Draft of the CoRE working group, expired in 2023 (§4.4). The option has no \
            assigned number. There is a patent declaration (summary of the CoRE session at IETF 104): ask your \
            lawyers.",
        use_when: "Both ends are yours: every answer is a sample.",
        avoid_when: "Peers do not echo the option: it is then `fasor` with longer requests.",
        hazards: "The slow RTO is not dithered. The draft left the number of the option open. Here it is \
            65020, in the range for experiments.",
    },
    Marking::Option,
);

const _: () = assert!(size_of::<FasorState>() <= 24);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{acked, at, exchange, timeouts};
    use crate::{Answer, Draw, Sample};

    const FASOR: Fasor = Fasor::DEFAULT;

    /// Returns a state with SRTT 1 s and a fast RTO of 1.5 s (f = 1.75 s with the least dither), after `retransmitted`
    /// exchanges of 6 s, which make a slow RTO of 9 s.
    fn after(mechanism: &Fasor, retransmitted: u8) -> FasorState {
        let mut state = mechanism.state();
        exchange(mechanism, &mut state, 1_000, 0);
        for _ in 0..retransmitted {
            exchange(mechanism, &mut state, 6_000, 2);
        }
        state
    }

    fn series(mechanism: &Fasor, retransmitted: u8) -> [u64; 5] {
        timeouts(mechanism, &mut after(mechanism, retransmitted), 4).1
    }

    /// Returns an answer that identifies transmission `ordinal`, `ms` after its departure.
    fn named(ordinal: u8, ms: u64) -> Outcome {
        let answered = Some(Answer { ordinal, since: Duration::from_millis(ms) });
        let since_first = Duration::from_secs(6);
        Outcome::Acked(Sample { since_first, since_last: since_first, retransmits: 2, answered })
    }

    #[test]
    fn the_fast_rto_of_fasor_starts_at_one_and_a_half_round_trips() {
        let state = &mut FASOR.state();
        let rto = [100, 100, 100, 200, 100].map(|ms| exchange(&FASOR, state, ms, 0));
        assert_eq!(rto, [150_000, 137_500, 128_125, 233_594, 214_258]);
        let of_rfc6298 = Fasor { initial_k: 4, ..FASOR };
        assert_eq!(exchange(&of_rfc6298, &mut of_rfc6298.state(), 100, 0), 300_000);
    }

    #[test]
    fn before_the_first_sample_fasor_dithers_by_a_third_of_the_rto() {
        let first = |bits| FASOR.on_start(&mut FASOR.state(), Cue { draw: Draw::from_bits(bits), ..at(0) }).1;
        assert_eq!(first(0), Duration::from_micros(2_166_667));
        assert_eq!(first(u32::MAX), Duration::from_micros(2_666_667));
    }

    #[test]
    fn each_retransmitted_exchange_moves_fasor_from_fast_to_fast_slow_fast_to_slow_fast() {
        assert_eq!(series(&FASOR, 0), [1_750, 3_500, 7_000, 14_000, 28_000]);
        assert_eq!(series(&FASOR, 1), [1_750, 9_000, 3_500, 7_000, 14_000]);
        assert_eq!(series(&FASOR, 2), [9_000, 1_750, 3_500, 7_000, 14_000]);
        assert_eq!(series(&FASOR, 3), series(&FASOR, 2));
    }

    #[test]
    fn an_answer_to_the_first_transmission_returns_fasor_to_fast_from_any_state() {
        for retransmitted in 1..3 {
            let state = &mut after(&FASOR, retransmitted);
            exchange(&FASOR, state, 1_000, 0);
            assert_eq!(state.series, TimeoutSeries::Fast);
        }
    }

    #[test]
    fn a_slow_rto_below_twice_the_fast_one_does_not_shorten_the_backoff() {
        let state = &mut after(&FASOR, 0);
        exchange(&FASOR, state, 1_800, 1);
        assert_eq!(timeouts(&FASOR, state, 2).1, [1_750, 3_500, 3_500, 0, 0]);
    }

    #[test]
    fn no_timeout_of_fasor_exceeds_its_upper_bound() {
        let state = &mut after(&FASOR, 0);
        exchange(&FASOR, state, 80_000, 4);
        exchange(&FASOR, state, 80_000, 4);
        assert_eq!(timeouts(&FASOR, state, 0).1[0], 60_000);
        assert_eq!(FASOR.gauges(state).rto, Duration::from_millis(1_500), "the slow RTO is not an estimate");
    }

    #[test]
    fn the_thesis_preset_of_fasor_also_dithers_the_slow_rto() {
        let thesis = Fasor { slow_dither: Switch::On, ..FASOR };
        assert_eq!(series(&thesis, 1), [1_750, 9_250, 3_500, 7_000, 14_000]);
        assert_eq!(series(&thesis, 2), [9_250, 1_750, 3_500, 7_000, 14_000]);
    }

    #[test]
    fn the_development_presets_of_fasor_back_off_the_slow_rto() {
        let variant = |variant, retransmitted| series(&Fasor { variant, ..FASOR }, retransmitted);
        let (normal, slow) = ([1_750, 3_500, 7_000, 14_000, 28_000], [9_000, 18_000, 36_000, 60_000, 60_000]);
        assert_eq!([0, 1, 2].map(|n| variant(Variant::Slow, n)), [normal, slow, slow]);
        let fast_slow = [1_750, 9_000, 18_000, 36_000, 60_000];
        assert_eq!([0, 1, 2, 3].map(|n| variant(Variant::FastSlow, n)), [normal, fast_slow, slow, slow]);
    }

    #[test]
    fn the_development_presets_of_fasor_begin_with_an_rto_of_three_round_trips() {
        for preset in ["slow", "fast-slow"] {
            let mut variant = FASOR;
            variant.set("preset", preset).unwrap();
            assert_eq!(exchange(&variant, &mut variant.state(), 100, 0), 300_000, "{preset}");
        }
    }

    #[test]
    fn the_rto_of_fasor_has_a_lower_bound_of_50_ms_and_the_draft_has_none() {
        let mut draft = FASOR;
        draft.set("preset", "draft-02").unwrap();
        for (mechanism, rto) in [(FASOR, 50_000), (draft, 3_000)] {
            assert_eq!(exchange(&mechanism, &mut mechanism.state(), 2, 0), rto);
        }
    }

    #[test]
    fn fasor_keeps_its_backoff_after_a_give_up_unless_configured_otherwise() {
        let series_after_giving_up = |mechanism: Fasor| {
            let state = &mut after(&mechanism, 0);
            let (given_up, _) = timeouts(&mechanism, state, 2); // 1.75 + 3.5 + 7 s
            mechanism.on_end(state, given_up, Outcome::GivenUp, at(12_250));
            timeouts(&mechanism, state, 2).1
        };
        assert_eq!(series_after_giving_up(FASOR), [1_750, 18_375, 3_500, 0, 0]);
        let forgetful = Fasor { give_up: GiveUp::Keep, ..FASOR };
        assert_eq!(series_after_giving_up(forgetful), [1_750, 3_500, 7_000, 0, 0]);
    }

    #[test]
    fn an_exchange_begun_before_the_last_ambiguous_answer_does_not_return_fasor_to_fast() {
        let state = &mut after(&FASOR, 0);
        let (old, _) = FASOR.on_start(state, at(0));
        exchange(&FASOR, state, 6_000, 2);
        FASOR.on_end(state, old, acked(6_100, 0), at(6_100));
        assert_eq!(state.series, TimeoutSeries::FastSlowFast);
    }

    #[test]
    fn with_a_marking_a_retransmitted_exchange_gives_fasor_a_sample_and_changes_its_state() {
        let token = Fasor { marking: Marking::Token, ..FASOR };
        let state = &mut token.state();
        let (retransmitted, _) = timeouts(&token, state, 2);
        token.on_end(state, retransmitted, named(2, 800), at(6_000));
        assert_eq!(token.gauges(state).rto, Duration::from_millis(1_200));
        assert_eq!(timeouts(&token, state, 1).1, [1_400, 9_000, 0, 0, 0]);
    }

    #[test]
    fn the_fast_rto_of_fasor_is_never_below_the_last_sample() {
        let state = &mut FASOR.state();
        for ms in [500, 9_000, 30_000, 30_000, 20, 1, 1, 1, 1, 700, 5_000, 4_999, 4_998, 60_000] {
            assert!(exchange(&FASOR, state, ms, 0) >= ms * 1_000, "after {ms} ms");
        }
    }
}
