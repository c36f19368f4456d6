//! Simulated time: integer nanoseconds since the start of a run.

use std::fmt;
use std::ops::{Add, Sub};

use coapace_control::Instant;

use crate::Span;

/// A moment of a run, in nanoseconds since its start.
///
/// Endpoints count microseconds ([`Instant`]). Links need finer steps, because a byte on a fast link takes less than
/// one microsecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The start of a run.
    pub const ZERO: Self = Self(0);
    /// The moment that is never reached.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns the moment `ns` nanoseconds after the start.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// Returns the moment `s` seconds after the start.
    pub const fn from_secs(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000_000))
    }

    /// Returns the nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the seconds since the start.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the moment for an endpoint, in whole microseconds, rounded down.
    pub const fn instant(self) -> Instant {
        Instant::from_micros(self.0 / 1_000)
    }
}

/// Converts an endpoint's moment to the first nanosecond of its microsecond.
impl From<Instant> for Time {
    fn from(instant: Instant) -> Self {
        Self(instant.as_micros().saturating_mul(1_000))
    }
}

/// Returns the moment after a span, saturating.
impl Add<Span> for Time {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.as_nanos()))
    }
}

/// Returns the moment before a span, or the start.
impl Sub<Span> for Time {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.as_nanos()))
    }
}

/// Returns the span since another moment, or zero if that is later.
impl Sub for Time {
    type Output = Span;
    fn sub(self, earlier: Self) -> Span {
        Span::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}
