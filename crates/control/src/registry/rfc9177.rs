//! `rfc9177`: sets of ten and a wait, the constants of Q-Block as they are printed.
//!
//! **Source.** RFC 9177 §7.2, its parameters for non-confirmable messages, and ACK_RANDOM_FACTOR of RFC 7252 §4.8.
//!
//! **Idea.** Requests depart in sets of MAX_PAYLOADS. The next set departs as soon as the whole set is answered, like after a
//! *Continue*, and otherwise NON_TIMEOUT_RANDOM after the last departure of the set. A block that is missing is asked for again
//! after NON_RECEIVE_TIMEOUT, which doubles. No round-trip time is measured.
//!
//! **Differences from the source**
//! * Requests are confirmable, one for each block. RFC 9177 §7.1 leaves their congestion control to RFC 7252 with a greater
//!   NSTART, and says that its tuning is not specified. Here it is §7.2.
//! * A set is so many departures, and not the blocks whose numbers have one quotient. Departures that repeat a block count, and
//!   a set may end in the next body, because a mechanism knows no blocks.
//! * NON_TIMEOUT_RANDOM is drawn once for a destination. RFC 9177 draws it for each body.
//! * With RFC 9177 a block of the next set, too, shows which blocks of a set are missing. Here only timeouts find losses.
//! * The endpoint bounds the copies by its own rules. NON_MAX_RETRANSMIT bounds the doubling.
//! * A body has no PROBING_RATE, and no NON_PROBING_WAIT and NON_PARTIAL_TIMEOUT.
//!
//! **Unsafe as published**
//! * A silent peer gets a set in every NON_TIMEOUT_RANDOM, until the endpoint gives up. Sets are not paced.

use crate::parameters::parameters;
use crate::{
    Controller, Cue, Draw, Duration, Entry, Gauges, Instant, Limits, Marking, Mechanism, Notes, Origin,
    Outcome, Ratio,
};

parameters! {
    /// The sets, the wait and the timeouts of RFC 9177.
    pub struct Rfc9177 {
        /// MAX_PAYLOADS, the departures of a set, RFC 9177 §7.2. Counts as 1 if it is 0.
        max_payloads: u8 = 10,
        /// NON_TIMEOUT, the least wait between two sets, RFC 9177 §7.2.
        non_timeout: Duration = Duration::from_secs(2),
        /// ACK_RANDOM_FACTOR: NON_TIMEOUT_RANDOM is U(NON_TIMEOUT, ACK_RANDOM_FACTOR·NON_TIMEOUT), RFC 9177 §7.2. A value below
        /// 1 counts as 1.
        ack_random_factor: Ratio = Ratio::new(3, 2),
        /// NON_RECEIVE_TIMEOUT, the time until a block is asked for again, RFC 9177 §7.2. It doubles each time.
        non_receive_timeout: Duration = Duration::from_secs(4),
        /// NON_MAX_RETRANSMIT, RFC 9177 §7.2: how often the timeout doubles. The endpoint bounds the copies.
        non_max_retransmit: u8 = 4,
    }
    presets {}
}

/// State of [`Rfc9177`] for one destination.
#[derive(Clone, Copy, Debug)]
#[repr(Rust, packed)] // an alignment of 1, like other states
pub struct Rfc9177State {
    /// The earliest departure of the next exchange.
    next: Instant,
    /// The draw of NON_TIMEOUT_RANDOM, once there was a departure.
    wait: Option<Draw>,
    /// Exchanges in flight.
    outstanding: u16,
    /// The number of the present set.
    set: u16,
    /// Departures that the present set still allows.
    left: u8,
    /// Exchanges of the present set that are not answered.
    missing: u16,
}

/// State of [`Rfc9177`] for one exchange.
#[derive(Clone, Copy, Debug)]
#[repr(Rust, packed)] // exchanges have an alignment of 1
pub struct Rfc9177Exchange {
    /// The set of its last departure.
    set: u16,
    retransmits: u8,
}

impl Controller for Rfc9177 {
    type State = Rfc9177State;
    type Exchange = Rfc9177Exchange;

    fn state(&self) -> Rfc9177State {
        Rfc9177State {
            next: Instant::ZERO,
            wait: None,
            outstanding: 0,
            set: 0,
            left: self.payloads(),
            missing: 0,
        }
    }

