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

/// The maximum number of requests logged in a second, over all servers, because a flood would otherwise fill the disk.
const MAX_LOGGED: u32 = 1_000;

/// Counts the requests that are logged in each second, over all servers of the process.
static SAMPLE: AccessRate = AccessRate(Mutex::new((None, 0, None)));

/// The maximum number of unanswered requests that one access log tracks. Further requests are not logged.
const MAX_NOTED: usize = 65_536;

/// The maximum number of bytes of a path in the access log.
const MAX_PATH: usize = 256;

/// Returns whether a `tracing` subscriber wants the events of the access log.
pub(crate) fn is_wanted() -> bool {
    tracing::enabled!(target: TARGET, Level::INFO)
}

/// The access log of an endpoint or connection: its unanswered requests, by a key that identifies each. A request is
/// logged once it is answered.
#[derive(Debug)]
pub(crate) struct AccessLog<K> {
    noted: HashMap<K, Noted>,
}

/// A tracked request.
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
    /// Tracks a received request until it is answered and logged. Beyond [`MAX_NOTED`] or [`MAX_LOGGED`] it does
    /// nothing. Call it only if the log [is wanted](is_wanted).
    pub(crate) fn note(
        &mut self,
        key: K,
        transport: &'static str,
        peer: IdentifiedPeer,
        message: &Message<'_>,
    ) {
        // A full table is checked first, so that a request without an entry does not use up the rate.
        if self.noted.len() < MAX_NOTED && SAMPLE.takes(Instant::now(), transport, &peer) {
            let (method, path) = (message.code, short_path(message));
            self.noted.insert(key, Noted { since: Instant::now(), transport, peer, method, path });
        }
    }

    /// Logs a tracked request, with the code of its response (`None` without a response) and the `bytes` of the
    /// response's options and payload. Does nothing if the request is not tracked.
    pub(crate) fn answered(&mut self, key: &K, code: Option<Code>, bytes: usize) {
        // Most servers have no log, and this is called for every response.
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

/// The limiter of logged requests. Holds the start of the current second, the number of requests logged in it, and the
/// requests that were not logged.
struct AccessRate(Mutex<(Option<Instant>, u32, Option<LeftOut>)>);

/// The number of requests that were not logged, and the transport and the peer of the last of them.
#[derive(Debug)]
struct LeftOut {
    count: u64,
    transport: &'static str,
    peer: SocketAddr,
}

impl AccessRate {
    /// Returns whether a request is to be logged. The first request of a second also logs how many requests were not
    /// logged before it.
    fn takes(&self, now: Instant, transport: &'static str, peer: &IdentifiedPeer) -> bool {
        let mut locked = lock(&self.0);
        let (begun, taken, left_out) = &mut *locked;
        // A second begins with a request, not with the clock, so an idle server needs no timer.
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
        // The count must not overflow in a flood that lasts a second.
        *taken = MAX_LOGGED;
        // Only the last request is described: a list could grow as long as the flood.
        let count = left_out.as_ref().map_or(0, |left_out| left_out.count) + 1;
        *left_out = Some(LeftOut { count, transport, peer: peer.remote.address() });
        false
    }
}

/// Returns the path of a request, shortened if it is long. The query may be private, and is left out.
fn short_path(message: &Message<'_>) -> String {
    let mut path = path(message);
    if path.len() > MAX_PATH {
        // A path may have any characters, and `truncate` panics inside of one.
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
    fn requests_above_a_rate_are_counted_instead_of_logged() {
        let (sample, begun) = (AccessRate(Mutex::new((None, 0, None))), Instant::now());
        let remote = crate::address::Remote::new(std::net::Ipv6Addr::LOCALHOST, 1, 0);
        let peer = IdentifiedPeer { remote, identity: None };
        let logged = |ms| {
            (0..5_000).filter(|_| sample.takes(begun + Duration::from_millis(ms), "coap", &peer)).count()
        };
        assert_eq!((logged(0), logged(999)), (1_000, 0));
        assert_eq!(lock(&sample.0).2.as_ref().unwrap().count, 9_000);
        assert_eq!(logged(1_000), 1_000);
        assert_eq!(lock(&sample.0).2.as_ref().unwrap().count, 4_000, "the earlier ones were logged");
    }

    #[test]
    fn the_log_shortens_long_paths_and_leaves_out_queries() {
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
