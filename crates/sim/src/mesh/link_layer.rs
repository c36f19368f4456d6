//! Unslotted CSMA/CA with acknowledgements: from a frame in a queue to the layers of the next node.

use super::air::Fate;
use super::happening::Happening;
use super::lowpan::ACK_BYTES;
use super::mac::{Queued, State};
use super::packets::PacketId;
use super::{ChannelBusy, Frame, FrameEvent, FrameKind, FrameRecord, Mesh};
use crate::{Mark, Moment, NodeId, Tap, Time};

/// 250 kbit/s.
const BYTE_NS: u64 = 32_000;

impl Mesh {
    /// Puts a frame of a datagram into its queue at `node`. The caller has seen that there is room; the queues may all be
    /// other neighbours', though.
    pub(super) fn enqueue<T: Tap>(
        &mut self,
        moment: &mut Moment<'_, T>,
        node: u32,
        frame: Frame,
        packet: PacketId,
    ) -> bool {
        let queued = Queued { frame, packet };
        let Some(queue) = self.macs[node as usize].push(&self.config.mac, queued) else {
            self.frame_seen(moment, FrameEvent::QueueFull, node, &queued);
            return false;
        };
        self.packets.hold(packet);
        if self.macs[node as usize].queues[usize::from(queue)].state == State::Idle {
            self.contend(moment, node, queue, moment.now);
        }
        true
    }

    /// The first frame of a queue waits for its backoff, from `earliest` on.
    fn contend<T>(&mut self, moment: &mut Moment<'_, T>, node: u32, queue: u8, earliest: Time) {
        let config = &self.config.mac;
        let mac = &mut self.macs[node as usize];
        mac.queues[usize::from(queue)].state = State::Busy;
        let backoff_ns = mac.backoff_ns(config, self.backoffs, node, queue);
        let cca_ns = if config.csma { config.cca_ns } else { 0 };
        moment.events.push(earliest + backoff_ns + cca_ns, Happening::Assess(node, queue).encode());
    }

    /// A queue's backoff is over.
    pub(super) fn assess<T: Tap>(&mut self, moment: &mut Moment<'_, T>, node: u32, queue: u8) {
        let mac = &mut self.macs[node as usize];
        if mac.active.is_some() {
            mac.queues[usize::from(queue)].state = State::Ready;
        } else if !self.air.is_on(node) {
            // A node that is switched on later has nothing else to do until then.
            moment.events.push(
                moment.now + self.config.radio.start_spread_ns.max(1),
                Happening::Assess(node, queue).encode(),
            );
        } else if mac.acknowledging.is_some() || self.config.mac.csma && self.air.is_busy(node) {
            self.channel_is_busy(moment, node, queue);
        } else {
            mac.active = Some(queue);
            moment.events.push(moment.now + self.config.mac.turnaround_ns, Happening::Send(node).encode());
        }
    }

    fn channel_is_busy<T: Tap>(&mut self, moment: &mut Moment<'_, T>, node: u32, queue: u8) {
        let config = &self.config.mac;
        let first = &mut self.macs[node as usize].queues[usize::from(queue)];
        if first.backoffs < config.max_csma_backoffs {
            first.backoffs += 1;
            self.contend(moment, node, queue, moment.now);
        } else if config.channel_busy == ChannelBusy::Drop {
            self.give_up(moment, node, queue, FrameEvent::ChannelBusy);
        } else {
            self.attempt_failed(moment, node, queue, FrameEvent::ChannelBusy);
        }
    }

    /// The radio of `node` has turned to sending.
    pub(super) fn send_frame<T: Tap>(&mut self, moment: &mut Moment<'_, T>, node: u32) {
        let mac = &mut self.macs[node as usize];
        let Some(queue) = mac.active else { return };
        if mac.acknowledging.is_some() {
            // A frame came meanwhile, and its acknowledgement goes first.
            mac.active = None;
            self.channel_is_busy(moment, node, queue);
            self.resume(moment, node);
            return;
        }
        let Some(&queued) = mac.queues[usize::from(queue)].frames.front() else { return };
        self.frame_seen(moment, FrameEvent::Sent, node, &queued);
        self.begin(moment, node, &queued.frame, Happening::End(node));
    }

    fn begin<T>(&mut self, moment: &mut Moment<'_, T>, node: u32, frame: &Frame, end: Happening) {
        let mac = &mut self.macs[node as usize];
        self.air.begin(moment.now, node, mac.sent);
        mac.sent = mac.sent.wrapping_add(1);
        moment.events.push(moment.now + self.air_time_ns(frame.bytes), end.encode());
    }

