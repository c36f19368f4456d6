//! `linux-rto`: RFC 6298, TCP's timer as papers on CoAP use it for comparison.
//!
//! Idea: SRTT + 4·RTTVAR from unambiguous samples alone (Karn); double at every timeout; keep what was doubled until a
//! sample without ambiguity tells better.
//!
//! Differences from the source: the initial RTO is 2 s, CoAP's ACK_TIMEOUT, where RFC 6298 §2.1 says 1 s. Of the Linux
//! kernel only the name: its RTTVAR follows the greatest deviation within a round trip and its lower bound is 200 ms.
//! There is no dither, so clients that started together retransmit together: a baseline, not a recommendation.

use crate::estimator::{Estimator, FIRST_RTTVAR};
use crate::fine::Fine;
use crate::parameters::parameters;
use crate::{Controller, Cue, Duration, Entry, Gauges, Limits, Marking, Mechanism, Outcome};

parameters! {
    /// TCP's retransmission timer.
    pub struct LinuxRto {
        /// RTO before the first sample, RFC 6298 §2.1.
        initial_rto: Duration = Duration::from_secs(2),
        /// Lower bound of the RTO, RFC 6298 §2.4.
        min_rto: Duration = Duration::from_secs(1),
        /// Upper bound of the RTO, backed off or not, RFC 6298 §2.5: 60 s at least. Counts as 268 s if above.
        max_rto: Duration = Duration::from_secs(60),
        /// K, the weight of RTTVAR, RFC 6298 §2.3.
        k: u8 = 4,
        /// G, the granularity of the clock and the least weight of RTTVAR, RFC 6298 §2.3.
        granularity: Duration = Duration::from_micros(1),
    }
    presets {
        /// With the initial RTO that RFC 6298 §2.1 gives TCP, 1 s.
        "rfc6298" => |_| Self { initial_rto: Duration::from_secs(1), ..Self::DEFAULT },
    }
}

/// What [`LinuxRto`] remembers of one destination.
#[derive(Clone, Copy, Debug)]
pub struct LinuxState {
    estimator: Estimator,
    /// What the next exchange starts from: the estimate, or what a timeout made of it.
    rto: Fine,
}

/// What [`LinuxRto`] remembers of one exchange.
#[derive(Clone, Copy, Debug)]
pub struct LinuxExchange {
    timeout: Fine,
}

impl Controller for LinuxRto {
    type State = LinuxState;
    type Exchange = LinuxExchange;

    fn state(&self) -> LinuxState {
        LinuxState { estimator: Estimator::NEW, rto: self.bounded(self.initial_rto.into()) }
    }

    fn on_start(&self, state: &mut LinuxState, _: Cue) -> (LinuxExchange, Duration) {
        (LinuxExchange { timeout: state.rto }, state.rto.into())
    }

    fn on_retransmit(&self, state: &mut LinuxState, exchange: &mut LinuxExchange, _: Cue) -> Duration {
        exchange.timeout = self.bounded(exchange.timeout.doubled(1));
        // Exchanges that overlap lose the same packets: each backs off for itself, and the longest is kept.
        state.rto = state.rto.max(exchange.timeout);
        exchange.timeout.into()
    }

    fn on_end(&self, state: &mut LinuxState, _: LinuxExchange, outcome: Outcome, _: Cue) {
        if let Outcome::Acked(sample) = outcome
            && let Some(rtt) = sample.unambiguous()
        {
            state.estimator.update(rtt, FIRST_RTTVAR);
            if let Some(rto) = state.estimator.rto(self.k, self.granularity) {
                state.rto = self.bounded(rto);
            }
        }
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        // A kept backoff may start at the bound.
        self.max_rto.max(self.min_rto).times(retransmits.into())
    }

    fn limits(&self, state: &LinuxState) -> Limits {
        Limits::with_gauges(self.gauges(state), Marking::None)
    }

    fn gauges(&self, state: &LinuxState) -> Gauges {
        state.estimator.gauges(state.rto)
    }
}

impl LinuxRto {
    fn bounded(&self, rto: Fine) -> Fine {
        rto.min(self.max_rto.into()).max(self.min_rto.into())
    }
}

/// `linux-rto`.
pub(crate) const LINUX_RTO: Entry = Entry {
    name: "linux-rto",
    summary: "TCP's timer: SRTT + 4·RTTVAR of unambiguous samples, a backed-off RTO kept until the next of them",
    source: "RFC 6298",
    mechanism: Mechanism::LinuxRto(LinuxRto::DEFAULT),
};

// Published: 21 bytes.
const _: () = assert!(size_of::<LinuxState>() <= 21);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, exchange, timeouts};

    const LINUX: LinuxRto = LinuxRto::DEFAULT;

    #[test]
    fn the_first_sample_makes_an_rto_of_three_round_trips() {
        assert_eq!(exchange(&LINUX, &mut LINUX.state(), 600, 0), 1_800_000);
    }

    #[test]
    fn an_ambiguous_sample_is_no_sample_and_the_backoff_is_kept() {
        let state = &mut LINUX.state();
        assert_eq!(exchange(&LINUX, state, 5_000, 1), 4_000_000);
        assert_eq!(LINUX.gauges(state).srtt, None);
        assert_eq!(timeouts(&LINUX, state, 4).1, [4_000, 8_000, 16_000, 32_000, 60_000]);
    }

    #[test]
    fn a_strong_sample_ends_the_backoff() {
        let state = &mut LINUX.state();
        exchange(&LINUX, state, 30_000, 4);
        assert_eq!(exchange(&LINUX, state, 100, 0), 1_000_000); // 0.3 s, below the bound of 1 s
    }

    #[test]
    fn a_give_up_leaves_the_next_exchange_the_backed_off_rto() {
        let state = &mut LINUX.state();
        let (given_up, _) = timeouts(&LINUX, state, 2);
        LINUX.on_end(state, given_up, Outcome::GivenUp, at(14_000));
        assert_eq!(timeouts(&LINUX, state, 0).1[0], 8_000);
    }

    #[test]
    fn exchanges_that_overlap_back_off_once_not_twice() {
        let state = &mut LINUX.state();
        let (mut one, _) = LINUX.on_start(state, at(0));
        let (mut other, _) = LINUX.on_start(state, at(1));
        LINUX.on_retransmit(state, &mut one, at(2_000));
        LINUX.on_retransmit(state, &mut other, at(2_001));
        assert_eq!(LINUX.gauges(state).rto, Duration::from_secs(4));
    }
}
