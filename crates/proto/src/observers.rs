//! The observers of a server: who is told when a resource changes (RFC 7641 §4.1).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use coapace_control::{Duration, Instant};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::NONE;
use crate::code::Code;
use crate::message::Token;
use crate::peer::Address;
use crate::slab::{Slab, Slot};

/// After so long a notification is confirmable, whatever was asked for (RFC 7641 §4.5).
const CONFIRM_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);

/// Where so many observers may be registered, one in 64 may be a stranger, but at least 8.
const STRANGERS: (u32, u32) = (64, 8);

/// A stranger of whom nothing was heard for so long makes room for another.
const SILENT: Duration = Duration::from_secs(30);

/// One who observes a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observer<A> {
    /// Where notifications go.
    pub to: A,
    /// Their token: that of the registration.
    pub token: Token,
    /// The number the application gave to the resource.
    pub resource: u64,
}

/// What is kept of an observer.
#[derive(Debug)]
pub(crate) struct Entry<A> {
    pub(crate) observer: Observer<A>,
    /// The notification under way.
    pub(crate) exchange: u32,
    /// The version of the representation that departed last, or was the response to the registration.
    told: u32,
    /// Message IDs of the last two notifications that departed, the latest first: a Reset may name either, for it may have
    /// crossed the second on its way.
    message_ids: [Option<u16>; 2],
    /// When the observer was heard to be there.
    confirmed: Instant,
    /// The next observer of the same peer; of a free slot, the next that is free.
    next_of_peer: u32,
    /// Neighbours among those of the same resource, in the order of registration.
    earlier: u32,
    later: u32,
    /// Nobody has verified its address: it was not seen to receive anything.
    is_stranger: bool,
    /// Tells registrations apart that had the same slot.
    serial: u32,
    is_queued: bool,
    /// Deregistered while in the queue: the slot is free once the queue has passed it.
    is_gone: bool,
}

impl<A> Slot for Entry<A> {
    fn next_free(&mut self) -> &mut u32 {
        &mut self.next_of_peer
    }
}

/// A resource that has observers.
#[derive(Debug)]
struct Resource {
    first: u32,
    last: u32,
    /// The present representation. There is one of each resource: notifications take it as they depart.
    code: Code,
    tail: Vec<u8>,
    confirmable: bool,
    version: u32,
}

/// There is no room for an observer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// Counts of what became of notifications and of observers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    pub(crate) notifications: u64,
    pub(crate) replaced: u64,
    pub(crate) rejected: u64,
    pub(crate) given_up: u64,
    pub(crate) displaced: u64,
}

/// All observers of all resources.
#[derive(Debug)]
pub(crate) struct Observers<A> {
    entries: Slab<Entry<A>>,
    /// From address to the first of its observers.
    by_peer: HashMap<A, u32, FixedState>,
    resources: HashMap<u64, Resource, FixedState>,
    /// Observers that have not been told the present representation and have no notification under way.
    queue: VecDeque<u32>,
    /// Slots and serials of strangers in the order of their registrations; some are strangers no longer, or gone.
    strangers: VecDeque<(u32, u32)>,
    /// Strangers there are.
    strange: u32,
    registered: u32,
    /// Of these, deregistered: they still occupy their slots.
    gone: usize,
    /// From the slot of an exchange to the observer whose notification it is.
    of_exchange: Vec<u32>,
    pub(crate) under_way: u32,
    pub(crate) told: Told,
}

impl<A: Address> Observers<A> {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            entries: Slab::default(),
            by_peer: HashMap::with_hasher(FixedState::with_seed(seed)),
            resources: HashMap::with_hasher(FixedState::with_seed(seed)),
            queue: VecDeque::new(),
            strangers: VecDeque::new(),
            strange: 0,
            registered: 0,
            gone: 0,
            of_exchange: Vec::new(),
            under_way: 0,
            told: Told::default(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.in_use() - self.gone
    }

