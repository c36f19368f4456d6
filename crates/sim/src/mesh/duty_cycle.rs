//! Radios that sleep: the schedules by which they wake up, and their state.

use smallvec::SmallVec;

use crate::{NodeId, Span, Time};

/// The times at which radios are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DutyCycle {
    /// Radios are always on.
    None(Awake),
    /// Receivers wake up at regular intervals, and senders repeat a frame until its receiver is awake.
    ContikiMac(ContikiMacConfig),
    /// All nodes are awake in the same cells of a slotframe.
    Tsch(TschConfig),
}

/// Radios that are always on: there is nothing to configure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Awake {}

impl DutyCycle {
    /// Radios are always on.
    pub const NONE: Self = Self::None(Awake {});

    /// Returns whether radios sleep.
    pub const fn sleeps(&self) -> bool {
        !matches!(self, Self::None(_))
    }
}

/// ContikiMAC (Dunkels 2011, SICS report T2011:13).
///
/// Not modelled: bursts of frames within one wake-up, drifting clocks, and a root that is always on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContikiMacConfig {
    /// The time from one wake-up of a receiver to the next; at least 20 ms.
    pub wake_interval: Span,
    /// The time that the radio is on for an assessment of the channel, including the time in which the radio starts.
    pub cca: Span,
    /// The time between the two assessments of a wake-up, t_c.
    pub cca_gap: Span,
    /// The time from a frame to its repetition, t_i; it must exceed the time until an acknowledgement begins, and be below
    /// `cca_gap`.
    pub frame_gap: Span,
    /// The time that a node which noticed a transmission waits for a frame.
    pub listen: Span,
    /// True if a sender remembers when its neighbours wake up, and begins shortly before.
    pub phase_lock: bool,
}

impl ContikiMacConfig {
    /// Wake-ups at 8 Hz, t_i = 0.4 ms and t_c = 0.5 ms (Dunkels 2011 §§2.2, 3). An assessment is 12 symbols in which a
    /// CC2420 starts and 8 in which it measures. The wait of 12.5 ms comes from Contiki
    /// (core/net/mac/contikimac/contikimac.c).
    pub const DUNKELS_2011: Self = Self {
        wake_interval: Span::from_millis(125),
        cca: Span::from_micros(320),
        cca_gap: Span::from_micros(500),
        frame_gap: Span::from_micros(400),
        listen: Span::from_micros(12_500),
        phase_lock: true,
    };

    /// The time before an expected wake-up at which a sender with phase lock begins: a frame of the largest size and more.
    pub(super) const GUARD: Span = Span::from_millis(6);
    /// The time for which a sender with phase lock repeats a frame (contikimac.c, `MAX_PHASE_STROBE_TIME`).
    pub(super) const LOCKED_STROBE: Span = Span::from_micros(16_667);
}

/// The slots of TSCH (IEEE 802.15.4-2015 §6.2.6) with the minimal schedule of RFC 8180: one shared cell in a slotframe, for all
/// frames, with slotted Aloha.
///
/// Not modelled: joining, drifting clocks and their correction, enhanced beacons, and several channels, because one
/// cell needs only one channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TschConfig {
    /// The length of a slot; at least 10 ms.
    pub slot: Span,
    /// The number of slots in a slotframe.
    pub slotframe: u16,
    /// macTsTxOffset: the time from the beginning of a slot to the first bit of its frame.
    pub tx_offset: Span,
    /// Half of macTsRxWait: a receiver listens for this time before and after the moment at which a frame should begin.
    pub guard: Span,
}

impl TschConfig {
    /// The slotframe of 101 slots of RFC 8180 §4.1, with the timing of IEEE 802.15.4-2015 for slots of 10 ms.
    pub const RFC_8180: Self = Self {
        slot: Span::from_millis(10),
        slotframe: 101,
        tx_offset: Span::from_micros(2_120),
        guard: Span::from_micros(1_100),
    };
}

/// The state of a node that uses ContikiMAC.
#[derive(Clone, Debug, Default)]
pub(super) struct Sleeper {
    /// The end of the repetitions of the present frame.
    pub(super) strobe_end: Option<Time>,
    /// The beginning of the last repetition.
    pub(super) strobe_start: Time,
    /// True if the present frame is sent shortly before its receiver is expected to wake up.
    pub(super) is_locked: bool,
    /// The neighbours whose wake-ups are known, each with a time at which it was awake. The neighbour learned last
    /// comes first.
    phases: SmallVec<[(NodeId, Time); 4]>,
}

/// The number of neighbours whose phase is remembered.
const PHASES: usize = 30;

impl Sleeper {
    pub(super) fn learn(&mut self, node: NodeId, awake: Time) {
        self.forget(node);
        // The neighbour learned longest ago is the last, and makes room.
        self.phases.truncate(PHASES - 1);
        self.phases.insert(0, (node, awake));
    }

    pub(super) fn forget(&mut self, node: NodeId) {
        self.phases.retain(|(known, _)| *known != node);
    }

    /// Returns the next time from `from` on at which a neighbour is expected to be awake, or `None` if its wake-ups are
    /// unknown.
    pub(super) fn awake(&self, node: NodeId, from: Time, interval: Span) -> Option<Time> {
        let &(_, phase) = self.phases.iter().find(|(known, _)| *known == node)?;
        // Clocks do not drift here, so a neighbour is awake at whole intervals after its phase.
        let since = (from - phase).as_nanos();
        Some(phase + interval * since.div_ceil(interval.as_nanos().max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phase_lock_expects_a_neighbour_to_wake_after_whole_intervals() {
        let (mut sleeper, interval) = (Sleeper::default(), Span::from_millis(125));
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        assert_eq!(sleeper.awake(NodeId(1), at(0), interval), None);
        sleeper.learn(NodeId(1), at(30));
        assert_eq!(sleeper.awake(NodeId(1), at(31), interval), Some(at(155)));
        assert_eq!(sleeper.awake(NodeId(1), at(280), interval), Some(at(280)));
        (2..100).for_each(|node| sleeper.learn(NodeId(node), at(0)));
        assert_eq!(sleeper.phases.len(), PHASES);
        assert_eq!(sleeper.awake(NodeId(1), at(31), interval), None);
    }
}
