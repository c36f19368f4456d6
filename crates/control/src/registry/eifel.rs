//! `coap-eifel`: the Eifel retransmission timer for CoAP.
//!
//! **Source.** Rathod 2022 (doctoral thesis) §4.3, after Ludwig and Sklower 2000. The preset `contiki` follows Rathod's code.
//!
//! **Idea.** An estimator with a gain of 1/3 follows a rising round-trip time at once and a falling one slowly. A sample
//! below the average does not lower the variation, and the variation rises faster than it decays. The RTO is never below
//! the last sample and two ticks.
//!
//! **Readings where the sources are open**
//! * The thesis writes the initial RTO as "2 × ticks". The 2 s of ACK_TIMEOUT are meant.
//! * The first sample r makes SRTT = r and RTTVAR = r/2, like in RFC 6298 §2.2.
//! * A backoff is kept until the next unambiguous sample (Karn), like in TCP and in Rathod's code. Without it no unambiguous
//!   sample would ever come once the round-trip time has outgrown the RTO.
//!
//! **Differences from the source**
//! * The gain is constant. Ludwig and Sklower divide it by the number of segments in flight. This mechanism assumes one
//!   sample in each round trip.
//! * The RTO is 50 ms at least (`min_rto`), and the RTO and every timeout are 60 s at most (`max_rto`).
//! * The preset `contiki` does not reproduce that Rathod's code keeps its averages in whole ticks of 1/128 s, which is up
//!   to 8 ms each. It does reproduce the rest: averages that start at zero, so that the first sample is like any other; a
//!   kept backoff that is dithered again; no bounds; no wait after the last retransmission.
//!
//! **Unsafe as published**
//! * Timeouts have no upper bound.

use crate::estimator::{Estimator, GRANULARITY, MIN_RTO, UNBOUNDED};
use crate::fine::Fine;
use crate::karn::KeptBackoff;
use crate::parameters::{Switch, choice, parameters};
use crate::{
    Controller, Cue, Duration, Entry, Gauges, Limits, Marking, Mechanism, Notes, Origin, Outcome, Ratio,
};

parameters! {
    /// The Eifel retransmission timer for CoAP.
    pub struct CoapEifel {
        /// RTO before the first sample, Rathod 2022 §4.3.
        initial_rto: Duration = Duration::from_secs(2),
        /// Lower bound of the RTO, 50 ms by default: a quarter of the 200 ms of Linux, and longer than delays of
        /// schedulers and clock ticks of 10 ms. The source has no lower bound.
        min_rto: Duration = MIN_RTO,
        /// Upper bound of the RTO and of every timeout; RFC 8085 §3.1.1 asks for 60 s at least. A longer value counts
        /// as 268 s.
        max_rto: Duration = Duration::from_secs(60),
        /// ACK_RANDOM_FACTOR: the first timeout is random, U(RTO, ACK_RANDOM_FACTOR·RTO), RFC 7252 §4.2.
        ack_random_factor: Ratio = Ratio::new(3, 2),
        /// The granularity of the clock: the RTO is at least the last sample plus two ticks, Ludwig and Sklower 2000.
        tick: Duration = GRANULARITY,
        /// How the first sample sets SRTT and RTTVAR.
        first_sample: FirstSample = FirstSample::Rfc6298,
        /// Whether a backoff outlives its exchange until the next unambiguous sample (Karn).
        keep_backoff: Switch = Switch::On,
        /// Whether a kept backoff is dithered again when the next exchange starts from it.
        redither: Switch = Switch::Off,
        /// Whether the endpoint waits for an answer to the last retransmission, RFC 7252 §4.2.
        final_wait: Switch = Switch::On,
    }
    presets {
        /// Rathod's implementation for Contiki's Erbium. Unsafe as published: timeouts have neither a lower nor an
        /// upper bound.
        "contiki" => |_| Self {
            min_rto: UNBOUNDED,
            max_rto: Duration::from_secs(268),
            tick: Duration::from_micros(7_813),
            first_sample: FirstSample::Zero,
            redither: Switch::On,
            final_wait: Switch::Off,
            ..Self::DEFAULT
        },
    }
}

