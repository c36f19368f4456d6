//! `cocoa-plus-plus`: CoCoA++, an RTO steered by delay gradients.
//!
//! **Source.** Rathod 2022 (doctoral thesis) §6, after CAIA delay gradients (CDG), Hayes and Armitage 2011. The preset
//! `student-contiki` follows an implementation for Contiki that students published.
//!
//! **Idea.** The trend of the round-trip time counts, not its average. The least and the greatest sample of two round
//! trips are compared with the interval before. While they rise, the RTO is multiplied by 1.42, and the faster they
//! rise, the more likely. Otherwise it is multiplied by 0.7.
//!
//! **Readings where the thesis is open**
//! * The RTO stays between the greatest sample of the last interval and 32 s, so that it is never below a recent
//!   sample.
//! * An interval closes with the first sample that comes two of its own round-trip times after the sample that opened it.
//! * Every acknowledged exchange is a sample, measured from its first transmission. With unambiguous samples alone, an RTO
//!   that is too short would never be corrected.
//! * The greatest samples count only if the least ones do not rise, like in CDG.
//! * G is 3 ticks of Contiki's clock.
//!
//! **Differences from the source**
//! * The RTO is 50 ms at least (`min_rto`).
//! * From one retransmission of an exchange to the next the timeout is always multiplied by 1.42, unlike in the
//!   implementation (see below).
//!
//! **Unsafe as published**
//! * The implementation applies the factor 0.7 between the retransmissions of an exchange, too. The retransmissions
//!   then follow each other ever faster. RFC 7252 §4.2 and RFC 8085 §3.1.1 ask for a backoff.
//! * A factor of 1.42 is less than doubling: five timeouts take 11.4 RTO instead of 31. This mechanism does the same.
//! * Ambiguous samples count. RFC 8085 §3.1.1 forbids their use. This mechanism uses them, too.

mod gradient;
mod student;

use crate::estimator::{MIN_RTO, UNBOUNDED};
use crate::fine::Fine;
use crate::parameters::{Switch, choice, parameters};
use crate::registry::cocoa::{Cocoa, CocoaExchange};
use crate::{
    Controller, Cue, Duration, Entry, Gauges, Limits, Marking, Mechanism, Notes, Origin, Outcome, Ratio,
};
use gradient::Gradients;
use student::Student;

parameters! {
    /// CoCoA++: an RTO steered by delay gradients.
    pub struct CocoaPlusPlus {
        /// RTO before the first gradient, Rathod 2022 §6.
        initial_rto: Duration = Duration::from_secs(2),
        /// Lower bound of the RTO, 50 ms by default: a quarter of the 200 ms of Linux, and longer than delays of
        /// schedulers and clock ticks of 10 ms. The source has no lower bound.
        min_rto: Duration = MIN_RTO,
        /// Upper bound of the RTO and of every timeout. A longer value counts as 268 s.
        max_rto: Duration = Duration::from_secs(32),
        /// ACK_RANDOM_FACTOR: the first timeout is random, U(RTO, ACK_RANDOM_FACTOR·RTO), RFC 7252 §4.2.
        ack_random_factor: Ratio = Ratio::new(3, 2),
        /// Factor from one timeout of an exchange to the next, Rathod 2022 §6.
        backoff: Ratio = Ratio::new(142, 100),
        /// PBF, the factor of the RTO or of a timeout (see `rule`), while delays rise, Rathod 2022 §6.
        up: Ratio = Ratio::new(142, 100),
        /// PBF, the factor of the RTO or of a timeout (see `rule`), while delays do not rise, Rathod 2022 §6.
        down: Ratio = Ratio::new(7, 10),
        /// G: a gradient g counts as rising with probability 1 − e^(−g/G), Hayes and Armitage 2011.
        scaling: Duration = Duration::from_micros(23_438),
        /// What the delay gradients change: the RTO, or the timeouts of an exchange.
        rule: Rule = Rule::Gradient,
        /// Whether the endpoint waits for an answer to the last retransmission, RFC 7252 §4.2.
        final_wait: Switch = Switch::On,
    }
    presets {
        /// An implementation for Contiki: er-cocoa with the probabilistic factor, up or down, in place of the variable
        /// backoff factor. Its arithmetic errors (a division by zero before the first group of samples, unsigned
        /// gradients, a count modulo 256) are not reproduced. `max_rto` bounds the RTO and timeouts of retransmissions,
        /// but a first timeout may be longer. Unsafe as published: timeouts may shrink from one retransmission to the
        /// next, and have no lower bound.
        "student-contiki" => |_| Self {
            min_rto: UNBOUNDED,
            max_rto: Duration::from_secs(60),
            rule: Rule::Student,
            final_wait: Switch::Off,
            ..Self::DEFAULT
        },
    }
}

