//! The reason why a connection is lost, which is the error of all its requests.

use std::io;

use super::wire::ConnectionEnd;
use crate::Error;
use crate::secure::tls_error;

/// The reason why a connection could not be opened, or why it has ended.
#[derive(Clone, Debug)]
pub(crate) enum ConnectionFailure {
    /// An error of the system, or the end of the stream.
    Io(io::ErrorKind),
    /// An error of TLS.
    Tls(crate::TlsError),
    /// A protocol violation by the peer, or by its HTTP server.
    Protocol(String),
}

impl ConnectionFailure {
    /// Converts the error of an attempt to open a connection to the host `name`.
    pub(crate) fn opening(error: &io::Error, name: &str) -> Self {
        if let Some(error) = tls_error(error, name) {
            return Self::Tls(error);
        }
        match error.get_ref() {
            // The WebSocket layer reports the answer of an HTTP server with this kind.
            Some(cause) if error.kind() == io::ErrorKind::InvalidData => Self::Protocol(cause.to_string()),
            _ => Self::Io(error.kind()),
        }
    }

    /// Converts the end of an open connection to the host `name`.
    pub(crate) fn open(ended: &ConnectionEnd, name: &str) -> Self {
        match ended {
            // In TLS 1.3 a server refuses a certificate when the client's handshake is already complete.
            ConnectionEnd::Io(error) => Self::opening(error, name),
            ConnectionEnd::Broken(broken) => {
                Self::Protocol(format!("the server breaks RFC 8323: {broken:?}"))
            }
            ConnectionEnd::Aborted => Self::Io(io::ErrorKind::ConnectionAborted),
        }
    }
}

impl From<ConnectionFailure> for Error {
    fn from(lost: ConnectionFailure) -> Self {
        match lost {
            ConnectionFailure::Io(kind) => Self::Connection(kind),
            ConnectionFailure::Tls(error) => Self::Tls(error),
            ConnectionFailure::Protocol(what) => Self::Protocol(what),
        }
    }
}
