//! The air between the nodes: the state of each radio, and its effect on the other radios.

use smallvec::SmallVec;

use super::Delivery;
use super::links::{RadioLink, RadioLinks};
use crate::{Position, Span, Stream, Time};

/// The time that a radio spent in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RadioTimes {
    /// Time of sending.
    pub transmit: Span,
    /// Time of receiving frames, including frames for other nodes.
    pub receive: Span,
    /// Time of listening without a frame.
    pub listen: Span,
    /// Time of being switched off.
    pub sleep: Span,
}

/// The state of a radio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RadioState {
    Off,
    /// The radio is switched off between wake-ups.
    Asleep,
    Listening,
    /// The radio has found the beginning of a frame. `spoiled` is true if another transmission has destroyed it since.
    Receiving {
        from: u32,
        power: i16,
        spoiled: bool,
    },
    Sending,
}

/// The radio of a node.
#[derive(Debug)]
struct Radio {
    phase: RadioState,
    since: Time,
    times: RadioTimes,
    /// The nodes in range or in interference range that are sending, and their received power in hundredths of a dBm.
    signals: SmallVec<[(u32, i16); 4]>,
    /// The number of signals that clear channel assessment notices.
    sensed: u16,
    /// The end of the last signal that reached this radio.
    quiet_since: Time,
    /// The time that the radio was switched on for assessments of the channel while it slept.
    probed: Span,
}

/// The result of a transmission at a node that it reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReceptionOutcome {
    /// The frame was received.
    Received,
    /// Another transmission destroyed the frame, or was already on the air when the frame began.
    Collided,
    /// The link lost the frame, or the radio was off, sending, or receiving another frame.
    Missed,
}

/// A node that the last frame of a sender reached, and whether the node's radio caught the beginning of the frame.
#[derive(Clone, Copy, Debug)]
struct Reached {
    to: u32,
    sensed: bool,
    /// True if the node can receive frames of the sender; false if the frames only disturb the node.
    in_range: bool,
    begun: ReceptionOutcome,
}

/// All radios.
#[derive(Debug)]
pub(super) struct Air {
    links: RadioLinks,
    capture: i16,
    /// The share of frames that go on the air. The other frames fail at their sender.
    success_ratio_tx: f64,
    /// The share of frames that a link delivers.
    delivery: Delivery,
    radios: Vec<Radio>,
    /// For each sender, the nodes that its last frame reached. The list is made at the beginning of the frame, because
    /// nodes may move while the frame is on the air.
    reached: Vec<Vec<Reached>>,
    /// The random numbers of links. The key is the sender, its count of frames, and the receiver.
    luck: Stream,
}

impl Air {
    pub(super) fn new(links: RadioLinks, delivery: Delivery, luck: Stream) -> Self {
        let nodes = links.nodes();
        let radio = || Radio {
            phase: RadioState::Off,
            since: Time::ZERO,
            times: RadioTimes::default(),
            signals: SmallVec::new(),
            sensed: 0,
            quiet_since: Time::ZERO,
            probed: Span::ZERO,
        };
        Self {
            capture: links.capture(),
            success_ratio_tx: links.success_ratio_tx(),
            links,
            delivery,
            radios: std::iter::repeat_with(radio).take(nodes).collect(),
            reached: vec![Vec::new(); nodes],
            luck,
        }
    }

    /// Computes all links again, after nodes have moved.
    pub(super) fn survey(&mut self, positions: &[Position]) {
        self.links.survey(positions);
    }

    pub(super) fn links(&self) -> &RadioLinks {
        &self.links
    }

    pub(super) fn switch_on(&mut self, now: Time, node: u32) {
        self.radios[node as usize].enter(now, RadioState::Listening);
    }

    pub(super) fn is_on(&self, node: u32) -> bool {
        self.radios[node as usize].phase != RadioState::Off
    }

    /// Lets a radio sleep if it is listening and receives no frame. Does nothing in any other state.
    pub(super) fn sleep(&mut self, now: Time, node: u32) {
        let radio = &mut self.radios[node as usize];
        if radio.phase == RadioState::Listening {
            radio.enter(now, RadioState::Asleep);
        }
    }

    /// Switches a sleeping radio on. Does nothing if the radio does not sleep.
    pub(super) fn wake(&mut self, now: Time, node: u32) {
        let radio = &mut self.radios[node as usize];
        if radio.phase == RadioState::Asleep {
            radio.enter(now, RadioState::Listening);
        }
    }

