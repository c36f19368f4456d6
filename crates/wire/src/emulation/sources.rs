//! The table of sources.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use coapace_sim::{NodeId, Time};

use super::steps::Steps;

/// The table of sources, which are the addresses on the clients' side. Each source has a slot, and a node of the
/// network. If all slots are taken, a new source gets the slot of the source that has been silent for the longest time
/// and has no packets in flight.
#[derive(Debug)]
pub(super) struct EmulationSources<K> {
    places: HashMap<K, usize>,
    taken: Vec<EmulationSource<K>>,
    /// The slots, sorted by the time of their last packets.
    idle: BTreeSet<(Time, usize)>,
    limit: usize,
}

#[derive(Debug)]
struct EmulationSource<K> {
    key: K,
    last: Time,
    steps: Steps,
}

/// The index of the slot that a new source got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SourcePlace {
    /// A slot added at the end, which had no source before.
    New(usize),
    /// A slot that the new source took from an idle source.
    Taken(usize),
}

/// The number of sources that are searched for a source without packets in flight, beginning with the source that was
/// idle for longest.
const EXAMINED: usize = 64;

impl<K: Copy + Eq + Hash> EmulationSources<K> {
    pub(super) fn new(limit: usize) -> Self {
        Self { places: HashMap::new(), taken: Vec::new(), idle: BTreeSet::new(), limit: limit.max(1) }
    }

    pub(super) fn len(&self) -> usize {
        self.taken.len()
    }

    /// Stops the table from growing: the limit becomes the present number of sources, or 1.
    pub(super) fn close(&mut self) {
        self.limit = self.taken.len().max(1);
    }

    /// Returns the slot of a known source, and records that it was active `now`; `None` for a new source.
    pub(super) fn find(&mut self, key: K, now: Time) -> Option<usize> {
        let place = *self.places.get(&key)?;
        self.touch(place, now);
        Some(place)
    }

    /// Records that the source in a slot was active `now`.
    pub(super) fn touch(&mut self, place: usize, now: Time) {
        if let Some(source) = self.taken.get_mut(place) {
            // The set is sorted by time, so the entry leaves before its time changes.
            self.idle.remove(&(source.last, place));
            source.last = now;
            self.idle.insert((now, place));
        }
    }

    /// Gives a new source a slot. Returns `None` if no slot is free and each of the [`EXAMINED`] idlest sources has
    /// packets in flight. `under_way` returns the number of a node's packets in flight.
    pub(super) fn admit(
        &mut self,
        key: K,
        now: Time,
        under_way: impl Fn(NodeId) -> u32,
    ) -> Option<SourcePlace> {
        // Slots are never given back while the emulation runs, except by `withdraw`. So a free slot is always behind the last.
        let place = if self.taken.len() < self.limit {
            let place = self.taken.len();
            self.taken.push(EmulationSource { key, last: now, steps: Steps::default() });
            SourcePlace::New(place)
        } else {
            // The search is bounded: with packets of many sources under way, each new source would cost a walk over all.
            let idlest = self.idle.iter().take(EXAMINED);
            let &(last, place) = { idlest }.find(|(_, place)| under_way(Self::node(*place)) == 0)?;
            self.idle.remove(&(last, place));
            let source = &mut self.taken[place];
            self.places.remove(&source.key);
            // Messages of the old source must not lend their marks to packets of the new one.
            source.steps.forget();
            (source.key, source.last) = (key, now);
            SourcePlace::Taken(place)
        };
        self.places.insert(key, place.number());
        self.idle.insert((now, place.number()));
        Some(place)
    }

    /// Removes the last slot, which was just added for a source that cannot be served.
    pub(super) fn withdraw(&mut self) {
        if let Some(source) = self.taken.pop() {
            self.idle.remove(&(source.last, self.taken.len()));
            self.places.remove(&source.key);
        }
    }

    /// Returns the key of the source in a slot, and the state of its exchanges.
    pub(super) fn get(&mut self, place: usize) -> Option<(K, &mut Steps)> {
        self.taken.get_mut(place).map(|source| (source.key, &mut source.steps))
    }

    /// Returns the node of a slot. Node 0 is the server.
    pub(super) fn node(place: usize) -> NodeId {
        NodeId(place as u32 + 1)
    }

    /// Returns the slot of a node.
    pub(super) fn place(node: NodeId) -> Option<usize> {
        (node.0 as usize).checked_sub(1)
    }
}

impl SourcePlace {
    pub(super) fn number(self) -> usize {
        let (Self::New(place) | Self::Taken(place)) = self;
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(s: u64) -> Time {
        Time::from_secs(s)
    }

    #[test]
    fn the_least_recently_used_source_without_packets_in_flight_is_dropped() {
        let mut sources = EmulationSources::new(3);
        for (key, place) in [("a", 0), ("b", 1), ("c", 2)] {
            assert_eq!(sources.admit(key, at(place), |_| 0), Some(SourcePlace::New(place as usize)));
        }
        assert_eq!(sources.find("a", at(5)), Some(0));
        // The idlest is b, but a packet of node 2 is under way.
        let under_way = |node: NodeId| u32::from(node == NodeId(2));
        assert_eq!(sources.admit("d", at(6), under_way), Some(SourcePlace::Taken(2)));
        assert_eq!((sources.find("c", at(7)), sources.find("d", at(7)), sources.len()), (None, Some(2), 3));
        assert_eq!(sources.admit("e", at(8), |_| 1), None, "packets of all are under way");
        assert_eq!(sources.admit("e", at(8), |_| 0), Some(SourcePlace::Taken(1)));
        assert_eq!((sources.find("b", at(9)), sources.find("a", at(9))), (None, Some(0)));
    }

    #[test]
    fn any_number_of_emulated_sources_takes_bounded_memory() {
        let mut sources = EmulationSources::new(100);
        for n in 0..10_000u32 {
            assert!(sources.admit(n, at(n.into()), |_| 0).is_some());
        }
        assert_eq!((sources.places.len(), sources.idle.len(), sources.len()), (100, 100, 100));
        assert_eq!(sources.find(9_900, at(1)), Some(0));
        assert_eq!(sources.find(9_899, at(1)), None);
    }

    #[test]
    fn a_source_that_could_not_be_set_up_leaves_no_entry() {
        let mut sources = EmulationSources::new(2);
        sources.admit("a", at(0), |_| 0);
        sources.admit("b", at(0), |_| 0);
        sources.withdraw();
        assert_eq!((sources.find("b", at(1)), sources.len()), (None, 1));
        sources.close();
        assert_eq!(sources.admit("b", at(1), |_| 0), Some(SourcePlace::Taken(0)));
    }
}
