//! Deduplication: recently received messages are remembered, so that a copy gets the same answer (RFC 7252 §4.5).

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::hash::BuildHasher;

use coapace_control::{Duration, Instant};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::code::Code;
use crate::message::Token;
use crate::peer::Address;

/// The answer that was sent to a message.
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

/// The identity of a message: the address of its sender, its Message ID, and its token without the ordinal of a
/// transmission.
///
/// A sender that has restarted may reuse a Message ID too early. The token distinguishes its new message from the old
/// one. Otherwise the new message would get the answer to the old one.
type MessageKey<A> = (A, u16, u64);

/// The maximum number of repeatable requests that are remembered from one class of sources: half of all Message IDs. A
/// client may reuse a Message ID within EXCHANGE_LIFETIME although it must not (RFC 7252 §4.4). With this limit, its
/// new request is not taken for a copy of the old one.
const REPEATABLE: u32 = 32_768;

/// How many slots one class of sources may take, as a multiple of the slots that are still free.
const SHARE: usize = 8;

/// The number of classes of sources. A hash of the source assigns it to a class.
const CLASSES: usize = 256;

/// The recently received messages.
///
/// A server may execute copies of an idempotent request again (RFC 7252 §4.5). Such requests have their own queue. However many
/// of them arrive, no other message is dropped for them.
#[derive(Debug)]
pub(crate) struct Deduplication<A> {
    repeatable: RecentMessages<A>,
    /// All other messages; only responses after a call of `keep_requests`.
    others: RecentMessages<A>,
    /// The requests that are not repeatable, after a call of [`keep_requests`](Self::keep_requests); `None` before it.
    kept: Option<ProtectedRequests<A>>,
    /// The number of repeatable messages that have arrived from each class of sources.
    arrived: Vec<u32>,
    /// The maximum number of messages in each queue. After a call of [`keep_requests`](Self::keep_requests), the queues
    /// of requests share this number.
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

/// The harm done if a message is dropped before its lifetime has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Worth {
    /// None: a copy may be executed again.
    Repeatable,
    /// The message is a response: the endpoint would take a later copy for another response.
    Response,
    /// The message is a request that must not be executed twice: the endpoint would execute a later copy
    /// again.
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

    /// Protects requests that are not repeatable: from now on, none is dropped before its lifetime has passed. See
    /// [`Endpoint::keep_requests`](crate::Endpoint::keep_requests).
    pub(crate) fn keep_requests(&mut self, source: fn(&A) -> u64) {
        let Self { bound, seed, .. } = *self;
        self.source = source;
        // Half is for requests that may be executed twice, and a quarter each for any source and for verified ones. Responses have
        // an eighth in addition.
        self.repeatable.bound = bound.div_ceil(2) as usize;
        self.others.bound = bound.div_ceil(8) as usize;
        let places =
            || MessagePlaces { messages: RecentMessages::new(bound.div_ceil(4), seed), of_class: Vec::new() };
        self.kept = Some(ProtectedRequests { anybody: places(), verified: places() });
    }

    /// Returns how many messages that are not repeatable were dropped before their time.
    pub(crate) fn forgotten_early(&self) -> u64 {
        self.others.forgotten_early
    }

    /// Returns how many repeatable requests were dropped before their time, because the table was full.
    pub(crate) fn repeatable_forgotten(&self) -> u64 {
        self.repeatable.forgotten_early
    }

    /// Returns the reaction to this message, if it is remembered.
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
            // Half of all Message IDs later, the same ID may belong to a new request.
            let later =
                arrived.get(usize::from(known.class)).map_or(0, |count| count.wrapping_sub(known.nth));
            return (later < REPEATABLE).then_some(&mut known.reaction);
        }
        let kept = kept.iter_mut().flat_map(|kept| [&mut kept.anybody.messages, &mut kept.verified.messages]);
        core::iter::once(others).chain(kept).find_map(|recent| Some(&mut recent.get(&key)?.reaction))
    }

    /// Looks up a received message. If it is a copy, counts the copy and returns the reaction to the first one.
    pub(crate) fn recognise(
        &mut self,
        now: Instant,
        from: A,
        message_id: u16,
        token: Token,
    ) -> Option<&mut Reaction> {
        // The message is searched twice, because the first result would borrow the table while the copy is counted.
        let copy = self.find(now, from, message_id, token).is_some();
        self.duplicates += u64::from(copy);
        if copy { self.find(now, from, message_id, token) } else { None }
    }

    /// Remembers a message for its lifetime. If its queue is full, the oldest message in it is dropped before its time. Returns
    /// false if the message is a protected request, and no slot is free.
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
        // These are responses, or all other messages if no request is protected.
        self.others.push(message);
        true
    }

    /// Remembers a request of a verified source for which [`insert`](Self::insert) had no slot. Returns false if no slot for
    /// verified sources is free either.
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

    /// Drops messages that are older than their lifetime. A message behind another message with a longer lifetime is
    /// kept a few minutes longer, which does no harm.
    fn expire(&mut self, now: Instant) {
        while self.repeatable.expire(now).is_some() || self.others.expire(now).is_some() {}
        if let Some(kept) = &mut self.kept {
            kept.anybody.expire(now);
            kept.verified.expire(now);
        }
    }
}

