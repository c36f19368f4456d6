//! Why a request has no response.

use std::{fmt, io};

use coapace_proto::SendError;
use coapace_proto::block::TransferError;

use crate::Response;
use crate::uri::{BadUri, Scheme};

/// Why a client's request has no response.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The text is no URI.
    Uri(BadUri),
    /// There is no transport for this scheme.
    Scheme(Scheme),
    /// The name of the host could not be resolved.
    NotFound {
        /// The name.
        host: String,
        /// The error of the resolver.
        error: io::Error,
    },
    /// Every transmission was in vain.
    GivenUp {
        /// The number of transmissions.
        transmissions: u8,
    },
    /// The peer rejected the message (RFC 7252 §4.2).
    Reset,
    /// The server answered a registration (RFC 7641 §2) with an error, so there is nothing to observe.
    NotObserved(Box<Response>),
    /// There was no response in time.
    TimedOut,
    /// The network says that the destination cannot be reached: ICMP, or the own system.
    Unreachable(io::ErrorKind),
    /// The response has an option that must be understood, and is not (RFC 7252 §5.4.1); its number.
    BadOption(u16),
    /// The request does not fit into a message.
    TooLarge {
        /// Its options and payload, in bytes.
        bytes: usize,
    },
    /// The block-wise transfer of a body (RFC 7959) cannot go on, or an option of the request is none that a server would
    /// recognise.
    Transfer(TransferError),
    /// A table of the endpoint is full.
    Busy(SendError),
    /// More mechanisms and parameters side by side than a client keeps endpoints for.
    TooManyProfiles,
    /// There is no DTLS session with the server.
    Session(crate::Refused),
    /// There is no TLS with the server.
    Tls(crate::TlsError),
    /// The server of a connection, or the HTTP server before it, does not do what it should.
    Protocol(String),
    /// The connection could not be opened, or has ended before the response.
    Connection(io::ErrorKind),
    /// The client was closed, or the runtime it ran on.
    Closed,
    /// The system refused a socket.
    Io(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uri(bad) => write!(f, "bad URI: {bad}; a URI is as in coap://[::1]:5683/path"),
            Self::Scheme(scheme) => {
                write!(f, "no transport for {scheme} here; use coap, or a client or a feature that has it")
            }
            Self::NotFound { host, error } => write!(f, "{host} not found: {error}; check the name"),
            Self::GivenUp { transmissions } => {
                let plural = if *transmissions == 1 { "" } else { "s" };
                write!(f, "given up after {transmissions} transmission{plural}; check address, port and network")
            }
            Self::Reset => {
                f.write_str("rejected by the peer with a Reset; what is there knows nothing of this message")
            }
            Self::NotObserved(response) => write!(f, "the server answered {}", response.code),
            Self::TimedOut => f.write_str("no response in time; wait longer, or check address and port"),
            Self::Unreachable(kind) => write!(f, "unreachable: {kind}; check address, port and network"),
            Self::BadOption(number) => {
                write!(f, "the response has the option {number}, which must be understood and is not")
            }
            Self::TooLarge { bytes } => {
                write!(f, "{bytes} bytes of options and payload do not fit into a message; use fewer options")
            }
            Self::Transfer(error) => error.fmt(f),
            Self::Busy(error @ SendError::TokenTooLong) => error.fmt(f),
            Self::Busy(error) => write!(f, "{error}; wait for some to end, or raise the bound in Config"),
            Self::TooManyProfiles => f.write_str(
                "too many mechanisms and parameters side by side; use the same for some requests, or another client",
            ),
            Self::Session(refused) => refused.fmt(f),
            Self::Tls(error) => error.fmt(f),
            Self::Protocol(what) => f.write_str(what),
            Self::Connection(kind) => write!(f, "no connection: {kind}; check the port, and which protocol it speaks"),
            Self::Closed => f.write_str("the client is closed, or its runtime has ended; use another client"),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Uri(bad) => Some(bad),
            Self::NotFound { error, .. } | Self::Io(error) => Some(error),
            Self::Transfer(error) => Some(error),
            Self::Busy(error) => Some(error),
            Self::Session(refused) => Some(refused),
            Self::Tls(error) => Some(error),
            _ => None,
        }
    }
}

impl From<BadUri> for Error {
    fn from(bad: BadUri) -> Self {
        Self::Uri(bad)
    }
}

impl From<TransferError> for Error {
    fn from(error: TransferError) -> Self {
        Self::Transfer(error)
    }
}

impl From<SendError> for Error {
    fn from(error: SendError) -> Self {
        Self::Busy(error)
    }
}
