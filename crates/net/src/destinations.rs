//! The destinations of a client's requests, with counters and estimates.

use std::net::SocketAddr;
use std::time::Duration;

use coapace_control::{Gauges, Limits};
use foldhash::{HashMap, HashMapExt};

use crate::address::Remote;

/// One destination of a client's requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Destination {
    /// The address.
    pub address: SocketAddr,
    /// The RTO: the estimate that timeouts start from, before dither.
    pub rto: Duration,
    /// The smoothed round-trip time, if the mechanism has measured it.
    pub srtt: Option<Duration>,
    /// The variation of the round-trip time, if the mechanism has measured it.
    pub rttvar: Option<Duration>,
    /// The window of the bulk mechanism: how many exchanges of a body may be outstanding. `None` before the first body.
    pub window: Option<u16>,
    /// The smoothed round-trip time of the blocks of bodies, if the bulk mechanism has measured it.
    pub bulk_srtt: Option<Duration>,
    /// The number of exchanges that have ended.
    pub exchanges: u64,
    /// The number of exchanges that have ended without an answer.
    pub failed: u64,
    /// The number of retransmissions in all ended exchanges.
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

    /// Returns the destination with the current estimates of the mechanism, and of the bulk mechanism if it has
    /// transferred a body.
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

/// The destinations of an endpoint's requests, without their estimates. Their number is bounded.
#[derive(Debug)]
pub(crate) struct Destinations {
    known: HashMap<Remote, Known>,
    bound: usize,
}

#[derive(Debug)]
struct Known {
    destination: Destination,
    /// Whether the destination supports Q-Block options (RFC 9177). `None` if that was not tested.
    q_block: Option<bool>,
}

impl Destinations {
    pub(crate) fn new(bound: usize) -> Self {
        Self { known: HashMap::new(), bound }
    }

    /// Counts an ended exchange with `to` and its `transmissions`. The exchange has `failed` if nothing answered it.
    pub(crate) fn count(&mut self, to: Remote, failed: bool, transmissions: u8) {
        // The table is bounded like the table of peers.
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

    /// Records whether a destination supports Q-Block options.
    pub(crate) fn note_q_block(&mut self, to: Remote, takes: bool) {
        // A destination that was removed since the test is simply tested again.
        if let Some(known) = self.known.get_mut(&to) {
            known.q_block = Some(takes);
        }
    }

    /// Returns whether a destination supports Q-Block options, if that is known.
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
            // The endpoint may have forgotten the peer already, and with it the estimates.
            known.destination.estimated(gauges(to).unwrap_or_default(), bulk(to))
        };
        self.known.iter().map(now)
    }
}
