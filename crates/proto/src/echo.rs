//! Echo (RFC 9175 §2), which verifies that a client receives messages to its address.
//!
//! An attacker may send requests in the name of a victim, so that a server sends large responses to the victim. To prevent
//! that, a server sends anyone no more than an [`Allowance`](crate::Allowance). Instead of a larger response it answers 4.01
//! with an Echo value, and the client repeats the request with that value. The server need not store the values that it has
//! made.

use alloc::collections::VecDeque;
use core::hash::Hasher;

use coap_numbers::{code, option};
use coapace_control::{Duration, Instant};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use siphasher::sip::SipHasher24;

use crate::options::Options;
use crate::peer::Address;
use crate::{Message, Tail};

/// The length of an Echo value, bytes: a time and its MAC.
const LEN: usize = 12;

/// A maker and verifier of Echo values. A value is the time in seconds at which it was made, and a MAC of the time and
/// the address (RFC 9175 Appendix A, item 2).
#[derive(Clone)]
pub struct Echo {
    key: [u8; 16],
    freshness: Duration,
}

impl core::fmt::Debug for Echo {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Echo").field("freshness", &self.freshness).finish_non_exhaustive()
    }
}

impl Echo {
    /// Creates a maker and verifier of Echo values from a secret `key`. Draw the key from the randomness of the
    /// operating system at every start. A value is fresh for the time `freshness`, to the second.
    pub const fn new(key: [u8; 16], freshness: Duration) -> Self {
        Self { key, freshness }
    }

    /// Returns the Echo value for this address.
    pub fn value<A: Address>(&self, now: Instant, to: A) -> [u8; LEN] {
        // In seconds, 32 bits last for 136 years.
        self.value_of((now.as_micros() / 1_000_000) as u32, to)
    }

    /// Returns whether `value` was made with this key for this address, and is fresh.
    pub fn is_fresh<A: Address>(&self, now: Instant, from: A, value: &[u8]) -> bool {
        let Some((time, _)) = value.split_first_chunk() else { return false };
        let made = u32::from_be_bytes(*time);
        // The clock does not go back and the key is new at each start, so a value from the future is forged.
        let age = (now.as_micros() / 1_000_000).checked_sub(made.into());
        age.is_some_and(|age| Duration::from_secs(age) <= self.freshness)
            && is_equal(value, &self.value_of(made, from))
    }

    fn value_of<A: Address>(&self, made: u32, address: A) -> [u8; LEN] {
        let mut mac = SipHasher24::new_with_key(&self.key);
        mac.write(&made.to_be_bytes());
        address.hash(&mut mac);
        let mut value = [0; LEN];
        value[..4].copy_from_slice(&made.to_be_bytes());
        value[4..].copy_from_slice(&mac.finish().to_be_bytes());
        value
    }
}

/// Compares two values in a time that does not depend on how many bytes are equal. So a value cannot be guessed byte by
/// byte.
fn is_equal(value: &[u8], right: &[u8; LEN]) -> bool {
    value.len() == LEN && value.iter().zip(right).fold(0, |differs, (a, b)| differs | (a ^ b)) == 0
}

/// The gate for large responses: it knows which clients have verified their address with an Echo value.
#[derive(Debug)]
pub struct Gate<A> {
    echo: Echo,
    /// The verified addresses, with the time of verification.
    verified: HashMap<A, Instant, FixedState>,
    /// The verified addresses, sorted by time of verification.
    order: VecDeque<A>,
    bound: usize,
}

impl<A: Address> Gate<A> {
    /// Creates a gate that remembers at most `bound` verified addresses, each for as long as an Echo value is fresh.
    pub fn new(echo: Echo, bound: usize) -> Self {
        // Nobody else knows the key, so nobody can make addresses whose hashes collide.
        let seed = u64::from_le_bytes(*echo.key.first_chunk().unwrap_or(&[0; 8]));
        let verified = HashMap::with_hasher(FixedState::with_seed(seed));
        Self { echo, verified, order: VecDeque::new(), bound }
    }

    /// Returns whether the client has returned a fresh Echo value, in this request or in an earlier one that is
    /// remembered.
    ///
    /// If not, a response larger than the [`Allowance`](crate::Allowance) of the request must not be sent to the
    /// client. The server then does not execute the request. It answers 4.01 with the options of
    /// [`challenge`](Self::challenge), piggybacked or non-confirmable.
    pub fn verifies(&mut self, now: Instant, from: A, request: &Message<'_>) -> bool {
        let fresh = |at: Instant| now.since(at) <= self.echo.freshness;
        let shown = request.echo().is_some_and(|value| self.echo.is_fresh(now, from, value));
        if self.verified.get(&from).is_some_and(|&at| fresh(at)) {
            return true;
        }
        // Without a table, each request has to show a value of its own.
        if !shown || self.bound == 0 {
            return shown;
        }
        // Addresses that are no longer fresh leave, and the oldest one if the table is full.
        while let Some(oldest) = self.order.front()
            && (self.order.len() >= self.bound || !self.verified.get(oldest).is_some_and(|&at| fresh(at)))
        {
            self.verified.remove(oldest);
            self.order.pop_front();
        }
        // If `from` was there, it was no longer fresh and has left with the others, so the queue has it only once.
        self.verified.insert(from, now);
        self.order.push_back(from);
        true
    }

