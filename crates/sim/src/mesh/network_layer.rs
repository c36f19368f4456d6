//! 6LoWPAN and routes: from a datagram to frames for the next hop, and back.

use super::mac::Queued;
use super::packets::PacketId;
use super::{Frame, FrameKind, Leg, Mesh};
use crate::{Event, Moment, NodeId, Tap};

impl Mesh {
    /// A node sends a datagram of its own.
    pub(super) fn originate<T: Tap>(&mut self, moment: &mut Moment<'_, T>, node: u32, packet: PacketId) {
        self.forward(moment, node, packet, self.config.lowpan.hop_limit);
    }

    /// A frame came for `node`. Returns the datagram if it is whole and at its end.
    pub(super) fn climb<T: Tap>(
        &mut self,
        moment: &mut Moment<'_, T>,
        node: u32,
        queued: &Queued,
    ) -> Option<PacketId> {
        let Queued { frame, packet } = *queued;
        if self.packets.get(packet).dest == Some(NodeId(node)) {
            return Some(packet);
        }
        match frame.leg.hop_limit.checked_sub(1) {
            Some(hop_limit @ 1..) => self.forward(moment, node, packet, hop_limit),
            _ => {
                self.counters[node as usize].hop_limit += 1;
                self.see(moment, Event::Dropped, packet);
            }
        }
        None
    }

    /// Sends a datagram on from `node`.
    fn forward<T: Tap>(&mut self, moment: &mut Moment<'_, T>, node: u32, packet: PacketId, hop_limit: u8) {
        let (source, dest) = {
            let packet = self.packets.get(packet);
            (packet.source, packet.dest)
        };
        let next = dest.and_then(|dest| self.trees.next(node, source.0, dest.0));
        let Some(next) = next else {
            self.counters[node as usize].no_route += 1;
            self.see(moment, Event::Dropped, packet);
            return;
        };
        let bytes = 23 + 20 + self.packets.get(packet).bytes.len() as u16;
        let frame = Frame {
            kind: FrameKind::Data,
            from: NodeId(node),
            to: Some(next),
            sequence: 0,
            bytes: bytes.min(127),
            fragment: 0,
            fragments: 1,
            tag: 0,
            leg: Leg { hop_limit, option: None },
        };
        if !self.enqueue(moment, node, frame, packet) {
            self.see(moment, Event::Dropped, packet);
        }
    }

    /// A frame was sent, or given up after so many attempts.
    pub(super) fn sent_on<T>(&mut self, _: &mut Moment<'_, T>, _: u32, _: &Frame, _: bool, _: u8) {}
}
