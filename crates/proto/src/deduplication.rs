//! Messages received lately, so that a duplicate is recognised and answered alike (RFC 7252 §4.5).

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::hash::BuildHasher;

use coapace_control::{Duration, Instant};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::code::Code;
use crate::message::Token;
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

/// Idempotent requests that are remembered, at most: no more than half of the Message IDs there are, so that of a client
/// that goes round them within EXCHANGE_LIFETIME, as it must not (RFC 7252 §4.4), none is taken for one of long ago.
const IDEMPOTENT: u32 = 32_768;

/// A source may have one in eight places where all are taken.
const SHARE: usize = 8;

/// Sources are counted in so many classes.
const SOURCES: usize = 256;

/// What arrived lately, in three lots. What does no harm if it is done again is in one: however many such messages strangers
/// send, the others are not forgotten for them (RFC 7252 §4.5 lets a server handle copies of idempotent requests anew).
#[derive(Debug)]
pub(crate) struct Deduplication<A> {
    idempotent: Memories<A>,
    others: Memories<A>,
    /// Those that a source sent beyond its share of the others.
    beyond: Memories<A>,
    /// How many of the others each class of sources has.
    shares: Vec<u32>,
    source: fn(&A) -> u64,
    /// How long a confirmable message is remembered, and how long a non-confirmable one.
    exchange_lifetime: Duration,
    non_lifetime: Duration,
    /// Copies recognised.
    pub(crate) duplicates: u64,
}

/// A message to remember.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<A> {
    pub(crate) from: A,
    pub(crate) message_id: u16,
    pub(crate) token: Token,
    pub(crate) confirmable: bool,
    /// Whether a copy of it may be handled anew.
    pub(crate) idempotent: bool,
}

impl<A: Address> Deduplication<A> {
    pub(crate) fn new(bound: u32, seed: u64, exchange_lifetime: Duration, non_lifetime: Duration) -> Self {
        let all = bound as usize;
        Self {
            idempotent: Memories::new(bound.min(IDEMPOTENT) as usize, seed),
            others: Memories::new(all, seed),
            beyond: Memories::new(all.div_ceil(SHARE), seed),
            shares: Vec::new(),
            source: |address| FixedState::default().hash_one(address),
            exchange_lifetime,
            non_lifetime,
            duplicates: 0,
        }
    }

    pub(crate) fn set_source(&mut self, source: fn(&A) -> u64) {
        self.source = source;
    }

    /// Messages forgotten before their time.
    pub(crate) fn forgotten_early(&self) -> u64 {
        [&self.idempotent, &self.others, &self.beyond].map(|lot| lot.forgotten_early).iter().sum()
    }

    /// What is remembered of this message.
    pub(crate) fn find(
        &mut self,
        now: Instant,
        from: A,
        message_id: u16,
        token: Token,
    ) -> Option<&mut Memory> {
        self.expire(now);
        let key = (from, message_id, token.base());
        let lots = [&mut self.idempotent, &mut self.others, &mut self.beyond];
        lots.into_iter().find_map(|lot| lot.get(&key))
    }

    /// What is remembered of a message that has just arrived: if anything, it is a copy, and counted.
    pub(crate) fn recognise(
        &mut self,
        now: Instant,
        from: A,
        message_id: u16,
        token: Token,
    ) -> Option<&mut Memory> {
        let copy = self.find(now, from, message_id, token).is_some();
        self.duplicates += u64::from(copy);
        if copy { self.find(now, from, message_id, token) } else { None }
    }

    /// Remembers a message for its lifetime. Where there is no room, the oldest of its lot is forgotten before its time; a
    /// source that has its share is not remembered at the expense of others.
    pub(crate) fn insert(&mut self, now: Instant, arrival: Arrival<A>, memory: Memory) {
        self.expire(now);
        let Arrival { from, message_id, token, confirmable, idempotent } = arrival;
        let class = ((self.source)(&from) % SOURCES as u64) as u8;
        let lifetime = if confirmable { self.exchange_lifetime } else { self.non_lifetime };
        let key = (from, message_id, token.base());
        let entry = Entry { key, class, expires: now + lifetime, memory };
        if idempotent {
            self.idempotent.push(entry);
            return;
        }
        self.shares.resize(SOURCES, 0);
        let has_its_share = self.shares[usize::from(class)] as usize > self.others.bound / SHARE;
        if self.others.is_full() && has_its_share {
            self.beyond.push(entry);
        } else if self.others.bound > 0 {
            self.shares[usize::from(class)] += 1;
            if let Some(class) = self.others.push(entry) {
                self.shares[usize::from(class)] -= 1;
            }
        }
    }

    /// Forgets what is older than its lifetime. Lifetimes of one endpoint differ by less than a few minutes, and one
    /// that is kept a little longer behind another does no harm.
    fn expire(&mut self, now: Instant) {
        while self.idempotent.expire(now).is_some() || self.beyond.expire(now).is_some() {}
        while let Some(class) = self.others.expire(now) {
            self.shares[usize::from(class)] -= 1;
        }
    }
}

#[derive(Debug)]
struct Entry<A> {
    key: Key<A>,
    /// The class of its source.
    class: u8,
    expires: Instant,
    memory: Memory,
}

