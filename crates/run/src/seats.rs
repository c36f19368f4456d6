//! The nodes of a run, with their roles.

use std::ops::Range;

use coapace_scenario::{File, Scenario};
use coapace_sim::{Layout, NodeId, Site};

use crate::nodes::HostNode;

/// The site of the servers in a [`network`](super::network) of hops.
pub const SERVER_SITE: Site = Site(0);
/// The site of the clients in a network of hops.
pub const CLIENTS_SITE: Site = Site(1);

/// The role of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A server of requests, with its node.
    Server(NodeId),
    /// The server of a transfer, with the index of the transfer and the server's node.
    Depot(usize, NodeId),
    /// A client.
    Client {
        /// The client's number among all clients, from 1.
        number: u32,
        /// The client's node.
        node: NodeId,
    },
    /// A node without an application, which only relays packets.
    Relay,
}

/// A function that makes the host for a role.
pub(super) type Casting<'a> = Box<dyn FnMut(Role) -> HostNode + 'a>;

/// The nodes of a run, with their roles and sites.
#[derive(Clone, Debug)]
pub(super) struct Seats {
    /// The servers of requests; the primary server is first.
    servers: Vec<NodeId>,
    /// For each transfer, its server.
    depots: Vec<NodeId>,
    /// For each transfer, the numbers of its clients.
    transferring: Vec<Range<u32>>,
    /// The site and the role of each node, in the order of node numbers.
    pub(super) roles: Vec<(Site, Role)>,
}

impl Seats {
    /// Returns the nodes of a scenario.
    pub(super) fn of(scenario: &Scenario) -> Self {
        let File { clients, server, workload, .. } = &**scenario;
        let transfers = workload.transfers.len();
        let hops = || Self::hops(server.count, transfers as u32, clients.count);
        let seats = scenario.layout().map_or_else(hops, |layout| Self::mesh(layout, transfers));
        Self { transferring: workload.transferring(clients.count), ..seats }
    }

    /// Returns the nodes of a network of hops. Servers have the lowest numbers, then come servers of transfers, then
    /// clients.
    fn hops(servers: u32, transfers: u32, clients: u32) -> Self {
        let server = |node| (SERVER_SITE, Role::Server(NodeId(node)));
        let depots: Vec<NodeId> = (servers..servers + transfers).map(NodeId).collect();
        let depot = |(number, node): (usize, &NodeId)| (SERVER_SITE, Role::Depot(number, *node));
        // One less than the first client's node, because clients count from 1.
        let first = servers + transfers - 1;
        let client = |number| (CLIENTS_SITE, Role::Client { number, node: NodeId(first + number) });
        let of_servers = (0..servers).map(server).chain(depots.iter().enumerate().map(depot));
        let roles = of_servers.chain((1..=clients).map(client)).collect();
        Self { servers: (0..servers).map(NodeId).collect(), depots, transferring: Vec::new(), roles }
    }

    /// Returns the nodes of a mesh. Its sinks are the servers, sorted as in the layout. All other nodes except the border
    /// router are clients. The primary sink is the server of all transfers.
    fn mesh(layout: &Layout, transfers: usize) -> Self {
        let mut number = 0;
        let role = |node: u32| {
            if layout.sinks.contains(&node) {
                return Role::Server(NodeId(node));
            }
            if node == layout.root {
                return Role::Relay;
            }
            number += 1;
            Role::Client { number, node: NodeId(node) }
        };
        // A mesh has no sites: the layout places its nodes.
        let roles = (0..layout.places.len() as u32).map(role).map(|role| (Site(0), role)).collect();
        let servers: Vec<NodeId> = layout.sinks.iter().map(|&sink| NodeId(sink)).collect();
        // A cycle of one or none: a layout without sinks has no server for transfers either.
        let depots = servers.iter().take(1).cycle().take(transfers).copied().collect();
        Self { servers, depots, transferring: Vec::new(), roles }
    }

    /// Returns the number of servers, at least 1.
    pub(super) fn servers(&self) -> u32 {
        (self.servers.len() as u32).max(1)
    }

    /// Returns the server with this number, from 0. Numbers after the last server start at the first again.
    pub(super) fn server(&self, number: u32) -> NodeId {
        let number = number % self.servers();
        self.servers.get(number as usize).copied().unwrap_or(NodeId(0))
    }

    /// Returns the server to which the client with this number, from 1, sends its requests. Clients are dealt out to
    /// servers in turn.
    pub(super) fn server_of(&self, client: u32) -> NodeId {
        self.server(client - 1)
    }

    /// Returns the index and the server of the transfer that a client takes part in; `None` if it takes part in none.
    pub(super) fn depot_of(&self, client: u32) -> Option<(usize, NodeId)> {
        let number = self.transferring.iter().position(|own| own.contains(&client))?;
        Some((number, *self.depots.get(number)?))
    }

    /// Returns the numbers of the clients that take part in a transfer.
    pub(super) fn participants(&self, transfer: usize) -> Range<u32> {
        self.transferring.get(transfer).cloned().unwrap_or_default()
    }

    /// Returns the node number of the first client in a network of hops.
    pub(super) fn first_client(&self) -> u32 {
        self.servers() + self.depots.len() as u32
    }

    /// Returns the number and the node of every client.
    pub(super) fn clients(&self) -> impl Iterator<Item = (u32, NodeId)> {
        self.roles.iter().filter_map(|(_, role)| match *role {
            Role::Client { number, node } => Some((number, node)),
            Role::Server(_) | Role::Depot(..) | Role::Relay => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coapace_sim::Position;

    #[test]
    fn in_a_mesh_all_but_the_sinks_and_the_border_router_are_clients() {
        let layout = Layout { places: vec![Position::default(); 6], root: 2, sinks: vec![5, 0] };
        let seats = Seats::mesh(&layout, 0);
        let clients: Vec<_> = seats.clients().map(|(number, node)| (number, node.0)).collect();
        assert_eq!(clients, [(1, 1), (2, 3), (3, 4)]);
        assert_eq!((seats.server(0), seats.server(1), seats.server_of(3)), (NodeId(5), NodeId(0), NodeId(5)));
        assert_eq!(seats.roles.len(), 6);
    }

    #[test]
    fn in_networks_of_hops_the_servers_have_the_first_node_numbers() {
        let seats = Seats::hops(2, 0, 3);
        let sites: Vec<_> = seats.roles.iter().map(|(site, _)| *site).collect();
        assert_eq!(sites, [SERVER_SITE, SERVER_SITE, CLIENTS_SITE, CLIENTS_SITE, CLIENTS_SITE]);
        assert!(seats.clients().any(|client| client == (1, NodeId(2))));
    }

    #[test]
    fn in_networks_of_hops_each_transfer_has_its_own_server_before_the_clients() {
        let seats = Seats { transferring: vec![3..4, 4..6], ..Seats::hops(1, 2, 5) };
        assert_eq!(seats.roles[2], (SERVER_SITE, Role::Depot(1, NodeId(2))));
        assert!(seats.clients().any(|client| client == (1, NodeId(3))));
        assert_eq!((seats.depot_of(2), seats.depot_of(3)), (None, Some((0, NodeId(1)))));
        assert_eq!((seats.depot_of(5), seats.participants(1)), (Some((1, NodeId(2))), 4..6));
        assert_eq!(seats.first_client(), 3);
    }
}
