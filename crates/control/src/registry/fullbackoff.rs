//! `fullbackoff1`, `fullbackoff2`, `gst-coap`: the timer of RFC 7252 with a backoff that outlives its exchange.
//!
//! **Source.** Järvinen et al. 2018 and Rathod 2022 (doctoral thesis) §3.1 for `fullbackoff1` and `fullbackoff2`; Rathod 2022
//! §3.2 for `gst-coap`. The preset `contiki` follows Rathod's code.
//!
//! **Idea.** No round-trip time is measured. If an exchange needed a retransmission, the next one starts from the timeout
//! that was in force when the answer came. The three differ in the decay of that kept backoff: an answer to a first
//! transmission resets it (`fullbackoff1`), halves it (`fullbackoff2`), or divides it by 2, then 4, then 8 (`gst-coap`).
//!
//! **Readings where the sources are open**
//! * Rathod's algorithm 1 (lines 5 and 6) dithers every first transmission, a kept backoff too. The amount follows his code:
//!   U(0, (ACK_RANDOM_FACTOR − 1)·ACK_TIMEOUT). `redither=off` arms a kept backoff without dither.
//! * A backoff outlives an exchange that is given up, like in his code. The texts mention only exchanges that succeed
//!   (`give_up=keep`).
//!
//! **Differences from the source**
//! * A backoff is 60 s at most (`max_rto`). The dither is added to the bounded backoff, so that clients at the bound do
//!   not retransmit in step.
//! * ACK_TIMEOUT is 2 s, and the last retransmission is waited for. Rathod's code has 3 s and does not wait.
//!
//! **Unsafe as published**
//! * Nothing bounds the timeout. After a few retransmitted exchanges it is minutes long.
//! * After the first answer without a retransmission, `fullbackoff1` starts with 2 s again, even in a congested
//!   network. This mechanism does the same.

use crate::fine::Fine;
use crate::parameters::{Switch, choice, parameters};
use crate::{
    Controller, Cue, Duration, Entry, Gauges, Limits, Marking, Mechanism, Notes, Origin, Outcome, Ratio,
};

parameters! {
    /// Full backoff: the timer of RFC 7252 with a kept backoff.
    pub struct FullBackoff {
        /// ACK_TIMEOUT, RFC 7252 §4.8: exchanges start from it while no backoff is kept.
        ack_timeout: Duration = Duration::from_secs(2),
        /// ACK_RANDOM_FACTOR, RFC 7252 §4.8; a value below 1 counts as 1.
        ack_random_factor: Ratio = Ratio::new(3, 2),
        /// Upper bound of a backoff, before dither; RFC 8085 §3.1.1 asks for 60 s at least. A longer value counts as
        /// 268 s.
        max_rto: Duration = Duration::from_secs(60),
        /// How an answer to a first transmission changes the kept backoff, Rathod 2022 §3.
        decay: Decay = Decay::Reset,
        /// Whether a kept backoff is dithered when the next exchange starts from it, by U(0, (ACK_RANDOM_FACTOR − 1) ·
        /// ACK_TIMEOUT).
        redither: Switch = Switch::On,
        /// Whether the backoff of an exchange that is given up is kept, too.
        give_up: LearnFromGiveUp = LearnFromGiveUp::Learn,
        /// Whether the endpoint waits for an answer to the last retransmission, RFC 7252 §4.2.
        final_wait: Switch = Switch::On,
    }
    presets {
        /// Rathod's implementation for Contiki's Erbium: ACK_TIMEOUT 3 s, no upper bound that timeouts reach, and no
        /// wait after the last retransmission. Unsafe as published: after a few retransmitted exchanges the timeout is
        /// minutes long.
        "contiki" => |old| Self {
            ack_timeout: Duration::from_secs(3),
            max_rto: Duration::from_secs(268),
            decay: old.decay,
            final_wait: Switch::Off,
            ..Self::DEFAULT
        },
    }
}

