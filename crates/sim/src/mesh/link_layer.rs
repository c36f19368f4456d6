//! Unslotted CSMA/CA with acknowledgements: from a frame in a queue to the layers of the next node.

use super::air::ReceptionOutcome;
use super::event::MeshEvent;
use super::lowpan::ACK_BYTES;
use super::mac::{FrameQueue, QueueState, Queued};
use super::packets::PacketId;
use super::{ChannelBusy, DutyCycle, Frame, FrameEvent, FrameKind, FrameRecord, Mesh};
use crate::{Mark, MediumContext, NodeId, Span, Tap, Time};

impl Mesh {
    /// Puts a frame of a datagram into its queue at `node`. The caller has checked that there is room. Returns false,
    /// and drops the frame, if all queues belong to other neighbours.
    pub(super) fn enqueue<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        node: u32,
        frame: Frame,
        packet: PacketId,
    ) -> bool {
        let queued = Queued { frame, packet };
        let Some(queue) = self.macs[node as usize].push(&self.config.mac, queued) else {
            self.record_frame(moment, FrameEvent::QueueFull, node, &queued);
            return false;
        };
        // Each queued frame holds its datagram, so that the bytes stay until the last frame is gone.
        self.packets.hold(packet);
        if self.macs[node as usize].queues[usize::from(queue)].state == QueueState::Idle {
            self.contend(moment, node, queue, moment.now);
        }
        true
    }

    /// Draws a backoff for the first frame of a queue, and schedules the channel assessment at its end. The backoff
    /// begins at `earliest`.
    fn contend<T>(&mut self, moment: &mut MediumContext<'_, T>, node: u32, queue: u8, earliest: Time) {
        let config = &self.config.mac;
        let mac = &mut self.macs[node as usize];
        mac.queues[usize::from(queue)].state = QueueState::Busy;
        if let DutyCycle::Tsch(_) = config.duty_cycle {
            // The next cell lets the queue send.
            mac.queues[usize::from(queue)].cells = mac.cells(config, self.backoffs, node, queue);
            return;
        }
        let mut backoff = mac.backoff(config, self.backoffs, node, queue);
        let FrameQueue { attempts, backoffs, .. } = mac.queues[usize::from(queue)];
        // In one thread, a retry after a missing acknowledgement begins at once or a tick later, in turn (`one_thread`).
        if config.one_thread && attempts > 0 && backoffs == 0 && self.threads[node as usize].begins_late() {
            backoff += config.tick();
        }
        let to = mac.queues[usize::from(queue)].frames.front().and_then(|queued| queued.frame.to);
        let mut at = earliest + backoff + config.listening();
        if config.duty_cycle.sleeps() {
            at = self.in_phase(node, to, at);
        }
        moment.events.push(at, MeshEvent::Assess(node, queue).encode());
    }

    /// Assesses the channel at the end of a queue's backoff.
    pub(super) fn assess<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32, queue: u8) {
        let mac = &mut self.macs[node as usize];
        // The radio is taken. `resume` lets the queue assess again when it is free.
        if mac.active.is_some() || self.config.mac.one_thread && mac.acknowledging.is_some() {
            mac.queues[usize::from(queue)].state = QueueState::Ready;
        } else if !self.air.is_on(node) {
            // The node is not switched on yet.
            moment.events.push(
                moment.now + self.config.radio.start_spread.max(Span::from_nanos(1)),
                MeshEvent::Assess(node, queue).encode(),
            );
        } else if self.config.mac.one_thread {
            self.call_driver(moment, node, queue);
        } else if mac.acknowledging.is_some()
            || self.config.mac.csma && self.air.is_busy(node)
            || !self.is_quiet(moment.now, node)
        {
            // A radio that owes an acknowledgement cannot send, which counts as a busy channel.
            self.channel_is_busy(moment, node, queue);
        } else {
            self.macs[node as usize].active = Some(queue);
            moment.events.push(moment.now + self.config.mac.turnaround, MeshEvent::Send(node).encode());
        }
    }

    pub(super) fn channel_is_busy<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        node: u32,
        queue: u8,
    ) {
        let config = &self.config.mac;
        let first = &mut self.macs[node as usize].queues[usize::from(queue)];
        // A busy channel raises the backoff exponent, up to macMaxCSMABackoffs (IEEE 802.15.4-2015 §6.2.5.1).
        if first.backoffs < config.max_csma_backoffs {
            first.backoffs += 1;
            self.contend(moment, node, queue, moment.now);
        } else if config.channel_busy == ChannelBusy::Drop {
            self.give_up(moment, node, queue, FrameEvent::ChannelBusy);
        } else {
            self.attempt_failed(moment, node, queue, FrameEvent::ChannelBusy);
        }
    }

    /// Sends the first frame of the active queue, after the radio of `node` has turned to sending.
    pub(super) fn send_frame<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32) {
        let mac = &mut self.macs[node as usize];
        let Some(queue) = mac.active else { return };
        if mac.acknowledging.is_some() {
            // A frame came in the meantime, and its acknowledgement goes first.
            mac.active = None;
            self.channel_is_busy(moment, node, queue);
            self.resume(moment, node);
            return;
        }
        let Some(&queued) = mac.queues[usize::from(queue)].frames.front() else { return };
        self.strobe(moment.now, node);
        self.record_frame(moment, FrameEvent::Sent, node, &queued);
        self.begin(moment, node, &queued.frame, MeshEvent::End(node));
    }

    pub(super) fn begin<T>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        node: u32,
        frame: &Frame,
        end: MeshEvent,
    ) {
        let mac = &mut self.macs[node as usize];
        self.air.begin(moment.now, node, mac.sent);
        mac.sent = mac.sent.wrapping_add(1);
        if self.config.mac.one_thread {
            self.wake_others(moment, node, true);
        }
        moment.events.push(moment.now + self.config.radio.air_time(frame.bytes), end.encode());
    }

    /// Ends a frame whose last bit has left. Returns the datagram that arrived at its receiver, if one did.
    pub(super) fn frame_ends<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        node: u32,
    ) -> Option<PacketId> {
        if self.config.mac.one_thread {
            self.frame_ends_in_call(moment, node);
            return None;
        }
        let mut fates = std::mem::take(&mut self.fates);
        self.air.end(moment.now, node, &mut fates);
        let mac = &mut self.macs[node as usize];
        let queue = mac.active?;
        let queued = *mac.queues[usize::from(queue)].frames.front()?;
        let Frame { to, .. } = queued.frame;
        // The caller releases a datagram that arrives. The sender may be done with the frame before that.
        self.packets.hold(queued.packet);
        let (mut arrived, mut will_acknowledge) = (None, false);
        for &(other, fate) in fates.iter().filter(|&&(other, _)| to.is_none_or(|to| to.0 == other)) {
            self.record_frame(moment, event_of(fate), other, &queued);
            if fate == ReceptionOutcome::Received {
                // A copy is acknowledged as well: the acknowledgement of the first frame may be lost.
                if to.is_some() && self.config.mac.acknowledgements {
                    will_acknowledge = self.owe_acknowledgement(moment, other, &queued.frame);
                }
                let mac = &mut self.macs[other as usize];
                if !mac.knows(&self.config.mac, NodeId(node), queued.frame.sequence) {
                    // Frames to all carry RPL messages only, which `receive` handles. So one receiver at most returns a datagram.
                    arrived = self.receive(moment, other, &queued).or(arrived);
                }
            }
        }
        match self.config.mac.duty_cycle {
            DutyCycle::None(_) => {}
            // A node that heard only the end of a frame stays awake for its repetition.
            DutyCycle::ContikiMac(_) => {
                let heard = fates.iter().filter(|(_, fate)| *fate == ReceptionOutcome::Received);
                heard.for_each(|&(other, _)| self.fall_asleep(moment.now, other));
            }
            // A cell carries one frame, so nothing else comes in it.
            DutyCycle::Tsch(_) => fates.iter().for_each(|&(other, _)| self.fall_asleep(moment.now, other)),
        }
        self.fates = fates;
        match to {
            Some(to) if self.config.mac.acknowledgements => {
                self.macs[node as usize].awaiting = Some(to);
                // If an acknowledgement is on its way, its end decides. Otherwise a timer does.
                if !will_acknowledge && !self.repeat(moment, node) {
                    let at = moment.now + self.config.mac.ack_wait;
                    moment.events.push(at, MeshEvent::NotAcknowledged(node).encode());
                }
            }
            _ if self.repeat(moment, node) => {}
            _ => self.finish(moment, node, queue, FrameEvent::Received),
        }
        // Nobody takes the datagram over, so the hold of this function ends here.
        if arrived.is_none() {
            self.packets.release(queued.packet);
        }
        arrived
    }

    /// Schedules the acknowledgement of a frame that `node` has received. Returns false if the node is acknowledging
    /// another frame, or if the acknowledgement cannot arrive before the sender of the frame gives up.
    fn owe_acknowledgement<T>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        node: u32,
        frame: &Frame,
    ) -> bool {
        let mac = &mut self.macs[node as usize];
        // The radio acknowledges one frame at a time.
        if mac.acknowledging.is_some() {
            return false;
        }
        let own = NodeId(node);
        mac.acknowledging =
            Some(Frame { kind: FrameKind::Ack, from: own, to: Some(frame.from), bytes: ACK_BYTES, ..*frame });
        let at = moment.now + self.config.mac.ack_turnaround;
        moment.events.push(at, MeshEvent::Acknowledge(node).encode());
        // A configuration may allow less time than an acknowledgement takes. It is sent then, and ignored.
        self.config.acknowledgement_time() <= self.config.mac.ack_wait
    }

    /// Begins an acknowledgement.
    pub(super) fn acknowledge<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32) {
        let Some(ack) = self.macs[node as usize].acknowledging else { return };
        record_ack(moment, FrameEvent::Sent, node, &ack);
        self.counters[node as usize].acks += 1;
        self.begin(moment, node, &ack, MeshEvent::Acknowledged(node));
    }

    /// Ends an acknowledgement whose last bit has left. With one thread per node, returns the datagram that arrives
    /// now, if there is one.
    pub(super) fn acknowledged<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        node: u32,
    ) -> Option<PacketId> {
        if self.config.mac.one_thread {
            return self.acknowledged_in_call(moment, node);
        }
        let mut fates = std::mem::take(&mut self.fates);
        self.air.end(moment.now, node, &mut fates);
        let ack = self.macs[node as usize].acknowledging.take();
        self.fall_asleep(moment.now, node);
        let (ack, NodeId(to)) = ack.and_then(|ack| Some((ack, ack.to?)))?;
        // The node is not in the list if it was out of reach, or if the acknowledgement failed at its sender.
        let fate =
            fates.iter().find(|&&(other, _)| other == to).map_or(ReceptionOutcome::Missed, |&(_, fate)| fate);
        self.fates = fates;
        record_ack(moment, event_of(fate), to, &ack);
        let (wait, takes) = (self.config.mac.ack_wait, self.config.acknowledgement_time());
        let mac = &mut self.macs[to as usize];
        // An acknowledgement that comes too late is ignored.
        if takes <= wait && mac.awaiting == Some(NodeId(node)) {
            if fate == ReceptionOutcome::Received {
                mac.awaiting = None;
                if let Some(queue) = mac.active {
                    self.strobe_ends(moment.now, to, Some(Frame { to: Some(NodeId(node)), ..ack }), true);
                    self.finish(moment, to, queue, FrameEvent::Received);
                }
            } else if !self.repeat(moment, to) {
                // The acknowledgement is lost, but the sender does not know, and waits until its time is over.
                moment.events.push(moment.now + (wait - takes), MeshEvent::NotAcknowledged(to).encode());
            }
        }
        None
    }

    /// Ends an attempt whose acknowledgement has not come in time.
    pub(super) fn not_acknowledged<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32) {
        let mac = &mut self.macs[node as usize];
        if let (Some(queue), Some(_)) = (mac.active, mac.awaiting.take()) {
            mac.active = None;
            let frame = mac.queues[usize::from(queue)].frames.front().map(|queued| queued.frame);
            self.strobe_ends(moment.now, node, frame, false);
            self.attempt_failed(moment, node, queue, FrameEvent::NotAcknowledged);
            self.resume(moment, node);
        }
    }

    /// Begins another attempt after an attempt failed. After the last attempt, gives the frame up and reports `event`.
    pub(super) fn attempt_failed<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        node: u32,
        queue: u8,
        event: FrameEvent,
    ) {
        let first = &mut self.macs[node as usize].queues[usize::from(queue)];
        // A new attempt begins with the smallest backoff.
        first.backoffs = 0;
        first.attempts = first.attempts.saturating_add(1);
        if first.attempts > self.config.mac.max_frame_retries {
            self.give_up(moment, node, queue, event);
        } else {
            self.contend(moment, node, queue, moment.now + self.config.mac.spacing);
        }
    }

    fn give_up<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        node: u32,
        queue: u8,
        event: FrameEvent,
    ) {
        if let Some(&queued) = self.macs[node as usize].queues[usize::from(queue)].frames.front() {
            self.record_frame(moment, event, node, &queued);
            self.record(moment, crate::Event::Dropped, queued.packet);
        }
        self.finish(moment, node, queue, event);
    }

    /// Removes the first frame of a queue, because it was given up or because the node believes that it was received.
    pub(super) fn finish<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        node: u32,
        queue: u8,
        outcome: FrameEvent,
    ) {
        let mac = &mut self.macs[node as usize];
        if mac.active == Some(queue) {
            mac.active = None;
        }
        let attempts = mac.queues[usize::from(queue)].attempts;
        let popped = mac.pop(queue);
        if self.config.mac.duty_cycle.sleeps() {
            self.strobe_ends(moment.now, node, None, false);
        }
        if let Some(Queued { frame, packet }) = popped {
            self.packets.release(packet);
            if let Some(to) = frame.to {
                // The last attempt counts as well if it was acknowledged, for ETX.
                let transmissions = attempts.saturating_add(u8::from(outcome == FrameEvent::Received));
                self.frame_done(moment, node, to, outcome, transmissions);
            }
        }
        let first = &mut self.macs[node as usize].queues[usize::from(queue)];
        first.state = QueueState::Idle;
        if !first.frames.is_empty() {
            self.contend(moment, node, queue, moment.now + self.config.mac.spacing);
        }
        // The radio is free now, and other queues may have waited for it.
        self.resume(moment, node);
    }

    /// If the radio of `node` is free, lets the queues that waited for it assess the channel.
    pub(super) fn resume<T>(&mut self, moment: &mut MediumContext<'_, T>, node: u32) {
        let config = &self.config.mac;
        let mac = &mut self.macs[node as usize];
        if mac.active.is_some() {
            return;
        }
        for (queue, number) in mac.queues.iter_mut().zip(0..) {
            if queue.state == QueueState::Ready {
                queue.state = QueueState::Busy;
                let at = moment.now + config.spacing + config.listening();
                moment.events.push(at, MeshEvent::Assess(node, number).encode());
            }
        }
    }

    /// Counts an event of a queued frame at `node`, and shows it to the tap.
    pub(super) fn record_frame<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
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

/// Shows an event of an acknowledgement at `node` to the tap.
pub(super) fn record_ack<T: Tap>(
    moment: &mut MediumContext<'_, T>,
    event: FrameEvent,
    node: u32,
    frame: &Frame,
) {
    let (time, node, mark) = (moment.now, NodeId(node), Mark::default());
    moment.tap.frame(&FrameRecord { time, event, node, frame, datagram: None, mark });
}

pub(super) fn event_of(fate: ReceptionOutcome) -> FrameEvent {
    match fate {
        ReceptionOutcome::Received => FrameEvent::Received,
        ReceptionOutcome::Collided => FrameEvent::Collided,
        ReceptionOutcome::Missed => FrameEvent::Missed,
    }
}