choice! {
    /// The times that the delay gradients change.
    pub enum Rule {
        /// The RTO changes at the end of each interval.
        Gradient = "gradient",
        /// The timeout changes at each retransmission, in place of the backoff of er-cocoa.
        Student = "student",
    }
}

/// State of [`CocoaPlusPlus`] for one destination.
#[derive(Clone, Copy, Debug)]
pub struct CocoaPlusPlusState(Memory);

#[derive(Clone, Copy, Debug)]
enum Memory {
    Gradient { gradients: Gradients, rto: Fine },
    Student(Student),
}

impl Controller for CocoaPlusPlus {
    type State = CocoaPlusPlusState;
    type Exchange = CocoaExchange;

    fn state(&self) -> CocoaPlusPlusState {
        CocoaPlusPlusState(match self.rule {
            Rule::Student => Memory::Student(Student::new(self)),
            Rule::Gradient => {
                Memory::Gradient { gradients: Gradients::NEW, rto: self.bounded(self.initial_rto.into()) }
            }
        })
    }

    fn on_start(&self, state: &mut CocoaPlusPlusState, cue: Cue) -> (CocoaExchange, Duration) {
        let rto = match (self.rule, &mut state.0) {
            (Rule::Student, Memory::Student(student)) => return student.on_start(self, cue),
            (Rule::Gradient, Memory::Gradient { rto, .. }) => *rto,
            // A state of the other rule: the parameters were changed.
            _ => {
                *state = self.state();
                self.bounded(self.initial_rto.into())
            }
        };
        let dithered = rto.dithered(self.ack_random_factor, cue.draw);
        let timeout = dithered.min(self.max_rto.into());
        (CocoaExchange::waiting(timeout), timeout.into())
    }

    fn on_retransmit(
        &self,
        state: &mut CocoaPlusPlusState,
        exchange: &mut CocoaExchange,
        cue: Cue,
    ) -> Duration {
        match (self.rule, &state.0) {
            (Rule::Student, Memory::Student(student)) => {
                exchange.count();
                let timeout = exchange.timeout().by(student.factor(self, cue.draw));
                // The factor may shrink a timeout, but not to zero.
                exchange.wait_for(timeout.min(self.max_rto.into()).max(Fine::SHORTEST));
            }
            _ => exchange.back_off(self.backoff, self.max_rto.into()),
        }
        exchange.timeout().into()
    }

    fn on_end(&self, state: &mut CocoaPlusPlusState, exchange: CocoaExchange, outcome: Outcome, cue: Cue) {
        match (self.rule, &mut state.0) {
            (Rule::Student, Memory::Student(student)) => student.on_end(self, exchange, outcome, cue),
            (Rule::Gradient, Memory::Gradient { gradients, rto }) => {
                if let Outcome::Acked(sample) = outcome
                    && let Some(highest) = gradients.take(sample.since_first, cue.now)
                {
                    // The RTO does not undercut the greatest sample of the interval (see the readings above).
                    *rto = self.bounded(rto.by(self.factor(gradients, cue)).max(highest));
                }
            }
            // The parameters were changed. The next start makes a new state.
            _ => {}
        }
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        let all = self.max_rto.times(retransmits.into());
        // The first timeout of er-cocoa is dithered beyond its estimate, and multiplied before the first measurement.
        if self.rule == Rule::Student && retransmits > 0 { all + self.er_cocoa().max_span(1) } else { all }
    }

    fn limits(&self, state: &CocoaPlusPlusState) -> Limits {
        let limits = Limits::with_gauges(self.gauges(state), Marking::None);
        Limits { final_wait: self.final_wait.is_on(), ..limits }
    }

    /// Reports the greatest sample of the last interval as SRTT, because nothing is smoothed.
    #[inline(always)]
    fn gauges(&self, state: &CocoaPlusPlusState) -> Gauges {
        match (self.rule, &state.0) {
            (Rule::Student, Memory::Student(student)) => student.gauges(self),
            (Rule::Gradient, Memory::Gradient { gradients, rto }) => {
                Gauges { rto: (*rto).into(), srtt: gradients.highest(), ..Gauges::default() }
            }
            _ => Gauges { rto: self.bounded(self.initial_rto.into()).into(), ..Gauges::default() },
        }
    }
}

impl CocoaPlusPlus {
    fn bounded(&self, rto: Fine) -> Fine {
        rto.at_least(self.min_rto).min(self.max_rto.into())
    }

    /// Returns the probabilistic backoff factor (PBF): `up`, `down`, or 1 before the first gradient.
    fn factor(&self, gradients: &Gradients, cue: Cue) -> Ratio {
        match gradients.trend() {
            None => Ratio::new(1, 1),
            Some(trend) if gradient::rises(trend, self.scaling, cue.draw) => self.up,
            Some(_) => self.down,
        }
    }

