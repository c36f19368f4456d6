//! All that can be read of a client or server at one moment.

use std::sync::atomic::Ordering;

use coapace_proto::Measures;

use crate::datagram::hub::Hub;
use crate::lock::lock;
use crate::{Profile, Requests, Stats};

/// Counts, distributions and levels of a client or server, without anything of single peers. Its
/// [`Display`](std::fmt::Display) is the text format of Prometheus; `docs/metrics.md` describes every line.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// The counts since it began.
    pub stats: Stats,
    /// The requests to a server.
    pub requests: Requests,
    /// Distributions over the exchanges that it began: a server's are separate responses and notifications.
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

    /// Adds everything of an endpoint but its [`Stats`].
    pub(crate) fn add(&mut self, hub: &Hub) {
        self.pending += u64::from(hub.pending.load(Ordering::Relaxed));
        if let Some(sessions) = &hub.sessions {
            self.sessions += lock(sessions).len() as u64;
        }
        let state = hub.lock();
        let (endpoint, requests) = (&state.endpoint, &state.answers.requests);
        self.requests.merge(requests);
        endpoint.measures().into_iter().for_each(|measures| self.measures.merge(measures));
        self.exchanges += endpoint.exchanges() as u64;
        self.observers += endpoint.observer_count() as u64;
        self.peers += endpoint.peers() as u64;
        let setup = endpoint.setup();
        self.note_profile(&Profile { mechanism: setup.controller, config: setup.config });
    }

    fn note_profile(&mut self, profile: &Profile) {
        if !self.profiles.contains(profile) {
            self.profiles.push(*profile);
        }
    }
}
