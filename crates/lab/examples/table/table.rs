//! A mechanism that is a table: an action for each [cell](crate::sight) of the state of `ebb`.
//!
//! It shows how well a policy with this state could do. It is not for use: nothing keeps a table from flooding a path.

use std::fmt;

use coapace_control::{
    Controller, Cue, Duration, Entry, Gauges, Limits, Marking, Notes, Outcome, OwnMechanism, Packed, Ratio,
    Value, packed, parameters,
};

use crate::sight::{CELLS, Estimates, cell};

/// The factors of actions.
pub(crate) const FACTORS: [f64; 8] = [0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0];

/// The lower bound of every first timeout, in seconds, as with `ebb`.
const MIN_RTO_S: f64 = 0.05;

/// The lower bound of a first timeout where an action asks for it, and the RTO before the first sample, in seconds:
/// ACK_TIMEOUT (RFC 7252 §4.8).
pub(crate) const ACK_TIMEOUT_S: f64 = 2.0;

/// The upper bound of first timeouts, in seconds: EXCHANGE_LIFETIME (RFC 7252 §4.8.2).
const MAX_RTO_S: f64 = 247.0;

/// The upper bound of later timeouts where the first is below, in seconds (RFC 8085 §3.1.1).
const MAX_TIMEOUT_S: f64 = 60.0;

/// The greatest factor of the dither of an exchange.
const DITHER: Ratio = Ratio::new(5, 4);

/// The decisions of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The first timeout of an exchange, as a multiple of the RTO. The second half of the actions are the same factors, with
    /// [`ACK_TIMEOUT_S`] as lower bound. "Again" says that the last exchange had more than one retransmission.
    Start,
    /// The timeout of a retransmission, as a multiple of the one before. The factor below 1 is left out.
    Backoff,
    /// The end of an exchange that lost a transmission: its timeout is forgotten, or held by later exchanges. "Again" says that
    /// it had more than one retransmission.
    Hold,
}

impl Decision {
    /// Every decision.
    pub(crate) const ALL: [Self; 3] = [Self::Start, Self::Backoff, Self::Hold];

    /// Returns the number of actions.
    pub(crate) const fn actions(self) -> u8 {
        match self {
            Self::Start => 2 * FACTORS.len() as u8,
            Self::Backoff => FACTORS.len() as u8 - 1,
            Self::Hold => 2,
        }
    }
}

/// The numbers of the actions in all cells, 16 actions at most. Written, they are letters from `a` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row<const ACTIONS: u8>([u8; CELLS]);

impl<const ACTIONS: u8> Row<ACTIONS> {
    /// Reads letters that are known to be right.
    const fn of(letters: [u8; CELLS]) -> Self {
        let mut actions = letters;
        let mut cell = 0;
        while cell < CELLS {
            actions[cell] -= b'a';
            assert!(actions[cell] < ACTIONS);
            cell += 1;
        }
        Self(actions)
    }
}

/// Packs two actions a byte, for an own mechanism has room for 80 bytes of parameters.
impl<const ACTIONS: u8> Packed for Row<ACTIONS> {
    const BYTES: usize = CELLS / 2;

    fn pack(self, bytes: &mut [u8]) -> &mut [u8] {
        std::array::from_fn::<u8, { CELLS / 2 }, _>(|pair| self.0[2 * pair] | (self.0[2 * pair + 1] << 4))
            .pack(bytes)
    }

    fn unpack(bytes: &[u8]) -> (Self, &[u8]) {
        let (pairs, rest) = <[u8; CELLS / 2]>::unpack(bytes);
        let action = |cell: usize| ((pairs[cell / 2] >> (4 * (cell % 2))) & 15).min(ACTIONS - 1);
        (Self(std::array::from_fn(action)), rest)
    }
}

impl<const ACTIONS: u8> Value for Row<ACTIONS> {
    const KIND: &'static str = "32 letters, for the actions of the cells: see docs/search.md";