    fn on_start(&self, state: &mut Rfc9177State, cue: Cue) -> (Rfc9177Exchange, Duration) {
        self.depart(state, cue);
        (Rfc9177Exchange { set: state.set, retransmits: 0 }, self.timeout(0))
    }

    fn on_retransmit(&self, state: &mut Rfc9177State, exchange: &mut Rfc9177Exchange, cue: Cue) -> Duration {
        self.depart(state, cue);
        if exchange.set == state.set {
            // It was missing in this set already.
            state.missing = state.missing.saturating_sub(1);
        }
        exchange.set = state.set;
        exchange.retransmits = exchange.retransmits.saturating_add(1);
        self.timeout(exchange.retransmits)
    }

    fn on_end(&self, state: &mut Rfc9177State, exchange: Rfc9177Exchange, outcome: Outcome, cue: Cue) {
        state.outstanding = cue.outstanding.saturating_sub(1);
        if exchange.set != state.set || matches!(outcome, Outcome::GivenUp) {
            return;
        }
        state.missing = state.missing.saturating_sub(1);
        if state.missing == 0 {
            // The whole set is answered, as a Continue says.
            state.next = state.next.min(cue.now);
        }
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        (0..retransmits).fold(Duration::ZERO, |span, n| span + self.timeout(n))
    }

    fn limits(&self, state: &Rfc9177State) -> Limits {
        let left = if state.left == 0 { self.payloads() } else { state.left };
        Limits {
            // Exchanges in flight from earlier sets take no place of this one.
            nstart: Some({ state.outstanding }.saturating_add(left.into())),
            next_confirmable: state.next,
            ..Limits::with_gauges(self.gauges(state), Marking::None)
        }
    }

    #[inline(always)]
    fn gauges(&self, _: &Rfc9177State) -> Gauges {
        Gauges { rto: self.non_receive_timeout, ..Gauges::default() }
    }
}

impl Rfc9177 {
    fn payloads(&self) -> u8 {
        self.max_payloads.max(1)
    }

    /// Returns the time to wait after so many copies.
    fn timeout(&self, retransmits: u8) -> Duration {
        let doublings = retransmits.min(self.non_max_retransmit);
        self.non_receive_timeout.times(1u32.checked_shl(doublings.into()).unwrap_or(u32::MAX))
    }

    /// Counts a departure. The first one after a whole set and its wait begins the next set. One within the wait, which an
    /// endpoint that keeps the limits does not let depart, prolongs it.
    fn depart(&self, state: &mut Rfc9177State, cue: Cue) {
        if state.left == 0 && cue.now >= { state.next } {
            state.set = state.set.wrapping_add(1);
            state.left = self.payloads();
            state.missing = 0;
        }
        let draw = { state.wait }.unwrap_or(cue.draw);
        state.wait = Some(draw);
        state.left = state.left.saturating_sub(1);
        state.missing = state.missing.saturating_add(1);
        state.outstanding = cue.outstanding;
        // A moment that has come makes the endpoint ask again after each departure, so that no set becomes too large.
        state.next = cue.now;
        if state.left == 0 {
            state.next = cue.now + draw.dither(self.non_timeout, self.ack_random_factor);
        }
    }
}

/// The entry `rfc9177`.
pub(crate) const RFC9177: Entry = Entry {
    name: "rfc9177",
    summary: "sets of ten requests, and a wait of 2-3 s after each that is not answered as a whole; nothing learnt",
    source: "RFC 9177 §7.2",
    origin: Origin::Published,
    notes: Notes {
        status: "A Proposed Standard for Q-Block, with its constants. Not RFC 9177 are: requests, for each block one, that \
            are confirmable (§7.1 does not specify their tuning); sets that count departures, and not numbers of blocks; \
            losses that timeouts alone find, and no block of the next set; a wait that is drawn once for a destination; no \
            PROBING_RATE for a body.",
        use_when: "A comparison needs the constants of Q-Block.",
        avoid_when: "Packets are lost: each set with a loss waits for 2 s at least, and the block for 4 s, however short the \
            round-trip time is.",
        hazards: "Nothing slows it down: a path that drops packets, or a silent peer, gets ten of them at once in every 2 to \
            3 s, until the endpoint gives up. On a path without losses the rate is ten blocks a round trip, whatever \
            the queue.",
    },
    mechanism: Mechanism::Rfc9177(Rfc9177::DEFAULT),
};

