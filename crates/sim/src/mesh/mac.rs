//! The medium access of a node: its queues, its backoffs, and its memory of the frames that it has received.

use std::collections::VecDeque;

use smallvec::SmallVec;

use super::packets::PacketId;
use super::{Backoff, Frame, MacConfig};
use crate::{NodeId, Span, Stream};

/// The state of medium access of a node. In a large mesh this state is rarely in a fast cache, so each pointer costs
/// time. The struct therefore has room in itself for the usual numbers of queues and senders.
#[derive(Debug, Default)]
pub(super) struct Mac {
    pub(super) queues: SmallVec<[FrameQueue; 2]>,
    /// The queue whose first frame is being sent, from a clear channel until the acknowledgement has come or is
    /// overdue.
    pub(super) active: Option<u8>,
    /// An acknowledgement that is due or on the air.
    pub(super) acknowledging: Option<Frame>,
    /// The neighbour from which the node awaits an acknowledgement.
    pub(super) awaiting: Option<NodeId>,
    /// The number of transmissions begun, acknowledgements included. It is the key of the next transmission's random
    /// numbers.
    pub(super) sent: u32,
    /// The number of frames in all queues.
    frames: u16,
    sequence: u8,
    /// The number of backoffs drawn, which is the key of the next draw.
    draws: u32,
    /// The senders heard last, the latest first, each with the sequence number of its last frame.
    seen: SmallVec<[(NodeId, u8); 8]>,
}

/// Frames that wait for the same backoff.
#[derive(Debug, Default)]
pub(super) struct FrameQueue {
    pub(super) frames: VecDeque<Queued>,
    /// The number of times that this attempt has found the channel busy and backed off again.
    pub(super) backoffs: u8,
    /// The number of attempts that failed.
    pub(super) attempts: u8,
    /// The number of cells to let pass before the next attempt (TSCH).
    pub(super) cells: u8,
    pub(super) state: QueueState,
}

/// A frame that waits, and its datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    pub(super) frame: Frame,
    pub(super) packet: PacketId,
}

/// The state of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum QueueState {
    /// The queue waits for a frame.
    #[default]
    Idle,
    /// The queue waits for the end of a backoff, of a transmission, or of the wait for an acknowledgement.
    Busy,
    /// The queue waits for the radio, which another queue or an acknowledgement uses.
    Ready,
}

/// The largest number of queues of a node. The number of an event has no room for more queues.
pub(super) const MOST_QUEUES: u8 = 15;

/// The number of attempts after which a linear backoff grows no more.
const LINEAR_STEPS: u64 = 3;

impl Mac {
    /// Returns the number of frames that the node still has room for.
    pub(super) fn room(&self, config: &MacConfig) -> u16 {
        config.queue_frames.saturating_sub(self.frames)
    }

    /// Returns the number of frames in all queues.
    pub(super) fn queued(&self) -> usize {
        usize::from(self.frames)
    }

    /// Puts a frame into its queue. Returns the number of the queue, or `None` if the node has no room.
    pub(super) fn push(&mut self, config: &MacConfig, mut queued: Queued) -> Option<u8> {
        if self.room(config) == 0 {
            return None;
        }
        let is_its = |queue: &FrameQueue| match config.neighbour_queues {
            None => true,
            Some(_) => queue.frames.front().is_some_and(|first| first.frame.to == queued.frame.to),
        };
        let most = usize::from(config.neighbour_queues.unwrap_or(1).clamp(1, MOST_QUEUES));
        // A queue of the same neighbour comes first, to keep the frames in order. An empty or a new one is taken otherwise.
        let place = (self.queues.iter().position(is_its))
            .or_else(|| self.queues.iter().position(|queue| queue.frames.is_empty()))
            .or_else(|| {
                (self.queues.len() < most).then(|| {
                    self.queues.push(FrameQueue::default());
                    self.queues.len() - 1
                })
            })?;
        queued.frame.sequence = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
        self.queues[place].frames.push_back(queued);
        self.frames += 1;
        Some(place as u8)
    }