    fn parse(text: &str) -> Option<Self> {
        let letters: [u8; CELLS] = text.as_bytes().try_into().ok()?;
        letters.iter().all(|letter| (b'a'..b'a' + ACTIONS).contains(letter)).then(|| Self::of(letters))
    }
}

impl<const ACTIONS: u8> fmt::Display for Row<ACTIONS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|action| write!(f, "{}", char::from(b'a' + action)))
    }
}

parameters! {
    /// A table of actions, by default those of `ebb`.
    pub(crate) struct Table {
        /// The factor of the first timeout over the RTO, and its lower bound.
        start: Row<{ Decision::Start.actions() }> = Row::of(*b"bbbbbbbbbbbbbbbbjjjjjjjjjjjjjjjj"),
        /// The factor of a timeout over the one before.
        backoff: Row<{ Decision::Backoff.actions() }> = Row::of(*b"ededcccccccccccccccccccccccccccc"),
        /// Whether the timeout of a lossy exchange is held.
        hold: Row<{ Decision::Hold.actions() }> = Row::of(*b"bbbbaaaaaaaaaaaabbbbbbbbbbbbbbbb"),
    }
    presets {}
}

packed! {
    /// The state of a destination.
    pub(crate) struct TableState {
        estimates: Estimates,
        /// The timeout that later exchanges hold, in seconds; zero if there is none.
        held: f64,
        /// Whether the last exchange lost a transmission.
        was_lossy: bool,
        /// Whether it had more than one retransmission, too.
        was_very_lossy: bool,
    }
}

packed! {
    /// The state of an exchange.
    pub(crate) struct TableExchange {
        /// The timeout in force, in seconds.
        timeout: f64,
        /// Whether a retransmission has departed.
        backed_off: bool,
    }
}

impl Table {
    /// Returns the number of the action in each cell. It is below [`Decision::actions`].
    pub(crate) fn row(&mut self, decision: Decision) -> &mut [u8; CELLS] {
        match decision {
            Decision::Start => &mut self.start.0,
            Decision::Backoff => &mut self.backoff.0,
            Decision::Hold => &mut self.hold.0,
        }
    }

    /// Returns the table as it is named on the command line.
    pub(crate) fn label(&self) -> String {
        format!("{}:start={},backoff={},hold={}", Self::NAME, self.start, self.backoff, self.hold)
    }

    /// Returns the first timeout before dither, in seconds.
    fn first_timeout(&self, state: &TableState) -> f64 {
        let cell = cell(state.estimates.path(0.0), state.was_lossy, state.was_very_lossy);
        let action = usize::from(self.start.0[cell]);
        let rto = state.estimates.rto().unwrap_or(ACK_TIMEOUT_S);
        let least = if action < FACTORS.len() { MIN_RTO_S } else { ACK_TIMEOUT_S };
        (FACTORS[action % FACTORS.len()] * rto).max(least).max(state.held).min(MAX_RTO_S)
    }
}

impl Controller for Table {
    type State = TableState;
    type Exchange = TableExchange;

    fn state(&self) -> TableState {
        TableState { estimates: Estimates::NONE, held: 0.0, was_lossy: false, was_very_lossy: false }
    }

    fn on_start(&self, state: &mut TableState, cue: Cue) -> (TableExchange, Duration) {
        let timeout = cue.draw.dither(span(self.first_timeout(state)), DITHER).min(span(MAX_RTO_S));
        (TableExchange { timeout: seconds(timeout), backed_off: false }, timeout)
    }

    fn on_retransmit(&self, state: &mut TableState, exchange: &mut TableExchange, _: Cue) -> Duration {
        let is_again = std::mem::replace(&mut exchange.backed_off, true);
        let cell = cell(state.estimates.path(0.0), state.was_lossy, is_again);
        let factor = FACTORS[1 + usize::from(self.backoff.0[cell])];
        exchange.timeout = exchange.timeout.max((factor * exchange.timeout).min(MAX_TIMEOUT_S));
        span(exchange.timeout)
    }

