//! Scripts of exchanges, written while the mechanism goes along: so timers can fire when they are due, and an RTO can be
//! steered to where something changes.

use std::fmt::Write;

use coapace_control::{
    Controller, Cue, Draw, Duration, Exchange, Instant, Mechanism, Outcome, Sample, State,
};
use coapace_sim::{Luck, Stream};

/// MAX_RETRANSMIT, RFC 7252 §4.8. Californium gives up after this many retransmissions and not before.
const MAX_RETRANSMIT: u8 = 4;
const MILLISECOND: u64 = 1_000;
const SECOND: u64 = 1_000_000;
/// Californium forgets a peer after ten minutes without an exchange, whatever the mechanism.
const LONGEST_IDLE: u64 = 590 * SECOND;

/// Exchanges of (idle milliseconds before, microseconds until the answer, retransmissions).
type Table = &'static [(u64, u64, u8)];

/// The exchanges that are not random.
#[rustfmt::skip]
const BY_HAND: [Table; 6] = [
    // A weak sample comes first. An exchange with three retransmissions gives no sample.
    &[(0, 7_001_000, 2), (9, 9_000_000, 3), (9, 801_000, 0), (9, 30_000_000, 4), (9, 2_401_000, 1), (9, 801_000, 0)],
    // The second sample is lower than the first, then half of one and less, the same, twice it.
    &[(0, 101_000, 0), (0, 50_000, 0), (0, 25_000, 0), (0, 12_000, 0), (0, 12_000, 0), (0, 24_000, 0), (0, 25_000, 0)],
    &[(0, 3_000_000, 0), (0, 1_501_000, 0), (0, 750_000, 0), (0, 374_000, 0), (0, 749_000, 0), (0, 3_000_000, 0)],
    // Parts of a millisecond, and none at all.
    &[(0, 0, 0), (0, 1, 0), (0, 999, 0), (0, 1_000, 0), (0, 1_999, 0), (0, 2_000, 0), (0, 999, 1), (0, 5_499, 2)],
    // A long RTO ages by many steps, waits, and ages again; so does a short one.
    &[(0, 30_000_000, 0), (0, 30_000_000, 0), (590_000, 700_000, 3), (0, 700_000, 3), (590_000, 700_000, 3)],
    &[(0, 5_000, 0), (0, 5_000, 0), (0, 5_000, 0), (0, 5_000, 0), (0, 5_000, 0), (0, 5_000, 0), (0, 5_000, 0),
      (0, 5_000, 0), (0, 5_000, 0), (590_000, 5_000, 3), (0, 5_000, 3), (1_000, 5_000, 0), (590_000, 5_000, 3)],
];

/// RTOs, in milliseconds, around which a factor, a bound or an age changes.
const EDGES: [u64; 12] = [250, 499, 500, 501, 999, 1_000, 1_001, 2_999, 3_000, 3_001, 31_999, 32_000];

/// Draws in eighths. A timeout with such a part of an odd number of milliseconds is rounded down to the same whole millisecond
/// here and by Californium. With other draws they may be one apart, and a backoff would multiply that.
const DRAWS: [u8; 4] = [0, 1, 2, 4];

/// Returns all scripts for a mechanism, one after the other. Each has its own header and is for a new endpoint.
pub(crate) fn all(mechanism: &Mechanism) -> String {
    let luck = Luck::new(1);
    let by_hand = BY_HAND.map(|table| by_hand(mechanism, table));
    let wanderings = [1, 2].map(|n| wandering(mechanism, luck.stream("wandering"), n));
    let shuffles = [1, 2].map(|n| shuffled(mechanism, luck.stream("shuffled"), n));
    [&by_hand[..], &wanderings, &shuffles, &[edges(mechanism)]].concat().concat()
}

fn by_hand(mechanism: &Mechanism, table: Table) -> String {
    let mut script = Script::new(mechanism);
    for &(idle_ms, elapsed, retransmits) in table {
        script.idle(idle_ms * MILLISECOND);
        script.answered(elapsed, retransmits);
    }
    script.text
}