    /// Removes and returns the first frame of a queue.
    pub(super) fn pop(&mut self, queue: u8) -> Option<Queued> {
        let queue = self.queues.get_mut(usize::from(queue))?;
        let queued = queue.frames.pop_front()?;
        (queue.backoffs, queue.attempts) = (0, 0);
        self.frames -= 1;
        Some(queued)
    }

    /// Returns whether a frame is a copy: whether the last frame from its sender had the same sequence number.
    /// Remembers the frame as the sender's last frame. Older frames are not remembered, because a sender has only 256
    /// sequence numbers for all its neighbours.
    pub(super) fn knows(&mut self, config: &MacConfig, from: NodeId, sequence: u8) -> bool {
        let place = self.seen.iter().position(|(sender, _)| *sender == from);
        let known = place.is_some_and(|place| self.seen[place].1 == sequence);
        let most = usize::from(config.duplicates);
        let last = place.unwrap_or_else(|| {
            if self.seen.len() < most {
                self.seen.push((from, sequence));
            }
            self.seen.len().saturating_sub(1)
        });
        // The sender moves to the front. The one heard longest ago drops out of a full list.
        if let Some(senders) = self.seen.get_mut(..=last) {
            senders.rotate_right(1);
            senders[0] = (from, sequence);
        }
        known
    }

    /// Draws the number of cells that a queue lets pass: none before the first attempt, and then up to 2^BE − 1 (IEEE 802.15.4-2015
    /// §6.2.5.3).
    pub(super) fn cells(&mut self, config: &MacConfig, luck: Stream, node: u32, queue: u8) -> u8 {
        let attempts = self.queues.get(usize::from(queue)).map_or(0, |queue| queue.attempts);
        let Some(failed) = attempts.checked_sub(1) else { return 0 };
        // The number of cells has 8 bits.
        let exponent = config.min_be.saturating_add(failed).min(config.max_be).min(8);
        self.draws = self.draws.wrapping_add(1);
        luck.below(1 << exponent, u64::from(node), u64::from(self.draws), 0) as u8
    }

