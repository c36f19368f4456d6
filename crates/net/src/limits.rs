//! Bounds that a server has run into, told once a second at most.

use std::time::Duration;

use crate::{ServerHandle, Stats};

/// How often the counters are looked at.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// A bound: what is said of it, and its counter.
type Limit = (&'static str, fn(&Stats) -> u64);

const LIMITS: &[Limit] = &[
    ("requests refused with 5.03", |stats| stats.net.refused),
    ("responses without room", |stats| stats.net.responses_dropped + stats.endpoint.replies_dropped),
    ("responses to groups without room", |stats| stats.net.group_responses_dropped),
    ("peers forgotten for others", |stats| stats.endpoint.peers_evicted),
    ("messages forgotten before their lifetime", |stats| stats.endpoint.forgotten_early),
    ("datagrams longer than is taken", |stats| stats.net.truncated),
    ("datagrams that the system would not send", |stats| stats.net.send_errors),
    ("handlers that panicked", |stats| stats.net.panics),
    #[cfg(feature = "dtls")]
    ("DTLS sessions ended for others", |stats| stats.dtls.evicted),
    ("observers refused", |stats| stats.net.observers_refused),
    ("unverified observers ended for others", |stats| stats.endpoint.observers_displaced),
    #[cfg(feature = "tcp")]
    ("observers over TCP refused", |stats| stats.tcp.observers_refused),
    #[cfg(feature = "tcp")]
    ("connections ended for others", |stats| stats.tcp.evicted),
    #[cfg(feature = "tcp")]
    ("responses larger than the client takes", |stats| stats.tcp.too_large),
    #[cfg(feature = "tcp")]
    ("connections of clients that take nothing", |stats| stats.tcp.stalled),
    #[cfg(feature = "tcp")]
    ("connections against the protocol", |stats| stats.tcp.aborted),
    #[cfg(feature = "tcp")]
    ("handlers over TCP that panicked", |stats| stats.tcp.panics),
];

/// Looks at a server's counters from time to time. What happens often is one line for each kind and look, with its
/// count, and costs nothing where it happens.
#[derive(Debug)]
pub(crate) struct Limits {
    server: ServerHandle,
    before: Stats,
}

impl Limits {
    pub(crate) fn new(server: ServerHandle) -> Self {
        let before = server.stats();
        Self { server, before }
    }

    /// Says what has happened since the last look.
    pub(crate) fn look(&mut self) {
        let now = self.server.stats();
        let before = std::mem::replace(&mut self.before, now);
        for (what, counter) in LIMITS {
            let count = counter(&now).saturating_sub(counter(&before));
            if count > 0 {
                tracing::warn!(target: "coapace_net::limit", what, count, "limit reached");
            }
        }
    }
}