    /// Adds `span` to the time that a sleeping radio was on to assess the channel.
    pub(super) fn probe(&mut self, node: u32, span: Span) {
        self.radios[node as usize].probed += span;
    }

    pub(super) fn is_asleep(&self, node: u32) -> bool {
        self.radios[node as usize].phase == RadioState::Asleep
    }

    pub(super) fn is_receiving(&self, node: u32) -> bool {
        matches!(self.radios[node as usize].phase, RadioState::Receiving { .. })
    }

    /// Returns the end of the last signal that reached a node.
    pub(super) fn quiet_since(&self, node: u32) -> Time {
        self.radios[node as usize].quiet_since
    }

    /// Returns whether clear channel assessment at a node finds the channel busy.
    pub(super) fn is_busy(&self, node: u32) -> bool {
        let radio = &self.radios[node as usize];
        // A link may deliver frames and yet be too weak to be sensed.
        radio.sensed > 0 || matches!(radio.phase, RadioState::Receiving { .. })
    }

    /// Returns whether clear channel assessment at a node notices a transmission by its power. A weaker frame does not
    /// count, even if the node is receiving it.
    pub(super) fn is_sensed(&self, node: u32) -> bool {
        self.radios[node as usize].sensed > 0
    }

    /// Returns the time that a node's radio spent in each state up to `now`.
    pub(super) fn times(&self, now: Time, node: u32) -> RadioTimes {
        let radio = &self.radios[node as usize];
        let mut times = radio.times;
        times.add(radio.phase, (now - radio.since).as_nanos());
        // The radio was on for its assessments although it counts as asleep.
        let probed = Span::from_nanos(radio.probed.as_nanos().min(times.sleep.as_nanos()));
        (times.listen, times.sleep) = (times.listen + probed, times.sleep - probed);
        times
    }

    /// Begins frame number `count` of `node`. If the node was receiving a frame, that frame is lost. A share of frames
    /// fails at the sender and reaches no node.
    pub(super) fn begin(&mut self, now: Time, node: u32, count: u32) {
        let Self { links, capture, success_ratio_tx, delivery, radios, reached, luck } = self;
        radios[node as usize].enter(now, RadioState::Sending);
        let reached = &mut reached[node as usize];
        reached.clear();
        // Cooja's medium draws this once for each frame, before any receiver is looked at.
        if *success_ratio_tx < 1.0
            && luck.unit(u64::from(node), u64::from(count), NO_RECEIVER) >= *success_ratio_tx
        {
            return;
        }
        for &link in links.of(node) {
            let radio = &mut radios[link.to as usize];
            // Frames that were on the air before this one destroy it, unless it is stronger by `capture`.
            let overlapped =
                radio.signals.iter().any(|&(_, power)| power.saturating_add(*capture) > link.power);
            // The frame disturbs a node even if that node cannot receive it.
            radio.signals.push((node, link.power));
            radio.sensed += u16::from(link.sensed);
            let begun = match &mut radio.phase {
                RadioState::Receiving { power, spoiled, .. } => {
                    // The new frame spoils the one that is being received, unless it is weaker by `capture`.
                    *spoiled |= link.power.saturating_add(*capture) > *power;
                    if overlapped { ReceptionOutcome::Collided } else { ReceptionOutcome::Missed }
                }
                RadioState::Listening if overlapped => ReceptionOutcome::Collided,
                RadioState::Listening
                    if link.delivery > 0.0 && delivers(delivery, &link, *luck, node, count) =>
                {
                    let phase = RadioState::Receiving { from: node, power: link.power, spoiled: false };
                    radio.enter(now, phase);
                    ReceptionOutcome::Received
                }
                RadioState::Listening | RadioState::Sending | RadioState::Off | RadioState::Asleep => {
                    ReceptionOutcome::Missed
                }
            };
            let RadioLink { to, sensed, delivery, .. } = link;
            reached.push(Reached { to, sensed, in_range: delivery > 0.0, begun });
        }
    }

    /// Returns the nodes that notice the beginning of the last frame of `node` (if `begins` is true) or its end. The
    /// nodes that started to receive the frame notice its beginning. All nodes that the frame reached and that are not
    /// sending notice its end.
    pub(super) fn woken(&self, node: u32, begins: bool) -> impl Iterator<Item = u32> {
        let notices = move |reached: &&Reached| {
            let phase = self.radios[reached.to as usize].phase;
            if begins { reached.begun == ReceptionOutcome::Received } else { phase != RadioState::Sending }
        };
        self.reached[node as usize].iter().filter(notices).map(|reached| reached.to)
    }

