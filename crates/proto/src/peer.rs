//! The destinations an endpoint has exchanges with, least recently used first to leave.

use alloc::boxed::Box;
use core::fmt::Debug;
use core::hash::{BuildHasher, Hash};

use coapace_control::{Controller, Instant};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use smallvec::SmallVec;

use crate::NONE;

/// What names the other end: a socket address, a node of a simulation.
pub trait Address: Copy + Eq + Hash + Debug {}
impl<T: Copy + Eq + Hash + Debug> Address for T {}

/// What is kept of one destination.
#[derive(Debug)]
pub(crate) struct Peer<C: Controller, A> {
    pub(crate) address: A,
    pub(crate) state: C::State,
    /// The earliest moment for a non-confirmable message; [`Instant::ZERO`] once the peer is heard after the last one.
    pub(crate) next_non: Instant,
    /// Exchanges that occupy a place of NSTART.
    pub(crate) outstanding: u16,
    pub(crate) next_message_id: u16,
    pub(crate) echo: Echo,
    /// Non-confirmable messages that have left since the last confirmable one.
    pub(crate) nons: u8,
    /// Exchanges admitted, in no order: the head of a list through [`Exchange::next`](crate::exchange::Exchange).
    pub(crate) active: u32,
    /// Exchanges waiting for a place, in order.
    pub(crate) waiting_head: u32,
    pub(crate) waiting_tail: u32,
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
    No,
}

impl<C: Controller, A> Peer<C, A> {
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
    /// Destinations that were ever met: a Message ID sequence never starts where a forgotten one did.
    met: u16,
    /// Whether a non-confirmable message ever left: until then no peer is listened for.
    pub(crate) listening: bool,
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
            met: 0,
            listening: false,
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

    /// The slot of this address, made if need be, and whether another address left it; `None` if all of `bound` slots have
    /// exchanges under way.
    pub(crate) fn find_or_insert(&mut self, address: A, bound: u32, controller: &C) -> Option<(u32, bool)> {
        if let Some(slot) = self.find(address) {
            self.unlink(slot);
            self.link_newest(slot);
            return Some((slot, false));
        }
        let hash = hash_of(self.seed, address);
        self.met = self.met.wrapping_add(1);
        let peer = Peer {
            address,
            state: controller.state(),
            next_non: Instant::ZERO,
            outstanding: 0,
            next_message_id: (hash as u16).wrapping_add(self.met.wrapping_mul(40_503)),
            echo: Echo::Unknown,
            nons: 0,
            active: NONE,
            waiting_head: NONE,
            waiting_tail: NONE,
            newer: NONE,
            older: NONE,
        };
        let full = self.slots.len() >= bound as usize;
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
