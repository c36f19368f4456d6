//! The way between the clients and a server.

use std::net::SocketAddr;

use coapace_scenario::Scenario;

use super::LiveError;

/// The network between the clients and their server.
#[derive(Debug)]
pub(super) struct Way {
    /// The address at which clients reach the server.
    pub(super) entrance: SocketAddr,
}

impl Way {
    /// Opens the network of a scenario before a server.
    pub(super) fn open(_scenario: &Scenario, _seed: u64, server: SocketAddr) -> Result<Self, LiveError> {
        Ok(Self { entrance: server })
    }

    /// Returns how many packets found a queue full, and how many a link lost.
    pub(super) fn counts(&self) -> (u64, u64) {
        (0, 0)
    }
}
