//! A mesh of IEEE 802.15.4 radios under 6LoWPAN: a [`Medium`] of many hops.
//!
//! A datagram goes down through the layers of a node, and up through the layers of the next node. `network_layer` finds
//! the next hop and cuts fragments. `link_layer` waits for the channel. `air` decides which nodes receive a frame.

pub(crate) mod address;
mod air;
mod airtime;
pub(crate) mod bytes;
mod config;
mod contikimac;
mod counters;
mod delivery;
mod duty_cycle;
mod event;
mod frame;
mod link_layer;
mod links;
pub(crate) mod lowpan;
mod mac;
mod network_layer;
mod one_thread;
mod packets;
mod propagation;
mod reassembly;
mod routing;
pub mod rpl;
mod trees;
mod tsch;

use std::fmt;

pub use air::RadioTimes;
pub use airtime::{HopFrames, HopPlace};
pub use config::{
    Backoff, ChannelBusy, LowpanConfig, MacConfig, MeshConfig, RadioConfig, RoutingConfig, RplConfig,
};
pub use counters::NodeCounters;
pub use delivery::Delivery;
pub use duty_cycle::{Awake, ContikiMacConfig, DutyCycle, TschConfig};
pub use frame::{Content, Frame, FrameEvent, FrameKind, FrameRecord, Ipv6Packet, Leg, RplOption};
pub use propagation::{LogDistance, Propagation, TwoRay, UnitDisk};

use air::{Air, ReceptionOutcome};
use duty_cycle::Sleeper;
use event::MeshEvent;
use links::RadioLinks;
use mac::Mac;
use one_thread::NodeThread;
use packets::{MeshPackets, PacketId};
use reassembly::FragmentReassembly;
use routing::MeshRouting;

use crate::{
    Arrival, Ecn, Event, Layout, Luck, Medium, MediumContext, MediumEvents, NodeId, Outgoing, Position,
    Record, Site, Span, Stream, Tap, Time, Transport, Waypoint,
};

/// A medium of radios: the positions of the nodes, and the datagrams in flight between them. Node n of the layout is
/// node n of the world.
#[derive(Debug)]
pub struct Mesh {
    config: MeshConfig,
    positions: Vec<Position>,
    /// The moves of nodes that are still to come, the latest first, so that the next one is popped from the end.
    waypoints: Vec<Waypoint>,
    air: Air,
    macs: Vec<Mac>,
    /// The ContikiMAC state of each node; empty with any other MAC.
    sleepers: Vec<Sleeper>,
    /// The state of each node's thread; empty unless nodes have [one thread](MacConfig::one_thread).
    threads: Vec<NodeThread>,
    reassemblies: Vec<FragmentReassembly>,
    /// For each node, the datagram tag of the next datagram that it sends in fragments.
    tags: Vec<u16>,
    packets: MeshPackets,
    routing: MeshRouting,
    counters: Vec<NodeCounters>,
    /// The random numbers of backoffs. The key is the node and its count of backoffs.
    backoffs: Stream,
    /// The time at which each node is switched on.
    starts: Vec<Time>,
    is_prepared: bool,
    /// A reusable buffer for the outcome of a frame at each of its receivers.
    fates: Vec<(u32, ReceptionOutcome)>,
}

/// The reason why a mesh is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeshError {
    /// The mesh has this number of nodes, which is zero, or more than the queue of events can number.
    Nodes(usize),
    /// This node, the border router or a sink, is not in the mesh.
    Unknown(u32),
    /// A waypoint moves this node, which is not in the mesh.
    Waypoint(u32),
    /// More pairs of nodes hear each other than the table of links has room for.
    Links,
}

impl fmt::Display for MeshError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nodes(nodes) => write!(f, "a mesh has 1 to {} nodes, not {nodes}", MeshEvent::NODES),
            Self::Unknown(node) => write!(f, "node {node}, a border router or sink, is not in the mesh"),
            Self::Links => write!(f, "more than 50 million pairs of nodes hear each other"),
            Self::Waypoint(node) => write!(f, "node {node} moves, but is not in the mesh"),
        }
    }
}

impl std::error::Error for MeshError {}

impl Mesh {
    /// Returns whether the table of links has room for all pairs of nodes that may hear each other.
    pub fn has_room(places: &[Position], propagation: Propagation) -> bool {
        RadioLinks::fit(places, propagation)
    }

