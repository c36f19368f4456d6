//! The lane of a peer: a separate mechanism, queue and window for exchanges that transfer parts of bodies. Single
//! exchanges with the peer do not wait for them.

use alloc::boxed::Box;

use coapace_control::{Controller, Cue, Draw, Duration, Gauges, Instant, Limits, Outcome};

use crate::deadlines::DeadlineOwner;
use crate::endpoint::Endpoint;
use crate::exchange::{ExchangeEnd, ExchangeStage, Failure, OpenExchange};
use crate::list::SlotQueue;
use crate::peer::Address;
use crate::slab::Linked;
use crate::{NONE, Setup};

/// The maximum number of requests that wait in a lane. The application begins further requests only later, when it
/// knows better which blocks are missing.
const WAITING: u16 = 4;

/// How many copies a lane sends to a silent peer after MAX_RETRANSMIT copies. Each of them waits for a timeout that RFC 7252
/// would arm, so the last one departs more than a minute after the peer became silent.
const SLOW_COPIES: u8 = 4;

/// The number of copies after which a request is given up, even if the peer answers other requests.
const MAX_COPIES: u8 = 64;

/// The lane of one peer: its separate queue and window for exchanges that transfer parts of bodies.
#[derive(Debug)]
pub(crate) struct Lane<C: Controller> {
    /// The state of the bulk mechanism ([`Setup::bulk`]) for this peer.
    state: C::State,
    /// The number of exchanges in the window: due, or in flight.
    outstanding: u16,
    /// The number of exchanges with a copy that has departed, was not answered and does not count as lost.
    in_flight: u16,
    /// The number of exchanges whose last copy counts as lost, and that wait for the next one.
    lost: u16,
    /// The number of exchanges that wait for their first departure.
    waits: u16,
    /// Exchanges that wait for their first departure.
    waiting: SlotQueue,
    /// True from the admission of an exchange until it departs.
    leaving: bool,
    /// The departure of the latest copy that was answered. Copies that departed long before it are lost.
    answered: Instant,
    /// The arrival of the last answer to an exchange of this lane.
    heard: Instant,
    /// The number of timeouts since the peer answered. A timeout does not count if its copy departed before the last
    /// timeout that counted.
    silence: u8,
    /// The time of the last timeout that counted.
    silent_since: Instant,
    /// The time before which no exchange is admitted.
    paused_until: Instant,
}

