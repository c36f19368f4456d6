//! The exchange and transmission that a packet of a real host belongs to: the *mark* of the packet.
//!
//! The mark is the key of the random numbers that the network draws for a packet. So two runs with the same seed have
//! the same losses and delays at the same step. This also holds for a simulation and an emulation, if their clients
//! arrive in the same sequence.

use coapace_sim::Mark;

/// A direction through the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EmulationDirection {
    /// From a client to the server.
    Up,
    /// From the server to a client.
    Down,
}

/// The role of a packet in an exchange, read from its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PacketRole {
    /// A confirmable or non-confirmable message (RFC 7252 §4.2, §4.3), by its Message ID, which its copies share.
    Message(u32),
    /// An acknowledgement or a Reset, by the Message ID of the message that it answers.
    Reply(u32),
    /// Anything else.
    Other,
}

impl PacketRole {
    /// Reads the role of a packet from the header of its CoAP message (RFC 7252 §3). `ports` becomes the upper 16 bits
    /// of the key. It distinguishes conversations of the same host that have equal Message IDs.
    pub(super) fn read(datagram: &[u8], ports: u16) -> Self {
        let Some(&[first, _, high, low]) = datagram.first_chunk() else { return Self::Other };
        // Another version, or a token length that RFC 7252 §3 reserves.
        if first >> 6 != 1 || first & 0xf > 8 {
            return Self::Other;
        }
        let key = u32::from(ports) << 16 | u32::from(u16::from_be_bytes([high, low]));
        // The type is 0 for CON, 1 for NON, 2 for ACK and 3 for RST (RFC 7252 §3).
        if first >> 4 & 3 < 2 { Self::Message(key) } else { Self::Reply(key) }
    }
}

/// The exchanges of one source in both directions, from which the marks of its packets are derived.
#[derive(Debug, Default)]
pub(super) struct Steps {
    up: DirectionSteps,
    down: DirectionSteps,
}

#[derive(Debug, Default)]
struct DirectionSteps {
    /// The number of the next exchange.
    next: u32,
    /// The marks of the last messages that were sent, by Message ID.
    sent: RecentMarks,
    /// The marks of the last messages that arrived, by Message ID.
    arrived: RecentMarks,
}

/// The transmission number of the first transmission of a message that a server begins, as in the simulator. A reply
/// has the mark of the message that it answers.
const SERVERS_OWN: u8 = 128;

impl Steps {
    /// Returns the mark (exchange and transmission) of a packet that enters the network.
    pub(super) fn enter(&mut self, way: EmulationDirection, content: PacketRole) -> Mark {
        let (half, other, first) = match way {
            EmulationDirection::Up => (&mut self.up, &mut self.down, 0),
            EmulationDirection::Down => (&mut self.down, &mut self.up, SERVERS_OWN),
        };
        let known = match content {
            PacketRole::Message(id) => half.sent.get(id),
            PacketRole::Reply(id) => other.arrived.get(id),
            PacketRole::Other => None,
        };
        let mark = match (content, known) {
            // Clients' numbers stop below SERVERS_OWN, servers' numbers at 255: neither reaches the other's keys.
            (PacketRole::Message(_), Some(Mark { exchange, transmission })) => {
                Mark { exchange, transmission: transmission.saturating_add(1).min(first + (SERVERS_OWN - 1)) }
            }
            (_, Some(mark)) => return mark,
            (_, None) => {
                let exchange = half.next;
                half.next = exchange.wrapping_add(1);
                Mark { exchange, transmission: first }
            }
        };
        if let PacketRole::Message(id) = content {
            half.sent.put(id, mark);
        }
        mark
    }

    /// Records the mark of a packet that arrived, because the reply to it gets the same mark.
    pub(super) fn arrive(&mut self, way: EmulationDirection, content: PacketRole, mark: Mark) {
        if let PacketRole::Message(id) = content {
            let half = if way == EmulationDirection::Up { &mut self.up } else { &mut self.down };
            half.arrived.put(id, mark);
        }
    }

    /// Forgets the messages of a source that lost its slot. The numbers of exchanges continue, so that the next source
    /// in the slot has random numbers of its own.
    pub(super) fn forget(&mut self) {
        for half in [&mut self.up, &mut self.down] {
            *half = DirectionSteps { next: half.next, ..DirectionSteps::default() };
        }
    }
}

/// The marks of the last [`REMEMBERED`] messages, by their Message IDs. A new mark replaces the oldest one.
#[derive(Debug, Default)]
struct RecentMarks {
    marks: Vec<(u32, Mark)>,
    /// The index of the oldest mark, once all slots are taken.
    oldest: u8,
}

/// The number of messages that a [`RecentMarks`] remembers.
const REMEMBERED: usize = 16;

impl RecentMarks {
    fn get(&self, id: u32) -> Option<Mark> {
        self.marks.iter().find(|(known, _)| *known == id).map(|(_, mark)| *mark)
    }

