//! TLS for `coaps+tcp` and `coaps+ws`: the trusted certificates, and the certificate to present to peers.

use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use tokio::net::TcpStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::{
    self, AlertDescription, CertificateError, ClientConfig, RootCertStore, ServerConfig,
};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::TlsError;
use crate::identity::{Certificate, Identity};
use crate::lock::lock;
use crate::stream::ByteStream;

/// The protocols that are negotiated with ALPN: CoAP (RFC 8323 §8.2), and HTTP for WebSockets.
const COAP: &[u8] = b"coap";
const HTTP: &[u8] = b"http/1.1";

/// The trusted certificates, and the certificate that this client or server presents to its peers, with its key.
///
/// A client needs the root certificates of its servers. A server needs its own certificate. If a server trusts roots, its
/// clients must also present certificates.
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
    /// The certificate to present to peers, its intermediate certificates, and its key.
    own: Option<Arc<CertifiedKey>>,
    anonymous: bool,
}

/// Never prints keys.
impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates")
            .field("roots", &self.roots.len())
            .field("identity", &self.own.is_some())
            .field("anonymous", &self.anonymous)
            .finish()
    }
}

/// The reason why certificates or keys cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadCertificate {
    /// The file is not PEM.
    #[error("not a PEM file: {0}")]
    Pem(String),
    /// The file has no certificate.
    #[error("the file has no certificate")]
    None,
    /// A certificate cannot be read, or its key is of an unknown kind.
    #[error("the certificate cannot be used: {0}")]
    Unusable(String),
    /// The key does not belong to the certificate.
    #[error("the private key does not belong to the certificate")]
    Mismatch,
}

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
    let found = read.map_err(|error| BadCertificate::Pem(error.to_string()))?;
    if found.is_empty() { Err(BadCertificate::None) } else { Ok(found) }
}

impl Certificates {
    /// Returns settings without trusted certificates and without a certificate to present.
    pub fn new() -> Self {
        Self { roots: RootCertStore::empty().into(), own: None, anonymous: false }
    }

    /// Adds trusted root certificates, in PEM.
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

    /// Sets the certificate to present to peers, and its private key, both in PEM. Intermediate certificates follow the
    /// certificate.
    ///
    /// # Errors
    /// [`BadCertificate`].
    pub fn identity(mut self, chain: &[u8], key: &[u8]) -> Result<Self, BadCertificate> {
        let chain = certificates(chain)?;
        let key =
            PrivateKeyDer::from_pem_slice(key).map_err(|error| BadCertificate::Pem(error.to_string()))?;
        // This fails if the key belongs to another certificate.
        self.own = Some(CertifiedKey::from_der(chain, key, &ring::default_provider())?.into());
        Ok(self)
    }

    /// Lets a server accept clients without a certificate. A certificate that a client presents is still verified.
    #[must_use]
    pub fn allow_anonymous(mut self) -> Self {
        self.anonymous = true;
        self
    }

    /// Returns the period during which the presented certificate and its intermediate certificates are all valid (RFC
    /// 5280 §4.1.2.5). `None` if no certificate is set, or one of them cannot be read.
    pub fn validity(&self) -> Option<Range<SystemTime>> {
        let times = self.own.as_ref()?.cert.iter().map(|der| validity(der));
        times.reduce(|one, other| {
            let (one, other) = (one?, other?);
            Some(one.start.max(other.start)..one.end.min(other.end))
        })?
    }

    /// Returns the connectors for `coaps+tcp` and for `coaps+ws`.
    pub(super) fn connectors(&self) -> Result<[Connector; 2], BadCertificate> {
        let builder = ClientConfig::builder_with_provider(ring::default_provider().into())
            .with_safe_default_protocol_versions()?
            .with_root_certificates(self.roots.clone());
        let config = match &self.own {
            Some(own) => builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(own.clone()))),
            None => builder.with_no_client_auth(),
        };
        // The two schemes differ only in the protocol that ALPN names.
        Ok([COAP, HTTP].map(|protocol| {
            let mut config = config.clone();
            config.alpn_protocols = vec![protocol.into()];
            Connector(config.into())
        }))
    }

    /// Returns the configuration of a server for `coaps+ws` if `ws` is set, and for `coaps+tcp` otherwise.
    fn server(&self, ws: bool) -> Result<Arc<ServerConfig>, BadCertificate> {
        // A server without a certificate could not make any handshake, so it must not start.
        let own = self.own.as_ref().ok_or(BadCertificate::None)?;
        let provider = Arc::new(ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
        // Without roots no certificate of a client could be verified, so none is asked for.
        let builder = if self.roots.is_empty() {
            builder.with_no_client_auth()
        } else {
            let verifier = WebPkiClientVerifier::builder_with_provider(self.roots.clone(), provider);
            let verifier =
                if self.anonymous { verifier.allow_unauthenticated().build() } else { verifier.build() };
            let verifier = verifier.map_err(|error| BadCertificate::Unusable(error.to_string()))?;
            builder.with_client_cert_verifier(verifier)
        };
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(own.clone())));
        config.alpn_protocols = vec![if ws { HTTP } else { COAP }.into()];
        Ok(config.into())
    }
}

