//! `rfc9177`: ten requests at once and then a wait, with the constants that RFC 9177 prints for Q-Block.
//!
//! **Source.** RFC 9177 §7.2, its parameters for non-confirmable messages, and ACK_RANDOM_FACTOR of RFC 7252 §4.8.
//!
//! **Idea.** Requests depart in sets of MAX_PAYLOADS. The next set departs as soon as the whole set is answered, like
//! after a *Continue*. If some requests stay unanswered, it departs NON_TIMEOUT_RANDOM after the last departure of the
//! set. A missing block is requested again after NON_RECEIVE_TIMEOUT, which doubles each time. No round-trip time is
//! measured.
//!
//! **Differences from the source**
//! * Requests are confirmable, one for each block. For confirmable requests RFC 9177 §7.1 refers to RFC 7252 with a
//!   greater NSTART, and leaves the tuning open. Here the parameters of §7.2 apply.
//! * A set is MAX_PAYLOADS departures. In RFC 9177 it is the blocks whose numbers have the same quotient by
//!   MAX_PAYLOADS. Here repeated blocks count, too, and a set may end in the next body, because a mechanism does not
//!   know block numbers.
//! * NON_TIMEOUT_RANDOM is drawn once for a destination. RFC 9177 draws it for each body.
//! * In RFC 9177 the arrival of a block of the next set also shows which blocks are missing. Here only timeouts find
//!   losses.
//! * The endpoint limits the number of copies by its own rules. NON_MAX_RETRANSMIT limits how often the timeout
//!   doubles.
//! * PROBING_RATE, NON_PROBING_WAIT and NON_PARTIAL_TIMEOUT have no effect on bodies.
//!
//! **Unsafe as published**
//! * A peer that does not answer gets a set in every NON_TIMEOUT_RANDOM, until the endpoint gives up. The requests of a
//!   set are not paced.

use crate::parameters::parameters;
use crate::{
    Controller, Cue, Draw, Duration, Entry, Gauges, Instant, Limits, Marking, Mechanism, Notes, Origin,
    Outcome, Ratio,
};

parameters! {
    /// Sets of requests with a wait between them, and the timeouts of RFC 9177.
    pub struct Rfc9177 {
        /// MAX_PAYLOADS, the number of requests in a set, RFC 9177 §7.2. Counts as 1 if it is 0.
        max_payloads: u8 = 10,
        /// NON_TIMEOUT, the least wait after a set that is not completely answered, RFC 9177 §7.2.
        non_timeout: Duration = Duration::from_secs(2),
        /// ACK_RANDOM_FACTOR: NON_TIMEOUT_RANDOM is U(NON_TIMEOUT, ACK_RANDOM_FACTOR·NON_TIMEOUT), RFC 9177 §7.2. A value below
        /// 1 counts as 1.
        ack_random_factor: Ratio = Ratio::new(3, 2),
        /// NON_RECEIVE_TIMEOUT, the time until an unanswered block is requested again, RFC 9177 §7.2. It doubles each
        /// time.
        non_receive_timeout: Duration = Duration::from_secs(4),
        /// NON_MAX_RETRANSMIT, RFC 9177 §7.2: how often NON_RECEIVE_TIMEOUT doubles. It does not limit the number of
        /// copies.
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
    /// The random number that makes NON_TIMEOUT_RANDOM; `None` before the first departure.
    wait: Option<Draw>,
    /// The number of outstanding exchanges.
    outstanding: u16,
    /// The number of the current set, modulo 2¹⁶.
    set: u16,
    /// The number of departures that remain in the current set.
    left: u8,
    /// The number of unanswered exchanges of the current set.
    missing: u16,
}

/// State of [`Rfc9177`] for one exchange.
#[derive(Clone, Copy, Debug)]
#[repr(Rust, packed)] // exchanges have an alignment of 1
pub struct Rfc9177Exchange {
    /// The number of the set in which the exchange last departed.
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
        // An exchange of an earlier set is not missing in this one, and one that is given up stays missing.
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
        // When the wait is over, the next set may depart.
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

    /// Returns the timeout of an exchange after this many retransmissions.
    fn timeout(&self, retransmits: u8) -> Duration {
        // Each copy doubles the wait, as each 4.08 does (RFC 9177 §7.2).
        let doublings = retransmits.min(self.non_max_retransmit);
        self.non_receive_timeout.times(1u32.checked_shl(doublings.into()).unwrap_or(u32::MAX))
    }

    /// Counts a departure in the current set. If the set is full and its wait is over, the departure begins the next
    /// set. A departure during the wait, which [`Controller::limits`] forbids, prolongs the wait.
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

/// The registry entry `rfc9177`.
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

    /// Sends as many exchanges at `ms` as the window allows.
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
    fn with_rfc9177_the_next_set_of_blocks_departs_once_the_whole_set_is_answered() {
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
    fn with_rfc9177_an_unanswered_set_delays_the_next_and_missing_blocks_do_not_count_in_it() {
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
    fn with_rfc9177_a_retransmitted_block_counts_in_the_set_in_which_it_departs() {
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
    fn with_rfc9177_a_block_that_is_given_up_does_not_count_as_answered() {
        let state = &mut SETS.state();
        for exchange in send(state, 0, 0) {
            SETS.on_end(state, exchange, Outcome::GivenUp, at(100));
        }
        assert_eq!(next(state), Instant::from_millis(2_500));
    }

    #[test]
    fn with_rfc9177_all_waits_of_a_destination_use_the_random_draw_of_its_first_set() {
        let state = &mut SETS.state();
        send(state, 0, 0);
        let later = Cue { draw: Draw::from_bits(u32::MAX), ..at(5_000) };
        for outstanding in 11..=20 {
            SETS.on_start(state, Cue { outstanding, ..later });
        }
        assert_eq!(next(state), Instant::from_millis(7_500));
    }

    #[test]
    fn the_timeout_of_rfc9177_doubles_from_4_s_to_64_s() {
        let (mut exchange, armed) = timeouts(&SETS, &mut SETS.state(), 4);
        assert_eq!(armed, [4_000, 8_000, 16_000, 32_000, 64_000]);
        let fifth = SETS.on_retransmit(&mut SETS.state(), &mut exchange, at(0));
        assert_eq!(fifth, Duration::from_secs(64), "NON_MAX_RETRANSMIT");
        assert_eq!(SETS.max_span(4), Duration::from_secs(60));
    }
}
