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
    /// The counters since the client or server started.
    pub stats: Stats,
    /// The requests to a server.
    pub requests: Requests,
    /// Distributions over the exchanges of the client or server. The exchanges of a server are separate responses and
    /// notifications.
    pub measures: Measures,
    /// The profiles of the endpoints.
    pub profiles: Vec<Profile>,
    /// The number of exchanges of the client or server that are outstanding or waiting.
    pub exchanges: u64,
    /// The number of registered observers of a server.
    pub observers: u64,
    /// The number of peers remembered by the endpoints.
    pub peers: u64,
    /// The number of DTLS sessions, handshakes included.
    pub sessions: u64,
    /// The number of handlers that wait for something.
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
            // The lock of the sessions is free again: a hub that sends takes it while it holds its own.
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
