//! One exchange that this endpoint began.

use alloc::boxed::Box;
use alloc::vec::Vec;

use coapace_control::{Answer, Controller, Duration, Instant, Marking, Sample};
use smallvec::SmallVec;

use crate::code::Code;
use crate::message::Token;
use crate::slab::Slot;

/// Names an exchange until its last event; never reused while that event is outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

/// What an exchange is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A request: a response is due.
    Request,
    /// A request with the Observe option: a response is due, and then notifications.
    Observation,
    /// A request that asks for no response (RFC 7967): if it is confirmable, an acknowledgement is due.
    Statement,
    /// A request to a group, never confirmable: responses may come from anywhere.
    Group,
    /// A separate response: an acknowledgement is due.
    Response,
    /// One more response to an observer: if it is confirmable, an acknowledgement is due.
    Notification,
    /// An empty confirmable message: a reset is due.
    Ping,
}

impl Purpose {
    /// Whether a response from the peer belongs to it.
    pub(crate) const fn takes_response(self) -> bool {
        matches!(self, Self::Request | Self::Observation | Self::Statement)
    }

    /// Whether a response is still due when the peer has acknowledged.
    pub(crate) const fn awaits_response(self) -> bool {
        matches!(self, Self::Request | Self::Observation)
    }

    /// Whether nothing is due once a non-confirmable one has departed.
    pub(crate) const fn ends_with_departure(self) -> bool {
        matches!(self, Self::Statement | Self::Group | Self::Notification)
    }

    /// Whether it may depart as confirmable, though that was not asked for.
    pub(crate) const fn may_be_confirmable(self) -> bool {
        !matches!(self, Self::Response | Self::Group)
    }
}

/// Where an exchange stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// For a place of NSTART, or for its moment.
    Waiting,
    /// In the line of departures.
    Due,
    /// Transmitted; an acknowledgement or a response is due.
    InFlight,
    /// Acknowledged; the separate response is due.
    Acknowledged,
    /// Over; the slot is free, or will be once the line of departures has passed it.
    Ended,
    /// Over without success, to be told to the application.
    Failed(Failure),
}

/// Why an exchange failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The timeout after the last retransmission passed, or the mechanism does not wait for it: nothing was heard.
    GivenUp,
    /// The peer rejected the message.
    Reset,
    /// The response to an acknowledged or non-confirmable request did not come in time.
    TimedOut,
}

#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // Four facts of their own.
pub(crate) struct Exchange<C: Controller> {
    /// When the first transmission departed; until then, when the exchange was begun.
    pub(crate) first: Instant,
    pub(crate) last: Instant,
    /// What the mechanism remembers, from the first departure on.
    pub(crate) control: Option<C::Exchange>,
    /// Options and payload.
    pub(crate) tail: SmallVec<[u8; 16]>,
    /// When and under which Message ID each transmission departed; kept only if the mechanism marks transmissions.
    departures: Option<Box<Departures>>,
    pub(crate) peer: u32,
    /// The next in the list of the peer, or of those that failed.
    pub(crate) next: u32,
    /// The next in the line of departures.
    pub(crate) next_due: u32,
    pub(crate) generation: u32,
    /// How many exchanges the endpoint had begun before.
    pub(crate) ordinal: u32,
    pub(crate) message_id: u16,
    pub(crate) token: Token,
    pub(crate) code: Code,
    pub(crate) confirmable: bool,
    /// Whether a server may carry it out more than once.
    pub(crate) repeatable: bool,
    pub(crate) purpose: Purpose,
    pub(crate) stage: Stage,
    pub(crate) retransmits: u8,
    /// Whether the first transmission has left.
    pub(crate) departed: bool,
    /// Whether it stands in the line of departures: due, or overtaken there by an answer.
    pub(crate) in_line: bool,
}

/// The transmissions of an exchange. Behind one pointer: most mechanisms have no use for them.
#[derive(Debug, Default)]
struct Departures(Vec<Departure>);

/// One transmission.
#[derive(Clone, Copy, Debug)]
struct Departure {
    at: Instant,
    /// What was armed for it.
    timeout: Duration,
    /// None if what it said is out of date: an acknowledgement of it is not one of the exchange.
    message_id: Option<u16>,
}

impl<C: Controller> Slot for Exchange<C> {
    fn next_free(&mut self) -> &mut u32 {
        &mut self.next
    }
}

impl<C: Controller> Exchange<C> {
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
            purpose: Purpose::Request,
            stage: Stage::Ended,
            retransmits: 0,
            departed: false,
            in_line: false,
        }
    }

    /// Notes that a transmission departs.
    pub(crate) fn note_departure(&mut self, at: Instant, timeout: Duration) {
        let departure = Departure { at, timeout, message_id: Some(self.message_id) };
        self.departures.get_or_insert_default().0.push(departure);
    }

    /// Whether its transmissions can be told apart.
    pub(crate) fn is_marked(&self) -> bool {
        self.departures.as_ref().is_some_and(|departures| !departures.0.is_empty())
    }

    /// Forgets the transmissions of the exchange before.
    pub(crate) fn forget_departures(&mut self) {
        if let Some(departures) = &mut self.departures {
            departures.0.clear();
        }
    }

    /// What departed says what is no longer so: only what departs from now on can be acknowledged.
    pub(crate) fn outdate_departures(&mut self) {
        for departure in self.departures.iter_mut().flat_map(|departures| &mut departures.0) {
            departure.message_id = None;
        }
    }

    /// How its transmissions are told apart, if the mechanism wants `wanted`: only confirmable requests and notifications
    /// are marked. A separate response has the token of its request, and an empty message is four bytes (RFC 7252 §4.1):
    /// so of a notification, which may be sent anew at any time, each transmission has a Message ID of its own. A request
    /// that was to be non-confirmable may have a token without room, and what has a Message ID of its own is carried out
    /// again.
    pub(crate) fn marking(&self, wanted: Marking) -> Marking {
        let in_token = matches!(wanted, Marking::Token | Marking::TokenOnRetransmit);
        let room = !(in_token && self.token.is_full());
        let harmless = wanted != Marking::FreshMessageId || self.repeatable;
        match self.purpose {
            Purpose::Request if self.confirmable && room && harmless => wanted,
            Purpose::Notification if self.confirmable && wanted != Marking::None => Marking::FreshMessageId,
            _ => Marking::None,
        }
    }

    /// Whether a message with this Message ID has left for this exchange.
    pub(crate) fn departed_as(&self, message_id: u16) -> bool {
        self.departed && self.message_id == message_id || self.ordinal_of(message_id).is_some()
    }

    /// The transmission that had this Message ID, where each has its own.
    pub(crate) fn ordinal_of(&self, message_id: u16) -> Option<u8> {
        let Departures(departures) = self.departures.as_deref()?;
        Some(departures.iter().position(|departure| departure.message_id == Some(message_id))? as u8)
    }

    /// The facts of an answer that arrives `now` and names the transmission `answered`.
    ///
    /// A server may repeat its first answer for every copy (RFC 7252 §4.5), so an answer that names an earlier transmission
    /// than the last may be one to a later. It is believed where the peer `answers_each` copy with the copy's own marking, or
    /// where it comes before the timeout of the transmission it names has passed.
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
