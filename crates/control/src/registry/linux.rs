//! `linux-rto`: the retransmission timer of TCP, with which papers on CoAP compare.
//!
//! **Source.** RFC 6298 (Proposed Standard, for TCP). The preset `californium-3` follows the class `LinuxRto` of Californium 3.
//!
//! **Idea.** The RTO is SRTT + 4·RTTVAR from unambiguous samples alone. A timeout doubles it, and the doubled RTO is kept
//! until the next unambiguous sample (Karn).
//!
//! **Differences from the source**
//! * The initial RTO is 2 s, the ACK_TIMEOUT of CoAP. RFC 6298 §2.1 has 1 s (preset `rfc6298`).
//! * Despite the name, RTTVAR follows RFC 6298. With `rttvar=linux` it follows the kernel: the greatest deviation
//!   within a round trip counts, and a falling round-trip time hardly counts as a deviation. Californium does this with
//!   one sample a round trip, keeps no backoff, and has an RTO of half a second at least.
//!
//! **Unsafe as published**
//! * Nothing is dithered, so clients that lost packets together send them again together. This mechanism does the same.
//! * In Californium a backoff ends with its exchange, so an RTO that is too short is corrected by no sample.

use crate::estimator::{Estimator, GRANULARITY, Learning};
use crate::fine::Fine;
use crate::parameters::{Switch, choice, parameters};
use crate::{
    Controller, Cue, Duration, Entry, Gauges, Limits, Marking, Mechanism, Notes, Origin, Outcome, Ratio,
};

parameters! {
    /// The retransmission timer of TCP.
    pub struct LinuxRto {
        /// RTO before the first sample, RFC 6298 §2.1.
        initial_rto: Duration = Duration::from_secs(2),
        /// Lower bound of the RTO, RFC 6298 §2.4.
        min_rto: Duration = Duration::from_secs(1),
        /// Upper bound of the RTO and of a kept backoff, RFC 6298 §2.5: 60 s at least. A longer value counts as 268 s.
        max_rto: Duration = Duration::from_secs(60),
        /// Upper bound of one timeout. A longer value counts as 268 s.
        max_timeout: Duration = Duration::from_secs(60),
        /// K, the weight of RTTVAR, RFC 6298 §2.3.
        k: u8 = 4,
        /// G, the granularity of the clock and the lower bound of K·RTTVAR, RFC 6298 §2.3.
        granularity: Duration = GRANULARITY,
        /// Which deviation RTTVAR follows.
        rttvar: Rttvar = Rttvar::Rfc6298,
        /// Lower bound of RTTVAR with `rttvar=linux`. The default is a quarter of the 200 ms of Linux.
        min_mdev: Duration = Duration::from_millis(50),
        /// Whether a backoff outlives its exchange until the next unambiguous sample (Karn).
        keep_backoff: Switch = Switch::On,
        /// Unit that SRTT and RTTVAR are rounded to; 1us means no rounding.
        tick: Duration = Duration::from_micros(1),
    }
    presets {
        /// The initial RTO of RFC 6298 §2.1, 1 s.
        "rfc6298" => |_| Self { initial_rto: Duration::from_secs(1), ..Self::DEFAULT },
        /// Californium 3, class LinuxRto, in whole milliseconds. Unsafe as published: no dither, and a backoff ends with its
        /// exchange.
        "californium-3" => |_| Self {
            min_rto: Duration::from_millis(500),
            max_rto: Duration::from_secs(32),
            rttvar: Rttvar::Linux,
            keep_backoff: Switch::Off,
            tick: Duration::from_millis(1),
            ..Self::DEFAULT
        },
    }
}

choice! {
    /// The deviation that RTTVAR follows.
    pub enum Rttvar {
        /// The mean deviation (RFC 6298 §2.3).
        Rfc6298 = "rfc6298",
        /// The greatest mean deviation within a round trip (Linux).
        Linux = "linux",
    }
}

