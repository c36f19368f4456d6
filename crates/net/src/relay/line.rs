//! One request and the exchange that passes it on.

use std::net::SocketAddr;

use coapace_control::Instant;
use coapace_proto::{Observation, Responder, Token};

/// The bond between a request that arrived at one face and the exchange at the other.
#[derive(Debug)]
pub(super) struct RelayedExchange {
    /// The return address of the request, at the face where it arrived.
    pub(super) responder: Responder<SocketAddr>,
    /// True if the request was confirmable.
    pub(super) confirmable: bool,
    /// True if the request asks for no response (RFC 7967): its acknowledgement ends the line. A non-confirmable one counts as a
    /// line of its source until it must have departed.
    pub(super) is_statement: bool,
    /// True if nobody had verified the client.
    pub(super) is_stranger: bool,
    /// The peer of the exchange.
    pub(super) peer: SocketAddr,
    /// The token of the exchange.
    pub(super) token: Token,
    /// The observation, if the request asks for one.
    pub(super) observation: Option<RelayedObservation>,
    /// The end of the wait for the response to a non-confirmable request, even if the request asks for no response.
    pub(super) until: Option<Instant>,
    /// The options of the request to the server, if the response may be the first block of a body.
    pub(super) front: Option<Vec<u8>>,
}

/// An observation that passes through the relay.
#[derive(Clone, Copy, Debug)]
pub(super) struct RelayedObservation {
    /// The number of its resource at the face where it was asked for. It has one observer.
    pub(super) resource: u64,
    /// The order of its notifications.
    pub(super) order: Observation,
}
