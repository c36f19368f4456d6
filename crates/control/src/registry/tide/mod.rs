//! `tide`: a window that follows the queue, and treats a loss as congestion only if a queue is measured at the same time.
//!
//! **Source.** Coapace; docs/bulk.md describes and measures it. The target, the velocity and the idea of two modes come from
//! Copa (Arun and Balakrishnan, NSDI 2018). The ebb is akin to the slowdowns of LEDBAT++ and to the probes of BBR.
//!
//! **Idea.** A flow aims to have `target` datagrams of its own in the queue of the bottleneck. The delay of that queue
//! is the difference between the standing and the least round-trip time. Below this target its window rises, and above
//! it falls. If the queue was not empty for some round trips, the window *ebbs*: for a round trip it is smaller. If the
//! queue empties then, it was filled by this flow, or by others with `tide`, which ebb at the same time. If the queue
//! does not empty, flows of another kind fill it. The flow then *competes* like TCP: it takes back the rate that it
//! had, grows by one datagram a round trip, and falls by a share at a loss.
//!
//! **Losses.** An exchange is lost if another that departed SRTT/8 later was answered. Losses with a long queue and
//! with a short queue are counted separately. They are congestion if they come more than twice as often with a long
//! queue as with a short one, or if more than five in eight exchanges are lost. For some round trips after congestion
//! the window grows by one datagram in each, because a flow that refills the link faster than TCP would fill a short
//! buffer alone.
//!
//! **Silence.** The first timeout in a round trip without a sample leaves the RTO as it is. Each later one makes it
//! grow by half, until there is a sample, or an answer comes after a retransmission within the usual time. After two
//! such timeouts without an answer between them, the window is one datagram.
//!
//! **Unsafe?** Timeouts grow by half, not twofold, like with `ebb`. If they doubled and a third of all exchanges was
//! lost, the wait for the last block of a body would be longer than the time of all others. RFC 8085 §3.1.1 asks for an
//! exponential backoff and names no base.

mod steering;
#[cfg(test)]
mod tests;

use crate::estimator::{Estimator, MIN_RTO};
use crate::parameters::{Switch, parameters};
use core::hint::black_box;

use crate::{
    Controller, Cue, Duration, Entry, Gauges, Instant, Limits, Marking, Mechanism, Notes, Origin, Outcome,
    Ratio, division,
};

parameters! {
    /// A window that follows the queue, and treats a loss as congestion only if a queue is measured at the same time.
    pub struct Tide {
        /// Exchanges that may be outstanding at first, RFC 6928 §2. Counts as 1 if it is 0.
        initial_window: u8 = 10,
        /// Datagrams that a flow aims to keep in the queue of the bottleneck: 1/δ of Copa. Counts as 1 if it is 0.
        target: u8 = 2,
        /// Least share by which the window shrinks in a round trip while the flow has more than `target` datagrams in
        /// the queue. A large window falls faster than a small one, so flows become equal.
        fall: Ratio = Ratio::new(1, 10),
        /// Number of round trips without an empty queue after which the window ebbs, 1 to 100.
        ebb_after: u8 = 3,
        /// Share of the window that an ebb leaves, after the part for the queue is taken away.
        ebb: Ratio = Ratio::new(3, 4),
        /// Share of the longest queue that may be left after an ebb. If more is left, other flows fill the queue.
        ebbed: Ratio = Ratio::new(1, 2),
        /// Whether the flow competes with other flows that fill the queue.
        compete: Switch = Switch::On,
        /// Number of round trips of competition after which the window ebbs again, 100 at most.
        compete_for: u8 = 18,
        /// Share of the window that is left after a round trip with congestion.
        loss_leaves: Ratio = Ratio::new(3, 4),
        /// Number of round trips after congestion in which the window grows by only one datagram, 100 at most.
        wary_for: u8 = 32,
        /// Share of the window that is left after a round trip with congestion during competition. TCP NewReno has 1/2.
        competing_loss_leaves: Ratio = Ratio::new(9, 16),
        /// RTO before the first sample, the ACK_TIMEOUT of RFC 7252 §4.8.
        initial_rto: Duration = Duration::from_secs(2),
        /// Lower bound of the RTO.
        min_rto: Duration = MIN_RTO,
        /// Upper bound of every timeout; RFC 8085 §3.1.1 asks for 60 s at least. A longer value counts as 268 s.
        max_rto: Duration = Duration::from_secs(60),
        /// Greatest factor of the dither of a timeout.
        dither: Ratio = Ratio::new(5, 4),
        /// An exchange counts as lost if another that departed later by this share of SRTT, or more, was answered.
        overtaken: Ratio = Ratio::new(1, 8),
        /// Lower bound of the time that `overtaken` times SRTT gives.
        min_overtaken: Duration = Duration::from_millis(1),
        /// How transmissions carry their ordinal. Without a marking, retransmitted exchanges are not samples.
        marking: Marking = Marking::None,
    }
    presets {}
}

