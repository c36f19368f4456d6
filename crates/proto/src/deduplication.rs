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
type MessageKey<A> = (A, u16, u64);

/// The most repeatable requests of a class that are remembered: half of all Message IDs. A client may use a
/// Message ID again within EXCHANGE_LIFETIME although it must not (RFC 7252 §4.4). With this bound, its new
/// request is not taken for a copy of the old one.
const REPEATABLE: u32 = 32_768;

/// The most places of a class, as a multiple of the places that are free.
const SHARE: usize = 8;

/// The number of classes in which sources are counted.
const CLASSES: usize = 256;

/// The messages that arrived lately.
///
/// A server may handle copies of an idempotent request again (RFC 7252 §4.5). Such requests have a queue of
/// their own. However many of them arrive, no other message is forgotten for them.
#[derive(Debug)]
pub(crate) struct Deduplication<A> {
    repeatable: RecentMessages<A>,
    /// All other messages; only responses if requests are kept.
    others: RecentMessages<A>,
    /// The requests that are not repeatable, if none of them may be forgotten before its time.
    kept: Option<ProtectedRequests<A>>,
    /// The number of repeatable messages of each class so far.
    arrived: Vec<u32>,
    /// The bound of all queues together.
    bound: u32,
    seed: u64,
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
pub(crate) struct IncomingMessage<A> {
    pub(crate) from: A,
    pub(crate) message_id: u16,
    pub(crate) token: Token,
    pub(crate) confirmable: bool,
    pub(crate) worth: Worth,
}

/// The harm that is done if a message is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worth {
    /// None: a copy may be handled again.
    Repeatable,
    /// A copy of a response would be taken for another one.
    Response,
    /// A copy of a request would be carried out again.
    Request,
}

impl<A: Address> Deduplication<A> {
    pub(crate) fn new(bound: u32, seed: u64, exchange_lifetime: Duration, non_lifetime: Duration) -> Self {
        Self {
            repeatable: RecentMessages::new(bound.min(REPEATABLE), seed),
            others: RecentMessages::new(bound, seed),
            kept: None,
            arrived: Vec::new(),
            bound,
            seed,
            source: |address| FixedState::default().hash_one(address),
            exchange_lifetime,
            non_lifetime,
            duplicates: 0,
        }
    }

    /// Keeps all requests that are not repeatable for their lifetime from now on, see
    /// [`Endpoint::keep_requests`](crate::Endpoint::keep_requests).
    pub(crate) fn keep_requests(&mut self, source: fn(&A) -> u64) {
        let Self { bound, seed, .. } = *self;
        self.source = source;
        self.repeatable.bound = bound.div_ceil(2) as usize;
        self.others.bound = bound.div_ceil(8) as usize;
        let places =
            || MessagePlaces { messages: RecentMessages::new(bound.div_ceil(4), seed), of_class: Vec::new() };
        self.kept = Some(ProtectedRequests { anybody: places(), verified: places() });
    }

    /// Returns how many messages that are not repeatable were forgotten before their time.
    pub(crate) fn forgotten_early(&self) -> u64 {
        self.others.forgotten_early
    }

