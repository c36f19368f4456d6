//! Deduplication: messages that arrived lately are remembered, so that a copy gets the same answer (RFC 7252
//! §4.5).

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::hash::BuildHasher;

use coapace_control::{Duration, Instant};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::code::Code;
use crate::message::Token;
use crate::peer::Address;

/// The reaction to a message that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    /// Nothing was sent yet.
    None,
    /// An empty acknowledgement was sent.
    Acknowledged,
    /// A response was piggybacked on the acknowledgement.
    Replied {
        code: Code,
        /// Options and payload.
        tail: Vec<u8>,
    },
    /// A Reset was sent.
    Rejected,
}

/// The identity of a message: its address, its Message ID, and its token without the ordinal of a
/// transmission.
///
/// A sender that has restarted may use a Message ID again too early. The token tells its new message from the
/// old one. Otherwise it would get the answer to the old one.
type Key<A> = (A, u16, u64);

/// The most repeatable requests to remember: half of all Message IDs. A client may use each ID again within
/// EXCHANGE_LIFETIME although it must not (RFC 7252 §4.4). None of its requests is then taken for a copy of
/// an old one.
const REPEATABLE: u32 = 32_768;

/// A source may have one place in eight if all are taken.
const SHARE: usize = 8;

/// The number of classes in which sources are counted.
const CLASSES: usize = 256;

/// The messages that arrived lately, in three queues.
///
/// A server may handle copies of an idempotent request anew (RFC 7252 §4.5). Such requests have a queue of
/// their own. However many of them arrive, no other message is forgotten for them.
#[derive(Debug)]
pub(crate) struct Deduplication<A> {
    repeatable: Recent<A>,
    others: Recent<A>,
    /// Messages of sources that have more than their share of `others`.
    beyond: Recent<A>,
    /// The number of messages of `others` that each class of sources has.
    shares: Vec<u32>,
    source: fn(&A) -> u64,
    /// The time for which a confirmable message is remembered.
    exchange_lifetime: Duration,
    /// The time for which a non-confirmable message is remembered.
    non_lifetime: Duration,
    /// The number of copies that were recognised.
    pub(crate) duplicates: u64,
}

/// A message to remember.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival<A> {
    pub(crate) from: A,
    pub(crate) message_id: u16,
    pub(crate) token: Token,
    pub(crate) confirmable: bool,
    /// True if a copy may be handled anew.
    pub(crate) repeatable: bool,
}

