//! Messages received lately, so that a duplicate is recognised and answered alike (RFC 7252 §4.5).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use coapace_control::{Duration, Instant};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::message::{Code, Token};
use crate::peer::Address;

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// Nothing was sent yet.
    Open,
    /// An empty acknowledgement was sent.
    Acknowledged,
    /// A response was piggybacked on the acknowledgement.
    Replied {
        code: Code,
        /// Options and payload.
        tail: Vec<u8>,
    },
}

/// What tells messages apart: where it came from, its Message ID, and its token, ordinals of transmissions aside. With the
/// same Message ID and another token it is another message: its sender has restarted, knows nothing of the Message IDs that
/// it had used, and would take the answer to the other for its own.
type Key<A> = (A, u16, u64);

#[derive(Debug)]
struct Entry<A> {
    key: Key<A>,
    expires: Instant,
    memory: Memory,
}

/// The messages, oldest first.
#[derive(Debug)]
pub(crate) struct Deduplication<A> {
    entries: VecDeque<Entry<A>>,
    /// From the key to the entry's number.
    index: HashMap<Key<A>, u64, FixedState>,
    /// The number of the entry at the front.
    front: u64,
    bound: usize,
    /// How long a confirmable message is remembered, and how long a non-confirmable one.
    exchange_lifetime: Duration,
    non_lifetime: Duration,
    /// Copies recognised.
    pub(crate) duplicates: u64,
    /// Messages forgotten before their time.
    pub(crate) forgotten_early: u64,
}

impl<A: Address> Deduplication<A> {
    pub(crate) fn new(bound: u32, seed: u64, exchange_lifetime: Duration, non_lifetime: Duration) -> Self {
        Self {
            entries: VecDeque::new(),
            index: HashMap::with_hasher(FixedState::with_seed(seed)),
            front: 0,
            bound: bound as usize,
            exchange_lifetime,
            non_lifetime,
            duplicates: 0,
            forgotten_early: 0,
        }
    }

    /// What is remembered of this message.
    pub(crate) fn find(
        &mut self,
        now: Instant,
        from: A,
        message_id: u16,
        token: Token,
    ) -> Option<&mut Memory> {
        let place = self.place(now, from, message_id, token)?;
        Some(&mut self.entries.get_mut(place)?.memory)
    }

    /// What is remembered of a message that has just arrived: if anything, it is a copy, and counted.
    pub(crate) fn recognise(
        &mut self,
        now: Instant,
        from: A,
        message_id: u16,
        token: Token,
    ) -> Option<&mut Memory> {
        let place = self.place(now, from, message_id, token)?;
        self.duplicates += 1;
        Some(&mut self.entries.get_mut(place)?.memory)
    }

    /// Where the entry of a message is, counted from the oldest.
    fn place(&mut self, now: Instant, from: A, message_id: u16, token: Token) -> Option<usize> {
        self.expire(now);
        Some((self.index.get(&(from, message_id, token.base()))? - self.front) as usize)
    }

    /// Remembers a message for its lifetime; where there is no room, the oldest is forgotten before its time.
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        from: A,
        message_id: u16,
        token: Token,
        confirmable: bool,
        memory: Memory,
    ) {
        self.expire(now);
        if self.bound == 0 {
            return;
        }
        if self.entries.len() >= self.bound {
            self.forget_oldest();
            self.forgotten_early += 1;
        }
        let key = (from, message_id, token.base());
        self.index.insert(key, self.front + self.entries.len() as u64);
        let lifetime = if confirmable { self.exchange_lifetime } else { self.non_lifetime };
        self.entries.push_back(Entry { key, expires: now + lifetime, memory });
    }

    /// Forgets what is older than its lifetime. Lifetimes of one endpoint differ by less than a few minutes, and one
    /// that is kept a little longer behind another does no harm.
    fn expire(&mut self, now: Instant) {
        while self.entries.front().is_some_and(|entry| entry.expires <= now) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(entry) = self.entries.pop_front() {
            if self.index.get(&entry.key) == Some(&self.front) {
                self.index.remove(&entry.key);
            }
            self.front += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Duration = Duration::from_secs(247);

    #[test]
    fn a_message_is_remembered_for_its_lifetime_and_no_longer() {
        let mut seen = Deduplication::new(10, 1, LIFETIME, LIFETIME);
        seen.insert(Instant::ZERO, 'a', 7, Token::EMPTY, true, Memory::Open);
        assert_eq!(seen.find(Instant::from_millis(246_999), 'a', 7, Token::EMPTY), Some(&mut Memory::Open));
        assert_eq!(seen.find(Instant::from_millis(1), 'b', 7, Token::EMPTY), None);
        assert_eq!(seen.find(Instant::from_secs(247), 'a', 7, Token::EMPTY), None);
    }

    #[test]
    fn a_message_with_the_id_of_another_and_another_token_is_no_copy_but_one_with_an_ordinal_may_be() {
        let token = |bytes: &[u8]| Token::new(bytes).unwrap();
        for (first, second, copy) in [
            (&b""[..], &b""[..], true),
            (b"abc", b"abc", true),
            (b"abc", b"abd", false),
            (b"abc", b"abc\x01", true),
            (b"abc\x03", b"abc", true),
            (b"abc\x01", b"abc\x02", true),
            (b"abc", b"abcd", false),
            (b"abc\x01", b"abd\x02", false),
            (b"", b"\x02", true),
            (b"", b"ab", false),
            (b"a\x05", b"a\x05\x01", true),
            (b"a\x05", b"a\x06", true),
        ] {
            let mut seen = Deduplication::new(10, 1, LIFETIME, LIFETIME);
            seen.insert(Instant::ZERO, 'a', 7, token(first), true, Memory::Open);
            let known = seen.recognise(Instant::ZERO, 'a', 7, token(second)).is_some();
            assert_eq!(known, copy, "{first:?} {second:?}");
            assert_eq!(seen.duplicates, u64::from(copy));
        }
    }

    #[test]
    fn the_oldest_leaves_when_full_and_that_is_reported() {
        let mut seen = Deduplication::new(2, 1, LIFETIME, LIFETIME);
        seen.insert(Instant::ZERO, 'a', 1, Token::EMPTY, true, Memory::Open);
        seen.insert(Instant::ZERO, 'a', 2, Token::EMPTY, true, Memory::Open);
        assert_eq!(seen.forgotten_early, 0);
        seen.insert(Instant::ZERO, 'a', 3, Token::EMPTY, true, Memory::Acknowledged);
        assert_eq!(seen.forgotten_early, 1);
        assert_eq!(seen.find(Instant::ZERO, 'a', 1, Token::EMPTY), None);
        assert_eq!(seen.find(Instant::ZERO, 'a', 3, Token::EMPTY), Some(&mut Memory::Acknowledged));
    }
}
