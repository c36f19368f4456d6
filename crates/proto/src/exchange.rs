//! An exchange begun by this endpoint.

use alloc::boxed::Box;
use alloc::vec::Vec;

use coapace_control::{Answer, Controller, Cue, Duration, Instant, Marking, Outcome, Sample};
use smallvec::SmallVec;

use crate::code::Code;
use crate::message::Token;
use crate::slab::Linked;

/// The identifier of an exchange. It is valid until the last event of the exchange was returned. Until then no other
/// exchange has the same identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// The identity of a transmission: the number of its exchange, and its number within the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The number of the exchange, counted from 0.
    pub exchange: u32,
    /// The number of the transmission, 0 for the first.
    pub transmission: u8,
}

/// The purpose of an exchange, which decides which answer is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExchangePurpose {
    /// A request: a response is expected.
    Request,
    /// A confirmable request for a part of a body, in the [lane](crate::lane::Lane) of its peer: a response is expected.
    Part,
    /// A request with the Observe option: a response is expected, and notifications after it.
    Observation,
    /// A request that asks for no response (RFC 7967): an acknowledgement is expected if it is confirmable.
    Statement,
    /// A request to a group, never confirmable: responses may come from any address.
    Group,
    /// A separate response: an acknowledgement is expected.
    Response,
    /// A separate response with a part of a body, in the [lane](crate::lane::Lane) of its peer: an
    /// acknowledgement is expected.
    PartOfResponse,
    /// A notification to an observer: an acknowledgement is expected if it is confirmable.
    Notification,
    /// An empty confirmable message (ping): a Reset is expected.
    Ping,
}

impl ExchangePurpose {
    /// Returns whether the exchange is in the [lane](crate::lane::Lane) of its peer, because it transfers a part of a
    /// body.
    pub(crate) const fn is_in_lane(self) -> bool {
        matches!(self, Self::Part | Self::PartOfResponse)
    }

    /// Returns whether a response from the peer belongs to the exchange.
    pub(crate) const fn takes_response(self) -> bool {
        matches!(self, Self::Request | Self::Part | Self::Observation | Self::Statement)
    }

    /// Returns whether a response is still expected after an empty acknowledgement.
    pub(crate) const fn awaits_response(self) -> bool {
        matches!(self, Self::Request | Self::Part | Self::Observation)
    }

    /// Returns whether the exchange ends when its non-confirmable message has departed, because no answer is expected.
    pub(crate) const fn ends_with_departure(self) -> bool {
        matches!(self, Self::Statement | Self::Group | Self::Notification)
    }

    /// Returns whether the endpoint may send the message as confirmable although the application did not request that.
    pub(crate) const fn may_be_confirmable(self) -> bool {
        !matches!(self, Self::Response | Self::PartOfResponse | Self::Group)
    }
}

/// The stage of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExchangeStage {
    /// The exchange waits for a slot of NSTART, or until its rate allows it to depart.
    Waiting,
    /// The exchange is in the queue of departures.
    Due,
    /// The message was transmitted. An acknowledgement or a response is expected.
    InFlight,
    /// The last copy counts as lost, and the exchange waits for a place in the window of its lane. Only an exchange in
    /// a [lane](crate::lane::Lane) has this stage.
    Lost,
    /// The message was acknowledged. The separate response is expected.
    Acknowledged,
    /// The exchange has ended. Its slot is free, or will be once the queue of departures has no entry of it.
    Ended,
    /// The exchange has failed. Its event was not returned yet.
    Failed(Failure),
}

impl ExchangeStage {
    pub(crate) const fn is_over(self) -> bool {
        matches!(self, Self::Ended | Self::Failed(_))
    }
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ExchangeEnd {
    /// The exchange got the answer that it expected. The mechanism gets this outcome.
    Answered(Outcome),
    /// No answer is expected, or the caller does not want it any more.
    Cancelled,
    /// The exchange failed.
    Failed(Failure),
}

/// The cause of a failed exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No answer arrived before the timeout of the last retransmission passed. If the mechanism does not wait after the
    /// last retransmission, no answer arrived before that copy departed.
    GivenUp,
    /// The peer rejected the message with a Reset.
    Reset,
    /// The response to an acknowledged or non-confirmable request did not arrive in time.
    TimedOut,
}

