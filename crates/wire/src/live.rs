//! Runs of a scenario with hosts on real sockets.
//!
//! The hosts are the simulator's ([`Cast`](coapace_run::Cast)): the endpoint, the mechanism, the workload and the random
//! numbers are the same. Sockets of the operating system and the emulated network carry the datagrams. Time is real, so a run
//! of a minute takes a minute.
//!
//! CoAP over TCP runs with the TCP of the operating system.

mod driver;
mod error;
mod foreign;
mod health;
mod marks;
mod network;
mod peer;
mod socket;
mod sources;
mod tcp;
#[cfg(test)]
mod tests;

pub use error::LiveError;
pub use health::Health;
pub use peer::PeerCommand;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use coapace_run::contender::{Contender, ContenderKind};
use coapace_run::measured::RunResult;
use coapace_run::{Observe, needs_datagrams_alone};
use coapace_scenario::{File, Scenario, ServiceTime, WorkloadKind};
use coapace_sim::{Span, Time};

/// The maximum number of clients of a run. Over UDP each takes two sockets, over TCP a thread and an address.
const MOST_CLIENTS: u32 = 5_000;

/// A run to be made in real time.
#[derive(Clone, Copy, Debug)]
pub struct Live<'a> {
    /// The network and the workload.
    pub scenario: &'a Scenario,
    /// The mechanism, the mix or TCP that carries the exchanges.
    pub contender: &'a Contender,
    /// The seed of the random numbers of the hosts and of the network.
    pub seed: u64,
    /// The series that are recorded.
    pub observe: Observe,
    /// The server or the clients of another stack, which replace our own; `None` if all hosts are our own.
    pub peer: Option<&'a PeerCommand>,
    /// The time after which the run is given up.
    pub limit: Duration,
    /// Ends the run when it becomes true.
    pub stop: &'a AtomicBool,
}

impl Live<'_> {
    /// Fails if the run was interrupted, or if its time limit has passed at `now`. `exchanges` returns how many
    /// exchanges are over, for the error.
    fn check(&self, now: Time, exchanges: impl FnOnce() -> u64) -> Result<(), LiveError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(LiveError::Stopped);
        }
        if now > Time::from_nanos(self.limit.as_nanos() as u64) {
            return Err(LiveError::Unfinished {
                label: self.contender.label.clone(),
                seed: self.seed,
                after_s: now.as_secs_f64(),
                exchanges: exchanges(),
            });
        }
        Ok(())
    }
}

/// Checks that a scenario and a contender can run live.
///
/// # Errors
/// Returns one line that says why not.
pub fn fits(scenario: &Scenario, contender: &Contender) -> Result<(), String> {
    let File { workload, server, clients, .. } = &**scenario;
    let name = &scenario.name;
    needs_datagrams_alone(scenario)?;
    if contender.kind == ContenderKind::Tcp && workload.kind == WorkloadKind::Transfer {
        return Err(format!(
            "{name} cannot run live over TCP, because it has a transfer: see coapace emulate"
        ));
    }
    if clients.count > MOST_CLIENTS {
        return Err(format!(
            "live runs have at most {MOST_CLIENTS} clients, and {name} has {}",
            clients.count
        ));
    }
    let is_at_once = server.processing_delay == Span::ZERO && server.service_time == ServiceTime::default();
    if contender.kind == ContenderKind::Tcp && !is_at_once {
        return Err(format!(
            "live servers over TCP answer at once, and {name} has `server.service_time` or `server.processing_delay`"
        ));
    }
    contender.fits(scenario)
}

/// Makes a run. Returns its results, and how late its timers and packets were.
///
/// # Errors
/// [`LiveError`] says in one line why the run could not be made or completed.
pub fn run(live: &Live<'_>) -> Result<(RunResult, Health), LiveError> {
    fits(live.scenario, live.contender).map_err(LiveError::Unfit)?;
    if let Some(peer) = live.peer {
        peer.fits(live.scenario, live.contender).map_err(LiveError::Unfit)?;
    }
    match live.contender.kind {
        ContenderKind::Udp(_) => driver::run(live),
        ContenderKind::Tcp => tcp::run(live),
    }
}
