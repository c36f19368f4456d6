//! The metrics of a client or server.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use coapace_proto::Measures;

use crate::datagram::hub::{Hub, LockedHub};
use crate::lock::lock;
use crate::{Profile, Requests, Stats};

/// The counters, distributions and levels of a client or server. They contain nothing about single peers.
/// [`Display`](std::fmt::Display) writes the text format of Prometheus. `docs/metrics.md` describes every line.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// The counters since the client or server began.
    pub stats: Stats,
    /// The requests to a server.
    pub requests: Requests,
    /// Distributions over its own exchanges. The exchanges of a server are separate responses and notifications.
    pub measures: Measures,
    /// The profiles of its endpoints.
    pub profiles: Vec<Profile>,
    /// Exchanges of its own under way or waiting.
    pub exchanges: u64,
    /// Observers that are registered with a server.
    pub observers: u64,
    /// Peers that the endpoints remember.
    pub peers: u64,
    /// DTLS sessions, handshakes included.
    pub sessions: u64,
    /// Handlers that wait for something.
    pub pending: u64,
}

impl Metrics {
    /// Adds the metrics of another client or server, such as one that serves the same resources over another transport.
    pub fn merge(&mut self, other: &Self) {
        let Self { stats, requests, measures, profiles, exchanges, observers, peers, sessions, pending } =
            other;
        self.stats.merge(stats);
        self.requests.merge(requests);
        self.measures.merge(measures);
        for profile in profiles {
            self.note_profile(profile);
        }
        self.exchanges += exchanges;
        self.observers += observers;
        self.peers += peers;
        self.sessions += sessions;
        self.pending += pending;
    }

    /// Returns the metrics of endpoints.
    pub(crate) fn of<'a>(hubs: impl Iterator<Item = &'a Arc<Hub>> + Clone) -> Self {
        let mut sum = Self { stats: Stats::of(hubs.clone()), ..Self::default() };
        for hub in hubs {
            sum.pending += u64::from(hub.pending.load(Ordering::Relaxed));
            sum.sessions += hub.sessions.as_ref().map_or(0, |sessions| lock(sessions).len() as u64);
            let LockedHub { endpoint, answers, .. } = &*hub.lock();
            sum.requests.merge(&answers.requests);
            endpoint.measures().into_iter().for_each(|measures| sum.measures.merge(measures));
            sum.exchanges += endpoint.exchanges() as u64;
            sum.observers += endpoint.observer_count() as u64;
            sum.peers += endpoint.peers() as u64;
            sum.note_profile(&hub.profile);
        }
        sum
    }

    fn note_profile(&mut self, profile: &Profile) {
        if !self.profiles.contains(profile) {
            self.profiles.push(*profile);
        }
    }
}
