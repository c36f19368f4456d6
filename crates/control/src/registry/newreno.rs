//! `newreno`: the congestion control of TCP, which counts datagrams here. Other bulk mechanisms are compared with it.
//!
//! **Source.** RFC 5681 and RFC 6582 for the window, RFC 6298 for the timeout, RFC 6928 for the initial window.
//!
//! **Idea.** The window is the number of exchanges that may be outstanding. It doubles in each round trip up to a threshold
//! (slow start), and grows by one a round trip above it. A round trip in which exchanges were lost halves it once. A
//! timeout sets it to one.
//!
//! **Differences from the source**
//! * A datagram counts as one, whatever its size. Only exchanges that are acknowledged one by one grow the window, so neither
//!   partial acknowledgements nor an inflated window are needed (RFC 6582 §3.2): the loss of each exchange is known.
//! * An exchange is lost if one that departed SRTT/8 later was answered, and not after three duplicate
//!   acknowledgements. RFC 8985 §6.2 waits for a quarter of the least round-trip time. With a window of 24 an eighth of
//!   a round trip is three datagrams. It tolerates the same reordering as three duplicates, and finds a loss an eighth
//!   of a round trip earlier.
//! * Each exchange has a timer of its own. TCP has one timer for all segments, and each acknowledgement restarts it
//!   (RFC 6298 §5.3). It expires a round-trip time and an RTO after a lost segment departed. Each timer here expires
//!   after the same time.
//! * A lost exchange departs again as soon as the endpoint lets it: in coapace-proto it waits for a place in the
//!   window.
//! * The window does not grow while less than half of it is used, the same limit as in RFC 7661.
//! * The initial RTO is 2 s, the ACK_TIMEOUT of CoAP. RFC 6298 §2.1 has 1 s.
//!
//! **Unsafe as published**
//! * Departures are neither paced nor dithered: a whole window may depart at once, and clients that timed out together
//!   will time out together again.

use crate::estimator::{Estimator, GRANULARITY, Learning};
use crate::fine::Fine;
use crate::karn::KeptBackoff;
use crate::parameters::parameters;
use crate::{
    Controller, Cue, Duration, Entry, Gauges, Instant, Limits, Marking, Mechanism, Notes, Origin, Outcome,
    Ratio,
};

parameters! {
    /// The congestion control of TCP, with a window in datagrams.
    pub struct NewReno {
        /// Exchanges that may be outstanding at the start, RFC 6928 §2. RFC 5681 §3.1 has 2 to 4.
        initial_window: u8 = 10,
        /// RTO before the first sample, RFC 6298 §2.1.
        initial_rto: Duration = Duration::from_secs(2),
        /// Lower bound of the RTO, RFC 6298 §2.4.
        min_rto: Duration = Duration::from_secs(1),
        /// Upper bound of every timeout, RFC 6298 §2.5: 60 s at least. A longer value counts as 268 s.
        max_rto: Duration = Duration::from_secs(60),
        /// An exchange counts as lost if another that departed later by this share of SRTT, or more, was answered.
        overtaken: Ratio = Ratio::new(1, 8),
        /// Lower bound of the time that `overtaken` times SRTT gives.
        min_overtaken: Duration = Duration::from_millis(1),
        /// G, the granularity of the clock and the lower bound of 4·RTTVAR, RFC 6298 §2.3.
        granularity: Duration = GRANULARITY,
    }
    presets {
        /// The initial window and the initial RTO before RFC 6928: four datagrams (RFC 5681 §3.1) and 1 s (RFC 6298 §2.1).
        "rfc5681" => |_| Self {
            initial_window: 4,
            initial_rto: Duration::from_secs(1),
            ..Self::DEFAULT
        },
    }
}

/// State of [`NewReno`] for one destination.
#[derive(Clone, Copy, Debug)]
pub struct NewRenoState {
    estimator: Estimator,
    backoff: KeptBackoff,
    window: DatagramCount,
    /// The window at which slow start ends.
    threshold: DatagramCount,
    /// The last time at which a loss reduced the window, in microseconds. The loss of a transmission that departed
    /// before this time does not reduce the window again.
    reduced: [u8; 8],
}

