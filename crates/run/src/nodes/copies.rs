//! Finds spurious retransmissions by counting the replies to each message.

use std::collections::BTreeMap;

use coapace_proto::{Kind, Step};
use coapace_sim::NodeId;

/// The maximum number of retransmitted messages that are remembered, to count their replies. If a client gives up more
/// messages than this within one round trip, some spurious retransmissions are not counted.
const RECENT: usize = 16;

/// The messages that a host sent to one peer more than once, and how many of these retransmissions were spurious.
///
/// The peer replies to every copy that arrives, with an acknowledgement or a Reset that has the Message ID of the copy.
/// The first reply answers the message, even if the message was given up before. Each further reply shows that a
/// retransmission was spurious: an earlier copy had arrived.
#[derive(Debug, Default)]
pub(super) struct RepeatedMessages {
    /// The exchange that the host began most recently, and the Message ID of its first transmission.
    newest: (u32, u16),
    /// The retransmitted messages that are remembered, the oldest first.
    repeated: Vec<Repeated>,
    spurious: u64,
}

/// A message that was sent more than once.
#[derive(Debug)]
struct Repeated {
    exchange: u32,
    /// The Message ID of the first transmission, or of the first retransmission if that is unknown.
    first_id: u16,
    /// The Message IDs of later transmissions that differ from the one before. With most mechanisms the list is empty.
    later_ids: Vec<u16>,
    retransmissions: u32,
    replies: u32,
}

impl Repeated {
    fn has_id(&self, id: u16) -> bool {
        // Most messages have one Message ID, and `contains` costs a call for none, too.
        self.first_id == id || !self.later_ids.is_empty() && self.later_ids.contains(&id)
    }
}

impl RepeatedMessages {
    /// Remembers that this host has sent `message`, if it is a retransmission. `step` is its exchange and transmission.
    pub(super) fn sent(&mut self, step: Step, message: &[u8]) {
        let Some(id) = message_id(message) else { return };
        if step.transmission == 0 {
            // From now on the Message ID belongs to the new message.
            self.repeated.retain(|own| !own.has_id(id));
            self.newest = (step.exchange, id);
            return;
        }
        // From the back: the newest messages are those sent again, and the list is short.
        let known = self.repeated.iter().rposition(|own| own.exchange == step.exchange);
        let place = known.unwrap_or_else(|| {
            if self.repeated.len() >= RECENT {
                // The oldest goes first: its replies have had the longest time to come.
                self.repeated.remove(0);
            }
            let (exchange, first) = self.newest;
            // The ID of the first transmission is known only for the newest exchange.
            let first_id = if exchange == step.exchange { first } else { id };
            self.repeated.push(Repeated {
                exchange: step.exchange,
                first_id,
                later_ids: Vec::new(),
                retransmissions: 0,
                replies: 0,
            });
            self.repeated.len() - 1
        });
        let own = &mut self.repeated[place];
        own.retransmissions += 1;
        // Some mechanisms give a retransmission its own Message ID, to see which copy is answered.
        if *own.later_ids.last().unwrap_or(&own.first_id) != id {
            own.later_ids.push(id);
        }
    }

    /// Counts `message` from the peer, if it is a reply to a remembered message.
    pub(super) fn received(&mut self, message: &[u8]) {
        // Acknowledgement and Reset are types 2 and 3 (RFC 7252 §3).
        let is_reply = message.first().is_some_and(|first| (first >> 4 & 3) >= Kind::Acknowledgement as u8);
        let Some(id) = message_id(message).filter(|_| is_reply) else { return };
        let Some(place) = self.repeated.iter().rposition(|own| own.has_id(id)) else { return };
        let own = &mut self.repeated[place];
        own.replies += 1;
        self.spurious += u64::from(own.replies > 1);
        // Every copy is answered, so no further reply can come.
        if own.replies > own.retransmissions {
            self.repeated.remove(place);
        }
    }

    /// Returns the number of spurious retransmissions that were found so far.
    pub(super) fn spurious(&self) -> u64 {
        self.spurious
    }
}

