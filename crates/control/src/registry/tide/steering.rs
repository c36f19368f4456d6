//! The actions of `tide` at a departure, a sample, the end of a round trip, and a loss.

use super::{
    ANSWERED, HALF, LEAST, LONG, LONG_AGO, MOST, ONE, SLOW, Tide, TideExchange, TidePhase, TideState, UP,
    micros,
};
use crate::estimator::Learning;
use crate::fine::Fine;
use crate::{Cue, Duration, Instant, division};

/// Gain of the shares of losses, as a shift.
const LOSS_GAIN: u16 = 5;
/// Gain by which the share of losses with a short queue fades while the queue is long. A flow that sees no short queue any
/// more would otherwise never learn that losses became congestion.
const LOSS_FADE: u16 = 8;
/// Share of losses with a long queue that no share with a short one explains, in units of 2⁻¹⁶.
const LOSS_EXCESS: u32 = 1 << 10;
/// Share of losses that is congestion, however long the queue is: five in eight, in units of 2⁻¹⁶. Links that lose 20 %
/// each way lose 36 %.
const LOSS_LIMIT: u32 = 5 << 13;
/// Round trips in one direction after which the velocity doubles.
const STEADY: u8 = 3;
/// Most doublings of the velocity.
const MOST_DOUBLINGS: u8 = 7;
/// The longest age of an epoch: so many microseconds, or so many round trips if that is more.
const EPOCH: (u32, u32) = (30_000_000, 30);
/// Epochs are this many times as long while the queue does not empty. Otherwise a round-trip time with the queue of others could
/// become the least one, and that queue would look empty.
const HELD: u32 = 4;

impl TideState {
    /// Counts an exchange that was answered.
    pub(super) fn count_answer(&mut self) {
        let [short, long] = self.loss;
        self.loss = if self.is(LONG) {
            [short - (short >> LOSS_FADE), long - (long >> LOSS_GAIN)]
        } else {
            [short - (short >> LOSS_GAIN), long]
        };
    }

    /// Counts an exchange that was lost. Returns whether that was congestion.
    fn count_loss(&mut self) -> bool {
        let [short, long] = self.loss;
        let raised = |share: u16| share + ((u16::MAX - share) >> LOSS_GAIN);
        self.loss = if self.is(LONG) { [short, raised(long)] } else { [raised(short), long] };
        let [short, long] = self.loss.map(u32::from);
        self.is(LONG) && long > 2 * short + LOSS_EXCESS || short.max(long) > LOSS_LIMIT
    }

    /// Counts the round trips in which the window moved in one direction.
    fn count_direction(&mut self) {
        let rises = self.window > self.marked;
        if rises == self.is(UP) {
            self.set_steady(self.steady() + 1);
        } else {
            self.set_steady(0);
            self.set(UP, rises);
        }
        self.marked = self.window;
    }

    /// Returns `value` for each 1/256 of a datagram of the window.
    fn share(&self, value: u32) -> u32 {
        // The window is never zero. The compiler does not know that, and would link a panic.
        value / self.window.max(1)
    }

    fn end_slow_start(&mut self) {
        self.set(SLOW, false);
        self.set_steady(0);
    }
}

impl Tide {
    /// Returns the RTO before backoff and dither. It is SRTT/4 above SRTT at least: a window that departs evenly leaves no
    /// variation, and every exchange under way would time out at the first rise. In slow start it is twice SRTT at least,
    /// because the round-trip time may double within one.
    fn usual_rto(&self, state: &TideState) -> Fine {
        let rto = state.estimator.srtt().map_or(self.initial_rto.into(), |srtt| {
            let least = if state.is(SLOW) { srtt.units() } else { srtt.units() / 4 };
            let variation = (state.estimator.rttvar().units() * 4).max(least);
            (srtt + Fine::from_units(variation)).at_least(self.min_rto)
        });
        rto.min(self.max_rto.into())
    }

    /// Returns the RTO before dither.
    pub(super) fn rto(&self, state: &TideState) -> Fine {
        let most = Fine::from(self.max_rto);
        let (mut rto, mut left) = (self.usual_rto(state), state.silent().saturating_sub(1));
        while left > 0 && rto < most {
            rto = Fine::from_units(rto.units() + rto.units() / 2).min(most);
            left -= 1;
        }
        rto
    }

    /// Ends the backoff after an ambiguous answer that comes as soon after the last transmission as answers usually do. If the
    /// path had become longer than the backed-off RTO, an answer would hardly come just then. Dither keeps that from happening
    /// again and again.
    pub(super) fn end_backoff(&self, state: &mut TideState, since_last: Duration) {
        let is_usual = Fine::from(since_last) <= self.usual_rto(state) && micros(since_last) >= state.least;
        if is_usual && state.silent() > 1 {
            state.silence = ANSWERED | 1;
        }
    }

