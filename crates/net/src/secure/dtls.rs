//! `coaps`: DTLS 1.2 with pre-shared keys (RFC 7252 §9.1.3.1), for clients and servers.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use dimpl::crypto::{CryptoProvider, Dtls12CipherSuite, HmacProvider, rust_crypto};
use dimpl::{Config, CryptoError, HashAlgorithm, PskResolver};

use super::cookie::COOKIE;
use crate::Refused;

/// The longest datagram of a handshake, in bytes. It fits into the least MTU of IPv6.
const MTU: usize = 1_200;

/// A function that returns the key of an identity, or `None` for an unknown identity.
type Lookup = dyn Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync;

/// The settings of DTLS: the keys, and the limits of sessions.
///
/// The cipher suite is `TLS_PSK_WITH_AES_128_CCM_8`, which every CoAP implementation with pre-shared keys supports. The peer
/// must support the extended master secret (RFC 7627).
///
/// A restarted server does not know a client's session, and neither does a server that sees the client at a new NAT
/// port: it drops the client's records. So a client starts another handshake at the second unanswered copy of a
/// message, or at the third of a POST or PATCH, and sends the message again when the handshake is complete. Until then
/// the old session stays in use. If the server sends something in the old session within half a second of its first
/// answer to the handshake, the client drops the handshake. Handshakes are at least 15 s apart, then 30 s, then a
/// minute, until a message is answered before its second copy.
///
/// ```
/// use coapace_net::{Client, Dtls, Server, ServerConfig};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let keys = Dtls::server(|identity| (identity == b"lamp-7").then(|| b"a long secret".to_vec()));
/// let server = Server::bind_dtls("127.0.0.1:0", ServerConfig::default(), &keys)?;
///
/// let client = Client::builder().dtls(Dtls::client("lamp-7", "a long secret")).build();
/// let call = client.get(&format!("coaps://{}/temperature", server.local_addr()?));
/// # drop(call);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Dtls {
    /// The identity of a client; `None` for a server.
    identity: Option<Vec<u8>>,
    keys: Arc<Lookup>,
    max_sessions: Option<usize>,
    pub(crate) idle_timeout: Duration,
    pub(crate) handshake_timeout: Duration,
}

/// Never prints keys.
impl fmt::Debug for Dtls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dtls")
            .field("role", if self.is_server() { &"server" } else { &"client" })
            .field("max_sessions", &self.max_sessions)
            .field("idle_timeout", &self.idle_timeout)
            .field("handshake_timeout", &self.handshake_timeout)
            .finish_non_exhaustive()
    }
}

impl Dtls {
    /// Returns the settings of a client with this identity and key. Every peer accepts identities of up to 128 bytes and keys
    /// of up to 64 (RFC 4279 §5.3).
    pub fn client(identity: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        let key = key.into();
        Self::client_by(identity, move || key.clone())
    }

    /// Returns the settings of a client with this identity. `key` returns the key of the identity, which may change:
    /// the function is called at each handshake, while datagrams wait, so it should be fast.
    pub fn client_by(
        identity: impl Into<Vec<u8>>,
        key: impl Fn() -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        Self::new(Some(identity.into()), Arc::new(move |_| Some(key())))
    }

    /// Returns the settings of a server. `lookup` returns the key of an identity, or `None` for an unknown identity.
    /// The function is called while datagrams wait, so it should be fast. A client does not learn whether its identity
    /// or its key is wrong.
    pub fn server(lookup: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        Self::new(None, Arc::new(lookup))
    }

    fn new(identity: Option<Vec<u8>>, keys: Arc<Lookup>) -> Self {
        Self {
            identity,
            keys,
            max_sessions: None,
            idle_timeout: Duration::from_secs(24 * 60 * 60),
            handshake_timeout: Duration::from_secs(40),
        }
    }

    /// Sets the maximum number of sessions of each endpoint, handshakes included, at least 1. The default is 10,000 for
    /// a client, and as many as [memory](crate::Budget) allows for a server. Beyond that, the oldest handshake is given
    /// up, or the least recently used session is closed. An eighth of the number may be handshakes, or 16 if that is
    /// more.
    #[must_use]
    pub fn max_sessions(mut self, max: usize) -> Self {
        self.max_sessions = Some(max.max(1));
        self
    }

    /// Sets the maximum number of sessions of each endpoint, unless [`max_sessions`](Self::max_sessions) was called.
    pub(crate) fn at_most(mut self, max: usize) -> Self {
        self.max_sessions.get_or_insert(max.max(1));
        self
    }

    pub(crate) fn sessions(&self) -> usize {
        self.max_sessions.unwrap_or(10_000)
    }

