//! The peers of an endpoint. If the table is full, the least recently used peer is forgotten.

use alloc::boxed::Box;
use core::fmt::Debug;
use core::hash::{BuildHasher, Hash};

use coapace_control::{Controller, Instant, Marking};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use smallvec::SmallVec;

use crate::NONE;
use crate::lane::Lane;
use crate::list::{SlotQueue, SlotStack};
use crate::message::{REXMIT_CNT_PROBE, Token};
use crate::message_ids::MessageIds;

/// The name of a peer: a socket address, or a node of a simulation.
pub trait Address: Copy + Eq + Hash + Debug {}
impl<T: Copy + Eq + Hash + Debug> Address for T {}

/// The memory of one peer.
#[derive(Debug)]
pub(crate) struct Peer<C: Controller, A> {
    pub(crate) address: A,
    pub(crate) state: C::State,
    /// The earliest moment for the next non-confirmable message.
    pub(crate) next_non: Instant,
    /// The exchange of the request that set `next_non`. Its response ends the wait. `NONE` if no response is
    /// due.
    pub(crate) last_non: u32,
    /// The number of exchanges that occupy a place of NSTART.
    pub(crate) outstanding: u16,
    /// The number of outstanding exchanges that have departed.
    pub(crate) in_flight: u16,
    /// The number of timeouts that have passed since the peer answered.
    unanswered: u16,
    /// True if the peer let so many timeouts pass that the timeouts of RFC 7252 are armed
    /// ([`Patience`](crate::Patience)).
    pub(crate) silent: bool,
    pub(crate) message_ids: MessageIds,
    pub(crate) rexmit_cnt_echo: RexmitCntEcho,
    /// True if the peer was seen to answer each copy of a request with the marking of that copy. RFC 7252
    /// §4.5 lets it repeat its first answer instead.
    pub(crate) answers_each: bool,
    /// The last answer to a marked request that was retransmitted, until `answers_each` is known.
    pub(crate) answered: Option<Box<MarkedAnswer>>,
    /// The number of non-confirmable messages that have departed since the last confirmable one.
    pub(crate) nons: u8,
    /// Exchanges that were admitted and are not over.
    pub(crate) active: SlotStack,
    /// Exchanges that wait for a place of NSTART or for their rate.
    pub(crate) waiting: SlotQueue,
    /// The lane of requests of bodies. There is none before the first such request.
    pub(crate) lane: Option<Box<Lane<C>>>,
    /// True if the peer is held. It is then not in the order of use.
    is_held: bool,
    /// The neighbours in the order of use.
    newer: u32,
    older: u32,
}

/// The knowledge of whether a peer echoes the Rexmit-Cnt option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RexmitCntEcho {
    Unknown,
    /// A request that asks has departed.
    Asked,
    Yes,
    /// The peer answered without the option. It is asked again after this number of exchanges, because the
    /// answer may have come from a proxy or may have been a copy.
    No(u8),
}

/// Exchanges without the option between two requests that ask whether the peer echoes it.
pub(crate) const ASK_AGAIN_AFTER: u8 = 15;

/// An answer that ended a marked exchange.
#[derive(Debug)]
pub(crate) struct MarkedAnswer {
    pub(crate) message_id: u16,
    /// The token of the request, without an ordinal.
    pub(crate) token: Token,
    /// The transmission that the answer named.
    pub(crate) ordinal: u8,
}

impl<C: Controller, A> Peer<C, A> {
    /// Notes that a timeout after `retransmits` retransmissions has passed without an answer.
    ///
    /// The peer is silent if that was the last timeout of an exchange. It is silent, too, if there were more
    /// timeouts than the outstanding exchanges can have had: others were cancelled then.
    pub(crate) fn note_timeout(&mut self, retransmits: u8, max_retransmit: u8) {
        self.unanswered = self.unanswered.saturating_add(1);
        let most = u16::from(max_retransmit).saturating_mul(self.outstanding.max(1));
        self.silent |= retransmits >= max_retransmit || self.unanswered > most;
    }

    /// Returns the value of the Rexmit-Cnt option of a transmission, if it has the option. The value is the
    /// ordinal, or asks whether the peer echoes the option.
    pub(crate) fn rexmit_cnt(&mut self, marking: Marking, transmission: u8) -> Option<u8> {
        if marking != Marking::Option {
            return None;
        }
        match self.rexmit_cnt_echo {
            RexmitCntEcho::Unknown | RexmitCntEcho::No(0) => {
                self.rexmit_cnt_echo = RexmitCntEcho::Asked;
                Some(REXMIT_CNT_PROBE)
            }
            RexmitCntEcho::Asked | RexmitCntEcho::Yes => Some(transmission),
            RexmitCntEcho::No(rest) => {
                self.rexmit_cnt_echo = RexmitCntEcho::No(rest - u8::from(transmission == 0));
                None
            }
        }
    }

    /// Notes that an answer has arrived.
    pub(crate) fn note_answer(&mut self) {
        (self.unanswered, self.silent) = (0, false);
        if let Some(lane) = &mut self.lane {
            lane.note_answer();
        }
    }

