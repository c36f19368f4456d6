//! Patterns of traffic: the times at which a client offers messages. A new pattern is a file in `patterns/` and a line in the registry.

use coapace_sim::{Span, Stream, Time};

/// Declares the files and lists what they hold, so that one line is enough for both.
macro_rules! patterns {
    ($($file:ident)+) => {
        $(mod $file;)+

        /// Every pattern, in the order they are listed.
        pub const PATTERNS: &[Pattern] = &[$($file::PATTERN,)+];
    };
}

patterns! {
    constant
    backlogged
    event
    bursts
    poisson
    on_off
}

/// A pattern as scenarios choose it.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// Its name in scenarios.
    pub name: &'static str,
    /// Its description, in one line.
    pub summary: &'static str,
    /// Whether all clients offer a message at the same moments, the spread aside.
    pub is_common: bool,
    /// Whether periods with messages alternate with pauses (`on`, `off`). A rate is then averaged over both.
    pub has_pauses: bool,
    /// The cause of the next message.
    pub pace: Pace,
}

/// Patterns have names of their own.
impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Pattern {
    /// Returns whether all clients report one event, after which the network has to settle.
    pub fn is_event(&self) -> bool {
        matches!(self.pace, Pace::Once(_))
    }

    /// Returns whether it needs an interval, or a rate that makes one.
    pub fn has_interval(&self) -> bool {
        matches!(self.pace, Pace::Clock(_))
    }

    /// Returns whether the end of an exchange makes the next message due.
    pub fn is_backlogged(&self) -> bool {
        matches!(self.pace, Pace::Backlogged)
    }
}

/// The cause of the next message.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// The clock: the moment of a client's message of this number, counted from 0, after the one before.
    Clock(fn(timing: &Timing, turn: Turn) -> Time),
    /// The clock, once.
    Once(fn(timing: &Timing, turn: Turn) -> Time),
    /// The end of the exchange before.
    Backlogged,
}

/// A message of a client.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// The client's number among all: the key of its random numbers.
    pub client: u32,
    /// The message's number, from 0.
    pub number: u32,
    /// The time at which the message before was due; for the first, the start of the flow.
    pub last: Time,
}

/// The times of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The start of the flow.
    pub start: Time,
    /// The time from a client's message to its next, on average, pauses aside; between bursts.
    pub interval: Span,
    /// The span over which a common moment of all clients is spread.
    pub spread: Span,
    /// The mean length of a period with messages.
    pub on: Span,
    /// The mean length of a pause between such periods.
    pub off: Span,
    /// Random numbers, keyed by client, message and purpose.
    pub stream: Stream,
}

impl Timing {
    /// Returns a moment less than `span` after `from`, uniformly.
    fn within(&self, from: Time, span: Span, turn: Turn, purpose: u64) -> Time {
        from + self.stream.within(span, u64::from(turn.client), u64::from(turn.number), purpose)
    }

    /// Returns a span of this mean, exponentially distributed.
    fn exponential(&self, mean: Span, turn: Turn, purpose: u64) -> Span {
        exponential(mean, self.stream.unit(u64::from(turn.client), u64::from(turn.number), purpose))
    }
}

/// Returns a span of an exponential distribution with this mean, made of a number that is uniform in [0, 1).
pub(crate) fn exponential(mean: Span, unit: f64) -> Span {
    // 1 − u is never 0, so this is at most 37 times the mean. A time too long for the clock never comes.
    #[allow(clippy::cast_sign_loss)]
    let ns = (-libm::log(1.0 - unit) * mean.as_nanos() as f64) as u64;
    Span::from_nanos(ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use coapace_sim::Luck;

    fn timing() -> Timing {
        Timing {
            start: Time::from_secs(60),
            interval: Span::from_secs(10),
            spread: Span::from_secs(2),
            on: Span::from_secs(30),
            off: Span::from_secs(60),
            stream: Luck::new(1).stream("flow"),
        }
    }

    fn named(name: &str) -> &'static Pattern {
        PATTERNS.iter().find(|pattern| pattern.name == name).unwrap()
    }

    /// Returns the moments of a client's messages until 100,000 s, in seconds after the start.
    fn moments(name: &str, client: u32) -> Vec<f64> {
        let (next, most) = match named(name).pace {
            Pace::Clock(next) => (next, usize::MAX),
            Pace::Once(next) => (next, 1),
            Pace::Backlogged => panic!("{name}"),
        };
        let timing = timing();
        let turns = std::iter::successors(Some((0, timing.start)), |&(number, last)| {
            let at = next(&timing, Turn { client, number, last });
            (at < Time::from_secs(100_060)).then_some((number + 1, at))
        });
        turns.skip(1).take(most).map(|(_, at)| at.as_secs_f64() - 60.0).collect()
    }

    fn gaps(moments: &[f64]) -> Vec<f64> {
        moments.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    #[test]
    fn a_constant_client_sends_every_interval_from_a_moment_of_its_own() {
        let (one, other) = (moments("constant", 1), moments("constant", 2));
        assert!(gaps(&one).iter().all(|gap| (gap - 10.0).abs() < 1e-6));
        assert!((0.0..10.0).contains(&one[0]) && (0.0..10.0).contains(&other[0]));
        assert!((one[0] - other[0]).abs() > 1e-3);
    }

    #[test]
    fn an_event_is_told_once_by_everyone() {
        for client in 1..20 {
            let told = moments("event", client);
            assert!(told.len() == 1 && (0.0..2.0).contains(&told[0]), "{told:?}");
        }
    }

    #[test]
    fn bursts_come_every_interval_and_last_no_longer_than_their_spread() {
        for client in 1..20 {
            let told = moments("bursts", client);
            assert_eq!(told.len(), 10_000);
            for (burst, at) in told.iter().enumerate() {
                assert!((0.0..2.0).contains(&(at - 10.0 * burst as f64)), "{at}");
            }
        }
    }

    #[test]
    fn poisson_gaps_have_the_mean_and_the_deviation_of_an_exponential() {
        let gaps = gaps(&moments("poisson", 3));
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 10.0).abs() < 0.3, "{mean}");
        assert!((variance.sqrt() - 10.0).abs() < 0.5, "{}", variance.sqrt());
    }

    #[test]
    fn a_client_on_and_off_has_its_interval_and_the_pauses_that_were_asked_for() {
        let gaps = gaps(&moments("on-off", 4));
        let (runs, pauses): (Vec<f64>, Vec<f64>) = gaps.iter().partition(|&&gap| gap < 10.0 + 1e-6);
        assert!(runs.iter().all(|gap| (gap - 10.0).abs() < 1e-6));
        // One message of three ends its period: 30 s are three intervals.
        let share = pauses.len() as f64 / gaps.len() as f64;
        assert!((share - 1.0 / 3.0).abs() < 0.02, "{share}");
        let mean = pauses.iter().map(|gap| gap - 10.0).sum::<f64>() / pauses.len() as f64;
        assert!((mean - 60.0).abs() < 4.0, "{mean}");
    }

    #[test]
    fn names_are_found_and_distinct() {
        for pattern in PATTERNS {
            assert_eq!(named(pattern.name).summary, pattern.summary);
        }
    }
}
