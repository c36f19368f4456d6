//! 6LoWPAN and routes: from a datagram to frames for the next hop, and back.

use super::address::{ALL_RPL_NODES, global, link_local};
use super::happening::Happening;
use super::lowpan::{Fragments, header_bytes};
use super::mac::Queued;
use super::packets::PacketId;
use super::reassembly::Reassembled;
use super::rpl::Unroutable;
use super::{Frame, FrameEvent, FrameKind, Leg, Mesh};
use crate::{Event, Moment, NodeEvent, NodeId, Tap};

/// The hop limit of what goes to neighbours only.
const NEIGHBOURS: u8 = 255;

impl Mesh {
    /// A frame came for `node`. Returns the datagram if it is whole and at its end.
    pub(super) fn climb<T: Tap>(
        &mut self,
        moment: &mut Moment<'_, T>,
        node: u32,
        queued: &Queued,
    ) -> Option<PacketId> {
        let Queued { frame, packet } = *queued;
        let packet = if frame.fragments == 1 { packet } else { self.put_together(moment, node, queued)? };
        if let Some(message) = self.packets.get(packet).message {
            if let Some(rpl) = self.routing.rpl() {
                rpl.node(node).handle(moment.now, frame.from, &message);
                self.tell(moment, node);
            }
            return None;
        }
        if self.packets.get(packet).dest == Some(NodeId(node)) {
            // A whole one is held by whoever delivers it.
            return Some(packet);
        }
        if let Some(hop_limit @ 1..) = frame.leg.hop_limit.checked_sub(1) {
            let leg = Leg { hop_limit, ..frame.leg };
            self.forward(moment, node, packet, Some(frame.from), leg);
        } else {
            self.counters[node as usize].hop_limit += 1;
            self.see(moment, Event::Dropped, packet);
        }
        None
    }

    /// A fragment came for `node`. Returns the datagram if it was the last.
    fn put_together<T: Tap>(
        &mut self,
        moment: &mut Moment<'_, T>,
        node: u32,
        queued: &Queued,
    ) -> Option<PacketId> {
        let Queued { frame, packet } = queued;
        match self.reassemblies[node as usize].handle(moment.now, frame, packet.0) {
            Reassembled::Opened(over) => {
                self.packets.hold(*packet);
                if let Some(over) = over {
                    self.packets.release(PacketId(over));
                }
            }
            // The frame that has just come still holds it.
            Reassembled::Whole(whole) => {
                self.packets.release(PacketId(whole));
                return Some(*packet);
            }
            Reassembled::Added | Reassembled::Repeated => {}
            Reassembled::Full | Reassembled::Stray => {
                self.counters[node as usize].reassembly += 1;
                self.see(moment, Event::Dropped, *packet);
            }
        }
        None
    }

    /// A node sends a datagram of its own.
    pub(super) fn originate<T: Tap>(&mut self, moment: &mut Moment<'_, T>, node: u32, packet: PacketId) {
        let leg = Leg { hop_limit: self.config.lowpan.hop_limit, option: None };
        self.forward(moment, node, packet, None, leg);
    }

    /// Sends a datagram on from `node`, its own or one that came `from` a neighbour.
    fn forward<T: Tap>(
        &mut self,
        moment: &mut Moment<'_, T>,
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
                self.see(moment, Event::Dropped, id);
            }
        }
        // A loop or a route that is none makes RPL speak.
        self.tell(moment, node);
    }

    /// Cuts a datagram into frames for the next hop; without one, for all on the link.
    fn send_down<T: Tap>(
        &mut self,
        moment: &mut Moment<'_, T>,
        node: u32,
        to: Option<NodeId>,
        id: PacketId,
        leg: Leg,
    ) {
        let packet = self.packets.get(id);
        let from = NodeId(node);
        let header = header_bytes(packet.source, packet.dest, from, to, leg, packet.message.is_some());
        let max = self.config.lowpan.max_frame_bytes;
        let plan = Fragments::new(max, to, header, packet.bytes.len());
        let fits =
            |plan: &Fragments| u16::from(plan.count()) <= self.macs[node as usize].room(&self.config.mac);
        let Some(plan) = plan.filter(fits) else {
            self.counters[node as usize].queue_full += 1;
            self.see(moment, Event::Dropped, id);
            return;
        };
        let tag = self.tags[node as usize];
        if plan.count() > 1 {
            self.tags[node as usize] = tag.wrapping_add(1);
        }
        for fragment in 0..plan.count() {
            let frame = Frame {
                kind: FrameKind::Data,
                from,
                to,
                sequence: 0,
                bytes: plan.frame_bytes(fragment),
                fragment,
                fragments: plan.count(),
                tag,
                leg,
            };
            // If the queues are other neighbours' they are so for all fragments.
            if !self.enqueue(moment, node, frame, id) {
                self.see(moment, Event::Dropped, id);
                break;
            }
        }
    }

    /// A frame for one neighbour was received after so many transmissions, as far as `node` knows, or given up.
    pub(super) fn frame_done<T: Tap>(
        &mut self,
        moment: &mut Moment<'_, T>,
        node: u32,
        to: NodeId,
        outcome: FrameEvent,
        transmissions: u8,
    ) {
        let Some(rpl) = self.routing.rpl() else { return };
        // A busy channel says nothing of the link.
        if outcome != FrameEvent::ChannelBusy {
            rpl.node(node).on_sent(moment.now, to, outcome == FrameEvent::Received, transmissions);
            self.tell(moment, node);
        }
    }

    /// A node begins to live.
    pub(super) fn switch_on<T: Tap>(&mut self, moment: &mut Moment<'_, T>, node: u32) {
        self.air.switch_on(moment.now, node);
        self.tell(moment, node);
    }

    /// The timer of a node's RPL fires.
    pub(super) fn route<T: Tap>(&mut self, moment: &mut Moment<'_, T>, node: u32) {
        if self.routing.rpl().is_some_and(|rpl| rpl.fires(moment.now, node)) {
            self.tell(moment, node);
        }
    }

    /// Sends what a node's RPL has to say, and arms its timer.
    fn tell<T: Tap>(&mut self, moment: &mut Moment<'_, T>, node: u32) {
        loop {
            let Some(rpl) = self.routing.rpl() else { return };
            let Some((to, message)) = rpl.poll_transmit(node) else { break };
            let config = *rpl.config();
            let id = self.packets.insert_message(NodeId(node), to, message);
            let ends = (link_local(NodeId(node)).octets(), to.map_or(ALL_RPL_NODES, link_local).octets());
            message.write(&config, ends, |node| global(node).octets(), self.packets.bytes_mut(id));
            if moment.tap.watches_nodes() {
                let bytes = self.packets.get(id).bytes.len() as u16;
                let rank = self.routing.standing(node).map_or(0, |(_, rank)| rank);
                let event = NodeEvent::Rpl { message: message.name(), to, bytes, rank };
                moment.tap.node(moment.now, NodeId(node), event);
            }
            let leg = Leg { hop_limit: NEIGHBOURS, option: None };
            self.send_down(moment, node, to, id, leg);
            self.packets.release(id);
        }
        if moment.tap.watches_nodes()
            && let Some((parent, rank)) = self.routing.standing(node)
        {
            moment.tap.node(moment.now, NodeId(node), NodeEvent::Route { parent, rank });
        }
        if let Some(deadline) = self.routing.rpl().and_then(|rpl| rpl.arm(moment.now, node)) {
            moment.events.push(deadline, Happening::Route(node).encode());
        }
    }
}