    /// Returns the maximum number of handshakes that may be in progress.
    pub(crate) fn handshakes(&self) -> usize {
        (self.sessions() / 8).max(16)
    }

    /// Sets the time after which a session without datagrams is closed. The default is a day.
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Sets the time that a handshake may take. The default is 40 s. Flights are repeated in the first 31 s.
    #[must_use]
    pub fn handshake_timeout(mut self, timeout: Duration) -> Self {
        self.handshake_timeout = timeout;
        self
    }

    pub(crate) fn is_server(&self) -> bool {
        self.identity.is_none()
    }

    /// Returns the configuration for the DTLS library.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the library refuses it, such as a timeout of 0 or of ten years.
    pub(crate) fn build(&self) -> io::Result<Arc<Config>> {
        // Only the HMAC differs from the library's default, for the cookies of `with_cookie`.
        let provider = CryptoProvider { hmac_provider: &Hmac, ..rust_crypto::default_provider() };
        let builder = Config::builder()
            .with_crypto_provider(provider)
            .mtu(MTU)
            .handshake_timeout(self.handshake_timeout)
            // RFC 7252 §9.1.3.1 makes this suite mandatory for pre-shared keys.
            .dtls12_cipher_suites(&[Dtls12CipherSuite::PSK_AES128_CCM_8])
            .dtls13_cipher_suites(&[]);
        let resolver = Arc::new(Resolver(AssertUnwindSafe(self.keys.clone())));
        let builder = match &self.identity {
            Some(identity) => builder.with_psk_client(identity.clone(), resolver),
            None => builder.with_psk_server(None, resolver),
        };
        let built = builder.build();
        built.map(Arc::new).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error.to_string()))
    }
}

struct Resolver(AssertUnwindSafe<Arc<Lookup>>);

impl PskResolver for Resolver {
    fn resolve(&self, identity: &[u8]) -> Option<Vec<u8>> {
        let key = (self.0)(identity);
        // The library does not hand the identity out, so it is kept here for the session.
        RESOLVED.set(Some((identity.to_vec(), key.is_some())));
        key
    }
}

thread_local! {
    /// The cookie that the library shall treat as its own, while [`with_cookie`] runs.
    static SHOWN: Cell<Option<[u8; COOKIE]>> = const { Cell::new(None) };

    /// The identity whose key the library has looked up last, and whether the identity has a key.
    static RESOLVED: Cell<Option<(Vec<u8>, bool)>> = const { Cell::new(None) };
}

/// Returns the identity whose key the library has looked up last, and whether the identity has a key. Returns `None` if
/// there was no look-up since the last call.
pub(crate) fn take_resolved() -> Option<(Vec<u8>, bool)> {
    RESOLVED.take()
}

/// Makes the library treat this cookie as its own while `act` runs.
///
/// The library would store a session for every ClientHello, with its own cookie. Here a session begins with the second
/// ClientHello, whose cookie [`Cookies`](super::cookie::Cookies) has verified. Both sides hash the ClientHello, so its cookie
/// cannot be replaced with the library's.
pub(crate) fn with_cookie<T>(cookie: [u8; COOKIE], act: impl FnOnce() -> T) -> T {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            SHOWN.set(None);
        }
    }
    SHOWN.set(Some(cookie));
    // Reset even if the library panics: the next handshake of this thread must not accept this cookie.
    let _reset = Reset;
    act()
}

/// The HMAC of the library. The library calls `hmac_sha256` only for cookies of DTLS 1.2, and derives keys with `hmac`.
#[derive(Debug)]
struct Hmac;

impl HmacProvider for Hmac {
    fn hmac_sha256(&self, key: &[u8], data: &[u8]) -> Result<[u8; COOKIE], CryptoError> {
        match SHOWN.get() {
            Some(cookie) => Ok(cookie),
            None => rust_crypto::default_provider().hmac_provider.hmac_sha256(key, data),
        }
    }

    fn hmac(
        &self,
        hash: HashAlgorithm,
        key: &[u8],
        data: &[u8],
        out: &mut [u8],
    ) -> Result<usize, CryptoError> {
        rust_crypto::default_provider().hmac_provider.hmac(hash, key, data, out)
    }
}

impl From<dimpl::Error> for Refused {
    fn from(error: dimpl::Error) -> Self {
        match error {
            dimpl::Error::SecurityError(dimpl::SecurityError::FatalAlert { description }) => {
                Self::Alert(description)
            }
            dimpl::Error::Timeout(_) => Self::TimedOut,
            other => Self::Protocol(other.to_string()),
        }
    }
}