    fn air_time_ns(&self, bytes: u16) -> u64 {
        BYTE_NS * (u64::from(self.config.radio.phy_header_bytes) + u64::from(bytes))
    }

    /// The last bit of a frame has left. Returns the datagram that arrived where it was to go, if one did.
    pub(super) fn frame_ends<T: Tap>(&mut self, moment: &mut Moment<'_, T>, node: u32) -> Option<PacketId> {
        let mut fates = std::mem::take(&mut self.fates);
        self.air.end(moment.now, node, &mut fates);
        let mac = &mut self.macs[node as usize];
        let queue = mac.active?;
        let queued = *mac.queues[usize::from(queue)].frames.front()?;
        let Frame { to, .. } = queued.frame;
        // What arrives is released when it has been delivered; the frame may be done with before.
        self.packets.hold(queued.packet);
        let (mut arrived, mut will_acknowledge) = (None, false);
        for &(other, fate) in fates.iter().filter(|&&(other, _)| to.is_none_or(|to| to.0 == other)) {
            self.frame_seen(moment, seen_as(fate), other, &queued);
            if fate == Fate::Received {
                if to.is_some() && self.config.mac.acknowledgements {
                    will_acknowledge = self.owe_acknowledgement(moment, other, &queued.frame);
                }
                let mac = &mut self.macs[other as usize];
                if !mac.knows(&self.config.mac, NodeId(node), queued.frame.sequence) {
                    arrived = self.climb(moment, other, &queued).or(arrived);
                }
            }
        }
        self.fates = fates;
        match to {
            Some(to) if self.config.mac.acknowledgements => {
                self.macs[node as usize].awaiting = Some(to);
                if !will_acknowledge {
                    let at = moment.now + self.config.mac.ack_wait_ns;
                    moment.events.push(at, Happening::NotAcknowledged(node).encode());
                }
            }
            _ => self.finish(moment, node, queue, FrameEvent::Received),
        }
        if arrived.is_none() {
            self.packets.release(queued.packet);
        }
        arrived
    }

    /// `node` has received a frame and is to acknowledge it. Returns whether that can come in time.
    fn owe_acknowledgement<T>(&mut self, moment: &mut Moment<'_, T>, node: u32, frame: &Frame) -> bool {
        let mac = &mut self.macs[node as usize];
        if mac.acknowledging.is_some() {
            return false;
        }
        let own = NodeId(node);
        mac.acknowledging =
            Some(Frame { kind: FrameKind::Ack, from: own, to: Some(frame.from), bytes: ACK_BYTES, ..*frame });
        let at = moment.now + self.config.mac.ack_turnaround_ns;
        moment.events.push(at, Happening::Acknowledge(node).encode());
        self.acknowledgement_ns() <= self.config.mac.ack_wait_ns
    }

    /// From the last bit of a frame to that of its acknowledgement.
    fn acknowledgement_ns(&self) -> u64 {
        self.config.mac.ack_turnaround_ns + self.air_time_ns(ACK_BYTES)
    }

    /// An acknowledgement begins.
    pub(super) fn acknowledge<T: Tap>(&mut self, moment: &mut Moment<'_, T>, node: u32) {
        let Some(ack) = self.macs[node as usize].acknowledging else { return };
        ack_seen(moment, FrameEvent::Sent, node, &ack);
        self.counters[node as usize].acks += 1;
        self.begin(moment, node, &ack, Happening::Acknowledged(node));
    }

    /// The last bit of an acknowledgement has left.
    pub(super) fn acknowledged<T: Tap>(&mut self, moment: &mut Moment<'_, T>, node: u32) {
        let mut fates = std::mem::take(&mut self.fates);
        self.air.end(moment.now, node, &mut fates);
        let ack = self.macs[node as usize].acknowledging.take();
        let Some((ack, NodeId(to))) = ack.and_then(|ack| Some((ack, ack.to?))) else { return };
        let fate = fates.iter().find(|&&(other, _)| other == to).map_or(Fate::Missed, |&(_, fate)| fate);
        self.fates = fates;
        ack_seen(moment, seen_as(fate), to, &ack);
        let left_ns = self.config.mac.ack_wait_ns.checked_sub(self.acknowledgement_ns());
        let mac = &mut self.macs[to as usize];
        // One that comes too late is not waited for any more.
        if let Some(left_ns) = left_ns.filter(|_| mac.awaiting == Some(NodeId(node))) {
            if fate == Fate::Received {
                mac.awaiting = None;
                if let Some(queue) = mac.active {
                    self.finish(moment, to, queue, FrameEvent::Received);
                }
            } else {
                moment.events.push(moment.now + left_ns, Happening::NotAcknowledged(to).encode());
            }
        }
    }