    fn put(&mut self, id: u32, mark: Mark) {
        // A copy replaces the mark in its slot, so that it does not push out another message.
        if let Some(known) = self.marks.iter_mut().find(|(known, _)| *known == id) {
            known.1 = mark;
        } else if self.marks.len() < REMEMBERED {
            self.marks.push((id, mark));
        } else {
            self.marks[usize::from(self.oldest)] = (id, mark);
            self.oldest = (self.oldest + 1) % REMEMBERED as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn mark(exchange: u32, transmission: u8) -> Mark {
        Mark { exchange, transmission }
    }

    #[test]
    fn the_emulator_counts_a_copy_as_the_next_transmission_and_a_new_message_id_as_the_next_exchange() {
        let mut steps = Steps::default();
        let ids = [7, 7, 8, 7, 9, 8];
        let marks = ids.map(|id| steps.enter(EmulationDirection::Up, PacketRole::Message(id)));
        assert_eq!(marks, [mark(0, 0), mark(0, 1), mark(1, 0), mark(0, 2), mark(2, 0), mark(1, 1)]);
    }

    #[test]
    fn the_loss_of_a_reply_depends_on_the_transmission_it_answers() {
        let mut steps = Steps::default();
        steps.enter(EmulationDirection::Up, PacketRole::Message(7));
        let second = steps.enter(EmulationDirection::Up, PacketRole::Message(7));
        steps.arrive(EmulationDirection::Up, PacketRole::Message(7), second);
        let lost = steps.enter(EmulationDirection::Up, PacketRole::Message(7));
        assert_eq!(lost, mark(0, 2));
        assert_eq!(steps.enter(EmulationDirection::Down, PacketRole::Reply(7)), mark(0, 1));
        assert_eq!(
            steps.enter(EmulationDirection::Down, PacketRole::Reply(6)),
            mark(0, 128),
            "it answers nothing that is known"
        );
        assert_eq!(
            steps.enter(EmulationDirection::Down, PacketRole::Message(7)),
            mark(1, 128),
            "the server's own Message ID"
        );
        steps.arrive(EmulationDirection::Down, PacketRole::Message(7), mark(1, 128));
        assert_eq!(steps.enter(EmulationDirection::Up, PacketRole::Reply(7)), mark(1, 128));
    }

    #[test]
    fn any_number_of_copies_and_exchanges_takes_bounded_memory_in_the_emulator() {
        let mut steps = Steps::default();
        let last = (0..1_000).map(|_| steps.enter(EmulationDirection::Up, PacketRole::Message(1))).last();
        assert_eq!(last, Some(mark(0, 127)));
        let last = (0..1_000).map(|_| steps.enter(EmulationDirection::Down, PacketRole::Message(1))).last();
        assert_eq!(last, Some(mark(0, 255)));
        for id in 2..100_000 {
            steps.enter(EmulationDirection::Up, PacketRole::Message(id));
        }
        assert_eq!(steps.up.sent.marks.len(), REMEMBERED);
        assert_eq!(steps.enter(EmulationDirection::Up, PacketRole::Message(99_999)).transmission, 1);
        assert_eq!(
            steps.enter(EmulationDirection::Up, PacketRole::Message(99_000)).transmission,
            0,
            "it is forgotten"
        );
    }

    #[test]
    fn datagrams_that_are_not_coap_are_counted_by_the_emulator() {
        let mut steps = Steps::default();
        // An empty datagram, a header that is cut off, DTLS, a token length of 9.
        for datagram in [&b""[..], b"\x40\x01\x00", b"\x16\xfe\xfd\x00", b"\x49\x01\x00\x01"] {
            assert_eq!(PacketRole::read(datagram, 0), PacketRole::Other);
        }
        assert_eq!(PacketRole::read(b"\x41\x01\x12\x34\x00", 0), PacketRole::Message(0x1234));
        assert_eq!(PacketRole::read(b"\x50\x01\x12\x34", 0xab), PacketRole::Message(0x00ab_1234));
        assert_eq!(PacketRole::read(b"\x60\x45\x12\x34", 0), PacketRole::Reply(0x1234));
        assert_eq!(PacketRole::read(b"\x70\x00\x12\x34", 0), PacketRole::Reply(0x1234));
        let marks = [0; 3].map(|_| steps.enter(EmulationDirection::Up, PacketRole::Other));
        assert_eq!(marks, [mark(0, 0), mark(1, 0), mark(2, 0)]);
    }

    #[test]
    fn a_new_source_at_the_same_place_has_its_own_losses() {
        let mut steps = Steps::default();
        steps.enter(EmulationDirection::Up, PacketRole::Message(1));
        steps.forget();
        assert_eq!(steps.enter(EmulationDirection::Up, PacketRole::Message(1)), mark(1, 0));
    }
}
