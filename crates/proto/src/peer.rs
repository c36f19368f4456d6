//! The destinations an endpoint has exchanges with, least recently used first to leave.

use alloc::boxed::Box;
use core::fmt::Debug;
use core::hash::{BuildHasher, Hash};

use coapace_control::{Controller, Instant, Marking};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use smallvec::SmallVec;

use crate::NONE;
use crate::message::{REXMIT_CNT_PROBE, Token};
use crate::message_ids::MessageIds;

/// What names the other end: a socket address, a node of a simulation.
pub trait Address: Copy + Eq + Hash + Debug {}
impl<T: Copy + Eq + Hash + Debug> Address for T {}

/// What is kept of one destination.
#[derive(Debug)]
pub(crate) struct Peer<C: Controller, A> {
    pub(crate) address: A,
    pub(crate) state: C::State,
    /// The earliest moment for a non-confirmable message.
    pub(crate) next_non: Instant,
    /// The request that set `next_non`: its response ends the wait. `NONE` where no response is due.
    pub(crate) last_non: u32,
    /// Exchanges that occupy a place of NSTART.
    pub(crate) outstanding: u16,
    /// Exchanges among these whose first transmission has departed.
    pub(crate) in_flight: u16,
    /// Timeouts that have passed since the peer answered.
    unanswered: u16,
    /// Whether it has let so many pass that RFC 7252's own are armed ([`Patience`](crate::Patience)).
    pub(crate) silent: bool,
    pub(crate) message_ids: MessageIds,
    pub(crate) echo: Echo,
    /// Whether the peer was seen to answer each copy of a request with the marking of that copy. RFC 7252 §4.5 lets it
    /// repeat its first answer instead.
    pub(crate) answers_each: bool,
    /// The last answer to a marked request that was retransmitted, until `answers_each` is known.
    pub(crate) answered: Option<Box<Answered>>,
    /// Non-confirmable messages that have left since the last confirmable one.
    pub(crate) nons: u8,
    /// Exchanges admitted, in no order: the head of a list through [`Exchange::next`](crate::exchange::Exchange).
    pub(crate) active: u32,
    /// Exchanges waiting for a place, in order.
    pub(crate) waiting_head: u32,
    pub(crate) waiting_tail: u32,
    /// Whether it stays, whatever others need: it has no place in the order then.
    is_held: bool,
    /// Neighbours in the order of use.
    newer: u32,
    older: u32,
}

/// Whether the peer echoes the Rexmit-Cnt option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Echo {
    Unknown,
    Asked,
    Yes,
    /// It answered the question without the option. So many exchanges later it is asked again: the answer may have been
    /// a proxy's, or a copy.
    No(u8),
}

/// Exchanges without the option between two questions whether the peer echoes it.
pub(crate) const ASK_AGAIN_AFTER: u8 = 15;

/// An answer that ended a marked exchange.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) message_id: u16,
    /// The token of the request, without an ordinal.
    pub(crate) token: Token,
    /// The transmission that the answer named.
    pub(crate) ordinal: u8,
}

impl<C: Controller, A> Peer<C, A> {
    /// A timeout after `retransmits` retransmissions has passed. The peer is silent once it was the last of an exchange, or once
    /// there were more than the exchanges that are outstanding can have had: then some were cancelled.
    pub(crate) fn note_timeout(&mut self, retransmits: u8, max_retransmit: u8) {
        self.unanswered = self.unanswered.saturating_add(1);
        let most = u16::from(max_retransmit).saturating_mul(self.outstanding.max(1));
        self.silent |= retransmits >= max_retransmit || self.unanswered > most;
    }

    /// Returns the value of the Rexmit-Cnt option of a transmission, if it is to have one: its ordinal, or the question whether
    /// the peer echoes the option.
    pub(crate) fn rexmit_cnt(&mut self, marking: Marking, transmission: u8) -> Option<u8> {
        if marking != Marking::Option {
            return None;
        }
        match self.echo {
            Echo::Unknown | Echo::No(0) => {
                self.echo = Echo::Asked;
                Some(REXMIT_CNT_PROBE)
            }
            Echo::Asked | Echo::Yes => Some(transmission),
            Echo::No(rest) => {
                self.echo = Echo::No(rest - u8::from(transmission == 0));
                None
            }
        }
    }

    /// An answer has arrived.
    pub(crate) fn note_answer(&mut self) {
        (self.unanswered, self.silent) = (0, false);
    }

