//! The hosts of a run, for the simulator and for real sockets.

use coapace_scenario::{File, Protocol, Scenario, WorkloadKind};
use coapace_sim::{Node, NodeId, Time};

use super::observe::{Observe, Run};
use super::seats::{Casting, Seats};
use super::tcp::{CONNECTING, connects_beforehand};
use super::{LIMIT, closed, flows, tcp, transfers};
use crate::contender::{Contender, ContenderKind};
use crate::measured::{Population, RunResult, TransferResult, jain_index};
use crate::nodes::HostNode;

/// The times at which the measured part of a run with a fixed length begins and ends.
pub(super) type MeasuredPeriod = (Time, Time);

/// The hosts of a run over UDP, the same as in the simulator, but without the network between them. The caller carries
/// their datagrams, and calls them when their timeouts are due.
///
/// Nodes are numbered from 0: first the servers, then the clients. All clients send their requests to the same server.
pub struct Cast<'a> {
    run: Run<'a>,
    server: NodeId,
    first_client: u32,
    hosts: Vec<HostNode>,
    /// The counts at the end of the warm-up, which the results leave out; `None` until the warm-up ends.
    unmeasured: Option<RunResult>,
}

impl<'a> Cast<'a> {
    /// Makes the hosts of a run.
    ///
    /// # Errors
    /// Returns one line if sockets cannot carry the scenario: it has a mesh, flows, several servers or several
    /// transfers, or it uses TCP.
    pub fn new(
        scenario: &'a Scenario,
        contender: &'a Contender,
        seed: u64,
        observe: Observe,
    ) -> Result<Self, String> {
        needs_datagrams_alone(scenario)?;
        if contender.kind == ContenderKind::Tcp {
            return Err("CoAP over TCP has no datagrams".to_owned());
        }
        let seats = Seats::of(scenario);
        let measured = window(scenario, contender).unwrap_or((Time::ZERO, LIMIT));
        let run = Run { scenario, contender, seed, observe };
        let mut host = hosts(run, &seats, measured);
        let hosts = seats.roles.iter().map(|&(_, role)| host(role)).collect();
        // `needs_datagrams_alone` left one server, or one transfer of all clients, so the first client speaks for all.
        let server = seats.depot_of(1).map_or(seats.server(0), |(_, depot)| depot);
        Ok(Self { run, server, first_client: seats.first_client(), hosts, unmeasured: None })
    }

    /// Returns the server to which the clients send their requests.
    pub fn server(&self) -> NodeId {
        self.server
    }

    /// Returns the node number of the first client. Lower numbers are servers.
    pub fn first_client(&self) -> u32 {
        self.first_client
    }

    /// Returns the number of nodes: servers and clients.
    pub fn nodes(&self) -> u32 {
        self.hosts.len() as u32
    }

    /// Returns the host of a node; `None` if no node has this number.
    pub fn host(&mut self, node: NodeId) -> Option<&mut (impl Node + use<>)> {
        self.hosts.get_mut(node.0 as usize)
    }

    /// Returns whether a client has ended all its exchanges. Always true for a server, and never for a client that goes
    /// on until the run ends.
    pub fn is_done(&self, node: NodeId) -> bool {
        self.hosts.get(node.0 as usize).is_none_or(HostNode::is_done)
    }

    /// Returns the number of exchanges that the clients completed or gave up.
    pub fn exchanges(&self) -> u64 {
        let counted = counted(self.run, &self.hosts, 0, 0);
        counted.completed() + counted.given_up
    }

    /// Ends the warm-up. The results leave out all counts of the hosts until now, and the packets that the network has
    /// dropped (`drops`) and lost (`losses`) so far.
    pub fn begin_measuring(&mut self, drops: u64, losses: u64) {
        self.unmeasured = Some(counted(self.run, &self.hosts, drops, losses));
    }

    /// Returns the results of a run that ended at `ended_at`. `drops` and `losses` are the packets that the network has
    /// dropped and lost since the start.
    pub fn result(&self, ended_at: Time, drops: u64, losses: u64) -> RunResult {
        let Run { scenario, contender, seed, .. } = self.run;
        let mut result = counted(self.run, &self.hosts, drops, losses);
        if let Some(unmeasured) = &self.unmeasured {
            result.leave_out(unmeasured);
        }
        result.seed = seed;
        let window = window(scenario, contender);
        completed(scenario, contender, window, ended_at, &mut result);
        transfers::settle(scenario, window.unwrap_or((Time::ZERO, ended_at)), &mut result);
        result
    }
}