/// State of [`NewReno`] for one exchange.
#[derive(Clone, Copy, Debug)]
pub struct NewRenoExchange {
    timeout: Fine,
    /// The departure of the exchange's last transmission, in microseconds.
    departed: [u8; 8],
}

/// A number of datagrams below 2¹⁶, in units of 2⁻¹⁶ datagram.
#[derive(Clone, Copy, Debug)]
struct DatagramCount([u8; 4]);

impl DatagramCount {
    /// The largest window, 1024 datagrams: an endpoint does not track more blocks after the first missing block.
    const MOST: u32 = 1024 << 16;

    fn of(datagrams: u16) -> Self {
        Self::bounded(u32::from(datagrams) << 16)
    }

    fn bounded(units: u32) -> Self {
        Self(units.clamp(1 << 16, Self::MOST).to_le_bytes())
    }

    fn units(self) -> u32 {
        u32::from_le_bytes(self.0)
    }

    fn datagrams(self) -> u16 {
        (self.units() >> 16) as u16
    }
}

impl Controller for NewReno {
    type State = NewRenoState;
    type Exchange = NewRenoExchange;

    fn state(&self) -> NewRenoState {
        NewRenoState {
            estimator: Estimator::new(),
            backoff: KeptBackoff::NONE,
            window: DatagramCount::of(self.initial_window.into()),
            // The first threshold should be arbitrarily high (RFC 5681 §3.1).
            threshold: DatagramCount(DatagramCount::MOST.to_le_bytes()),
            reduced: [0; 8],
        }
    }

    fn on_start(&self, state: &mut NewRenoState, cue: Cue) -> (NewRenoExchange, Duration) {
        let timeout = self.timeout(state);
        (NewRenoExchange { timeout, departed: micros(cue.now) }, timeout.into())
    }

    fn on_retransmit(&self, state: &mut NewRenoState, exchange: &mut NewRenoExchange, cue: Cue) -> Duration {
        exchange.timeout = if is_overtaken(exchange, cue.now) {
            // A later answer has shown this loss, not a timeout, so nothing is backed off.
            lose(state, exchange, cue, false);
            self.timeout(state)
        } else {
            lose(state, exchange, cue, true);
            // The timeout doubles (RFC 6298 §5.5), and is kept until the next sample (Karn).
            let timeout = exchange.timeout.twice().min(self.max_rto.into());
            state.backoff.keep(timeout);
            timeout
        };
        exchange.departed = micros(cue.now);
        exchange.timeout.into()
    }

    fn on_end(&self, state: &mut NewRenoState, exchange: NewRenoExchange, outcome: Outcome, cue: Cue) {
        match outcome {
            Outcome::Acked(sample) => {
                if let Some(rtt) = sample.unambiguous() {
                    state.estimator.update(rtt, Learning::RFC6298);
                    state.backoff = KeptBackoff::NONE;
                }
                // Slow start and congestion avoidance wait until a loss is repaired (RFC 6582 §3.2).
                if exchange.departed() >= state.reduced() {
                    grow(state, cue.outstanding);
                }
            }
            Outcome::GivenUp => lose(state, &exchange, cue, !is_overtaken(&exchange, cue.now)),
            Outcome::Reset | Outcome::Cancelled => {}
        }
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        self.max_rto.max(self.min_rto).max(self.initial_rto).times(retransmits.into())
    }

    fn limits(&self, state: &NewRenoState) -> Limits {
        let srtt = state.estimator.srtt().unwrap_or(self.initial_rto.into());
        Limits {
            nstart: Some(state.window.datagrams()),
            overtaken: Some(srtt.by(self.overtaken).at_least(self.min_overtaken).into()),
            ..Limits::with_gauges(self.gauges(state), Marking::None)
        }
    }

    #[inline(always)]
    fn gauges(&self, state: &NewRenoState) -> Gauges {
        state.estimator.gauges(self.rto(state))
    }
}