/// A [`RepeatedMessages`] for each peer of a host, by the peer's node number.
#[derive(Debug, Default)]
pub(super) struct CopiesByPeer(BTreeMap<u32, RepeatedMessages>);

impl CopiesByPeer {
    /// Remembers that this host has sent `message` to the peer `to`, if it is a retransmission.
    pub(super) fn sent(&mut self, to: NodeId, step: Step, message: &[u8]) {
        self.0.entry(to.0).or_default().sent(step, message);
    }

    /// Counts `message` from the peer `from`, if it is a reply to a remembered message.
    pub(super) fn received(&mut self, from: NodeId, message: &[u8]) {
        if let Some(copies) = self.0.get_mut(&from.0) {
            copies.received(message);
        }
    }

    /// Returns the number of spurious retransmissions to all peers that were found so far.
    pub(super) fn spurious(&self) -> u64 {
        self.0.values().map(RepeatedMessages::spurious).sum()
    }
}

/// Returns the Message ID of an encoded message; `None` if the message is too short.
fn message_id(message: &[u8]) -> Option<u16> {
    message.get(2..4).map(|id| u16::from_be_bytes([id[0], id[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(copies: &mut RepeatedMessages, exchange: u32, transmission: u8, id: u8) {
        copies.sent(Step { exchange, transmission }, &[0x40, 1, 0, id]);
    }

    fn acknowledge(copies: &mut RepeatedMessages, id: u8) -> u64 {
        copies.received(&[0x60, 0x45, 0, id]);
        copies.spurious()
    }

    #[test]
    fn the_first_reply_answers_a_message_and_each_further_one_shows_a_spurious_copy() {
        let mut copies = RepeatedMessages::default();
        sent(&mut copies, 0, 0, 7);
        sent(&mut copies, 0, 1, 7);
        sent(&mut copies, 0, 2, 7);
        // The next exchange has begun, because this one was given up.
        sent(&mut copies, 1, 0, 8);
        assert_eq!([7, 8, 7, 7, 7].map(|id| acknowledge(&mut copies, id)), [0, 0, 1, 2, 2]);
    }

    #[test]
    fn repeated_replies_to_a_message_sent_once_show_no_spurious_copy() {
        let mut copies = RepeatedMessages::default();
        sent(&mut copies, 0, 0, 7);
        assert_eq!([7, 7].map(|id| acknowledge(&mut copies, id)), [0, 0]);
    }

    #[test]
    fn a_separate_response_is_not_counted_as_a_reply_to_a_copy() {
        let mut copies = RepeatedMessages::default();
        sent(&mut copies, 0, 0, 7);
        sent(&mut copies, 0, 1, 7);
        acknowledge(&mut copies, 7);
        copies.received(&[0x40, 0x45, 0, 7]);
        copies.received(&[0x50, 0x45, 0, 7]);
        assert_eq!(copies.spurious(), 0);
    }

    #[test]
    fn a_copy_with_a_fresh_message_id_belongs_to_its_exchange() {
        let mut copies = RepeatedMessages::default();
        sent(&mut copies, 4, 0, 7);
        sent(&mut copies, 4, 1, 8);
        sent(&mut copies, 5, 0, 9);
        assert_eq!([8, 9, 7].map(|id| acknowledge(&mut copies, id)), [0, 0, 1]);
    }

    #[test]
    fn a_reused_message_id_refers_to_the_new_message() {
        let mut copies = RepeatedMessages::default();
        sent(&mut copies, 0, 0, 7);
        sent(&mut copies, 0, 1, 7);
        acknowledge(&mut copies, 7);
        sent(&mut copies, 1, 0, 7);
        assert_eq!(acknowledge(&mut copies, 7), 0);
    }

    #[test]
    fn the_memory_for_copies_of_messages_is_bounded() {
        let mut copies = RepeatedMessages::default();
        for exchange in 0..100 {
            sent(&mut copies, exchange, 0, exchange as u8);
            sent(&mut copies, exchange, 1, exchange as u8);
        }
        assert_eq!(copies.repeated.len(), RECENT);
    }
}