    fn ebb_after(&self) -> u8 {
        self.ebb_after.clamp(1, 100)
    }

    fn phase(&self, state: &TideState) -> TidePhase {
        match state.full.checked_sub(self.ebb_after()) {
            None => TidePhase::Calm,
            Some(0) => TidePhase::Ebb,
            Some(1) => TidePhase::Flood,
            Some(_) => TidePhase::Competition,
        }
    }

    /// Returns an exchange whose transmission departs now, and paces the next: two windows in a round-trip time, so that the
    /// window is used though answers come in bursts.
    pub(super) fn depart(&self, state: &mut TideState, cue: Cue) -> (TideExchange, Duration) {
        let now = cue.now.as_micros();
        let srtt = state.srtt();
        // A Cortex-M3 divides 32 bits, so longer round-trip times than 33 s count as 33 s.
        let gap = state.share(srtt.min(u32::MAX >> 7) << 7);
        // After a timer that fires late, the missed transmissions depart at once, up to an eighth of a window.
        let missed = (srtt >> 4) + 1_000;
        let since = { state.next }.max(now.saturating_sub(missed.into()));
        state.next = since.saturating_add(gap.into());
        let timeout = self.rto(state).dithered(self.dither, cue.draw).min(self.max_rto.into()).into();
        let deadline = (now as u32).wrapping_add(micros(timeout));
        (TideExchange { deadline: deadline.to_le_bytes(), round: state.round }, timeout)
    }

    /// Takes in a sample.
    pub(super) fn learn(&self, state: &mut TideState, rtt: Duration, cue: Cue) {
        let now = cue.now.as_micros();
        let is_first = !state.estimator.is_measured();
        state.estimator.update(rtt, Learning::RFC6298);
        state.silence = 0;
        let rtt = micros(rtt);
        if is_first {
            (state.mark, state.marked) = (now as u32, state.window);
        }
        self.note_least(state, rtt, (now >> 16) as u16, is_first);
        // Two halves make a round trip, so `standing` covers the last half to whole one.
        let [this, before] = state.standing;
        if (now as u32).wrapping_sub(state.mark) > state.srtt() / 2 {
            (state.mark, state.standing) = (now as u32, [rtt, this]);
            let ends = state.is(HALF);
            state.set(HALF, !ends);
            if ends {
                self.turn(state);
            }
        } else {
            state.standing = [this.min(rtt), before];
        }
        let queue = rtt.saturating_sub(state.least);
        state.longest = { state.longest }.max(queue);
        state.set(LONG, queue > state.longest / 2 && queue > state.least / 32);
        self.look(state);
        self.steer(state, cue.outstanding);
    }

    /// Notes the least round-trip time of two epochs.
    fn note_least(&self, state: &mut TideState, rtt: u32, now: u16, is_first: bool) {
        state.least = { state.least }.min(rtt);
        state.next_least = { state.next_least }.min(rtt);
        let (least_age, round_trips) = EPOCH;
        let held = if self.phase(state) == TidePhase::Calm { 1 } else { HELD };
        let limit = state.srtt().saturating_mul(round_trips).max(least_age).saturating_mul(held);
        let age = u32::from(now.wrapping_sub(state.epoch)) << 16;
        if is_first || age > limit {
            (state.least, state.next_least, state.epoch) = (state.next_least, rtt, now);
        }
    }

    /// Notes whether the queue is empty: at most a tenth of the longest recent one, or the share that an ebb may leave.
    #[inline(never)] // smaller
    fn look(&self, state: &mut TideState) {
        let (queue, phase) = (state.queue(), self.phase(state));
        let most = match phase {
            TidePhase::Calm | TidePhase::Competition => u64::from(state.longest / 10),
            TidePhase::Ebb | TidePhase::Flood => self.ebbed.of_u48({ state.longest }.into()),
        };
        if u64::from(queue) > most {
            return;
        }
        if phase == TidePhase::Ebb {
            state.window = self.without_queue(state);
            state.marked = state.window;
        }
        state.full = 0;
    }