    /// Learns like `ebb`. Only the table decides whether the timeout of a lossy exchange is held.
    fn on_end(&self, state: &mut TableState, exchange: TableExchange, outcome: Outcome, _: Cue) {
        let sample = match outcome {
            Outcome::Acked(sample) => sample,
            Outcome::GivenUp => {
                (state.held, state.was_lossy, state.was_very_lossy) = (exchange.timeout, true, true);
                return;
            }
            Outcome::Reset | Outcome::Cancelled => return,
        };
        let (rtt, was_needless) = match sample.answered {
            Some(answer) => (Some(answer.since), answer.ordinal < sample.retransmits),
            // An answer that follows the retransmission within the least round-trip time answers the first transmission.
            None if sample.retransmits == 1 && seconds(sample.since_last) < state.estimates.least => {
                (Some(sample.since_first), true)
            }
            None => (sample.unambiguous(), false),
        };
        if let Some(rtt) = rtt {
            state.estimates.learn(seconds(rtt));
        }
        let late = if rtt.is_some() { 0.0 } else { seconds(sample.since_last) };
        let is_lossy = sample.retransmits > 0 && !was_needless;
        let is_again = sample.retransmits > 1;
        let cell = cell(state.estimates.path(late), state.was_lossy, is_again);
        let is_held = is_lossy && self.hold.0[cell] == 1;
        state.held = if is_held { exchange.timeout } else { 0.0 };
        (state.was_lossy, state.was_very_lossy) = (is_lossy, is_lossy && is_again);
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        span(MAX_RTO_S).times(retransmits.into())
    }

    fn limits(&self, state: &TableState) -> Limits {
        Limits::with_gauges(self.gauges(state), Marking::TokenOnRetransmit)
    }

    fn gauges(&self, state: &TableState) -> Gauges {
        let Estimates { srtt, rttvar, .. } = state.estimates;
        let measured = |estimate| (srtt > 0.0).then(|| span(estimate));
        Gauges {
            rto: span(self.first_timeout(state)),
            srtt: measured(srtt),
            rttvar: measured(rttvar),
            rate_per_ks: None,
        }
    }
}

impl OwnMechanism for Table {
    const NAME: &'static str = "table";
    const SUMMARY: &'static str =
        "a table of actions over what `ebb` knows; for the search of an upper bound alone";
    const SOURCE: &'static str = "Coapace, docs/search.md";
    const NOTES: Notes = Notes {
        status: "A yardstick of the laboratory.",
        use_when: "Searching for what a policy could reach.",
        avoid_when: "Anything is to be sent.",
        hazards: "A table does what it says: nothing keeps it from flooding a path.",
    };
}

/// The entry of [`Table`], for [`naming::add`](coapace_scenario::naming::add).
pub(crate) static ENTRY: [Entry; 1] = [Entry::own::<Table>()];

fn seconds(span: Duration) -> f64 {
    span.as_micros() as f64 / 1e6
}

/// Returns a span of `seconds`, to the nearest microsecond.
fn span(seconds: f64) -> Duration {
    #[allow(clippy::cast_sign_loss, reason = "a negative time counts as none")]
    Duration::from_micros((seconds * 1e6).round() as u64)
}

#[cfg(test)]
mod tests {
    use coapace_control::{Answer, Draw, Instant, Mechanism, Sample};
    use coapace_sim::Luck;

    use super::*;