    /// Ends the frame of `node`. Fills `fates` with each node in receiving range and the outcome of the frame there.
    pub(super) fn end(&mut self, now: Time, node: u32, fates: &mut Vec<(u32, ReceptionOutcome)>) {
        let Self { radios, reached, .. } = self;
        radios[node as usize].enter(now, RadioState::Listening);
        fates.clear();
        for &Reached { to, sensed, in_range, begun } in &reached[node as usize] {
            let radio = &mut radios[to as usize];
            // The signal may be missing if the node was moved out of reach while the frame was on the air.
            if let Some(place) = radio.signals.iter().position(|&(from, _)| from == node) {
                radio.signals.swap_remove(place);
                radio.sensed -= u16::from(sensed);
                radio.quiet_since = now;
            }
            let fate = match radio.phase {
                RadioState::Receiving { from, spoiled, .. } if from == node => {
                    radio.enter(now, RadioState::Listening);
                    if spoiled { ReceptionOutcome::Collided } else { ReceptionOutcome::Received }
                }
                // The frame began well, and then its receiver began to send.
                _ if begun == ReceptionOutcome::Received => ReceptionOutcome::Missed,
                _ => begun,
            };
            if in_range {
                // Nodes that are only disturbed have no result: the frame could not have arrived there.
                fates.push((to, fate));
            }
        }
    }
}

/// The number that takes the place of the receiver in the key of a random number that depends on the sender alone.
const NO_RECEIVER: u64 = u64::MAX;

/// Returns whether a link delivers a frame that nothing disturbs.
fn delivers(delivery: &Delivery, link: &RadioLink, luck: Stream, from: u32, count: u32) -> bool {
    if delivery.is_all() && link.delivery >= 1.0 {
        return true;
    }
    // The two halves of one draw are independent: one draws the share for this frame, the other whether it arrives.
    let bits = luck.bits(u64::from(from), u64::from(count), u64::from(link.to));
    let unit = |bits: u32| f64::from(bits) / 4_294_967_296.0;
    let share = delivery.at(unit((bits >> 32) as u32)) * f64::from(link.delivery);
    unit(bits as u32) < share
}

impl Radio {
    fn enter(&mut self, now: Time, phase: RadioState) {
        self.times.add(self.phase, now.as_nanos() - self.since.as_nanos());
        (self.phase, self.since) = (phase, now);
    }
}