/// The requests that are kept until their lifetime has passed: no other message displaces them.
#[derive(Debug)]
struct ProtectedRequests<A> {
    /// Requests from any source, as long as slots are free.
    anybody: MessagePlaces<A>,
    /// Requests from verified sources that got no slot in `anybody`.
    verified: MessagePlaces<A>,
}

/// Slots for messages that are kept until their lifetime has passed.
#[derive(Debug)]
struct MessagePlaces<A> {
    messages: RecentMessages<A>,
    /// The number of remembered messages from each class of sources.
    of_class: Vec<u32>,
}

impl<A: Address> MessagePlaces<A> {
    /// Stores a message, if a slot is free and the class of its source leaves enough slots to others. Returns whether
    /// it was stored.
    fn keep(&mut self, message: Remembered<A>) -> bool {
        if self.of_class.is_empty() {
            self.of_class.resize(CLASSES, 0);
        }
        let free = self.messages.bound.saturating_sub(self.messages.messages.len());
        let taken = &mut self.of_class[usize::from(message.class)];
        // The fewer places are free, the fewer a class of sources may take. So one source cannot fill the table.
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

/// A remembered message.
#[derive(Debug)]
struct Remembered<A> {
    key: MessageKey<A>,
    /// The class of the source that sent the message.
    class: u8,
    /// The number of repeatable messages from the same class of sources that arrived before this one.
    nth: u32,
    expires: Instant,
    reaction: Reaction,
}

/// A bounded queue of messages, the oldest first.
#[derive(Debug)]
struct RecentMessages<A> {
    messages: VecDeque<Remembered<A>>,
    /// The number of each remembered message. Messages are numbered by arrival.
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
        // `forget_oldest` removes an entry with its message, so none is below the front.
        let place = (self.index.get(key)? - self.front) as usize;
        self.messages.get_mut(place)
    }

    /// Adds a message. If the queue is full, the oldest one is dropped for it.
    fn push(&mut self, message: Remembered<A>) {
        if self.bound == 0 {
            return;
        }
        if self.messages.len() >= self.bound {
            self.forget_oldest();
            self.forgotten_early += 1;
        }
        // A key that is there already belongs to the newer message from now on.
        self.index.insert(message.key, self.front + self.messages.len() as u64);
        self.messages.push_back(message);
    }

    /// Drops the oldest message if its lifetime has passed, and returns its class.
    fn expire(&mut self, now: Instant) -> Option<u8> {
        if self.messages.front()?.expires <= now { self.forget_oldest() } else { None }
    }

    fn forget_oldest(&mut self) -> Option<u8> {
        let message = self.messages.pop_front()?;
        // A newer message may have the same key. Then the entry is about that one.
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

    /// Returns a table for 80 messages in which requests are protected.
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
    fn a_message_is_remembered_for_deduplication_for_exactly_its_lifetime() {
        let mut seen = Deduplication::new(10, 1, LIFETIME, LIFETIME);
        insert(&mut seen, 'a', 7, Token::EMPTY, false);
        assert_eq!(seen.find(Instant::from_millis(246_999), 'a', 7, Token::EMPTY), Some(&mut Reaction::None));
        assert_eq!(seen.find(Instant::from_millis(1), 'b', 7, Token::EMPTY), None);
        assert_eq!(seen.find(Instant::from_secs(247), 'a', 7, Token::EMPTY), None);
    }

    #[test]
    fn a_known_message_id_with_another_token_is_not_a_copy_unless_the_token_has_an_ordinal() {
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
    fn a_full_deduplication_table_drops_the_oldest_message_and_reports_it() {
        let mut seen = Deduplication::new(2, 1, LIFETIME, LIFETIME);
        for (id, forgotten) in [(1, 0), (2, 0), (3, 1)] {
            insert(&mut seen, 'a', id, Token::EMPTY, true);
            assert_eq!((seen.repeatable_forgotten(), seen.forgotten_early()), (forgotten, 0));
        }
        assert_eq!(seen.find(Instant::ZERO, 'a', 1, Token::EMPTY), None);
        assert_eq!(seen.find(Instant::ZERO, 'a', 3, Token::EMPTY), Some(&mut Reaction::None));
    }

    #[test]
    fn idempotent_requests_do_not_displace_others_from_deduplication() {
        let mut seen = Deduplication::new(8, 1, LIFETIME, LIFETIME);
        insert(&mut seen, 'a', 1, Token::EMPTY, false);
        (0..1_000).for_each(|id| insert(&mut seen, 'b', id, Token::EMPTY, true));
        assert!(seen.find(Instant::ZERO, 'a', 1, Token::EMPTY).is_some());
        assert_eq!((seen.repeatable_forgotten(), seen.forgotten_early()), (992, 0));
    }

    #[test]
    fn a_protected_request_is_never_dropped_from_deduplication_and_a_full_table_is_reported() {
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
    fn deduplication_reserves_slots_for_verified_sources() {
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
    fn a_message_id_reused_by_its_source_after_65536_messages_is_a_new_request() {
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
