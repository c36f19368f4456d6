//! 6LoWPAN and routes: from a datagram to frames for the next hop, and back.

use super::lowpan::{Fragments, header_bytes};
use super::mac::Queued;
use super::packets::PacketId;
use super::reassembly::Reassembled;
use super::{Frame, FrameKind, Leg, Mesh};
use crate::{Event, Moment, NodeId, Tap};

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
        if self.packets.get(packet).dest == Some(NodeId(node)) {
            // A whole one is held by whoever delivers it.
            return Some(packet);
        }
        if let Some(hop_limit @ 1..) = frame.leg.hop_limit.checked_sub(1) {
            self.forward(moment, node, packet, hop_limit);
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

    /// Sends a datagram on from `node`, its own or another's.
    pub(super) fn forward<T: Tap>(
        &mut self,
        moment: &mut Moment<'_, T>,
        node: u32,
        id: PacketId,
        hop_limit: u8,
    ) {
        let packet = self.packets.get(id);
        let Some(dest) = packet.dest else { return };
        let Some(next) = self.trees.next(node, packet.source.0, dest.0) else {
            self.counters[node as usize].no_route += 1;
            self.see(moment, Event::Dropped, id);
            return;
        };
        self.send_down(moment, node, Some(next), id, Leg { hop_limit, option: None });
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
        let header = header_bytes(packet.source, packet.dest, from, to, leg, packet.is_icmpv6);
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

    /// A frame was sent, or given up after so many attempts.
    pub(super) fn sent_on<T>(&mut self, _: &mut Moment<'_, T>, _: u32, _: &Frame, _: bool, _: u8) {}
}
