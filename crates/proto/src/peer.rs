//! The peers of an endpoint. If the table is full, the least recently used peer is dropped.

use alloc::boxed::Box;
use core::fmt::Debug;
use core::hash::{BuildHasher, Hash, Hasher};

use coapace_control::{Controller, Instant, Marking};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use siphasher::sip::SipHasher13;
use smallvec::SmallVec;

use crate::NONE;
use crate::lane::Lane;
use crate::list::{SlotQueue, SlotStack};
use crate::message::{REXMIT_CNT_PROBE, Token};
use crate::message_ids::MessageIds;

/// The address of a peer: a socket address, or a node of a simulation.
pub trait Address: Copy + Eq + Hash + Debug {}
impl<T: Copy + Eq + Hash + Debug> Address for T {}

/// The state of one peer.
#[derive(Debug)]
pub(crate) struct Peer<C: Controller, A> {
    pub(crate) address: A,
    pub(crate) state: C::State,
    /// The earliest time for the next non-confirmable message.
    pub(crate) next_non: Instant,
    /// The slot of the exchange that set `next_non`. A response to that exchange ends the wait. `NONE` if no response
    /// is expected.
    pub(crate) last_non: u32,
    /// The number of exchanges that occupy a slot of NSTART.
    pub(crate) outstanding: u16,
    /// The number of outstanding exchanges that have departed.
    pub(crate) in_flight: u16,
    /// The number of timeouts that have passed since the peer answered.
    unanswered: u16,
    /// True if the peer let so many timeouts pass that the timeouts of RFC 7252 are armed ([`Patience`](crate::Patience)).
    pub(crate) silent: bool,
    pub(crate) message_ids: MessageIds,
    pub(crate) rexmit_cnt_echo: RexmitCntEcho,
    /// True if the peer was seen to answer each copy of a request with the marking of that copy. RFC 7252 §4.5 allows it to
    /// repeat its first answer instead.
    pub(crate) answers_each: bool,
    /// The last answer to a marked request that was retransmitted, until `answers_each` is known.
    pub(crate) answered: Option<Box<MarkedAnswer>>,
    /// The number of non-confirmable messages that have departed since the last confirmable one.
    pub(crate) nons: u8,
    /// Exchanges that were admitted and have not ended.
    pub(crate) active: SlotStack,
    /// Exchanges that wait for a slot of NSTART or for their rate.
    pub(crate) waiting: SlotQueue,
    /// The lane for exchanges that transfer parts of bodies; `None` before the first of them.
    pub(crate) lane: Option<Box<Lane<C>>>,
    /// True if the peer stays in a full table, because it observes a resource. It is then not in the list sorted by
    /// use.
    is_held: bool,
    /// The slots of the neighbours in the list sorted by use, `newer` and `older`; `NONE` at the ends.
    newer: u32,
    older: u32,
}

/// The knowledge whether a peer echoes the Rexmit-Cnt option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RexmitCntEcho {
    Unknown,
    /// A request that tests whether the peer echoes the option has departed.
    Asked,
    Yes,
    /// The peer answered without the option. It is tested again after this number of exchanges, because the answer may have
    /// come from a proxy or may have been a copy.
    No(u8),
}

/// The number of exchanges without the option between two requests that test whether the peer echoes it.
pub(crate) const ASK_AGAIN_AFTER: u8 = 15;

/// The answer that ended an exchange whose transmissions were marked.
#[derive(Debug)]
pub(crate) struct MarkedAnswer {
    pub(crate) message_id: u16,
    /// The token of the request, without an ordinal.
    pub(crate) token: Token,
    /// The transmission that the answer identified.
    pub(crate) ordinal: u8,
}

impl<C: Controller, A> Peer<C, A> {
    /// Records a timeout after `retransmits` retransmissions without an answer.
    ///
    /// The peer becomes silent if that was the last timeout of an exchange. It also becomes silent if there were more
    /// timeouts than the outstanding exchanges can have had, because other exchanges were cancelled.
    pub(crate) fn note_timeout(&mut self, retransmits: u8, max_retransmit: u8) {
        self.unanswered = self.unanswered.saturating_add(1);
        // Each outstanding exchange may have had a timeout for all of its transmissions but the last.
        let most = u16::from(max_retransmit).saturating_mul(self.outstanding.max(1));
        self.silent |= retransmits >= max_retransmit || self.unanswered > most;
    }