    /// Returns the timeouts of first transmissions and of retransmissions, in microseconds, of 400 exchanges with a destination that
    /// loses packets and whose round-trip time rises and falls.
    fn armed<M: Controller>(mechanism: &M, seed: u64) -> Vec<u64> {
        let dice = Luck::new(seed).stream("table");
        let unit = |exchange: u64, what: u64| dice.unit(exchange, what, 0);
        let roll = |below: u64, exchange: u64, what: u64| dice.below(below, exchange, what, 0);
        let base_s = 0.01 * 300_f64.powf(unit(1000, 0));
        let mut state = mechanism.state();
        let mut armed = Vec::new();
        for exchange in 0..400 {
            let draw = Draw::from_bits(roll(1 << 32, exchange, 1) as u32);
            let cue = Cue { now: Instant::ZERO, draw, outstanding: 1 };
            let (mut open, timeout) = mechanism.on_start(&mut state, cue);
            let retransmits = roll(2, exchange, 2) * roll(5, exchange, 3);
            let mut departed = Duration::ZERO;
            let mut last = timeout;
            armed.push(last.as_micros());
            for _ in 0..retransmits {
                departed += last;
                last = mechanism.on_retransmit(&mut state, &mut open, cue);
                armed.push(last.as_micros());
            }
            let wave = 1.0 + (exchange as f64 / 30.0).sin().max(0.0) * 5.0 + 0.1 * unit(exchange, 4);
            let rtt = span(base_s * wave);
            let ordinal = roll(retransmits + 1, exchange, 5) as u8;
            let answered = (unit(exchange, 6) < 0.7).then_some(Answer { ordinal, since: rtt });
            let unmarked = Sample::unmarked(rtt + departed, rtt, retransmits as u8);
            let sample = Sample { answered, ..unmarked };
            let is_given_up = roll(30, exchange, 7) == 0;
            let outcome = if is_given_up { Outcome::GivenUp } else { Outcome::Acked(sample) };
            mechanism.on_end(&mut state, open, outcome, cue);
        }
        armed
    }

    #[test]
    fn the_table_that_a_search_begins_with_does_what_ebb_does() {
        let ebb: Mechanism = "ebb".parse().unwrap();
        for seed in 0..50 {
            for (place, (own, other)) in
                armed(&Table::DEFAULT, seed).into_iter().zip(armed(&ebb, seed)).enumerate()
            {
                assert!(own.abs_diff(other) <= 4 + other / 20_000, "{seed}, {place}: {own} and {other}");
            }
        }
    }

    #[test]
    fn each_decision_follows_its_cell() {
        let mut table = Table::DEFAULT;
        // Calm and steady, after an exchange without a loss.
        let calm = cell(1, false, false);
        table.row(Decision::Start)[calm] = 8 + 4;
        table.row(Decision::Backoff)[calm] = 4;
        table.row(Decision::Hold)[calm] = 1;
        let cue = Cue { now: Instant::ZERO, draw: Draw::ZERO, outstanding: 1 };
        let mut state =
            TableState { estimates: Estimates { srtt: 1.0, rttvar: 0.0, least: 1.0 }, ..table.state() };
        let (mut exchange, timeout) = table.on_start(&mut state, cue);
        assert_eq!(timeout, Duration::from_millis(2_002), "twice the RTO of 1.001 s");
        let retransmitted = table.on_retransmit(&mut state, &mut exchange, cue);
        assert_eq!(retransmitted, Duration::from_millis(6_006), "three times that");
        let second = Duration::from_secs(1);
        let answered = Some(Answer { ordinal: 1, since: second });
        let sample = Sample { since_first: second.times(3), since_last: second, retransmits: 1, answered };
        table.on_end(&mut state, exchange, Outcome::Acked(sample), cue);
        assert_eq!(table.gauges(&state).rto, Duration::from_millis(6_006), "held");
    }

    #[test]
    fn a_table_is_read_as_it_is_written_and_other_letters_are_refused() {
        let mut table = Table::DEFAULT;
        table.row(Decision::Start)[31] = 15;
        table.row(Decision::Backoff)[30] = 6;
        let mut bytes = [0; Table::BYTES];
        table.pack(&mut bytes);
        assert_eq!(Table::unpack(&bytes).0, table);
        let rows = table.label();
        let mut read = Table::DEFAULT;
        for setting in Mechanism::settings(rows.strip_prefix("table:").unwrap()) {
            let (name, value) = setting.unwrap();
            read.set(name, value).unwrap();
        }
        assert_eq!(read, table);
        for wrong in ["", "bbb", &"c".repeat(32), &"B".repeat(32)] {
            assert!(read.set("hold", wrong).is_err(), "{wrong}");
        }
    }
}