choice! {
    /// How an answer to a first transmission changes the kept backoff.
    pub enum Decay {
        /// The backoff is forgotten (Fullbackoff1).
        Reset = "reset",
        /// The backoff is halved (Fullbackoff2).
        Halve = "halve",
        /// The backoff is divided by 2, then 4, then 8 … (GST-CoAP, algorithm 1).
        Accelerate = "accelerate",
    }
}

choice! {
    /// How the kept backoff changes if an exchange is given up.
    pub enum LearnFromGiveUp {
        /// The kept backoff does not change.
        Keep = "keep",
        /// The last timeout becomes the kept backoff, like after a late answer.
        Learn = "learn",
    }
}

/// State of [`FullBackoff`] for one destination.
#[derive(Clone, Copy, Debug)]
pub struct FullBackoffState {
    /// The kept backoff, or zero if there is none.
    kept: Fine,
    /// The number of consecutive answers to first transmissions since the backoff was kept. It decides the divisor of
    /// [`Decay::Accelerate`].
    prompt: u8,
}

/// State of [`FullBackoff`] for one exchange.
#[derive(Clone, Copy, Debug)]
pub struct FullBackoffExchange {
    timeout: Fine,
}

impl Controller for FullBackoff {
    type State = FullBackoffState;
    type Exchange = FullBackoffExchange;

    fn state(&self) -> FullBackoffState {
        FullBackoffState { kept: Fine::ZERO, prompt: 0 }
    }

    fn on_start(&self, state: &mut FullBackoffState, cue: Cue) -> (FullBackoffExchange, Duration) {
        let least = Fine::from(self.ack_timeout);
        // The thesis dithers a kept backoff, too, by a part of ACK_TIMEOUT (algorithm 1, lines 5 and 6).
        let dither = least.by(self.ack_random_factor.above_one()).drawn(cue.draw);
        let rto = if state.kept == Fine::ZERO { least } else { state.kept };
        let rto = rto.min(self.max_rto.into());
        let is_dithered = state.kept == Fine::ZERO || self.redither.is_on();
        let timeout = if is_dithered { rto + dither } else { rto };
        (FullBackoffExchange { timeout }, timeout.into())
    }

    fn on_retransmit(
        &self,
        _: &mut FullBackoffState,
        exchange: &mut FullBackoffExchange,
        _: Cue,
    ) -> Duration {
        let timeout = exchange.timeout;
        // A first timeout that dither has lifted above the bound stays.
        exchange.timeout = timeout.twice().min(timeout.max(self.max_rto.into()));
        exchange.timeout.into()
    }

    fn on_end(&self, state: &mut FullBackoffState, exchange: FullBackoffExchange, outcome: Outcome, _: Cue) {
        match outcome {
            Outcome::Acked(sample) if sample.retransmits == 0 => self.decay(state),
            Outcome::GivenUp if self.give_up == LearnFromGiveUp::Keep => {}
            Outcome::Acked(_) | Outcome::GivenUp => {
                // The dither above the bound is not kept.
                *state = FullBackoffState { kept: exchange.timeout.min(self.max_rto.into()), prompt: 0 };
            }
            Outcome::Reset | Outcome::Cancelled => {}
        }
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        // A kept backoff may start at the bound.
        let dither = self.ack_random_factor.above_one().of(self.ack_timeout);
        (self.max_rto + dither).times(retransmits.into())
    }

    fn limits(&self, state: &FullBackoffState) -> Limits {
        let limits = Limits::with_gauges(self.gauges(state), Marking::None);
        Limits { final_wait: self.final_wait.is_on(), ..limits }
    }

    #[inline(always)]
    fn gauges(&self, state: &FullBackoffState) -> Gauges {
        let kept = (state.kept > Fine::ZERO).then_some(state.kept);
        Gauges { rto: kept.unwrap_or(self.ack_timeout.into()).into(), ..Gauges::default() }
    }
}

