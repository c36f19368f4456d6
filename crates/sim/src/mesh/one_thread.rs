//! Nodes with one thread: while a node sends a frame and waits for its acknowledgement, it handles nothing else.
//!
//! Contiki works so on a Cooja mote (core/net/mac/nullrdc.c, platform/cooja/dev/cooja-radio.c, platform/cooja/contiki-cooja-main.c):
//!
//! * To send a frame takes one call. The radio turns to sending, the node looks at the channel, sends, and waits for the acknowledgement
//!   for a fixed time, also where the acknowledgement comes earlier.
//! * The node does not look at the channel before the radio turns, but does not begin while it receives a frame.
//! * The radio keeps one frame. A frame that comes during a call waits there, and the next frame takes its place. That may be a
//!   frame for another node: the radio keeps all that it hears.
//! * Only after the call does the node handle the frame and acknowledge it. The sender may have given up by then.
//! * A call that finds another frame than its acknowledgement discards that frame, and counts as a busy channel.
//! * An acknowledgement is not sent if the channel is busy.
//! * A call goes on at ticks: a tick of the clock after the last, or earlier, when a frame begins or ends at the node. So the turn of the
//!   radio may take less time than its ticks, and the wait more.
//! * After a missing acknowledgement the next attempt begins at once, or a tick later, in turn.

use smallvec::SmallVec;

use super::air::ReceptionOutcome;
use super::event::MeshEvent;
use super::link_layer::{event_of, record_ack};
use super::lowpan::ACK_BYTES;
use super::mac::Queued;
use super::packets::PacketId;
use super::{Frame, FrameEvent, FrameKind, MacConfig, Mesh};
use crate::{MediumContext, NodeId, Span, Tap, Time};

/// The memory of a node with one thread.
#[derive(Clone, Debug)]
pub(super) struct NodeThread {
    stage: CallStage,
    /// The time of the next tick of the call.
    tick: Time,
    /// The frame that the radio keeps.
    kept: Option<KeptFrame>,
    /// The frame that the node is acknowledging. It goes to the layers above afterwards.
    handled: Option<Queued>,
    /// Whether the next attempt after a missing acknowledgement begins a tick later.
    is_late: bool,
}

/// A part of a call that takes ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallStage {
    /// The node is in no call, or sends.
    Other,
    /// The radio turns to sending, for so many more ticks.
    Turning(u64),
    /// The radio turns to sending an acknowledgement.
    TurningToAcknowledge(u64),
    /// The node waits for an acknowledgement until this moment.
    Waiting(Time),
}

/// A frame in a radio, with its datagram.
#[derive(Clone, Copy, Debug)]
enum KeptFrame {
    Data(Queued),
    Ack(Frame),
}

impl NodeThread {
    pub(super) const IDLE: Self =
        Self { stage: CallStage::Other, tick: Time::MAX, kept: None, handled: None, is_late: false };

    /// Returns whether an attempt after a missing acknowledgement begins a tick later: every other one does.
    pub(super) fn begins_late(&mut self) -> bool {
        self.is_late = !self.is_late;
        !self.is_late
    }
}

impl MacConfig {
    /// Returns the length of a tick of the clock.
    pub(super) fn tick(&self) -> Span {
        self.backoff_unit.max(Span::from_nanos(1))
    }

    /// Returns the ticks in a time, begun ones included.
    fn ticks(&self, time: Span) -> u64 {
        time.as_nanos().div_ceil(self.tick().as_nanos())
    }

    /// Returns the time from the end of a backoff to the moment at which the state of the channel counts.
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

