//! `basic-rto`: one and a half times the last round-trip time.
//!
//! **Source.** Californium 3, class `BasicRto`. Bhalerao et al. 2016 compare with an earlier version of it.
//!
//! **Idea.** Nothing is averaged: the RTO is the last sample times 3/2. Samples of exchanges with up to two retransmissions
//! count, measured from the first transmission. A backoff ends with its exchange. A comparison with this mechanism shows the
//! benefit of averaging.
//!
//! **Differences from the source**
//! * Times are fractions of a microsecond. Californium counts whole milliseconds (preset `californium-3`).
//!
//! **Unsafe as published**
//! * Nothing is dithered, so clients that lost packets together send them again together.
//! * Ambiguous samples count. RFC 8085 §3.1.1 forbids their use.

use crate::fine::Fine;
use crate::parameters::parameters;
use crate::{
    Controller, Cue, Duration, Entry, Gauges, Limits, Marking, Mechanism, Notes, Origin, Outcome, Ratio,
};

parameters! {
    /// An RTO of one and a half times the last round-trip time.
    pub struct BasicRto {
        /// RTO before the first sample.
        initial_rto: Duration = Duration::from_secs(2),
        /// Factor from the last sample to the RTO.
        factor: Ratio = Ratio::new(3, 2),
        /// Number of retransmissions up to which the time of an exchange is still a sample.
        max_weak_n: u8 = 2,
        /// ACK_RANDOM_FACTOR, RFC 7252 §4.8; 1 means no dither.
        ack_random_factor: Ratio = Ratio::new(1, 1),
        /// Lower bound of the RTO. The default is the same as in Californium.
        min_rto: Duration = Duration::from_millis(500),
        /// Upper bound of the RTO. A longer value counts as 268 s.
        max_rto: Duration = Duration::from_secs(32),
        /// Upper bound of one timeout. A longer value counts as 268 s.
        max_timeout: Duration = Duration::from_secs(60),
        /// Unit that samples, the RTO and timeouts are rounded down to; 1us means no rounding.
        tick: Duration = Duration::from_micros(1),
    }
    presets {
        /// Californium 3, which counts whole milliseconds. Unsafe as published: no dither, ambiguous samples, and a backoff
        /// that ends with its exchange.
        "californium-3" => |_| Self { tick: Duration::from_millis(1), ..Self::DEFAULT },
    }
}

/// State of [`BasicRto`] for one destination.
#[derive(Clone, Copy, Debug)]
pub struct BasicState {
    /// The last sample; zero before the first sample.
    last: Fine,
}

/// State of [`BasicRto`] for one exchange.
#[derive(Clone, Copy, Debug)]
pub struct BasicExchange {
    timeout: Fine,
}

impl Controller for BasicRto {
    type State = BasicState;
    type Exchange = BasicExchange;

    fn state(&self) -> BasicState {
        BasicState { last: Fine::ZERO }
    }

    fn on_start(&self, state: &mut BasicState, cue: Cue) -> (BasicExchange, Duration) {
        let rto = self.rto(*state);
        let dithered = rto.dithered(self.ack_random_factor, cue.draw);
        let timeout = dithered.floored(self.tick).min(self.max_timeout.into());
        (BasicExchange { timeout }, timeout.into())
    }

    fn on_retransmit(&self, _: &mut BasicState, exchange: &mut BasicExchange, _: Cue) -> Duration {
        // The state does not change, so the next exchange starts from the last sample again.
        exchange.timeout = exchange.timeout.twice().min(self.max_timeout.into());
        exchange.timeout.into()
    }

    fn on_end(&self, state: &mut BasicState, _: BasicExchange, outcome: Outcome, _: Cue) {
        if let Outcome::Acked(sample) = outcome
            && sample.retransmits <= self.max_weak_n
        {
            // Californium measures from the first transmission, whichever was answered.
            state.last = Fine::sample(sample.since_first, self.tick);
        }
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        self.max_timeout.times(retransmits.into())
    }

    fn limits(&self, state: &BasicState) -> Limits {
        Limits::with_gauges(self.gauges(state), Marking::None)
    }

    /// Reports the last sample as SRTT, because nothing is smoothed.
    #[inline(always)]
    fn gauges(&self, state: &BasicState) -> Gauges {
        let srtt = (state.last > Fine::ZERO).then(|| state.last.into());
        Gauges { rto: self.rto(*state).into(), srtt, ..Gauges::default() }
    }
}

impl BasicRto {
    fn rto(&self, state: BasicState) -> Fine {
        let rto = if state.last > Fine::ZERO {
            state.last.by(self.factor).floored(self.tick)
        } else {
            self.initial_rto.into()
        };
        rto.min(self.max_rto.into()).at_least(self.min_rto)
    }
}

/// The registry entry `basic-rto`.
pub(crate) const BASIC_RTO: Entry = Entry {
    name: "basic-rto",
    summary: "one and a half times the last round-trip time, nothing smoothed",
    source: "Californium 3, BasicRto",
    origin: Origin::Published,
    notes: Notes {
        status: "Code alone: Californium 3. A paper measured an earlier version of it.",
        use_when: "Comparing: it shows what smoothing is worth.",
        avoid_when: "Always, in a network.",
        hazards: "The timeouts have no dither, and samples of retransmitted exchanges count, which RFC 8085 §3.1.1 \
            forbids. One odd sample is the next RTO.",
    },
    mechanism: Mechanism::BasicRto(BasicRto::DEFAULT),
};

const _: () = assert!(size_of::<BasicState>() <= 5);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{exchange, timeouts};

    const BASIC: BasicRto = BasicRto::DEFAULT;

    #[test]
    fn the_rto_of_basic_depends_on_the_last_sample_only() {
        let state = &mut BASIC.state();
        let rto = [(1_000, 0), (4_000, 1), (3_000, 2), (60_000, 3), (200, 0)]
            .map(|(ms, retransmits)| exchange(&BASIC, state, ms, retransmits));
        assert_eq!(rto, [1_500_000, 6_000_000, 4_500_000, 4_500_000, 500_000]);
    }

    #[test]
    fn basic_arms_at_least_half_a_second_and_doubles_from_there() {
        let state = &mut BASIC.state();
        exchange(&BASIC, state, 200, 0);
        assert_eq!(timeouts(&BASIC, state, 4).1, [500, 1_000, 2_000, 4_000, 8_000]);
    }
}