    /// Returns how many repeatable requests were forgotten before their time, because the table was full.
    pub(crate) fn repeatable_forgotten(&self) -> u64 {
        self.repeatable.forgotten_early
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
        let Self { repeatable, others, kept, arrived, .. } = self;
        if let Some(known) = repeatable.get(&key) {
            let later =
                arrived.get(usize::from(known.class)).map_or(0, |count| count.wrapping_sub(known.nth));
            return (later < REPEATABLE).then_some(&mut known.reaction);
        }
        let kept = kept.iter_mut().flat_map(|kept| [&mut kept.anybody.messages, &mut kept.verified.messages]);
        core::iter::once(others).chain(kept).find_map(|recent| Some(&mut recent.get(&key)?.reaction))
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
    /// before its time. Returns false if the message is one of the requests that are kept, and has no place.
    pub(crate) fn insert(&mut self, now: Instant, arrival: IncomingMessage<A>, reaction: Reaction) -> bool {
        let mut message = self.message(now, arrival, reaction);
        if arrival.worth == Worth::Repeatable {
            if self.arrived.is_empty() {
                self.arrived.resize(CLASSES, 0);
            }
            let count = &mut self.arrived[usize::from(message.class)];
            message.nth = *count;
            *count = count.wrapping_add(1);
            self.repeatable.push(message);
            return true;
        }
        if let Some(kept) = self.kept.as_mut().filter(|_| arrival.worth == Worth::Request) {
            return kept.anybody.keep(message);
        }
        self.others.push(message);
        true
    }

    /// Remembers a request of a verified source that [`insert`](Self::insert) had no place for. Returns false
    /// if verified sources have no place for it either.
    pub(crate) fn insert_verified(&mut self, now: Instant, arrival: IncomingMessage<A>) -> bool {
        let message = self.message(now, arrival, Reaction::None);
        self.kept.as_mut().is_none_or(|kept| kept.verified.keep(message))
    }

    fn message(&mut self, now: Instant, arrival: IncomingMessage<A>, reaction: Reaction) -> Remembered<A> {
        self.expire(now);
        let IncomingMessage { from, message_id, token, confirmable, .. } = arrival;
        // Nobody else knows the seed, so nobody can choose an address in the class of somebody else.
        let class = FixedState::with_seed(self.seed).hash_one((self.source)(&from)) as u8;
        let lifetime = if confirmable { self.exchange_lifetime } else { self.non_lifetime };
        let key = (from, message_id, token.base());
        Remembered { key, class, nth: 0, expires: now + lifetime, reaction }
    }

    /// Forgets messages that are older than their lifetime. A message behind one with a longer lifetime is
    /// kept a few minutes longer, which does no harm.
    fn expire(&mut self, now: Instant) {
        while self.repeatable.expire(now).is_some() || self.others.expire(now).is_some() {}
        if let Some(kept) = &mut self.kept {
            kept.anybody.expire(now);
            kept.verified.expire(now);
        }
    }
}

/// The requests that no other may displace.
#[derive(Debug)]
struct ProtectedRequests<A> {
    /// Requests from any source, as long as places are free.
    anybody: MessagePlaces<A>,
    /// Requests from verified sources that found no place in `anybody`.
    verified: MessagePlaces<A>,
}

/// Places for messages that stay for their lifetime.
#[derive(Debug)]
struct MessagePlaces<A> {
    messages: RecentMessages<A>,
    /// The number of messages of each class of sources.
    of_class: Vec<u32>,
}

impl<A: Address> MessagePlaces<A> {
    /// Keeps a message, if there is a place and its class leaves enough places to others.
    fn keep(&mut self, message: Remembered<A>) -> bool {
        if self.of_class.is_empty() {
            self.of_class.resize(CLASSES, 0);
        }
        let free = self.messages.bound.saturating_sub(self.messages.messages.len());
        let taken = &mut self.of_class[usize::from(message.class)];
        if *taken as usize >= SHARE.saturating_mul(free) {
            return false;
        }
        *taken += 1;
        self.messages.push(message);
        true
    }

    fn expire(&mut self, now: Instant) {
        while let Some(class) = self.messages.expire(now) {
            self.of_class[usize::from(class)] -= 1;
        }
    }
}

/// A message that is remembered.
#[derive(Debug)]
struct Remembered<A> {
    key: MessageKey<A>,
    /// The class of its source.
    class: u8,
    /// The number of repeatable messages of its class that arrived before it.
    nth: u32,
    expires: Instant,
    reaction: Reaction,
}

/// A bounded queue of messages, the oldest first.
#[derive(Debug)]
struct RecentMessages<A> {
    messages: VecDeque<Remembered<A>>,
    /// The number of each message. Messages are numbered in the order in which they arrived.
    index: HashMap<MessageKey<A>, u64, FixedState>,
    /// The number of the message at the front.
    front: u64,
    bound: usize,
    forgotten_early: u64,
}

impl<A: Address> RecentMessages<A> {
    fn new(bound: u32, seed: u64) -> Self {
        let index = HashMap::with_hasher(FixedState::with_seed(seed));
        Self { messages: VecDeque::new(), index, front: 0, bound: bound as usize, forgotten_early: 0 }
    }

    fn get(&mut self, key: &MessageKey<A>) -> Option<&mut Remembered<A>> {
        let place = (self.index.get(key)? - self.front) as usize;
        self.messages.get_mut(place)
    }

