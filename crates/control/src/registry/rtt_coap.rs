//! `rtt-coap`: RTT-CoAP, a pacing rate steered by the round-trip time and the loss.
//!
//! **Source.** Ancillotti, Bolettieri and Bruno 2018.
//!
//! **Idea.** Confirmable messages depart at a rate, and several exchanges may be outstanding. A short-term average of
//! the round-trip time, compared with a long-term one, shows in which of four regions the network is: low congestion,
//! normal, medium variability or high variability. The rate rises or falls with the region, and with the share of
//! recent exchanges that needed a retransmission.
//!
//! **Readings where the paper is open**
//! * The long-term average SRTT_L is computed from its old value and the sample. The paper prints the short-term
//!   average in place of the old value.
//! * In the region of high variability the rate falls. The paper's algorithm decreases it; its prose says increase.
//! * The paper does not give the gains, the loss thresholds, the initial rate, the bounds of the rate, and the timeout that
//!   detects a loss. They are parameters here.
//! * βL is 1/8, equal to αL. With the 1/4 of RFC 6298 no sequence of samples reaches high variability: a sample that is d
//!   above SRTT_L adds 0.375 d to the distance of the averages, and d/4 to RTTVAR_L, which is more than half of that.
//! * An exchange that is given up counts as retransmitted, and changes the rate like an answer in the region of high
//!   variability.
//!
//! **Differences from the source**
//! * The ordinal of a transmission travels in an elective option, which a peer that does not know it ignores. The option of
//!   the paper is critical, so that such a peer rejects every request.
//! * If the peer does not echo the option, the answer to a retransmitted exchange is not a sample. It still changes the
//!   rate, by the region of the last sample and by the loss. From a retransmission until the next sample, the
//!   backed-off RTO is kept (Karn), one exchange may be outstanding, and the rate does not rise. It falls at the pace
//!   of high variability once the loss reaches `l_high`.
//! * Before the first sample one exchange may be outstanding, and at most `nstart` at any time. The RTO is 50 ms at least.
//!
//! **Unsafe as published**
//! * Only the rate bounds the number of exchanges under way.

use crate::estimator::{Estimator, GRANULARITY, Learning, MIN_RTO};
use crate::fine::Fine;
use crate::parameters::parameters;
use crate::{
    Controller, Cue, Duration, Entry, Gauges, Instant, Limits, Marking, Mechanism, Notes, Origin, Outcome,
    Ratio, division,
};

parameters! {
    /// A pacing rate, steered by the round-trip time and the loss.
    pub struct RttCoap {
        /// RTO before the first sample.
        initial_rto: Duration = Duration::from_secs(2),
        /// Lower bound of the RTO, 50 ms by default: a quarter of the 200 ms of Linux, and longer than delays of
        /// schedulers and clock ticks of 10 ms. The paper has no lower bound.
        min_rto: Duration = MIN_RTO,
        /// Upper bound of every timeout; RFC 8085 §3.1.1 asks for 60 s at least. A longer value counts as 268 s.
        max_rto: Duration = Duration::from_secs(60),
        /// ACK_RANDOM_FACTOR: the first timeout is random, U(RTO, ACK_RANDOM_FACTOR·RTO), RFC 7252 §4.2.
        ack_random_factor: Ratio = Ratio::new(3, 2),
        /// αS, the gain of the short-term average.
        alpha_s: Ratio = Ratio::new(1, 2),
        /// αL, the gain of the long-term average.
        alpha_l: Ratio = Ratio::new(1, 8),
        /// βL, the gain of the long-term variation.
        beta_l: Ratio = Ratio::new(1, 8),
        /// ω, the step of a fast change of the rate, Ancillotti et al. 2018.
        omega_fast: Ratio = Ratio::new(1, 5),
        /// ω, the step of a slow change of the rate, Ancillotti et al. 2018.
        omega_slow: Ratio = Ratio::new(1, 20),
        /// Loss at which, and above which, the rate falls in the regions of variability.
        l_low: Ratio = Ratio::new(1, 20),
        /// Loss at which, and above which, the rate does not rise in the normal region.
        l_high: Ratio = Ratio::new(1, 4),
        /// Weight of one exchange in μ, the average of the loss.
        mu_weight: Ratio = Ratio::new(1, 8),
        /// Time between two confirmable messages at the start.
        initial_interval: Duration = Duration::from_secs(2),
        /// Longest time between two confirmable messages. A longer value counts as 268 s.
        max_interval: Duration = Duration::from_secs(60),
        /// Maximum number of outstanding exchanges. If the application configures a smaller NSTART, the smaller one
        /// applies.
        nstart: u8 = 64,
        /// How transmissions carry their ordinal.
        marking: Marking = Marking::Option,
        /// G, the granularity of the clock and the lower bound of 4·RTTVAR_L, RFC 6298 §2.3.
        granularity: Duration = GRANULARITY,
    }
    presets {
    }
}