    /// Moves the window by an answer. It does not rise while less than half of it is used.
    fn steer(&self, state: &mut TideState, outstanding: u16) {
        let (phase, queue, standing) = (self.phase(state), state.queue(), state.standing());
        let target = u32::from(self.target.max(1)) * ONE;
        let wanted = u64::from(target) * u64::from(standing);
        let rises = phase == TidePhase::Competition || u64::from(state.window) * u64::from(queue) < wanted;
        let is_used = u32::from(outstanding) * 2 * ONE >= state.window;
        if state.is(SLOW) {
            if rises {
                let step = if is_used { ONE } else { 0 };
                state.window = (state.window + step).min(MOST);
                return;
            }
            state.end_slow_start();
            // The rate times the least round-trip time is a window that needs no queue.
            state.resize(scaled(state.window, state.least, standing));
            state.marked = state.window;
        }
        let is_wary =
            phase == TidePhase::Calm && state.round.wrapping_sub(state.cut) < self.wary_for.min(LONG_AGO);
        let in_round_trip = match phase {
            TidePhase::Ebb => return,
            // The flow takes back the rate that it had before the others came.
            TidePhase::Competition if state.window < state.marked => MOST,
            TidePhase::Competition => ONE,
            _ if is_wary => ONE,
            TidePhase::Calm | TidePhase::Flood => {
                target << (state.steady() + 1).saturating_sub(STEADY).min(MOST_DOUBLINGS)
            }
        };
        let step = state.share(in_round_trip * ONE).clamp(1, ONE);
        if !rises {
            let fall = self.fall.of_u48(ONE.into()) as u32;
            state.resize(state.window - step.max(fall).min(ONE));
        } else if is_used {
            state.resize(state.window + step);
        }
    }

    /// Returns the marked window less its part of the longest queue, plus half of the target.
    fn without_queue(&self, state: &TideState) -> u32 {
        let (least, target) = (state.least, u32::from(self.target.max(1)) * ONE);
        let window = scaled(state.marked, least, least.saturating_add(state.longest));
        (window + target / 2).clamp(LEAST, MOST)
    }

    /// Ends a round trip.
    #[inline(never)] // smaller
    fn turn(&self, state: &mut TideState) {
        state.round = state.round.wrapping_add(1);
        // Rounds are compared modulo 256.
        if state.round.wrapping_sub(state.cut) > LONG_AGO {
            state.cut = state.round.wrapping_sub(LONG_AGO);
        }
        if state.is(SLOW) {
            return;
        }
        let before = self.phase(state);
        if state.full == 0 {
            let window = { state.window }.min(state.marked);
            let calm = scaled(window, state.least, state.standing()) / (ONE / 16);
            state.calm = (calm as u16).max(state.calm - (state.calm >> 4));
        }
        state.longest -= state.longest / 16;
        state.full += 1; // it is below 203
        if state.full >= self.ebb_after() + 2 + self.compete_for.min(100) {
            state.full = self.ebb_after();
        }
        match self.phase(state) {
            TidePhase::Calm => state.count_direction(),
            TidePhase::Ebb => {
                state.longest = state.queue();
                state.marked = state.window;
                let window = self.without_queue(state);
                state.resize(self.ebb.of_u48(window.into()) as u32);
            }
            TidePhase::Flood => {
                state.window = self.without_queue(state);
                state.set_steady(0);
            }
            TidePhase::Competition if !self.compete.is_on() => state.full = 0,
            TidePhase::Competition if before == TidePhase::Flood => {
                // With the queue of others, the rate that the flow had before needs a larger window.
                let window = scaled(u32::from(state.calm) << 4, state.standing(), state.least);
                state.marked = { state.marked }.max(window);
                state.calm = 0;
            }
            TidePhase::Competition => {}
        }
    }

    /// Takes in a loss: the exchange was overtaken, or its timeout has passed.
    pub(super) fn lose(&self, state: &mut TideState, exchange: TideExchange, now: Instant) {
        let late = (now.as_micros() as u32).wrapping_sub(u32::from_le_bytes(exchange.deadline));
        // Times wrap at 2³² µs: a moment before the deadline is behind it by half of that or more.
        let has_timed_out = late >> 31 == 0;
        // Samples end round trips, and none has ended since the exchange departed.
        let is_silent = has_timed_out && exchange.round == state.round;
        let age = |round| state.round.wrapping_sub(round);
        let is_fresh = age(exchange.round) <= age(state.cut);
        if state.count_loss() && is_fresh {
            state.round = state.round.wrapping_add(1);
            state.cut = state.round;
            let leaves = if self.phase(state) == TidePhase::Competition {
                self.competing_loss_leaves
            } else {
                state.full = 0;
                self.loss_leaves
            };
            state.end_slow_start();
            state.resize(leaves.of_u48({ state.window }.into()) as u32);
            state.marked = state.window;
        }
        if is_silent {
            fall_silent(state);
        }
    }
}

/// Takes in a timeout in a round trip without a sample.
fn fall_silent(state: &mut TideState) {
    let (count, is_answered) = (state.silent(), state.silence & ANSWERED != 0);
    state.round = state.round.wrapping_add(1);
    state.silence = (count + 1).min(32);
    if count > 0 && !is_answered {
        state.window = ONE;
        state.full = 0;
        state.set(SLOW, true);
    }
}

/// Returns `window`·`numerator`/`denominator`, rounded down, [`MOST`] at most.
fn scaled(window: u32, numerator: u32, denominator: u32) -> u32 {
    let product = u64::from(window) * u64::from(numerator);
    u32::try_from(division::by(product, denominator.into())).unwrap_or(MOST).min(MOST)
}