const _: () = assert!(size_of::<Rfc9177State>() <= 20);

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;
    use crate::testing::{acked, at, timeouts};

    const SETS: Rfc9177 = Rfc9177::DEFAULT;

    /// Sends as many exchanges as a window of the present state has, at `ms`.
    fn send(state: &mut Rfc9177State, ms: u64, in_flight: u16) -> Vec<Rfc9177Exchange> {
        let window = SETS.limits(state).nstart.unwrap();
        (in_flight + 1..=window).map(|outstanding| start(state, ms, outstanding)).collect()
    }

    fn start(state: &mut Rfc9177State, ms: u64, outstanding: u16) -> Rfc9177Exchange {
        SETS.on_start(state, Cue { outstanding, draw: Draw::from_bits(1 << 31), ..at(ms) }).0
    }

    fn next(state: &Rfc9177State) -> Instant {
        SETS.limits(state).next_confirmable
    }

    #[test]
    fn the_next_set_departs_at_once_if_the_whole_set_is_answered() {
        let state = &mut SETS.state();
        let set = send(state, 1_000, 0);
        assert_eq!(set.len(), 10);
        assert_eq!(next(state), Instant::from_millis(3_500), "half of the dither");
        for (outstanding, exchange) in (1..=10).rev().zip(set) {
            assert!(next(state) > Instant::from_millis(1_100));
            SETS.on_end(state, exchange, acked(100, 0), Cue { outstanding, ..at(1_100) });
        }
        assert_eq!(next(state), Instant::from_millis(1_100));
        assert_eq!(send(state, 1_100, 0).len(), 10);
    }

    #[test]
    fn a_set_that_lacks_an_answer_waits_and_what_is_missing_takes_no_place_of_the_next() {
        let state = &mut SETS.state();
        let set = send(state, 0, 0);
        for (outstanding, &exchange) in (2..=10).rev().zip(&set[1..]) {
            SETS.on_end(state, exchange, acked(100, 0), Cue { outstanding, ..at(100) });
        }
        assert_eq!(next(state), Instant::from_millis(2_500));
        let second = send(state, 2_500, 1);
        assert_eq!(second.len(), 10);
        for (outstanding, exchange) in (2..=11).rev().zip(second) {
            SETS.on_end(state, exchange, acked(100, 0), Cue { outstanding, ..at(2_600) });
        }
        assert_eq!(next(state), Instant::from_millis(2_600), "a Continue is of its own set");
    }

    #[test]
    fn a_copy_takes_a_place_of_the_set_in_which_it_departs() {
        let state = &mut SETS.state();
        let mut lost = start(state, 0, 1);
        for outstanding in 2..=10 {
            start(state, 0, outstanding);
        }
        let timeout = SETS.on_retransmit(state, &mut lost, Cue { outstanding: 10, ..at(4_000) });
        assert_eq!(timeout, Duration::from_secs(8));
        assert_eq!(SETS.limits(state).nstart, Some(19), "nine more");
    }

    #[test]
    fn an_exchange_that_is_given_up_is_no_answer() {
        let state = &mut SETS.state();
        for exchange in send(state, 0, 0) {
            SETS.on_end(state, exchange, Outcome::GivenUp, at(100));
        }
        assert_eq!(next(state), Instant::from_millis(2_500));
    }

    #[test]
    fn every_wait_of_a_destination_has_the_draw_of_its_first_departure() {
        let state = &mut SETS.state();
        send(state, 0, 0);
        let later = Cue { draw: Draw::from_bits(u32::MAX), ..at(5_000) };
        for outstanding in 11..=20 {
            SETS.on_start(state, Cue { outstanding, ..later });
        }
        assert_eq!(next(state), Instant::from_millis(7_500));
    }

    #[test]
    fn the_timeout_doubles_from_4_s_to_64_s() {
        let (mut exchange, armed) = timeouts(&SETS, &mut SETS.state(), 4);
        assert_eq!(armed, [4_000, 8_000, 16_000, 32_000, 64_000]);
        let fifth = SETS.on_retransmit(&mut SETS.state(), &mut exchange, at(0));
        assert_eq!(fifth, Duration::from_secs(64), "NON_MAX_RETRANSMIT");
        assert_eq!(SETS.max_span(4), Duration::from_secs(60));
    }
}
