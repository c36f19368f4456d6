//! The events that the endpoint returns to the application.

use crate::allowance::Allowance;
use crate::code::Code;
use crate::exchange::{ExchangeId, Failure};
use crate::message::{Message, Token};
use crate::registrations::Observer;

/// The return address of a request, with all that an answer needs. The application keeps it until it answers, so that
/// the endpoint needs no memory for it.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // They are independent of each other.
pub struct Responder<A> {
    /// The address of the client.
    pub to: A,
    /// The method of the request.
    pub method: Code,
    /// True if the request came to a group. Then only [some responses](crate::group::is_worth_sending) are sent, and after a
    /// delay.
    pub group: bool,
    pub(crate) message_id: u16,
    pub(crate) token: Token,
    pub(crate) confirmable: bool,
    pub(crate) acknowledged: bool,
    pub(crate) rexmit_cnt: Option<u8>,
    pub(crate) remembered: bool,
    pub(crate) allowance: Allowance,
}

impl<A> Responder<A> {
    /// Returns the token of the request.
    pub fn token(&self) -> Token {
        self.token
    }

    /// Returns false if no slot was free to remember the request, so that a copy of it would be executed again
    /// ([`Endpoint::keep_requests`](crate::Endpoint::keep_requests)). Do not execute such a request: answer 5.03, or
    /// ask for an [Echo option](crate::echo), and [remember](crate::Endpoint::remember) the request if its source is
    /// verified.
    pub const fn is_remembered(&self) -> bool {
        self.remembered
    }

    /// Returns this responder with an `allowance`, because the source of the request is unverified. The allowance
    /// limits the copies of a separate response, and the messages to the source as an
    /// [observer](crate::Endpoint::register_stranger). A message beyond it is not sent. The application must keep the
    /// first response [within it](Allowance::room).
    #[must_use]
    pub fn limited(self, allowance: Allowance) -> Self {
        Self { allowance, ..self }
    }

    /// Returns the remaining allowance.
    pub const fn allowance(&self) -> Allowance {
        self.allowance
    }

    /// Creates a responder for a later, non-confirmable response to a request from `to` that had this method and token.
    pub const fn later(to: A, method: Code, token: Token) -> Self {
        Self {
            to,
            method,
            group: false,
            message_id: 0,
            token,
            confirmable: false,
            acknowledged: false,
            rexmit_cnt: None,
            remembered: true,
            allowance: Allowance::UNLIMITED,
        }
    }

    /// Returns a responder for a further response to the same request, such as another block of a set (RFC 9177 §4.4). It is a
    /// separate message, confirmable if the request was.
    #[must_use]
    pub fn further(self) -> Self {
        Self { acknowledged: true, ..self }
    }

    /// Returns this responder for a non-confirmable response, even if the request was confirmable (RFC 7252 §5.2.2).
    /// [`Endpoint::respond`](crate::Endpoint::respond) then sends the response in a separate message without keeping
    /// state. A confirmable request must still be [acknowledged](crate::Endpoint::acknowledge).
    #[must_use]
    pub fn unconfirmed(self) -> Self {
        Self { confirmable: false, ..self }
    }
}

/// An event that the endpoint returns to the application.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a, A> {
    /// A request arrived. Answer it with [`Endpoint::respond`](crate::Endpoint::respond).
    Request {
        /// The return address.
        responder: Responder<A>,
        /// The request.
        message: Message<'a>,
    },
    /// The response to a request arrived. The exchange has ended.
    Response {
        /// The exchange of the request.
        exchange: ExchangeId,
        /// The response. It has the token of the request, without a marking.
        message: Message<'a>,
    },
    /// An empty acknowledgement arrived. If the exchange is a request that asks for a response, the response will come
    /// separately. Any other exchange has ended.
    Acknowledged {
        /// The exchange of the request or of the separate response.
        exchange: ExchangeId,
    },
    /// The peer answered a [`ping`](crate::Endpoint::ping). The exchange has ended.
    Pong {
        /// The exchange of the ping.
        exchange: ExchangeId,
    },
    /// A further response arrived to an observation (RFC 7641) or to a request to a group (RFC 7252 §8). A
    /// notification without the Observe option, or with a code other than 2.xx, is the last.
    Notification {
        /// The exchange of the observation or of the request to a group.
        exchange: ExchangeId,
        /// The response.
        message: Message<'a>,
    },
    /// A notification was rejected or given up, and the observer is removed.
    ObserverGone {
        /// The observer.
        observer: Observer<A>,
        /// The reason.
        failure: Failure,
    },
    /// A response has a critical option that is not [recognised](crate::Config::recognised). It is rejected (RFC 7252 §5.4.1),
    /// and the exchange or the observation has ended. Answers of other members of a group are not affected.
    Rejected {
        /// The exchange of the request.
        exchange: ExchangeId,
        /// The number of the option.
        option: u16,
    },
    /// An exchange has failed.
    Failed {
        /// The exchange.
        exchange: ExchangeId,
        /// The reason.
        failure: Failure,
    },
}