impl RadioTimes {
    fn add(&mut self, phase: RadioState, ns: u64) {
        let time = match phase {
            RadioState::Off | RadioState::Asleep => &mut self.sleep,
            RadioState::Listening => &mut self.listen,
            RadioState::Receiving { .. } => &mut self.receive,
            RadioState::Sending => &mut self.transmit,
        };
        // A frame adds up the times of all radios in reach: to saturate here costs 4 % of the instructions of a run.
        *time = Span::from_nanos(time.as_nanos() + ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Luck;
    use crate::mesh::{LogDistance, Propagation, UnitDisk};

    const DISK: Propagation = Propagation::UnitDisk(UnitDisk { sense_m: 9.0, ..UnitDisk::NARROW });

    /// Returns nodes in a row, 10 m apart.
    fn row(nodes: u32, propagation: Propagation, delivery: Delivery) -> Air {
        let positions: Vec<_> = (0..nodes).map(|n| Position { x: 10.0 * f64::from(n), y: 0.0 }).collect();
        let links = RadioLinks::new(&positions, propagation, Luck::new(1).stream("shadowing"));
        let mut air = Air::new(links, delivery, Luck::new(1).stream("air"));
        (0..nodes).for_each(|node| air.switch_on(Time::ZERO, node));
        air
    }

    fn at(us: u64) -> Time {
        Time::from_nanos(us * 1_000)
    }

    fn end(air: &mut Air, us: u64, node: u32) -> Vec<(u32, ReceptionOutcome)> {
        let mut fates = Vec::new();
        air.end(at(us), node, &mut fates);
        fates
    }

    #[test]
    fn nodes_in_transmission_range_receive_and_nodes_in_interference_range_do_not() {
        let mut air = row(4, DISK, Delivery::ALL);
        air.begin(at(0), 1, 0);
        assert!(air.is_busy(0), "a frame that is being received is noticed");
        assert!(!air.is_busy(3), "the ring is not");
        assert_eq!(end(&mut air, 10, 1), [(0, ReceptionOutcome::Received), (2, ReceptionOutcome::Received)]);
        assert!(!air.is_busy(0));
    }

    #[test]
    fn overlapping_frames_within_interference_range_collide() {
        let mut air = row(5, DISK, Delivery::ALL);
        // 0 → 1, and 3, which does not hear 0, disturbs 1.
        air.begin(at(0), 0, 0);
        air.begin(at(5), 3, 0);
        assert_eq!(end(&mut air, 10, 0), [(1, ReceptionOutcome::Collided)]);
        assert_eq!(end(&mut air, 15, 3), [(2, ReceptionOutcome::Collided), (4, ReceptionOutcome::Received)]);
        assert!((0..5).all(|node| !air.is_busy(node)));
    }

    #[test]
    fn a_radio_under_interference_misses_the_start_of_a_frame() {
        let mut air = row(4, DISK, Delivery::ALL);
        air.begin(at(0), 3, 0);
        air.begin(at(5), 0, 0);
        assert_eq!(end(&mut air, 6, 3), [(2, ReceptionOutcome::Collided)]);
        assert_eq!(
            end(&mut air, 10, 0),
            [(1, ReceptionOutcome::Collided)],
            "the end was clear, the beginning was not"
        );
    }

    #[test]
    fn a_node_receives_nothing_while_it_sends() {
        let mut air = row(3, DISK, Delivery::ALL);
        air.begin(at(0), 0, 0);
        air.begin(at(5), 1, 0);
        assert_eq!(end(&mut air, 10, 0), [(1, ReceptionOutcome::Missed)], "a frame in reception is lost");
        assert_eq!(end(&mut air, 12, 1), [(0, ReceptionOutcome::Missed), (2, ReceptionOutcome::Collided)]);
        let times = air.times(at(20), 1);
        let [transmit, receive, listen] = [7, 5, 8].map(Span::from_micros);
        assert_eq!(times, RadioTimes { transmit, receive, listen, sleep: Span::ZERO });
    }

    #[test]
    fn a_link_delivers_its_share_of_frames_with_an_independent_draw_for_each() {
        let mut air = row(2, DISK, Delivery::new(vec![0.75, 1.0]).unwrap());
        let mut received = 0;
        for count in 0..10_000 {
            air.begin(at(0), 0, count);
            received += u32::from(end(&mut air, 0, 0) == [(1, ReceptionOutcome::Received)]);
        }
        // 87.5 % ± five standard deviations.
        assert!((8_580..8_920).contains(&received), "{received}");
    }

    #[test]
    fn a_frame_that_fails_at_its_sender_is_neither_received_nor_interferes() {
        let disk = UnitDisk { success_ratio_tx: 0.5, success_ratio_rx: 0.5, ..UnitDisk::NARROW };
        let mut air = row(4, Propagation::UnitDisk(disk), Delivery::ALL);
        let (mut sent, mut received, mut both) = (0, 0, 0);
        for count in 0..10_000 {
            air.begin(at(0), 1, count);
            // Node 3 hears nothing of a frame of node 1, but is disturbed by it.
            sent += u32::from(!air.radios[3].signals.is_empty());
            let got = |node: usize| u32::from(matches!(air.radios[node].phase, RadioState::Receiving { .. }));
            received += got(0) + got(2);
            both += got(0) * got(2);
            end(&mut air, 0, 1);
        }
        // Five standard deviations around a half, twice a quarter for two receivers, and an eighth for both.
        assert!((4_750..5_250).contains(&sent), "{sent}");
        assert!((4_640..5_360).contains(&received), "{received}");
        assert!((1_080..1_420).contains(&both), "{both}");
    }

    #[test]
    fn a_much_stronger_frame_survives_a_collision_if_capture_is_modelled() {
        let model = LogDistance { shadowing_db: 0.0, sense_dbm: -95.0, ..LogDistance::CC2420 };
        let propagation = Propagation::LogDistance(model);
        let mut air = row(4, propagation, Delivery::ALL);
        air.begin(at(0), 0, 0);
        air.begin(at(1), 3, 0);
        assert_eq!(end(&mut air, 10, 0)[0], (1, ReceptionOutcome::Received), "10 m beside 20 m: 9 dB");
        assert_eq!(end(&mut air, 10, 3)[1], (1, ReceptionOutcome::Collided));
    }
}
