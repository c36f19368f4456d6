extern crate std;

use std::vec::Vec;

use super::*;
use crate::testing::{acked, at};
use crate::{Draw, Sample};

const TIDE: Tide = Tide::DEFAULT;

fn cue(us: u64, outstanding: u16) -> Cue {
    Cue { now: Instant::from_micros(us), draw: Draw::ZERO, outstanding }
}

fn window(state: &TideState) -> u16 {
    TIDE.limits(state).nstart.unwrap()
}

/// A path with a round-trip time of 100 ms, and a queueing delay that the window itself causes above 20 datagrams.
struct QueuedPath {
    state: TideState,
    now: u64,
    /// The queueing delay that other flows cause, in microseconds.
    others: u64,
}

impl QueuedPath {
    fn new() -> Self {
        Self { state: TIDE.state(), now: 1_000_000, others: 0 }
    }

    /// Sends a window evenly and answers it, except this many first exchanges, which are overtaken.
    fn round(&mut self, lost: usize) {
        let full = window(&self.state);
        let rtt = 100_000 + self.others + 5_000 * u64::from(full.saturating_sub(20));
        let apart = rtt / u64::from(full);
        let mut open: Vec<_> = (0..u64::from(full))
            .map(|n| (n, TIDE.on_start(&mut self.state, cue(self.now + n * apart, full)).0))
            .collect();
        for (n, exchange) in open.drain(lost..) {
            let since = Duration::from_micros(rtt);
            let now = cue(self.now + n * apart + rtt, full);
            let sample = Outcome::Acked(Sample::unmarked(since, since, 0));
            TIDE.on_end(&mut self.state, exchange, sample, now);
        }
        self.now += 2 * rtt;
        for (n, mut exchange) in open {
            let departed = self.now - 2 * rtt + n * apart;
            TIDE.on_retransmit(&mut self.state, &mut exchange, cue(departed + rtt, full));
            TIDE.on_end(&mut self.state, exchange, acked(200, 1), cue(self.now, full));
        }
    }
}

#[test]
fn tide_doubles_its_window_each_round_trip_until_two_datagrams_are_queued() {
    let mut path = QueuedPath::new();
    path.round(0);
    assert_eq!(window(&path.state), 20);
    let mut windows = [0; 40].map(|_| {
        path.round(0);
        window(&path.state)
    });
    windows[10..].sort_unstable();
    assert!(windows[10] >= 13 && windows[39] <= 30, "{windows:?}");
}

#[test]
fn tide_shrinks_its_window_on_losses_only_if_a_queue_is_measured() {
    let mut path = QueuedPath::new();
    path.round(4);
    path.round(5);
    assert!(path.state.is(SLOW) && window(&path.state) > 15, "{}", window(&path.state));
    for _ in 0..20 {
        path.round(0);
    }
    path.state.loss = [0; 2];
    path.state.set(LONG, true);
    let before = { path.state.window };
    let [first, second] = [(); 2].map(|()| TIDE.on_start(&mut path.state, cue(path.now, 2)).0);
    TIDE.lose(&mut path.state, first, Instant::from_micros(path.now + 60_000));
    assert_eq!({ path.state.window }, (before * 3 + 2) / 4);
    TIDE.lose(&mut path.state, second, Instant::from_micros(path.now + 60_000));
    assert_eq!({ path.state.window }, (before * 3 + 2) / 4, "once in a round trip");
}

#[test]
fn tide_competes_for_a_queue_that_others_keep_full_and_not_for_one_that_drains() {
    for (others, expected) in [(300_000, true), (0, false)] {
        let mut path = QueuedPath::new();
        for _ in 0..10 {
            path.round(0);
        }
        path.others = others;
        let mut competed = false;
        for _ in 0..12 {
            path.round(0);
            competed |= path.state.full >= TIDE.ebb_after + 2;
        }
        assert_eq!(competed, expected);
    }
}

#[test]
fn tide_paces_at_two_windows_each_round_trip_and_catches_up_after_a_late_timer() {
    let mut path = QueuedPath::new();
    path.round(0);
    let gap = 100_000 / 2 / u64::from(window(&path.state));
    let start = |path: &mut QueuedPath, now| {
        let _ = TIDE.on_start(&mut path.state, cue(now, 1));
        TIDE.limits(&path.state).next_confirmable.as_micros()
    };
    let now = path.now + 1_000_000;
    let first = start(&mut path, now);
    assert_eq!(first, now - 7_250 + gap, "SRTT/16 and 1 ms may be made up for");
    assert_eq!(start(&mut path, now), first + gap);
    assert_eq!(TIDE.gauges(&path.state).rate_per_ks, Some(u32::from(window(&path.state)) * 10_000));
}

#[test]
fn tide_backs_off_and_shrinks_to_a_window_of_one_after_a_second_silent_round_trip() {
    let mut path = QueuedPath::new();
    for _ in 0..20 {
        path.round(0);
    }
    let now = path.now;
    let rto = TIDE.gauges(&path.state).rto.as_micros();
    let (mut exchange, mut timeout) = TIDE.on_start(&mut path.state, cue(now, 1));
    assert_eq!(timeout.as_micros(), rto);
    let mut at = now;
    let copies = [(); 4].map(|()| {
        at += timeout.as_micros();
        timeout = TIDE.on_retransmit(&mut path.state, &mut exchange, cue(at, 1));
        (timeout.as_micros(), window(&path.state))
    });
    let [(first, before), (second, 1), (third, 1), (fourth, 1)] = copies else { panic!("{copies:?}") };
    assert!(first == rto && before > 1, "{copies:?}");
    for (shorter, longer) in [(second, third), (third, fourth)] {
        assert!((shorter + shorter / 2).abs_diff(longer) <= 2, "{copies:?}");
    }
    TIDE.on_end(&mut path.state, exchange, acked(5_000, 4), cue(at + 100_000, 1));
    assert_eq!(TIDE.gauges(&path.state).rto.as_micros(), fourth, "an ambiguous answer is not a sample");
    let mut usual = path.state;
    TIDE.on_end(&mut usual, exchange, Outcome::Acked(usually()), cue(at + 110_000, 1));
    assert!(TIDE.gauges(&usual).rto.as_micros() < 2 * rto, "it came as soon as answers usually do");
    path.round(0);
    assert!(TIDE.gauges(&path.state).rto.as_micros() < 2 * rto);
    assert!(path.state.is(SLOW));
}

/// Returns an answer 110 ms after the last of four retransmissions.
fn usually() -> Sample {
    Sample::unmarked(Duration::from_secs(5), Duration::from_millis(110), 4)
}

#[test]
fn an_answer_sooner_than_any_before_shows_a_spurious_retransmission_and_is_a_sample() {
    let mut path = QueuedPath::new();
    path.round(0);
    let srtt = TIDE.gauges(&path.state).srtt;
    let (exchange, _) = TIDE.on_start(&mut path.state, at(9_000));
    let ms = Duration::from_millis;
    let ambiguous = Outcome::Acked(Sample::unmarked(ms(300), ms(150), 1));
    TIDE.on_end(&mut path.state, exchange, ambiguous, at(9_300));
    assert_eq!(TIDE.gauges(&path.state).srtt, srtt);
    let spurious = Outcome::Acked(Sample::unmarked(ms(300), ms(50), 1));
    TIDE.on_end(&mut path.state, exchange, spurious, at(9_300));
    assert_eq!(TIDE.gauges(&path.state).srtt, Some(ms(125)));
}
