//! The access log of a server: one event for each request, once it is answered.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use coapace_proto::{Code, Message};
use tracing::Level;

use crate::identity::IdentifiedPeer;
use crate::lock::lock;
use crate::request::path;

const TARGET: &str = "coapace_net::access";

/// The most requests that are logged in a second, over all servers. A flood would fill the disk otherwise.
const MAX_LOGGED: u32 = 1_000;

/// The requests that were logged lately.
static SAMPLE: AccessRate = AccessRate(Mutex::new((None, 0, None)));

/// The most requests that are noted at once. Further ones are not logged.
const MAX_NOTED: usize = 65_536;

/// The most bytes of a path in the log.
const MAX_PATH: usize = 256;

/// Returns whether a subscriber wants the events of requests.
pub(crate) fn is_wanted() -> bool {
    tracing::enabled!(target: TARGET, Level::INFO)
}

/// The requests that are not answered yet, by a key that identifies them.
#[derive(Debug)]
pub(crate) struct AccessLog<K> {
    noted: HashMap<K, Noted>,
}

/// A request.
#[derive(Debug)]
struct Noted {
    since: Instant,
    transport: &'static str,
    peer: IdentifiedPeer,
    method: Code,
    path: String,
}

impl<K> Default for AccessLog<K> {
    fn default() -> Self {
        Self { noted: HashMap::new() }
    }
}

impl<K: Eq + Hash> AccessLog<K> {
    /// Notes a received request. Call it only if the log [is wanted](is_wanted).
    pub(crate) fn note(
        &mut self,
        key: K,
        transport: &'static str,
        peer: IdentifiedPeer,
        message: &Message<'_>,
    ) {
        if self.noted.len() < MAX_NOTED && SAMPLE.takes(Instant::now(), transport, &peer) {
            let (method, path) = (message.code, short_path(message));
            self.noted.insert(key, Noted { since: Instant::now(), transport, peer, method, path });
        }
    }

    /// Logs a noted request with the code of its response, if it got one, and the length of options and payload, in bytes.
    pub(crate) fn answered(&mut self, key: &K, code: Option<Code>, bytes: usize) {
        if self.noted.is_empty() {
            return;
        }
        let Some(Noted { since, transport, peer, method, path }) = self.noted.remove(key) else { return };
        let duration_ms = since.elapsed().as_micros() as f64 / 1e3;
        let (peer, identity) = (peer.remote.address(), peer.identity.map(|identity| identity.to_string()));
        let code = code.map(|code| code.dotted().to_string());
        let (method, code) = (method.name().unwrap_or("?"), code.as_deref().unwrap_or("none"));
        tracing::info!(
            target: TARGET, %peer, transport, identity, method, path, code, bytes, duration_ms, "request"
        );
    }
}

/// The rate of logged requests: the beginning of the present second, the number of requests in it, and the requests left out.
struct AccessRate(Mutex<(Option<Instant>, u32, Option<LeftOut>)>);

/// The requests that were not logged, with the transport and the peer of the last.
#[derive(Debug)]
struct LeftOut {
    count: u64,
    transport: &'static str,
    peer: SocketAddr,
}

impl AccessRate {
    /// Returns whether a request is to be logged. The first of a second also logs how many were left out before.
    fn takes(&self, now: Instant, transport: &'static str, peer: &IdentifiedPeer) -> bool {
        let mut locked = lock(&self.0);
        let (begun, taken, left_out) = &mut *locked;
        if begun.is_none_or(|begun| now.saturating_duration_since(begun) >= Duration::from_secs(1)) {
            (*begun, *taken) = (Some(now), 0);
            if let Some(LeftOut { count, transport, peer }) = left_out.take() {
                tracing::info!(target: TARGET, %peer, transport, count, "requests not logged");
            }
        }
        *taken += 1;
        if *taken <= MAX_LOGGED {
            return true;
        }
        *taken = MAX_LOGGED;
        let count = left_out.as_ref().map_or(0, |left_out| left_out.count) + 1;
        *left_out = Some(LeftOut { count, transport, peer: peer.remote.address() });
        false
    }
}

/// Returns the path of a request, cut where it is long. The query may be private, and is left out.
fn short_path(message: &Message<'_>) -> String {
    let mut path = path(message);
    if path.len() > MAX_PATH {
        let end = (0..=MAX_PATH).rev().find(|&end| path.is_char_boundary(end)).unwrap_or(0);
        path.truncate(end);
        path.push('…');
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use coapace_proto::{Kind, Options};

    #[test]
    fn a_flood_is_logged_up_to_a_rate_and_what_is_left_out_is_counted() {
        let (sample, begun) = (AccessRate(Mutex::new((None, 0, None))), Instant::now());
        let remote = crate::address::Remote::new(std::net::Ipv6Addr::LOCALHOST, 1, 0);
        let peer = IdentifiedPeer { remote, identity: None };
        let logged = |ms| {
            (0..5_000).filter(|_| sample.takes(begun + Duration::from_millis(ms), "coap", &peer)).count()
        };
        assert_eq!((logged(0), logged(999)), (1_000, 0));
        assert_eq!(lock(&sample.0).2.as_ref().unwrap().count, 9_000);
        assert_eq!(logged(1_000), 1_000);
        assert_eq!(lock(&sample.0).2.as_ref().unwrap().count, 4_000, "those before were told");
    }

    #[test]
    fn a_path_is_cut_where_it_is_long_and_has_no_query() {
        let read = |options: Options| {
            let tail = options.tail(b"").unwrap();
            short_path(&Message { tail: tail.as_bytes(), ..Message::empty(Kind::Confirmable, 1) })
        };
        assert_eq!(read(Options::default()), "/");
        assert_eq!(read(Options::default().uri_path("a").uri_path("b").uri_query("key=secret")), "/a/b");
        let long = "ä".repeat(120);
        let cut = read(Options::default().uri_path(&long).uri_path(&long));
        assert!(cut.len() <= MAX_PATH + '…'.len_utf8() && cut.ends_with("ä…"), "{cut}");
    }
}
