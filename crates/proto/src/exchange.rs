//! One exchange that this endpoint began.

use alloc::boxed::Box;
use alloc::vec::Vec;

use coapace_control::{Answer, Controller, Duration, Instant, Marking, Outcome, Sample};
use smallvec::SmallVec;

use crate::code::Code;
use crate::message::Token;
use crate::slab::Linked;

/// The name of an exchange until its last event. It is not used again while that event is outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// One transmission of one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The exchange, counted from 0 in the order in which they were begun.
    pub exchange: u32,
    /// The transmission, 0 for the first.
    pub transmission: u8,
}

/// The reason for an exchange. It decides which answer is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExchangePurpose {
    /// A request: a response is due.
    Request,
    /// A confirmable request for a part of a body, in the [lane](crate::lane::Lane) of its peer: a response is due.
    Part,
    /// A request with the Observe option: a response is due, and notifications after it.
    Observation,
    /// A request that asks for no response (RFC 7967): an acknowledgement is due if it is confirmable.
    Statement,
    /// A request to a group, never confirmable: responses may come from any address.
    Group,
    /// A separate response: an acknowledgement is due.
    Response,
    /// A separate response with a part of a body, in the lane of its peer: an acknowledgement is due.
    PartOfResponse,
    /// A notification to an observer: an acknowledgement is due if it is confirmable.
    Notification,
    /// An empty confirmable message: a Reset is due.
    Ping,
}

impl ExchangePurpose {
    /// Returns whether the exchange is in the lane of its peer.
    pub(crate) const fn is_in_lane(self) -> bool {
        matches!(self, Self::Part | Self::PartOfResponse)
    }

    /// Returns whether a response from the peer belongs to the exchange.
    pub(crate) const fn takes_response(self) -> bool {
        matches!(self, Self::Request | Self::Part | Self::Observation | Self::Statement)
    }

    /// Returns whether a response is still due after an empty acknowledgement.
    pub(crate) const fn awaits_response(self) -> bool {
        matches!(self, Self::Request | Self::Part | Self::Observation)
    }

    /// Returns whether no answer is due after the departure of a non-confirmable message.
    pub(crate) const fn ends_with_departure(self) -> bool {
        matches!(self, Self::Statement | Self::Group | Self::Notification)
    }

    /// Returns whether the endpoint may send the message as confirmable although the application did not ask
    /// for that.
    pub(crate) const fn may_be_confirmable(self) -> bool {
        !matches!(self, Self::Response | Self::PartOfResponse | Self::Group)
    }
}

/// The stage that an exchange is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExchangeStage {
    /// Waits for a place of NSTART, or until its rate allows it to depart.
    Waiting,
    /// Is in the line of departures.
    Due,
    /// Was transmitted. An acknowledgement or a response is due.
    InFlight,
    /// The last copy counts as lost, and the exchange waits for its place in the window again. Only an exchange in a lane
    /// has this stage.
    Lost,
    /// Was acknowledged. The separate response is due.
    Acknowledged,
    /// Is over. The slot is free, or will be once the line of departures has passed it.
    Ended,
    /// Is over without success. Its event has yet to be returned.
    Failed(Failure),
}

impl ExchangeStage {
    pub(crate) const fn is_over(self) -> bool {
        matches!(self, Self::Ended | Self::Failed(_))
    }
}

/// The end of an exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ExchangeEnd {
    /// The exchange got the answer that it asked for. The mechanism gets this outcome.
    Answered(Outcome),
    /// No answer is due, or nobody waits for it any longer.
    Cancelled,
    /// The exchange failed.
    Failed(Failure),
}

/// The cause of a failed exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No answer arrived until the timeout after the last retransmission passed, or until the last
    /// retransmission departed if the mechanism waits no longer than that.
    GivenUp,
    /// The peer rejected the message with a Reset.
    Reset,
    /// The response to an acknowledged or non-confirmable request did not come in time.
    TimedOut,
}