#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // They are independent of each other.
pub(crate) struct OpenExchange<C: Controller> {
    /// The departure of the first transmission; before that, the time at which the exchange was begun.
    pub(crate) first: Instant,
    /// The departure of the last transmission.
    pub(crate) last: Instant,
    /// The state that the mechanism keeps for this exchange; `None` before the first departure, and after the end.
    pub(crate) control: Option<C::Exchange>,
    /// Options and payload, encoded.
    pub(crate) tail: SmallVec<[u8; 16]>,
    /// The transmissions so far, stored only if the mechanism marks transmissions.
    departures: Option<Box<Departures>>,
    /// The slot of the peer.
    pub(crate) peer: u32,
    /// The next slot in the list that contains this slot: waiting, active, failed or free exchanges.
    next: u32,
    /// The next slot in the queue of departures.
    pub(crate) next_due: u32,
    /// The number of earlier exchanges in the slot.
    pub(crate) generation: u32,
    /// The number of exchanges that the endpoint had begun before this one.
    pub(crate) ordinal: u32,
    pub(crate) message_id: u16,
    pub(crate) token: Token,
    pub(crate) code: Code,
    pub(crate) confirmable: bool,
    /// True if a server may execute the request more than once.
    pub(crate) repeatable: bool,
    /// True if an [allowance](crate::rare::Rare::allowances) limits the bytes of this exchange.
    pub(crate) limited: bool,
    pub(crate) purpose: ExchangePurpose,
    pub(crate) stage: ExchangeStage,
    pub(crate) retransmits: u8,
    /// True if the first transmission has departed.
    pub(crate) departed: bool,
    /// True if the slot is in the queue of departures. It stays there until the queue has passed it, even if an answer arrives
    /// first.
    pub(crate) in_line: bool,
}

/// The transmissions of an exchange. They are behind one pointer because most mechanisms do not use them.
#[derive(Debug, Default)]
struct Departures(Vec<TransmissionRecord>);

/// A record of one transmission.
#[derive(Clone, Copy, Debug)]
struct TransmissionRecord {
    at: Instant,
    /// The timeout that was armed for the transmission.
    timeout: Duration,
    /// The Message ID; `None` once the content of the transmission is outdated, so that its acknowledgement does not
    /// count.
    message_id: Option<u16>,
}

impl<C: Controller> Linked for OpenExchange<C> {
    fn next(&self) -> u32 {
        self.next
    }

    fn set_next(&mut self, next: u32) {
        self.next = next;
    }
}

impl<C: Controller> OpenExchange<C> {
    pub(crate) fn blank() -> Self {
        Self {
            first: Instant::ZERO,
            last: Instant::ZERO,
            control: None,
            tail: SmallVec::new(),
            departures: None,
            peer: crate::NONE,
            next: crate::NONE,
            next_due: crate::NONE,
            generation: 0,
            ordinal: 0,
            message_id: 0,
            token: Token::EMPTY,
            code: Code::EMPTY,
            confirmable: false,
            repeatable: false,
            limited: false,
            purpose: ExchangePurpose::Request,
            stage: ExchangeStage::Ended,
            retransmits: 0,
            departed: false,
            in_line: false,
        }
    }

    /// Counts a departing transmission. Returns its identity.
    pub(crate) fn count_transmission(&mut self) -> Step {
        let again = core::mem::replace(&mut self.departed, true);
        // With a MAX_RETRANSMIT of 255, the extra copy of `Patience` exceeds the count.
        self.retransmits = self.retransmits.saturating_add(u8::from(again));
        Step { exchange: self.ordinal, transmission: self.retransmits }
    }

    /// Returns the timeout that the mechanism arms for a transmission.
    pub(crate) fn arm(&mut self, controller: &C, state: &mut C::State, cue: Cue) -> Duration {
        if let Some(control) = &mut self.control {
            return controller.on_retransmit(state, control, cue);
        }
        let (control, timeout) = controller.on_start(state, cue);
        self.control = Some(control);
        timeout
    }