    /// Draws the time that a queue waits before it assesses the channel.
    pub(super) fn backoff(&mut self, config: &MacConfig, luck: Stream, node: u32, queue: u8) -> Span {
        if !config.csma {
            return Span::ZERO;
        }
        let Some(queue) = self.queues.get(usize::from(queue)) else { return Span::ZERO };
        // The exponent grows with each busy channel, up to macMaxBE.
        let exponent = config.min_be.saturating_add(queue.backoffs).min(config.max_be).min(31);
        let slots = (1u64 << exponent) - 1;
        let attempts = u64::from(queue.attempts);
        let is_first = queue.attempts == 0 && queue.backoffs == 0;
        let mut below = |bound: u64| {
            self.draws = self.draws.wrapping_add(1);
            luck.below(bound, u64::from(node), u64::from(self.draws), 0)
        };
        match config.backoff {
            Backoff::Units => config.backoff_unit * below(slots + 1),
            Backoff::Ticks => match slots * u64::from(config.backoff_ticks) {
                0 => Span::ZERO,
                bound => config.backoff_unit * below(bound),
            },
            Backoff::Linear if is_first => Span::ZERO,
            Backoff::Linear => {
                let most = config.backoff_unit * (attempts + 1).min(LINEAR_STEPS);
                config.backoff_unit + Span::from_micros(below(most.as_micros()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Luck;
    use crate::mesh::{FrameKind, Leg};

    fn frame(to: u32) -> Queued {
        let frame = Frame {
            kind: FrameKind::Data,
            from: NodeId(0),
            to: Some(NodeId(to)),
            sequence: 0,
            bytes: 100,
            fragment: 0,
            fragments: 1,
            tag: 0,
            leg: Leg::default(),
        };
        Queued { frame, packet: PacketId(0) }
    }

    #[test]
    fn the_standard_mac_has_one_queue_and_contiki_one_for_each_of_two_neighbours() {
        let mut mac = Mac::default();
        let push = |mac: &mut Mac, config, to| mac.push(config, frame(to));
        assert_eq!([1, 2, 3].map(|to| push(&mut mac, &MacConfig::STANDARD, to)), [Some(0); 3]);
        let mut mac = Mac::default();
        let places = [1, 2, 3, 1].map(|to| push(&mut mac, &MacConfig::CONTIKI_3, to));
        assert_eq!(places, [Some(0), Some(1), None, Some(0)]);
        assert_eq!(mac.pop(1).map(|queued| queued.frame.to), Some(Some(NodeId(2))));
        assert_eq!(push(&mut mac, &MacConfig::CONTIKI_3, 3), Some(1), "an empty queue is anyone's");
        assert_eq!(mac.queued(), 3);
    }

    #[test]
    fn a_node_with_full_queues_takes_no_frame_for_any_neighbour() {
        let config = MacConfig { queue_frames: 3, ..MacConfig::CONTIKI_3 };
        let mut mac = Mac::default();
        assert_eq!([1, 1, 2, 2].map(|to| mac.push(&config, frame(to)).is_some()), [true, true, true, false]);
        assert_eq!(mac.room(&config), 0);
    }

    #[test]
    fn mac_sequence_numbers_distinguish_new_frames_from_copies() {
        let mut mac = Mac::default();
        mac.push(&MacConfig::STANDARD, frame(1));
        mac.push(&MacConfig::STANDARD, frame(1));
        assert_eq!([0, 1].map(|place| mac.queues[0].frames[place].frame.sequence), [0, 1]);
        let config = MacConfig { duplicates: 2, ..MacConfig::STANDARD };
        let mut knows = |from, sequence| mac.knows(&config, NodeId(from), sequence);
        assert!(!knows(1, 7) && knows(1, 7) && !knows(2, 7) && knows(1, 7));
        assert!(!knows(3, 7) && knows(1, 7), "two senders");
        assert!(!knows(2, 7), "who was heard longest ago is forgotten");
        assert!(!knows(1, 8) && !knows(1, 7), "of each sender the last frame");
    }

    /// Returns the least and the longest backoff of many, in microseconds.
    fn bounds(config: &MacConfig, backoffs: u8, attempts: u8) -> (u64, u64) {
        let luck = Luck::new(1).stream("backoff");
        let mut mac = Mac::default();
        mac.push(config, frame(1));
        (mac.queues[0].backoffs, mac.queues[0].attempts) = (backoffs, attempts);
        let draws: Vec<_> = (0..20_000).map(|_| mac.backoff(config, luck, 0, 0).as_micros()).collect();
        (*draws.iter().min().unwrap(), *draws.iter().max().unwrap())
    }

    #[test]
    fn csma_backoffs_are_drawn_as_in_each_operating_system() {
        assert_eq!(bounds(&MacConfig::STANDARD, 0, 0), (0, 7 * 320));
        assert_eq!(bounds(&MacConfig::STANDARD, 4, 0), (0, 31 * 320), "macMaxBE");
        assert_eq!(bounds(&MacConfig::CONTIKI_3, 0, 0), (0, 0), "2^0 − 1 ticks");
        assert_eq!(bounds(&MacConfig::CONTIKI_3, 5, 0), (0, 14_000), "0 to 14 of 15 ticks");
        assert_eq!(bounds(&MacConfig::CONTIKI_NG, 0, 0), (0, 41_000), "0 to 41 of 42 ticks");
        assert_eq!(bounds(&MacConfig::CONTIKI_2, 0, 0), (0, 0), "at once");
        let (least, most) = bounds(&MacConfig::CONTIKI_2, 0, 1);
        assert!(least < 31_300 && (93_600..93_750).contains(&most), "{least} {most}");
        assert_eq!(bounds(&MacConfig::NONE, 3, 0), (0, 0));
    }
}
