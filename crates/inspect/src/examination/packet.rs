//! One datagram of an examination.

use std::net::SocketAddr;
use std::time::Duration;

use coapace_proto::{Code, Kind, Message, Options};

/// An option of the range for experiments that a recipient has to understand: the number is odd (RFC 7252 §5.4.6).
pub(crate) const CRITICAL_OPTION: u16 = 65_001;
/// An option of that range that a recipient may ignore: the number is even.
pub(crate) const ELECTIVE_OPTION: u16 = 65_000;

/// Whether the examiner sent a datagram or received it.
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
    /// The number of the packet in the capture, from 1 on.
    pub number: u32,
    /// The time since the examination began.
    pub at: Duration,
    /// The socket of the examiner.
    pub lane: usize,
    /// The address of the examined stack.
    pub peer: SocketAddr,
    /// The direction.
    pub direction: PacketDirection,
    /// The payload of UDP.
    pub bytes: Vec<u8>,
}

impl Packet {
    /// Returns the message in the datagram; `None` if it is malformed.
    pub fn message(&self) -> Option<Message<'_>> {
        Message::parse(&self.bytes).ok()
    }

    /// Returns whether the stack sent it.
    pub fn is_received(&self) -> bool {
        self.direction == PacketDirection::Received
    }

    /// Returns whether it is a message of this kind, with this Message ID, from the stack.
    pub(crate) fn is_answer(&self, kind: Kind, message_id: u16) -> bool {
        self.is_received()
            && self.message().is_some_and(|message| message.kind == kind && message.message_id == message_id)
    }

    /// Returns whether it is an empty acknowledgement.
    pub(crate) fn is_empty_ack(&self) -> bool {
        self.message()
            .is_some_and(|message| message.kind == Kind::Acknowledgement && message.code == Code::EMPTY)
    }

    /// Returns whether the stack sent it and it is a request.
    pub(crate) fn is_request(&self) -> bool {
        self.is_received() && self.message().is_some_and(|message| message.code.is_request())
    }

    /// Returns whether the stack sent it and it is a response with this token.
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
    let mut bytes = vec![1 << 6 | (kind as u8) << 4 | token.len().min(8) as u8, code.0, high, low];
    bytes.extend_from_slice(&token[..token.len().min(8)]);
    options.write(payload, &mut bytes);
    bytes
}

/// Returns the bytes of an empty message.
pub(crate) fn empty(kind: Kind, message_id: u16) -> Vec<u8> {
    message(kind, Code::EMPTY, message_id, &[], &Options::new(), &[])
}