    /// Whether a message that awaits no answer still counts as outstanding: until its gap is over (RFC 7641 §4.5.1).
    pub(crate) fn has_gap(&self, now: Instant) -> bool {
        self.last_non == NONE && self.next_non > now
    }

    fn is_idle(&self) -> bool {
        self.active == NONE && self.waiting_head == NONE
    }

    /// Whether the next message has to be confirmable, if one in `every` is; 0 asks for none.
    pub(crate) fn owes_confirmable(&self, every: u8) -> bool {
        every != 0 && self.nons >= every - 1
    }
}

/// The table of destinations.
#[derive(Debug)]
pub(crate) struct Peers<C: Controller, A> {
    /// The first lies here: most clients have no other.
    slots: SmallVec<[Peer<C, A>; 1]>,
    /// From address to slot, once there are more than [`SCANNED`].
    index: Option<Box<HashTable<u32>>>,
    seed: u32,
    newest: u32,
    oldest: u32,
    /// Destinations that stay.
    held: u32,
    /// Destinations that were ever met: a Message ID sequence never starts where a forgotten one did.
    met: u16,
}

/// So few addresses are found faster by looking at each.
const SCANNED: usize = 8;

impl<C: Controller, A: Address> Peers<C, A> {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            slots: SmallVec::new(),
            index: None,
            seed: (seed ^ seed >> 32) as u32,
            newest: NONE,
            oldest: NONE,
            held: 0,
            met: 0,
        }
    }

    /// The randomness of hash tables.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.into()
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// The slot of this address, if it is known.
    pub(crate) fn find(&self, address: A) -> Option<u32> {
        match &self.index {
            None => self.slots.iter().position(|peer| peer.address == address).map(|slot| slot as u32),
            Some(index) => index
                .find(hash_of(self.seed, address), |&slot| self.slots[slot as usize].address == address)
                .copied(),
        }
    }

    /// The slot of this address, made if need be, and whether another address left it; `None` if all of `bound` slots,
    /// beside those that are held, have exchanges under way.
    pub(crate) fn find_or_insert(&mut self, address: A, bound: u32, controller: &C) -> Option<(u32, bool)> {
        if let Some(slot) = self.find(address) {
            if !self[slot].is_held {
                self.unlink(slot);
                self.link_newest(slot);
            }
            return Some((slot, false));
        }
        let hash = hash_of(self.seed, address);
        self.met = self.met.wrapping_add(1);
        let peer = Peer {
            address,
            state: controller.state(),
            next_non: Instant::ZERO,
            last_non: NONE,
            outstanding: 0,
            in_flight: 0,
            unanswered: 0,
            silent: false,
            message_ids: MessageIds::from((hash as u16).wrapping_add(self.met.wrapping_mul(40_503))),
            echo: Echo::Unknown,
            answers_each: false,
            answered: None,
            nons: 0,
            active: NONE,
            waiting_head: NONE,
            waiting_tail: NONE,
            is_held: false,
            newer: NONE,
            older: NONE,
        };
        let full = self.slots.len() >= bound as usize + self.held as usize;
        let slot = if full {
            let slot = self.oldest_idle()?;
            self.forget(slot);
            self.slots[slot as usize] = peer;
            slot
        } else {
            self.slots.push(peer);
            self.slots.len() as u32 - 1
        };
        self.link_newest(slot);
        self.enter(slot, hash);
        Some((slot, full))
    }

    /// Keeps a destination until it is released.
    pub(crate) fn hold(&mut self, slot: u32) {
        if !core::mem::replace(&mut self[slot].is_held, true) {
            self.unlink(slot);
            self.held += 1;
        }
    }

    /// Lets a destination be forgotten for others again.
    pub(crate) fn release(&mut self, slot: u32) {
        if core::mem::take(&mut self[slot].is_held) {
            self.link_newest(slot);
            self.held -= 1;
        }
    }

    /// The destination unused for longest that has no exchange. Busy ones on the way are counted as used now, so that
    /// the next search does not meet them again.
    fn oldest_idle(&mut self) -> Option<u32> {
        for _ in 0..self.slots.len() {
            let slot = self.oldest;
            if self.slots.get(slot as usize)?.is_idle() {
                return Some(slot);
            }
            self.unlink(slot);
            self.link_newest(slot);
        }
        None
    }

    fn enter(&mut self, slot: u32, hash: u64) {
        let Self { slots, seed, .. } = self;
        let rehash = |&slot: &u32| hash_of(*seed, slots[slot as usize].address);
        match &mut self.index {
            Some(index) => drop(index.insert_unique(hash, slot, rehash)),
            None if slots.len() > SCANNED => {
                let mut index = HashTable::with_capacity(2 * slots.len());
                for slot in 0..slots.len() as u32 {
                    index.insert_unique(rehash(&slot), slot, rehash);
                }
                self.index = Some(Box::new(index));
            }
            None => {}
        }
    }

    fn forget(&mut self, slot: u32) {
        let hash = hash_of(self.seed, self.slots[slot as usize].address);
        if let Some(Ok(entry)) =
            self.index.as_mut().map(|index| index.find_entry(hash, |&other| other == slot))
        {
            entry.remove();
        }
        self.unlink(slot);
    }

    fn unlink(&mut self, slot: u32) {
        let (newer, older) = (self.slots[slot as usize].newer, self.slots[slot as usize].older);
        match self.slots.get_mut(newer as usize) {
            Some(peer) => peer.older = older,
            None => self.newest = older,
        }
        match self.slots.get_mut(older as usize) {
            Some(peer) => peer.newer = newer,
            None => self.oldest = newer,
        }
    }

    fn link_newest(&mut self, slot: u32) {
        let second = self.newest;
        (self.slots[slot as usize].newer, self.slots[slot as usize].older) = (NONE, second);
        match self.slots.get_mut(second as usize) {
            Some(peer) => peer.newer = slot,
            None => self.oldest = slot,
        }
        self.newest = slot;
    }
}

