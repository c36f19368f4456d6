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

/// Returns the key of an identity.
type Lookup = dyn Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync;

/// The setup of DTLS: the keys, and the bounds of its sessions.
///
/// The cipher suite is `TLS_PSK_WITH_AES_128_CCM_8`, which every CoAP implementation with pre-shared keys has. The peer has
/// to support the extended master secret (RFC 7627).
///
/// A server that has restarted does not know a client's session, and neither does a server that sees the client at another port of
/// a NAT: it drops the client's records. So a client begins another handshake with the second unanswered copy of a message, or with
/// the third of a POST or PATCH, and sends the message again when it is over. Until then the old session works on. If the server is
/// heard in it within half a second of its first answer to the handshake, the old session stays. From one handshake to the next
/// there are 15 s at least, then 30 s, then a minute, until a message is answered before its second copy.
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
    /// The identity of a client. A server has none.
    identity: Option<Vec<u8>>,
    keys: Arc<Lookup>,
    max_sessions: Option<usize>,
    pub(crate) idle_timeout: Duration,
    pub(crate) handshake_timeout: Duration,
}

/// Prints no keys.
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
    /// Returns the setup of a client with this identity and key. Every peer accepts identities of up to 128 bytes and keys
    /// of up to 64 (RFC 4279 §5.3).
    pub fn client(identity: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        let key = key.into();
        Self::client_by(identity, move || key.clone())
    }

    /// Returns the setup of a client with this identity. `key` returns its key, which may change: each handshake asks for it. It
    /// is called while datagrams wait, so it should be fast.
    pub fn client_by(
        identity: impl Into<Vec<u8>>,
        key: impl Fn() -> Vec<u8> + Send + Sync + 'static,
    ) -> Self {
        Self::new(Some(identity.into()), Arc::new(move |_| Some(key())))
    }

    /// Returns the setup of a server. `lookup` returns the key of an identity, or `None` for an unknown identity. It is
    /// called while datagrams wait, so it should be fast. A client does not learn whether its identity or its key is wrong.
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

    /// Sets the number of sessions of each endpoint, handshakes included, to at least 1. The default is 10,000 for a client,
    /// and as many as there is [memory](crate::Budget) for in a server. Beyond it, the oldest handshake is given up, or the
    /// session that was not used for longest is closed. Handshakes may be an eighth of the number, and at least 16.
    #[must_use]
    pub fn max_sessions(mut self, max: usize) -> Self {
        self.max_sessions = Some(max.max(1));
        self
    }

    /// Sets the default number of sessions.
    pub(crate) fn at_most(mut self, max: usize) -> Self {
        self.max_sessions.get_or_insert(max.max(1));
        self
    }

    pub(crate) fn sessions(&self) -> usize {
        self.max_sessions.unwrap_or(10_000)
    }

    /// Returns the number of handshakes that may be under way.
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
        let provider = CryptoProvider { hmac_provider: &Hmac, ..rust_crypto::default_provider() };
        let builder = Config::builder()
            .with_crypto_provider(provider)
            .mtu(MTU)
            .handshake_timeout(self.handshake_timeout)
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
        RESOLVED.set(Some((identity.to_vec(), key.is_some())));
        key
    }
}

thread_local! {
    /// The cookie that the library shall take for its own.
    static SHOWN: Cell<Option<[u8; COOKIE]>> = const { Cell::new(None) };

    /// The identity whose key the library has looked up last, and whether it has one.
    static RESOLVED: Cell<Option<(Vec<u8>, bool)>> = const { Cell::new(None) };
}

/// Returns the identity whose key the library has looked up since the last call, and whether it has one.
pub(crate) fn take_resolved() -> Option<(Vec<u8>, bool)> {
    RESOLVED.take()
}

/// Makes the library take this cookie for its own while `act` runs.
///
/// The library would store a session for every ClientHello, with a cookie of its own. Here a session begins with the second
/// ClientHello, whose cookie [`Cookies`](super::cookie::Cookies) has verified. Both sides hash the ClientHello, so its
/// cookie cannot be replaced by the library's.
pub(crate) fn with_cookie<T>(cookie: [u8; COOKIE], act: impl FnOnce() -> T) -> T {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            SHOWN.set(None);
        }
    }
    SHOWN.set(Some(cookie));
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