/// State of [`RttCoap`] for one destination.
#[derive(Clone, Copy, Debug)]
pub struct RttCoapState {
    /// The short-term average SRTT_S.
    short: Fine,
    /// The long-term averages SRTT_L and RTTVAR_L.
    long: Estimator,
    /// μ, the moving average of the share of exchanges that needed a retransmission, in units of 2⁻¹⁶.
    loss: [u8; 2],
    rate: MessageRate,
    /// The earliest departure of the next confirmable message, in microseconds.
    next: [u8; 8],
    /// How often the RTO was doubled since the last sample.
    backoff: u8,
}

/// State of [`RttCoap`] for one exchange.
#[derive(Clone, Copy, Debug)]
pub struct RttCoapExchange {
    timeout: Fine,
    /// How often the RTO was doubled to make the exchange's current timeout.
    backoff: u8,
}

/// A rate in units of 2⁻³² messages per second, up to 256 messages per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MessageRate(Fine);

impl MessageRate {
    /// Returns the rate of one message per `interval`.
    #[inline(always)]
    fn of(interval: Fine) -> Self {
        Self(Fine::from_units(reciprocal(interval)))
    }

    #[inline(always)]
    fn interval(self) -> Duration {
        // To the nearest microsecond.
        Duration::from_micros((reciprocal(self.0) + (1 << 11)) >> 12)
    }

    fn per_ks(self) -> u32 {
        ((self.0.units() * 1_000 + (1 << 31)) >> 32) as u32
    }
}

/// Converts an interval in units of 2⁻¹² µs to a rate in units of 2⁻³² messages per second, and a rate to an interval.
fn reciprocal(of: Fine) -> u64 {
    // A second is 10⁶·2¹² units of time, and one message a second is 2³² units of a rate.
    const UNITS: u64 = 1_000_000 << 44;
    division::by(UNITS, of.units())
}

/// A region of the paper: the congestion that the averages of the round-trip time show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Region {
    LowCongestion,
    Normal,
    MediumVariability,
    HighVariability,
}

impl Controller for RttCoap {
    type State = RttCoapState;
    type Exchange = RttCoapExchange;

    fn state(&self) -> RttCoapState {
        RttCoapState {
            short: Fine::ZERO,
            long: Estimator::new(),
            loss: [0; 2],
            rate: MessageRate::of(self.initial_interval.min(self.max_interval).into()),
            next: [0; 8],
            backoff: 0,
        }
    }

    fn on_start(&self, state: &mut RttCoapState, cue: Cue) -> (RttCoapExchange, Duration) {
        // Each departure starts the interval, so no burst follows a pause.
        state.next = (cue.now + state.rate.interval()).as_micros().to_le_bytes();
        let rto = Fine::fitting(self.rto(state));
        let dithered = rto.dithered(self.ack_random_factor, cue.draw);
        let timeout = dithered.min(self.max_rto.into());
        (RttCoapExchange { timeout, backoff: state.backoff }, timeout.into())
    }

    fn on_retransmit(&self, state: &mut RttCoapState, exchange: &mut RttCoapExchange, _: Cue) -> Duration {
        // Exchanges that overlap lose the same packets, so their backoffs do not add up: the longest is kept.
        exchange.backoff = exchange.backoff.saturating_add(1);
        state.backoff = state.backoff.max(exchange.backoff);
        exchange.timeout = exchange.timeout.twice().min(self.max_rto.into());
        exchange.timeout.into()
    }

    fn on_end(&self, state: &mut RttCoapState, _: RttCoapExchange, outcome: Outcome, _: Cue) {
        let answer = match outcome {
            Outcome::Acked(sample) => Some(sample),
            Outcome::GivenUp => None,
            Outcome::Reset | Outcome::Cancelled => return,
        };
        self.count(state, answer.is_none_or(|sample| sample.retransmits > 0));
        if let Some(rtt) = answer.and_then(|sample| sample.unambiguous()) {
            self.learn(state, rtt);
        }
        // The sample comes before the rate, because it decides the region.
        let region = if answer.is_some() { state.region() } else { Region::HighVariability };
        self.steer(state, region);
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        self.max_rto.times(retransmits.into())
    }

