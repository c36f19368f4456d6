//! The identity of a peer.

use std::fmt;
use std::sync::Arc;

use crate::address::Remote;

/// The identity that a peer has proved by a key or a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Identity {
    /// The identity of a pre-shared key (RFC 4279 §5.1).
    Psk(Vec<u8>),
    /// A certificate that was verified.
    Certificate(Certificate),
}

/// Writes the identity of a key as text, with U+FFFD for bytes that are not UTF-8, or the subject of a certificate.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Psk(identity) => f.write_str(&String::from_utf8_lossy(identity)),
            Self::Certificate(certificate) => f.write_str(certificate.subject()),
        }
    }
}

/// A peer's own certificate, without its issuers' certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    pub(crate) der: Vec<u8>,
    pub(crate) subject: String,
    pub(crate) public_key: Vec<u8>,
}

impl Certificate {
    /// Returns the certificate in DER (X.509).
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Returns the subject in the form of RFC 4514, such as `CN=lamp-7`. It is empty if the certificate has only alternative
    /// names.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// Returns the public key (SubjectPublicKeyInfo in DER, RFC 5280 §4.1). It stays the same if a later certificate is for the
    /// same key.
    pub fn public_key(&self) -> &[u8] {
        &self.public_key
    }
}

/// A client: its address, and the identity that it has proved, if it has proved one.
#[derive(Clone, Debug)]
pub(crate) struct IdentifiedPeer {
    pub(crate) remote: Remote,
    pub(crate) identity: Option<Arc<Identity>>,
}
