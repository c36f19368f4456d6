//! The hosts of a simulated run: a CoAP endpoint with an application on it.

mod client;
mod copies;
mod mote;
mod server;
mod transfer;

pub(crate) use client::{ClientBehaviour, ClientNode};
pub(crate) use mote::{DeliveredMessage, FlowPlan, Mote, MotePlan};
pub(crate) use server::{ServerBehaviour, ServerNode, service_time};
pub(crate) use transfer::{PUT, TransferBody, TransferClient, TransferPlan, first_transfer};

use coapace_control::Duration;
use coapace_proto::{Code, Counters, Tail};
use coapace_sim::tcp::{TcpClient, TcpServer};
use coapace_sim::{Mark, Node, NodeId, Outgoing, Stream, Time};

use crate::measured::RunResult;
use coapace_scenario::{Clients, Scenario, Workload};

/// A host of any kind. All kinds are boxed except clients over UDP, which are the most numerous.
#[allow(clippy::large_enum_variant)]
pub(crate) enum HostNode {
    Client(ClientNode),
    Server(Box<ServerNode>),
    Mote(Box<Mote>),
    Relay(RelayNode),
    TcpClient(Box<TcpClient>),
    TcpServer(Box<TcpServer>),
    Transfer(Box<TransferClient>),
    /// A client over TCP that transfers bodies, with the index of its transfer.
    TcpTransfer(usize, Box<TcpClient>),
    /// A server over TCP that sends or receives bodies, with the index of its transfer.
    TcpDepot(usize, Box<TcpServer>),
}

/// Calls the same method on a host of any kind.
macro_rules! each {
    ($host:expr, $inner:ident => $call:expr) => {
        match $host {
            HostNode::Client($inner) => $call,
            HostNode::Server($inner) => $call,
            HostNode::Mote($inner) => $call,
            HostNode::Relay($inner) => $call,
            HostNode::TcpClient($inner) => $call,
            HostNode::TcpServer($inner) => $call,
            HostNode::Transfer($inner) => $call,
            HostNode::TcpTransfer(_, $inner) => $call,
            HostNode::TcpDepot(_, $inner) => $call,
        }
    };
}

impl Node for HostNode {
    fn handle_datagram(&mut self, now: Time, from: NodeId, mark: Mark, bytes: &[u8]) {
        each!(self, host => host.handle_datagram(now, from, mark, bytes));
    }

    fn handle_timeout(&mut self, now: Time) {
        each!(self, host => host.handle_timeout(now));
    }

    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        each!(self, host => host.poll_transmit(now, buffer))
    }

    fn poll_timeout(&self) -> Option<Time> {
        each!(self, host => host.poll_timeout())
    }

    /// Returns the RTO of the host's mechanism towards its server, or towards the sink of its first flow; `None` for hosts
    /// without a mechanism.
    fn rto(&self) -> Option<Duration> {
        match self {
            Self::Client(client) => client.rto(),
            Self::Mote(mote) => mote.rto(),
            Self::Transfer(client) => client.rto(),
            Self::Server(_)
            | Self::TcpClient(_)
            | Self::TcpServer(_)
            | Self::TcpTransfer(..)
            | Self::TcpDepot(..)
            | Self::Relay(_) => None,
        }
    }
}

/// A node without an application. It forwards packets for other nodes, and ignores messages that are sent to it.
#[derive(Debug)]
pub(crate) struct RelayNode;

impl Node for RelayNode {
    fn handle_datagram(&mut self, _: Time, _: NodeId, _: Mark, _: &[u8]) {}

    fn handle_timeout(&mut self, _: Time) {}

