//! The configurations of a run's endpoints, with bounds that fit the scenario, and the contents of their messages.

use coapace_proto::{Config, Tail};
use coapace_scenario::{Endurance, File, Flow, Scenario, WorkloadKind};

use super::seats::Seats;
use crate::nodes::with_path;

/// The maximum number of non-confirmable requests of a flow that may wait at a client because of the rate limit.
const RATED: u32 = 16;

/// The number of separate responses whose copies a client recognises. A client has one exchange at a time.
const COPIED: u32 = 8;

/// The number of responses that a server may keep for each client with transfers: responses that wait, or that answer
/// duplicates.
const ANSWERED: u32 = 128;

/// The maximum number of blocks of a client that may be outstanding.
const IN_BULK: u32 = 1_024;

/// Returns the configuration of the clients' endpoints and of the servers' endpoints.
pub(super) fn configs(scenario: &Scenario, seats: &Seats) -> (Config, Config) {
    let File { clients, workload, server, .. } = &**scenario;
    let common = common(scenario);
    // The clients of a server, the flows of each of them, and the configuration of clients.
    let (heard, flows, of_clients) = match workload.kind {
        WorkloadKind::Continuous | WorkloadKind::Random | WorkloadKind::Transfer => {
            // A client receives a confirmable message only if responses are separate.
            let max_deduplicated = if server.may_separate() { COPIED } else { 0 };
            // Such a client asks one server, and one request at a time.
            let one = Config { max_exchanges: 1, max_peers: 1, max_deduplicated, ..common };
            // Clients are dealt out to servers in turn, so no server has more of them.
            (clients.count.div_ceil(seats.servers()), 1, one)
        }
        WorkloadKind::Flows => {
            let flows = workload.flows.len() as u32;
            let room = |flow: &Flow| u32::from(flow.outstanding) + if flow.confirmable { 1 } else { RATED };
            let open: u32 = workload.flows.iter().map(room).sum();
            let observes = workload.flows.iter().any(|flow| flow.observe);
            let several = Config {
                // Half of the exchanges is for notifications.
                max_exchanges: 2 * open,
                max_peers: seats.servers() + 1,
                max_observers: flows,
                max_deduplicated: if observes { 8 * flows } else { 0 },
                ..common
            };
            // All flows may lead to one server.
            (clients.count, flows, several)
        }
    };
    let from_clients = heard.saturating_mul(flows);
    // A separate response waits while the acknowledgement of the one before is lost.
    let each = if server.may_separate() { 4 } else { 1 };
    let of_servers = Config {
        // Room for all clients at once: a full table would be measured instead of the mechanism.
        max_exchanges: from_clients.saturating_mul(each).max(16),
        max_peers: heard + 1,
        max_listeners: from_clients,
        max_replies: from_clients.max(64),
        max_deduplicated: if server.deduplication { heard.saturating_mul(64) } else { 0 },
        max_sluiced: if server.sluice { heard } else { 0 },
        ..of_clients
    };
    (of_clients, of_servers)
}

/// Returns the settings that clients and servers have in common.
fn common(scenario: &Scenario) -> Config {
    let clients = &scenario.clients;
    Config {
        max_retransmit: clients.max_retransmit,
        nstart: clients.nstart,
        patience: clients.patience == Endurance::Rfc7252,
        probing_rate: clients.probing_rate,
        confirmable_every: clients.confirmable_every,
        ..Config::default()
    }
}

/// Returns two configurations for transfers: one for the endpoint of a client, and one for the endpoint of a server
/// with `clients` clients.
pub(super) fn bulk_configs(scenario: &Scenario, clients: u32) -> (Config, Config) {
    let of_clients = Config { max_exchanges: IN_BULK, max_peers: 1, max_deduplicated: 0, ..common(scenario) };
    let replies = clients.saturating_mul(ANSWERED);
    let of_servers = Config {
        max_peers: clients + 1,
        max_replies: replies,
        max_deduplicated: if scenario.server.deduplication { replies } else { 0 },
        ..of_clients
    };
    (of_clients, of_servers)
}

/// Returns the encoded options of a request, which are its path.
pub fn request(scenario: &Scenario) -> Vec<u8> {
    with_path(Tail::default(), &scenario.clients).into_bytes()
}

/// Returns the encoded payload of a response.
pub fn response(scenario: &Scenario) -> Vec<u8> {
    Tail::default().payload(&vec![b'.'; scenario.server.payload_bytes as usize]).into_bytes()
}
