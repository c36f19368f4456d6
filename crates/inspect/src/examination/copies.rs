//! The transmissions of one message.

use std::time::Duration;

use coapace_control::Marking;
use coapace_proto::Message;

use super::packet::Packet;
use crate::EXCHANGE_LIFETIME_S;
use crate::nearest::marking;

/// The transmissions of one message of the stack in sequence. There is at least one.
#[derive(Clone, Debug)]
pub(crate) struct MessageCopies<'a> {
    pub(crate) packets: Vec<&'a Packet>,
}

impl<'a> MessageCopies<'a> {
    pub(crate) fn first(&self) -> &'a Packet {
        self.packets[0]
    }

    pub(crate) fn last(&self) -> &'a Packet {
        self.packets[self.packets.len() - 1]
    }

    pub(crate) fn message(&self) -> Option<Message<'a>> {
        self.first().message()
    }

    /// Returns whether the message's Message ID is still in use at this time (RFC 7252 §4.4).
    pub(crate) fn is_alive_at(&self, at: Duration) -> bool {
        at.saturating_sub(self.first().at).as_secs() < EXCHANGE_LIFETIME_S
    }

    /// Returns the times between consecutive transmissions, in seconds.
    pub(crate) fn intervals(&self) -> Vec<f64> {
        self.packets.windows(2).map(|pair| pair[1].at.saturating_sub(pair[0].at).as_secs_f64()).collect()
    }

    /// Returns whether all transmissions are the same bytes.
    pub(crate) fn are_equal(&self) -> bool {
        self.packets.iter().all(|packet| packet.bytes == self.first().bytes)
    }

    /// Returns how transmissions are marked, so that an answer can identify one of them.
    pub(crate) fn marking(&self) -> Marking {
        let (Some(first), Some(last)) = (self.message(), self.last().message()) else { return Marking::None };
        let has_count =
            self.packets.iter().any(|packet| packet.message().is_some_and(|copy| copy.rexmit_cnt.is_some()));
        // A token that is longer by a byte shows the ordinal of a retransmission.
        let by_token = if first.token.byte_beyond(&last.token).is_some() {
            Marking::TokenOnRetransmit
        } else if first.token != last.token && first.token.len() == last.token.len() {
            Marking::Token
        } else {
            Marking::None
        };
        marking(has_count, [first.message_id, last.message_id], by_token)
    }

    /// Returns whether a packet of the examiner answers one of these transmissions.
    pub(crate) fn are_answered_by(&self, answer: &Packet) -> bool {
        let id = answer.bytes.get(2..4);
        !answer.is_received()
            && (answer.lane, answer.peer) == (self.first().lane, self.first().peer)
            // A response of the examiner repeats the Message ID of the request, also if it is non-confirmable.
            && self.packets.iter().any(|copy| copy.number < answer.number && copy.bytes.get(2..4) == id)
    }

    /// Returns the ordinal of the only copy with the Message ID and token of an answer; `None` if there are several or
    /// none.
    pub(crate) fn named_by(&self, answer: &Packet) -> Option<usize> {
        let answer = answer.message()?;
        // Copies with one Message ID and token look alike to an answer.
        let mut named = self.packets.iter().enumerate().filter(|(_, copy)| {
            copy.message()
                .is_some_and(|copy| (copy.message_id, copy.token) == (answer.message_id, answer.token))
        });
        named.next().filter(|_| named.next().is_none()).map(|(ordinal, _)| ordinal)
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> + use<'a, '_> {
        self.packets.iter().map(|packet| packet.number)
    }
}

#[cfg(test)]
mod tests {
    use coapace_proto::{Code, Kind, Options};

    use super::super::packet::{PacketDirection, message};
    use super::super::transcript::Transcript;
    use super::*;

    /// Returns a packet at this second: a request from the stack or an answer to it.
    fn packet(at: u32, direction: PacketDirection, message_id: u16, token: &[u8]) -> Packet {
        let (kind, code) = match direction {
            PacketDirection::Received => (Kind::Confirmable, Code::GET),
            PacketDirection::Sent => (Kind::Acknowledgement, Code::CONTENT),
        };
        let bytes = message(kind, code, message_id, token, &Options::new(), &[]);
        let peer = "192.0.2.1:5683".parse().unwrap();
        Packet { number: at, at: Duration::from_secs(at.into()), lane: 0, peer, direction, bytes }
    }

    fn transcript(all: &[(u32, PacketDirection, u16, &[u8])]) -> Transcript {
        let mut transcript = Transcript::default();
        for &(at, direction, message_id, token) in all {
            transcript.add(packet(at, direction, message_id, token));
        }
        transcript
    }

    use PacketDirection::{Received, Sent};

    #[test]
    fn retransmissions_reveal_how_a_client_marks_them() {
        let marking = |ids: [u16; 2], tokens: [&[u8]; 2]| {
            let transcript =
                transcript(&[(1, Received, ids[0], tokens[0]), (2, Received, ids[1], tokens[1])]);
            transcript.exchanges()[0].marking()
        };
        assert_eq!(marking([7, 7], [b"ab", b"ab"]), Marking::None);
        assert_eq!(marking([7, 7], [b"ab", b"ab\x01"]), Marking::TokenOnRetransmit);
        assert_eq!(marking([7, 7], [b"ab\x00", b"ab\x01"]), Marking::Token);
        assert_eq!(marking([7, 8], [b"ab", b"ab"]), Marking::FreshMessageId);
    }

    #[test]
    fn an_answer_with_the_mark_of_a_copy_belongs_to_that_copy() {
        let transcript = transcript(&[
            (1, Received, 7, b"ab"),
            (2, Received, 7, b"ab\x01"),
            (3, Sent, 7, b"ab"),
            (4, Sent, 7, b"ab\x01"),
        ]);
        let exchanges = transcript.exchanges();
        let named: Vec<_> =
            transcript.answers(&exchanges[0]).map(|answer| exchanges[0].named_by(answer)).collect();
        assert_eq!(named, [Some(0), Some(1)]);
    }

    #[test]
    fn a_token_reused_after_an_answer_begins_another_exchange() {
        let all =
            [(1, Received, 7, b"ab"), (2, Received, 8, b"ab"), (3, Sent, 8, b"ab"), (4, Received, 9, b"ab")];
        let transcript = transcript(&all.map(|(at, direction, id, token)| (at, direction, id, &token[..])));
        let lengths: Vec<_> = transcript.exchanges().iter().map(|copies| copies.packets.len()).collect();
        assert_eq!(lengths, [2, 1]);
    }
}
