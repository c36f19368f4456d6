//! `peak-hopper`: the Peak-Hopper retransmission timer.
//!
//! **Source.** Ekström and Ludwig 2004, "The Peak-Hopper", for TCP. Only its draft of July 2003 was available, so the rules
//! follow the draft. The preset `californium-3` follows the class `PeakhopperRto` of Californium 3.
//!
//! **Idea.** Two timers in one. A short-term timer hops above the round-trip time, by as much as the round-trip time
//! rose. A long-term timer fades slowly from the last peak. The RTO is the longer of the two timers.
//!
//! **Readings where the source is open**
//! * The rise is signed, and relative to the previous sample. The draft does not bound it, and `max_b` is so large that
//!   no rise reaches it.
//! * There is one sample a round trip, so F is 24.
//! * A backoff is kept until the next unambiguous sample (Karn). It does not enter the long-term timer.
//!
//! **Differences from the source**
//! * The RTO is 50 ms at least (`min_rto`), and the RTO and every timeout are 60 s at most.
//! * The first timeout is dithered by ACK_RANDOM_FACTOR, RFC 7252 §4.2.
//! * Californium computes the rise by integer division of the absolute difference by the new sample. So the RTO hops
//!   only if the round-trip time falls to half or less, and then by as much as `max_b` allows. It always hops at the
//!   second sample, because Californium takes the sample before it for zero (but not in the lower bound).
//!
//! **Unsafe as published**, in Californium; nothing is known against the draft
//! * A backoff ends with its exchange, so an RTO that is too short is corrected by no sample.
//! * Nothing is dithered, so clients that lost packets together send them again together.
//! * The RTO hops when the round-trip time falls to half.

use crate::estimator::{GRANULARITY, MIN_RTO};
use crate::fine::Fine;
use crate::karn::KeptBackoff;
use crate::parameters::{Switch, choice, parameters};
use crate::{
    Controller, Cue, Duration, Entry, Gauges, Limits, Marking, Mechanism, Notes, Origin, Outcome, Ratio,
    division,
};

parameters! {
    /// The Peak-Hopper retransmission timer.
    pub struct PeakHopper {
        /// RTO before the first sample.
        initial_rto: Duration = Duration::from_secs(2),
        /// Upper bound of the RTO; RFC 8085 §3.1.1 asks for 60 s at least. A longer value counts as 268 s.
        max_rto: Duration = Duration::from_secs(60),
        /// Lower bound of the RTO, 50 ms by default: a quarter of the 200 ms of Linux, and longer than delays of
        /// schedulers and clock ticks of 10 ms. The source has no lower bound.
        min_rto: Duration = MIN_RTO,
        /// Upper bound of one timeout. A longer value counts as 268 s.
        max_timeout: Duration = Duration::from_secs(60),
        /// ACK_RANDOM_FACTOR: the first timeout is random, U(RTO, ACK_RANDOM_FACTOR·RTO), RFC 7252 §4.2.
        ack_random_factor: Ratio = Ratio::new(3, 2),
        /// F: a peak fades by 1/F a sample, Ekström and Ludwig §III; 0 counts as 1.
        fade: u8 = 24,
        /// B after the first sample r, which makes the RTO (1 + B)·r, Ekström and Ludwig §III.
        initial_b: Ratio = Ratio::new(3, 4),
        /// Upper bound of B, by which the RTO hops above the sample: the RTO is (1 + B)·r. A value above 4095 counts as
        /// 4095.
        max_b: Ratio = Ratio::new(4_095, 1),
        /// G, the granularity of the clock. The RTO is never below the larger of the last two samples plus 2·G.
        granularity: Duration = GRANULARITY,
        /// How the rise from one sample to the next is computed.
        rise: Rise = Rise::Signed,
        /// Whether a backoff outlives its exchange until the next unambiguous sample (Karn).
        keep_backoff: Switch = Switch::On,
        /// Unit that samples, the RTO and timeouts are rounded down to; 1us means no rounding.
        tick: Duration = Duration::from_micros(1),
    }
    presets {
        /// Californium 3, class PeakhopperRto, in whole milliseconds. Unsafe as published: no dither, and a backoff ends with
        /// its exchange.
        "californium-3" => |_| Self {
            max_rto: Duration::from_secs(32),
            min_rto: Duration::from_millis(500),
            ack_random_factor: Ratio::new(1, 1),
            max_b: Ratio::new(1, 1),
            granularity: Duration::from_millis(50),
            rise: Rise::Californium3,
            keep_backoff: Switch::Off,
            tick: Duration::from_millis(1),
            ..Self::DEFAULT
        },
    }
}

choice! {
    /// How the rise from a sample p to the next sample r is computed.
    pub enum Rise {
        /// (r − p)/p; zero if the round-trip time fell.
        Signed = "signed",
        /// 2·⌊|r − p|/r⌋, or 2 at the second sample.
        Californium3 = "californium-3",
    }
}