impl FullBackoff {
    /// Lowers the kept backoff after an answer to a first transmission.
    fn decay(&self, state: &mut FullBackoffState) {
        state.prompt = state.prompt.saturating_add(1);
        state.kept = match self.decay {
            Decay::Reset => Fine::ZERO,
            Decay::Halve => state.kept.halved(1),
            // The k-th answer in a row divides by 2ᵏ (algorithm 1 of GST-CoAP).
            Decay::Accelerate => state.kept.halved(state.prompt),
        };
        // Below ACK_TIMEOUT, exchanges start from ACK_TIMEOUT again.
        if state.kept < self.ack_timeout.into() {
            *state = self.state();
        }
    }
}

const fn entry(
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    notes: Notes,
    decay: Decay,
) -> Entry {
    Entry {
        name,
        summary,
        source,
        origin: Origin::Published,
        notes,
        mechanism: Mechanism::FullBackoff(FullBackoff { decay, ..FullBackoff::DEFAULT }),
    }
}

/// The registry entry `fullbackoff1`.
pub(crate) const FULLBACKOFF1: Entry = entry(
    "fullbackoff1",
    "the default timer that starts from the last backed-off timeout until a first transmission is answered",
    "Järvinen et al. 2018; Rathod 2022 §3.1.1",
    Notes {
        status: "Published in a paper and a doctoral thesis. Never a draft of the IETF.",
        use_when: "There are seven bytes for a destination and none for an estimator, and round trips may \
            grow beyond 2 s.",
        avoid_when: "Round trips are short and losses are errors of the link: the backoff of one loss \
            delays the recovery of the next.",
        hazards: "The sources bound no timeout, so a few bad exchanges drive it into minutes. Here a \
            backoff is 60 s at most. After one answer without a retransmission the next exchange meets a \
            congested network with 2 s again.",
    },
    Decay::Reset,
);

/// The registry entry `fullbackoff2`.
pub(crate) const FULLBACKOFF2: Entry = entry(
    "fullbackoff2",
    "like fullbackoff1, but each answer to a first transmission only halves the kept timeout",
    "Järvinen et al. 2018; Rathod 2022 §3.1.2",
    Notes {
        status: "Published in a paper and a doctoral thesis. Never a draft of the IETF.",
        use_when: "`fullbackoff1` would fit, and congestion lasts longer than an exchange: the kept timeout \
            comes down by halves.",
        avoid_when: "Losses are errors of the link: it takes several answers until a timeout is short again.",
        hazards: "The sources bound no timeout, so a few bad exchanges drive it into minutes. Here a \
            backoff is 60 s at most.",
    },
    Decay::Halve,
);

/// The registry entry `gst-coap`.
pub(crate) const GST_COAP: Entry = entry(
    "gst-coap",
    "like fullbackoff2, but divided by 2, then 4, then 8 while answers to first transmissions follow each other",
    "Rathod 2022 §3.2, GST-CoAP",
    Notes {
        status: "Published in a doctoral thesis alone. Never a draft of the IETF.",
        use_when: "`fullbackoff2` would fit, and congestion ends at once, so that the timeout should follow.",
        avoid_when: "Congestion comes back often: two answers in a row bring the timeout down to an eighth.",
        hazards: "The source bounds no timeout, so a few bad exchanges drive it into minutes. Here a \
            backoff is 60 s at most.",
    },
    Decay::Accelerate,
);