impl<A: Address> Deduplication<A> {
    pub(crate) fn new(bound: u32, seed: u64, exchange_lifetime: Duration, non_lifetime: Duration) -> Self {
        let all = bound as usize;
        Self {
            repeatable: Recent::new(bound.min(REPEATABLE) as usize, seed),
            others: Recent::new(all, seed),
            beyond: Recent::new(all.div_ceil(SHARE), seed),
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

    /// Returns how many messages were forgotten before their time.
    pub(crate) fn forgotten_early(&self) -> u64 {
        [&self.repeatable, &self.others, &self.beyond].map(|recent| recent.forgotten_early).iter().sum()
    }

    /// Returns the reaction to this message, if the message is remembered.
    pub(crate) fn find(
        &mut self,
        now: Instant,
        from: A,
        message_id: u16,
        token: Token,
    ) -> Option<&mut Reaction> {
        self.expire(now);
        let key = (from, message_id, token.base());
        let queues = [&mut self.repeatable, &mut self.others, &mut self.beyond];
        queues.into_iter().find_map(|recent| recent.get(&key))
    }

    /// Returns the reaction to the first copy of a message that has just arrived, if it is a copy. Counts it
    /// then.
    pub(crate) fn recognise(
        &mut self,
        now: Instant,
        from: A,
        message_id: u16,
        token: Token,
    ) -> Option<&mut Reaction> {
        let copy = self.find(now, from, message_id, token).is_some();
        self.duplicates += u64::from(copy);
        if copy { self.find(now, from, message_id, token) } else { None }
    }

    /// Remembers a message for its lifetime. If its queue is full, the oldest message there is forgotten
    /// before its time. No message of others is forgotten for a source that has its share.
    pub(crate) fn insert(&mut self, now: Instant, arrival: Arrival<A>, reaction: Reaction) {
        self.expire(now);
        let Arrival { from, message_id, token, confirmable, repeatable } = arrival;
        let class = ((self.source)(&from) % CLASSES as u64) as u8;
        let lifetime = if confirmable { self.exchange_lifetime } else { self.non_lifetime };
        let key = (from, message_id, token.base());
        let message = Remembered { key, class, expires: now + lifetime, reaction };
        if repeatable {
            self.repeatable.push(message);
            return;
        }
        self.shares.resize(CLASSES, 0);
        let has_its_share = self.shares[usize::from(class)] as usize > self.others.bound / SHARE;
        if self.others.is_full() && has_its_share {
            self.beyond.push(message);
        } else if self.others.bound > 0 {
            self.shares[usize::from(class)] += 1;
            if let Some(class) = self.others.push(message) {
                self.shares[usize::from(class)] -= 1;
            }
        }
    }

    /// Forgets messages that are older than their lifetime. A message behind one with a longer lifetime is
    /// kept a few minutes longer, which does no harm.
    fn expire(&mut self, now: Instant) {
        while self.repeatable.expire(now).is_some() || self.beyond.expire(now).is_some() {}
        while let Some(class) = self.others.expire(now) {
            self.shares[usize::from(class)] -= 1;
        }
    }
}

/// A message that is remembered.
#[derive(Debug)]
struct Remembered<A> {
    key: Key<A>,
    /// The class of its source.
    class: u8,
    expires: Instant,
    reaction: Reaction,
}

/// A bounded queue of messages, the oldest first.
#[derive(Debug)]
struct Recent<A> {
    messages: VecDeque<Remembered<A>>,
    /// The number of each message. Messages are numbered in the order in which they arrived.
    index: HashMap<Key<A>, u64, FixedState>,
    /// The number of the message at the front.
    front: u64,
    bound: usize,
    forgotten_early: u64,
}

impl<A: Address> Recent<A> {
    fn new(bound: usize, seed: u64) -> Self {
        let index = HashMap::with_hasher(FixedState::with_seed(seed));
        Self { messages: VecDeque::new(), index, front: 0, bound, forgotten_early: 0 }
    }

    fn is_full(&self) -> bool {
        self.messages.len() >= self.bound
    }

    fn get(&mut self, key: &Key<A>) -> Option<&mut Reaction> {
        let place = (self.index.get(key)? - self.front) as usize;
        Some(&mut self.messages.get_mut(place)?.reaction)
    }

    /// Adds a message. Returns the class of the one that was forgotten for it, if any.
    fn push(&mut self, message: Remembered<A>) -> Option<u8> {
        if self.bound == 0 {
            return None;
        }
        let forgotten = if self.is_full() { self.forget_oldest() } else { None };
        self.forgotten_early += u64::from(forgotten.is_some());
        self.index.insert(message.key, self.front + self.messages.len() as u64);
        self.messages.push_back(message);
        forgotten
    }

    /// Forgets the oldest message if its time has come. Returns its class then.
    fn expire(&mut self, now: Instant) -> Option<u8> {
        if self.messages.front()?.expires <= now { self.forget_oldest() } else { None }
    }

    fn forget_oldest(&mut self) -> Option<u8> {
        let message = self.messages.pop_front()?;
        if self.index.get(&message.key) == Some(&self.front) {
            self.index.remove(&message.key);
        }
        self.front += 1;
        Some(message.class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Duration = Duration::from_secs(247);

    fn insert(seen: &mut Deduplication<char>, from: char, message_id: u16, token: Token, repeatable: bool) {
        let arrival = Arrival { from, message_id, token, confirmable: true, repeatable };
        seen.insert(Instant::ZERO, arrival, Reaction::None);
    }

    #[test]
    fn a_message_is_remembered_for_its_lifetime_and_no_longer() {
        let mut seen = Deduplication::new(10, 1, LIFETIME, LIFETIME);
        insert(&mut seen, 'a', 7, Token::EMPTY, false);
        assert_eq!(seen.find(Instant::from_millis(246_999), 'a', 7, Token::EMPTY), Some(&mut Reaction::None));
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
        assert_eq!(seen.find(Instant::ZERO, 'a', 3, Token::EMPTY), Some(&mut Reaction::None));
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
