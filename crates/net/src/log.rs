//! Events for [`tracing`], under five targets: requests (`coapace_net::access`), handshakes
//! (`coapace_net::handshake`), limits (`coapace_net::limit`), observations (`coapace_net::observe`), and destinations that a
//! client does not reach (`coapace_net::unreachable`).
//!
//! No event contains a payload or a key. Text that peers choose, such as paths and identities, is recorded as strings, which
//! subscribers escape.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lock::lock;
use crate::{Identity, Stats};

/// The limiter of log events for failed handshakes, which anyone can cause without end.
static FAILED_HANDSHAKES: EventLimiter = EventLimiter::new();

/// A limiter that passes one event a second. Holds the time of the last passed event, and the number of events
/// suppressed since.
#[derive(Debug)]
struct EventLimiter(Mutex<(Option<Instant>, u64)>);

impl EventLimiter {
    const INTERVAL: Duration = Duration::from_secs(1);

    const fn new() -> Self {
        Self(Mutex::new((None, 0)))
    }

    /// Returns the number of events that were suppressed since the last that passed, or `None` if this event is suppressed.
    fn pass(&self, now: Instant) -> Option<u64> {
        let (passed, suppressed) = &mut *lock(&self.0);
        // Another thread may have set a later time than this `now`.
        if passed.is_some_and(|passed| now.saturating_duration_since(passed) < Self::INTERVAL) {
            *suppressed += 1;
            return None;
        }
        *passed = Some(now);
        Some(std::mem::take(suppressed))
    }
}

/// Logs a handshake that led to a session or connection.
pub(crate) fn handshake(transport: &str, peer: SocketAddr, identity: Option<&Identity>) {
    let identity = identity.map(ToString::to_string);
    tracing::info!(target: "coapace_net::handshake", transport, %peer, identity, "handshake completed");
}

/// Logs a failed handshake.
pub(crate) fn handshake_failed(
    transport: &str,
    peer: SocketAddr,
    identity: Option<&Identity>,
    why: &dyn Display,
) {
    if let Some(suppressed) = FAILED_HANDSHAKES.pass(Instant::now()) {
        let (identity, why) = (identity.map(ToString::to_string), why.to_string());
        let (identity, why) = (identity.as_deref(), why.as_str());
        tracing::warn!(target: "coapace_net::handshake", transport, %peer, identity, why, suppressed, "handshake failed");
    }
}

/// The limiter of log events for unreachable destinations. One server may refuse many clients of this process at once.
static REFUSALS: EventLimiter = EventLimiter::new();

/// Logs that datagrams do not reach a destination. The client keeps sending.
pub(crate) fn unreachable(peer: SocketAddr, kind: std::io::ErrorKind) {
    if REFUSALS.pass(Instant::now()).is_none() {
        return;
    }
    if kind == std::io::ErrorKind::ConnectionRefused {
        tracing::warn!(target: "coapace_net::unreachable", %peer, "nobody listens there yet; still trying");
    } else {
        tracing::warn!(target: "coapace_net::unreachable", %peer, %kind, "datagrams do not arrive there yet; still trying");
    }
}

/// Logs the start or end of an observation.
pub(crate) fn observer(peer: SocketAddr, what: &'static str) {
    tracing::debug!(target: "coapace_net::observe", %peer, what, "observer");
}

/// Logs that an observed representation is stale and the client registers again.
pub(crate) fn overdue(since: coapace_control::Duration) {
    let stale_s = since.as_micros() / 1_000_000;
    tracing::warn!(target: "coapace_net::observe", stale_s, "no notification has come in time; registering again");
}

/// Logs that an observed server is unavailable and the client registers again after this time.
pub(crate) fn unavailable(wait: coapace_control::Duration) {
    let wait_s = wait.as_micros().div_ceil(1_000_000);
    tracing::warn!(target: "coapace_net::observe", wait_s, "the server is unavailable; registering again until it is back");
}

/// Logs the limits that the server has reached since the last check. A frequent event makes one line with its count, and costs
/// nothing when it happens. `peer` is the last peer affected by a limit.
pub(crate) fn limits(transport: &str, peer: Option<SocketAddr>, before: &Stats, now: &Stats) {
    for ((counter, now), (_, before)) in now.counters().zip(before.counters()) {
        let count = now.saturating_sub(before);
        if let Some(what) = counter.warning.filter(|_| count > 0) {
            let peer = peer.map(tracing::field::display);
            tracing::warn!(target: "coapace_net::limit", transport, peer, what, count, "limit reached");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_limited_log_passes_one_event_a_second_with_the_number_suppressed() {
        let (rate, begin) = (EventLimiter::new(), Instant::now());
        let at = |ms| rate.pass(begin + Duration::from_millis(ms));
        assert_eq!(
            [at(0), at(1), at(999), at(1_000), at(1_001), at(5_000)],
            [Some(0), None, None, Some(2), None, Some(1)]
        );
    }
}