choice! {
    /// How the first sample r sets SRTT and RTTVAR.
    pub enum FirstSample {
        /// SRTT = r, RTTVAR = r/2 (RFC 6298 §2.2).
        Rfc6298 = "rfc6298",
        /// SRTT and RTTVAR are 0 at first, and the first sample is treated like all others.
        Zero = "zero",
    }
}

/// State of [`CoapEifel`] for one destination.
#[derive(Clone, Copy, Debug)]
pub struct EifelState {
    estimator: Estimator,
    rto: Fine,
    backoff: KeptBackoff,
}

/// State of [`CoapEifel`] for one exchange.
#[derive(Clone, Copy, Debug)]
pub struct EifelExchange {
    timeout: Fine,
}

/// GAIN, the weight of a new sample in SRTT, for one sample in each round trip, Ludwig and Sklower 2000.
const GAIN: Ratio = Ratio::new(1, 3);
/// GAIN², the weight with which RTTVAR decays.
const GAIN_SQUARED: Ratio = Ratio::new(1, 9);

impl Controller for CoapEifel {
    type State = EifelState;
    type Exchange = EifelExchange;

    fn state(&self) -> EifelState {
        let rto = self.initial_rto.min(self.max_rto).into();
        EifelState { estimator: Estimator::new(), rto, backoff: KeptBackoff::NONE }
    }

    fn on_start(&self, state: &mut EifelState, cue: Cue) -> (EifelExchange, Duration) {
        let rto = self.rto(state);
        // A kept backoff grew from a timeout that was dithered.
        let dither = if state.backoff.kept().is_some() && !self.redither.is_on() {
            Fine::ZERO
        } else {
            rto.by(self.ack_random_factor.above_one()).drawn(cue.draw)
        };
        let timeout = (rto + dither).min(self.max_rto.into());
        (EifelExchange { timeout }, timeout.into())
    }

    fn on_retransmit(&self, state: &mut EifelState, exchange: &mut EifelExchange, _: Cue) -> Duration {
        exchange.timeout = exchange.timeout.twice().min(self.max_rto.into());
        if self.keep_backoff.is_on() {
            state.backoff.keep(exchange.timeout);
        }
        exchange.timeout.into()
    }

    fn on_end(&self, state: &mut EifelState, _: EifelExchange, outcome: Outcome, _: Cue) {
        if let Outcome::Acked(sample) = outcome
            && let Some(rtt) = sample.unambiguous()
        {
            self.learn(state, Fine::from(rtt).max(Fine::SHORTEST));
            state.backoff = KeptBackoff::NONE;
        }
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        self.max_rto.times(retransmits.into())
    }

    fn limits(&self, state: &EifelState) -> Limits {
        let limits = Limits::with_gauges(self.gauges(state), Marking::None);
        Limits { final_wait: self.final_wait.is_on(), ..limits }
    }

    #[inline(always)]
    fn gauges(&self, state: &EifelState) -> Gauges {
        state.estimator.gauges(self.rto(state))
    }
}

impl CoapEifel {
    /// Returns the RTO that exchanges start from: a kept backoff, or else the estimate.
    #[inline(always)]
    fn rto(&self, state: &EifelState) -> Fine {
        state.backoff.kept().unwrap_or(state.rto.at_least(self.min_rto))
    }

