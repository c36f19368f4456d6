//! 6LoWPAN and routing: from a datagram to frames for the next hop, and from frames to the datagram.

use super::address::{ALL_RPL_NODES, global, link_local};
use super::event::MeshEvent;
use super::lowpan::{Fragments, header_bytes};
use super::mac::Queued;
use super::packets::PacketId;
use super::reassembly::Reassembled;
use super::rpl::Unroutable;
use super::{Frame, FrameEvent, FrameKind, Leg, Mesh};
use crate::{Event, MediumContext, NodeEvent, NodeId, Tap};

/// The hop limit of messages to neighbours.
const NEIGHBOURS: u8 = 255;

impl Mesh {
    /// Handles a frame that `node` has received. If the frame completes its datagram, forwards the datagram, or returns
    /// it if `node` is its receiver.
    pub(super) fn receive<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        node: u32,
        queued: &Queued,
    ) -> Option<PacketId> {
        let Queued { frame, packet } = *queued;
        let packet = if frame.fragments == 1 {
            // A whole datagram ends reassemblies in stacks that prefer new ones. Their packets are no longer held.
            for ended in self.reassemblies[node as usize].handle_whole() {
                self.packets.release(PacketId(ended));
            }
            packet
        } else {
            self.put_together(moment, node, queued)?
        };
        // Messages of RPL go one hop and are never forwarded.
        if let Some(message) = self.packets.get(packet).message {
            if let Some(rpl) = self.routing.rpl() {
                rpl.node(node).handle(moment.now, frame.from, &message);
                self.update_routing(moment, node);
            }
            return None;
        }
        if self.packets.get(packet).dest == Some(NodeId(node)) {
            // The caller holds the datagram until it is delivered.
            return Some(packet);
        }
        // The hop limit is lowered before the packet is sent on, and 0 is not sent (RFC 8200 §3).
        if let Some(hop_limit @ 1..) = frame.leg.hop_limit.checked_sub(1) {
            let leg = Leg { hop_limit, ..frame.leg };
            self.forward(moment, node, packet, Some(frame.from), leg);
        } else {
            self.counters[node as usize].hop_limit += 1;
            self.record(moment, Event::Dropped, packet);
        }
        None
    }

    /// Handles a fragment that `node` has received. Returns the datagram if the fragment completes it.
    fn put_together<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        node: u32,
        queued: &Queued,
    ) -> Option<PacketId> {
        let Queued { frame, packet } = queued;
        match self.reassemblies[node as usize].handle(moment.now, frame, packet.0) {
            Reassembled::Opened(over) => {
                // The context holds its datagram until it is whole or given up.
                self.packets.hold(*packet);
                if let Some(over) = over {
                    self.packets.release(PacketId(over));
                }
            }
            // The frame that has just come still holds the datagram.
            Reassembled::Whole(whole) => {
                self.packets.release(PacketId(whole));
                return Some(*packet);
            }
            Reassembled::Added | Reassembled::Repeated => {}
            Reassembled::Full | Reassembled::Stray => {
                self.counters[node as usize].reassembly += 1;
                self.record(moment, Event::Dropped, *packet);
            }
        }
        None
    }

    /// Sends a datagram that begins at `node`.
    pub(super) fn originate<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        node: u32,
        packet: PacketId,
    ) {
        let leg = Leg { hop_limit: self.config.lowpan.hop_limit, option: None };
        self.forward(moment, node, packet, None, leg);
    }

    /// Forwards a datagram at `node` to its next hop. `from` is the neighbour that sent the datagram here; `None` if
    /// the datagram began at `node`.
    fn forward<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        node: u32,
        id: PacketId,
        from: Option<NodeId>,
        leg: Leg,
    ) {
        match self.routing.next(moment.now, node, self.packets.get(id), from, leg.option) {
            Ok((next, option)) => self.send_down(moment, node, Some(next), id, Leg { option, ..leg }),
            Err(why) => {
                let counters = &mut self.counters[node as usize];
                match why {
                    Unroutable::NoParent | Unroutable::NoRoute | Unroutable::ForwardingError => {
                        counters.no_route += 1;
                    }
                    Unroutable::Loop => counters.hop_limit += 1,
                }
                self.record(moment, Event::Dropped, id);
            }
        }
        // A loop or a missing route makes RPL send messages.
        self.update_routing(moment, node);
    }

    /// Cuts a datagram into frames for the next hop, or for all neighbours if `to` is `None`.
    fn send_down<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        node: u32,
        to: Option<NodeId>,
        id: PacketId,
        leg: Leg,
    ) {
        let packet = self.packets.get(id);
        let from = NodeId(node);
        // The compressed headers differ from hop to hop, so the frames are planned for each.
        let header = header_bytes(packet.source, packet.dest, from, to, leg, packet.message.is_some());
        let max = self.config.lowpan.max_frame_bytes;
        let plan = Fragments::new(max, to, header, packet.bytes.len());
        let fits =
            |plan: &Fragments| u16::from(plan.count()) <= self.macs[node as usize].room(&self.config.mac);
        // All frames have room or none is queued: a part of a datagram would be of no use.
        let Some(plan) = plan.filter(fits) else {
            self.counters[node as usize].queue_full += 1;
            self.record(moment, Event::Dropped, id);
            return;
        };
        let tag = self.tags[node as usize];
        // Only fragments have a tag (RFC 4944 §5.3).
        if plan.count() > 1 {
            self.tags[node as usize] = tag.wrapping_add(1);
        }
        for fragment in 0..plan.count() {
            let frame = Frame {
                kind: FrameKind::Data,
                from,
                to,
                // The queue gives the frame its number when it takes it.
                sequence: 0,
                bytes: plan.frame_bytes(fragment),
                fragment,
                fragments: plan.count(),
                tag,
                leg,
            };
            // If the queues belong to other neighbours, no further fragment finds room either.
            if !self.enqueue(moment, node, frame, id) {
                self.record(moment, Event::Dropped, id);
                break;
            }
        }
    }

    /// Reports to RPL how a frame to the neighbour `to` ended after this number of `transmissions`: the frame was given
    /// up or, as far as `node` knows, received.
    pub(super) fn frame_done<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        node: u32,
        to: NodeId,
        outcome: FrameEvent,
        transmissions: u8,
    ) {
        let Some(rpl) = self.routing.rpl() else { return };
        // A busy channel says nothing about the link.
        if outcome != FrameEvent::ChannelBusy {
            rpl.node(node).on_sent(moment.now, to, outcome == FrameEvent::Received, transmissions);
            self.update_routing(moment, node);
        }
    }

    /// Switches a node on.
    pub(super) fn switch_on<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32) {
        self.air.switch_on(moment.now, node);
        self.fall_asleep(moment.now, node);
        if let Some(config) = self.contikimac() {
            // Wake-ups count from the moment at which the node was switched on. That is random, so nodes do not wake up together.
            moment.events.push(moment.now + config.wake_interval, MeshEvent::WakeUp(node).encode());
        }
        self.update_routing(moment, node);
    }

    /// Handles the timer of a node's RPL.
    pub(super) fn route<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32) {
        if self.routing.rpl().is_some_and(|rpl| rpl.fires(moment.now, node)) {
            self.update_routing(moment, node);
        }
    }

    /// Sends the messages of a node's RPL, and arms its timer.
    fn update_routing<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32) {
        loop {
            let Some(rpl) = self.routing.rpl() else { return };
            // One message may lead to another, so this goes on until there is none.
            let Some((to, message)) = rpl.poll_transmit(node) else { break };
            let config = *rpl.config();
            let id = self.packets.insert_message(NodeId(node), to, message);
            let ends = (link_local(NodeId(node)).octets(), to.map_or(ALL_RPL_NODES, link_local).octets());
            // The bytes are written only now, because the checksum covers the addresses.
            message.write(&config, ends, |node| global(node).octets(), self.packets.bytes_mut(id));
            if moment.tap.watches_nodes() {
                let bytes = self.packets.get(id).bytes.len() as u16;
                let rank = self.routing.parent_and_rank(node).map_or(0, |(_, rank)| rank);
                let event = NodeEvent::Rpl { message: message.name(), to, bytes, rank };
                moment.tap.node(moment.now, NodeId(node), event);
            }
            let leg = Leg { hop_limit: NEIGHBOURS, option: None };
            self.send_down(moment, node, to, id, leg);
            // The frames in the queues hold the message from here on.
            self.packets.release(id);
        }
        if moment.tap.watches_nodes()
            && let Some((parent, rank)) = self.routing.parent_and_rank(node)
        {
            moment.tap.node(moment.now, NodeId(node), NodeEvent::Route { parent, rank });
        }
        if let Some(deadline) = self.routing.rpl().and_then(|rpl| rpl.arm(moment.now, node)) {
            moment.events.push(deadline, MeshEvent::Route(node).encode());
        }
    }
}
