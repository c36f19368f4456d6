//! The lateness of timers.

use std::fmt;

use coapace_sim::Span;

/// The lateness of the calls of hosts. It is the delay from the time for which a host has asked to the time of the
/// call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lateness {
    /// The number of calls of hosts.
    pub calls: u64,
    /// The calls that came more than 1 ms late.
    pub over_1_ms: u64,
    /// The calls that came more than 10 ms late.
    pub over_10_ms: u64,
    /// The longest delay.
    pub longest: Span,
}

impl Lateness {
    /// Counts a call that was made `late` after the requested time.
    pub fn add(&mut self, late: Span) {
        self.calls += 1;
        self.over_1_ms += u64::from(late > Span::from_millis(1));
        self.over_10_ms += u64::from(late > Span::from_millis(10));
        self.longest = self.longest.max(late);
    }

    /// Adds the calls of another run.
    pub fn merge(&mut self, other: Self) {
        self.calls += other.calls;
        self.over_1_ms += other.over_1_ms;
        self.over_10_ms += other.over_10_ms;
        self.longest = self.longest.max(other.longest);
    }

    /// Returns whether the machine was too busy for valid results: more than one call in a hundred was more than 10 ms late.
    pub fn is_overloaded(&self) -> bool {
        self.over_10_ms * 100 > self.calls
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, over_1_ms, over_10_ms, longest } = self;
        let share = |count: u64| count as f64 / (*calls).max(1) as f64 * 100.0;
        write!(
            f,
            "{calls} timers; {:.2} % fired more than 1 ms late, {:.2} % more than 10 ms, the latest {:.1} ms",
            share(*over_1_ms),
            share(*over_10_ms),
            longest.as_secs_f64() * 1e3
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_overloaded_when_more_than_one_timer_in_a_hundred_is_10_ms_late() {
        let mut lateness = Lateness::default();
        assert!(!lateness.is_overloaded());
        (0..99).for_each(|_| lateness.add(Span::from_micros(80)));
        lateness.add(Span::from_millis(30));
        assert!(!lateness.is_overloaded());
        assert_eq!(
            lateness.to_string(),
            "100 timers; 1.00 % fired more than 1 ms late, 1.00 % more than 10 ms, the latest 30.0 ms"
        );
        lateness.merge(lateness);
        lateness.add(Span::from_millis(11));
        assert!(lateness.is_overloaded());
    }
}
