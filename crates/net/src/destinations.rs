//! The destinations of a client's requests, and what is known of them.

use std::net::SocketAddr;
use std::time::Duration;

use coapace_control::Gauges;
use foldhash::{HashMap, HashMapExt};

use crate::address::Remote;

/// One destination of a client's requests.
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
    /// Exchanges that have ended without an answer.
    pub failed: u64,
    /// Retransmissions in all exchanges that have ended.
    pub retransmissions: u64,
}

impl Destination {
    pub(crate) fn new(remote: Remote, counts: DestinationCounts, gauges: Option<Gauges>) -> Self {
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

/// The end of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExchangeEnd {
    Answered,
    Failed,
}

/// The counts of one destination.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DestinationCounts {
    exchanges: u64,
    failed: u64,
    retransmissions: u64,
}

/// The counts of a bounded number of destinations.
#[derive(Debug)]
pub(crate) struct Destinations {
    counts: HashMap<Remote, DestinationCounts>,
    bound: usize,
}

impl Destinations {
    pub(crate) fn new(bound: usize) -> Self {
        Self { counts: HashMap::new(), bound }
    }

    pub(crate) fn count(&mut self, to: Remote, ended: ExchangeEnd, transmissions: u8) {
        if self.counts.len() >= self.bound && !self.counts.contains_key(&to) {
            // Any of them: none is worth more than another.
            let Some(&other) = self.counts.keys().next() else { return };
            self.counts.remove(&other);
        }
        let counts = self.counts.entry(to).or_default();
        counts.exchanges += 1;
        counts.failed += u64::from(ended == ExchangeEnd::Failed);
        counts.retransmissions += u64::from(transmissions.saturating_sub(1));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Remote, DestinationCounts)> {
        self.counts.iter().map(|(&remote, &counts)| (remote, counts))
    }
}