    fn limits(&self, state: &RttCoapState) -> Limits {
        Limits {
            nstart: Some(self.window(state).into()),
            next_confirmable: Instant::from_micros(u64::from_le_bytes(state.next)),
            ..Limits::with_gauges(self.gauges(state), self.marking)
        }
    }

    /// Reports the long-term averages as SRTT and RTTVAR.
    #[inline(always)]
    fn gauges(&self, state: &RttCoapState) -> Gauges {
        Gauges { rate_per_ks: Some(state.rate.per_ks()), ..state.long.gauges(Fine::fitting(self.rto(state))) }
    }
}

impl RttCoapState {
    /// Compares SRTT_S with T(γ) = SRTT_L + γ·RTTVAR_L for γ = −1, 1 and 2. If RTTVAR_L is zero, returns the normal
    /// region.
    fn region(&self) -> Region {
        let short = self.short.units();
        let (long, variation) = (self.long.srtt().unwrap_or(Fine::ZERO).units(), self.long.rttvar().units());
        let Some(above) = (short + variation).checked_sub(long) else { return Region::LowCongestion };
        // T(1) itself belongs to the normal region, and T(2) to the medium one.
        let Some(above) = above.checked_sub(2 * variation + 1) else { return Region::Normal };
        if above < variation { Region::MediumVariability } else { Region::HighVariability }
    }
}

impl RttCoap {
    /// Returns the RTO before dither, in units of 1/4096 µs like [`Fine`].
    fn rto(&self, state: &RttCoapState) -> u64 {
        let rto = state.long.rto(4, self.granularity).unwrap_or(self.initial_rto.into());
        rto.at_least(self.min_rto).doubled(state.backoff).min(self.max_rto.into()).units()
    }

    /// Returns the number of exchanges that may be outstanding: one before the first sample, and one from a retransmission
    /// until the next sample.
    fn window(&self, state: &RttCoapState) -> u8 {
        if state.long.is_measured() && state.backoff == 0 { self.nstart.max(1) } else { 1 }
    }

    fn learn(&self, state: &mut RttCoapState, rtt: Duration) {
        let learning = Learning { srtt_gain: self.alpha_l, rttvar_gain: self.beta_l, ..Learning::RFC6298 };
        let sample = Fine::sample(rtt, learning.tick);
        let first = !state.long.is_measured();
        // The averages are compared with each other, so they start from the same sample.
        state.short = if first { sample } else { state.short.blend(self.alpha_s, sample) };
        state.long.take(sample, learning);
        state.backoff = 0;
    }

    /// Adds an exchange to μ, the average of the loss. `lost` is true if the exchange needed a retransmission.
    #[inline(never)]
    fn count(&self, state: &mut RttCoapState, lost: bool) {
        let before = u16::from_le_bytes(state.loss).into();
        let mean = self.mu_weight.blend_u17(if lost { 1 << 16 } else { 0 }, before);
        // A loss of 1 is 2¹⁶ units, which does not fit. It counts as one unit less.
        state.loss = u16::try_from(mean).unwrap_or(u16::MAX).to_le_bytes();
    }

    /// Raises or lowers the rate by the region and the loss μ. If there was no sample since a retransmission, the rate
    /// does not rise, and a loss of `l_high` counts as high variability.
    fn steer(&self, state: &mut RttCoapState, region: Region) {
        let loss = u16::from_le_bytes(state.loss);
        let (low, high) = (self.l_low.is_reached_by(loss), self.l_high.is_reached_by(loss));
        // These are copies for the reason given in `Cocoa::backoff_factor`.
        let Self { omega_fast, omega_slow, .. } = *self;
        let blind = state.backoff > 0;
        let (rises, omega) = match region {
            _ if blind && high => (false, omega_fast),
            Region::LowCongestion if !blind => (true, omega_fast),
            Region::Normal if !blind && !high => (true, omega_slow),
            Region::MediumVariability if low => (false, omega_slow),
            Region::HighVariability if low => (false, omega_fast),
            _ => return,
        };
        // The reference has 48 bits: one message a round trip may exceed the largest rate, and still be the goal.
        let rate = state.rate.0.units();
        let reference = reciprocal(state.long.srtt().unwrap_or(self.initial_rto.into())).min((1 << 48) - 1);
        let step = omega.of_u48(if rate < reference { reference - rate } else { reference });
        let moved = if rises { rate.saturating_add(step) } else { rate.saturating_sub(step) };
        state.rate = self.bounded(MessageRate(Fine::from_units(moved)));
    }

