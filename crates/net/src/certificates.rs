//! Certificates: whom to trust, and who one is. For `coaps+tcp`, `coaps+ws`, and `coaps`.

use std::fmt;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{
    self, AlertDescription, CertificateError, ClientConfig, RootCertStore, ServerConfig,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The name of CoAP in the negotiation of protocols (RFC 8323 §8.2), and that of what WebSockets begin with.
const COAP: &[u8] = b"coap";
const HTTP: &[u8] = b"http/1.1";

/// Whom to trust, and the own certificate with its key. Nobody is trusted unless said.
///
/// A client needs the roots of its servers. A server needs its own certificate; if it trusts roots, its clients have to
/// show certificates too.
///
/// ```no_run
/// use coapace_net::{Certificates, Client, Server, ServerConfig};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let own = Certificates::new().identity(&std::fs::read("server.pem")?, &std::fs::read("server.key")?)?;
/// let server = Server::bind_tls("[::]:5684", ServerConfig::default(), &own)?;
///
/// let roots = Certificates::new().trust(&std::fs::read("ca.pem")?)?;
/// let client = Client::builder().certificates(&roots)?.build();
/// let call = client.get("coaps+tcp://example.com/temperature");
/// # drop(call);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Certificates {
    roots: Arc<RootCertStore>,
    own: Option<Arc<Own>>,
    anonymous: bool,
}

pub(crate) struct Own {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

/// Keys stay where they are.
impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates")
            .field("roots", &self.roots.len())
            .field("identity", &self.own.is_some())
            .field("anonymous", &self.anonymous)
            .finish()
    }
}

/// Why certificates or keys cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadCertificate {
    /// What should be PEM is not.
    Pem(String),
    /// There is no certificate in it.
    None,
    /// A certificate cannot be read, or its key is of a kind that is not known here.
    Unusable(String),
    /// The key is not that of the certificate.
    Mismatch,
}

impl fmt::Display for BadCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pem(why) => write!(f, "not a PEM file: {why}"),
            Self::None => f.write_str("there is no certificate in it"),
            Self::Unusable(why) => write!(f, "the certificate cannot be used: {why}"),
            Self::Mismatch => f.write_str("the private key is not that of the certificate"),
        }
    }
}

impl std::error::Error for BadCertificate {}

impl From<rustls::Error> for BadCertificate {
    fn from(error: rustls::Error) -> Self {
        match error {
            rustls::Error::InconsistentKeys(_) => Self::Mismatch,
            other => Self::Unusable(other.to_string()),
        }
    }
}

impl From<BadCertificate> for io::Error {
    fn from(bad: BadCertificate) -> Self {
        Self::new(io::ErrorKind::InvalidInput, bad)
    }
}

impl Default for Certificates {
    fn default() -> Self {
        Self::new()
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, BadCertificate> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match read {
        Ok(found) if found.is_empty() => Err(BadCertificate::None),
        Ok(found) => Ok(found),
        Err(error) => Err(BadCertificate::Pem(error.to_string())),
    }
}

impl Certificates {
    /// Trusts nobody, and is nobody.
    pub fn new() -> Self {
        Self { roots: RootCertStore::empty().into(), own: None, anonymous: false }
    }

    /// Trusts these certificates, in PEM, and whom they vouch for.
    ///
    /// # Errors
    /// [`BadCertificate`].
    pub fn trust(mut self, pem: &[u8]) -> Result<Self, BadCertificate> {
        let roots = Arc::make_mut(&mut self.roots);
        for root in certificates(pem)? {
            roots.add(root)?;
        }
        Ok(self)
    }

    /// The own certificate in PEM, those between it and the root after it, and its private key in PEM.
    ///
    /// # Errors
    /// [`BadCertificate`].
    pub fn identity(mut self, chain: &[u8], key: &[u8]) -> Result<Self, BadCertificate> {
        let chain = certificates(chain)?;
        let key =
            PrivateKeyDer::from_pem_slice(key).map_err(|error| BadCertificate::Pem(error.to_string()))?;
        CertifiedKey::from_der(chain.clone(), key.clone_key(), &ring::default_provider())?;
        self.own = Some(Arc::new(Own { chain, key }));
        Ok(self)
    }

