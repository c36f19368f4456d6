//! The transmissions of one message.

use std::time::Duration;

use coapace_proto::Message;

use super::packet::Packet;

/// EXCHANGE_LIFETIME (RFC 7252 §4.8.2).
pub(crate) const EXCHANGE_LIFETIME: Duration = Duration::from_secs(247);

/// The transmissions of one message of the stack, the first one first. There is at least one.
#[derive(Clone, Debug)]
pub(crate) struct Copies<'a> {
    pub(crate) packets: Vec<&'a Packet>,
}

impl<'a> Copies<'a> {
    pub(crate) fn first(&self) -> &'a Packet {
        self.packets[0]
    }

    pub(crate) fn last(&self) -> &'a Packet {
        self.packets[self.packets.len() - 1]
    }

    pub(crate) fn message(&self) -> Option<Message<'a>> {
        self.first().message()
    }

    /// Returns whether its Message ID is still taken at this moment (RFC 7252 §4.4).
    pub(crate) fn is_alive_at(&self, at: Duration) -> bool {
        at.saturating_sub(self.first().at) < EXCHANGE_LIFETIME
    }

    /// Returns the times between consecutive transmissions, in seconds.
    pub(crate) fn intervals(&self) -> Vec<f64> {
        self.packets.windows(2).map(|pair| pair[1].at.saturating_sub(pair[0].at).as_secs_f64()).collect()
    }

    /// Returns whether all transmissions are the same bytes.
    pub(crate) fn are_equal(&self) -> bool {
        self.packets.iter().all(|packet| packet.bytes == self.first().bytes)
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> + use<'a, '_> {
        self.packets.iter().map(|packet| packet.number)
    }
}