/// Returns a script that an endpoint might produce: timers fire when they are due, and the round-trip time drifts.
fn wandering(mechanism: &Mechanism, stream: Stream, seed: u64) -> String {
    let mut script = Script::new(mechanism);
    for n in 0..300 {
        let below = |bound, purpose| stream.below(bound, seed, n, purpose);
        let place = round_trip(|bound, purpose| stream.below(bound, seed, n / 20, 10 + purpose));
        script.draw = DRAWS[below(4, 4) as usize];
        script.idle(idle(script.rto(), below));
        let elapsed = place / 2 + below(place, 2);
        match below(20, 3) {
            0 => script.lived(u64::MAX, Outcome::GivenUp),
            1 => script.lived(elapsed, Outcome::Reset),
            _ => script.lived(elapsed.min(30 * SECOND), ANSWER),
        }
    }
    script.text
}

/// Returns a script whose round-trip times and retransmissions are independent.
fn shuffled(mechanism: &Mechanism, stream: Stream, seed: u64) -> String {
    let mut script = Script::new(mechanism);
    for n in 0..300 {
        let below = |bound, purpose| stream.below(bound, seed, n, purpose);
        script.draw = DRAWS[below(4, 4) as usize];
        script.idle(idle(script.rto(), below));
        script.answered(round_trip(|bound, purpose| below(bound, 10 + purpose)), below(5, 3) as u8);
    }
    script.text
}

/// Returns a script that brings the RTO near every edge by strong samples, and idles for the time of ageing. Then it gives an
/// exchange up after all its timeouts, and makes the first timeout of another.
fn edges(mechanism: &Mechanism) -> String {
    let mut script = Script::new(mechanism);
    for edge in EDGES {
        for off in [-1, 0, 1] {
            script.steer(edge);
            let rto = script.rto() / MILLISECOND;
            let patience = if rto < 1_000 { 16 * rto } else { 4 * rto };
            script.idle(patience.saturating_add_signed(off) * MILLISECOND);
            script.lived(u64::MAX, Outcome::GivenUp);
            script.answered(rto * MILLISECOND / 2, 1);
        }
    }
    script.text
}

/// Returns a time from 5 ms to 30 s. Every octave is equally likely, and half of the times are whole milliseconds.
fn round_trip(below: impl Fn(u64, u64) -> u64) -> u64 {
    let octave = (5 * MILLISECOND) << below(13, 0);
    let rtt = (octave + below(octave, 1)).min(30 * SECOND);
    if below(2, 2) == 0 { rtt } else { rtt / MILLISECOND * MILLISECOND }
}

/// Returns an idle time: usually next to none, sometimes a part of the time in which an RTO ages, and rarely more.
fn idle(rto: u64, below: impl Fn(u64, u64) -> u64) -> u64 {
    match below(10, 0) {
        0 => below(LONGEST_IDLE, 1),
        1 | 2 => below(20 * rto, 1),
        _ => below(50 * MILLISECOND, 1),
    }
}

/// An acknowledgement; the script finds its sample.
const ANSWER: Outcome = Outcome::Acked(Sample::unmarked(Duration::ZERO, Duration::ZERO, 0));

struct Script<'a> {
    mechanism: &'a Mechanism,
    state: State,
    /// Microseconds.
    now: u64,
    /// The draw of the exchanges to come, in eighths; see [`DRAWS`].
    draw: u8,
    text: String,
}

/// The exchange under way.
struct Open {
    exchange: Exchange,
    start: u64,
    last: u64,
    retransmits: u8,
}

impl<'a> Script<'a> {
    fn new(mechanism: &'a Mechanism) -> Self {
        Self {
            mechanism,
            state: mechanism.state(),
            now: 0,
            draw: 0,
            text: "at_ms,event,draw,answered\n".to_owned(),
        }
    }

