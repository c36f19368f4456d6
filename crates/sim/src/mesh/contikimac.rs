//! ContikiMAC: wake-ups of receivers, and the repetition of frames.

use super::air::Air;
use super::duty_cycle::{ContikiMacConfig, DutyCycle};
use super::event::MeshEvent;
use super::{Frame, Mesh};
use crate::{MediumContext, NodeId, Span, Time};

impl Mesh {
    pub(super) fn contikimac(&self) -> Option<ContikiMacConfig> {
        match self.config.mac.duty_cycle {
            DutyCycle::ContikiMac(config) => Some(config),
            DutyCycle::None(_) | DutyCycle::Tsch(_) => None,
        }
    }

    /// Wakes a node up for the first assessment of the channel, and plans its next wake-up.
    pub(super) fn wake_up<T>(&mut self, moment: &mut MediumContext<'_, T>, node: u32) {
        let Some(config) = self.contikimac() else { return };
        moment.events.push(moment.now + config.wake_interval, MeshEvent::WakeUp(node).encode());
        if !self.stay_awake(moment, node, &config) {
            // An assessment counts at its end: the gap, and then the assessment itself.
            let second = moment.now + config.cca_gap + config.cca;
            moment.events.push(second, MeshEvent::AssessAgain(node).encode());
        }
    }

    /// Makes the second assessment of a wake-up.
    pub(super) fn assess_again<T>(&mut self, moment: &mut MediumContext<'_, T>, node: u32) {
        if let Some(config) = self.contikimac() {
            self.stay_awake(moment, node, &config);
        }
    }

    /// Assesses the channel for a sleeping radio, which is switched on for the assessment only. If the channel is busy,
    /// the radio stays on for a while. Returns whether the radio is on.
    fn stay_awake<T>(
        &mut self,
        moment: &mut MediumContext<'_, T>,
        node: u32,
        config: &ContikiMacConfig,
    ) -> bool {
        if !self.air.is_asleep(node) {
            return true;
        }
        // The radio was on for this assessment, which costs energy even if the channel is quiet.
        self.air.probe(node, config.cca);
        if !self.air.is_busy(node) {
            return false;
        }
        self.air.wake(moment.now, node);
        moment.events.push(moment.now + config.listen, MeshEvent::Doze(node).encode());
        true
    }

    /// Switches off a radio that has waited for a frame long enough. If the radio is receiving a frame, waits for its
    /// end.
    pub(super) fn doze<T>(&mut self, moment: &mut MediumContext<'_, T>, node: u32) {
        // The frame is not cut off. The radio sleeps after the longest frame that this can be.
        if self.air.is_receiving(node) {
            moment.events.push(moment.now + LONGEST_FRAME, MeshEvent::Doze(node).encode());
        } else {
            self.fall_asleep(moment.now, node);
        }
    }

    /// Switches off the radio of a node that neither sends nor acknowledges a frame, unless radios are always on.
    pub(super) fn fall_asleep(&mut self, now: Time, node: u32) {
        let mac = &self.macs[node as usize];
        if self.config.mac.duty_cycle.sleeps() && mac.active.is_none() && mac.acknowledging.is_none() {
            self.air.sleep(now, node);
        }
    }

    /// Returns the time at which a node should assess the channel for a frame to `to`: shortly before the next known
    /// wake-up of `to`, or `at` if none is known.
    pub(super) fn in_phase(&mut self, node: u32, to: Option<NodeId>, at: Time) -> Time {
        let Some(config) = self.contikimac().filter(|config| config.phase_lock) else { return at };
        let sleeper = &mut self.sleepers[node as usize];
        let expected =
            // A wake-up is of use if the guard time before it is still ahead.
            to.and_then(|to| sleeper.awake(to, at + ContikiMacConfig::GUARD, config.wake_interval));
        sleeper.is_locked = expected.is_some();
        expected.map_or(at, |expected| expected - ContikiMacConfig::GUARD)
    }

    /// Assesses the channel before a frame. Returns whether the channel has been quiet for longer than the gap between
    /// two repetitions of a frame. Always returns true without ContikiMAC.
    pub(super) fn is_quiet(&mut self, now: Time, node: u32) -> bool {
        let Some(config) = self.contikimac() else { return true };
        self.sleepers[node as usize].strobe_end = None;
        if self.air.is_asleep(node) {
            self.air.probe(node, config.cca * ASSESSMENTS);
        }
        self.air.is_quiet_since(node, now, config.cca_gap)
    }

    /// Records that a transmission of the present frame begins. The first transmission also sets the time at which
    /// repetitions end.
    pub(super) fn strobe(&mut self, now: Time, node: u32) {
        let Some(config) = self.contikimac() else { return };
        let sleeper = &mut self.sleepers[node as usize];
        let span = if sleeper.is_locked {
            ContikiMacConfig::LOCKED_STROBE
        } else {
            // The receiver wakes up once within an interval, at a time that this node does not know.
            config.wake_interval + config.listen
        };
        // The first repetition sets the end. Later ones must not move it.
        sleeper.strobe_end.get_or_insert(now + span);
        sleeper.strobe_start = now;
    }

    /// Plans the next repetition of a frame whose last transmission has ended. Returns false if no further repetition
    /// is due.
    pub(super) fn repeat<T>(&mut self, moment: &mut MediumContext<'_, T>, node: u32) -> bool {
        let Some(config) = self.contikimac() else { return false };
        let next = moment.now + config.frame_gap;
        // A repetition that begins at the end or later would find the receiver asleep again.
        let repeats = self.sleepers[node as usize].strobe_end.is_some_and(|end| next < end);
        if repeats {
            moment.events.push(next, MeshEvent::Send(node).encode());
        }
        repeats
    }

    /// Ends the repetitions of a frame, and lets the radio sleep. If the frame was acknowledged, remembers when its
    /// receiver wakes up. If not, forgets the receiver's wake-ups.
    pub(super) fn strobe_ends(&mut self, now: Time, node: u32, frame: Option<Frame>, was_acknowledged: bool) {
        if self.contikimac().is_some() {
            let sleeper = &mut self.sleepers[node as usize];
            sleeper.strobe_end = None;
            match frame.and_then(|frame| frame.to) {
                // The receiver woke up during the repetition before the one that it received.
                Some(to) if was_acknowledged => sleeper.learn(to, sleeper.strobe_start),
                // Another frame may have kept it awake when its phase was learnt. The next frame is repeated over a whole interval.
                Some(to) => sleeper.forget(to),
                None => {}
            }
        }
        self.fall_asleep(now, node);
    }
}

/// The number of channel assessments before a frame (contikimac.c, `CCA_COUNT_MAX_TX`).
const ASSESSMENTS: u64 = 6;

/// The time of the longest frame of IEEE 802.15.4 with its preamble.
const LONGEST_FRAME: Span = Span::from_micros(133 * 32);

impl Air {
    /// Returns whether the channel at a node has been quiet for `span` or longer at `now`.
    fn is_quiet_since(&self, node: u32, now: Time, span: Span) -> bool {
        !self.is_busy(node) && now - self.quiet_since(node) >= span
    }
}
