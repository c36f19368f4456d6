//! The nodes of a run and their roles.

use coapace_scenario::Scenario;
use coapace_sim::{Layout, NodeId, Site};

/// The site of the servers in a [`network`](super::network) of hops.
pub const SERVER_SITE: Site = Site(0);
/// The site of the clients.
pub const CLIENTS_SITE: Site = Site(1);

/// The role of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A server.
    Server(NodeId),
    /// A client.
    Client {
        /// The number among the clients, from 1.
        number: u32,
        /// The number among all nodes.
        node: NodeId,
    },
    /// A node that only relays.
    Relay,
}

/// The nodes of a run.
#[derive(Clone, Debug)]
pub(super) enum Seats {
    /// Hosts at the ends of a network of hops. The servers have the lowest numbers, the clients follow.
    Hops {
        /// The number of servers.
        servers: u32,
        /// The number of clients.
        clients: u32,
    },
    /// The nodes of a mesh. Its sinks are the servers, in the order of the layout. All others but the border router are
    /// clients.
    Mesh {
        /// The servers, the primary one first.
        sinks: Vec<NodeId>,
        /// The role of each node, by its number.
        roles: Vec<Role>,
    },
}

impl Seats {
    /// Returns the nodes of a scenario.
    pub(super) fn of(scenario: &Scenario) -> Self {
        scenario.layout().map_or_else(
            || Self::Hops { servers: scenario.server.count, clients: scenario.clients.count },
            Self::mesh,
        )
    }

    fn mesh(layout: &Layout) -> Self {
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
        let roles = (0..layout.places.len() as u32).map(role).collect();
        Self::Mesh { sinks: layout.sinks.iter().map(|&sink| NodeId(sink)).collect(), roles }
    }

    /// Returns the number of servers, at least 1.
    pub(super) fn servers(&self) -> u32 {
        match self {
            Self::Hops { servers, .. } => *servers,
            Self::Mesh { sinks, .. } => (sinks.len() as u32).max(1),
        }
    }

    /// Returns the server of this number, counted from 0. After the last the count begins again.
    pub(super) fn server(&self, number: u32) -> NodeId {
        let number = number % self.servers();
        match self {
            Self::Hops { .. } => NodeId(number),
            Self::Mesh { sinks, .. } => sinks.get(number as usize).copied().unwrap_or(NodeId(0)),
        }
    }

    /// Returns the server that a client asks: clients are dealt out to servers in turn.
    pub(super) fn server_of(&self, client: u32) -> NodeId {
        self.server(client - 1)
    }

    /// Returns the site and the role of every node, in the order of their numbers.
    pub(super) fn roles(&self) -> Box<dyn Iterator<Item = (Site, Role)> + '_> {
        match self {
            Self::Hops { servers, clients } => {
                let server = |node| (SERVER_SITE, Role::Server(NodeId(node)));
                let client =
                    move |number| (CLIENTS_SITE, Role::Client { number, node: NodeId(servers - 1 + number) });
                Box::new((0..*servers).map(server).chain((1..=*clients).map(client)))
            }
            Self::Mesh { roles, .. } => Box::new(roles.iter().map(|&role| (Site(0), role))),
        }
    }

    /// Returns the number of nodes.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Hops { servers, clients } => (servers + clients) as usize,
            Self::Mesh { roles, .. } => roles.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coapace_sim::Position;

    #[test]
    fn in_a_mesh_all_but_the_sinks_and_the_border_router_are_clients() {
        let layout = Layout { places: vec![Position::default(); 6], root: 2, sinks: vec![5, 0] };
        let seats = Seats::mesh(&layout);
        let clients: Vec<_> =
            (seats.roles())
                .filter_map(|(_, role)| {
                    if let Role::Client { number, node } = role { Some((number, node.0)) } else { None }
                })
                .collect();
        assert_eq!(clients, [(1, 1), (2, 3), (3, 4)]);
        assert_eq!((seats.server(0), seats.server(1), seats.server_of(3)), (NodeId(5), NodeId(0), NodeId(5)));
        assert_eq!(seats.len(), 6);
    }

    #[test]
    fn over_hops_the_servers_come_first() {
        let seats = Seats::Hops { servers: 2, clients: 3 };
        let roles: Vec<_> = seats.roles().map(|(site, _)| site).collect();
        assert_eq!(roles, [SERVER_SITE, SERVER_SITE, CLIENTS_SITE, CLIENTS_SITE, CLIENTS_SITE]);
        assert!(seats.roles().any(|(_, role)| role == Role::Client { number: 1, node: NodeId(2) }));
    }
}
