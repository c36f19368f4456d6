//! The clock and the random numbers of an endpoint.

use std::hash::{BuildHasher, RandomState};
use std::time;

use coapace_control::{Draw, Instant};
use coapace_proto::Token;

/// The monotonic clock of the system, counted from the creation of an endpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(time::Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(time::Instant::now())
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_micros(self.0.elapsed().as_micros() as u64)
    }

    /// Converts a time of the system's monotonic clock to this clock. A time before the start of this clock becomes 0.
    pub(crate) fn moment(&self, at: time::Instant) -> Instant {
        Instant::from_micros(at.saturating_duration_since(self.0).as_micros() as u64)
    }

    /// Converts a time of this clock for a timer of tokio. Returns `None` if the time is more than a year away.
    pub(crate) fn at(&self, moment: Instant) -> Option<tokio::time::Instant> {
        // A timer of tokio that is set for years ahead expires at once.
        const DISTANT: time::Duration = time::Duration::from_secs(366 * 24 * 60 * 60);
        let from_start = time::Duration::from_micros(moment.as_micros());
        let near = from_start < self.0.elapsed() + DISTANT;
        near.then(|| tokio::time::Instant::from_std(self.0 + from_start))
    }
}

/// Generates unpredictable random numbers: SipHash of a counter, with keys of the operating system.
#[derive(Debug, Default)]
pub(crate) struct Random {
    keys: RandomState,
    drawn: u64,
}

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.drawn += 1;
        self.keys.hash_one(self.drawn)
    }

    pub(crate) fn draw(&mut self) -> Draw {
        Draw::from_bits(self.next() as u32)
    }

    /// Returns a token of 6 bytes: 32 random bits (RFC 7252 §5.3.1) and a counter, so that no two of the last 65,536 are equal.
    /// Two bytes are left for a mechanism that marks its transmissions in the token.
    pub(crate) fn token(&mut self) -> Token {
        let mut bytes = self.next().to_le_bytes();
        // The count makes tokens distinct, and the random bits keep them from being guessed.
        bytes[4..6].copy_from_slice(&(self.drawn as u16).to_le_bytes());
        Token::new(&bytes[..6]).unwrap_or(Token::EMPTY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_unique_and_leave_a_byte_for_a_marking() {
        let mut random = Random::default();
        let tokens: std::collections::HashSet<Token> = (0..60_000).map(|_| random.token()).collect();
        assert_eq!(tokens.len(), 60_000);
        assert!(tokens.iter().all(|token| token.len() == 6));
    }
}
