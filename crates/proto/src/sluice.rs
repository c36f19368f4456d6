//! The server's part of congestion control: a copy of a request is not answered again while its answer may still be travelling.
//!
//! A client whose timeout is too short for its path sends copies of a request that was answered long ago. Each answered
//! copy adds one more useless message to the queue that delayed the answer. The server cannot see the queue, but it
//! knows when it answered, and when that client made its next request: the former answer had arrived by then. So the
//! time from an answer to the next request is an upper bound of the path's delay. A copy that comes within this time
//! after the last answer is not answered, for at most two copies in a row.
//!
//! docs/sluice.md has the results, docs/decisions/0043 the reasons.

use alloc::vec::Vec;
use core::hash::BuildHasher;

use coapace_control::Instant;
use foldhash::fast::FixedState;

use crate::peer::Address;

/// The maximum number of copies in a row that are not answered.
const MOST_WITHHELD: u8 = 2;

/// The number of slots where the entry of one address may be stored. A hash of the address selects them.
const WAYS: usize = 8;

/// The state of one peer's last exchange. All times are in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
struct LastExchange {
    /// The time of the last answer; it wraps after 49 days.
    answered_at: u32,
    message_id: u16,
    /// The times from the last two answers to the requests that followed them, the newer one first. 0 is
    /// unknown. A longer time than 65.5 s is kept as 65.5 s.
    turnarounds: [u16; 2],
    /// The number of answers to the request.
    answers: u8,
    /// The number of unanswered copies since the last answer.
    withheld: u8,
}

// The state of a peer, without its address.
const _: () = assert!(size_of::<LastExchange>() == 12);

impl LastExchange {
    /// Returns the time for which an answer is assumed to be travelling. It is the shorter of the last two turnarounds,
    /// because a turnaround includes a timeout if the request at its end was lost.
    fn path(&self) -> u32 {
        let [newer, older] = self.turnarounds;
        u32::from(newer.min(older))
    }

    /// Handles a confirmable request. Returns true if it is a copy that gets no answer.
    fn withholds(&mut self, now: u32, message_id: u16) -> bool {
        // The milliseconds wrap after 49 days. Their difference stays right.
        let since = now.wrapping_sub(self.answered_at);
        if message_id == self.message_id {
            let withheld = self.answers > 0 && self.withheld < MOST_WITHHELD && since < self.path();
            self.withheld = if withheld { self.withheld + 1 } else { 0 };
            return withheld;
        }
        // After several answers nobody knows which one arrived. The time since the last is the least that
        // it can have taken.
        if self.answers == 1 || self.answers > 1 && since > self.path() {
            let turnaround = u16::try_from(since).unwrap_or(u16::MAX);
            self.turnarounds = [turnaround, self.turnarounds[0]];
        }
        (self.message_id, self.answers, self.withheld) = (message_id, 0, 0);
        false
    }
}

/// The peers with recent requests, in a table of constant size. If all slots for an address are taken, a new peer
/// displaces the peer that was answered longest ago. Copies from the displaced peer are then answered.
#[derive(Debug)]
pub(crate) struct Sluice<A> {
    places: Vec<Option<(A, LastExchange)>>,
    sets: usize,
    seed: u64,
    /// The number of copies that were not answered.
    pub(crate) withheld: u64,
}

impl<A: Address> Sluice<A> {
    /// Creates a table for `peers` peers. It allocates its memory at the first request.
    pub(crate) fn new(peers: u32, seed: u64) -> Self {
        // Half of the places stay free, so that few peers displace others.
        let sets = (2 * peers as usize).div_ceil(WAYS).max(1);
        Self { places: Vec::new(), sets, seed, withheld: 0 }
    }

    /// Handles a confirmable request. Returns true if it is a copy that gets no answer, and counts the copy.
    pub(crate) fn withholds(&mut self, now: Instant, from: A, message_id: u16) -> bool {
        if self.places.is_empty() {
            self.places.resize(self.sets * WAYS, None);
        }
        let now = milliseconds(now);
        let set = self.set_of(from);
        if let Some(turn) = find(set, from) {
            let withholds = turn.withholds(now, message_id);
            self.withheld += u64::from(withholds);
            return withholds;
        }
        let age = |place: &Option<(A, LastExchange)>| {
            // A free place counts as the oldest.
            place.as_ref().map_or(u32::MAX, |(_, turn)| now.wrapping_sub(turn.answered_at))
        };
        if let Some(oldest) = set.iter_mut().max_by_key(|place| age(place)) {
            let turn = LastExchange { message_id, answered_at: now, ..LastExchange::default() };
            *oldest = Some((from, turn));
        }
        false
    }

    /// Records that an answer to this request departs.
    pub(crate) fn answers(&mut self, now: Instant, to: A, message_id: u16) {
        let turn = find(self.set_of(to), to);
        if let Some(turn) = turn.filter(|turn| turn.message_id == message_id) {
            turn.answered_at = milliseconds(now);
            turn.answers = turn.answers.saturating_add(1);
            turn.withheld = 0;
        }
    }