/// Some messages, oldest first.
#[derive(Debug)]
struct Memories<A> {
    entries: VecDeque<Entry<A>>,
    /// From the key to the entry's number.
    index: HashMap<Key<A>, u64, FixedState>,
    /// The number of the entry at the front.
    front: u64,
    bound: usize,
    forgotten_early: u64,
}

impl<A: Address> Memories<A> {
    fn new(bound: usize, seed: u64) -> Self {
        let index = HashMap::with_hasher(FixedState::with_seed(seed));
        Self { entries: VecDeque::new(), index, front: 0, bound, forgotten_early: 0 }
    }

    fn is_full(&self) -> bool {
        self.entries.len() >= self.bound
    }

    fn get(&mut self, key: &Key<A>) -> Option<&mut Memory> {
        let place = (self.index.get(key)? - self.front) as usize;
        Some(&mut self.entries.get_mut(place)?.memory)
    }

    /// Adds an entry; returns the class of the one that was forgotten for it.
    fn push(&mut self, entry: Entry<A>) -> Option<u8> {
        if self.bound == 0 {
            return None;
        }
        let forgotten = if self.is_full() { self.forget_oldest() } else { None };
        self.forgotten_early += u64::from(forgotten.is_some());
        self.index.insert(entry.key, self.front + self.entries.len() as u64);
        self.entries.push_back(entry);
        forgotten
    }

    /// Forgets the oldest entry if its time has come; returns its class.
    fn expire(&mut self, now: Instant) -> Option<u8> {
        if self.entries.front()?.expires <= now { self.forget_oldest() } else { None }
    }

    fn forget_oldest(&mut self) -> Option<u8> {
        let entry = self.entries.pop_front()?;
        if self.index.get(&entry.key) == Some(&self.front) {
            self.index.remove(&entry.key);
        }
        self.front += 1;
        Some(entry.class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Duration = Duration::from_secs(247);

    fn insert(seen: &mut Deduplication<char>, from: char, message_id: u16, token: Token, idempotent: bool) {
        let arrival = Arrival { from, message_id, token, confirmable: true, idempotent };
        seen.insert(Instant::ZERO, arrival, Memory::Open);
    }

    #[test]
    fn a_message_is_remembered_for_its_lifetime_and_no_longer() {
        let mut seen = Deduplication::new(10, 1, LIFETIME, LIFETIME);
        insert(&mut seen, 'a', 7, Token::EMPTY, false);
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
            insert(&mut seen, 'a', 7, token(first), false);
            let known = seen.recognise(Instant::ZERO, 'a', 7, token(second)).is_some();
            assert_eq!(known, copy, "{first:?} {second:?}");
            assert_eq!(seen.duplicates, u64::from(copy));
        }
    }

    #[test]
    fn the_oldest_leaves_when_full_and_that_is_reported() {
        let mut seen = Deduplication::new(2, 1, LIFETIME, LIFETIME);
        for (id, forgotten) in [(1, 0), (2, 0), (3, 1)] {
            insert(&mut seen, 'a', id, Token::EMPTY, true);
            assert_eq!(seen.forgotten_early(), forgotten);
        }
        assert_eq!(seen.find(Instant::ZERO, 'a', 1, Token::EMPTY), None);
        assert_eq!(seen.find(Instant::ZERO, 'a', 3, Token::EMPTY), Some(&mut Memory::Open));
    }

    #[test]
    fn what_may_be_done_again_pushes_out_nothing_that_may_not() {
        let mut seen = Deduplication::new(8, 1, LIFETIME, LIFETIME);
        insert(&mut seen, 'a', 1, Token::EMPTY, false);
        (0..1_000).for_each(|id| insert(&mut seen, 'b', id, Token::EMPTY, true));
        assert!(seen.find(Instant::ZERO, 'a', 1, Token::EMPTY).is_some());
        assert_eq!(seen.forgotten_early(), 992);
    }

    #[test]
    fn a_source_with_more_than_its_share_pushes_out_its_own_alone() {
        let mut seen = Deduplication::new(80, 1, LIFETIME, LIFETIME);
        seen.set_source(|&address| u64::from(address as u32));
        (0..40).for_each(|id| insert(&mut seen, 'a', id, Token::EMPTY, false));
        (0..1_000).for_each(|id| insert(&mut seen, 'b', id, Token::EMPTY, false));
        assert!((0..40).all(|id| seen.find(Instant::ZERO, 'a', id, Token::EMPTY).is_some()));
        assert!(seen.find(Instant::ZERO, 'b', 999, Token::EMPTY).is_some(), "the newest of the other");
        assert!(seen.find(Instant::ZERO, 'b', 500, Token::EMPTY).is_none());
        insert(&mut seen, 'c', 1, Token::EMPTY, false);
        assert!(seen.find(Instant::ZERO, 'c', 1, Token::EMPTY).is_some(), "others still find room");
        let late = Instant::ZERO + LIFETIME;
        assert!(seen.find(late, 'b', 999, Token::EMPTY).is_none());
        assert_eq!(seen.shares.iter().sum::<u32>(), 0);
    }
}