    /// Microseconds.
    fn rto(&self) -> u64 {
        self.mechanism.gauges(&self.state).rto.as_micros()
    }

    fn idle(&mut self, span: u64) {
        self.now += span.min(LONGEST_IDLE);
    }

    /// Plays an exchange that is answered `elapsed` after its start, with its retransmissions spread evenly over that time.
    fn answered(&mut self, elapsed: u64, retransmits: u8) {
        let (mut open, _) = self.start();
        for n in 1..=u64::from(retransmits) {
            self.now = open.start + elapsed * n / (u64::from(retransmits) + 1);
            self.timeout(&mut open);
        }
        self.now = open.start + elapsed;
        self.end(&open, ANSWER);
    }

    /// Plays an exchange that ends `elapsed` after its start with `outcome`, unless its last timeout passes before.
    fn lived(&mut self, elapsed: u64, outcome: Outcome) {
        let (mut open, mut timeout) = self.start();
        let end = open.start.saturating_add(elapsed);
        loop {
            let deadline = self.now + timeout.as_micros();
            self.now = end.min(deadline);
            if end <= deadline {
                return self.end(&open, outcome);
            }
            if open.retransmits == MAX_RETRANSMIT {
                return self.end(&open, Outcome::GivenUp);
            }
            timeout = self.timeout(&mut open);
        }
    }

    /// Brings the RTO as near to `edge` milliseconds as a few strong samples can.
    fn steer(&mut self, edge: u64) {
        for _ in 0..8 {
            let distance = |rtt: u64| {
                let (mut state, rtt) = (self.state, Duration::from_millis(rtt));
                let (exchange, _) = self.mechanism.on_start(&mut state, self.cue());
                let cue = Cue { now: self.cue().now + rtt, ..self.cue() };
                let answer = Outcome::Acked(Sample::unmarked(rtt, rtt, 0));
                self.mechanism.on_end(&mut state, exchange, answer, cue);
                self.mechanism.gauges(&state).rto.as_micros().abs_diff(edge * MILLISECOND)
            };
            let tried = (1..=30_000).map(|rtt| (distance(rtt), rtt));
            let (distance, rtt) = tried.min().expect("there are 30,000");
            self.answered(rtt * MILLISECOND, 0);
            if distance < MILLISECOND {
                return;
            }
        }
    }

    fn cue(&self) -> Cue {
        let draw = Draw::from_bits(u32::from(self.draw) << 29);
        Cue { now: Instant::from_micros(self.now), draw, outstanding: 1 }
    }

    fn write(&mut self, event: &str) {
        let (ms, us) = (self.now / MILLISECOND, self.now % MILLISECOND);
        let _ = writeln!(self.text, "{ms}.{us:03},{event},{},", f64::from(self.draw) / 8.0);
    }

    fn start(&mut self) -> (Open, Duration) {
        self.write("start");
        let cue = self.cue();
        let (exchange, timeout) = self.mechanism.on_start(&mut self.state, cue);
        (Open { exchange, start: self.now, last: self.now, retransmits: 0 }, timeout)
    }

    fn timeout(&mut self, open: &mut Open) -> Duration {
        self.write("timeout");
        open.last = self.now;
        open.retransmits += 1;
        let cue = self.cue();
        self.mechanism.on_retransmit(&mut self.state, &mut open.exchange, cue)
    }

    fn end(&mut self, open: &Open, outcome: Outcome) {
        let since = |then| Duration::from_micros(self.now - then);
        let (event, outcome) = match outcome {
            Outcome::Acked(_) => {
                let sample = Sample::unmarked(since(open.start), since(open.last), open.retransmits);
                ("ack", Outcome::Acked(sample))
            }
            Outcome::GivenUp => ("giveup", outcome),
            Outcome::Reset | Outcome::Cancelled => ("reset", Outcome::Reset),
        };
        self.write(event);
        let cue = self.cue();
        self.mechanism.on_end(&mut self.state, open.exchange, outcome, cue);
    }
}
