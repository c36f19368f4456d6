//! The emulated network between the clients and their server.

use std::net::{Ipv4Addr, SocketAddr};

use coapace_scenario::Scenario;

use super::LiveError;
use crate::emulation::{Emulation, EmulationCounts, RunningRelay};

/// The emulated network between the clients and their server.
#[derive(Debug)]
pub(super) struct EmulatedNetwork {
    relay: RunningRelay<()>,
}

impl EmulatedNetwork {
    /// Opens the network of a scenario in front of a server.
    pub(super) fn open(scenario: &Scenario, seed: u64, server: SocketAddr) -> Result<Self, LiveError> {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        // Each client is one source, so none loses its slot during the run.
        let emulation = Emulation::new(scenario, seed).sources(scenario.clients.count as usize);
        Ok(Self { relay: emulation.relay(listen, server, ())? })
    }

    /// Returns the address at which clients reach the server through the network.
    pub(super) fn entrance(&self) -> SocketAddr {
        self.relay.local_addr()
    }

    /// Returns whether the network has ended by itself, with an error that [`close`](Self::close) returns.
    pub(super) fn has_ended(&self) -> bool {
        self.relay.has_ended()
    }

    /// Returns the number of packets dropped and the number lost on links. Both are at most a tenth of a second old.
    pub(super) fn counts(&self) -> (u64, u64) {
        let counts = self.relay.counts();
        (counts.dropped, counts.lost)
    }

    /// Ends the network and returns its counters.
    pub(super) fn close(self) -> Result<EmulationCounts, LiveError> {
        Ok(self.relay.stop()?.0)
    }
}
