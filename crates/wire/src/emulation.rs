//! The network of a scenario between real sockets, in real time.
//!
//! An [`Emulation`] passes the packets of real programs through the hops of a scenario: the simulator's own code, driven by the
//! clock of the machine. A packet enters when the system has received it, and leaves when the simulator delivers it.
//!
//! ```
//! use std::net::UdpSocket;
//!
//! use coapace_scenario::Scenario;
//! use coapace_wire::emulation::Emulation;
//!
//! let server = UdpSocket::bind("127.0.0.1:0")?;
//! let scenario = Scenario::load("nb-iot", &[])?;
//! let relay = Emulation::new(&scenario, 1).relay("127.0.0.1:0".parse()?, server.local_addr()?, ())?;
//!
//! let client = UdpSocket::bind("127.0.0.1:0")?;
//! client.send_to(b"hello", relay.local_addr())?;
//! let mut buffer = [0; 16];
//! let (length, source) = server.recv_from(&mut buffer)?;
//! assert_eq!(&buffer[..length], b"hello");
//! server.send_to(b"world", source)?;
//! let (_, from) = client.recv_from(&mut buffer)?;
//! assert_eq!(from, relay.local_addr());
//!
//! let (counts, ()) = relay.stop()?;
//! assert_eq!((counts.arrived, counts.sources), (2, 1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Words
//!
//! * **source**: a client, known by its address and port. Each has a node of the simulated network.
//! * **place**: a slot in the table of sources, whose size is limited.
//! * **lateness**: the time from the moment when a packet was due until it had left.
//! * **side**: one end of a tunnel, the clients' or the server's: a network namespace.
//! * **up**, **down**: towards the server, and towards a client.

mod capture;
mod counts;
mod datagrams;
mod error;
mod exposition;
mod ip_packet;
mod namespace;
mod passage;
mod privileges;
mod relay;
mod running;
mod sources;
mod steps;
#[cfg(test)]
mod tests;
mod tunnel;
pub(crate) mod waiting;

use std::net::SocketAddr;
use std::ops::Deref;

use coapace_run::accounting;
use coapace_scenario::Scenario;
use coapace_sim::{Tap, Transport};

pub use capture::Capture;
pub use counts::EmulationCounts;
pub use error::EmulationError;
pub use namespace::NetworkNamespace;
pub use privileges::take_privileges;
pub use running::{EmulationView, Running};
pub use tunnel::Tunnel;

use passage::Passage;
use relay::EmulationRelay;

/// A scenario whose network is to carry real packets.
#[derive(Clone, Copy, Debug)]
pub struct Emulation<'a> {
    scenario: &'a Scenario,
    seed: u64,
    sources: usize,
}

impl<'a> Emulation<'a> {
    /// The default size of the table of sources.
    pub const SOURCES: usize = 20_000;

    /// Returns the emulation of a scenario. `seed` decides losses, jitter and all other random draws.
    pub fn new(scenario: &'a Scenario, seed: u64) -> Self {
        Self { scenario, seed, sources: Self::SOURCES }
    }

    /// Sets the size of the table of sources, at least 1. Each source takes about a kilobyte. In a relay it also takes
    /// a socket, so the limit on open files limits the number of sources.
    #[must_use]
    pub fn sources(self, sources: usize) -> Self {
        Self { sources, ..self }
    }

    /// Starts to forward datagrams between clients, which send to the address `listen`, and the server at `to`. Each
    /// source has a port of its own towards the server. `tap` sees every event in the network, and is returned at the
    /// end; `()` sees nothing.
    ///
    /// # Errors
    /// [`EmulationError`]: the scenario has a mesh, or the system refuses the address.
    pub fn relay<T: Tap + Send + 'static>(
        self,
        listen: SocketAddr,
        to: SocketAddr,
        tap: T,
    ) -> Result<RunningRelay<T>, EmulationError> {
        let run = (self.scenario, self.seed, tap);
        let passage =
            Passage::new(run, self.sources.min(relay::most_sources()), Transport::Udp, relay::content)?;
        let relay = EmulationRelay::bind(listen, to, accounting(self.scenario), passage)?;
        let local = relay.local_addr().map_err(|error| EmulationError::Listen(listen, error))?;
        Ok(RunningRelay { running: Running::start(move |shared| relay.run(shared))?, local })
    }

    /// Makes two network namespaces and starts to forward IP packets between them. Rates count whole packets, IP headers
    /// included. Each address of the clients' side is a source. The tunnel needs the right to make namespaces (see
    /// [`take_privileges`]), `/dev/net/tun`, and the program `ip` (iproute2).
    ///
    /// # Errors
    /// [`EmulationError`]: the scenario has a mesh, or the system refuses one of these.
    pub fn tunnel<T: Tap + Send + 'static>(self, tap: T) -> Result<Tunnel<T>, EmulationError> {
        let run = (self.scenario, self.seed, tap);
        let passage = Passage::new(run, self.sources, Transport::Ip, ip_packet::content)?;
        Tunnel::start(self.scenario, passage)
    }
}

/// A running relay of datagrams between clients and a server. It runs until it is stopped or dropped.
#[derive(Debug)]
pub struct RunningRelay<T> {
    running: Running<T>,
    local: SocketAddr,
}

impl<T> RunningRelay<T> {
    /// Returns the address to which clients send.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Ends the emulation; see [`Running::stop`].
    ///
    /// # Errors
    /// The errors of [`Running::stop`].
    pub fn stop(self) -> Result<(EmulationCounts, T), EmulationError> {
        self.running.stop()
    }
}

impl<T> Deref for RunningRelay<T> {
    type Target = Running<T>;
    fn deref(&self) -> &Running<T> {
        &self.running
    }
}