    fn poll_transmit(&mut self, _: Time, _: &mut Vec<u8>) -> Option<Outgoing> {
        None
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}

/// The method GET.
pub(crate) const GET: Code = Code(coap_numbers::code::GET);

/// The code of a response without content, 2.04.
pub(crate) const CHANGED: Code = Code(coap_numbers::code::CHANGED);

/// The code of a response with content, 2.05.
pub(crate) const CONTENT: Code = Code(coap_numbers::code::CONTENT);

impl HostNode {
    /// Adds the counts of this host to the results of its run.
    pub(crate) fn report(&self, scenario: &Scenario, result: &mut RunResult) {
        match self {
            Self::Client(client) => client.report(result),
            Self::Server(server) => server.report(result),
            Self::Mote(mote) => mote.report(result),
            Self::Relay(_) => {}
            Self::TcpClient(client) => {
                let report = client.report();
                let completed = report.completions.len() as u32;
                result.exchanges.push(completed);
                // Without a number of exchanges no response is the last, so nothing is completed.
                if scenario.workload.exchanges.is_some() {
                    result.fct_s.push(span_s(report.first_request, report.finished));
                }
                result.retransmissions += report.retransmitted_segments;
                // Each end counts the duplicates that it receives: the spurious retransmissions of the other end.
                result.spurious += report.duplicate_segments;
                // TCP counts segments and not requests. The workload has the number, or else the responses do.
                result.requests_sent += u64::from(scenario.workload.exchanges.unwrap_or(completed));
            }
            Self::TcpServer(server) => {
                let counters = server.counters();
                result.responses_sent += counters.requests;
                result.retransmissions += counters.retransmitted_segments;
                result.spurious += counters.duplicate_segments;
            }
            Self::Transfer(client) => client.report(result),
            Self::TcpTransfer(number, client) => {
                if let Some(own) = result.transfers.get_mut(*number) {
                    own.add_tcp_client(client);
                }
            }
            Self::TcpDepot(number, server) => {
                if let Some(own) = result.transfers.get_mut(*number) {
                    own.add_tcp_server(server);
                }
            }
        }
    }

    /// Returns whether the host has ended all its requests. Always true for motes, servers and relays.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Client(client) => client.is_done(),
            Self::TcpClient(client) | Self::TcpTransfer(_, client) => client.report().finished.is_some(),
            Self::Transfer(client) => client.is_done(),
            Self::Mote(_) | Self::Server(_) | Self::TcpServer(_) | Self::TcpDepot(..) | Self::Relay(_) => {
                true
            }
        }
    }
}

/// Adds the exchanges of a client over UDP to the results of its run and of its population. `busy_us` is the sum of
/// their durations in microseconds.
fn report_exchanges(
    result: &mut RunResult,
    population: usize,
    completed: u32,
    busy_us: u64,
    counters: &Counters,
) {
    let sent = counters.started + counters.retransmissions;
    result.exchanges.push(completed);
    result.retransmissions += counters.retransmissions;
    result.requests_sent += sent;
    if let Some(population) = result.populations.get_mut(population) {
        // A population that is compared by transfers counts the clients that transfer instead (`TransferClient::report`).
        population.clients += u32::from(population.transfers.is_none());
        population.exchanges += u64::from(completed);
        population.requests_sent += sent;
        population.retransmissions += counters.retransmissions;
        population.exchange_time_us += busy_us;
    }
}

/// Returns the seconds from the time `from` to the time `to`; `None` if one of them is not known.
fn span_s(from: Option<Time>, to: Option<Time>) -> Option<f64> {
    Some(to?.as_secs_f64() - from?.as_secs_f64())
}

/// Adds to `tail` the options of the path that all requests of `clients` have.
pub(crate) fn with_path(tail: Tail, clients: &Clients) -> Tail {
    let option = coap_numbers::option::URI_PATH;
    clients.uri_path_segments().fold(tail, |tail, segment| tail.option(option, segment.as_bytes()))
}

/// Returns the time of a client's first request.
pub(crate) fn start(clients: &Clients, starts: Stream, client: u32) -> Time {
    Time::ZERO + clients.start + starts.within(clients.start_spread, u64::from(client), 0, 0)
}

/// Returns the number of exchanges in batch number `batch` of a client.
pub(crate) fn batch_size(workload: &Workload, sizes: Stream, client: u32, batch: u32) -> u32 {
    let Workload { batch_min: least, batch_max: most, .. } = *workload;
    // A scenario is refused if `batch_max` is below `batch_min`.
    least + sizes.below(u64::from(most - least) + 1, u64::from(client), u64::from(batch), 0) as u32
}

// Runs have up to a hundred thousand clients, so the memory of each is bounded here.
const _: () = assert!(size_of::<HostNode>() <= 504);