    /// Returns the options of a 4.01 response that asks the client to repeat its request.
    pub fn challenge(&self, now: Instant, to: A) -> Tail {
        // The length of the value is allowed, so this does not fail.
        Options::default().echo(&self.echo.value(now, to)).tail(&[]).unwrap_or_default()
    }
}

/// Returns the Echo value of a 4.01 response. The client repeats the request with it (RFC 9175 §2.3). Returns `None`
/// for any other response, where an Echo value is for the next request to that server.
pub fn challenged<'a>(response: &Message<'a>) -> Option<&'a [u8]> {
    response.echo().filter(|_| response.code.0 == code::UNAUTHORIZED)
}

/// Returns the options for repeating a request with this Echo value.
#[must_use]
pub fn repeated(request: Options, value: &[u8]) -> Options {
    request.without(option::ECHO).echo(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Code, Kind};

    const KEY: [u8; 16] = *b"0123456789abcdef";

    fn echo() -> Echo {
        Echo::new(KEY, Duration::from_secs(60))
    }

    fn message(code: u8, tail: &Tail) -> Message<'_> {
        Message { code: Code(code), tail: tail.as_bytes(), ..Message::empty(Kind::Confirmable, 1) }
    }

    fn secs(secs: u64) -> Instant {
        Instant::from_secs(secs)
    }

    #[test]
    fn an_echo_value_is_valid_only_for_its_address_time_and_key() {
        let value = echo().value(secs(100), 'a');
        assert!(echo().is_fresh(secs(100), 'a', &value) && echo().is_fresh(secs(160), 'a', &value));
        assert!(!echo().is_fresh(secs(161), 'a', &value), "too old");
        assert!(!echo().is_fresh(secs(99), 'a', &value), "from the future");
        assert!(!echo().is_fresh(secs(100), 'b', &value), "of another");
        assert!(!Echo::new([0; 16], Duration::MAX).is_fresh(secs(100), 'a', &value), "of another server");
        assert!(!echo().is_fresh(secs(100), 'a', &[]) && !echo().is_fresh(secs(100), 'a', &value[..11]));
    }

    #[test]
    fn the_debug_output_does_not_show_the_echo_key() {
        assert!(!std::format!("{:?}", echo()).contains("48"));
    }

    #[test]
    fn a_client_that_repeats_its_request_with_the_echo_value_is_verified_for_a_time() {
        let mut gate = Gate::new(echo(), 2);
        let plain = Tail::default();
        let request = message(1, &plain);
        assert!(!gate.verifies(secs(0), 'a', &request));
        let challenge = gate.challenge(secs(0), 'a');
        let value = challenged(&message(code::UNAUTHORIZED, &challenge)).unwrap();
        let again = repeated(Options::default().echo(b"old"), value).tail(b"").unwrap();
        assert!(!gate.verifies(secs(1), 'b', &message(1, &again)), "it is not b's");
        assert!(gate.verifies(secs(1), 'a', &message(1, &again)));
        assert!(gate.verifies(secs(61), 'a', &request), "it is known");
        assert!(!gate.verifies(secs(62), 'a', &request), "no longer");
    }

    #[test]
    fn an_echo_value_in_a_response_other_than_4_01_does_not_repeat_the_request() {
        let preemptive = Options::default().echo(b"v").tail(b"").unwrap();
        assert_eq!(challenged(&message(code::CONTENT, &preemptive)), None);
    }

    #[test]
    fn a_full_table_of_verified_addresses_drops_the_oldest() {
        let mut gate = Gate::new(echo(), 2);
        let plain = Tail::default();
        let show = |gate: &mut Gate<char>, from| {
            let tail = Options::default().echo(&echo().value(secs(0), from)).tail(b"").unwrap();
            assert!(gate.verifies(secs(0), from, &message(1, &tail)));
        };
        show(&mut gate, 'a');
        show(&mut gate, 'b');
        assert!(gate.verifies(secs(0), 'a', &message(1, &plain)));
        show(&mut gate, 'c');
        assert!(!gate.verifies(secs(0), 'a', &message(1, &plain)));
        assert!(gate.verifies(secs(0), 'b', &message(1, &plain)));
    }

    proptest! {
        #[test]
        fn an_echo_value_with_any_changed_byte_is_invalid(at in 0usize..LEN, bit in 0u8..8) {
            let mut value = echo().value(secs(100), 'a');
            value[at] ^= 1 << bit;
            prop_assert!(!echo().is_fresh(secs(100), 'a', &value));
        }
    }
}
