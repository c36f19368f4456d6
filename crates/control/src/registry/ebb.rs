//! `ebb`, `ebb-plain`: an RTO that retransmits soon while the path has no standing queue, and waits longer while it has
//! one.
//!
//! **Source.** Coapace; docs/ebb.md describes and measures it. Nobody else published it.
//!
//! **Idea.** The path is *calm* while SRTT is close to the least round-trip time: it has no standing queue, so losses
//! are errors of links, and a retransmission waits for the RTO alone. Otherwise the path is *busy*. On a busy path no
//! first timeout is below ACK_TIMEOUT. After a loss on a busy path, later exchanges start from the backed-off timeout,
//! until an answer to a first transmission shows that the queue has ebbed. While nothing is measured, timeouts triple
//! and then double.
//!
//! With a marking every answer is a sample, and shows whether a retransmission was spurious. After a spurious
//! retransmission no timeout is held. Without a marking, the only retransmission was spurious if its answer came in
//! less than half of the least round-trip time. Then the answer is a sample. Other answers to retransmitted messages
//! are not samples. If they come later than on a calm path, the timeout is held, too.
//!
//! **Unsafe?** Timeouts grow by half, not twofold. CoCoA's timeouts above 3 s grow by half, too. RFC 8085 §3.1.1 asks
//! for an exponential backoff and names no base. The round-trip time does not show a queue of only a few packets. In
//! front of such a queue, clients with `ebb` get up to a fifth more throughput than clients with `default`.

use crate::estimator::{Estimator, GRANULARITY, Learning, MIN_RTO};
use crate::fine::Fine;
use crate::parameters::parameters;
use crate::{
    Controller, Cue, Duration, Entry, Gauges, Limits, Marking, Mechanism, Notes, Origin, Outcome, Ratio,
};