/// State of [`LinuxRto`] for one destination.
#[derive(Clone, Copy, Debug)]
pub struct LinuxState {
    estimator: Estimator,
    /// The mean deviation, for [`Rttvar::Linux`].
    mdev: Fine,
    /// True after two samples. With [`Rttvar::Linux`] the second sample does not lower RTTVAR.
    settled: bool,
    /// The RTO that the next exchange starts from: the estimate, or a longer backoff.
    rto: Fine,
}

/// State of [`LinuxRto`] for one exchange.
#[derive(Clone, Copy, Debug)]
pub struct LinuxExchange {
    timeout: Fine,
}

impl Controller for LinuxRto {
    type State = LinuxState;
    type Exchange = LinuxExchange;

    fn state(&self) -> LinuxState {
        let rto = self.bounded(self.initial_rto.into());
        LinuxState { estimator: Estimator::new(), mdev: Fine::ZERO, settled: false, rto }
    }

    fn on_start(&self, state: &mut LinuxState, _: Cue) -> (LinuxExchange, Duration) {
        // The draw is not used: TCP does not dither (RFC 6298).
        (LinuxExchange { timeout: state.rto }, state.rto.into())
    }

    fn on_retransmit(&self, state: &mut LinuxState, exchange: &mut LinuxExchange, _: Cue) -> Duration {
        exchange.timeout = exchange.timeout.twice().min(self.max_timeout.into()).max(self.min_rto.into());
        if self.keep_backoff.is_on() {
            // Exchanges that overlap lose the same packets, so their backoffs do not add up: the longest is kept.
            state.rto = state.rto.max(self.bounded(exchange.timeout));
        }
        exchange.timeout.into()
    }

    fn on_end(&self, state: &mut LinuxState, _: LinuxExchange, outcome: Outcome, _: Cue) {
        if let Outcome::Acked(sample) = outcome
            && let Some(rtt) = sample.unambiguous()
        {
            match self.rttvar {
                Rttvar::Rfc6298 => {
                    state.estimator.update(rtt, Learning { tick: self.tick, ..Learning::RFC6298 });
                }
                Rttvar::Linux => self.follow_peaks(state, Fine::sample(rtt, self.tick)),
            }
            if let Some(rto) = state.estimator.rto(self.k, self.granularity) {
                state.rto = self.bounded(rto);
            }
        }
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        // A kept backoff may start at the bound.
        self.max_rto.max(self.max_timeout).max(self.min_rto).times(retransmits.into())
    }

    fn limits(&self, state: &LinuxState) -> Limits {
        Limits::with_gauges(self.gauges(state), Marking::None)
    }

    #[inline(always)]
    fn gauges(&self, state: &LinuxState) -> Gauges {
        state.estimator.gauges(state.rto)
    }
}

impl LinuxRto {
    fn bounded(&self, rto: Fine) -> Fine {
        rto.min(self.max_rto.into()).max(self.min_rto.into())
    }

    /// Updates SRTT and RTTVAR with the sample `rtt` by the rule of the Linux kernel. It assumes one sample in each
    /// round trip.
    fn follow_peaks(&self, state: &mut LinuxState, rtt: Fine) {
        let least = Fine::from(self.min_mdev);
        let Some(srtt) = state.estimator.srtt() else {
            // RFC 6298 §2.2 makes RTTVAR half of the first sample.
            state.mdev = rtt.halved(1).floored(self.tick);
            state.estimator = Estimator::of(rtt, state.mdev.max(least));
            return;
        };
        let part = |span: Fine, ratio| span.by(ratio).rounded(self.tick);
        let srtt = srtt.blend(Ratio::new(1, 8), rtt).rounded(self.tick);
        // Californium takes it from the new SRTT; RFC 6298 §2.3 and the kernel take it from the old one.
        let deviation = rtt.distance(srtt);
        // A fall by more than the mean deviation has a weight of 1/32 in place of 1/4.
        state.mdev = if rtt + state.mdev < srtt {
            state.mdev.blend(Ratio::new(1, 32), deviation).rounded(self.tick)
        } else {
            // Californium rounds both parts.
            part(state.mdev, Ratio::new(3, 4)) + part(deviation, Ratio::new(1, 4))
        };
        let rttvar = state.estimator.rttvar();
        let peak = state.mdev.max(least);
        // RTTVAR rises to a peak at once, and falls by a quarter of the difference (`tcp_rtt_estimator` in the kernel).
        let rttvar = if peak >= rttvar {
            peak
        } else if state.settled {
            rttvar.blend(Ratio::new(1, 4), peak).rounded(self.tick)
        } else {
            rttvar
        };
        state.settled = true;
        state.estimator = Estimator::of(srtt, rttvar);
    }
}