/// Checks that the hosts of a scenario over UDP exchange only datagrams with one server, so that sockets can carry them.
///
/// # Errors
/// Returns one line that names what sockets cannot carry: a mesh, flows, several servers, or transfers other than a
/// single one over UDP of all clients.
pub fn needs_datagrams_alone(scenario: &Scenario) -> Result<(), String> {
    let File { network, server, clients, workload, .. } = &**scenario;
    let more = match workload.kind {
        _ if network.mesh.is_some() => "a mesh",
        WorkloadKind::Flows => "flows",
        WorkloadKind::Transfer => match workload.transfers.as_slice() {
            [own] if own.protocol == Protocol::Tcp => "a transfer over TCP",
            // Without a number, the transfer takes all clients.
            [own] if own.clients.is_none_or(|own| own == clients.count) => return Ok(()),
            _ => "several transfers, or clients without one: live, all clients take part in one transfer",
        },
        WorkloadKind::Continuous | WorkloadKind::Random if server.count == 1 => return Ok(()),
        WorkloadKind::Continuous | WorkloadKind::Random => {
            return Err("live runs have one server: --set server.count=1".to_owned());
        }
    };
    Err(format!("{} cannot run live, because it has {more}", scenario.name))
}

/// Returns a function that makes the host for a role, with the mechanism or the transport of the contender.
pub(super) fn hosts<'a>(run: Run<'a>, seats: &'a Seats, (from, end): MeasuredPeriod) -> Casting<'a> {
    match &run.contender.kind {
        ContenderKind::Udp(mix) if run.scenario.workload.kind == WorkloadKind::Flows => {
            flows::hosts(run, seats, mix, (from, end))
        }
        // Clients that take part in no transfer send single requests, also beside transfers.
        ContenderKind::Udp(mix) => transfers::hosts(run, seats, closed::hosts(run, seats, mix, from)),
        ContenderKind::Tcp => transfers::hosts(run, seats, tcp::hosts(run, seats)),
    }
}

/// Returns the measured part of a run, from the end of the warm-up to the end of the run; `None` if the workload has no
/// fixed duration.
pub fn window(scenario: &Scenario, contender: &Contender) -> Option<MeasuredPeriod> {
    let duration = scenario.workload.duration?;
    let start = match &contender.kind {
        // The handshakes come before the first request, and must not use up measured time.
        ContenderKind::Tcp if connects_beforehand(scenario) => Time::ZERO + CONNECTING,
        _ => Time::ZERO,
    };
    Some((start + scenario.workload.warm_up, start + duration))
}

/// Returns the counts of the hosts so far. `drops` and `losses` are the packets that the network has dropped and lost.
pub(super) fn counted(run: Run<'_>, hosts: &[HostNode], drops: u64, losses: u64) -> RunResult {
    let of_transfers = run.contender.is_compared_by_transfers(run.scenario);
    let parts = run.contender.parts().iter();
    let populations = parts.map(|part| Population::new(&part.label, of_transfers)).collect();
    let transfers = run.scenario.workload.transfers.iter().map(TransferResult::new).collect();
    // The results of populations and transfers must be there first: hosts add to them by number.
    let mut result = RunResult { drops, losses, populations, transfers, ..RunResult::default() };
    for host in hosts {
        host.report(run.scenario, &mut result);
    }
    result.transfers.iter_mut().for_each(TransferResult::sort);
    result
}

/// Adds durations and rates to the counts in `result`, for a run that ended at `ended_at`.
pub fn completed(
    scenario: &Scenario,
    contender: &Contender,
    window: Option<MeasuredPeriod>,
    ended_at: Time,
    result: &mut RunResult,
) {
    result.duration_s =
        window.map_or(ended_at.as_secs_f64(), |(from, end)| end.as_secs_f64() - from.as_secs_f64());
    // The measured time ends with the last response of the last client, or with the run if a client never had it.
    let finished = result.fct_s.iter().try_fold(0.0, |last: f64, fct| Some(last.max((*fct)?)));
    let measured_s = finished.filter(|_| window.is_none()).unwrap_or(result.duration_s);
    if measured_s > 0.0 {
        let payload_bits = result.completed() as f64 * f64::from(scenario.server.payload_bytes) * 8.0;
        result.goodput_bps = payload_bits / measured_s;
        result.throughput = result.completed() as f64 / measured_s;
    }
    if let ContenderKind::Udp(mix) = &contender.kind {
        let rates: Vec<(f64, u32)> = result.rates().zip(0..).collect();
        // Populations that are compared by transfers get their rates in `transfers::settle`.
        let by_exchanges = |(_, own): &(usize, &mut Population)| own.transfers.is_none();
        for (part, population) in result.populations.iter_mut().enumerate().filter(by_exchanges) {
            let own = rates.iter().filter(|(_, client)| mix.part_of(*client) == part).map(|(rate, _)| *rate);
            population.throughput = own.clone().sum();
            population.jain = jain_index(own);
        }
    }
}