    #[inline(always)]
    fn bounded(&self, rate: MessageRate) -> MessageRate {
        // The type alone bounds the rate from above, at 256 messages a second.
        MessageRate(rate.0.max(MessageRate::of(self.max_interval.into()).0))
    }
}

/// The registry entry `rtt-coap`.
pub(crate) const RTT_COAP: Entry = Entry {
    name: "rtt-coap",
    summary: "a pacing rate steered by short- and long-term round-trip time and loss, several exchanges outstanding",
    source: "Ancillotti, Bolettieri, Bruno 2018, RTT-CoAP",
    origin: Origin::Published,
    notes: Notes {
        status: "Published in a paper that leaves gains, thresholds and bounds open: they are chosen here.",
        use_when: "Many exchanges to one destination are wanted at once, over a path of one's own.",
        avoid_when: "The path is shared with others. Peers that do not echo the option are served, but from \
            every loss on with fewer exchanges at once.",
        hazards: "While every answer is a sample, only the rate bounds the exchanges under way, up to 64 of \
            them (`nstart`, or the application's own NSTART if that is smaller). From a retransmission \
            until the next sample the backed-off RTO is kept, the rate does not rise, and one exchange is \
            outstanding, like before the first sample. The next sample is the answer to the retransmission \
            if the peer echoes the option, and otherwise the next exchange without one. After an outage, \
            the answers to what waited are samples as long as the outage. The rate recovers with each \
            sample alone, and so may stay at one request in ten seconds for minutes.",
    },
    mechanism: Mechanism::RttCoap(RttCoap::DEFAULT),
};

