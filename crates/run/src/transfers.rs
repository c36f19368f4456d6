//! The hosts of workloads with transfers, and the results of the transfers.

use std::ops::Range;
use std::sync::Arc;

use coapace_control::Seam;
use coapace_proto::{Setup, Tail, Token};
use coapace_scenario::naming::parse_bulk;
use coapace_scenario::{Direction, Protocol, Scenario, Transfer};
use coapace_sim::tcp::{TcpClient, TcpParameters, TcpPlan, TcpResponse, TcpServer};
use coapace_sim::{Luck, NodeId, Stream, Time};

use super::endpoints::bulk_configs;
use super::observe::{Observe, Run};
use super::seats::{Casting, Role, Seats};
use super::{closed, tcp};
use crate::contender::ContenderKind;
use crate::measured::{RunResult, jain_index};
use crate::mix::MixPart;
use crate::nodes::{
    CHANGED, CONTENT, GET, HostNode, PUT, ServerNode, TransferBody, TransferClient, TransferPlan,
    first_transfer,
};

/// The size in bytes of the buffer at each end of a TCP connection that carries a body. It exceeds the bandwidth–delay
/// product of every built-in link.
const TCP_BUFFER: u32 = 1 << 20;

/// The number of clients of a transfer whose series are recorded.
const RECORDED: usize = 3;

/// The maximum number of bytes that a CoAP message over TCP has in addition to its body.
const AROUND: u64 = 64;

/// Returns a function that makes the host for a role. `others` makes the hosts that take part in no transfer.
pub(super) fn hosts<'a>(run: Run<'a>, seats: &'a Seats, mut others: Casting<'a>) -> Casting<'a> {
    let Run { scenario, contender, seed, .. } = run;
    let transfers = &scenario.workload.transfers;
    if transfers.is_empty() {
        return others;
    }
    let luck = Luck::new(seed);
    let all: Vec<TransferCast<'_>> = transfers
        .iter()
        .enumerate()
        .map(|(number, keys)| TransferCast::new(run, seats, luck, keys, number))
        .collect();
    // In a mesh the primary sink is the server of all bodies, and of the other requests.
    let sink = scenario.network.mesh.is_some().then(|| {
        let bodies = all.iter().map(|own| own.body.clone()).collect();
        closed::service(run, bulk_configs(scenario, scenario.clients.count).1, bodies, scenario.clients.count)
    });
    // The contender `tcp` carries every body over TCP, whatever protocol the transfer names.
    let over_tcp = contender.kind == ContenderKind::Tcp;
    Box::new(move |role| match role {
        Role::Server(node) if node == seats.server(0) => match &sink {
            Some(service) => HostNode::Server(Box::new(ServerNode::new(service.clone(), node))),
            None => others(role),
        },
        Role::Depot(number, node) => match all.get(number) {
            Some(own) => own.server(run, node, over_tcp),
            None => others(role),
        },
        Role::Client { number, node } => match seats.depot_of(number) {
            Some((transfer, server)) => all[transfer].client(run, number, node, server, over_tcp),
            None => others(role),
        },
        Role::Server(_) | Role::Relay => others(role),
    })
}

/// The behaviour of the hosts of one transfer.
struct TransferCast<'a> {
    keys: &'a Transfer,
    /// The numbers of the transfer's clients.
    clients: Range<u32>,
    /// The number of clients over UDP in earlier transfers. A mix of mechanisms is dealt out to the clients of all
    /// transfers, so in this transfer it continues after the clients of earlier transfers.
    before: u32,
    body: Arc<TransferBody>,
    starts: Stream,
    /// The behaviour of the clients of each population.
    plans: Vec<Arc<TransferPlan>>,
}

impl<'a> TransferCast<'a> {
    fn new(run: Run<'a>, seats: &Seats, luck: Luck, keys: &'a Transfer, number: usize) -> Self {
        let body = Arc::new(TransferBody::new(keys, number, luck));
        let starts = luck.stream(&format!("transfer/{}/start", keys.name));
        let (config, _) = bulk_configs(run.scenario, 1);
        // The scenario was refused if it had a wrong name, so this never fails.
        let bulk = keys.bulk.as_deref().and_then(|name| parse_bulk(name).ok());
        let plan = |(population, part): (usize, &MixPart)| {
            let bulk = part.bulk.or(bulk).map(Seam::from);
            Arc::new(TransferPlan {
                population,
                keys: keys.clone(),
                body: body.clone(),
                setup: Arc::new(Setup { controller: part.seam(), config, bulk }),
                starts,
                dither: luck.stream("dither"),
            })
        };
        let plans = run.contender.parts().iter().enumerate().map(plan).collect();
        let earlier = run.scenario.workload.transfers.iter().enumerate().take(number);
        let over_udp = earlier.filter(|(_, keys)| keys.protocol != Protocol::Tcp);
        let before = over_udp.map(|(number, _)| seats.participants(number).len() as u32).sum();
        Self { keys, clients: seats.participants(number), before, body, starts, plans }
    }