impl NewReno {
    /// Returns the RTO, or the kept backoff if there is one.
    fn rto(&self, state: &NewRenoState) -> Fine {
        state.backoff.kept().unwrap_or_else(|| {
            let rto = state.estimator.rto(4, self.granularity).unwrap_or(self.initial_rto.into());
            rto.at_least(self.min_rto).min(self.max_rto.into())
        })
    }
}

impl NewReno {
    /// Returns the RTO plus a round-trip time. TCP restarts its timer with each acknowledgement (RFC 6298 §5.3). The
    /// last acknowledgement of earlier data arrives a round-trip time after a datagram departs, and an RTO later the
    /// timer expires.
    fn timeout(&self, state: &NewRenoState) -> Fine {
        let rto = self.rto(state);
        state.estimator.srtt().map_or(rto, |srtt| (rto + srtt).min(self.max_rto.into()))
    }
}

impl NewRenoState {
    fn reduced(&self) -> Instant {
        Instant::from_micros(u64::from_le_bytes(self.reduced))
    }
}

impl NewRenoExchange {
    fn departed(&self) -> Instant {
        Instant::from_micros(u64::from_le_bytes(self.departed))
    }
}

fn micros(moment: Instant) -> [u8; 8] {
    moment.as_micros().to_le_bytes()
}

/// Returns whether the exchange is retransmitted before its timeout has passed, because a later transmission was
/// answered.
fn is_overtaken(exchange: &NewRenoExchange, now: Instant) -> bool {
    now.since(exchange.departed()) < exchange.timeout.into()
}

/// Grows the window by one below the threshold, and by the reciprocal of the window above it (RFC 5681 §3.1). Does
/// nothing if less than half of the window is used.
fn grow(state: &mut NewRenoState, outstanding: u16) {
    let units = state.window.units();
    // An application that sends less has not tested the window (RFC 7661).
    if u32::from(outstanding) << 1 < units >> 16 {
        return;
    }
    // A window is never zero. The compiler does not know that, and would link a panic.
    let step = if units < state.threshold.units() { 1 << 16 } else { u32::MAX / units.max(1) };
    state.window = DatagramCount::bounded(units.saturating_add(step));
}

/// Reduces the window after a loss. Does nothing if the lost transmission departed before the last reduction (RFC 5681
/// §3.1 and §3.2).
fn lose(state: &mut NewRenoState, exchange: &NewRenoExchange, cue: Cue, is_timeout: bool) {
    // One reduction answers all losses of a round trip (RFC 6582 §3.2).
    if exchange.departed() < state.reduced() {
        return;
    }
    state.reduced = micros(cue.now);
    // Half of the datagrams in flight, and not of the window that was allowed; two at least (RFC 5681 §3.1).
    let used = u32::from(cue.outstanding).saturating_mul(1 << 16).min(state.window.units());
    state.threshold = DatagramCount::bounded((used / 2).max(2 << 16));
    // A timeout leaves a window of one (RFC 5681 §3.1), any other loss the threshold (§3.2).
    state.window = if is_timeout { DatagramCount::of(1) } else { state.threshold };
}

/// The registry entry `newreno`.
pub(crate) const NEWRENO: Entry = Entry {
    name: "newreno",
    summary: "the window of TCP in datagrams: slow start, congestion avoidance, halved by a round trip with losses",
    source: "RFC 5681, RFC 6582, RFC 6298, RFC 6928",
    origin: Origin::Published,
    notes: Notes {
        status: "Standards for TCP. RFC 8085 §3.1.2 asks bulk transfers over UDP for such a control, or a gentler one.",
        use_when: "A transfer has to take what a TCP flow would take, for comparison or because an operator asks for it.",
        avoid_when: "The path loses packets for other reasons than congestion: every loss halves the window.",
        hazards: "It fills the buffer of a bottleneck until packets are dropped, and delays everybody else there. Nothing is \
            paced, so a window may depart at once.",
    },
    mechanism: Mechanism::NewReno(NewReno::DEFAULT),
};