fn hash_of(seed: u32, address: impl Hash) -> u64 {
    FixedState::with_seed(seed.into()).hash_one(address)
}

impl<C: Controller, A> core::ops::Index<u32> for Peers<C, A> {
    type Output = Peer<C, A>;
    fn index(&self, slot: u32) -> &Peer<C, A> {
        &self.slots[slot as usize]
    }
}

impl<C: Controller, A> core::ops::IndexMut<u32> for Peers<C, A> {
    fn index_mut(&mut self, slot: u32) -> &mut Peer<C, A> {
        &mut self.slots[slot as usize]
    }
}

#[cfg(test)]
mod tests {
    use coapace_control::DefaultTimer;

    use super::*;

    fn peers(addresses: impl IntoIterator<Item = u32>, bound: u32) -> Peers<DefaultTimer, u32> {
        let mut peers = Peers::new(7);
        for address in addresses {
            peers.find_or_insert(address, bound, &DefaultTimer::DEFAULT);
        }
        peers
    }

    #[test]
    fn every_address_is_found_again_whether_scanned_or_hashed() {
        for count in [1, 8, 9, 1000] {
            let peers = peers(0..count, 1000);
            for address in 0..count {
                let slot = peers.find(address).unwrap();
                assert_eq!(peers[slot].address, address);
            }
            assert_eq!(peers.find(count), None);
        }
    }

    #[test]
    fn the_least_recently_used_leaves_when_the_table_is_full() {
        let mut peers = peers(0..20, 20);
        let mut evicts = |address| peers.find_or_insert(address, 20, &DefaultTimer::DEFAULT).unwrap().1;
        assert!(!evicts(0) && evicts(99));
        assert_eq!(peers.len(), 20);
        assert_eq!(peers.find(1), None);
        assert!(peers.find(0).is_some() && peers.find(99).is_some());
    }

    #[test]
    fn a_destination_that_is_held_stays_beside_as_many_others_as_there_may_be() {
        let mut peers = peers(0..10, 10);
        let held = peers.find(0).unwrap();
        peers.hold(held);
        for address in 100..200 {
            assert!(peers.find_or_insert(address, 10, &DefaultTimer::DEFAULT).is_some());
        }
        assert_eq!((peers.find(0), peers.len()), (Some(held), 11));
        peers.release(held);
        for address in 200..212 {
            peers.find_or_insert(address, 10, &DefaultTimer::DEFAULT);
        }
        assert_eq!((peers.find(0), peers.len()), (None, 11));
    }

    #[test]
    fn a_destination_with_an_exchange_under_way_stays() {
        let mut peers = peers(0..10, 10);
        for slot in 0..9 {
            peers[slot].active = 0;
        }
        assert!(peers.find_or_insert(50, 10, &DefaultTimer::DEFAULT).is_some());
        assert_eq!(peers.find(9), None);
        let slot = peers.find(50).unwrap();
        peers[slot].active = 0;
        assert_eq!(peers.find_or_insert(51, 10, &DefaultTimer::DEFAULT), None);
    }
}