/// The registry entry `linux-rto`.
pub(crate) const LINUX_RTO: Entry = Entry {
    name: "linux-rto",
    summary: "TCP's timer: SRTT + 4·RTTVAR of unambiguous samples, a backed-off RTO kept until the next of them",
    source: "RFC 6298",
    origin: Origin::Published,
    notes: Notes {
        status: "RFC 6298 is a Proposed Standard, for TCP. Nobody standardised it for CoAP.",
        use_when: "Comparing with an estimator that takes unambiguous samples alone and keeps a backoff.",
        avoid_when: "Exchanges are minutes apart: nothing ages, so an estimate of yesterday is used today.",
        hazards: "The timeouts have no dither: clients that lost packets together send them again together. The RTO \
            is a second at least, or half a second with the preset `californium-3`, which also forgets \
            backoffs.",
    },
    mechanism: Mechanism::LinuxRto(LinuxRto::DEFAULT),
};

// The published size is 21 bytes.
const _: () = assert!(size_of::<LinuxState>() <= 21);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, exchange, timeouts};

    const LINUX: LinuxRto = LinuxRto::DEFAULT;

    #[test]
    fn the_first_sample_sets_the_rto_of_linux_to_three_round_trips() {
        assert_eq!(exchange(&LINUX, &mut LINUX.state(), 600, 0), 1_800_000);
    }

    #[test]
    fn linux_ignores_ambiguous_answers_and_keeps_its_backoff() {
        let state = &mut LINUX.state();
        assert_eq!(exchange(&LINUX, state, 5_000, 1), 4_000_000);
        assert_eq!(LINUX.gauges(state).srtt, None);
        assert_eq!(timeouts(&LINUX, state, 4).1, [4_000, 8_000, 16_000, 32_000, 60_000]);
    }

    #[test]
    fn a_strong_sample_ends_the_backoff_of_linux() {
        let state = &mut LINUX.state();
        exchange(&LINUX, state, 30_000, 4);
        assert_eq!(exchange(&LINUX, state, 100, 0), 1_000_000); // 0.3 s, below the bound of 1 s
    }

    #[test]
    fn in_linux_a_rise_of_the_round_trip_time_counts_eight_times_as_much_as_a_fall() {
        let mut kernel = LINUX;
        kernel.set("preset", "californium-3").unwrap();
        let state = &mut kernel.state();
        let rto = [1_000, 1_000, 1_000, 2_000, 400].map(|ms| exchange(&kernel, state, ms, 0) / 1_000);
        // SRTT 1000, 1000, 1000, 1125, 1034; RTTVAR 500, 500, 445, 441, 440, worked by hand.
        assert_eq!(rto, [3_000, 3_000, 2_780, 2_889, 2_794]);
    }

    #[test]
    fn after_a_give_up_linux_starts_the_next_exchange_with_the_backed_off_rto() {
        let state = &mut LINUX.state();
        let (given_up, _) = timeouts(&LINUX, state, 2);
        LINUX.on_end(state, given_up, Outcome::GivenUp, at(14_000));
        assert_eq!(timeouts(&LINUX, state, 0).1[0], 8_000);
    }

    #[test]
    fn two_overlapping_exchanges_of_linux_double_the_rto_once() {
        let state = &mut LINUX.state();
        let (mut one, _) = LINUX.on_start(state, at(0));
        let (mut other, _) = LINUX.on_start(state, at(1));
        LINUX.on_retransmit(state, &mut one, at(2_000));
        LINUX.on_retransmit(state, &mut other, at(2_001));
        assert_eq!(LINUX.gauges(state).rto, Duration::from_secs(4));
    }
}