const _: () = assert!(size_of::<RttCoapState>() <= 31);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{acked, at, exchange, timeouts};

    const RTT: RttCoap = RttCoap::DEFAULT;

    fn rate(state: &RttCoapState) -> u32 {
        RTT.gauges(state).rate_per_ks.unwrap()
    }

    #[test]
    fn rtt_coap_starts_with_one_confirmable_message_in_two_seconds() {
        let state = &mut RTT.state();
        assert_eq!(RTT.limits(state).next_confirmable, Instant::ZERO);
        let _ = RTT.on_start(state, at(1_000));
        assert_eq!(RTT.limits(state).next_confirmable, Instant::from_secs(3));
    }

    #[test]
    fn without_congestion_the_rate_of_rtt_coap_approaches_one_message_each_round_trip() {
        let state = &mut RTT.state();
        exchange(&RTT, state, 500, 0);
        assert_eq!(rate(state), 575); // 0.5 + 0.05 · (2 − 0.5)
        for _ in 0..60 {
            exchange(&RTT, state, 500, 0);
        }
        assert!((1_900..2_000).contains(&rate(state)), "{}", rate(state));
    }

    #[test]
    fn rtt_coap_treats_a_constant_round_trip_time_as_no_congestion() {
        for ms in [0, 7] {
            let state = &mut RTT.state();
            for _ in 0..100 {
                exchange(&RTT, state, ms, 0);
                assert_eq!(state.region(), Region::Normal);
            }
        }
    }

    #[test]
    fn rtt_coap_raises_its_rate_fast_when_the_round_trip_time_falls() {
        let state = &mut RTT.state();
        for _ in 0..20 {
            exchange(&RTT, state, 1_000, 0);
        }
        let before = rate(state);
        exchange(&RTT, state, 400, 0);
        assert_eq!(state.region(), Region::LowCongestion);
        // SRTT_L 0.925 s; a fifth of the way from there to 1/SRTT_L.
        assert_eq!(rate(state), before + (1_081 - before + 2) / 5);
    }

    #[test]
    fn rtt_coap_lowers_its_rate_for_varying_round_trip_times_only_if_messages_are_lost() {
        let state = &mut RTT.state();
        for _ in 0..20 {
            exchange(&RTT, state, 1_000, 0);
        }
        let (calm, before) = (*state, rate(state));
        exchange(&RTT, state, 4_000, 0);
        assert_eq!(state.region(), Region::HighVariability);
        assert_eq!(rate(state), before, "no exchange needed a retransmission");
        *state = calm;
        exchange(&RTT, state, 3_000, 1); // ambiguous: counted, no sample
        assert_eq!(rate(state), before);
        exchange(&RTT, state, 4_000, 0);
        let fast = rate(state);
        assert_eq!((state.region(), fast), (Region::HighVariability, before - 146)); // 0.2 / 1.375 s
        exchange(&RTT, state, 2_000, 0);
        assert_eq!(state.region(), Region::MediumVariability);
        assert!(rate(state) <= fast, "slowly: R is close to 1/SRTT_L");
    }

    #[test]
    fn give_ups_lower_the_rate_of_rtt_coap_but_not_below_one_message_a_minute() {
        let state = &mut RTT.state();
        for _ in 0..40 {
            let (given_up, _) = timeouts(&RTT, state, 4);
            RTT.on_end(state, given_up, Outcome::GivenUp, at(62_000));
        }
        assert_eq!(rate(state), 17);
    }

    #[test]
    fn the_timeout_of_rtt_coap_is_its_long_term_estimate_doubled_at_each_loss() {
        let state = &mut RTT.state();
        exchange(&RTT, state, 1_000, 0);
        assert_eq!(timeouts(&RTT, state, 4).1, [3_000, 6_000, 12_000, 24_000, 48_000]);
        exchange(&RTT, state, 1_000, 0);
        assert_eq!(timeouts(&RTT, state, 0).1[0], 2_750);
    }

    #[test]
    fn rtt_coap_without_an_echoed_option_keeps_a_backoff_until_a_sample() {
        let state = &mut RTT.state();
        exchange(&RTT, state, 1_000, 0);
        assert_eq!(exchange(&RTT, state, 10_000, 2), 12_000_000, "no sample: twice doubled");
        assert_eq!(timeouts(&RTT, state, 1).1[..2], [12_000, 24_000]);
        assert_eq!(exchange(&RTT, state, 1_000, 0), 2_750_000);
    }

    #[test]
    fn rtt_coap_keeps_a_backoff_after_a_give_up() {
        let state = &mut RTT.state();
        let (given_up, _) = timeouts(&RTT, state, 3);
        RTT.on_end(state, given_up, Outcome::GivenUp, at(30_000));
        assert_eq!(timeouts(&RTT, state, 0).1[0], 16_000);
    }

    #[test]
    fn rtt_coap_without_an_echoed_option_lowers_its_rate_with_retransmissions() {
        let state = &mut RTT.state();
        for _ in 0..40 {
            exchange(&RTT, state, 1_000, 0);
        }
        let before = rate(state);
        let rates: [u32; 24] = core::array::from_fn(|_| {
            exchange(&RTT, state, 4_000, 1);
            rate(state)
        });
        assert_eq!(rates[..2], [before; 2], "an answer that makes no sample does not raise it");
        assert!(rates.is_sorted_by(|earlier, later| earlier >= later) && rates[23] < before / 4, "{rates:?}");
    }

    #[test]
    fn rtt_coap_without_an_echoed_option_still_learns_a_round_trip_time_above_the_rto() {
        let state = &mut RTT.state();
        for _ in 0..40 {
            exchange(&RTT, state, 100, 0);
        }
        for _ in 0..20 {
            let (mut open, mut waited) = RTT.on_start(state, at(0));
            let mut retransmits = 0;
            while waited < Duration::from_secs(1) {
                waited += RTT.on_retransmit(state, &mut open, at(0));
                retransmits += 1;
            }
            RTT.on_end(state, open, acked(1_000, retransmits), at(1_000));
        }
        let gauges = RTT.gauges(state);
        assert!(
            gauges.rto >= Duration::from_secs(1) && gauges.srtt > Some(Duration::from_millis(500)),
            "{gauges:?}"
        );
    }

    #[test]
    fn rtt_coap_allows_one_outstanding_message_before_the_first_sample_and_after_a_retransmission() {
        let state = &mut RTT.state();
        let allowed = |state: &RttCoapState| RTT.limits(state).nstart;
        assert_eq!(allowed(state), Some(1), "nothing was measured");
        exchange(&RTT, state, 200, 0);
        assert_eq!(allowed(state), Some(64));
        exchange(&RTT, state, 500, 1);
        assert_eq!(allowed(state), Some(1));
        let few = RttCoap { nstart: 1, ..RTT };
        assert_eq!(few.limits(state).nstart, Some(1));
    }

    #[test]
    fn the_rto_of_rtt_coap_has_a_lower_bound() {
        let bounded = RttCoap { min_rto: Duration::from_secs(3), ..RTT };
        let state = &mut bounded.state();
        assert_eq!(timeouts(&bounded, state, 1).1[..2], [3_000, 6_000]);
        exchange(&bounded, state, 100, 0);
        assert_eq!(timeouts(&bounded, state, 1).1[..2], [3_000, 6_000]);
        exchange(&bounded, state, 5_000, 0);
        assert!(timeouts(&bounded, state, 0).1[0] > 3_000);
    }
}