    fn server(&self, run: Run<'_>, node: NodeId, over_tcp: bool) -> HostNode {
        let clients = self.clients.len() as u32;
        if !over_tcp && self.keys.protocol != Protocol::Tcp {
            let config = bulk_configs(run.scenario, clients).1;
            let service = closed::service(run, config, vec![self.body.clone()], clients);
            return HostNode::Server(Box::new(ServerNode::new(service, node)));
        }
        let response = match self.keys.direction {
            Direction::Down => {
                TcpResponse { code: CONTENT, tail: Tail::default().payload(&self.body.bytes).into_bytes() }
            }
            Direction::Up => TcpResponse { code: CHANGED, tail: Vec::new() },
        };
        let seed = run.seed.wrapping_add(u64::from(node.0) << 48);
        let connections = 16 * clients as usize;
        let server = TcpServer::new(node, response, connections, self.tcp(run.scenario), seed);
        HostNode::TcpDepot(self.body.number, Box::new(server))
    }

    fn client(&self, run: Run<'_>, number: u32, node: NodeId, server: NodeId, over_tcp: bool) -> HostNode {
        // A mix deals its parts out over the clients of UDP transfers alone, so the turn of a client counts from `before`.
        let udp = match &run.contender.kind {
            ContenderKind::Udp(mix) => self.plans.get(mix.part_of(self.before + number - self.clients.start)),
            ContenderKind::Tcp => None,
        };
        if !over_tcp
            && self.keys.protocol != Protocol::Tcp
            && let Some(plan) = udp
        {
            let series = self.series(run, number);
            return HostNode::Transfer(Box::new(TransferClient::new(plan.clone(), number, server, series)));
        }
        let path = Tail::default().option(coap_numbers::option::URI_PATH, self.keys.name.as_bytes());
        let (method, tail) = match self.keys.direction {
            Direction::Down => (GET, path),
            Direction::Up => (PUT, path.payload(&self.body.bytes)),
        };
        let start = first_transfer(self.keys, self.starts, number);
        let plan = TcpPlan {
            server,
            batches: vec![self.keys.count.unwrap_or(u32::MAX)],
            // The connection is part of the transfer: the handshake counts.
            connect_at: start,
            request_at: start,
            pause: self.keys.pause,
            method,
            token: Token::EMPTY,
            tail: tail.into_bytes(),
        };
        // Other bits than in `server`, so that the two ends of a connection do not share a seed.
        let seed = run.seed ^ u64::from(number) << 32;
        let client = TcpClient::new(node, plan, self.tcp(run.scenario), seed);
        HostNode::TcpTransfer(self.body.number, Box::new(client))
    }

    /// Returns the name of a client's series; `None` if it is not recorded.
    fn series(&self, run: Run<'_>, number: u32) -> Option<String> {
        let is_recorded =
            run.observe == Observe::Series && self.clients.clone().take(RECORDED).any(|own| own == number);
        is_recorded.then(|| match self.clients.len() {
            1 => self.keys.name.clone(),
            _ => format!("{}, client {number}", self.keys.name),
        })
    }

    fn tcp(&self, scenario: &Scenario) -> TcpParameters {
        let longest = self.keys.bytes + AROUND;
        TcpParameters {
            buffer_bytes: TCP_BUFFER,
            // A small body leaves the base value of RFC 8323 §5.3.1 as it is.
            max_message_bytes: longest.max(u64::from(TcpParameters::default().max_message_bytes)) as u32,
            is_bulk: true,
            ..tcp::parameters(scenario)
        }
    }
}

/// Completes the results of transfers between two points in time: for each transfer, how long it was running and its
/// capacity; for each population that is compared by transfers, its goodput, share of the link, and fairness.
pub(super) fn settle(scenario: &Scenario, within: (Time, Time), result: &mut RunResult) {
    for (own, keys) in result.transfers.iter_mut().zip(&scenario.workload.transfers) {
        let hops = match keys.direction {
            Direction::Down => &scenario.network.down,
            Direction::Up => &scenario.network.up,
        };
        own.settle(within, hops.iter().filter_map(|hop| hop.rate).min());
    }
    for (number, population) in result.populations.iter_mut().enumerate() {
        let Some(own) = &mut population.transfers else { continue };
        let rates = result.transfers.iter().flat_map(|all| all.rates_bps(number, within));
        own.goodput_bps = rates.clone().sum();
        own.link_share =
            result.transfers.iter().filter_map(|all| all.link_share_of(number, within)).reduce(|a, b| a + b);
        population.jain = jain_index(rates);
    }
}