    /// No acknowledgement has come in time.
    pub(super) fn not_acknowledged<T: Tap>(&mut self, moment: &mut Moment<'_, T>, node: u32) {
        let mac = &mut self.macs[node as usize];
        if let (Some(queue), Some(_)) = (mac.active, mac.awaiting.take()) {
            mac.active = None;
            self.attempt_failed(moment, node, queue, FrameEvent::NotAcknowledged);
            self.resume(moment, node);
        }
    }

    /// An attempt failed: there is another, or the frame is given up because of `event`.
    fn attempt_failed<T: Tap>(
        &mut self,
        moment: &mut Moment<'_, T>,
        node: u32,
        queue: u8,
        event: FrameEvent,
    ) {
        let first = &mut self.macs[node as usize].queues[usize::from(queue)];
        first.backoffs = 0;
        first.attempts = first.attempts.saturating_add(1);
        if first.attempts > self.config.mac.max_frame_retries {
            self.give_up(moment, node, queue, event);
        } else {
            self.contend(moment, node, queue, moment.now + self.config.mac.spacing_ns);
        }
    }

    fn give_up<T: Tap>(&mut self, moment: &mut Moment<'_, T>, node: u32, queue: u8, event: FrameEvent) {
        if let Some(&queued) = self.macs[node as usize].queues[usize::from(queue)].frames.front() {
            self.frame_seen(moment, event, node, &queued);
            self.see(moment, crate::Event::Dropped, queued.packet);
        }
        self.finish(moment, node, queue, event);
    }

    /// The first frame of a queue is done with: it was received, as far as the node knows, or given up.
    fn finish<T: Tap>(&mut self, moment: &mut Moment<'_, T>, node: u32, queue: u8, outcome: FrameEvent) {
        let mac = &mut self.macs[node as usize];
        if mac.active == Some(queue) {
            mac.active = None;
        }
        let attempts = mac.queues[usize::from(queue)].attempts;
        if let Some(Queued { frame, packet }) = mac.pop(queue) {
            self.packets.release(packet);
            if let Some(to) = frame.to {
                let transmissions = attempts.saturating_add(u8::from(outcome == FrameEvent::Received));
                self.frame_done(moment, node, to, outcome, transmissions);
            }
        }
        let first = &mut self.macs[node as usize].queues[usize::from(queue)];
        first.state = State::Idle;
        if !first.frames.is_empty() {
            self.contend(moment, node, queue, moment.now + self.config.mac.spacing_ns);
        }
        self.resume(moment, node);
    }

    /// The radio is free: queues that waited for it look at the channel.
    fn resume<T>(&mut self, moment: &mut Moment<'_, T>, node: u32) {
        let config = &self.config.mac;
        let mac = &mut self.macs[node as usize];
        if mac.active.is_some() {
            return;
        }
        for (queue, number) in mac.queues.iter_mut().zip(0..) {
            if queue.state == State::Ready {
                queue.state = State::Busy;
                let at = moment.now + config.spacing_ns + config.cca_ns;
                moment.events.push(at, Happening::Assess(node, number).encode());
            }
        }
    }

    /// Counts what happened to a frame at `node`, and shows it to the tap.
    fn frame_seen<T: Tap>(
        &mut self,
        moment: &mut Moment<'_, T>,
        event: FrameEvent,
        node: u32,
        queued: &Queued,
    ) {
        let packet = self.packets.get(queued.packet);
        let counters = &mut self.counters[node as usize];
        counters.count(event);
        counters.control_frames += u64::from(packet.message.is_some() && event == FrameEvent::Sent);
        let (datagram, mark) = (Some(packet.datagram()), packet.mark);
        let (time, node, frame) = (moment.now, NodeId(node), &queued.frame);
        moment.tap.frame(&FrameRecord { time, event, node, frame, datagram, mark });
    }
}

/// Shows what happened to an acknowledgement at `node` to the tap.
fn ack_seen<T: Tap>(moment: &mut Moment<'_, T>, event: FrameEvent, node: u32, frame: &Frame) {
    let (time, node, mark) = (moment.now, NodeId(node), Mark::default());
    moment.tap.frame(&FrameRecord { time, event, node, frame, datagram: None, mark });
}

fn seen_as(fate: Fate) -> FrameEvent {
    match fate {
        Fate::Received => FrameEvent::Received,
        Fate::Collided => FrameEvent::Collided,
        Fate::Missed => FrameEvent::Missed,
    }
}
