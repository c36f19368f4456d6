//! The actions of `tide` at a departure, a sample, the end of a round trip, and a loss.

use super::{
    ANSWERED, HALF, LEAST, LONG, LONG_AGO, MOST, ONE, SLOW, Tide, TideExchange, TidePhase, TideState, UP,
    micros,
};
use crate::estimator::Learning;
use crate::fine::Fine;
use crate::{Cue, Duration, Instant, division};

/// The gain of the averages of losses, as a shift: a new exchange has the weight 2⁻⁵.
const LOSS_GAIN: u16 = 5;
/// The gain, as a shift, of a slow decay: while the queue is long, each answer lowers the average of losses with a
/// short queue by 2⁻⁸ of its value. A flow that no longer sees a short queue would otherwise never learn that losses
/// have become congestion.
const LOSS_FADE: u16 = 8;
/// Losses with a long queue are congestion if the loss rate with a long queue exceeds twice the loss rate
/// with a short queue by more than this constant, in units of 2⁻¹⁶.
const LOSS_EXCESS: u32 = 1 << 10;
/// The share of losses that counts as congestion, however long the queue is: five in eight, in units of 2⁻¹⁶. A link
/// that loses 20 % of the datagrams in each direction loses 36 % of the exchanges.
const LOSS_LIMIT: u32 = 5 << 13;
/// The number of consecutive round trips, with a window that moves in one direction, after which the velocity begins to
/// double. The velocity is the change of the window in a round trip.
const STEADY: u8 = 3;
/// How often the velocity can double.
const MOST_DOUBLINGS: u8 = 7;
/// The length of an epoch, in which the least round-trip time is measured: this many microseconds, or this many round
/// trips if they take longer.
const EPOCH: (u32, u32) = (30_000_000, 30);
/// The factor by which an epoch is longer while the queue does not empty. Otherwise a round-trip time that includes the
/// queue of other flows could become the least one, and their queue would seem empty.
const HELD: u32 = 4;

impl TideState {
    /// Counts an answered exchange in the average of losses.
    pub(super) fn count_answer(&mut self) {
        let [short, long] = self.loss;
        self.loss = if self.is(LONG) {
            [short - (short >> LOSS_FADE), long - (long >> LOSS_GAIN)]
        } else {
            [short - (short >> LOSS_GAIN), long]
        };
    }

    /// Counts a lost exchange in the average of losses. Returns whether the loss was congestion.
    fn count_loss(&mut self) -> bool {
        let [short, long] = self.loss;
        let raised = |share: u16| share + ((u16::MAX - share) >> LOSS_GAIN);
        self.loss = if self.is(LONG) { [short, raised(long)] } else { [raised(short), long] };
        let [short, long] = self.loss.map(u32::from);
        // Errors of the link come with any queue, so only the excess with a long queue is congestion.
        self.is(LONG) && long > 2 * short + LOSS_EXCESS || short.max(long) > LOSS_LIMIT
    }

    /// Counts this round trip if the window moved in the same direction as before. Otherwise starts the count again.
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

    /// Returns `value` divided by the window, which is in units of 1/256 datagram.
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
    /// Returns the RTO before backoff and dither. It is at least 5/4 of SRTT: if a window departs evenly, RTTVAR is
    /// small, and every outstanding exchange would time out at the first rise of the round-trip time. In slow start it
    /// is at least twice SRTT, because the round-trip time may double within a round trip.
    fn usual_rto(&self, state: &TideState) -> Fine {
        let rto = state.estimator.srtt().map_or(self.initial_rto.into(), |srtt| {
            let least = if state.is(SLOW) { srtt.units() } else { srtt.units() / 4 };
            let variation = (state.estimator.rttvar().units() * 4).max(least);
            (srtt + Fine::from_units(variation)).at_least(self.min_rto)
        });
        rto.min(self.max_rto.into())
    }

    /// Returns the RTO with its backoff, before dither.
    pub(super) fn rto(&self, state: &TideState) -> Fine {
        let most = Fine::from(self.max_rto);
        // This is RTO·(3/2)^(n − 1) after n silent timeouts (docs/tide.md, section 5).
        let (mut rto, mut left) = (self.usual_rto(state), state.silent().saturating_sub(1));
        while left > 0 && rto < most {
            rto = Fine::from_units(rto.units() + rto.units() / 2).min(most);
            left -= 1;
        }
        rto
    }

    /// Ends the backoff if an ambiguous answer came within the usual time after the last transmission: between the
    /// least round-trip time and the RTO without backoff. If the path had become longer than the backed-off RTO, an
    /// answer would hardly come at that moment. Dither prevents repeated coincidences.
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

    /// Returns the state and the timeout of an exchange whose transmission departs now. Delays the next departure for
    /// pacing, at a rate of two windows in a round-trip time, so that the window is used even if answers come in
    /// bursts.
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