/// State of [`Tide`] for one destination. Round-trip times are in microseconds, windows in units of 1/256 datagram.
#[derive(Clone, Copy, Debug)]
#[repr(Rust, packed)] // states have an alignment of 1
pub struct TideState {
    estimator: Estimator,
    /// The smallest round-trip time of this epoch and the epoch before.
    least: u32,
    /// The smallest round-trip time of this epoch.
    next_least: u32,
    /// The start of this epoch, the period of the least round-trip time, in units of 2¹⁶ µs modulo 2¹⁶ (71 minutes).
    epoch: u16,
    /// The smallest round-trip times of the current and of the previous half of a round trip.
    standing: [u32; 2],
    /// The start of the current half of a round trip, in microseconds modulo 2³².
    mark: u32,
    window: u32,
    /// The window at the start of this round trip. After an ebb: the window before the ebb. In competition: the window
    /// that the flow had before the other flows came.
    marked: u32,
    /// The longest recent queueing delay, in microseconds. It fades by 1/16 in each round trip.
    longest: u32,
    /// The shares of exchanges lost while the queue was short and while it was long, in units of 2⁻¹⁶.
    loss: [u16; 2],
    /// The largest recent window with which the queue was empty, in units of 1/16 datagram.
    calm: u16,
    /// The earliest departure of the next exchange, in microseconds.
    next: u64,
    /// The number of round trips since the queue was empty, which decides the [`TidePhase`]. Congestion, silence or the
    /// end of a competition sets it back.
    full: u8,
    /// The number of round trips, silent ones included, plus the number of reductions of the window, modulo 256.
    round: u8,
    /// The value of `round` at the last reduction of the window. The loss of an exchange that departed earlier does not
    /// reduce the window again.
    cut: u8,
    /// Four flags in the low bits, and above them the number of consecutive round trips in which the window moved in
    /// the same direction.
    trend: u8,
    /// The number of silent round trips (with a timeout, but without a sample) since the last sample, and the flag
    /// [`ANSWERED`].
    silence: u8,
}

/// State of [`Tide`] for one exchange.
#[derive(Clone, Copy, Debug)]
pub struct TideExchange {
    /// The time when the timeout of the exchange's last transmission expires, in microseconds modulo 2³².
    deadline: [u8; 4],
    /// The value of [`TideState::round`] when the exchange's last transmission departed.
    round: u8,
}

/// How a flow reacts to a queue that does not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TidePhase {
    /// The flow keeps `target` datagrams in the queue.
    Calm,
    /// The flow shrinks its window for a round trip, to let the queue empty.
    Ebb,
    /// The flow waits for a round trip, to see whether the queue has emptied.
    Flood,
    /// The flow fills the queue, because other flows do.
    Competition,
}

/// A flag of [`TideState::trend`]: the window grew in the last round trip.
const UP: u8 = 1;
/// A flag of [`TideState::trend`]: the flow is in slow start.
const SLOW: u8 = 2;
/// A flag of [`TideState::trend`]: the queue is long.
const LONG: u8 = 4;
/// A flag of [`TideState::trend`]: the second half of a round trip has begun.
const HALF: u8 = 8;
/// The bits of the flags in [`TideState::trend`].
const FLAGS: u8 = 15;

/// A flag of [`TideState::silence`]: an exchange was answered since the last silent round trip.
const ANSWERED: u8 = 128;

/// The largest difference between [`TideState::round`] and [`TideState::cut`]. A longer time since the last reduction
/// counts as this.
const LONG_AGO: u8 = 100;

/// One datagram in the unit of windows, 1/256 datagram.
const ONE: u32 = 256;
/// The smallest window, except after two timeouts without an answer, which leave a window of one.
const LEAST: u32 = 2 * ONE;
/// The largest window, 1024 datagrams: an endpoint does not track more blocks after the first missing block.
const MOST: u32 = 1024 * ONE;

impl Controller for Tide {
    type State = TideState;
    type Exchange = TideExchange;

    fn state(&self) -> TideState {
        // See `Fine::stored_zero`.
        let zero = black_box(0);
        TideState {
            estimator: Estimator::new(),
            least: u32::MAX,
            next_least: u32::MAX,
            epoch: 0,
            standing: [u32::MAX; 2],
            mark: zero,
            window: u32::from(self.initial_window.max(1)) * ONE,
            marked: zero,
            longest: zero,
            loss: [zero as u16; 2],
            calm: zero as u16,
            next: zero.into(),
            full: 0,
            round: 0,
            // As if the last reduction was long ago, so the flow is not wary.
            cut: 0_u8.wrapping_sub(LONG_AGO),
            trend: UP | SLOW,
            silence: 0,
        }
    }

    fn on_start(&self, state: &mut TideState, cue: Cue) -> (TideExchange, Duration) {
        self.depart(state, cue)
    }