    /// Returns a mesh of nodes at the places of `layout`, which move by `waypoints`.
    ///
    /// # Errors
    /// [`MeshError`] names the fault of the layout or the waypoints.
    pub fn new(
        luck: Luck,
        layout: &Layout,
        mut waypoints: Vec<Waypoint>,
        config: MeshConfig,
    ) -> Result<Self, MeshError> {
        let Layout { places, root, sinks } = layout;
        if !(1..=MeshEvent::NODES as usize).contains(&places.len()) {
            return Err(MeshError::Nodes(places.len()));
        }
        // Events and tables are indexed by node, so every number is checked once, here.
        let is_there = |node: u32| (node as usize) < places.len();
        if let Some(&node) = [root].into_iter().chain(sinks).find(|&&node| !is_there(node)) {
            return Err(MeshError::Unknown(node));
        }
        if let Some(lost) = waypoints.iter().find(|waypoint| !is_there(waypoint.node)) {
            return Err(MeshError::Waypoint(lost.node));
        }
        // The links are counted before they are computed: a dense mesh would take all memory.
        if !Self::has_room(places, config.radio.propagation) {
            return Err(MeshError::Links);
        }
        // The next waypoint is the last, so that it can be popped.
        waypoints.sort_by_key(|waypoint| std::cmp::Reverse((waypoint.time, waypoint.node)));
        let links = RadioLinks::new(places, config.radio.propagation, luck.stream("mesh/shadowing"));
        // The border router is the first root. If it is a sink as well, it still has one tree.
        let mut roots = vec![*root];
        roots.extend(sinks.iter().filter(|&sink| sink != root));
        // Nodes that start together would send together for ever.
        let start = luck.stream("mesh/start");
        let starts: Vec<_> = (0..places.len() as u64)
            .map(|node| Time::ZERO + start.within(config.radio.start_spread, node, 0, 0))
            .collect();
        let routing = MeshRouting::new(&config.routing, &links, &roots, &starts, luck);
        Ok(Self {
            air: Air::new(links, config.radio.delivery.clone(), luck.stream("mesh/air")),
            reassemblies: vec![FragmentReassembly::new(&config.lowpan); places.len()],
            tags: vec![0; places.len()],
            sleepers: match config.mac.duty_cycle {
                DutyCycle::ContikiMac(_) => vec![Sleeper::default(); places.len()],
                DutyCycle::None(_) | DutyCycle::Tsch(_) => Vec::new(),
            },
            threads: if config.mac.one_thread { vec![NodeThread::IDLE; places.len()] } else { Vec::new() },
            config,
            positions: places.clone(),
            waypoints,
            macs: std::iter::repeat_with(Mac::default).take(places.len()).collect(),
            packets: MeshPackets::default(),
            routing,
            counters: vec![NodeCounters::default(); places.len()],
            backoffs: luck.stream("mesh/backoff"),
            starts,
            is_prepared: false,
            fates: Vec::new(),
        })
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.positions.len()
    }

    /// Returns whether radios sleep between wake-ups or slots.
    pub fn sleeps(&self) -> bool {
        self.config.mac.duty_cycle.sleeps()
    }

    /// Returns the counters of a node.
    pub fn counters(&self, node: NodeId) -> NodeCounters {
        self.counters.get(node.0 as usize).copied().unwrap_or_default()
    }

    /// Returns the next hop of a node on its way to the border router; `None` at the router itself or without a route.
    pub fn parent(&self, node: NodeId) -> Option<NodeId> {
        self.routing.parent(node.0)
    }

    /// Returns the number of frames that wait at a node.
    pub fn queued(&self, node: NodeId) -> usize {
        self.macs.get(node.0 as usize).map_or(0, Mac::queued)
    }

    /// Returns the position of a node.
    pub fn position(&self, node: NodeId) -> Position {
        self.positions.get(node.0 as usize).copied().unwrap_or_default()
    }

    /// Returns the time that a node's radio spent in each state up to `now`.
    pub fn radio_times(&self, node: NodeId, now: Time) -> RadioTimes {
        if (node.0 as usize) < self.nodes() { self.air.times(now, node.0) } else { RadioTimes::default() }
    }

    /// Returns the energy that a node's radio took up to `now` for sending, receiving, listening and sleeping, in millijoules.
    pub fn energy_mj(&self, node: NodeId, now: Time) -> [f64; 4] {
        let (radio, times) = (&self.config.radio, self.radio_times(node, now));
        [
            (radio.transmit_ma, times.transmit),
            (radio.receive_ma, times.receive),
            (radio.receive_ma, times.listen),
            (radio.sleep_ma, times.sleep),
        ]
        // Milliampere times volt times second is millijoule.
        .map(|(current_ma, time)| current_ma * radio.voltage * time.as_secs_f64())
    }

    /// Returns the number of datagrams in flight, including datagrams that a node is reassembling.
    pub fn in_flight(&self) -> usize {
        self.packets.len()
    }