/// State of [`PeakHopper`] for one destination.
#[derive(Clone, Copy, Debug)]
pub struct PeakHopperState {
    /// The previous sample; zero before the first.
    previous: Fine,
    /// B, by which the RTO hops above the sample, in units of 1/[`WHOLE`].
    hop: Fine,
    rto: Fine,
    backoff: KeptBackoff,
    /// The number of samples, counted up to 2.
    samples: u8,
}

/// State of [`PeakHopper`] for one exchange.
#[derive(Clone, Copy, Debug)]
pub struct PeakHopperExchange {
    timeout: Fine,
}

/// B = 1 in fixed point: twelve bits above the point and twenty-eight below, so that B times a sample of a minute is off by
/// less than a microsecond.
const WHOLE: u64 = 1 << 28;

impl Controller for PeakHopper {
    type State = PeakHopperState;
    type Exchange = PeakHopperExchange;

    fn state(&self) -> PeakHopperState {
        let rto = self.initial_rto.min(self.max_rto).into();
        PeakHopperState { previous: Fine::ZERO, hop: Fine::ZERO, rto, backoff: KeptBackoff::NONE, samples: 0 }
    }

    fn on_start(&self, state: &mut PeakHopperState, cue: Cue) -> (PeakHopperExchange, Duration) {
        let dithered = state.rto.at_least(self.min_rto).dithered(self.ack_random_factor, cue.draw);
        // A kept backoff grew from a timeout that was dithered.
        let timeout = state.backoff.kept().unwrap_or(dithered.floored(self.tick));
        let timeout = timeout.min(self.max_timeout.into());
        (PeakHopperExchange { timeout }, timeout.into())
    }

    fn on_retransmit(
        &self,
        state: &mut PeakHopperState,
        exchange: &mut PeakHopperExchange,
        _: Cue,
    ) -> Duration {
        exchange.timeout = exchange.timeout.twice().min(self.max_timeout.into());
        if self.keep_backoff.is_on() {
            state.backoff.keep(exchange.timeout);
        }
        exchange.timeout.into()
    }

    fn on_end(&self, state: &mut PeakHopperState, _: PeakHopperExchange, outcome: Outcome, _: Cue) {
        if let Outcome::Acked(sample) = outcome
            && let Some(rtt) = sample.unambiguous()
        {
            let rtt = Fine::sample(rtt, self.tick);
            state.rto = self.hop(state, rtt).floored(self.tick).min(self.max_rto.into());
            // `hop` compares the sample with the one before, so it is replaced only now.
            state.previous = rtt;
            state.samples = state.samples.saturating_add(1).min(2);
            state.backoff = KeptBackoff::NONE;
        }
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        self.max_timeout.times(retransmits.into())
    }

    fn limits(&self, state: &PeakHopperState) -> Limits {
        Limits::with_gauges(self.gauges(state), Marking::None)
    }

    /// Reports the last sample as SRTT, because nothing is smoothed.
    #[inline(always)]
    fn gauges(&self, state: &PeakHopperState) -> Gauges {
        let srtt = (state.samples > 0).then(|| state.previous.into());
        let rto = state.backoff.kept().unwrap_or(state.rto.at_least(self.min_rto));
        Gauges { rto: rto.into(), srtt, ..Gauges::default() }
    }
}

impl PeakHopper {
    /// Returns the RTO after the sample `rtt`. Stores the new B in the state.
    fn hop(&self, state: &mut PeakHopperState, rtt: Fine) -> Fine {
        let hop = |hop, rtt| rtt + product(rtt, hop);
        if state.samples == 0 {
            let initial = Fine::from_units(self.initial_b.of_u64(WHOLE));
            // Californium does not store the B of the first sample.
            state.hop = if self.rise == Rise::Signed { initial } else { Fine::ZERO };
            return hop(initial, rtt);
        }
        let fade = Ratio::new(u16::from(self.fade.saturating_sub(1)), self.fade.into());
        let bound = Fine::from_units(self.max_b.of_u64(WHOLE));
        state.hop = self.rise(state, rtt).max(state.hop.by(fade)).min(bound);
        let both = rtt.max(state.previous);
        let highest = match self.rise {
            // The sample before the second counts as zero here, but not in the lower bound.
            Rise::Californium3 if state.samples == 1 => rtt,
            _ => both,
        };
        let granular = both + Fine::from(self.granularity).twice();
        // The long-term timer, the short-term timer and the lower bound.
        state.rto.by(fade).max(hop(state.hop, highest)).max(granular)
    }

    /// Returns the rise of a sample since the previous one, in units of 1/[`WHOLE`].
    fn rise(&self, state: &PeakHopperState, rtt: Fine) -> Fine {
        let previous = state.previous;
        match self.rise {
            // The difference is zero if the sample has fallen.
            Rise::Signed => quotient(rtt - previous, previous),
            Rise::Californium3 if state.samples == 1 => Fine::from_units(2 * WHOLE),
            Rise::Californium3 => {
                let whole = division::by(rtt.distance(previous).units(), rtt.units());
                Fine::from_units((2 * WHOLE).saturating_mul(whole))
            }
        }
    }
}