    /// Returns the slots where the entry of this address may be stored.
    fn set_of(&mut self, address: A) -> &mut [Option<(A, LastExchange)>] {
        let set = FixedState::with_seed(self.seed).hash_one(address) % self.sets as u64;
        self.places
            .get_mut(set as usize * WAYS..)
            .and_then(|places| places.get_mut(..WAYS))
            // The table is allocated at the first request.
            .unwrap_or_default()
    }
}

fn find<A: Address>(set: &mut [Option<(A, LastExchange)>], address: A) -> Option<&mut LastExchange> {
    set.iter_mut().flatten().find(|(known, _)| *known == address).map(|(_, turn)| turn)
}

fn milliseconds(now: Instant) -> u32 {
    (now.as_micros() / 1_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// Makes a request, and answers it unless it is a withheld copy. Returns whether there was an answer.
    fn ask(sluice: &mut Sluice<u32>, ms: u64, from: u32, message_id: u16) -> bool {
        let withheld = sluice.withholds(at(ms), from, message_id);
        if !withheld {
            sluice.answers(at(ms), from, message_id);
        }
        !withheld
    }

    /// Returns a table with a peer that has made three requests, `ms` after each answer. The last was made at twice that time.
    fn acquainted(ms: u64) -> Sluice<u32> {
        let mut sluice = Sluice::new(4, 1);
        (0..3).for_each(|turn| assert!(ask(&mut sluice, u64::from(turn) * ms, 9, turn)));
        sluice
    }

    #[test]
    fn copies_of_requests_from_an_unknown_peer_are_answered() {
        let mut sluice = Sluice::new(4, 1);
        assert!((0..5).all(|copy| ask(&mut sluice, copy, 9, 1)));
        assert_eq!(sluice.withheld, 0);
    }

    #[test]
    fn a_copy_that_arrives_within_the_round_trip_time_is_not_answered() {
        let mut sluice = acquainted(1_000);
        assert!(!ask(&mut sluice, 2_999, 9, 2));
        assert_eq!(sluice.withheld, 1);
        let mut sluice = acquainted(1_000);
        assert!(ask(&mut sluice, 3_000, 9, 2));
        assert_eq!(sluice.withheld, 0);
    }

    #[test]
    fn the_answers_to_at_most_two_consecutive_copies_are_withheld() {
        let mut sluice = acquainted(60_000);
        let answered: Vec<_> = (1..8).map(|copy| ask(&mut sluice, 120_000 + copy, 9, 2)).collect();
        assert_eq!(answered, [false, false, true, false, false, true, false]);
    }

    #[test]
    fn one_late_request_does_not_raise_the_estimated_round_trip_time() {
        let mut sluice = acquainted(1_000);
        assert!(ask(&mut sluice, 8_000, 9, 3));
        assert!(ask(&mut sluice, 9_000, 9, 3), "a copy");
        assert!(ask(&mut sluice, 14_000, 9, 4) && ask(&mut sluice, 20_000, 9, 5));
        assert!(!ask(&mut sluice, 24_000, 9, 5), "two that came late do");
    }

    #[test]
    fn several_late_requests_raise_the_estimated_round_trip_time() {
        let mut sluice = acquainted(1_000);
        assert!(ask(&mut sluice, 3_000, 9, 2) && ask(&mut sluice, 3_100, 9, 3));
        assert!(!ask(&mut sluice, 4_000, 9, 3), "100 ms after the second answer is not a turnaround");
    }

    #[test]
    fn the_estimated_round_trip_time_saturates_at_65_s() {
        let mut sluice = acquainted(3_600_000);
        assert!(!ask(&mut sluice, 7_200_000 + 65_534, 9, 2));
        let mut sluice = acquainted(3_600_000);
        assert!(ask(&mut sluice, 7_200_000 + 65_535, 9, 2));
    }

    #[test]
    fn copies_of_peers_beyond_the_table_are_answered_without_memory() {
        let mut sluice = Sluice::new(100, 1);
        for round in 0..5 {
            assert!((0..10_000).all(|peer| ask(&mut sluice, round * 1_000, peer, round as u16)));
        }
        assert_eq!(sluice.places.len(), 200);
        assert_eq!(sluice.places.capacity(), 200);
    }

    #[test]
    fn a_table_of_round_trip_times_remembers_nearly_all_of_its_nominal_peers() {
        let mut sluice = Sluice::new(400, 1);
        for round in 0..3 {
            assert!((0..400).all(|peer| ask(&mut sluice, round * 1_000, peer, round as u16)));
        }
        let withheld = (0..400).filter(|&peer| !ask(&mut sluice, 2_500, peer, 2)).count();
        assert!(withheld >= 390, "{withheld}");
    }
}