    /// Whether a resource has any.
    pub(crate) fn has(&self, resource: u64) -> bool {
        self.resources.contains_key(&resource)
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&Entry<A>> {
        self.entries.get(slot)
    }

    /// The observer of this peer that `matches`.
    fn find(&self, peer: A, matches: impl Fn(&Entry<A>) -> bool) -> Option<u32> {
        let mut slot = self.by_peer.get(&peer).copied().unwrap_or(NONE);
        while let Some(entry) = self.entries.get(slot) {
            if matches(entry) {
                return Some(slot);
            }
            slot = entry.next_of_peer;
        }
        None
    }

    pub(crate) fn find_token(&self, peer: A, token: Token) -> Option<u32> {
        self.find(peer, |entry| entry.observer.token == token)
    }

    /// The observer whose last or last but one notification had this Message ID.
    pub(crate) fn find_message_id(&self, peer: A, message_id: u16) -> Option<u32> {
        self.find(peer, |entry| entry.message_ids.contains(&Some(message_id)))
    }

    /// Whether this peer observes anything.
    pub(crate) fn has_peer(&self, peer: A) -> bool {
        self.by_peer.contains_key(&peer)
    }

    /// The observer that has to leave before another is added, if `bound` may be there: a stranger. Strangers have a small
    /// part of the places, and there one that is silent makes room for the next; where all places are taken, the oldest
    /// makes room for one who is none.
    ///
    /// # Errors
    /// [`Full`] if nobody leaves for it.
    pub(crate) fn whoever_leaves(
        &mut self,
        now: Instant,
        bound: u32,
        is_stranger: bool,
    ) -> Result<Option<u32>, Full> {
        let strangers = (bound / STRANGERS.0).max(STRANGERS.1.min(bound));
        let full = self.len() >= bound as usize;
        if !(full || is_stranger && self.strange >= strangers) {
            return Ok(None);
        }
        let oldest = self.oldest_stranger().ok_or(Full)?;
        let silent = now.since(self.entries[oldest].confirmed) >= SILENT;
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
        self.entries
            .get(slot)
            .is_some_and(|entry| entry.serial == serial && entry.is_stranger && !entry.is_gone)
    }

    /// The observer is a stranger no longer, or leaves.
    fn is_known(&mut self, slot: u32) {
        self.strange -= u32::from(core::mem::take(&mut self.entries[slot].is_stranger));
    }

    /// Adds an observer; `false` if all of `bound` are there.
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        bound: u32,
        observer: Observer<A>,
        is_stranger: bool,
    ) -> bool {
        let Observer { to, resource, .. } = observer;
        let blank = || Entry {
            observer,
            exchange: NONE,
            told: 0,
            message_ids: [None; 2],
            confirmed: now,
            next_of_peer: NONE,
            earlier: NONE,
            later: NONE,
            is_stranger,
            serial: 0,
            is_queued: false,
            is_gone: false,
        };
        let Some(slot) = self.entries.take(bound, blank) else { return false };
        let resource = self.resources.entry(resource).or_insert(Resource {
            first: NONE,
            last: NONE,
            code: Code::EMPTY,
            tail: Vec::new(),
            confirmable: false,
            version: 0,
        });
        let earlier = core::mem::replace(&mut resource.last, slot);
        let next_of_peer = self.by_peer.insert(to, slot).unwrap_or(NONE);
        self.registered = self.registered.wrapping_add(1);
        let serial = self.registered;
        self.entries[slot] = Entry { told: resource.version, earlier, next_of_peer, serial, ..blank() };
        match earlier {
            NONE => resource.first = slot,
            earlier => self.entries[earlier].later = slot,
        }
        if is_stranger {
            self.strange += 1;
            if self.strangers.len() > 2 * self.strange as usize + 64 {
                let mut strangers = core::mem::take(&mut self.strangers);
                strangers.retain(|&(slot, serial)| self.is_stranger(slot, serial));
                self.strangers = strangers;
            }
            self.strangers.push_back((slot, serial));
        }
        true
    }

    /// Takes an observer out. Its notification under way is the caller's to end.
    pub(crate) fn remove(&mut self, slot: u32) {
        let Entry {
            observer: Observer { to, resource, .. }, earlier, later, next_of_peer, is_queued, ..
        } = self.entries[slot];
        match self.by_peer.get(&to).copied() {
            Some(first) if first == slot && next_of_peer == NONE => drop(self.by_peer.remove(&to)),
            Some(first) if first == slot => drop(self.by_peer.insert(to, next_of_peer)),
            Some(mut before) => {
                while self.entries[before].next_of_peer != slot {
                    before = self.entries[before].next_of_peer;
                }
                self.entries[before].next_of_peer = next_of_peer;
            }
            None => {}
        }
        if let Some(known) = self.resources.get_mut(&resource) {
            match earlier {
                NONE => known.first = later,
                earlier => self.entries[earlier].later = later,
            }
            match later {
                NONE => known.last = earlier,
                later => self.entries[later].earlier = earlier,
            }
            if known.first == NONE {
                self.resources.remove(&resource);
            }
        }
        self.is_known(slot);
        if is_queued {
            self.entries[slot].is_gone = true;
            self.gone += 1;
        } else {
            self.entries.give_back(slot);
        }
    }