    /// Records a departing transmission, so that an answer can identify it.
    pub(crate) fn note_departure(&mut self, at: Instant, timeout: Duration) {
        let departure = TransmissionRecord { at, timeout, message_id: Some(self.message_id) };
        self.departures.get_or_insert_default().0.push(departure);
    }

    /// Returns whether an answer can identify one of the transmissions so far.
    pub(crate) fn is_marked(&self) -> bool {
        self.departures.as_ref().is_some_and(|departures| !departures.0.is_empty())
    }

    /// Drops the transmissions of the previous exchange in this slot.
    pub(crate) fn forget_departures(&mut self) {
        if let Some(departures) = &mut self.departures {
            departures.0.clear();
        }
    }

    /// Marks the content of the transmissions so far as outdated. Only later transmissions can be acknowledged.
    pub(crate) fn outdate_departures(&mut self) {
        for departure in self.departures.iter_mut().flat_map(|departures| &mut departures.0) {
            departure.message_id = None;
        }
    }

    /// Returns how the transmissions are marked if the mechanism wants the marking `wanted`.
    ///
    /// * Only confirmable requests and notifications are marked. A separate response must have the token of its
    ///   request, and an empty message has no token (RFC 7252 §4.1).
    /// * A notification has the token of the registration and may change its content at any time. Each transmission
    ///   gets its own Message ID.
    /// * A request that the endpoint made confirmable may have a token without space for another byte. Then
    ///   it is not marked.
    /// * A server executes each copy that has its own Message ID. So only a repeatable request is marked in this way. A
    ///   repeatable request for a part of a body always is, so that each answer shows which earlier copies are lost.
    pub(crate) fn marking(&self, wanted: Marking) -> Marking {
        let in_token = matches!(wanted, Marking::Token | Marking::TokenOnRetransmit);
        let room = !(in_token && self.token.is_full());
        let harmless = wanted != Marking::FreshMessageId || self.repeatable;
        match self.purpose {
            ExchangePurpose::Request if self.confirmable && room && harmless => wanted,
            ExchangePurpose::Part if self.repeatable => Marking::FreshMessageId,
            ExchangePurpose::Notification if self.confirmable && wanted != Marking::None => {
                Marking::FreshMessageId
            }
            _ => Marking::None,
        }
    }

    /// Returns whether a message of this exchange has departed with this Message ID.
    pub(crate) fn departed_as(&self, message_id: u16) -> bool {
        self.departed && self.message_id == message_id || self.ordinal_of(message_id).is_some()
    }

    /// Returns the ordinal of the first recorded transmission with this Message ID. The ordinal identifies the
    /// transmission only if each transmission has its own Message ID.
    pub(crate) fn ordinal_of(&self, message_id: u16) -> Option<u8> {
        let Departures(departures) = self.departures.as_deref()?;
        Some(departures.iter().position(|departure| departure.message_id == Some(message_id))? as u8)
    }

    /// Returns the round-trip sample of an answer that arrives `now` and identifies the transmission `answered`.
    ///
    /// A server may repeat its first answer for every copy (RFC 7252 §4.5). An answer that identifies an earlier
    /// transmission may thus belong to a later one. Such an answer is believed in two cases: the peer `answers_each`
    /// copy with the marking of that copy, or the timeout of the identified transmission has not passed.
    pub(crate) fn sample(&self, now: Instant, answered: Option<u8>, answers_each: bool) -> Sample {
        let answered = answered.and_then(|ordinal| {
            let departure = self.departures.as_deref()?.0.get(usize::from(ordinal))?;
            let since = now.since(departure.at);
            let believed = answers_each || ordinal == self.retransmits || since < departure.timeout;
            believed.then_some(Answer { ordinal, since })
        });
        Sample {
            since_first: now.since(self.first),
            since_last: now.since(self.last),
            retransmits: self.retransmits,
            answered,
        }
    }
}