    /// Updates the round-trip times, the queue and the window with the sample `rtt`.
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
            // This comes after `standing` has taken the sample, and before `longest` does (docs/tide.md, section 6.1).
            if ends {
                self.turn(state);
            }
        } else {
            state.standing = [this.min(rtt), before];
        }
        // The least round-trip time is the path without a queue.
        let queue = rtt.saturating_sub(state.least);
        state.longest = { state.longest }.max(queue);
        state.set(LONG, queue > state.longest / 2 && queue > state.least / 32);
        self.look(state);
        self.steer(state, cue.outstanding);
    }

    /// Updates the least round-trip time of this epoch and the epoch before with `rtt`. Begins a new epoch if this one
    /// is over.
    fn note_least(&self, state: &mut TideState, rtt: u32, now: u16, is_first: bool) {
        state.least = { state.least }.min(rtt);
        state.next_least = { state.next_least }.min(rtt);
        let (least_age, round_trips) = EPOCH;
        let held = if self.phase(state) == TidePhase::Calm { 1 } else { HELD };
        let limit = state.srtt().saturating_mul(round_trips).max(least_age).saturating_mul(held);
        let age = u32::from(now.wrapping_sub(state.epoch)) << 16;
        if is_first || age > limit {
            // The epoch that ends still counts, until the new one ends.
            (state.least, state.next_least, state.epoch) = (state.next_least, rtt, now);
        }
    }

    /// Ends an ebb or the competition if the queue is empty. The queue counts as empty if it is at most a tenth of the
    /// longest recent queue; during and after an ebb, if it is at most the share `ebbed`.
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

    /// Grows or shrinks the window after an answer. Does not grow it while less than half of it is used.
    fn steer(&self, state: &mut TideState, outstanding: u16) {
        let (phase, queue, standing) = (self.phase(state), state.queue(), state.standing());
        let target = u32::from(self.target.max(1)) * ONE;
        // W·queue/standing is what the flow has in the queue. The comparison needs no division.
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
                // This is the velocity of Copa: it doubles with each further round trip in one direction.
                target << (state.steady() + 1).saturating_sub(STEADY).min(MOST_DOUBLINGS)
            }
        };
        // Each answer brings its share of the change. 255 datagrams, seven doublings and `ONE` have 31 bits.
        let step = state.share(in_round_trip * ONE).clamp(1, ONE);
        if !rises {
            let fall = self.fall.of_u48(ONE.into()) as u32;
            // At most one datagram is taken away, and the window has one at least.
            state.resize(state.window - step.max(fall).min(ONE));
        } else if is_used {
            state.resize(state.window + step);
        }
    }

    /// Returns the window that leaves half of the target in the queue, from [`TideState::marked`] and the longest
    /// queue.
    fn without_queue(&self, state: &TideState) -> u32 {
        let (least, target) = (state.least, u32::from(self.target.max(1)) * ONE);
        let window = scaled(state.marked, least, least.saturating_add(state.longest));
        (window + target / 2).clamp(LEAST, MOST)
    }

    /// Handles the end of a round trip: counts it, and begins an ebb or a competition if the queue did not empty.
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
            // The largest window without a queue counts. It fades, so that an old one does not count for ever.
            state.calm = (calm as u16).max(state.calm - (state.calm >> 4));
        }
        state.longest -= state.longest / 16;
        state.full += 1; // it is below 203
        // After the competition another ebb tests whether the other flows are gone.
        if state.full >= self.ebb_after() + 2 + self.compete_for.min(100) {
            state.full = self.ebb_after();
        }
        match self.phase(state) {
            TidePhase::Calm => state.count_direction(),
            TidePhase::Ebb => {
                // The ebb is judged by the queue that it has found.
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

    /// Handles the loss of an exchange that was overtaken, or whose timeout has passed. Reduces the window if the loss
    /// was congestion.
    pub(super) fn lose(&self, state: &mut TideState, exchange: TideExchange, now: Instant) {
        let late = (now.as_micros() as u32).wrapping_sub(u32::from_le_bytes(exchange.deadline));
        // Times wrap at 2³² µs: a moment before the deadline is behind it by half of that or more.
        let has_timed_out = late >> 31 == 0;
        // Samples end round trips, and none has ended since the exchange departed.
        let is_silent = has_timed_out && exchange.round == state.round;
        let age = |round| state.round.wrapping_sub(round);
        // An exchange from before the last reduction belongs to the congestion that has caused it.
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

/// Handles a timeout in a round trip without a sample. The second such timeout and all later ones lengthen the RTO. Two
/// such timeouts without an answer between them set the window to one datagram.
fn fall_silent(state: &mut TideState) {
    let (count, is_answered) = (state.silent(), state.silence & ANSWERED != 0);
    state.round = state.round.wrapping_add(1);
    // This unsets `ANSWERED`. 31 growths by half are a factor of 287,000.
    state.silence = (count + 1).min(32);
    if count > 0 && !is_answered {
        state.window = ONE;
        state.full = 0;
        state.set(SLOW, true);
    }
}

/// Returns `window`·`numerator`/`denominator`, rounded down, at most [`MOST`].
fn scaled(window: u32, numerator: u32, denominator: u32) -> u32 {
    let product = u64::from(window) * u64::from(numerator);
    u32::try_from(division::by(product, denominator.into())).unwrap_or(MOST).min(MOST)
}