#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // They are independent of each other.
pub(crate) struct OpenExchange<C: Controller> {
    /// The departure of the first transmission. Before that: the moment at which the exchange was begun.
    pub(crate) first: Instant,
    /// The departure of the last transmission.
    pub(crate) last: Instant,
    /// The mechanism's memory of this exchange, from the first departure on.
    pub(crate) control: Option<C::Exchange>,
    /// Options and payload, encoded.
    pub(crate) tail: SmallVec<[u8; 16]>,
    /// The transmissions so far. They are kept only if the mechanism marks transmissions.
    departures: Option<Box<Departures>>,
    /// The slot of the peer.
    pub(crate) peer: u32,
    /// The next slot in the list that this one is in: waiting, active, failed or free.
    next: u32,
    /// The next slot in the line of departures.
    pub(crate) next_due: u32,
    /// The number of exchanges that have used the slot before.
    pub(crate) generation: u32,
    /// The number of exchanges that the endpoint had begun before this one.
    pub(crate) ordinal: u32,
    pub(crate) message_id: u16,
    pub(crate) token: Token,
    pub(crate) code: Code,
    pub(crate) confirmable: bool,
    /// True if a server may carry out the request more than once.
    pub(crate) repeatable: bool,
    /// True if an [allowance](crate::rare::Rare::allowances) limits its messages.
    pub(crate) limited: bool,
    pub(crate) purpose: ExchangePurpose,
    pub(crate) stage: ExchangeStage,
    pub(crate) retransmits: u8,
    /// True if the first transmission has departed.
    pub(crate) departed: bool,
    /// True if the slot is in the line of departures. It stays there until the line has passed it, even if an
    /// answer arrives first.
    pub(crate) in_line: bool,
}

/// The transmissions of an exchange. They lie behind one pointer because most mechanisms have no use for
/// them.
#[derive(Debug, Default)]
struct Departures(Vec<TransmissionRecord>);

/// One transmission.
#[derive(Clone, Copy, Debug)]
struct TransmissionRecord {
    at: Instant,
    /// The timeout that was armed for it.
    timeout: Duration,
    /// `None` if its content is out of date. An acknowledgement of it then does not belong to the exchange.
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

    /// Counts a transmission that departs. Returns its name.
    pub(crate) fn count_transmission(&mut self) -> Step {
        let again = core::mem::replace(&mut self.departed, true);
        self.retransmits = self.retransmits.saturating_add(u8::from(again));
        Step { exchange: self.ordinal, transmission: self.retransmits }
    }

    /// Remembers a transmission that departs, so that an answer can name it.
    pub(crate) fn note_departure(&mut self, at: Instant, timeout: Duration) {
        let departure = TransmissionRecord { at, timeout, message_id: Some(self.message_id) };
        self.departures.get_or_insert_default().0.push(departure);
    }

    /// Returns whether an answer can name one of the transmissions so far.
    pub(crate) fn is_marked(&self) -> bool {
        self.departures.as_ref().is_some_and(|departures| !departures.0.is_empty())
    }

    /// Forgets the transmissions of the exchange that used this slot before.
    pub(crate) fn forget_departures(&mut self) {
        if let Some(departures) = &mut self.departures {
            departures.0.clear();
        }
    }

    /// Notes that the content of the transmissions so far is out of date. Only later transmissions can be
    /// acknowledged.
    pub(crate) fn outdate_departures(&mut self) {
        for departure in self.departures.iter_mut().flat_map(|departures| &mut departures.0) {
            departure.message_id = None;
        }
    }

    /// Returns how the transmissions are marked if the mechanism wants `wanted`.
    ///
    /// * Only confirmable requests and notifications are marked. A separate response must have the token of
    ///   its request, and an empty message has no token (RFC 7252 §4.1).
    /// * A notification has the token of the registration and may change its content at any time. Each
    ///   transmission gets a Message ID of its own.
    /// * A request that the endpoint made confirmable may have a token without room for a byte.
    /// * A server carries out each copy that has a Message ID of its own. Only a repeatable request is marked so. A
    ///   repeatable request of a body always is, so that each answer shows which earlier copies are lost.
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

    /// Returns the ordinal of the transmission that had this Message ID, if each had its own.
    pub(crate) fn ordinal_of(&self, message_id: u16) -> Option<u8> {
        let Departures(departures) = self.departures.as_deref()?;
        Some(departures.iter().position(|departure| departure.message_id == Some(message_id))? as u8)
    }

    /// Returns the facts of an answer that arrives `now` and names the transmission `answered`.
    ///
    /// A server may repeat its first answer for every copy (RFC 7252 §4.5). An answer that names an earlier
    /// transmission may thus belong to a later one. It is believed in two cases: the peer `answers_each` copy
    /// with the marking of that copy, or the timeout of the named transmission has not passed.
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