    fn on_retransmit(&self, state: &mut TideState, exchange: &mut TideExchange, cue: Cue) -> Duration {
        // This comes first, because the next timeout depends on the silence that it counts.
        self.lose(state, *exchange, cue.now);
        let (departed, timeout) = self.depart(state, cue);
        *exchange = departed;
        timeout
    }

    fn on_end(&self, state: &mut TideState, exchange: TideExchange, outcome: Outcome, cue: Cue) {
        let sample = match outcome {
            Outcome::Acked(sample) => sample,
            Outcome::GivenUp => return self.lose(state, exchange, cue.now),
            Outcome::Reset | Outcome::Cancelled => return,
        };
        // Any answer shows that the peer is there, even without a sample.
        state.silence |= ANSWERED;
        state.count_answer();
        // The only retransmission cannot have been answered so soon, so the first transmission was.
        let is_spurious = state.estimator.is_measured()
            && sample.retransmits == 1
            && sample.answered.is_none()
            && micros(sample.since_last) < state.least;
        if let Some(rtt) = if is_spurious { Some(sample.since_first) } else { sample.unambiguous() } {
            self.learn(state, rtt, cue);
        } else {
            self.end_backoff(state, sample.since_last);
        }
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        self.max_rto.max(self.min_rto).max(self.initial_rto).times(retransmits.into())
    }

    fn limits(&self, state: &TideState) -> Limits {
        let srtt = state.estimator.srtt().unwrap_or(self.initial_rto.into());
        let gauges = state.estimator.gauges(self.rto(state));
        Limits {
            nstart: Some((state.window / ONE) as u16),
            next_confirmable: Instant::from_micros(state.next),
            overtaken: Some(srtt.by(self.overtaken).at_least(self.min_overtaken).into()),
            ..Limits::with_gauges(gauges, self.marking)
        }
    }

    /// Reports the window divided by the round-trip time as the rate.
    fn gauges(&self, state: &TideState) -> Gauges {
        const UNITS_IN_1000_S: u64 = 1_000_000_000 / ONE as u64;
        let rate = division::by(u64::from(state.window) * UNITS_IN_1000_S, state.srtt().into());
        let rate_per_ks = state.estimator.is_measured().then(|| u32::try_from(rate).unwrap_or(u32::MAX));
        Gauges { rate_per_ks, ..state.estimator.gauges(self.rto(state)) }
    }
}

impl TideState {
    fn is(&self, flag: u8) -> bool {
        self.trend & flag != 0
    }

    fn set(&mut self, flag: u8, on: bool) {
        self.trend = if on { self.trend | flag } else { self.trend & !flag };
    }

    /// Returns the number of consecutive round trips in which the window moved in the same direction, at most 15.
    fn steady(&self) -> u8 {
        self.trend >> 4
    }

    fn set_steady(&mut self, rounds: u8) {
        self.trend = self.trend & FLAGS | rounds.min(15) << 4;
    }

    /// Returns the number of silent round trips since the last sample.
    fn silent(&self) -> u8 {
        self.silence & !ANSWERED
    }

    /// Returns SRTT in microseconds; 0 before the first sample.
    fn srtt(&self) -> u32 {
        self.estimator.srtt().map_or(0, |srtt| micros(srtt.into()))
    }

    /// Returns the standing round-trip time, which includes the delay of the queue, in microseconds: the smallest of
    /// the current and the previous half of a round trip.
    fn standing(&self) -> u32 {
        let [this, before] = self.standing;
        this.min(before)
    }

    /// Returns the delay of the standing queue, in microseconds.
    fn queue(&self) -> u32 {
        self.standing().saturating_sub(self.least)
    }

    fn resize(&mut self, window: u32) {
        self.window = window.clamp(LEAST, MOST);
    }
}

/// Returns a duration in microseconds, at least 1 µs and at most the 268 s that [`Fine`] can hold.
fn micros(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(u32::MAX).clamp(1, 1 << 28)
}

/// The registry entry `tide`.
pub(crate) const TIDE: Entry = Entry {
    name: "tide",
    summary: "a window that keeps the queue short, ignores errors of links, and competes with flows that fill the queue",
    source: "Coapace, docs/bulk.md",
    origin: Origin::Coapace,
    notes: Notes {
        status: "This project's own, after Copa (Arun and Balakrishnan, NSDI 2018). No other source, and no standing anywhere.",
        use_when: "A body of many blocks has to cross a link that loses packets, or one that others need meanwhile.",
        avoid_when: "The round-trip time varies by more than itself for other reasons than a queue: the window then stays small.",
        hazards: "Beside TCP NewReno it gets 0.5 to 1.6 times as much where the buffer takes 8 to 60 \
            datagrams, twice as much where a buffer of 8 is short against the bandwidth-delay product, and 0.2 to \
            0.7 before deeper ones. It cannot see a queue of one or two datagrams, and keeps \
            sending there until more than half is lost.",
    },
    mechanism: Mechanism::Tide(Tide::DEFAULT),
};

// With the tag of `State` this makes 64 bytes.
const _: () = assert!(size_of::<TideState>() <= 63);