impl<C: Controller> Lane<C> {
    fn new(controller: &C) -> Self {
        Self {
            state: controller.state(),
            outstanding: 0,
            in_flight: 0,
            lost: 0,
            waits: 0,
            waiting: SlotQueue::EMPTY,
            leaving: false,
            answered: Instant::ZERO,
            heard: Instant::ZERO,
            silence: 0,
            silent_since: Instant::ZERO,
            paused_until: Instant::ZERO,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the exchanges that wait for their first departure.
    pub(crate) fn queue(&mut self) -> &mut SlotQueue {
        &mut self.waiting
    }

    /// Records that the peer has answered.
    pub(crate) fn note_answer(&mut self) {
        self.silence = 0;
    }

    /// Records a departing copy. Returns the timeout to arm. After more than MAX_RETRANSMIT timeouts without an answer, it is
    /// at least a timeout of RFC 7252.
    pub(crate) fn depart(
        &mut self,
        now: Instant,
        setup: &Setup<C>,
        exchange: &mut OpenExchange<C>,
        draw: Draw,
    ) -> Duration {
        self.in_flight = self.in_flight.saturating_add(1);
        self.leaving = false;
        let Some(controller) = &setup.bulk else { return setup.config.response_timeout };
        let cue = Cue { now, draw, outstanding: self.in_flight };
        let timeout = exchange.arm(controller, &mut self.state, cue);
        match setup.patience().filter(|_| self.silence > setup.config.max_retransmit) {
            Some(patience) => timeout.max(patience.timeout(self.silence.saturating_sub(2), draw)),
            None => timeout,
        }
    }
}

impl<C: Controller, A: Address> Endpoint<C, A> {
    /// Returns whether another request for a part of a body to this peer would depart soon. Begin such requests while
    /// this returns true, check again after each response, and keep at least one request outstanding.
    pub fn wants_bulk(&self, peer: A) -> bool {
        let lane = self.peers.find(peer).and_then(|slot| self.peers[slot].lane.as_ref());
        let is_full = self.exchanges.in_use() >= self.setup.config.max_exchanges as usize;
        !is_full && lane.is_none_or(|lane| lane.waits < WAITING)
    }

    /// Returns the limits of the bulk mechanism for a peer; `None` before the first transfer of a part of a body.
    pub fn bulk_limits(&self, peer: A) -> Option<Limits> {
        self.bulk(peer).map(|(controller, state)| controller.limits(state))
    }

    /// Returns the estimates of the bulk mechanism for a peer; `None` before the first transfer of a part of a body.
    pub fn bulk_gauges(&self, peer: A) -> Option<Gauges> {
        self.bulk(peer).map(|(controller, state)| controller.gauges(state))
    }

    /// Returns the bulk mechanism and its state for a peer; `None` before the first transfer of a part of a body.
    fn bulk(&self, peer: A) -> Option<(&C, &C::State)> {
        let lane = self.peers[self.peers.find(peer)?].lane.as_ref()?;
        Some((self.setup.bulk.as_ref()?, &lane.state))
    }

    /// Admits no further request for a part of a body to this peer for the time `span`, because the peer has refused
    /// one.
    pub fn pause_bulk(&mut self, now: Instant, peer: A, span: Duration) {
        let Some(slot) = self.peers.find(peer) else { return };
        if let Some(lane) = &mut self.peers[slot].lane {
            lane.paused_until = lane.paused_until.max(now + span);
        }
    }

    /// Puts an exchange at the end of the queue of the lane.
    pub(crate) fn wait_in_lane(&mut self, index: u32) {
        let slot = self.exchanges[index].peer;
        let Some(controller) = &self.setup.bulk else { return };
        let lane = self.peers[slot].lane.get_or_insert_with(|| Box::new(Lane::new(controller)));
        lane.waiting.push(&mut self.exchanges, index);
        lane.waits = lane.waits.saturating_add(1);
    }

    /// Admits exchanges of the lane, as far as the mechanism allows. Lost exchanges have precedence. Returns the time
    /// at which to try again; `None` if another event must come first, or if no exchange waits.
    pub(crate) fn admit_to_lane(&mut self, now: Instant, slot: u32) -> Option<Instant> {
        loop {
            let there = &self.peers[slot];
            let (lane, controller) = (there.lane.as_ref()?, self.setup.bulk.as_ref()?);
            if lane.lost == 0 && lane.waiting.is_empty() {
                return None;
            }
            let limits = controller.limits(&lane.state);
            // Single exchanges and bodies share the window. One exchange of a body may always be under way.
            let under_way = lane.outstanding.saturating_add(there.outstanding);
            if lane.outstanding > 0 && under_way >= limits.nstart.unwrap_or(1) {
                return None;
            }
            let from = limits.next_confirmable.max(lane.paused_until);
            if from > now {
                return Some(from);
            }
            // The rate is updated when a message departs.
            if limits.next_confirmable != Instant::ZERO && lane.leaving {
                return None;
            }
            let index = if lane.lost > 0 {
                // A copy keeps its Message ID if no other is free (`transmit::mark`), so it need not wait for one.
                self.longest_lost(slot)?
            } else {
                let free = there.message_ids.free_at(|| self.setup.exchange_lifetime());
                if free > now {
                    return Some(free);
                }
                self.first_of_lane(now, slot)?
            };
            let lane = self.peers[slot].lane.as_mut()?;
            lane.outstanding += 1;
            lane.leaving = true;
            self.line_up(index);
        }
    }

    /// Removes and returns the lost exchange whose last copy departed first.
    fn longest_lost(&mut self, slot: u32) -> Option<u32> {
        let active = self.peers[slot].active.iter(&self.exchanges);
        let lost = active.filter(|(_, exchange)| exchange.stage == ExchangeStage::Lost);
        let (index, _) = lost.min_by_key(|(_, exchange)| exchange.last)?;
        let lane = self.peers[slot].lane.as_mut()?;
        lane.lost = lane.lost.saturating_sub(1);
        Some(index)
    }

    /// Takes the first exchange that waits for its first departure, and gives it a Message ID.
    fn first_of_lane(&mut self, now: Instant, slot: u32) -> Option<u32> {
        let there = &mut self.peers[slot];
        let lane = there.lane.as_mut()?;
        let index = lane.waiting.first();
        lane.waiting.remove(&mut self.exchanges, index);
        lane.waits = lane.waits.saturating_sub(1);
        there.active.push(&mut self.exchanges, index);
        self.exchanges[index].message_id = there.message_ids.take(now);
        Some(index)
    }

    /// Removes an ended exchange from the counts of its lane, and passes its outcome to the mechanism. `is_answered` is
    /// true if a message of the peer ended the exchange.
    pub(crate) fn leave_lane(&mut self, now: Instant, index: u32, outcome: Outcome, is_answered: bool) {
        let exchange = &mut self.exchanges[index];
        let there = &mut self.peers[exchange.peer];
        let (Some(lane), Some(controller)) = (&mut there.lane, &self.setup.bulk) else { return };
        match exchange.stage {
            ExchangeStage::Waiting => lane.waits = lane.waits.saturating_sub(1),
            ExchangeStage::Lost => lane.lost = lane.lost.saturating_sub(1),
            ExchangeStage::Due => {
                lane.outstanding = lane.outstanding.saturating_sub(1);
                lane.leaving = false;
            }
            ExchangeStage::InFlight => {
                lane.outstanding = lane.outstanding.saturating_sub(1);
                lane.in_flight = lane.in_flight.saturating_sub(1);
            }
            // An acknowledged request has left the lane with its acknowledgement.
            ExchangeStage::Acknowledged | ExchangeStage::Ended | ExchangeStage::Failed(_) => return,
        }
        // Without a departed copy, the mechanism does not know the exchange.
        let Some(control) = exchange.control.take() else { return };
        // The exchange has no place any more. This stage keeps `find_overtaken` from counting it as lost.
        exchange.stage = ExchangeStage::Acknowledged;
        // The count includes this exchange, as everywhere.
        let cue = Cue { now, draw: Draw::ZERO, outstanding: lane.in_flight.saturating_add(1) };
        controller.on_end(&mut lane.state, control, outcome, cue);
        let departure = match outcome {
            Outcome::Acked(sample) => match sample.unambiguous() {
                Some(rtt) => Instant::from_micros(now.as_micros().saturating_sub(rtt.as_micros())),
                None => exchange.first,
            },
            // A response came without the acknowledgement before it.
            Outcome::Cancelled if is_answered => exchange.first,
            Outcome::Cancelled | Outcome::Reset | Outcome::GivenUp => return,
        };
        lane.answered = lane.answered.max(departure);
        lane.heard = now;
        lane.note_answer();
        let slot = exchange.peer;
        self.find_overtaken(now, slot);
    }

    /// Marks exchanges as lost whose last copy departed long before a copy that was answered. The mechanism decides how
    /// long before (RFC 8985).
    fn find_overtaken(&mut self, now: Instant, slot: u32) {
        let there = &self.peers[slot];
        let (Some(lane), Some(controller)) = (&there.lane, &self.setup.bulk) else { return };
        // Without this limit the mechanism takes a copy for lost only when its timeout has passed.
        let Some(overtaken) = controller.limits(&lane.state).overtaken else { return };
        let answered = lane.answered;
        let (mut lost, mut given_up) = (0, NONE);
        let mut index = there.active.first();
        while let Some(exchange) = self.exchanges.get(index) {
            let next = exchange.next();
            if exchange.purpose.is_in_lane()
                && exchange.stage == ExchangeStage::InFlight
                && exchange.last + overtaken < answered
            {
                // It is ended after the loop, because `end` changes the list that the loop walks.
                if exchange.retransmits >= MAX_COPIES {
                    given_up = index;
                }
                // A lost exchange waits for its place in the window, not for a timeout.
                self.exchanges[index].stage = ExchangeStage::Lost;
                self.deadlines.clear(DeadlineOwner::Exchange(index));
                lost += 1;
            }
            index = next;
        }
        if let Some(lane) = &mut self.peers[slot].lane {
            lane.outstanding = lane.outstanding.saturating_sub(lost);
            lane.in_flight = lane.in_flight.saturating_sub(lost);
            lane.lost = lane.lost.saturating_add(lost);
        }
        if given_up != NONE {
            self.end(now, given_up, ExchangeEnd::Failed(Failure::GivenUp));
        }
    }

    /// Handles a timeout without an answer: the copy is lost, and the exchange waits for a place in the window again.
    /// If only the first copy has departed, and other answers came since, its timer may start again instead. If the
    /// peer has been silent for too long, the exchange is given up.
    pub(crate) fn time_out_in_lane(&mut self, now: Instant, index: u32) {
        let max_retransmit = self.setup.config.max_retransmit;
        let patient = self.setup.config.patience;
        let exchange = &mut self.exchanges[index];
        let there = &mut self.peers[exchange.peer];
        let slot = exchange.peer;
        let (Some(lane), Some(controller)) = (&mut there.lane, &self.setup.bulk) else { return };
        // As long as answers come, a loss shows when a later copy is answered. A first copy may wait in a queue that grows, so its
        // timer begins again with each answer (RFC 6298 §5.3).
        let is_first = exchange.retransmits == 0 && exchange.last < lane.heard;
        if is_first && controller.limits(&lane.state).overtaken.is_some() {
            let due = lane.heard + controller.gauges(&lane.state).rto;
            if due > now {
                self.deadlines.set(DeadlineOwner::Exchange(index), due);
                return;
            }
        }
        // Copies that departed before the last timeout were lost with it.
        if exchange.last >= lane.silent_since {
            lane.silence = lane.silence.saturating_add(1);
            lane.silent_since = now;
        }
        there.silent |= lane.silence > max_retransmit;
        // A patient endpoint sends some more copies at the pace of RFC 7252 before it gives up.
        let more = if patient && max_retransmit > 0 { SLOW_COPIES } else { 0 };
        let most = max_retransmit.saturating_add(more);
        let over = lane.silence > most || exchange.retransmits >= MAX_COPIES;
        exchange.stage = ExchangeStage::Lost;
        lane.outstanding = lane.outstanding.saturating_sub(1);
        lane.in_flight = lane.in_flight.saturating_sub(1);
        lane.lost = lane.lost.saturating_add(1);
        if over {
            self.end(now, index, ExchangeEnd::Failed(Failure::GivenUp));
        } else {
            self.admit(now, slot);
        }
    }
}
