//! One datagram of an examination.

use std::net::SocketAddr;
use std::time::Duration;

use coapace_proto::{Code, Kind, Message, Options};

/// An option from the experimental range that a recipient must understand: the number is odd (RFC 7252 §5.4.6).
pub(crate) const CRITICAL_OPTION: u16 = 65_001;
/// An option from the experimental range that a recipient may ignore: the number is even.
pub(crate) const ELECTIVE_OPTION: u16 = 65_000;

/// The direction of a datagram, seen from the examiner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketDirection {
    /// From the examiner to the examined stack.
    Sent,
    /// From the examined stack to the examiner.
    Received,
}

/// A datagram between the examiner and the examined stack.
#[derive(Clone, Debug)]
pub struct Packet {
    /// The number of the packet in the capture, counted from 1.
    pub number: u32,
    /// The time since the examination began.
    pub at: Duration,
    /// The lane: the number of the examiner's socket.
    pub lane: usize,
    /// The address of the examined stack.
    pub peer: SocketAddr,
    /// The direction.
    pub direction: PacketDirection,
    /// The UDP payload.
    pub bytes: Vec<u8>,
}

impl Packet {
    /// Returns the message in the datagram; `None` if it is malformed.
    pub fn message(&self) -> Option<Message<'_>> {
        Message::parse(&self.bytes).ok()
    }

    /// Returns whether the stack sent this packet.
    pub fn is_received(&self) -> bool {
        self.direction == PacketDirection::Received
    }

    /// Returns whether this is a message of this kind, with this Message ID, from the stack.
    pub(crate) fn is_answer(&self, kind: Kind, message_id: u16) -> bool {
        self.is_received()
            && self.message().is_some_and(|message| message.kind == kind && message.message_id == message_id)
    }

    /// Returns whether this is an empty acknowledgement.
    pub(crate) fn is_empty_ack(&self) -> bool {
        self.message()
            .is_some_and(|message| message.kind == Kind::Acknowledgement && message.code == Code::EMPTY)
    }

    /// Returns whether this is a request from the stack.
    pub(crate) fn is_request(&self) -> bool {
        self.is_received() && self.message().is_some_and(|message| message.code.is_request())
    }

    /// Returns whether this is a response with this token from the stack.
    pub(crate) fn is_response(&self, token: &[u8]) -> bool {
        self.is_received()
            && self.message().is_some_and(|message| message.code.is_response() && *message.token == *token)
    }
}

/// Returns the bytes of a message.
pub(crate) fn message(
    kind: Kind,
    code: Code,
    message_id: u16,
    token: &[u8],
    options: &Options,
    payload: &[u8],
) -> Vec<u8> {
    let [high, low] = message_id.to_be_bytes();
    // Longer tokens have another form of header (RFC 8974), which no case needs.
    let mut bytes = vec![1 << 6 | (kind as u8) << 4 | token.len().min(8) as u8, code.0, high, low];
    bytes.extend_from_slice(&token[..token.len().min(8)]);
    options.write(payload, &mut bytes);
    bytes
}

/// Returns the bytes of an empty message.
pub(crate) fn empty(kind: Kind, message_id: u16) -> Vec<u8> {
    message(kind, Code::EMPTY, message_id, &[], &Options::new(), &[])
}
