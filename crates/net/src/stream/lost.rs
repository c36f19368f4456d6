//! Why a connection is lost, told to all who wait for it.

use std::io;

use super::wire::Ended;
use crate::Error;

/// Why there is no connection, or no longer.
#[derive(Clone, Debug)]
pub(crate) enum Lost {
    /// The system, or the peer's end of it.
    Io(io::ErrorKind),
    /// What the library of TLS says.
    #[cfg(feature = "tls")]
    Tls(crate::TlsError),
    /// What the peer did, or its HTTP server.
    Protocol(String),
}

impl Lost {
    /// What came of opening a connection to the host of this name.
    pub(crate) fn opening(error: &io::Error, name: &str) -> Self {
        #[cfg(feature = "tls")]
        if let Some(error) = error.get_ref().and_then(|error| error.downcast_ref()) {
            return Self::Tls(crate::TlsError::of(error, name));
        }
        let _ = name;
        match error.get_ref() {
            Some(said) if error.kind() == io::ErrorKind::InvalidData => Self::Protocol(said.to_string()),
            _ => Self::Io(error.kind()),
        }
    }

    /// What came of a connection that was open.
    pub(crate) fn open(ended: &Ended, name: &str) -> Self {
        match ended {
            // A server of TLS 1.3 refuses a certificate after the client has taken the handshake for done.
            Ended::Io(error) => Self::opening(error, name),
            Ended::Broken(broken) => Self::Protocol(format!("the server breaks RFC 8323: {broken:?}")),
            Ended::Aborted => Self::Io(io::ErrorKind::ConnectionAborted),
        }
    }
}

impl From<io::ErrorKind> for Lost {
    fn from(kind: io::ErrorKind) -> Self {
        Self::Io(kind)
    }
}

impl From<Lost> for Error {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::Io(kind) => Self::Connection(kind),
            #[cfg(feature = "tls")]
            Lost::Tls(error) => Self::Tls(error),
            Lost::Protocol(what) => Self::Protocol(what),
        }
    }
}