    /// Takes the new representation of a resource. Returns how many are to be told.
    pub(crate) fn publish(&mut self, resource: u64, confirmable: bool, code: Code, tail: &[u8]) -> usize {
        let Some(known) = self.resources.get_mut(&resource) else { return 0 };
        known.tail.clear();
        known.tail.extend_from_slice(tail);
        (known.code, known.confirmable) = (code, confirmable);
        let (mut count, mut slot, before) = (0, known.first, known.version);
        known.version = known.version.wrapping_add(1);
        while slot != NONE {
            self.told.replaced += u64::from(self.entries[slot].told != before);
            self.enqueue(slot);
            count += 1;
            slot = self.entries[slot].later;
        }
        count
    }

    /// Puts an observer in the queue, unless it is there or has a notification under way.
    fn enqueue(&mut self, slot: u32) {
        let entry = &mut self.entries[slot];
        if !entry.is_queued && entry.exchange == NONE {
            entry.is_queued = true;
            self.queue.push_back(slot);
        }
    }

    /// The observer to be told next, if there is one, and whether it has to confirm.
    pub(crate) fn next(&mut self, now: Instant) -> Option<(Observer<A>, bool)> {
        while let Some(&slot) = self.queue.front() {
            let entry = &self.entries[slot];
            if entry.is_gone {
                self.queue.pop_front();
                self.entries.give_back(slot);
                self.gone -= 1;
                continue;
            }
            let confirmable =
                self.resources.get(&entry.observer.resource).is_some_and(|resource| resource.confirmable);
            return Some((entry.observer, confirmable || now.since(entry.confirmed) >= CONFIRM_WITHIN));
        }
        None
    }

    /// The observer that is next has a notification under way.
    pub(crate) fn begun(&mut self, exchange: u32) {
        let Some(slot) = self.queue.pop_front() else { return };
        (self.entries[slot].is_queued, self.entries[slot].exchange) = (false, exchange);
        let place = exchange as usize;
        if place >= self.of_exchange.len() {
            self.of_exchange.resize(place + 1, NONE);
        }
        self.of_exchange[place] = slot;
        self.under_way += 1;
    }

    /// The observer that this notification is for; none if it has been removed.
    pub(crate) fn of_exchange(&self, exchange: u32) -> Option<u32> {
        self.of_exchange.get(exchange as usize).copied().filter(|&slot| slot != NONE)
    }

    /// What the notification has to say now, if that is not what `slot` was told last; and whether it is to be confirmable.
    pub(crate) fn news(&mut self, slot: u32) -> Option<(Code, &[u8], bool)> {
        let entry = &mut self.entries[slot];
        let resource = self.resources.get(&entry.observer.resource)?;
        let told = core::mem::replace(&mut entry.told, resource.version);
        self.told.notifications += u64::from(told != resource.version);
        (told != resource.version).then_some((resource.code, &resource.tail, resource.confirmable))
    }

    /// A notification departed.
    pub(crate) fn departed(&mut self, slot: u32, message_id: u16) {
        let ids = &mut self.entries[slot].message_ids;
        if ids[0] != Some(message_id) {
            *ids = [Some(message_id), ids[0]];
        }
    }

    /// The observer has acknowledged.
    pub(crate) fn confirm(&mut self, now: Instant, slot: u32) {
        self.entries[slot].confirmed = now;
        self.is_known(slot);
    }

    /// No notification is under way to this observer any more. If the resource has changed since it departed, the next
    /// is due. Returns whether the observer has been told that there will be none (RFC 7641 §4.2).
    pub(crate) fn settle(&mut self, slot: u32) -> bool {
        let exchange = core::mem::replace(&mut self.entries[slot].exchange, NONE);
        if let Some(of) = self.of_exchange.get_mut(exchange as usize) {
            *of = NONE;
            self.under_way -= 1;
        }
        let Entry { observer, told, .. } = self.entries[slot];
        let Some(resource) = self.resources.get(&observer.resource) else { return true };
        if told == resource.version {
            return resource.code.0 >> 5 != 2;
        }
        self.enqueue(slot);
        false
    }
}
