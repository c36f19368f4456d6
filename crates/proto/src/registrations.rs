//! The table of observers: the clients to notify when a resource changes (RFC 7641 §4.1).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use coapace_control::{Duration, Instant};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::NONE;
use crate::allowance::Allowance;
use crate::code::Code;
use crate::message::Token;
use crate::peer::Address;
use crate::slab::{Linked, Slab};

/// The longest time between two confirmable notifications to an observer (RFC 7641 §4.5).
const CONFIRM_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);

/// The share of strangers, which are observers with an unverified address: one in 64 of all slots, and at least 8.
const STRANGERS: (u32, u32) = (64, 8);

/// The number of bytes of a message before its token (RFC 7252 §3).
pub(crate) const HEAD: usize = 4;

/// The time without an acknowledgement after which a stranger may be displaced by another.
const SILENT: Duration = Duration::from_secs(30);

/// A client that observes a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observer<A> {
    /// The address that notifications go to.
    pub to: A,
    /// The token of the registration, and so of the notifications.
    pub token: Token,
    /// The number that the application gave to the resource.
    pub resource: u64,
}

/// The state of one observer.
#[derive(Debug)]
pub(crate) struct Registration<A> {
    pub(crate) observer: Observer<A>,
    /// The slot of the exchange of the outstanding notification; `NONE` if there is none.
    pub(crate) exchange: u32,
    /// The version of the representation that the observer was sent last, in a notification or in the
    /// response to its request.
    sent_version: u32,
    /// Message IDs of the last two notifications that departed, the latest first. A Reset may name either, because it
    /// may have been sent before the second one arrived.
    message_ids: [Option<u16>; 2],
    /// The time at which the observer registered, or last acknowledged a notification.
    confirmed: Instant,
    /// The next observer of the same peer. In a free slot: the next free slot.
    next_of_peer: u32,
    /// The slots of the neighbours among the observers of the same resource, `earlier` and `later`, in the sequence of
    /// registration; `NONE` at the ends.
    earlier: u32,
    later: u32,
    /// True while the address of the observer is unverified.
    is_stranger: bool,
    /// How many bytes may still be sent to the observer while its address is unverified.
    pub(crate) allowance: Allowance,
    /// A number that differs between registrations in the same slot.
    serial: u32,
    is_queued: bool,
    /// True if the observer was removed while it was in the queue. The slot is freed once the queue has passed it.
    is_gone: bool,
}

impl<A> Linked for Registration<A> {
    fn next(&self) -> u32 {
        self.next_of_peer
    }

    fn set_next(&mut self, next: u32) {
        self.next_of_peer = next;
    }
}

/// A resource that has observers.
#[derive(Debug)]
struct ObservedResource {
    first: u32,
    last: u32,
    /// The code of the newest representation, beside its `tail`. Notifications take both when they depart.
    code: Code,
    tail: Vec<u8>,
    confirmable: bool,
    /// The number of representations that were published.
    version: u32,
}

/// The error that the table is full, so that an observer is not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Counters of notifications and of observers, see [`Counters`](crate::Counters).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ObserveCounts {
    pub(crate) notifications: u64,
    pub(crate) replaced: u64,
    pub(crate) rejected: u64,
    pub(crate) given_up: u64,
    pub(crate) displaced: u64,
}

/// All observers of all resources.
#[derive(Debug)]
pub(crate) struct Observers<A> {
    registrations: Slab<Registration<A>>,
    /// The slot of the first observer at each address.
    by_peer: HashMap<A, u32, FixedState>,
    resources: HashMap<u64, ObservedResource, FixedState>,
    /// The slots of observers that were not sent the newest representation and have no outstanding notification.
    queue: VecDeque<u32>,
    /// Slots and serial numbers of strangers in the sequence of registration. Some of them are verified or removed by
    /// now.
    strangers: VecDeque<(u32, u32)>,
    /// The number of strangers.
    stranger_count: u32,
    /// The serial of the last registration.
    last_serial: u32,
    /// The number of removed observers that still occupy their slots.
    gone: usize,
    /// For each slot of an exchange: the slot of the observer that the exchange notifies.
    of_exchange: Vec<u32>,
    /// The number of outstanding notifications.
    pub(crate) under_way: u32,
    pub(crate) counts: ObserveCounts,
}