    /// Returns the mechanism er-cocoa that the implementation for Contiki is based on, with the parameters of this
    /// mechanism.
    fn er_cocoa(&self) -> Cocoa {
        Cocoa {
            initial_rto: self.initial_rto,
            min_rto: self.min_rto,
            max_estimate: self.max_rto,
            ack_random_factor: self.ack_random_factor,
            final_wait: self.final_wait,
            ..Cocoa::ER_COCOA
        }
    }
}

/// The registry entry `cocoa-plus-plus`.
pub(crate) const COCOA_PLUS_PLUS: Entry = Entry {
    name: "cocoa-plus-plus",
    summary: "an RTO that grows while the least and greatest round-trip times rise, and shrinks else",
    source: "Rathod 2022 §6, CoCoA++; Hayes, Armitage 2011",
    origin: Origin::Published,
    notes: Notes {
        status: "Published in a doctoral thesis, with code that differs from it.",
        use_when: "Studying delay gradients. It needs twice the RAM of the others.",
        avoid_when: "Exchanges are rare: an interval takes several samples, and a gradient two intervals.",
        hazards: "The published code shortens timeouts between the retransmissions of an exchange, against \
            RFC 7252 §4.2. It is the preset `student-contiki`, for comparison alone. Here timeouts grow by \
            1.42, not by 2, so five of them take 11.4 RTO instead of 31. Samples are ambiguous. RFC 8085 \
            §3.1.1 forbids their use.",
    },
    mechanism: Mechanism::CocoaPlusPlus(CocoaPlusPlus::DEFAULT),
};

const _: () = assert!(size_of::<CocoaPlusPlusState>() < 64);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{acked, at, exchange, timeouts};
    use crate::{Draw, Instant};

    const PLUS: CocoaPlusPlus = CocoaPlusPlus::DEFAULT;

    /// Returns the RTO in milliseconds after each of some consecutive exchanges, which all have the same random draw.
    fn series<const N: usize>(draw: u32, rtts: [u64; N]) -> [u64; N] {
        let state = &mut PLUS.state();
        let mut now = 0;
        rtts.map(|ms| {
            let (exchange, _) = PLUS.on_start(state, at(now));
            now += ms;
            let cue = Cue { now: Instant::from_millis(now), draw: Draw::from_bits(draw), outstanding: 1 };
            PLUS.on_end(state, exchange, acked(ms, 0), cue);
            PLUS.gauges(state).rto.as_micros() / 1_000
        })
    }

    #[test]
    fn cocoa_plus_plus_lowers_the_rto_after_intervals_with_a_steady_round_trip_time() {
        let rto = series(0, [1_000; 12]);
        assert_eq!(rto, [2_000, 2_000, 2_000, 2_000, 2_000, 1_400, 1_400, 1_400, 1_000, 1_000, 1_000, 1_000]);
    }

    #[test]
    fn cocoa_plus_plus_raises_the_rto_if_delay_rises_and_the_random_draw_allows_it() {
        let rising = [500, 500, 500, 700, 700, 700];
        assert_eq!(series(0, rising)[5], 2_840);
        assert_eq!(series(u32::MAX, rising)[5], 2_840, "200 ms are more than 5 G: no draw is above that");
        assert_eq!(series(u32::MAX, [500, 500, 500, 510, 510, 510])[5], 1_400);
        assert_eq!(series(0, [500, 500, 500, 510, 510, 510])[5], 2_840);
    }

    #[test]
    fn the_rto_of_cocoa_plus_plus_is_never_below_the_last_sample() {
        assert_eq!(series(u32::MAX, [3_000; 6]), [2_000, 2_000, 3_000, 3_000, 3_000, 3_000]);
    }

    #[test]
    fn the_timeouts_of_cocoa_plus_plus_grow_with_each_retransmission() {
        assert_eq!(timeouts(&PLUS, &mut PLUS.state(), 4).1, [2_000, 2_840, 4_033, 5_727, 8_132]);
    }

    #[test]
    fn the_published_cocoa_plus_plus_may_shorten_timeouts_with_each_retransmission() {
        let mut student = PLUS;
        student.set("preset", "student-contiki").unwrap();
        assert_eq!(timeouts(&student, &mut student.state(), 4).1, [2_000, 1_400, 980, 686, 480]);
        let state = &mut student.state();
        for _ in 0..5 {
            exchange(&student, state, 5_000, 0); // 2 steps of 300 ticks: 86 %
        }
        let armed = |bits, state: &mut CocoaPlusPlusState| {
            let (mut exchange, first) = student.on_start(state, at(0));
            let cue = Cue { draw: Draw::from_bits(bits), ..at(0) };
            student.on_retransmit(state, &mut exchange, cue) > first
        };
        assert!(armed(1 << 31, state), "50 % are below 86 %");
        assert!(!armed(u32::MAX, state), "99 % are not");
    }
}
