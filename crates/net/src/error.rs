//! Errors of requests, and of the handshakes before them.

use std::io;

use coapace_proto::SendError;
use coapace_proto::block::TransferError;

use crate::Response;
use crate::uri::{BadUri, Scheme};

/// The reason why a client's request has no response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not a URI.
    #[error("bad URI: {0}; a URI is as in coap://[::1]:5683/path")]
    Uri(#[from] BadUri),
    /// The address does not specify its interface.
    #[error("{0}")]
    Zone(#[from] crate::BadZone),
    /// The address is a group's; a request to a group must not be confirmable (RFC 7252 §8.1).
    #[error("{0} is the address of a group; use Call::group, because each of its members answers")]
    Group(std::net::IpAddr),
    /// This client has no transport for the scheme.
    #[error(
        "this client has no transport for {0}; use coap, a client with that transport, or the feature tls"
    )]
    Scheme(Scheme),
    /// The name of the host could not be resolved.
    #[error("{host} not found: {error}; check the name")]
    NotFound {
        /// The host name.
        host: String,
        /// The error of the resolver.
        #[source]
        error: io::Error,
    },
    /// No transmission was answered.
    #[error("given up after {transmissions} transmission{}; check address, port and network", plural(*.transmissions))]
    GivenUp {
        /// The number of transmissions.
        transmissions: u8,
    },
    /// The peer rejected the message (RFC 7252 §4.2).
    #[error("rejected by the peer with a Reset: it knows nothing of this message")]
    Reset,
    /// The server answered a registration (RFC 7641 §2) with an error, so there is nothing to observe.
    #[error("the server answered {}", .0.code)]
    NotObserved(Box<Response>),
    /// There was no response within the timeout.
    #[error("no response in time; wait longer, or check address and port")]
    TimedOut,
    /// The network (ICMP) or the system reports that the destination cannot be reached. Unless the client [fails
    /// fast](crate::ClientBuilder::fail_fast), it has retransmitted for as long as without this report.
    #[error("unreachable: {0}; check address, port and network")]
    Unreachable(io::ErrorKind),
    /// The response has a critical option of this number that the client does not understand (RFC 7252 §5.4.1).
    #[error("the response has the option {0}, which is critical, and this client does not know it")]
    BadOption(u16),
    /// The request does not fit into a message.
    #[error("{bytes} bytes of options and payload do not fit into a message; use fewer options")]
    TooLarge {
        /// The length of the request's options and payload, in bytes.
        bytes: usize,
    },
    /// The block-wise transfer of a body (RFC 7959) cannot continue, or the request has an invalid option.
    #[error("{0}")]
    Transfer(#[from] TransferError),
    /// The server has answered a request of this method to this path with 4.29, and the Max-Age of that response has
    /// not passed (RFC 8516). Nothing was sent.
    #[error("the server allows no more such requests for {} s; ask later, or set a longer timeout", .wait.as_secs_f32().ceil())]
    TooManyRequests {
        /// The time until the request may be repeated.
        wait: std::time::Duration,
    },
    /// A table of the endpoint is full.
    #[error("{}{}", .0, advice(*.0))]
    Busy(#[from] SendError),
    /// The requests use more combinations of mechanisms and parameters than a client has endpoints for.
    #[error(
        "too many different mechanisms and parameters in use; use the same for several requests, or another client"
    )]
    TooManyProfiles,
    /// The client has no DTLS session with the server.
    #[error("{0}")]
    Session(#[source] Refused),
    /// The client has no TLS connection with the server.
    #[error("{0}")]
    Tls(#[source] TlsError),
    /// The server of a connection, or its HTTP server, violates the protocol.
    #[error("{0}")]
    Protocol(String),
    /// The connection could not be opened, or ended before the response.
    #[error("no connection: {0}; check the port, and which protocol the server speaks there")]
    Connection(io::ErrorKind),
    /// The client was closed, or its runtime has ended.
    #[error("the client is closed, or its runtime has ended; use another client")]
    Closed,
    /// The system refused a socket.
    #[error("{0}")]
    Io(#[source] io::Error),
}

/// Returns the plural ending for a number.
fn plural(count: u8) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// Returns the remedy for an error of the endpoint.
fn advice(error: SendError) -> &'static str {
    match error {
        SendError::TokenTooLong => "",
        _ => "; wait for some to end, or raise the bound in Config",
    }
}

/// The reason why a client has no DTLS session with a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// The client has no keys: [`ClientBuilder::dtls`](crate::ClientBuilder::dtls) was not called.
    #[error("the client has no keys for DTLS")]
    NoKeys,
    /// The server refused, with an alert of this description (RFC 5246 §7.2). 20, 51 and 115 mean that it does not know the
    /// identity, or has another key for it. 40 means that both ends have no cipher suite in common.
    #[error("{}", alert(*.0))]
    Alert(u8),
    /// The handshake took too long: no server is there, or the server does not answer a client with a wrong key.
    #[error("the DTLS handshake took too long")]
    TimedOut,
    /// The network reports that the server cannot be reached.
    #[error("unreachable: {0}")]
    Unreachable(io::ErrorKind),
    /// The session was dropped to make room for others, or the client was closed.
    #[error("the DTLS session was given up")]
    GivenUp,
    /// The server violated the protocol.
    #[error("the DTLS handshake failed: {0}")]
    Protocol(String),
}

fn alert(number: u8) -> String {
    match number {
        20 | 51 | 115 => String::from("the server does not accept the identity or the key"),
        number => format!("the server refused with alert {number}"),
    }
}

/// The reason why a client has no TLS connection with a server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// The client has no certificates to trust: [`ClientBuilder::certificates`](crate::ClientBuilder::certificates) was not
    /// called.
    #[error("the client trusts no certificates")]
    NoRoots,
    /// The issuer of the peer's certificate is not trusted.
    #[error("certificate of an unknown issuer")]
    UnknownIssuer,
    /// The certificate is for another server. Holds the name, or address, that it should be for.
    #[error("certificate not valid for {0}")]
    NotValidFor(String),
    /// The certificate has expired.
    #[error("certificate expired")]
    Expired,
    /// The certificate is not valid yet.
    #[error("certificate not valid yet")]
    NotYetValid,
    /// The peer ended the handshake. Holds the meaning of its alert.
    #[error("refused by the peer: {0}")]
    Refused(String),
    /// TLS failed for another reason.
    #[error("TLS failed: {0}")]
    Other(String),
}