    /// As a server lets in those too who show no certificate. One that is shown has to be good nevertheless.
    #[must_use]
    pub fn allow_anonymous(mut self) -> Self {
        self.anonymous = true;
        self
    }

    /// For `coaps+tcp` and for `coaps+ws`.
    pub(crate) fn connectors(&self) -> Result<[TlsConnector; 2], BadCertificate> {
        let builder = ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(self.roots.clone());
        let config = match &self.own {
            Some(own) => builder.with_client_auth_cert(own.chain.clone(), own.key.clone_key())?,
            None => builder.with_no_client_auth(),
        };
        Ok([COAP, HTTP].map(|protocol| {
            let mut config = config.clone();
            config.alpn_protocols = vec![protocol.into()];
            Arc::new(config).into()
        }))
    }

    /// For `coaps+tcp`, or with `ws` for `coaps+ws`.
    fn acceptor(&self, ws: bool) -> Result<TlsAcceptor, BadCertificate> {
        let own = self.own.as_ref().ok_or(BadCertificate::None)?;
        let provider = Arc::new(ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
        let builder = if self.roots.is_empty() {
            builder.with_no_client_auth()
        } else {
            let verifier = WebPkiClientVerifier::builder_with_provider(self.roots.clone(), provider);
            let verifier =
                if self.anonymous { verifier.allow_unauthenticated().build() } else { verifier.build() };
            let verifier = verifier.map_err(|error| BadCertificate::Unusable(error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        };
        let mut config = builder.with_single_cert(own.chain.clone(), own.key.clone_key())?;
        config.alpn_protocols = vec![if ws { HTTP } else { COAP }.into()];
        Ok(Arc::new(config).into())
    }
}

/// What connections of a server begin with, from now on: certificates may be replaced while it runs.
#[derive(Clone)]
pub(crate) struct ServerTls {
    acceptor: Arc<RwLock<TlsAcceptor>>,
    ws: bool,
}

impl ServerTls {
    /// For `coaps+tcp`, or with `ws` for `coaps+ws`.
    pub(crate) fn new(certificates: &Certificates, ws: bool) -> Result<Self, BadCertificate> {
        Ok(Self { acceptor: Arc::new(RwLock::new(certificates.acceptor(ws)?)), ws })
    }

    /// Takes other certificates, if they make a server.
    pub(crate) fn replace(&self, certificates: &Certificates) -> Result<(), BadCertificate> {
        let acceptor = certificates.acceptor(self.ws)?;
        *self.acceptor.write().unwrap_or_else(PoisonError::into_inner) = acceptor;
        Ok(())
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.acceptor.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTls").field("ws", &self.ws).finish_non_exhaustive()
    }
}

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

impl TlsError {
    /// What the library says of the peer of this name.
    pub(crate) fn of(error: &rustls::Error, name: &str) -> Self {
        use CertificateError as Bad;
        match error {
            rustls::Error::InvalidCertificate(bad) => match bad {
                Bad::UnknownIssuer => Self::UnknownIssuer,
                Bad::NotValidForName | Bad::NotValidForNameContext { .. } => Self::NotValidFor(name.into()),
                Bad::Expired | Bad::ExpiredContext { .. } => Self::Expired,
                Bad::NotValidYet | Bad::NotValidYetContext { .. } => Self::NotYetValid,
                other => Self::Other(other.to_string()),
            },
            rustls::Error::AlertReceived(alert) => Self::Refused(match alert {
                AlertDescription::CertificateRequired => String::from("it wants a certificate"),
                AlertDescription::UnknownCA => String::from("it does not know who issued the certificate"),
                AlertDescription::NoApplicationProtocol => String::from("it does not speak CoAP here"),
                other => format!("alert {}", u8::from(*other)),
            }),
            other => Self::Other(other.to_string()),
        }
    }
}
