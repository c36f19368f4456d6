//! The interface between a stack and a mechanism: all calls of a mechanism, or only the few numbers that a stack
//! accepts.

use core::num::NonZeroU16;

use crate::parameters::choice;
use crate::{
    Controller, Cue, Duration, Exchange, Gauges, Instant, Limits, Marking, Mechanism, Outcome, Sample, State,
};

choice! {
    /// The part of a mechanism's interface that a stack can use.
    #[derive(Default)]
    pub enum Form {
        /// All calls of [`Controller`].
        #[default]
        Full = "full",
        /// The parameter form (`coapace_parameters` and `coapace_observed` of `c/coapace.h`): the stack takes an
        /// ACK_TIMEOUT and a backoff factor, retransmits by itself, and reports how long an exchange took and how it
        /// ended.
        Parameters = "parameters",
    }
}

/// A mechanism, and the part of its interface that a stack can use.
///
/// With [`Form::Parameters`] the mechanism learns only when an exchange began and how it ended. The number of
/// retransmissions is computed from the time that passed. Transmissions are neither marked nor paced, and NSTART is 1
/// (RFC 7252 §4.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seam {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// The part of its interface that the stack can use.
    pub form: Form,
}

/// Makes a seam for a stack that can use the whole interface.
impl From<Mechanism> for Seam {
    fn from(mechanism: Mechanism) -> Self {
        Self { mechanism, form: Form::Full }
    }
}

/// The state of a [`Seam`] for one exchange.
#[derive(Clone, Copy, Debug)]
pub struct SeamExchange {
    exchange: Exchange,
    /// The numbers that the stack takes for this exchange; `None` with [`Form::Full`].
    numbers: Option<Numbers>,
}

/// The numbers that a stack takes from a mechanism for one exchange: its first timeout and the factor of its backoff.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Numbers {
    /// ACK_TIMEOUT in milliseconds, already dithered.
    ack_timeout: u32,
    /// The factor from one timeout to the next, in 1/1000.
    factor: NonZeroU16,
    /// The number of retransmissions so far, for an exchange that ends without an acknowledgement.
    retransmits: u8,
}

/// MAX_RETRANSMIT of RFC 7252 §4.8.
const MAX_RETRANSMIT: u8 = 4;

/// The shortest time after which RFC 7252 gives an exchange up, in milliseconds: 2 + 4 + 8 + 16 + 32 s.
const PATIENT: u32 = 62_000;

/// The longest timeout, in milliseconds: the longest time that mechanisms count, 2²⁸ µs.
const LONGEST: u32 = 268_435;

impl Numbers {
    /// Returns the numbers for an exchange whose first timeout is `first`. With these numbers the stack gives up no
    /// earlier than with RFC 7252.
    fn new(
        mechanism: &Mechanism,
        mut state: State,
        mut exchange: Exchange,
        cue: Cue,
        first: Duration,
    ) -> Self {
        let ack_timeout = first.as_micros().div_ceil(1_000).clamp(1, u64::from(LONGEST)) as u32;
        // The second timeout, by copies: nothing was lost yet.
        let second = mechanism.on_retransmit(&mut state, &mut exchange, cue);
        // Microseconds by milliseconds, so in 1/1000.
        let factor = second.as_micros() / u64::from(ack_timeout);
        let factor = NonZeroU16::new(factor.clamp(1_000, 60_000) as u16).unwrap_or(NonZeroU16::MAX);
        let mut numbers = Self { ack_timeout, factor, retransmits: 0 };
        // A stack gives up after its last timeout, so the backoff grows until all last as long as with RFC 7252.
        while numbers.is_short() {
            numbers.factor = numbers.factor.saturating_add(125);
        }
        numbers
    }

    /// Returns whether the sum of all timeouts is below the 62 s of RFC 7252.
    fn is_short(self) -> bool {
        let all: u32 = (0..=MAX_RETRANSMIT).map(|retransmits| self.timeout(retransmits)).sum();
        all < PATIENT
    }

    /// Returns the timeout after this many retransmissions, in milliseconds.
    fn timeout(self, retransmits: u8) -> u32 {
        (0..retransmits).fold(self.ack_timeout, |timeout, _| {
            // 65 s times the greatest factor fits 32 bits.
            (timeout.min(65_000) * u32::from(self.factor.get()) / 1_000).min(LONGEST)
        })
    }

    fn armed(self, retransmits: u8) -> Duration {
        Duration::from_millis(self.timeout(retransmits).into())
    }

    /// Returns the number of retransmissions in the time `since_first` after the first transmission, `most` at most,
    /// and the time since the last of them.
    fn last(self, since_first: Duration, most: u8) -> (u8, Duration) {
        let (mut retransmits, mut since_last) = (0, since_first);
        while retransmits < most && since_last >= self.armed(retransmits) {
            since_last = Duration::from_micros(since_last.as_micros() - self.armed(retransmits).as_micros());
            retransmits += 1;
        }
        (retransmits, since_last)
    }
}

impl Controller for Seam {
    type State = State;
    type Exchange = SeamExchange;

    fn state(&self) -> State {
        self.mechanism.state()
    }

    fn on_start(&self, state: &mut State, cue: Cue) -> (SeamExchange, Duration) {
        let (exchange, first) = self.mechanism.on_start(state, cue);
        let numbers = match self.form {
            Form::Full => None,
            Form::Parameters => Some(Numbers::new(&self.mechanism, *state, exchange, cue, first)),
        };
        let timeout = numbers.map_or(first, |numbers| numbers.armed(0));
        (SeamExchange { exchange, numbers }, timeout)
    }