    /// Begins the call that sends the first frame of a queue.
    pub(super) fn call_driver<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32, queue: u8) {
        let mac = &mut self.macs[node as usize];
        let Some(first) = mac.queues[usize::from(queue)].frames.front() else { return };
        let is_kept = first.frame.to.is_some() && self.threads[node as usize].kept.is_some();
        if is_kept || self.air.is_receiving(node) {
            self.channel_is_busy(moment, node, queue);
        } else {
            mac.active = Some(queue);
            let ticks = self.config.mac.ticks(self.config.mac.cca);
            self.enter(moment, node, CallStage::Turning(ticks));
        }
    }

    /// Begins a part of a call.
    fn enter<T>(&mut self, moment: &mut MediumContext<'_, T>, node: u32, stage: CallStage) {
        self.threads[node as usize].stage = stage;
        let ticks = match stage {
            CallStage::Other => return,
            CallStage::Turning(ticks) | CallStage::TurningToAcknowledge(ticks) => ticks,
            CallStage::Waiting(_) => 1,
        };
        let after = if ticks == 0 { Span::ZERO } else { self.config.mac.tick() };
        self.tick_at(moment, node, moment.now + after);
    }

    fn tick_at<T>(&mut self, moment: &mut MediumContext<'_, T>, node: u32, at: Time) {
        self.threads[node as usize].tick = at;
        moment.events.push(at, MeshEvent::Tick(node).encode());
    }

    /// Lets calls go on at nodes where the frame of `node` has just begun or ended.
    pub(super) fn wake_others<T>(&mut self, moment: &mut MediumContext<'_, T>, node: u32, begins: bool) {
        let woken: SmallVec<[u32; 16]> = self.air.woken(node, begins).collect();
        for other in woken {
            if self.threads[other as usize].stage != CallStage::Other {
                self.tick_at(moment, other, moment.now);
            }
        }
    }

    /// Goes on with a call. Returns a datagram that arrives now.
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

    /// Sends the frame of the call, if the channel is clear after the radio has turned to sending.
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

    /// Ends the frame of a call, which is now in all radios that heard it.
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
                if fate == ReceptionOutcome::Received {
                    self.packets.hold(queued.packet);
                    self.keep(moment, other, KeptFrame::Data(queued));
                } else {
                    if to.is_none_or(|to| to.0 == other) {
                        self.record_frame(moment, event_of(fate), other, &queued);
                    }
                    self.handle_kept(moment, other);
                }
            }
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

    /// Ends the wait for an acknowledgement, whether it has come or not.
    fn wait_ends<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32) {
        self.threads[node as usize].stage = CallStage::Other;
        let mac = &mut self.macs[node as usize];
        let (Some(queue), Some(peer)) = (mac.active.take(), mac.awaiting.take()) else { return };
        let sequence = mac.queues[usize::from(queue)].frames.front().map(|queued| queued.frame.sequence);
        let kept = if self.air.is_receiving(node) { None } else { self.threads[node as usize].kept.take() };
        match kept {
            Some(KeptFrame::Ack(ack)) if ack.from == peer && Some(ack.sequence) == sequence => {
                self.finish(moment, node, queue, FrameEvent::Received);
            }
            Some(other) => {
                self.lose(moment, node, other);
                self.channel_is_busy(moment, node, queue);
            }
            None => self.attempt_failed(moment, node, queue, FrameEvent::NotAcknowledged),
        }
        self.end_call(moment, node);
    }

    /// Puts a frame that was heard into the radio of a node, which handles it at once unless it is in a call.
    fn keep<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32, frame: KeptFrame) {
        if let Some(before) = self.threads[node as usize].kept.replace(frame) {
            self.lose(moment, node, before);
        }
        self.handle_kept(moment, node);
    }

    /// Loses a frame that was in the radio.
    fn lose<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32, frame: KeptFrame) {
        if let KeptFrame::Data(queued) = frame {
            if queued.frame.to.is_none_or(|to| to.0 == node) {
                self.record_frame(moment, FrameEvent::Missed, node, &queued);
            }
            self.packets.release(queued.packet);
        }
    }

    /// Handles the frame that the radio keeps, if there is one. While another frame comes in, the radio does not give it out.
    fn handle_kept<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32) {
        if self.is_calling(node) || self.air.is_receiving(node) {
            return;
        }
        let Some(KeptFrame::Data(queued)) = self.threads[node as usize].kept.take() else { return };
        let frame = queued.frame;
        match frame.to {
            Some(to) if to.0 == node => {
                self.record_frame(moment, FrameEvent::Received, node, &queued);
                self.threads[node as usize].handled = Some(queued);
                let ack =
                    Frame { kind: FrameKind::Ack, from: to, to: Some(frame.from), bytes: ACK_BYTES, ..frame };
                self.macs[node as usize].acknowledging = Some(ack);
                let config = &self.config.mac;
                let turns = if config.acknowledgements { config.ack_turnaround } else { Span::ZERO };
                let ticks = config.ticks(turns);
                self.enter(moment, node, CallStage::TurningToAcknowledge(ticks));
                return;
            }
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

    /// Sends the acknowledgement of the frame that the node handles, if the channel is clear. Returns the datagram that arrived
    /// with the frame if the acknowledgement is not sent.
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

    /// Ends an acknowledgement, which is now in all radios that heard it. Returns the datagram that arrived with the frame.
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

    /// Gives the frame that the node has handled to the layers above. Returns the datagram that arrived with it.
    fn pass_up<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32) -> Option<PacketId> {
        self.macs[node as usize].acknowledging = None;
        let queued = self.threads[node as usize].handled.take()?;
        let Frame { from, sequence, .. } = queued.frame;
        let known = self.macs[node as usize].knows(&self.config.mac, from, sequence);
        let arrived = if known { None } else { self.receive(moment, node, &queued) };
        if arrived.is_none() {
            self.packets.release(queued.packet);
        }
        self.end_call(moment, node);
        arrived
    }

    /// Lets a node whose call is over handle the frame in its radio, and then let its queues call.
    fn end_call<T: Tap>(&mut self, moment: &mut MediumContext<'_, T>, node: u32) {
        self.handle_kept(moment, node);
        self.resume(moment, node);
    }
}