    /// Adds a message. If the queue is full, the oldest one is forgotten for it.
    fn push(&mut self, message: Remembered<A>) {
        if self.bound == 0 {
            return;
        }
        if self.messages.len() >= self.bound {
            self.forget_oldest();
            self.forgotten_early += 1;
        }
        self.index.insert(message.key, self.front + self.messages.len() as u64);
        self.messages.push_back(message);
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

    fn arrival(from: char, message_id: u16, token: Token, repeatable: bool) -> IncomingMessage<char> {
        let worth = if repeatable { Worth::Repeatable } else { Worth::Request };
        IncomingMessage { from, message_id, token, confirmable: true, worth }
    }

    fn insert(seen: &mut Deduplication<char>, from: char, message_id: u16, token: Token, repeatable: bool) {
        seen.insert(Instant::ZERO, arrival(from, message_id, token, repeatable), Reaction::None);
    }

    /// Returns a table for 80 messages in which requests are kept.
    fn keeping() -> Deduplication<char> {
        let mut seen = Deduplication::new(80, 1, LIFETIME, LIFETIME);
        seen.keep_requests(|&address| u64::from(u32::from(address)));
        seen
    }

    fn keeps(seen: &mut Deduplication<char>, from: char, message_id: u16) -> bool {
        seen.insert(Instant::ZERO, arrival(from, message_id, Token::EMPTY, false), Reaction::None)
    }

    fn knows(seen: &mut Deduplication<char>, from: char, message_id: u16) -> bool {
        seen.find(Instant::ZERO, from, message_id, Token::EMPTY).is_some()
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
            assert_eq!((seen.repeatable_forgotten(), seen.forgotten_early()), (forgotten, 0));
        }
        assert_eq!(seen.find(Instant::ZERO, 'a', 1, Token::EMPTY), None);
        assert_eq!(seen.find(Instant::ZERO, 'a', 3, Token::EMPTY), Some(&mut Reaction::None));
    }

    #[test]
    fn repeatable_requests_do_not_push_out_others() {
        let mut seen = Deduplication::new(8, 1, LIFETIME, LIFETIME);
        insert(&mut seen, 'a', 1, Token::EMPTY, false);
        (0..1_000).for_each(|id| insert(&mut seen, 'b', id, Token::EMPTY, true));
        assert!(seen.find(Instant::ZERO, 'a', 1, Token::EMPTY).is_some());
        assert_eq!((seen.repeatable_forgotten(), seen.forgotten_early()), (992, 0));
    }

    #[test]
    fn a_request_that_is_kept_is_forgotten_for_no_other_and_one_without_a_place_is_told() {
        let mut seen = keeping();
        assert!((0..5).all(|id| keeps(&mut seen, 'a', id)));
        let forged =
            ('b'..='z').cycle().zip(0..10_000).filter(|&(from, id)| keeps(&mut seen, from, id)).count();
        assert_eq!(forged, 15, "a quarter of all places are for anybody");
        assert!((0..5).all(|id| knows(&mut seen, 'a', id)));
        assert!(!keeps(&mut seen, 'a', 5) && !knows(&mut seen, 'a', 5));
        assert_eq!(seen.forgotten_early(), 0);
        let late = Instant::ZERO + LIFETIME;
        assert!(
            seen.insert(late, arrival('a', 5, Token::EMPTY, false), Reaction::None),
            "their time is over"
        );
        assert_eq!(seen.kept.unwrap().anybody.of_class.iter().sum::<u32>(), 1);
    }

    #[test]
    fn verified_sources_have_places_that_nobody_else_can_take() {
        let mut seen = keeping();
        ('b'..='z').cycle().zip(0..10_000).for_each(|(from, id)| {
            keeps(&mut seen, from, id);
        });
        let verified = |seen: &mut Deduplication<char>, from, id| {
            seen.insert_verified(Instant::ZERO, arrival(from, id, Token::EMPTY, false))
        };
        assert!(verified(&mut seen, 'a', 1) && knows(&mut seen, 'a', 1));
        let others = (0..100).filter(|&id| verified(&mut seen, 'b', id)).count();
        assert!((10..20).contains(&others), "{others}");
        assert!(verified(&mut seen, 'c', 1), "a source leaves places to others");
        assert!(knows(&mut seen, 'a', 1));
    }

    #[test]
    fn a_message_id_that_comes_back_early_makes_a_new_request_however_much_room_there_is() {
        let mut seen = Deduplication::new(1 << 20, 1, LIFETIME, LIFETIME);
        seen.keep_requests(|&address| u64::from(u32::from(address)));
        insert(&mut seen, 'b', 0, Token::EMPTY, true);
        for id in 0..=u16::MAX {
            assert!(!knows(&mut seen, 'a', id));
            insert(&mut seen, 'a', id, Token::EMPTY, true);
        }
        assert!(!knows(&mut seen, 'a', 0) && knows(&mut seen, 'a', u16::MAX));
        assert!(knows(&mut seen, 'b', 0), "the requests of others are remembered");
        assert_eq!(seen.repeatable_forgotten(), 0);
    }
}
