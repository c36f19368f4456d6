//! The network of a scenario, through which real packets pass.

mod arrivals;
mod port;

use coapace_run::{CLIENTS_SITE, SERVER_SITE, network};
use coapace_scenario::Scenario;
use coapace_sim::{Luck, NodeId, Outgoing, PacketCounters, Tap, Time, World};

use self::arrivals::Arrivals;
pub use self::arrivals::ArrivedPacket;
use self::port::Port;

/// The simulator's network, for packets of real hosts and driven by a clock from outside.
///
/// Times count from the start of the emulation. A packet enters at the present time, which the last
/// [`advance`](Self::advance) set.
#[derive(Debug)]
pub struct Link<T> {
    world: World<Port, Taps<T>>,
    mtu: u32,
}

type Taps<T> = (Arrivals, (PacketCounters, T));

/// The node that represents the server's side.
pub const SERVER: NodeId = NodeId(0);

impl<T: Tap> Link<T> {
    /// Returns the network of a scenario, with the node [`SERVER`] and no clients; `None` if the scenario has a mesh.
    pub fn new(scenario: &Scenario, seed: u64, tap: T) -> Option<Self> {
        if scenario.network.mesh.is_some() {
            return None;
        }
        let network = network(scenario, Luck::new(seed));
        let mut world = World::new(network, (Arrivals::default(), (PacketCounters::new(), tap)));
        // Nodes get their numbers in this order, so the server is node 0.
        world.add(SERVER_SITE, Port::default());
        Some(Self { world, mtu: scenario.network.mtu })
    }

    /// Adds a node on the clients' side. The first has the number 1.
    pub fn add_client(&mut self) -> NodeId {
        self.world.add(CLIENTS_SITE, Port::default())
    }

    /// Returns the largest packet of the scenario's links, in bytes with the header of IP.
    pub fn mtu(&self) -> u32 {
        self.mtu
    }

    /// Lets time pass in the network until `now`. Does nothing if `now` is earlier than the network's present time.
    pub fn advance(&mut self, now: Time) {
        self.world.advance(now);
    }

    /// Returns the time of the next event in the network; `None` if no packet is in flight.
    pub fn next_event(&mut self) -> Option<Time> {
        self.world.next_event()
    }

    /// Lets a packet enter the network at the present moment.
    pub fn send(&mut self, from: NodeId, outgoing: Outgoing, bytes: &[u8]) {
        if let Some(port) = self.world.node_mut(from) {
            port.put(outgoing, bytes);
            self.world.wake(from);
        }
    }

    /// Returns the packets that have arrived since [`clear`](Self::clear).
    pub fn arrivals(&self) -> impl Iterator<Item = ArrivedPacket<'_>> {
        self.world.tap().0.iter()
    }

    /// Forgets the packets that have arrived.
    pub fn clear(&mut self) {
        self.world.tap_mut().0.clear();
    }

    /// Returns the number of packets in flight from or to a node.
    pub fn under_way(&self, node: NodeId) -> u32 {
        self.world.tap().0.under_way(node)
    }

    /// Returns the counters of the network and its hops.
    pub fn counters(&self) -> &PacketCounters {
        &self.world.tap().1.0
    }

    /// Returns the caller's tap.
    pub fn into_tap(self) -> T {
        let (_, (_, (_, tap))) = self.world.into_parts();
        tap
    }
}