/// Returns `rtt`·`hop`, computed in 64 bits, which a Cortex-M3 can multiply. The product of `rtt` and the fraction of
/// `hop` ignores the last four bits of `rtt`.
fn product(rtt: Fine, hop: Fine) -> Fine {
    let (whole, fraction) = (hop.units() / WHOLE, hop.units() % WHOLE);
    // 36 bits times 28 bits fit. The shifts by 4 and 24 bits are the 28 bits below the point of B.
    let product = rtt.units().saturating_mul(whole).saturating_add(((rtt.units() >> 4) * fraction) >> 24);
    Fine::from_units(product)
}

/// Returns `rise`/`base` in units of 1/[`WHOLE`], computed in 64 bits. If `base` is above 16 s, its last four bits are
/// ignored.
fn quotient(rise: Fine, base: Fine) -> Fine {
    let base = base.units().max(1);
    let whole = division::by(rise.units(), base);
    let rest = rise.units() - whole * base;
    let shift = if base < 1 << 36 { 0 } else { 4 };
    // `rest` is below `base`, so 36 and 28 bits fit.
    let fraction = division::by((rest >> shift) * WHOLE, base >> shift);
    Fine::from_units(whole.saturating_mul(WHOLE).saturating_add(fraction))
}

/// The registry entry `peak-hopper`.
pub(crate) const PEAK_HOPPER: Entry = Entry {
    name: "peak-hopper",
    summary: "hops up with the round-trip time at once, fades slowly from the peak",
    source: "Ekström, Ludwig 2004, The Peak-Hopper",
    origin: Origin::Published,
    notes: Notes {
        status: "A paper of 2004 on TCP, known here by its draft of 2003; Californium 3 has it for CoAP, \
            with a different rise.",
        use_when: "The round-trip time jumps, and a spurious retransmission costs more than waiting.",
        avoid_when: "Losses are frequent: the RTO stays near its peak for dozens of samples, so recovery is \
            slow.",
        hazards: "None known of the paper's rules. The preset `californium-3` forgets backoffs, has no \
            dither, and hops when the round-trip time falls to half.",
    },
    mechanism: Mechanism::PeakHopper(PeakHopper::DEFAULT),
};

const _: () = assert!(size_of::<PeakHopperState>() <= 21);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{exchange, timeouts};

    const PEAK: PeakHopper = PeakHopper::DEFAULT;

    #[test]
    fn peak_hopper_raises_the_rto_at_once_with_the_round_trip_time_and_lets_it_decay() {
        let state = &mut PEAK.state();
        let rto = [100, 100, 100, 200, 100, 100].map(|ms| (exchange(&PEAK, state, ms, 0) + 50) / 100);
        assert_eq!(rto, [1_750, 1_719, 1_689, 4_000, 3_917, 3_753]); // the draft's rules, worked by hand
    }

    #[test]
    fn the_rise_of_the_rto_of_peak_hopper_can_be_bounded() {
        let bounded = PeakHopper { max_b: Ratio::new(1, 1), ..PEAK };
        let state = &mut bounded.state();
        exchange(&bounded, state, 100, 0);
        assert_eq!(exchange(&bounded, state, 1_000, 0), 2_000_000, "not ten times the sample");
    }

    #[test]
    fn peak_hopper_keeps_a_backoff_outside_its_long_term_timer() {
        let state = &mut PEAK.state();
        exchange(&PEAK, state, 1_000, 0);
        assert_eq!(exchange(&PEAK, state, 9_000, 2), 7_000_000);
        assert_eq!(timeouts(&PEAK, state, 1).1, [7_000, 14_000, 0, 0, 0]);
        assert_eq!(exchange(&PEAK, state, 1_000, 0), 1_718_750);
    }

    #[test]
    fn peak_hopper_of_californium_raises_the_rto_at_the_second_sample_and_when_samples_halve() {
        let mut californium = PEAK;
        californium.set("preset", "californium-3").unwrap();
        let state = &mut californium.state();
        let rto = [1_000, 1_001, 1_001, 500, 499].map(|ms| exchange(&californium, state, ms, 0) / 1_000);
        assert_eq!(rto, [1_750, 2_002, 1_960, 2_002, 1_918]);
    }

    #[test]
    fn peak_hopper_of_californium_uses_the_first_sample_in_the_lower_bound_of_the_second_rto() {
        let mut californium = PEAK;
        californium.set("preset", "californium-3").unwrap();
        californium.set("min_rto", "1us").unwrap();
        let state = &mut californium.state();
        let rto = [101, 50, 25].map(|ms| exchange(&californium, state, ms, 0) / 1_000);
        assert_eq!(rto, [176, 201, 192]); // 101 ms and twice 50 ms; then 23/24 of that
    }
}