    /// Returns whether a message that awaits no answer still counts as outstanding. It does until the next
    /// non-confirmable message may depart (RFC 7641 §4.5.1).
    pub(crate) fn has_gap(&self, now: Instant) -> bool {
        self.last_non == NONE && self.next_non > now
    }

    fn is_idle(&self) -> bool {
        self.active.is_empty()
            && self.waiting.is_empty()
            && self.lane.as_ref().is_none_or(|lane| lane.is_idle())
    }

    /// Returns whether the next message has to be confirmable, if one in `every` has to be. 0 asks for none.
    pub(crate) fn owes_confirmable(&self, every: u8) -> bool {
        every != 0 && self.nons >= every - 1
    }
}

/// The table of peers.
#[derive(Debug)]
pub(crate) struct Peers<C: Controller, A> {
    /// The first lies in the table itself. Most clients have no other.
    slots: SmallVec<[Peer<C, A>; 1]>,
    /// Slots by address, once there are more than [`SCANNED`].
    index: Option<Box<HashTable<u32>>>,
    seed: u32,
    newest: u32,
    oldest: u32,
    /// The number of peers that are held.
    held: u32,
    /// The number of peers that were ever met, or met again. It makes Message IDs begin elsewhere when a forgotten peer
    /// comes back.
    met: u16,
}

/// Up to this many peers, a look at each of them is the fastest way to find one.
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

    /// Returns the seed of hash tables.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.into()
    }

    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns the slot of this address, if it is known.
    pub(crate) fn find(&self, address: A) -> Option<u32> {
        match &self.index {
            None => self.slots.iter().position(|peer| peer.address == address).map(|slot| slot as u32),
            Some(index) => index
                .find(hash_of(self.seed, address), |&slot| self.slots[slot as usize].address == address)
                .copied(),
        }
    }

    /// Returns the slot of this address, and whether another peer was forgotten for it. Returns `None` if
    /// `bound` peers that are not held have exchanges under way.
    pub(crate) fn find_or_insert(&mut self, address: A, bound: u32, controller: &C) -> Option<(u32, bool)> {
        if let Some(slot) = self.find(address) {
            if !self[slot].is_held {
                self.unlink(slot);
                self.link_newest(slot);
            }
            return Some((slot, false));
        }
        let hash = hash_of(self.seed, address);
        let message_ids = self.message_ids(hash);
        let peer = Peer {
            address,
            state: controller.state(),
            next_non: Instant::ZERO,
            last_non: NONE,
            outstanding: 0,
            in_flight: 0,
            unanswered: 0,
            silent: false,
            message_ids,
            rexmit_cnt_echo: RexmitCntEcho::Unknown,
            answers_each: false,
            answered: None,
            nons: 0,
            active: SlotStack::EMPTY,
            waiting: SlotQueue::EMPTY,
            lane: None,
            is_held: false,
            newer: NONE,
            older: NONE,
        };
        // The bound (`max_peers`) does not count peers that are held.
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

    /// Makes the Message IDs of a peer begin elsewhere.
    pub(crate) fn renumber(&mut self, slot: u32) {
        let hash = hash_of(self.seed, self[slot].address);
        self[slot].message_ids = self.message_ids(hash);
    }

    /// Returns Message IDs for a peer whose address has this hash. They begin far from those that it had before.
    fn message_ids(&mut self, hash: u64) -> MessageIds {
        self.met = self.met.wrapping_add(1);
        MessageIds::from((hash as u16).wrapping_add(self.met.wrapping_mul(40_503)))
    }

    /// Keeps a peer until it is released.
    pub(crate) fn hold(&mut self, slot: u32) {
        if !core::mem::replace(&mut self[slot].is_held, true) {
            self.unlink(slot);
            self.held += 1;
        }
    }

    /// Lets a peer that is held be forgotten for others again.
    pub(crate) fn release(&mut self, slot: u32) {
        if core::mem::take(&mut self[slot].is_held) {
            self.link_newest(slot);
            self.held -= 1;
        }
    }

    /// Returns the least recently used peer that has no exchange. Peers that have one count as used now, so
    /// that the next search does not meet them again.
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
    use crate::exchange::OpenExchange;
    use crate::slab::Slab;

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
    fn a_peer_that_is_held_stays_beside_as_many_others_as_there_may_be() {
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
    fn a_peer_with_an_exchange_under_way_stays() {
        let mut peers = peers(0..10, 10);
        let mut exchanges = Slab::default();
        let mut busy = SlotStack::EMPTY;
        let index = exchanges.take(1, OpenExchange::<DefaultTimer>::blank).unwrap();
        busy.push(&mut exchanges, index);
        for slot in 0..9 {
            peers[slot].active = busy;
        }
        assert!(peers.find_or_insert(50, 10, &DefaultTimer::DEFAULT).is_some());
        assert_eq!(peers.find(9), None);
        let slot = peers.find(50).unwrap();
        peers[slot].active = busy;
        assert_eq!(peers.find_or_insert(51, 10, &DefaultTimer::DEFAULT), None);
    }
}
