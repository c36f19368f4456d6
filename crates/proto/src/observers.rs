//! The observers of a server: who is told when a resource changes (RFC 7641 §4.1).

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use coapace_control::{Duration, Instant};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use crate::NONE;
use crate::message::{Code, Token};
use crate::peer::Address;
use crate::slab::{Slab, Slot};

/// After so long a notification is confirmable, whatever was asked for (RFC 7641 §4.5).
const CONFIRM_WITHIN: Duration = Duration::from_secs(24 * 60 * 60);

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
    /// Of the notification that departed last: a Reset may name it.
    message_id: Option<u16>,
    /// When the observer was heard to be there.
    confirmed: Instant,
    /// The next observer of the same peer; of a free slot, the next that is free.
    next_of_peer: u32,
    /// Neighbours among those of the same resource, in the order of registration.
    earlier: u32,
    later: u32,
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

/// Counts of what became of notifications and of observers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Told {
    pub(crate) notifications: u64,
    pub(crate) replaced: u64,
    pub(crate) rejected: u64,
    pub(crate) given_up: u64,
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

    /// The observer whose last notification had this Message ID.
    pub(crate) fn find_message_id(&self, peer: A, message_id: u16) -> Option<u32> {
        self.find(peer, |entry| entry.message_id == Some(message_id))
    }

    /// Adds an observer; `false` if all of `bound` are there.
    pub(crate) fn insert(&mut self, now: Instant, bound: u32, observer: Observer<A>) -> bool {
        let Observer { to, resource, .. } = observer;
        let blank = || Entry {
            observer,
            exchange: NONE,
            told: 0,
            message_id: None,
            confirmed: now,
            next_of_peer: NONE,
            earlier: NONE,
            later: NONE,
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
        self.entries[slot] = Entry { told: resource.version, earlier, next_of_peer, ..blank() };
        match earlier {
            NONE => resource.first = slot,
            earlier => self.entries[earlier].later = slot,
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
        self.entries[slot].message_id = Some(message_id);
    }

    /// The observer has acknowledged.
    pub(crate) fn confirm(&mut self, now: Instant, slot: u32) {
        self.entries[slot].confirmed = now;
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