const _: () = assert!(size_of::<FullBackoffState>() <= 6);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Draw;
    use crate::testing::{acked, at, exchange, timeouts};

    const ONE: FullBackoff = FullBackoff::DEFAULT;
    const TWO: FullBackoff = FullBackoff { decay: Decay::Halve, ..ONE };
    const GST: FullBackoff =
        FullBackoff { decay: Decay::Accelerate, max_rto: Duration::from_secs(128), ..ONE };

    /// Returns the RTO in seconds after each of `N` answers to first transmissions, which follow exchanges with these numbers
    /// of `retransmits`.
    fn series<const N: usize>(mechanism: &FullBackoff, retransmits: &[u8]) -> [u64; N] {
        let state = &mut mechanism.state();
        for &retransmits in retransmits {
            exchange(mechanism, state, 40_000, retransmits);
        }
        core::array::from_fn(|_| exchange(mechanism, state, 100, 0) / 1_000_000)
    }

    #[test]
    fn full_backoff_starts_an_exchange_with_the_last_timeout_that_was_answered() {
        let state = &mut ONE.state();
        assert_eq!(exchange(&ONE, state, 7_000, 2), 8_000_000);
        assert_eq!(timeouts(&ONE, state, 3).1, [8_000, 16_000, 32_000, 60_000, 0]);
    }

    #[test]
    fn an_answer_to_a_first_transmission_resets_halves_or_divides_the_full_backoff() {
        assert_eq!(series(&ONE, &[3]), [2, 2, 2, 2]);
        assert_eq!(series(&TWO, &[4]), [16, 8, 4, 2]);
        assert_eq!(series(&GST, &[4, 2]), [64, 16, 2, 2]); // Rathod 2022 §3.2: 128 s, 64, 16, 2
    }

    #[test]
    fn a_full_backoff_that_falls_below_ack_timeout_ends() {
        let state = &mut TWO.state();
        exchange(&TWO, state, 3_000, 1);
        exchange(&TWO, state, 100, 0);
        assert_eq!(timeouts(&TWO, state, 0).1[0], 2_000, "2 s are not below 2 s");
        exchange(&TWO, state, 100, 0);
        let half = Cue { draw: Draw::from_bits(1 << 31), ..at(0) };
        assert_eq!(
            TWO.on_start(state, half).1,
            Duration::from_millis(2_500),
            "dithered, for nothing is kept"
        );
    }

    #[test]
    fn a_retransmission_restarts_the_accelerating_decrease_of_full_backoff() {
        let state = &mut GST.state();
        for (ms, retransmits, rto) in
            [(40_000, 4, 32), (40_000, 1, 64), (100, 0, 32), (40_000, 1, 64), (100, 0, 32), (100, 0, 8)]
        {
            assert_eq!(exchange(&GST, state, ms, retransmits) / 1_000_000, rto);
        }
    }

    #[test]
    fn the_dither_of_a_full_backoff_is_at_most_half_of_ack_timeout_and_can_be_switched_off() {
        let off = FullBackoff { redither: Switch::Off, ..ONE };
        for (mechanism, armed) in [(ONE, 8_500), (off, 8_000)] {
            let state = &mut mechanism.state();
            exchange(&mechanism, state, 7_000, 2);
            let half = Cue { draw: Draw::from_bits(1 << 31), ..at(0) };
            assert_eq!(mechanism.on_start(state, half).1, Duration::from_millis(armed));
        }
    }

    #[test]
    fn full_backoff_at_its_bound_is_still_dithered_and_dither_does_not_accumulate() {
        let state = &mut ONE.state();
        let almost = |ms| Cue { draw: Draw::from_bits(u32::MAX), ..at(ms) };
        for _ in 0..2 {
            exchange(&ONE, state, 90_000, 4);
        }
        for _ in 0..9 {
            let (mut exchange, first) = ONE.on_start(state, almost(0));
            assert_eq!(first, Duration::from_secs(61));
            assert_eq!(ONE.on_retransmit(state, &mut exchange, almost(61_000)), first);
            ONE.on_end(state, exchange, acked(62_000, 1), almost(62_000));
            assert_eq!(ONE.gauges(state).rto, Duration::from_secs(60));
        }
    }

    #[test]
    fn a_full_backoff_is_kept_after_a_give_up_unless_configured_otherwise() {
        for (mechanism, rto) in [(ONE, 32), (FullBackoff { give_up: LearnFromGiveUp::Keep, ..ONE }, 2)] {
            let state = &mut mechanism.state();
            let (given_up, _) = timeouts(&mechanism, state, 4);
            mechanism.on_end(state, given_up, Outcome::GivenUp, at(62_000));
            assert_eq!(mechanism.gauges(state).rto, Duration::from_secs(rto));
        }
    }
}