const _: () = assert!(size_of::<NewRenoState>() <= 31);

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::*;
    use crate::testing::{acked, at};
    use crate::{Draw, Sample};

    const RENO: NewReno = NewReno::DEFAULT;

    fn cue(ms: u64, outstanding: u16) -> Cue {
        Cue { outstanding, ..at(ms) }
    }

    fn window(state: &NewRenoState) -> u16 {
        RENO.limits(state).nstart.unwrap()
    }

    /// Sends a window at `ms`, and answers it 100 ms later.
    fn round(state: &mut NewRenoState, ms: u64) {
        let full = window(state);
        let open: Vec<_> = (0..full).map(|n| RENO.on_start(state, cue(ms, n + 1)).0).collect();
        for exchange in open {
            RENO.on_end(state, exchange, acked(100, 0), cue(ms + 100, full));
        }
    }

    #[test]
    fn newreno_doubles_its_window_each_round_trip_until_a_loss_and_then_adds_one() {
        let state = &mut RENO.state();
        assert_eq!(window(state), 10);
        round(state, 0);
        round(state, 1_000);
        assert_eq!(window(state), 40);
        let (mut lost, _) = RENO.on_start(state, cue(2_000, 40));
        RENO.on_retransmit(state, &mut lost, cue(2_150, 40));
        assert_eq!(window(state), 20);
        RENO.on_end(state, lost, acked(250, 1), cue(2_250, 20));
        round(state, 3_000);
        round(state, 4_000);
        assert!((21..=22).contains(&window(state)), "{}", window(state));
    }

    #[test]
    fn several_losses_in_one_round_trip_halve_the_window_of_newreno_once() {
        let state = &mut RENO.state();
        round(state, 0);
        let mut open: Vec<_> = (0..20).map(|n| RENO.on_start(state, cue(1_000, n + 1)).0).collect();
        for exchange in &mut open[..5] {
            RENO.on_retransmit(state, exchange, cue(1_120, 20));
        }
        assert_eq!(window(state), 10);
        RENO.on_end(state, open[10], acked(150, 0), cue(1_150, 20));
        assert_eq!(window(state), 10, "it departed before the loss was known");
        RENO.on_retransmit(state, &mut open[0], cue(1_300, 20));
        assert_eq!(window(state), 5, "a retransmission was lost");
    }

    #[test]
    fn a_timeout_sets_the_window_of_newreno_to_one_and_doubles_the_rto_until_the_next_sample() {
        let state = &mut RENO.state();
        round(state, 0);
        let (mut lost, timeout) = RENO.on_start(state, cue(1_000, 20));
        assert_eq!(timeout, Duration::from_millis(1_100), "the RTO and a round-trip time");
        let doubled = RENO.on_retransmit(state, &mut lost, cue(2_100, 20));
        assert_eq!(doubled, Duration::from_millis(2_200));
        assert_eq!((window(state), RENO.gauges(state).rto), (1, doubled));
        RENO.on_end(state, lost, acked(1_200, 1), cue(2_200, 1));
        assert_eq!(RENO.gauges(state).rto, doubled, "an ambiguous answer is not a sample");
        round(state, 3_000);
        assert_eq!(RENO.gauges(state).rto, Duration::from_secs(1));
    }

    #[test]
    fn newreno_does_not_grow_an_unused_window() {
        let state = &mut RENO.state();
        for n in 0..50 {
            let (exchange, _) = RENO.on_start(state, cue(n * 1_000, 1));
            RENO.on_end(state, exchange, acked(100, 0), cue(n * 1_000 + 100, 1));
        }
        assert_eq!(window(state), 10);
    }

    #[test]
    fn newreno_waits_an_eighth_of_a_round_trip_before_it_treats_an_overtaken_exchange_as_lost() {
        let state = &mut RENO.state();
        round(state, 0);
        assert_eq!(RENO.limits(state).overtaken, Some(Duration::from_micros(12_500)));
        let state = &mut RENO.state();
        let (exchange, _) = RENO.on_start(state, at(0));
        let sample = Sample::unmarked(Duration::from_millis(2), Duration::from_millis(2), 0);
        RENO.on_end(state, exchange, Outcome::Acked(sample), Cue { draw: Draw::ZERO, ..at(2) });
        assert_eq!(RENO.limits(state).overtaken, Some(Duration::from_millis(1)));
    }
}