impl<A: Address> Observers<A> {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            registrations: Slab::default(),
            by_peer: HashMap::with_hasher(FixedState::with_seed(seed)),
            resources: HashMap::with_hasher(FixedState::with_seed(seed)),
            queue: VecDeque::new(),
            strangers: VecDeque::new(),
            stranger_count: 0,
            last_serial: 0,
            gone: 0,
            of_exchange: Vec::new(),
            under_way: 0,
            counts: ObserveCounts::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.registrations.in_use() - self.gone
    }

    /// Returns whether a resource has any observers.
    pub(crate) fn has(&self, resource: u64) -> bool {
        self.resources.contains_key(&resource)
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&Registration<A>> {
        self.registrations.get(slot)
    }

    /// Returns the first observer of this peer that `matches`.
    fn find(&self, peer: A, matches: impl Fn(&Registration<A>) -> bool) -> Option<u32> {
        let mut slot = self.by_peer.get(&peer).copied().unwrap_or(NONE);
        while let Some(registration) = self.registrations.get(slot) {
            if matches(registration) {
                return Some(slot);
            }
            slot = registration.next_of_peer;
        }
        None
    }

    pub(crate) fn find_token(&self, peer: A, token: Token) -> Option<u32> {
        self.find(peer, |registration| registration.observer.token == token)
    }

    /// Returns the observer that was sent this Message ID in one of its last two notifications.
    pub(crate) fn find_message_id(&self, peer: A, message_id: u16) -> Option<u32> {
        self.find(peer, |registration| registration.message_ids.contains(&Some(message_id)))
    }

    /// Returns whether this peer observes anything.
    pub(crate) fn has_peer(&self, peer: A) -> bool {
        self.by_peer.contains_key(&peer)
    }

    /// Returns the observer to remove before another is registered; `None` if there is space. It is always a stranger,
    /// which is an observer with an unverified address.
    ///
    /// Strangers have a small share of the `bound` slots. If that share is used up, a stranger that was silent for
    /// [`SILENT`] is displaced by the next one. If all slots are taken, the oldest stranger is displaced by an observer
    /// that is not a stranger.
    ///
    /// # Errors
    /// [`Full`] if no observer can be displaced.
    pub(crate) fn make_room(
        &mut self,
        now: Instant,
        bound: u32,
        is_stranger: bool,
    ) -> Result<Option<u32>, Full> {
        let strangers = (bound / STRANGERS.0).max(STRANGERS.1.min(bound));
        let full = self.len() >= bound as usize;
        if !(full || is_stranger && self.stranger_count >= strangers) {
            return Ok(None);
        }
        let oldest = self.oldest_stranger().ok_or(Full)?;
        let silent = now.since(self.registrations[oldest].confirmed) >= SILENT;
        if silent || !is_stranger { Ok(Some(oldest)) } else { Err(Full) }
    }

    fn oldest_stranger(&mut self) -> Option<u32> {
        while let Some(&(slot, serial)) = self.strangers.front() {
            if self.is_stranger(slot, serial) {
                return Some(slot);
            }
            self.strangers.pop_front();
        }
        None
    }

    fn is_stranger(&self, slot: u32, serial: u32) -> bool {
        self.registrations
            .get(slot)
            .is_some_and(|known| known.serial == serial && known.is_stranger && !known.is_gone)
    }

    /// Stops counting an observer as a stranger, because it is verified or removed.
    fn uncount_stranger(&mut self, slot: u32) {
        self.registrations[slot].allowance = Allowance::UNLIMITED;
        self.stranger_count -= u32::from(core::mem::take(&mut self.registrations[slot].is_stranger));
    }

    /// Adds an observer. Returns false if there are `bound` already.
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        bound: u32,
        observer: Observer<A>,
        stranger: Option<Allowance>,
    ) -> bool {
        let Observer { to, resource, .. } = observer;
        let is_stranger = stranger.is_some();
        let blank = || Registration {
            observer,
            exchange: NONE,
            sent_version: 0,
            message_ids: [None; 2],
            confirmed: now,
            next_of_peer: NONE,
            earlier: NONE,
            later: NONE,
            is_stranger,
            allowance: stranger.unwrap_or(Allowance::UNLIMITED),
            serial: 0,
            is_queued: false,
            is_gone: false,
        };
        let Some(slot) = self.registrations.take(bound, blank) else { return false };
        let resource = self.resources.entry(resource).or_insert(ObservedResource {
            first: NONE,
            last: NONE,
            code: Code::EMPTY,
            tail: Vec::new(),
            confirmable: false,
            version: 0,
        });
        let earlier = core::mem::replace(&mut resource.last, slot);
        let next_of_peer = self.by_peer.insert(to, slot).unwrap_or(NONE);
        self.last_serial = self.last_serial.wrapping_add(1);
        let (serial, sent_version) = (self.last_serial, resource.version);
        // A slot that is used again still has its old content, so all of it is replaced.
        self.registrations[slot] = Registration { sent_version, next_of_peer, earlier, serial, ..blank() };
        match earlier {
            NONE => resource.first = slot,
            earlier => self.registrations[earlier].later = slot,
        }
        if is_stranger {
            self.stranger_count += 1;
            // Entries that are not strangers any more are removed in bulk, so that the list stays bounded.
            if self.strangers.len() > 2 * self.stranger_count as usize + 64 {
                let mut strangers = core::mem::take(&mut self.strangers);
                strangers.retain(|&(slot, serial)| self.is_stranger(slot, serial));
                self.strangers = strangers;
            }
            self.strangers.push_back((slot, serial));
        }
        true
    }

    /// Removes an observer. The caller ends the outstanding notification to it.
    pub(crate) fn remove(&mut self, slot: u32) {
        let Registration {
            observer: Observer { to, resource, .. },
            earlier,
            later,
            next_of_peer,
            is_queued,
            ..
        } = self.registrations[slot];
        // The observers of a peer are linked in one direction, so the one before has to be searched.
        match self.by_peer.get(&to).copied() {
            Some(first) if first == slot && next_of_peer == NONE => drop(self.by_peer.remove(&to)),
            Some(first) if first == slot => drop(self.by_peer.insert(to, next_of_peer)),
            Some(mut before) => {
                while self.registrations[before].next_of_peer != slot {
                    before = self.registrations[before].next_of_peer;
                }
                self.registrations[before].next_of_peer = next_of_peer;
            }
            None => {}
        }
        if let Some(known) = self.resources.get_mut(&resource) {
            match earlier {
                NONE => known.first = later,
                earlier => self.registrations[earlier].later = later,
            }
            match later {
                NONE => known.last = earlier,
                later => self.registrations[later].earlier = earlier,
            }
            // A resource that nobody observes keeps no representation.
            if known.first == NONE {
                self.resources.remove(&resource);
            }
        }
        self.uncount_stranger(slot);
        // The queue still has the index of this slot, so no other observer may get it yet.
        if is_queued {
            self.registrations[slot].is_gone = true;
            self.gone += 1;
        } else {
            self.registrations.give_back(slot);
        }
    }

    /// Returns the observers of a resource whose allowance is too small for a notification with a tail of `tail` bytes.
    /// Observers with an outstanding notification are left out.
    pub(crate) fn too_large_for(&self, resource: u64, tail: usize) -> Vec<(Observer<A>, Allowance)> {
        let mut strangers = Vec::new();
        if self.stranger_count > 0 {
            let mut slot = self.resources.get(&resource).map_or(NONE, |known| known.first);
            while let Some(registration) = self.registrations.get(slot) {
                let Registration { observer, allowance, exchange, .. } = *registration;
                if exchange == NONE && HEAD + observer.token.len() + tail > allowance.room() {
                    strangers.push((observer, allowance));
                }
                slot = registration.later;
            }
        }
        strangers
    }

    /// Sets the new representation of a resource. Returns how many observers are to be notified.
    pub(crate) fn publish(&mut self, resource: u64, confirmable: bool, code: Code, tail: &[u8]) -> usize {
        let Some(known) = self.resources.get_mut(&resource) else { return 0 };
        known.tail.clear();
        known.tail.extend_from_slice(tail);
        (known.code, known.confirmable) = (code, confirmable);
        let (mut count, mut slot, before) = (0, known.first, known.version);
        known.version = known.version.wrapping_add(1);
        while slot != NONE {
            // Another version than the last means that the observer never got that one.
            self.counts.replaced += u64::from(self.registrations[slot].sent_version != before);
            self.enqueue(slot);
            count += 1;
            slot = self.registrations[slot].later;
        }
        count
    }

    /// Puts an observer into the queue, unless it is there or has an outstanding notification.
    fn enqueue(&mut self, slot: u32) {
        let registration = &mut self.registrations[slot];
        if !registration.is_queued && registration.exchange == NONE {
            registration.is_queued = true;
            self.queue.push_back(slot);
        }
    }

    /// Returns the observer to notify next, whether the notification must be confirmable, and the allowance of the
    /// observer. Returns `None` if no observer waits.
    ///
    /// A stranger with a limited allowance gets a confirmable notification, because the acknowledgement verifies its
    /// address.
    pub(crate) fn next(&mut self, now: Instant) -> Option<(Observer<A>, bool, Allowance)> {
        while let Some(&slot) = self.queue.front() {
            let Registration { observer, confirmed, is_gone, allowance, .. } = self.registrations[slot];
            // The observer left while it was in the queue. Its slot is free from now on.
            if is_gone {
                self.queue.pop_front();
                self.registrations.give_back(slot);
                self.gone -= 1;
                continue;
            }
            let confirmable =
                self.resources.get(&observer.resource).is_some_and(|resource| resource.confirmable);
            let overdue = now.since(confirmed) >= CONFIRM_WITHIN;
            return Some((observer, confirmable || overdue || allowance.is_limited(), allowance));
        }
        None
    }

    /// Records that the notification to the observer at the front of the queue has begun, in this exchange.
    pub(crate) fn begun(&mut self, exchange: u32) {
        let Some(slot) = self.queue.pop_front() else { return };
        (self.registrations[slot].is_queued, self.registrations[slot].exchange) = (false, exchange);
        let place = exchange as usize;
        if place >= self.of_exchange.len() {
            self.of_exchange.resize(place + 1, NONE);
        }
        self.of_exchange[place] = slot;
        self.under_way += 1;
    }

    /// Returns the observer that this exchange notifies; `None` if it was removed.
    pub(crate) fn of_exchange(&self, exchange: u32) -> Option<u32> {
        self.of_exchange.get(exchange as usize).copied().filter(|&slot| slot != NONE)
    }

    /// Returns the newest representation (code and tail), and whether it must be sent as confirmable. Counts it as sent
    /// to the observer. Returns `None` if the observer was already sent it.
    pub(crate) fn news(&mut self, slot: u32) -> Option<(Code, &[u8], bool)> {
        let registration = &mut self.registrations[slot];
        let resource = self.resources.get(&registration.observer.resource)?;
        let sent = core::mem::replace(&mut registration.sent_version, resource.version);
        self.counts.notifications += u64::from(sent != resource.version);
        (sent != resource.version).then_some((resource.code, &resource.tail, resource.confirmable))
    }

    /// Remembers the Message ID of a notification that departed.
    pub(crate) fn departed(&mut self, slot: u32, message_id: u16) {
        let ids = &mut self.registrations[slot].message_ids;
        // A retransmission has the same ID and must not displace the ID of the notification before.
        if ids[0] != Some(message_id) {
            *ids = [Some(message_id), ids[0]];
        }
    }

    /// Sets how many bytes may still be sent to an observer whose address is unverified. Does nothing if the address is
    /// verified.
    pub(crate) fn limit(&mut self, slot: u32, allowance: Allowance) {
        let registration = &mut self.registrations[slot];
        if registration.is_stranger {
            registration.allowance = allowance;
        }
    }

    /// Records that the observer has acknowledged a message, so that its address is verified.
    pub(crate) fn confirm(&mut self, now: Instant, slot: u32) {
        self.registrations[slot].confirmed = now;
        self.uncount_stranger(slot);
    }

    /// Records that the notification to this observer has ended. If the resource has changed since the notification
    /// departed, the next one is due. Returns whether the ended notification was the last one for this observer (RFC
    /// 7641 §4.2).
    pub(crate) fn notification_over(&mut self, slot: u32) -> bool {
        let exchange = core::mem::replace(&mut self.registrations[slot].exchange, NONE);
        if let Some(of) = self.of_exchange.get_mut(exchange as usize) {
            *of = NONE;
            self.under_way -= 1;
        }
        let Registration { observer, sent_version, .. } = self.registrations[slot];
        let Some(resource) = self.resources.get(&observer.resource) else { return true };
        // A code other than 2.xx is the last notification (RFC 7641 §4.2). Otherwise nothing is due until the next change.
        if sent_version == resource.version {
            return !resource.code.is_success();
        }
        self.enqueue(slot);
        false
    }
}
