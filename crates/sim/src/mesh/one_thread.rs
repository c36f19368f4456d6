//! Nodes with one thread: while a node sends a frame and waits for its acknowledgement, it handles nothing else.
//!
//! Contiki works so on a Cooja mote (core/net/mac/nullrdc.c, platform/cooja/dev/cooja-radio.c, platform/cooja/contiki-cooja-main.c):
//!
//! * Sending a frame takes one call of the radio's driver. The radio turns to sending, the node looks at the channel,
//!   sends, and waits for the acknowledgement for a fixed time, even if the acknowledgement comes earlier.
//! * The node does not look at the channel before the radio turns, but begins no call while it receives a frame.
//! * The radio keeps one frame. A frame that comes during a call waits in the radio, and the next frame takes its
//!   place. The kept frame may be for another node, because the radio keeps every frame that it hears.
//! * Only after the call does the node handle the frame and acknowledge it. The sender may have given up by then.
//! * A call that finds another frame than its acknowledgement discards that frame, and counts as a busy channel.
//! * An acknowledgement is not sent if the channel is busy.
//! * A call goes on at ticks: a tick of the clock after the last, or earlier, when a frame begins or ends at the node.
//!   So the radio may turn in less time than its number of ticks, and the wait for an acknowledgement may take longer
//!   than set.
//! * After a missing acknowledgement the next attempt begins at once, and after the next missing acknowledgement a tick
//!   later, in turn.

use smallvec::SmallVec;

use super::air::ReceptionOutcome;
use super::event::MeshEvent;
use super::link_layer::{event_of, record_ack};
use super::lowpan::ACK_BYTES;
use super::mac::Queued;
use super::packets::PacketId;
use super::{Frame, FrameEvent, FrameKind, MacConfig, Mesh};
use crate::{MediumContext, NodeId, Span, Tap, Time};

/// The state of a node with one thread.
#[derive(Clone, Debug)]
pub(super) struct NodeThread {
    stage: CallStage,
    /// The time of the next tick of the driver call.
    tick: Time,
    /// The frame that the radio has received and the node has not yet read.
    kept: Option<KeptFrame>,
    /// The frame that the node is acknowledging. It is passed up after its acknowledgement.
    handled: Option<Queued>,
    /// True if the next attempt after a missing acknowledgement waits one tick; false if it begins at once.
    is_late: bool,
}

/// The present stage of a node's driver call, which sends a frame or an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallStage {
    /// The node is in no call, or is transmitting.
    Other,
    /// The radio turns to sending, for this number of further ticks.
    Turning(u64),
    /// The radio turns to sending an acknowledgement, for this number of further ticks.
    TurningToAcknowledge(u64),
    /// The node waits for an acknowledgement until this moment.
    Waiting(Time),
}

/// A received frame that waits in the radio, with its datagram.
#[derive(Clone, Copy, Debug)]
enum KeptFrame {
    Data(Queued),
    Ack(Frame),
}

impl NodeThread {
    pub(super) const IDLE: Self =
        Self { stage: CallStage::Other, tick: Time::MAX, kept: None, handled: None, is_late: false };

    /// Returns whether this attempt after a missing acknowledgement begins a tick later. Every second call returns
    /// true.
    pub(super) fn begins_late(&mut self) -> bool {
        // The flag turns before it is read, so the first of these attempts begins at once.
        self.is_late = !self.is_late;
        !self.is_late
    }
}

impl MacConfig {
    /// Returns the length of a tick of the clock.
    pub(super) fn tick(&self) -> Span {
        self.backoff_unit.max(Span::from_nanos(1))
    }

    /// Returns the number of ticks in a span, rounded up.
    fn ticks(&self, time: Span) -> u64 {
        time.as_nanos().div_ceil(self.tick().as_nanos())
    }

    /// Returns the duration of the channel assessment that follows a backoff. It is zero without CSMA. It is also zero
    /// with one thread, where the driver call makes the assessment.
    pub(super) fn listening(&self) -> Span {
        // With one thread, a call begins at the end of the backoff, and looks at the channel later.
        if self.csma && !self.one_thread { self.cca } else { Span::ZERO }
    }
}