    /// Moves the nodes to their positions at this moment.
    fn move_nodes<T>(&mut self, moment: &mut MediumContext<'_, T>) {
        while let Some(waypoint) = self.waypoints.pop_if(|waypoint| waypoint.time <= moment.now) {
            self.positions[waypoint.node as usize] = waypoint.position;
        }
        self.air.survey(&self.positions);
        // The links are new. Routes follow from them, so they come second.
        self.routing.survey(self.air.links());
        self.await_move(&mut moment.events);
    }

    fn await_move(&self, events: &mut MediumEvents<'_>) {
        if let Some(next) = self.waypoints.last() {
            events.push(next.time, MeshEvent::Move.encode());
        }
    }
}

impl Medium for Mesh {
    fn place(&mut self, _: Site) {}

    fn prepare(&mut self, events: &mut MediumEvents<'_>) {
        // The world calls this for every node that it wakes.
        if self.is_prepared {
            return;
        }
        self.is_prepared = true;
        for (&start, node) in self.starts.iter().zip(0..) {
            events.push(start, MeshEvent::SwitchOn(node).encode());
        }
        self.await_move(events);
        self.await_cell(events);
    }

    fn send<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        from: NodeId,
        outgoing: Outgoing,
        bytes: &[u8],
    ) {
        let Outgoing { to, mark, .. } = outgoing;
        let packet = self.packets.insert(from, Some(to), mark, bytes);
        self.record(moment, Event::Sent, packet);
        if (from.0.max(to.0) as usize) < self.nodes() {
            self.originate(moment, from.0, packet);
        } else {
            self.record(moment, Event::Dropped, packet);
        }
        // The frames in the queues hold the datagram from here on. Without any it is gone.
        self.packets.release(packet);
    }

    fn handle_event<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        what: u32,
        deliver: impl FnOnce(Arrival<'_>),
    ) -> Option<NodeId> {
        let mut arrived = None;
        match MeshEvent::decode(what)? {
            MeshEvent::Assess(node, queue) => self.assess(moment, node, queue),
            MeshEvent::Send(node) => self.send_frame(moment, node),
            MeshEvent::End(node) => arrived = self.frame_ends(moment, node),
            MeshEvent::Acknowledge(node) => self.acknowledge(moment, node),
            MeshEvent::Acknowledged(node) => arrived = self.acknowledged(moment, node),
            MeshEvent::NotAcknowledged(node) => self.not_acknowledged(moment, node),
            MeshEvent::SwitchOn(node) => self.switch_on(moment, node),
            MeshEvent::Route(node) => self.route(moment, node),
            MeshEvent::Move => self.move_nodes(moment),
            MeshEvent::WakeUp(node) => self.wake_up(moment, node),
            MeshEvent::AssessAgain(node) => self.assess_again(moment, node),
            MeshEvent::Doze(node) => self.doze(moment, node),
            MeshEvent::Tick(node) => arrived = self.tick(moment, node),
            MeshEvent::Cell => self.cell(moment),
            MeshEvent::CellIdle => self.cell_is_idle(moment),
        }
        self.arrive(moment, arrived?, deliver)
    }
}

impl Mesh {
    /// Passes a datagram that has arrived to `deliver`, and returns the node that received it.
    fn arrive<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        id: PacketId,
        deliver: impl FnOnce(Arrival<'_>),
    ) -> Option<NodeId> {
        self.record(moment, Event::Delivered, id);
        let packet = self.packets.get(id);
        let receiver = packet.dest?;
        let (from, mark, bytes) = (packet.source, packet.mark, &packet.bytes);
        deliver(Arrival { from, to: receiver, mark, ecn: Ecn::NotCapable, bytes });
        self.packets.release(id);
        Some(receiver)
    }

    /// Shows an event of a datagram to the tap.
    fn record<T: Tap>(&self, moment: &mut MediumContext<'_, T>, event: Event, packet: PacketId) {
        let packet = self.packets.get(packet);
        // Messages of RPL go to neighbours only, and are not recorded as packets.
        let Some(to) = packet.dest.filter(|_| packet.message.is_none()) else { return };
        moment.tap.record(&Record {
            time: moment.now,
            event,
            hop: None,
            from: packet.source,
            to,
            mark: packet.mark,
            transport: Transport::Udp,
            // No queue of a mesh marks packets.
            ecn: Ecn::NotCapable,
            // Records count a datagram with whole headers. The frames that carry it have records of their own.
            wire_bytes: crate::Accounting::Ipv6.wire_bytes(Transport::Udp, packet.bytes.len()),
            queue_bytes: 0,
            wait: Span::ZERO,
            bytes: &packet.bytes,
        });
    }
}