    fn learn(&self, state: &mut EifelState, rtt: Fine) {
        let (srtt, rttvar) = match (state.estimator.srtt(), self.first_sample) {
            (Some(srtt), _) => follow(srtt, state.estimator.rttvar(), rtt),
            (None, FirstSample::Zero) => follow(Fine::ZERO, Fine::ZERO, rtt),
            (None, FirstSample::Rfc6298) => (rtt, rtt.halved(1)),
        };
        state.estimator = Estimator::of(srtt, rttvar);
        let two_ticks = Fine::from(self.tick).twice();
        // The weight of RTTVAR is 1/GAIN (Ludwig and Sklower 2000).
        state.rto = (srtt + rttvar.times(3)).max(rtt + two_ticks).min(self.max_rto.into());
    }
}

/// Returns SRTT and RTTVAR after the sample `rtt`, from the values before it.
fn follow(srtt: Fine, rttvar: Fine, rtt: Fine) -> (Fine, Fine) {
    // A fall does not ask for a longer RTO, so RTTVAR stays.
    let rttvar = if rtt < srtt {
        rttvar
    } else {
        let rise = rtt - srtt;
        // It rises with GAIN and decays with GAIN² (Ludwig and Sklower 2000).
        rttvar.blend(if rise >= rttvar { GAIN } else { GAIN_SQUARED }, rise)
    };
    (srtt.blend(GAIN, rtt), rttvar)
}

/// The registry entry `coap-eifel`.
pub(crate) const COAP_EIFEL: Entry = Entry {
    name: "coap-eifel",
    summary: "gain 1/3, up at once and down slowly, never below the last round-trip time",
    source: "Rathod 2022 §4.3; Ludwig, Sklower 2000",
    origin: Origin::Published,
    notes: Notes {
        status: "A doctoral thesis, after a paper of 2000 on TCP.",
        use_when: "The round-trip time rises fast and falls slowly, as with a queue that fills.",
        avoid_when: "Exchanges are minutes apart: nothing ages.",
        hazards: "The code of the thesis bounds no timeout (preset `contiki`). Here it is 60 s at most.",
    },
    mechanism: Mechanism::CoapEifel(CoapEifel::DEFAULT),
};

const _: () = assert!(size_of::<EifelState>() <= 20);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{exchange, timeouts};

    const EIFEL: CoapEifel = CoapEifel::DEFAULT;

    #[test]
    fn eifel_follows_a_rising_round_trip_time_at_once_and_a_falling_one_slowly() {
        let state = &mut EIFEL.state();
        state.estimator = Estimator::of(milliseconds(100), milliseconds(50));
        // Two independent implementations agree on these.
        let rto = [100, 90, 80, 200, 100].map(|ms| (exchange(&EIFEL, state, ms, 0) + 50) / 100);
        assert_eq!(rto, [2_333, 2_300, 2_244, 3_252, 3_160]);
    }

    fn milliseconds(ms: u64) -> Fine {
        Fine::from(Duration::from_millis(ms))
    }

    #[test]
    fn the_rto_of_eifel_is_at_least_two_ticks_above_the_last_sample() {
        let state = &mut EIFEL.state();
        for _ in 0..100 {
            exchange(&EIFEL, state, 100, 0);
        }
        assert_eq!(exchange(&EIFEL, state, 100, 0), 102_000);
    }

    #[test]
    fn eifel_keeps_a_backoff_without_dither_until_a_strong_sample() {
        let state = &mut EIFEL.state();
        assert_eq!(exchange(&EIFEL, state, 5_000, 2), 8_000_000);
        assert_eq!(timeouts(&EIFEL, state, 0).1[0], 8_000);
        assert_eq!(exchange(&EIFEL, state, 1_000, 0), 2_500_000);
        let forgetful = CoapEifel { keep_backoff: Switch::Off, ..EIFEL };
        assert_eq!(exchange(&forgetful, &mut forgetful.state(), 5_000, 2), 2_000_000);
    }

    #[test]
    fn the_contiki_preset_of_eifel_starts_with_averages_of_zero() {
        let mut contiki = EIFEL;
        contiki.set("preset", "contiki").unwrap();
        assert_eq!(exchange(&contiki, &mut contiki.state(), 900, 0), 1_200_000); // 4/3 r
    }
}