    fn on_retransmit(&self, state: &mut State, exchange: &mut SeamExchange, cue: Cue) -> Duration {
        match &mut exchange.numbers {
            Some(numbers) => {
                numbers.retransmits = numbers.retransmits.saturating_add(1);
                numbers.armed(numbers.retransmits)
            }
            None => self.mechanism.on_retransmit(state, &mut exchange.exchange, cue),
        }
    }

    fn on_end(&self, state: &mut State, ended: SeamExchange, outcome: Outcome, cue: Cue) {
        let SeamExchange { mut exchange, numbers } = ended;
        let Some(numbers) = numbers else { return self.mechanism.on_end(state, exchange, outcome, cue) };
        let (observed, outcome) = match outcome {
            Outcome::Acked(sample) => {
                // The stack may report no retransmission, so their number follows from the time.
                let (observed, since_last) =
                    numbers.last(sample.since_first, numbers.retransmits.max(MAX_RETRANSMIT));
                (observed, Outcome::Acked(Sample::unmarked(sample.since_first, since_last, observed)))
            }
            // Without an acknowledgement no time is reported.
            other => (numbers.retransmits, other),
        };
        // The mechanism learns of the retransmissions only now.
        for _ in 0..observed {
            self.mechanism.on_retransmit(state, &mut exchange, cue);
        }
        self.mechanism.on_end(state, exchange, outcome, cue);
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        match self.form {
            Form::Full => self.mechanism.max_span(retransmits),
            Form::Parameters => Duration::from_millis(LONGEST.into()).times(retransmits.into()),
        }
    }

    fn limits(&self, state: &State) -> Limits {
        let limits = self.mechanism.limits(state);
        match self.form {
            Form::Full => limits,
            Form::Parameters => Limits {
                nstart: None,
                next_confirmable: Instant::ZERO,
                overtaken: None,
                marking: Marking::None,
                final_wait: true,
                ..limits
            },
        }
    }

    fn gauges(&self, state: &State) -> Gauges {
        self.mechanism.gauges(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    fn seam(mechanism: &str) -> Seam {
        Seam { mechanism: mechanism.parse().unwrap(), form: Form::Parameters }
    }

    fn numbers(ack_timeout: u32, factor: u16) -> Numbers {
        Numbers { ack_timeout, factor: NonZeroU16::new(factor).unwrap(), retransmits: 0 }
    }

    fn acked(after_ms: u64) -> Outcome {
        let since = Duration::from_millis(after_ms);
        Outcome::Acked(Sample::unmarked(since, since, 0))
    }

    /// The numbers of `c/test/unit.c`.
    #[test]
    fn the_numbers_are_those_of_the_c_source() {
        let ebb = seam("ebb");
        let state = &mut ebb.state();
        let (exchange, timeout) = ebb.on_start(state, at(0));
        assert_eq!(exchange.numbers, Some(numbers(2_000, 3_000)));
        assert_eq!(timeout, Duration::from_secs(2));
        ebb.on_end(state, exchange, acked(100), at(100));
        assert_eq!(ebb.gauges(state).rto, Duration::from_millis(250));
        let (exchange, timeout) = ebb.on_start(state, at(200));
        assert_eq!(timeout, Duration::from_millis(250));
        let factor = exchange.numbers.unwrap().factor.get();
        assert!(!numbers(250, factor).is_short() && numbers(250, factor - 125).is_short());
    }

    #[test]
    fn retransmissions_follow_from_the_time_that_passed() {
        let numbers = numbers(1_000, 2_000);
        let last = |ms| numbers.last(Duration::from_millis(ms), 4);
        assert_eq!(last(999), (0, Duration::from_millis(999)));
        assert_eq!(last(1_000), (1, Duration::ZERO));
        assert_eq!(last(6_999), (2, Duration::from_millis(3_999)));
        assert_eq!(last(90_000), (4, Duration::from_millis(75_000)), "no more than four");
    }

    #[test]
    fn a_mechanism_without_marks_learns_what_it_learns_from_the_full_seam() {
        for name in ["cocoa", "linux-rto", "default", "fasor"] {
            let (full, few) = (Seam::from(seam(name).mechanism), seam(name));
            let (mut learnt, mut heard) = (full.state(), few.state());
            for (n, rtt) in (0u64..).zip([400, 500, 300, 5_000, 450]) {
                let cue = at(n * 20_000);
                let (mut exchange, mut timeout) = few.on_start(&mut heard, cue);
                let mut same = full.on_start(&mut learnt, cue).0;
                let since_first = Duration::from_millis(rtt);
                let (mut since_last, mut lost) = (since_first, 0);
                while since_last >= timeout {
                    since_last = Duration::from_micros(since_last.as_micros() - timeout.as_micros());
                    timeout = few.on_retransmit(&mut heard, &mut exchange, cue);
                    full.on_retransmit(&mut learnt, &mut same, cue);
                    lost += 1;
                }
                let sample = Sample::unmarked(since_first, since_last, lost);
                full.on_end(&mut learnt, same, Outcome::Acked(sample), at(n * 20_000 + rtt));
                few.on_end(&mut heard, exchange, acked(rtt), at(n * 20_000 + rtt));
                assert_eq!(full.gauges(&learnt), few.gauges(&heard), "{name}, exchange {n}");
            }
        }
    }

    #[test]
    fn the_parameters_form_has_no_marking_no_pacing_and_no_window() {
        for name in ["ebb", "rtt-coap", "cocoa-i"] {
            let limits = seam(name).limits(&seam(name).state());
            assert_eq!(
                (limits.marking, limits.nstart, limits.next_confirmable),
                (Marking::None, None, Instant::ZERO)
            );
        }
    }
}
