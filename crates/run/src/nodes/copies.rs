//! Copies of messages, and the replies that show which of them were spurious.

use std::collections::BTreeMap;

use coapace_proto::{Kind, Step};
use coapace_sim::NodeId;

/// The most messages whose further replies are awaited. Only a client that gives up more of them within one round trip has
/// spurious retransmissions that are not counted.
const RECENT: usize = 16;

/// The messages that a host sent to one peer more than once, and how many of these retransmissions were spurious.
///
/// Every copy that arrives is replied to with its Message ID, by an acknowledgement or a Reset. The first reply answers the
/// message, even if it was given up before. Each further reply shows that a retransmission was spurious: an earlier copy had
/// arrived.
#[derive(Debug, Default)]
pub(super) struct RepeatedMessages {
    /// The exchange that began last, and the Message ID of its first transmission.
    newest: (u32, u16),
    /// The oldest first.
    repeated: Vec<Repeated>,
    spurious: u64,
}

/// A message that was sent more than once.
#[derive(Debug)]
struct Repeated {
    exchange: u32,
    /// The Message IDs of its transmissions. Most mechanisms use one for all.
    message_ids: Vec<u16>,
    retransmissions: u32,
    replies: u32,
}

impl RepeatedMessages {
    /// Notes that a `message` of this host departed.
    pub(super) fn sent(&mut self, step: Step, message: &[u8]) {
        let Some(id) = message_id(message) else { return };
        if step.transmission == 0 {
            // From now on the Message ID belongs to the new message.
            self.repeated.retain(|own| !own.message_ids.contains(&id));
            self.newest = (step.exchange, id);
            return;
        }
        let known = self.repeated.iter().rposition(|own| own.exchange == step.exchange);
        let place = known.unwrap_or_else(|| {
            if self.repeated.len() >= RECENT {
                self.repeated.remove(0);
            }
            let (exchange, first) = self.newest;
            let message_ids = vec![if exchange == step.exchange { first } else { id }];
            self.repeated.push(Repeated {
                exchange: step.exchange,
                message_ids,
                retransmissions: 0,
                replies: 0,
            });
            self.repeated.len() - 1
        });
        let own = &mut self.repeated[place];
        own.retransmissions += 1;
        if own.message_ids.last() != Some(&id) {
            own.message_ids.push(id);
        }
    }

    /// Notes that a `message` of the peer arrived.
    pub(super) fn received(&mut self, message: &[u8]) {
        let is_reply = message.first().is_some_and(|first| (first >> 4 & 3) >= Kind::Acknowledgement as u8);
        let Some(id) = message_id(message).filter(|_| is_reply) else { return };
        let Some(place) = self.repeated.iter().rposition(|own| own.message_ids.contains(&id)) else { return };
        let own = &mut self.repeated[place];
        own.replies += 1;
        self.spurious += u64::from(own.replies > 1);
        if own.replies > own.retransmissions {
            self.repeated.remove(place);
        }
    }

    /// Returns how many retransmissions were spurious.
    pub(super) fn spurious(&self) -> u64 {
        self.spurious
    }
}

/// The [`RepeatedMessages`] to each of several peers.
#[derive(Debug, Default)]
pub(super) struct CopiesByPeer(BTreeMap<u32, RepeatedMessages>);

impl CopiesByPeer {
    /// Notes that a `message` of this host departed to a peer.
    pub(super) fn sent(&mut self, to: NodeId, step: Step, message: &[u8]) {
        self.0.entry(to.0).or_default().sent(step, message);
    }

    /// Notes that a `message` of a peer arrived.
    pub(super) fn received(&mut self, from: NodeId, message: &[u8]) {
        if let Some(copies) = self.0.get_mut(&from.0) {
            copies.received(message);
        }
    }

    /// Returns how many retransmissions were spurious.
    pub(super) fn spurious(&self) -> u64 {
        self.0.values().map(RepeatedMessages::spurious).sum()
    }
}

/// Returns the Message ID of a message.
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
    fn a_message_that_was_sent_once_has_no_spurious_copy_however_often_it_is_replied_to() {
        let mut copies = RepeatedMessages::default();
        sent(&mut copies, 0, 0, 7);
        assert_eq!([7, 7].map(|id| acknowledge(&mut copies, id)), [0, 0]);
    }

    #[test]
    fn a_separate_response_is_no_reply() {
        let mut copies = RepeatedMessages::default();
        sent(&mut copies, 0, 0, 7);
        sent(&mut copies, 0, 1, 7);
        acknowledge(&mut copies, 7);
        copies.received(&[0x40, 0x45, 0, 7]);
        copies.received(&[0x50, 0x45, 0, 7]);
        assert_eq!(copies.spurious(), 0);
    }

    #[test]
    fn a_copy_with_a_message_id_of_its_own_belongs_to_its_exchange() {
        let mut copies = RepeatedMessages::default();
        sent(&mut copies, 4, 0, 7);
        sent(&mut copies, 4, 1, 8);
        sent(&mut copies, 5, 0, 9);
        assert_eq!([8, 9, 7].map(|id| acknowledge(&mut copies, id)), [0, 0, 1]);
    }

    #[test]
    fn a_message_id_that_is_used_again_stands_for_the_new_message() {
        let mut copies = RepeatedMessages::default();
        sent(&mut copies, 0, 0, 7);
        sent(&mut copies, 0, 1, 7);
        acknowledge(&mut copies, 7);
        sent(&mut copies, 1, 0, 7);
        assert_eq!(acknowledge(&mut copies, 7), 0);
    }

    #[test]
    fn the_memory_of_messages_is_bounded() {
        let mut copies = RepeatedMessages::default();
        for exchange in 0..100 {
            sent(&mut copies, exchange, 0, exchange as u8);
            sent(&mut copies, exchange, 1, exchange as u8);
        }
        assert_eq!(copies.repeated.len(), RECENT);
    }
}
