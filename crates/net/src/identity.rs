//! Who a peer has shown to be.

use std::fmt;
use std::sync::Arc;

use crate::address::Remote;

/// Who a peer has shown to be, with a key or a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Identity {
    /// The identity of a pre-shared key (RFC 4279 §5.1).
    Psk(Vec<u8>),
    /// A certificate that was verified.
    #[cfg(feature = "tls")]
    Certificate(Certificate),
}

/// Writes the identity of a key as text, with U+FFFD for what is none; of a certificate its subject.
impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Psk(identity) => f.write_str(&String::from_utf8_lossy(identity)),
            #[cfg(feature = "tls")]
            Self::Certificate(certificate) => f.write_str(certificate.subject()),
        }
    }
}

/// A peer's own certificate, without those that vouch for it.
#[cfg(feature = "tls")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    der: Vec<u8>,
    subject: String,
    public_key: Vec<u8>,
}

#[cfg(feature = "tls")]
impl Certificate {
    /// Nothing if it cannot be read.
    pub(crate) fn read(der: &[u8]) -> Option<Self> {
        use x509_cert::der::{Decode, Encode};
        let certificate = x509_cert::Certificate::from_der(der).ok()?.tbs_certificate;
        let public_key = certificate.subject_public_key_info.to_der().ok()?;
        Some(Self { der: der.to_vec(), subject: certificate.subject.to_string(), public_key })
    }

    /// All of it (X.509, DER).
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The subject as RFC 4514 writes it, such as `CN=lamp-7`; empty where only alternative names are given.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The public key (SubjectPublicKeyInfo, DER; RFC 5280 §4.1), the same in a later certificate of the same key.
    pub fn public_key(&self) -> &[u8] {
        &self.public_key
    }
}

/// Who asks: an address, and whose it is if that is known.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) remote: Remote,
    pub(crate) identity: Option<Arc<Identity>>,
}

impl From<Remote> for Peer {
    fn from(remote: Remote) -> Self {
        Self { remote, identity: None }
    }
}