impl Mesh {
    fn is_calling(&self, node: u32) -> bool {
        let mac = &self.macs[node as usize];
        mac.active.is_some() || mac.acknowledging.is_some()
    }

    /// Begins the driver call that sends the first frame of a queue.
    pub(super) fn call_driver<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32, queue: u8) {
        let mac = &mut self.macs[node as usize];
        let Some(first) = mac.queues[usize::from(queue)].frames.front() else { return };
        // nullrdc does not begin a frame to one node while the radio holds another that waits to be read.
        let is_kept = first.frame.to.is_some() && self.threads[node as usize].kept.is_some();
        if is_kept || self.air.is_receiving(node) {
            self.channel_is_busy(moment, node, queue);
        } else {
            mac.active = Some(queue);
            let ticks = self.config.mac.ticks(self.config.mac.cca);
            self.enter(moment, node, CallStage::Turning(ticks));
        }
    }

    /// Begins a stage of a driver call, and schedules its first tick.
    fn enter<T>(&mut self, moment: &mut MediumContext<'_, T>, node: u32, stage: CallStage) {
        self.threads[node as usize].stage = stage;
        let ticks = match stage {
            CallStage::Other => return,
            CallStage::Turning(ticks) | CallStage::TurningToAcknowledge(ticks) => ticks,
            // The thread looks at the clock once a tick.
            CallStage::Waiting(_) => 1,
        };
        // Without time to turn, the tick is due now. It goes through the queue, after the events that are there already.
        let after = if ticks == 0 { Span::ZERO } else { self.config.mac.tick() };
        self.tick_at(moment, node, moment.now + after);
    }

    fn tick_at<T>(&mut self, moment: &mut MediumContext<'_, T>, node: u32, at: Time) {
        // The event of the former tick stays in the queue. `tick` knows it by its time.
        self.threads[node as usize].tick = at;
        moment.events.push(at, MeshEvent::Tick(node).encode());
    }

    /// Lets driver calls continue now at nodes that notice the beginning or the end of the frame of `node`.
    pub(super) fn wake_others<T>(&mut self, moment: &mut MediumContext<'_, T>, node: u32, begins: bool) {
        let woken: SmallVec<[u32; 16]> = self.air.woken(node, begins).collect();
        for other in woken {
            if self.threads[other as usize].stage != CallStage::Other {
                self.tick_at(moment, other, moment.now);
            }
        }
    }

    /// Continues a driver call. Returns the datagram that arrives now, if there is one.
    pub(super) fn tick<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32) -> Option<PacketId> {
        let thread = &mut self.threads[node as usize];
        if thread.tick != moment.now {
            // An earlier tick took the place of this one.
            return None;
        }
        thread.tick = Time::MAX;
        let stage = thread.stage;
        match stage {
            CallStage::Turning(left @ 2..) => self.enter(moment, node, CallStage::Turning(left - 1)),
            CallStage::TurningToAcknowledge(left @ 2..) => {
                self.enter(moment, node, CallStage::TurningToAcknowledge(left - 1));
            }
            CallStage::Waiting(until) if moment.now < until => self.enter(moment, node, stage),
            CallStage::Turning(_) => self.send_in_call(moment, node),
            CallStage::TurningToAcknowledge(_) => return self.acknowledge_in_call(moment, node),
            CallStage::Waiting(_) => self.wait_ends(moment, node),
            CallStage::Other => {}
        }
        None
    }

    /// Sends the frame of the driver call, if the channel is clear after the radio has turned to sending.
    fn send_in_call<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32) {
        self.threads[node as usize].stage = CallStage::Other;
        let Some(queue) = self.macs[node as usize].active else { return };
        let Some(&queued) = self.macs[node as usize].queues[usize::from(queue)].frames.front() else {
            return;
        };
        if self.config.mac.csma && self.air.is_sensed(node) {
            self.macs[node as usize].active = None;
            self.channel_is_busy(moment, node, queue);
            self.end_call(moment, node);
        } else {
            self.record_frame(moment, FrameEvent::Sent, node, &queued);
            self.begin(moment, node, &queued.frame, MeshEvent::End(node));
        }
    }

    /// Ends the frame that a driver call sends: the radio of each node that received the frame now keeps it. The sender
    /// then waits for the acknowledgement, if it expects one.
    pub(super) fn frame_ends_in_call<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32) {
        let mut fates = std::mem::take(&mut self.fates);
        self.air.end(moment.now, node, &mut fates);
        self.wake_others(moment, node, false);
        let mac = &self.macs[node as usize];
        let first = mac
            .active
            .and_then(|queue| mac.queues[usize::from(queue)].frames.front().copied().zip(Some(queue)));
        if let Some((queued, queue)) = first {
            let to = queued.frame.to;
            for &(other, fate) in &fates {
                // Every radio keeps each frame that it hears, also a frame for another node.
                if fate == ReceptionOutcome::Received {
                    self.packets.hold(queued.packet);
                    self.keep(moment, other, KeptFrame::Data(queued));
                } else {
                    // Only the nodes that the frame was for count it as lost.
                    if to.is_none_or(|to| to.0 == other) {
                        self.record_frame(moment, event_of(fate), other, &queued);
                    }
                    // The end of the frame frees the radio, which may now give out the frame that it keeps.
                    self.handle_kept(moment, other);
                }
            }
            // The thread waits for the acknowledgement and handles nothing until then.
            if to.is_some() && self.config.mac.acknowledgements {
                self.macs[node as usize].awaiting = to;
                let until = moment.now + self.config.mac.ack_wait;
                self.enter(moment, node, CallStage::Waiting(until));
            } else {
                self.finish(moment, node, queue, FrameEvent::Received);
                self.end_call(moment, node);
            }
        }
        self.fates = fates;
    }

    /// Ends the wait for an acknowledgement: takes the frame that the radio keeps, and finishes or repeats the attempt.
    fn wait_ends<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32) {
        self.threads[node as usize].stage = CallStage::Other;
        let mac = &mut self.macs[node as usize];
        let (Some(queue), Some(peer)) = (mac.active.take(), mac.awaiting.take()) else { return };
        let sequence = mac.queues[usize::from(queue)].frames.front().map(|queued| queued.frame.sequence);
        // A frame that is coming in hides the one before it.
        let kept = if self.air.is_receiving(node) { None } else { self.threads[node as usize].kept.take() };
        match kept {
            Some(KeptFrame::Ack(ack)) if ack.from == peer && Some(ack.sequence) == sequence => {
                self.finish(moment, node, queue, FrameEvent::Received);
            }
            // The frame in the radio is not the acknowledgement. Contiki discards it and takes the channel for busy.
            Some(other) => {
                self.lose(moment, node, other);
                self.channel_is_busy(moment, node, queue);
            }
            None => self.attempt_failed(moment, node, queue, FrameEvent::NotAcknowledged),
        }
        self.end_call(moment, node);
    }

    /// Puts a received frame into the radio of a node. The node handles it at once unless it is in a driver call.
    fn keep<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32, frame: KeptFrame) {
        if let Some(before) = self.threads[node as usize].kept.replace(frame) {
            self.lose(moment, node, before);
        }
        self.handle_kept(moment, node);
    }

    /// Drops a frame that was in the radio. Counts it as missed if it was for this node.
    fn lose<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32, frame: KeptFrame) {
        if let KeptFrame::Data(queued) = frame {
            if queued.frame.to.is_none_or(|to| to.0 == node) {
                self.record_frame(moment, FrameEvent::Missed, node, &queued);
            }
            self.packets.release(queued.packet);
        }
    }

    /// Handles the frame that the radio keeps, if there is one. Does nothing during a call or while the radio receives
    /// another frame: the frame then stays in the radio.
    fn handle_kept<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32) {
        // The thread is in a call, or the radio is receiving. The frame stays in the radio.
        if self.is_calling(node) || self.air.is_receiving(node) {
            return;
        }
        // An acknowledgement that is read outside of a call comes too late, and is dropped.
        let Some(KeptFrame::Data(queued)) = self.threads[node as usize].kept.take() else { return };
        let frame = queued.frame;
        match frame.to {
            Some(to) if to.0 == node => {
                self.record_frame(moment, FrameEvent::Received, node, &queued);
                // The acknowledgement goes first. `pass_up` hands the frame on afterwards.
                self.threads[node as usize].handled = Some(queued);
                let ack =
                    Frame { kind: FrameKind::Ack, from: to, to: Some(frame.from), bytes: ACK_BYTES, ..frame };
                self.macs[node as usize].acknowledging = Some(ack);
                let config = &self.config.mac;
                let turns = if config.acknowledgements { config.ack_turnaround } else { Span::ZERO };
                let ticks = config.ticks(turns);
                // The packet is still held for `handled`, so this returns before the release below.
                self.enter(moment, node, CallStage::TurningToAcknowledge(ticks));
                return;
            }
            // The radio kept a frame for another node. The thread drops it.
            Some(_) => {}
            None => {
                self.record_frame(moment, FrameEvent::Received, node, &queued);
                if !self.macs[node as usize].knows(&self.config.mac, frame.from, frame.sequence) {
                    // Frames to all neighbours are messages of RPL, and no datagram arrives.
                    self.receive(moment, node, &queued);
                }
            }
        }
        self.packets.release(queued.packet);
    }

    /// Sends the acknowledgement of the frame that the node handles. If the channel is busy, passes the frame up
    /// without an acknowledgement, and returns the datagram that arrived.
    fn acknowledge_in_call<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        node: u32,
    ) -> Option<PacketId> {
        self.threads[node as usize].stage = CallStage::Other;
        let config = &self.config.mac;
        if !config.acknowledgements || config.csma && self.air.is_sensed(node) {
            return self.pass_up(moment, node);
        }
        self.acknowledge(moment, node);
        None
    }

    /// Ends an acknowledgement: the radio of each node that received the acknowledgement now keeps it. Passes the
    /// acknowledged frame up, and returns the datagram that arrived with it.
    pub(super) fn acknowledged_in_call<T: Tap>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        node: u32,
    ) -> Option<PacketId> {
        let mut fates = std::mem::take(&mut self.fates);
        self.air.end(moment.now, node, &mut fates);
        self.wake_others(moment, node, false);
        if let Some(ack) = self.macs[node as usize].acknowledging {
            for &(other, fate) in &fates {
                if ack.to == Some(NodeId(other)) {
                    record_ack(moment, event_of(fate), other, &ack);
                }
                if fate == ReceptionOutcome::Received {
                    self.keep(moment, other, KeptFrame::Ack(ack));
                } else {
                    self.handle_kept(moment, other);
                }
            }
        }
        self.fates = fates;
        self.pass_up(moment, node)
    }

    /// Passes the frame that the node has handled to the layers above. Returns the datagram that arrived with it, if it
    /// is complete and new.
    fn pass_up<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32) -> Option<PacketId> {
        self.macs[node as usize].acknowledging = None;
        let queued = self.threads[node as usize].handled.take()?;
        let Frame { from, sequence, .. } = queued.frame;
        // A copy was acknowledged again, as its sender may have missed the first acknowledgement, and ends here.
        let known = self.macs[node as usize].knows(&self.config.mac, from, sequence);
        let arrived = if known { None } else { self.receive(moment, node, &queued) };
        if arrived.is_none() {
            self.packets.release(queued.packet);
        }
        self.end_call(moment, node);
        arrived
    }

    /// Ends a driver call: handles the frame in the radio, and lets queues begin their calls.
    fn end_call<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32) {
        self.handle_kept(moment, node);
        self.resume(moment, node);
    }
}
