//! What can be read of a client or server while it runs.

use std::net::SocketAddr;
use std::time::Duration;

use coapace_control::Gauges;
use coapace_proto::Counters;
use foldhash::{HashMap, HashMapExt};

use crate::address::Remote;
use crate::hub::Hub;

/// Counts of a client or server since it began, over all of its endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// What the endpoints have counted.
    pub endpoint: Counters,
    /// What was counted around them.
    pub net: NetCounters,
    /// What was counted of DTLS sessions.
    #[cfg(feature = "dtls")]
    pub dtls: crate::DtlsCounters,
    /// What was counted of a server's connections over TCP.
    #[cfg(feature = "tcp")]
    pub tcp: crate::TcpCounters,
}

/// Counts of what happens between the network and an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetCounters {
    /// Datagrams longer than 2048 bytes, which were dropped.
    pub truncated: u64,
    /// Datagrams that the system would not send.
    pub send_errors: u64,
    /// Requests answered 5.03, because too many handlers were waiting or the server was closing.
    pub refused: u64,
    /// Handlers that panicked.
    pub panics: u64,
    /// Responses that could not be sent because a table of the endpoint was full.
    pub responses_dropped: u64,
    /// Requests that clients were asked to repeat, to show that their address is their own (RFC 9175 §2.3).
    pub challenged: u64,
    /// Handlers that had to wait, and were answered by a task.
    pub deferred: u64,
    /// Requests that came to a group.
    pub group_requests: u64,
    /// Responses to these that were dropped, because too many waited for their moment.
    pub group_responses_dropped: u64,
    /// Observers that have said that they want no more notifications (RFC 7641 §3.6: Observe 1).
    pub deregistered: u64,
    /// Registrations of observers that there was no room for: they were answered as if they had not asked to observe (RFC
    /// 7641 §4.1).
    pub observers_refused: u64,
}

/// Adds fields.
macro_rules! sum {
    ($into:expr, $from:expr, $($field:ident),+) => { $($into.$field += $from.$field;)+ };
}

impl Stats {
    pub(crate) fn add(&mut self, hub: &Hub) {
        {
            let state = hub.lock();
            self.add_counters(&state.endpoint.counters(), &state.counters);
        }
        #[cfg(feature = "dtls")]
        if let Some(sessions) = &hub.sessions {
            self.dtls.add(&sessions.counters());
        }
    }

    /// Adds those of another client or server.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.add_counters(&other.endpoint, &other.net);
        #[cfg(feature = "dtls")]
        self.dtls.add(&other.dtls);
        #[cfg(feature = "tcp")]
        sum!(
            self.tcp,
            other.tcp,
            connections,
            handshakes_failed,
            requests,
            notifications,
            aborted,
            idle,
            stalled,
            evicted,
            observers_refused,
            panics,
            too_large
        );
    }

    fn add_counters(&mut self, counters: &Counters, net: &NetCounters) {
        sum!(
            self.endpoint,
            counters,
            received,
            malformed,
            duplicates,
            late_replies,
            started,
            retransmissions,
            completed,
            converted,
            given_up,
            timed_out,
            rejected,
            notifications,
            notifications_replaced,
            observers_rejected,
            observers_given_up,
            observers_displaced,
            peers_evicted,
            replies_dropped,
            forgotten_early
        );
        sum!(
            self.net,
            net,
            truncated,
            send_errors,
            refused,
            panics,
            responses_dropped,
            challenged,
            deferred,
            group_requests,
            group_responses_dropped,
            deregistered,
            observers_refused
        );
    }
}

/// What a client knows of one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Destination {
    /// Its address.
    pub address: SocketAddr,
    /// The RTO: the estimate that timeouts start from, before dither.
    pub rto: Duration,
    /// The smoothed round-trip time, once measured, and by a mechanism that measures.
    pub srtt: Option<Duration>,
    /// The variation of the round-trip time, likewise.
    pub rttvar: Option<Duration>,
    /// Exchanges that have ended.
    pub exchanges: u64,
    /// Of these, without an answer.
    pub failed: u64,
    /// Retransmissions of all of these.
    pub retransmissions: u64,
}

impl Destination {
    pub(crate) fn new(remote: Remote, counts: Counts, gauges: Option<Gauges>) -> Self {
        let Gauges { rto, srtt, rttvar, .. } = gauges.unwrap_or_default();
        Self {
            address: remote.address(),
            rto: rto.into(),
            srtt: srtt.map(Into::into),
            rttvar: rttvar.map(Into::into),
            exchanges: counts.exchanges,
            failed: counts.failed,
            retransmissions: counts.retransmissions,
        }
    }
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Answered,
    Failed,
}

/// Counts of one destination.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    exchanges: u64,
    failed: u64,
    retransmissions: u64,
}

/// Counts of the destinations of a client; of so many at most.
#[derive(Debug)]
pub(crate) struct Destinations {
    counts: HashMap<Remote, Counts>,
    bound: usize,
}

impl Destinations {
    pub(crate) fn new(bound: usize) -> Self {
        Self { counts: HashMap::new(), bound }
    }

    pub(crate) fn count(&mut self, to: Remote, ended: Ended, transmissions: u8) {
        if self.counts.len() >= self.bound && !self.counts.contains_key(&to) {
            // Any of them: none is worth more than another.
            let Some(&other) = self.counts.keys().next() else { return };
            self.counts.remove(&other);
        }
        let counts = self.counts.entry(to).or_default();
        counts.exchanges += 1;
        counts.failed += u64::from(ended == Ended::Failed);
        counts.retransmissions += u64::from(transmissions.saturating_sub(1));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Remote, Counts)> {
        self.counts.iter().map(|(&remote, &counts)| (remote, counts))
    }
}