    /// Returns the value of the Rexmit-Cnt option for a transmission: its ordinal, or 255 to test whether the peer
    /// echoes the option. Returns `None` if the transmission gets no such option.
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
            // A retransmission does not count, so `rest` is a number of exchanges.
            RexmitCntEcho::No(rest) => {
                self.rexmit_cnt_echo = RexmitCntEcho::No(rest - u8::from(transmission == 0));
                None
            }
        }
    }

    /// Records that the peer has answered, so that it does not count as silent.
    pub(crate) fn note_answer(&mut self) {
        (self.unanswered, self.silent) = (0, false);
        if let Some(lane) = &mut self.lane {
            lane.note_answer();
        }
    }

    /// Returns whether a non-confirmable message that expects no answer still counts as outstanding. It does until the
    /// next such message may depart (RFC 7641 §4.5.1).
    pub(crate) fn has_gap(&self, now: Instant) -> bool {
        self.last_non == NONE && self.next_non > now
    }

    fn is_idle(&self) -> bool {
        self.active.is_empty()
            && self.waiting.is_empty()
            && self.lane.as_ref().is_none_or(|lane| lane.is_idle())
    }

    /// Returns whether the next message must be confirmable, if one in `every` must be. 0 requires none.
    pub(crate) fn owes_confirmable(&self, every: u8) -> bool {
        every != 0 && self.nons >= every - 1
    }
}

/// The table of peers.
#[derive(Debug)]
pub(crate) struct Peers<C: Controller, A> {
    /// The slots of the peers. The first is inside the table itself, because most clients have no other.
    slots: SmallVec<[Peer<C, A>; 1]>,
    /// Slots by address, used for more than [`SCANNED`] peers.
    index: Option<Box<HashTable<u32>>>,
    seed: u32,
    newest: u32,
    oldest: u32,
    /// The number of peers that are held.
    held: u32,
    /// The number of times that a peer was added to the table. It makes Message IDs start at another number when a
    /// dropped peer returns.
    met: u16,
}

/// The maximum number of peers for which a linear search is the fastest way to find one.
const SCANNED: usize = 8;

impl<C: Controller, A: Address> Peers<C, A> {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            slots: SmallVec::new(),
            index: None,
            // Both halves count, because seeds may differ only in the upper one.
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

    /// Returns the slot of this address, and whether another peer was dropped for it. An unknown address is added.
    /// Returns `None` if `bound` peers that are not held have outstanding exchanges.
    pub(crate) fn find_or_insert(&mut self, address: A, bound: u32, controller: &C) -> Option<(u32, bool)> {
        if let Some(slot) = self.find(address) {
            // A held peer is not in the order of use.
            if !self[slot].is_held {
                self.unlink(slot);
                self.link_newest(slot);
            }
            return Some((slot, false));
        }
        let hash = hash_of(self.seed, address);
        // The peer may remember the IDs from before it was forgotten here, so the new ones begin elsewhere (RFC 7252 §4.4).
        let message_ids = self.message_ids(address);
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
            // A peer with an exchange under way is never forgotten: nothing could match its answer.
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

    /// Lets the Message IDs to a peer continue at a number far from the earlier ones.
    pub(crate) fn renumber(&mut self, slot: u32) {
        self[slot].message_ids = self.message_ids(self[slot].address);
    }

    /// Returns Message IDs for a peer, which start far from its earlier ones.
    fn message_ids(&mut self, address: A) -> MessageIds {
        self.met = self.met.wrapping_add(1);
        // Message IDs are in the trace of a run. The hash of the table differs between machines of 32 and 64 bits.
        let mut hasher = SipHasher13::new_with_keys(self.seed.into(), 0);
        address.hash(&mut hasher);
        // 40,503 is 2¹⁶ divided by the golden ratio: successive multiples of it lie far apart.
        MessageIds::from((hasher.finish() as u16).wrapping_add(self.met.wrapping_mul(40_503)))
    }

    /// Keeps a peer in the table until it is released.
    pub(crate) fn hold(&mut self, slot: u32) {
        if !core::mem::replace(&mut self[slot].is_held, true) {
            self.unlink(slot);
            self.held += 1;
        }
    }

    /// Allows a held peer to be dropped for others again.
    pub(crate) fn release(&mut self, slot: u32) {
        if core::mem::take(&mut self[slot].is_held) {
            self.link_newest(slot);
            self.held -= 1;
        }
    }

    /// Returns the least recently used peer without an exchange; `None` if each has one. Peers with an exchange that
    /// the search meets count as used now, so that the next search does not meet them again.
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
                // The new peer is in its slot already, so the loop adds it, too.
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
        // No slot has the number `NONE`, so `get_mut` finds nothing at the ends of the list, here and in `unlink`.
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
    fn every_peer_is_found_by_address_in_small_and_large_tables() {
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
    fn a_full_table_of_peers_drops_the_least_recently_used() {
        let mut peers = peers(0..20, 20);
        let mut evicts = |address| peers.find_or_insert(address, 20, &DefaultTimer::DEFAULT).unwrap().1;
        assert!(!evicts(0) && evicts(99));
        assert_eq!(peers.len(), 20);
        assert_eq!(peers.find(1), None);
        assert!(peers.find(0).is_some() && peers.find(99).is_some());
    }

    #[test]
    fn a_protected_peer_stays_in_a_full_table_of_peers() {
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
    fn a_peer_with_an_outstanding_exchange_is_not_dropped() {
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
