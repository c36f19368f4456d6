//! A line: one request and the exchange that forwards it.

use std::net::SocketAddr;

use coapace_control::Instant;
use coapace_proto::{NotificationOrder, Responder, Token};

/// The link between a request that arrived at one face and the exchange at the other.
#[derive(Debug)]
pub(crate) struct RelayedExchange {
    /// The return address of the request, at the face where it arrived.
    pub(crate) responder: Responder<SocketAddr>,
    /// True if the request was confirmable.
    pub(crate) confirmable: bool,
    /// True if the request asks for no response (RFC 7967), so that its acknowledgement ends the line. If the request
    /// is non-confirmable, the line ends when [`until`](Self::until) has passed.
    pub(crate) is_statement: bool,
    /// True if the client's address was unverified when the request arrived.
    pub(crate) is_stranger: bool,
    /// The peer of the exchange.
    pub(crate) peer: SocketAddr,
    /// The token of the exchange.
    pub(crate) token: Token,
    /// The observation, if the request asks for one.
    pub(crate) observation: Option<RelayedObservation>,
    /// The end of the wait for the response to a non-confirmable request, even if the request asks for no response.
    pub(crate) until: Option<Instant>,
    /// The options of the request to the server, if the response may be the first block of a body to read ahead;
    /// otherwise `None`.
    pub(crate) front: Option<Vec<u8>>,
}

/// An observation that passes through the relay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RelayedObservation {
    /// The resource number of the observation at the endpoint where it was registered. Each observation has a number of
    /// its own, and so one observer.
    pub(crate) resource: u64,
    /// The order of the notifications so far, which shows whether the next one arrives after a newer one.
    pub(crate) order: NotificationOrder,
}