/// Makes the handshakes of a client's connections over TLS.
#[derive(Clone, Debug)]
pub(crate) struct Connector(Arc<ClientConfig>);

impl Connector {
    /// Performs the handshake with the server of this name. Returns the decrypted stream.
    pub(crate) async fn connect(&self, name: &str, stream: TcpStream) -> io::Result<Box<dyn ByteStream>> {
        let name = ServerName::try_from(name.to_owned());
        // A URI allows hosts that cannot be in a certificate, such as names with spaces.
        let name = name.map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(Box::new(TlsConnector::from(self.0.clone()).connect(name, stream).await?))
    }
}

/// Reads a certificate. Returns `None` if the bytes are not a certificate.
fn read(der: &[u8]) -> Option<Certificate> {
    use x509_cert::der::{Decode, Encode};
    let certificate = x509_cert::Certificate::from_der(der).ok()?.tbs_certificate;
    let public_key = certificate.subject_public_key_info.to_der().ok()?;
    Some(Certificate { der: der.to_vec(), subject: certificate.subject.to_string(), public_key })
}

/// Returns the time during which a certificate is valid, or `None` if it cannot be read.
fn validity(der: &[u8]) -> Option<Range<SystemTime>> {
    use x509_cert::der::Decode;
    let validity = x509_cert::Certificate::from_der(der).ok()?.tbs_certificate.validity;
    let at = |time: x509_cert::time::Time| SystemTime::UNIX_EPOCH + time.to_unix_duration();
    Some(at(validity.not_before)..at(validity.not_after))
}

/// Makes the handshakes of a server's connections over TLS. The certificates may be replaced while the server runs.
#[derive(Clone, Debug)]
pub(crate) struct ServerTls {
    config: Arc<Mutex<Arc<ServerConfig>>>,
    ws: bool,
}

impl ServerTls {
    /// Returns the TLS of a server for `coaps+ws` if `ws` is set, and for `coaps+tcp` otherwise.
    pub(crate) fn new(certificates: &Certificates, ws: bool) -> Result<Self, BadCertificate> {
        Ok(Self { config: Arc::new(Mutex::new(certificates.server(ws)?)), ws })
    }

    /// Replaces the certificates for later handshakes.
    pub(crate) fn replace(&self, certificates: &Certificates) -> Result<(), BadCertificate> {
        // Made before the lock is taken: certificates that cannot be used leave the old ones in place.
        let config = certificates.server(self.ws)?;
        *lock(&self.config) = config;
        Ok(())
    }

    /// Performs the handshake of a connection. Returns the decrypted stream, and the client's certificate if the client
    /// has presented one.
    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
    ) -> io::Result<(Box<dyn ByteStream>, Option<Arc<Identity>>)> {
        // The lock must not be held while the client takes its time for the handshake.
        let config = lock(&self.config).clone();
        let stream = TlsAcceptor::from(config).accept(stream).await?;
        let shown = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
        // A certificate that cannot be read here gives the client no identity.
        let certificate = shown.and_then(|shown| read(shown));
        Ok((Box::new(stream), certificate.map(Identity::Certificate).map(Arc::new)))
    }
}

/// Returns the TLS error that an I/O error of a connection to `name` holds, if it holds one.
pub(crate) fn tls_error(error: &io::Error, name: &str) -> Option<TlsError> {
    use CertificateError as Bad;
    let error: &rustls::Error = error.get_ref()?.downcast_ref()?;
    Some(match error {
        rustls::Error::InvalidCertificate(bad) => match bad {
            Bad::UnknownIssuer => TlsError::UnknownIssuer,
            Bad::NotValidForName | Bad::NotValidForNameContext { .. } => TlsError::NotValidFor(name.into()),
            Bad::Expired | Bad::ExpiredContext { .. } => TlsError::Expired,
            Bad::NotValidYet | Bad::NotValidYetContext { .. } => TlsError::NotYetValid,
            other => TlsError::Other(other.to_string()),
        },
        rustls::Error::AlertReceived(alert) => TlsError::Refused(match alert {
            AlertDescription::CertificateRequired => String::from("it wants a certificate"),
            AlertDescription::UnknownCA => String::from("it does not know who issued the certificate"),
            AlertDescription::NoApplicationProtocol => String::from("it does not speak CoAP here"),
            other => format!("alert {}", u8::from(*other)),
        }),
        other => TlsError::Other(other.to_string()),
    })
}