parameters! {
    /// An RTO that retransmits soon while the path has no standing queue, and waits longer while it has one.
    pub struct Ebb {
        /// RTO before the first sample, the ACK_TIMEOUT of RFC 7252 §4.8.
        initial_rto: Duration = Duration::from_secs(2),
        /// Lower bound of the RTO.
        min_rto: Duration = MIN_RTO,
        /// Upper bound of a first timeout: EXCHANGE_LIFETIME, after which a peer forgets the message (RFC 7252 §4.8.2).
        max_rto: Duration = Duration::from_secs(247),
        /// Upper bound of the timeouts of retransmissions (RFC 8085 §3.1.1). A first timeout above it is not
        /// lengthened.
        max_timeout: Duration = Duration::from_secs(60),
        /// K, the weight of RTTVAR in the RTO.
        k: u8 = 3,
        /// The weight of a new deviation in RTTVAR.
        rttvar_gain: Ratio = Ratio::new(1, 2),
        /// Greatest factor of the dither of a first timeout.
        dither: Ratio = Ratio::new(5, 4),
        /// Factor of the first backoff of an exchange before the first sample.
        first_blind_backoff: Ratio = Ratio::new(3, 1),
        /// Factor of the later backoffs of an exchange before the first sample.
        blind_backoff: Ratio = Ratio::new(2, 1),
        /// Factor of a backoff after the first sample.
        backoff: Ratio = Ratio::new(3, 2),
        /// The path is calm while SRTT is at most this many times the least round-trip time.
        calm: Ratio = Ratio::new(23, 20),
        /// The path is calm, too, while SRTT is above the least round-trip time by no more than this.
        calm_margin: Duration = Duration::from_millis(60),
        /// Lower bound of a first timeout while the path is busy, the ACK_TIMEOUT of RFC 7252 §4.8.
        busy_rto: Duration = Duration::from_secs(2),
        /// Each sample moves the least round-trip time towards SRTT by this share of the distance, so that a longer
        /// route is learnt.
        forget: Ratio = Ratio::new(1, 64),
        /// How transmissions carry their ordinal.
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
    /// The least round-trip time, which slowly follows SRTT upwards; zero before the first sample.
    least: Fine,
    /// The backed-off timeout that later exchanges start from; zero if no timeout is held.
    held: Fine,
}

/// State of [`Ebb`] for one exchange.
#[derive(Clone, Copy, Debug)]
pub struct EbbExchange {
    timeout: Fine,
    /// True if a retransmission has departed.
    backed_off: bool,
}

impl Controller for Ebb {
    type State = EbbState;
    type Exchange = EbbExchange;

    fn state(&self) -> EbbState {
        EbbState { estimator: Estimator::new(), least: Fine::stored_zero(), held: Fine::stored_zero() }
    }

    fn on_start(&self, state: &mut EbbState, cue: Cue) -> (EbbExchange, Duration) {
        let timeout = self.rto(state).dithered(self.dither, cue.draw).at_most(self.max_rto);
        (EbbExchange { timeout, backed_off: false }, timeout.into())
    }

    fn on_retransmit(&self, state: &mut EbbState, exchange: &mut EbbExchange, _: Cue) -> Duration {
        let backed_off = core::mem::replace(&mut exchange.backed_off, true);
        let factor = match (state.estimator.is_measured(), backed_off) {
            (true, _) => self.backoff,
            // The first timeout may be far too short. To triple it once saves a copy before an answer that takes a minute.
            (false, false) => self.first_blind_backoff,
            (false, true) => self.blind_backoff,
        };
        // A first timeout above the bound stays as it is.
        let grown = exchange.timeout.by(factor).min(self.max_timeout.into());
        exchange.timeout = exchange.timeout.max(grown);
        exchange.timeout.into()
    }

    fn on_end(&self, state: &mut EbbState, exchange: EbbExchange, outcome: Outcome, _: Cue) {
        let sample = match outcome {
            Outcome::Acked(sample) => sample,
            Outcome::GivenUp => {
                // No answer has shown that the queue has gone.
                state.held = exchange.timeout;
                return;
            }
            Outcome::Reset | Outcome::Cancelled => return,
        };
        let (rtt, was_spurious) = match sample.answered {
            Some(answer) => (Some(answer.since), answer.ordinal < sample.retransmits),
            // The last transmission cannot have been answered so soon, so the one before was. By half, because answers that jitter
            // are now and then a little sooner than any before: taken for the answer to the first transmission, such a one would
            // raise the RTO by the whole timeout, and make the next mistake likely.
            None if sample.retransmits == 1 && Fine::from(sample.since_last) < state.least.halved(1) => {
                (Some(sample.since_first), true)
            }
            None => (sample.unambiguous(), false),
        };
        if let Some(rtt) = rtt {
            self.learn(state, rtt);
        }
        let is_lost = sample.retransmits > 0 && !was_spurious;
        // On a calm path the last transmission is answered soon after it departed. An answer that comes later may be to an
        // earlier one, on a path that has become longer: Karn's algorithm holds the timeout until the round trip is known.
        let late = if rtt.is_some() { Fine::ZERO } else { sample.since_last.into() };
        state.held = if is_lost && !self.is_calm(state, late) { exchange.timeout } else { Fine::ZERO };
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        self.max_rto.max(self.max_timeout).times(retransmits.into())
    }

    fn limits(&self, state: &EbbState) -> Limits {
        Limits::with_gauges(self.gauges(state), self.marking)
    }

    #[inline(always)]
    fn gauges(&self, state: &EbbState) -> Gauges {
        state.estimator.gauges(self.rto(state))
    }
}

impl Ebb {
    /// Returns the RTO from which the next exchange starts, before dither: the estimate, or a longer held timeout.
    #[inline(never)]
    fn rto(&self, state: &EbbState) -> Fine {
        let Some(estimate) = state.estimator.rto(self.k, self.granularity) else {
            return Fine::from(self.initial_rto).max(state.held);
        };
        let rto = estimate.at_least(self.min_rto).at_most(self.max_rto);
        let rto = if self.is_calm(state, Fine::ZERO) { rto } else { rto.max(self.busy_rto.into()) };
        rto.max(state.held)
    }

    /// Returns whether the path has no standing queue: both SRTT and the delay `late` of an answer are close to the
    /// least round-trip time. Returns false before the first sample.
    #[inline(never)]
    fn is_calm(&self, state: &EbbState, late: Fine) -> bool {
        // On a short path one packet more in the queue exceeds the share, so there is a margin, too.
        let bound = state.least.by(self.calm).max(state.least + self.calm_margin.into());
        state.estimator.srtt().is_some_and(|srtt| srtt.max(late) <= bound)
    }

    fn learn(&self, state: &mut EbbState, rtt: Duration) {
        let learning = Learning { rttvar_gain: self.rttvar_gain, ..Learning::RFC6298 };
        let rtt = Fine::sample(rtt, learning.tick);
        state.estimator.take(rtt, learning);
        let srtt = state.estimator.srtt().unwrap_or(rtt);
        // It drifts towards SRTT, so that a longer route is learnt, but never above a sample.
        let risen = if state.least > Fine::ZERO { state.least.blend(self.forget, srtt) } else { rtt };
        state.least = risen.min(rtt);
    }
}

const fn entry(name: &'static str, summary: &'static str, notes: Notes, marking: Marking) -> Entry {
    let mechanism = Mechanism::Ebb(Ebb { marking, ..Ebb::DEFAULT });
    Entry { name, summary, source: "Coapace, docs/ebb.md", origin: Origin::Coapace, notes, mechanism }
}

/// The registry entry `ebb`.
pub(crate) const EBB: Entry = entry(
    "ebb",
    "soon again where the round-trip time shows no queue; where it shows one, ACK_TIMEOUT at least, and what a loss led to is held",
    Notes {
        status: "This project's own: no other source, and no standing anywhere.",
        use_when: "You cannot say beforehand whether losses will be errors or congestion, and a byte in the token of \
            retransmissions can be spared.",
        avoid_when: "Exchanges are minutes apart: estimates do not age, so an old one counts like a new one.",
        hazards: "A queue of a few packets does not show in the round-trip time. Before such a one its clients take up to a \
            fifth more than clients with `default` do.",
    },
    Marking::TokenOnRetransmit,
);

/// The registry entry `ebb-plain`.
pub(crate) const EBB_PLAIN: Entry = entry(
    "ebb-plain",
    "`ebb` without the ordinal in the token of retransmissions",
    Notes {
        status: "This project's own: no other source, and no standing anywhere.",
        use_when: "`ebb` would fit, and nothing on the wire may change.",
        avoid_when: "Many clients share a queue that is never full: an exchange that was retransmitted is not a sample, so the \
            estimate follows a rise late.",
        hazards: "A queue of a few packets does not show in the round-trip time, like with `ebb`. Without a marking a rise of the \
            round-trip time is learnt late.",
    },
    Marking::None,
);

const _: () = assert!(size_of::<EbbState>() <= 24);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{acked, at, exchange, timeouts};
    use crate::{Answer, Draw, Sample};

    const EBB: Ebb = Ebb { marking: Marking::TokenOnRetransmit, ..Ebb::DEFAULT };

    /// Ends an exchange after this many retransmissions, with an answer to transmission `ordinal` that arrived `ms` after it.
    fn answered(state: &mut EbbState, ms: u64, ordinal: u8, retransmits: u8) {
        let (exchange, _) = timeouts(&EBB, state, retransmits);
        let since = Duration::from_millis(ms);
        let sample = Sample {
            answered: Some(Answer { ordinal, since }),
            ..Sample::unmarked(since, since, retransmits)
        };
        EBB.on_end(state, exchange, Outcome::Acked(sample), at(ms));
    }

    fn rto_ms(state: &EbbState) -> u64 {
        EBB.gauges(state).rto.as_micros() / 1_000
    }

    #[test]
    fn before_the_first_sample_ebb_triples_the_timeout_and_then_doubles_it() {
        assert_eq!(timeouts(&EBB, &mut EBB.state(), 4).1, [2_000, 6_000, 12_000, 24_000, 48_000]);
    }

    #[test]
    fn on_a_calm_path_ebb_backs_off_by_a_factor_of_1_5_from_the_round_trip_time() {
        let state = &mut EBB.state();
        for _ in 0..20 {
            answered(state, 400, 0, 0);
        }
        // RTTVAR is next to zero, so the margin is the granularity of 1 ms.
        assert_eq!(timeouts(&EBB, state, 3).1, [401, 602, 902, 1_353, 0]);
    }

    #[test]
    fn on_a_calm_path_a_loss_does_not_change_the_rto_of_ebb() {
        let state = &mut EBB.state();
        answered(state, 400, 0, 0);
        answered(state, 400, 3, 3);
        assert_eq!(state.held, Fine::ZERO);
        assert!(rto_ms(state) < 1_000);
    }

    #[test]
    fn on_a_busy_path_the_first_timeout_of_ebb_is_at_least_ack_timeout() {
        let state = &mut EBB.state();
        answered(state, 100, 0, 0);
        for _ in 0..20 {
            answered(state, 300, 0, 0);
        }
        assert!(state.estimator.rto(3, GRANULARITY).unwrap() < Duration::from_millis(500).into());
        assert_eq!(rto_ms(state), 2_000);
    }

    #[test]
    fn on_a_busy_path_ebb_keeps_its_backoff_until_a_first_transmission_is_answered() {
        let state = &mut EBB.state();
        answered(state, 500, 0, 0);
        for _ in 0..10 {
            answered(state, 3_000, 0, 0);
        }
        let rto = rto_ms(state);
        answered(state, 3_000, 2, 2);
        assert!(
            (rto * 9 / 4 - 100..=rto * 9 / 4 + 500).contains(&rto_ms(state)),
            "{} after {rto}",
            rto_ms(state)
        );
        answered(state, 3_000, 0, 0);
        assert!(rto_ms(state) <= rto);
    }

    #[test]
    fn a_spurious_retransmission_leaves_nothing_behind_and_its_answer_is_a_sample() {
        let state = &mut EBB.state();
        answered(state, 500, 0, 0);
        answered(state, 3_000, 0, 2);
        assert_eq!(state.held, Fine::ZERO);
        assert_eq!(EBB.gauges(state).srtt, Some(Duration::from_micros(812_500)));
    }

    #[test]
    fn without_a_marking_an_answer_in_half_of_the_least_time_shows_a_spurious_retransmission() {
        let plain = Ebb::DEFAULT;
        let state = &mut plain.state();
        exchange(&plain, state, 500, 0);
        let after = |ms, retransmits| {
            let mut state =
                EbbState { estimator: Estimator::of(Duration::from_secs(2).into(), Fine::ZERO), ..*state };
            let (open, _) = timeouts(&plain, &mut state, retransmits);
            let sample = Sample::unmarked(Duration::from_secs(10), Duration::from_millis(ms), retransmits);
            plain.on_end(&mut state, open, Outcome::Acked(sample), at(10_000));
            (state.held > Fine::ZERO, plain.gauges(&state).srtt)
        };
        assert_eq!(after(249, 1), (false, Some(Duration::from_secs(3))));
        assert_eq!(after(250, 1), (true, Some(Duration::from_secs(2))));
        assert_eq!(
            after(249, 2),
            (true, Some(Duration::from_secs(2))),
            "either of two may have been answered"
        );
    }

    #[test]
    fn ebb_learns_a_sudden_rise_of_the_round_trip_time_without_a_marking() {
        for marking in [Marking::None, Marking::TokenOnRetransmit] {
            let ebb = Ebb { marking, ..Ebb::DEFAULT };
            let state = &mut ebb.state();
            for _ in 0..20 {
                exchange(&ebb, state, 20, 0);
            }
            // From now on every answer comes 1.2 s after the first transmission.
            let copies = [(); 8].map(|()| {
                let (mut open, mut timeout) = ebb.on_start(state, at(0));
                let (mut departed, mut retransmits) = (0, 0);
                while retransmits < 4 && departed + timeout.as_micros() / 1_000 < 1_200 {
                    departed += timeout.as_micros() / 1_000;
                    retransmits += 1;
                    timeout = ebb.on_retransmit(state, &mut open, at(departed));
                }
                let since = Duration::from_millis;
                let sample = Sample::unmarked(since(1_200), since(1_200 - departed), retransmits);
                ebb.on_end(state, open, Outcome::Acked(sample), at(1_200));
                retransmits
            });
            assert_eq!(copies, [4, 2, 1, 1, 0, 0, 0, 0], "{marking:?}");
        }
    }

    #[test]
    fn after_a_give_up_the_next_exchange_of_ebb_begins_with_the_last_timeout() {
        let state = &mut EBB.state();
        let (given_up, _) = timeouts(&EBB, state, 4);
        EBB.on_end(state, given_up, Outcome::GivenUp, at(92_000));
        assert_eq!(rto_ms(state), 48_000);
        EBB.on_end(state, given_up, acked(700, 0), at(93_000));
        assert_eq!(rto_ms(state), 1_750); // 700 + 3·350
        let (given_up, armed) = timeouts(&EBB, state, 1);
        EBB.on_end(state, given_up, Outcome::GivenUp, at(100_000));
        assert_eq!(rto_ms(state), armed[1], "on a calm path, too");
    }

    #[test]
    fn ebb_follows_a_longer_route() {
        let state = &mut EBB.state();
        answered(state, 200, 0, 0);
        for _ in 0..5 {
            answered(state, 600, 0, 0);
        }
        assert_eq!(rto_ms(state), 2_000);
        for _ in 0..200 {
            answered(state, 600, 0, 0);
        }
        assert_eq!(rto_ms(state), 601);
    }

    #[test]
    fn ebb_waits_for_round_trips_above_a_minute_and_stops_backoff_at_a_minute() {
        let state = &mut EBB.state();
        for _ in 0..40 {
            answered(state, 100_000, 0, 0);
        }
        assert_eq!(timeouts(&EBB, state, 2).1[..3], [100_001, 100_001, 100_001]);
        let state = &mut EBB.state();
        answered(state, 10_000, 0, 0);
        assert_eq!(timeouts(&EBB, state, 4).1, [25_000, 37_500, 56_250, 60_000, 60_000]);
    }

    #[test]
    fn the_dither_of_ebb_adds_at_most_a_quarter() {
        let mut state = EBB.state();
        let cue = Cue { draw: Draw::from_bits(u32::MAX), ..at(0) };
        let (_, timeout) = EBB.on_start(&mut state, cue);
        assert_eq!(timeout.as_micros(), 2_500_000);
    }
}
