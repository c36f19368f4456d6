//! Patterns of traffic: the times at which a client offers messages. A new pattern is a file in `patterns/` and a line in the registry.

use coapace_sim::{Span, Stream, Time};

/// Declares the modules of the patterns and lists their patterns, so that a new pattern needs one line here.
macro_rules! patterns {
    ($($file:ident)+) => {
        $(mod $file;)+

        /// Every pattern, in the sequence in which they are listed.
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

/// A pattern of traffic, which a scenario chooses by its name.
#[derive(Clone, Copy, Debug)]
pub struct Pattern {
    /// The name of the pattern in scenarios.
    pub name: &'static str,
    /// A description of the pattern, in one line.
    pub summary: &'static str,
    /// Whether all clients offer their messages at the same times, apart from the `spread` of the flow.
    pub is_common: bool,
    /// Whether periods with messages alternate with pauses (`on`, `off`). A rate is then averaged over both.
    pub has_pauses: bool,
    /// The rule for the time at which the next message of a client is due.
    pub pace: Pace,
}

/// Patterns are equal if their names are: no two patterns share a name.
impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Pattern {
    /// Returns whether all clients report one event, after which the time until the network settles is measured.
    pub fn is_event(&self) -> bool {
        matches!(self.pace, Pace::Once(_))
    }

    /// Returns whether the pattern needs an interval, or a rate that gives one.
    pub fn has_interval(&self) -> bool {
        matches!(self.pace, Pace::Clock(_))
    }

    /// Returns whether the next message is due when an exchange ends.
    pub fn is_backlogged(&self) -> bool {
        matches!(self.pace, Pace::Backlogged)
    }
}

/// The rule for the time at which the next message of a client is due.
#[derive(Clone, Copy, Debug)]
pub enum Pace {
    /// The clock decides when a message is due. The function returns this time.
    Clock(fn(timing: &Timing, turn: Turn) -> Time),
    /// The clock decides, and each client has only one message. The function returns the time at which the message is
    /// due.
    Once(fn(timing: &Timing, turn: Turn) -> Time),
    /// The next message is due when the client's previous exchange ends.
    Backlogged,
}

/// One message of one client, for which a pattern finds the time.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// The number of the client among all clients, which is the key of its random numbers.
    pub client: u32,
    /// The message's number, from 0.
    pub number: u32,
    /// The time at which the client's previous message was due; for the first message, the start of the flow.
    pub last: Time,
}

/// The times of a flow from its keys, and the random numbers for the times of its messages.
#[derive(Clone, Copy, Debug)]
pub struct Timing {
    /// The start of the flow.
    pub start: Time,
    /// The mean time from one message of a client to its next, without pauses; or the time from one burst to the next.
    pub interval: Span,
    /// The span over which the messages of an event or a burst are spread.
    pub spread: Span,
    /// The mean length of a period with messages.
    pub on: Span,
    /// The mean length of a pause between such periods.
    pub off: Span,
    /// Random numbers, keyed by client, message and purpose.
    pub stream: Stream,
}

impl Timing {
    /// Draws a time from `from` until `span` later, uniformly. `turn` and `purpose` are the key of the random number.
    fn within(&self, from: Time, span: Span, turn: Turn, purpose: u64) -> Time {
        from + self.stream.within(span, u64::from(turn.client), u64::from(turn.number), purpose)
    }

    /// Draws a span from an exponential distribution with this mean. `turn` and `purpose` are the key of the random
    /// number.
    fn exponential(&self, mean: Span, turn: Turn, purpose: u64) -> Span {
        exponential(mean, self.stream.unit(u64::from(turn.client), u64::from(turn.number), purpose))
    }
}

/// Converts a number that is uniform in [0, 1) to a span from an exponential distribution with this mean.
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

    /// Returns the times of a client's messages until 100,000 s, in seconds after the start.
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
    fn a_constant_client_sends_at_its_interval_from_its_own_random_start() {
        let (one, other) = (moments("constant", 1), moments("constant", 2));
        assert!(gaps(&one).iter().all(|gap| (gap - 10.0).abs() < 1e-6));
        assert!((0.0..10.0).contains(&one[0]) && (0.0..10.0).contains(&other[0]));
        assert!((one[0] - other[0]).abs() > 1e-3);
    }

    #[test]
    fn in_the_event_pattern_every_client_sends_once_for_each_event() {
        for client in 1..20 {
            let times = moments("event", client);
            assert!(times.len() == 1 && (0.0..2.0).contains(&times[0]), "{times:?}");
        }
    }

    #[test]
    fn bursts_start_at_their_interval_and_last_at_most_their_spread() {
        for client in 1..20 {
            let times = moments("bursts", client);
            assert_eq!(times.len(), 10_000);
            for (burst, at) in times.iter().enumerate() {
                assert!((0.0..2.0).contains(&(at - 10.0 * burst as f64)), "{at}");
            }
        }
    }

    #[test]
    fn poisson_traffic_has_exponential_gaps() {
        let gaps = gaps(&moments("poisson", 3));
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 10.0).abs() < 0.3, "{mean}");
        assert!((variance.sqrt() - 10.0).abs() < 0.5, "{}", variance.sqrt());
    }

    #[test]
    fn an_on_off_client_has_the_configured_interval_and_pauses() {
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
    fn names_of_traffic_patterns_are_found_and_distinct() {
        for pattern in PATTERNS {
            assert_eq!(named(pattern.name).summary, pattern.summary);
        }
    }
}
