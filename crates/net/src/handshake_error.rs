//! Why there is no secure connection: DTLS and TLS, for clients.

use std::fmt;
use std::io;

/// Why there is no session with a server.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// The client has no keys: [`ClientBuilder::dtls`](crate::ClientBuilder::dtls) was not called.
    NoKeys,
    /// The server does not accept: the description of its alert (RFC 5246 §7.2). 20, 51 and 115 mean that it does not
    /// know the identity, or another key; 40, that it has no cipher suite in common.
    Alert(u8),
    /// The handshake took too long: nobody is there, or the server keeps silent about a wrong key.
    TimedOut,
    /// The network says that the server cannot be reached.
    Unreachable(io::ErrorKind),
    /// The session was given up for others, or the client was closed.
    GivenUp,
    /// The server did what the protocol does not allow.
    Protocol(String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKeys => f.write_str("the client has no keys for DTLS"),
            Self::Alert(20 | 51 | 115) => f.write_str("the server does not accept the identity or the key"),
            Self::Alert(number) => write!(f, "the server refused with alert {number}"),
            Self::TimedOut => f.write_str("the DTLS handshake took too long"),
            Self::Unreachable(kind) => write!(f, "unreachable: {kind}"),
            Self::GivenUp => f.write_str("the DTLS session was given up"),
            Self::Protocol(what) => write!(f, "the DTLS handshake failed: {what}"),
        }
    }
}

impl std::error::Error for Refused {}

/// Why there is no TLS with a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TlsError {
    /// The client was given no certificates to trust: [`ClientBuilder::certificates`](crate::ClientBuilder::certificates)
    /// was not called.
    NoRoots,
    /// The peer's certificate comes from nobody that is trusted.
    UnknownIssuer,
    /// The certificate is another server's. Holds the name, or address, that it should be for.
    NotValidFor(String),
    /// The certificate has expired.
    Expired,
    /// The certificate is not valid yet.
    NotYetValid,
    /// The peer ends the handshake; holds what its alert says.
    Refused(String),
    /// Anything else.
    Other(String),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRoots => f.write_str("the client trusts no certificates"),
            Self::UnknownIssuer => f.write_str("certificate of an unknown issuer"),
            Self::NotValidFor(name) => write!(f, "certificate not valid for {name}"),
            Self::Expired => f.write_str("certificate expired"),
            Self::NotYetValid => f.write_str("certificate not valid yet"),
            Self::Refused(alert) => write!(f, "refused by the peer: {alert}"),
            Self::Other(what) => write!(f, "TLS failed: {what}"),
        }
    }
}

impl std::error::Error for TlsError {}
