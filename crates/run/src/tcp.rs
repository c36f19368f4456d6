//! The hosts of workloads over TCP.

use coapace_proto::Token;
use coapace_scenario::{File, Scenario, WorkloadKind};
use coapace_sim::tcp::{TcpClient, TcpParameters, TcpPlan, TcpResponse, TcpServer};
use coapace_sim::{Luck, NodeId, Span, Stream, Time};

use super::endpoints::{request, response};
use super::observe::Run;
use super::seats::{Casting, Role, Seats};
use crate::nodes::{CONTENT, GET, HostNode, RelayNode, batch_size, service_time, start};

/// The time before the measured part in which connections are made, if `tcp.connect_first` is set.
pub(super) const CONNECTING: Span = Span::from_secs(60);

/// Returns a function that makes the host for a role.
pub(super) fn hosts<'a>(run: Run<'a>, seats: &'a Seats) -> Casting<'a> {
    let Run { scenario, seed, .. } = run;
    let luck = Luck::new(seed);
    let File { clients, server, .. } = &**scenario;
    let parameters = parameters(scenario);
    let response = TcpResponse { code: CONTENT, tail: response(scenario) };
    // A client may have several connections that are closing while it has a new one.
    let connections = 16 * clients.count.div_ceil(seats.servers()) as usize;
    let times = luck.stream("service");
    let serve = move |node: NodeId| {
        // The first server has the seed of the run.
        let seed = seed.wrapping_add(u64::from(node.0) << 48);
        let host = TcpServer::new(node, response.clone(), connections, parameters, seed);
        // Requests take the times that they take over UDP.
        let keys = server.clone();
        let time = move |from, mark| service_time(&keys, times, from, mark);
        HostNode::TcpServer(Box::new(host.serving_in(time)))
    };
    let client = move |client, node| {
        let plan = plan(scenario, seats, luck, client);
        // The server changes other bits of the seed, so the two ends never share one.
        HostNode::TcpClient(Box::new(TcpClient::new(node, plan, parameters, seed ^ u64::from(client) << 32)))
    };
    Box::new(move |role| match role {
        Role::Server(node) | Role::Depot(_, node) => serve(node),
        Role::Client { number, node } => client(number, node),
        Role::Relay => HostNode::Relay(RelayNode),
    })
}

/// Returns the parameters of the TCP connections of a scenario.
pub(super) fn parameters(scenario: &Scenario) -> TcpParameters {
    let File { tcp, network, .. } = &**scenario;
    TcpParameters {
        mtu: network.mtu.try_into().unwrap_or(u16::MAX),
        ack_delay: tcp.delayed_ack,
        nagle: tcp.nagle,
        handshake_timeout_percent: tcp.handshake_timeout_percent.try_into().unwrap_or(u16::MAX),
        timer_hz: tcp.timer_hz.and_then(|hz| hz.try_into().ok()).unwrap_or(0),
        ..TcpParameters::default()
    }
}

/// Returns the plan of each client of a run over TCP, the first client first. A plan says what the client does and
/// when.
pub fn tcp_plans(scenario: &Scenario, seed: u64) -> Vec<TcpPlan> {
    let seats = Seats::of(scenario);
    (1..=scenario.clients.count).map(|client| plan(scenario, &seats, Luck::new(seed), client)).collect()
}

/// Returns the plan of a client of a run over TCP.
fn plan(scenario: &Scenario, seats: &Seats, luck: Luck, client: u32) -> TcpPlan {
    let clients = &scenario.clients;
    let beforehand = connects_beforehand(scenario);
    let start = start(clients, luck.stream("start"), client);
    // Clients connect one after the other, so that no queue of handshakes arises.
    // The second half of the time is for the last handshakes.
    let turn = CONNECTING / 2 * u64::from(client) / u64::from(clients.count);
    TcpPlan {
        server: seats.server_of(client),
        batches: batches(scenario, luck.stream("batches"), client),
        connect_at: if beforehand { Time::ZERO + turn } else { start },
        request_at: if beforehand { start + CONNECTING } else { start },
        pause: Span::ZERO,
        method: GET,
        token: Token::EMPTY,
        tail: request(scenario),
    }
}

/// Returns whether connections are made before the measured run begins.
pub(super) fn connects_beforehand(scenario: &Scenario) -> bool {
    scenario.workload.kind == WorkloadKind::Continuous && scenario.tcp.connect_first
}

/// Returns the sizes of a client's batches, in exchanges. They add up to the number of its exchanges, so the last batch
/// may be shorter than drawn.
fn batches(scenario: &Scenario, sizes: Stream, client: u32) -> Vec<u32> {
    let workload = &scenario.workload;
    // Without a number of exchanges, a client has more than there is time for.
    let exchanges = workload.exchanges.unwrap_or(u32::MAX);
    if workload.kind != WorkloadKind::Random {
        return vec![exchanges];
    }
    let mut batches = Vec::new();
    let mut left = exchanges;
    while left > 0 {
        let size = batch_size(workload, sizes, client, batches.len() as u32).min(left);
        batches.push(size);
        left -= size;
    }
    batches
}
