//! The destinations of a client's requests, with counts and estimates.

use std::net::SocketAddr;
use std::time::Duration;

use coapace_control::{Gauges, Limits};
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
    /// The smoothed round-trip time, if the mechanism measures it and has done so.
    pub srtt: Option<Duration>,
    /// The variation of the round-trip time, if the mechanism measures it and has done so.
    pub rttvar: Option<Duration>,
    /// The exchanges of a body that may be under way at once, if several were.
    pub window: Option<u16>,
    /// The smoothed round-trip time of the blocks of bodies, if several were under way and it is measured.
    pub bulk_srtt: Option<Duration>,
    /// Exchanges that have ended.
    pub exchanges: u64,
    /// Exchanges that have ended without an answer.
    pub failed: u64,
    /// Retransmissions in all exchanges that have ended.
    pub retransmissions: u64,
}

impl Destination {
    fn new(remote: Remote) -> Self {
        Self {
            address: remote.address(),
            rto: Duration::ZERO,
            srtt: None,
            rttvar: None,
            window: None,
            bulk_srtt: None,
            exchanges: 0,
            failed: 0,
            retransmissions: 0,
        }
    }

    /// Adds the present estimates of the mechanism, and of the mechanism of bodies if it has transferred one.
    fn estimated(self, gauges: Gauges, bulk: Option<(Limits, Gauges)>) -> Self {
        let Gauges { rto, srtt, rttvar, .. } = gauges;
        Self {
            rto: rto.into(),
            srtt: srtt.map(Into::into),
            rttvar: rttvar.map(Into::into),
            window: bulk.and_then(|(limits, _)| limits.nstart),
            bulk_srtt: bulk.and_then(|(_, gauges)| gauges.srtt).map(Into::into),
            ..self
        }
    }
}

/// A bounded number of destinations, without their estimates.
#[derive(Debug)]
pub(crate) struct Destinations {
    known: HashMap<Remote, Known>,
    bound: usize,
}

#[derive(Debug)]
struct Known {
    destination: Destination,
    /// Whether it takes Q-Block options (RFC 9177), if it was asked.
    q_block: Option<bool>,
}

impl Destinations {
    pub(crate) fn new(bound: usize) -> Self {
        Self { known: HashMap::new(), bound }
    }

    /// Counts the end of an exchange, which has `failed` if nothing answered it.
    pub(crate) fn count(&mut self, to: Remote, failed: bool, transmissions: u8) {
        if self.known.len() >= self.bound && !self.known.contains_key(&to) {
            // Which destination is removed does not matter.
            let Some(&other) = self.known.keys().next() else { return };
            self.known.remove(&other);
        }
        let unasked = || Known { destination: Destination::new(to), q_block: None };
        let Known { destination, .. } = self.known.entry(to).or_insert_with(unasked);
        destination.exchanges += 1;
        destination.failed += u64::from(failed);
        destination.retransmissions += u64::from(transmissions.saturating_sub(1));
    }

    /// Notes whether a destination, which has answered, takes Q-Block options.
    pub(crate) fn note_q_block(&mut self, to: Remote, takes: bool) {
        if let Some(known) = self.known.get_mut(&to) {
            known.q_block = Some(takes);
        }
    }

    /// Returns whether a destination takes Q-Block options, if that is known.
    pub(crate) fn q_block(&self, to: Remote) -> Option<bool> {
        self.known.get(&to)?.q_block
    }

    /// Returns each destination, with the estimates that `gauges` and `bulk` have of it.
    pub(crate) fn estimated(
        &self,
        gauges: impl Fn(Remote) -> Option<Gauges>,
        bulk: impl Fn(Remote) -> Option<(Limits, Gauges)>,
    ) -> impl Iterator<Item = Destination> {
        let now = move |(&to, known): (&Remote, &Known)| {
            known.destination.estimated(gauges(to).unwrap_or_default(), bulk(to))
        };
        self.known.iter().map(now)
    }
}
