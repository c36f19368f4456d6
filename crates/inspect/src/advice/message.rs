//! The CoAP message of a datagram.

use std::hash::{DefaultHasher, Hash, Hasher};

use coapace_proto::{Code, Kind, Message, REXMIT_CNT};

/// The parts of a message needed to reconstruct exchanges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenMessage {
    /// CON, NON, ACK or RST.
    pub kind: Kind,
    /// The method or the response code.
    pub code: Code,
    /// The Message ID of the message.
    pub message_id: u16,
    /// A hash of the token.
    pub token: u64,
    /// The token as a big-endian number; 0 if it has more than 8 bytes.
    pub token_number: u64,
    /// The length of the token in bytes.
    pub token_bytes: u8,
    /// A hash of the token and the Rexmit-Cnt option. It differs between the copies of a marked message.
    pub mark: u64,
    /// Whether the message has the Rexmit-Cnt option.
    pub has_count: bool,
    /// A hash of everything that copies of a message have in common: code, options and payload.
    pub content: u64,
}

impl SeenMessage {
    /// Reads a message; `None` if the bytes are not a message. If the datagram was truncated, header and token are
    /// enough.
    pub fn read(bytes: &[u8], is_whole: bool) -> Option<Self> {
        if !is_whole {
            return Self::of_head(bytes);
        }
        let message = Message::parse(bytes).ok()?;
        let token: &[u8] =
            if message.extended_token.is_empty() { &message.token } else { message.extended_token };
        let mut content = DefaultHasher::new();
        message.code.0.hash(&mut content);
        // Copies differ in the count of transmissions, if a mechanism writes it. So the count is not content.
        for (number, value) in message.options().filter(|(number, _)| *number != REXMIT_CNT) {
            (number, value).hash(&mut content);
        }
        message.payload().hash(&mut content);
        Some(Self {
            kind: message.kind,
            code: message.code,
            message_id: message.message_id,
            token: hash(token),
            token_number: number(token),
            // Extended tokens (RFC 8974) may be longer than 255 bytes.
            token_bytes: u8::try_from(token.len()).unwrap_or(u8::MAX),
            mark: hash((token, message.rexmit_cnt)),
            has_count: message.rexmit_cnt.is_some(),
            content: content.finish(),
        })
    }

    fn of_head(bytes: &[u8]) -> Option<Self> {
        let &[first, code, high, low, ref rest @ ..] = bytes else { return None };
        let length = usize::from(first & 15);
        let token = rest.get(..length)?;
        // Classes 1, 6 and 7 are reserved (RFC 7252 §3), so the bytes belong to another protocol.
        if first >> 6 != 1 || length > 8 || matches!(code >> 5, 1 | 6 | 7) {
            return None;
        }
        let kind = [Kind::Confirmable, Kind::NonConfirmable, Kind::Acknowledgement, Kind::Reset];
        Some(Self {
            kind: kind[usize::from(first >> 4 & 3)],
            code: Code(code),
            message_id: u16::from_be_bytes([high, low]),
            token: hash(token),
            token_number: number(token),
            token_bytes: length as u8,
            // Options may be cut off, so neither the count nor the content can be compared.
            mark: hash((token, None::<u8>)),
            has_count: false,
            content: u64::from(code),
        })
    }

    /// Returns whether an ordinary application would send this message. Other protocols may have bytes that can be read as a
    /// message, so datagrams at ports that were not specified must pass this test.
    pub fn is_plausible(&self) -> bool {
        // A non-confirmable message is not empty, an acknowledgement has no request, and a Reset is empty (RFC 7252 §4.2, §4.3).
        let is_named = self.code == Code::EMPTY || self.code.name().is_some();
        let fits = match self.kind {
            Kind::Confirmable | Kind::NonConfirmable => {
                self.kind == Kind::Confirmable || self.code != Code::EMPTY
            }
            Kind::Acknowledgement => !self.code.is_request(),
            Kind::Reset => self.code == Code::EMPTY,
        };
        is_named && fits
    }
}

fn number(token: &[u8]) -> u64 {
    if token.len() > 8 { 0 } else { token.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)) }
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transmissions_that_differ_only_in_their_marking_count_as_copies() {
        let read = |bytes: &[u8]| SeenMessage::read(bytes, true).unwrap();
        let first = read(&[0x41, 1, 0, 9, 0, 0xb1, b'a']);
        let second = read(&[0x41, 1, 0, 9, 1, 0xb1, b'a']);
        assert_eq!((first.content, first.message_id), (second.content, second.message_id));
        assert_ne!(first.mark, second.mark);
        let other = read(&[0x41, 1, 0, 9, 0, 0xb1, b'b']);
        assert_ne!(first.content, other.content);
    }

    #[test]
    fn a_truncated_datagram_is_read_up_to_its_token() {
        let whole = SeenMessage::read(&[0x42, 0x45, 1, 2, 7, 8, 0xff, 1], true).unwrap();
        let cut = SeenMessage::read(&[0x42, 0x45, 1, 2, 7, 8, 0xff], false).unwrap();
        assert_eq!((whole.token, whole.mark, whole.kind), (cut.token, cut.mark, cut.kind));
        assert_eq!(SeenMessage::read(&[0x42, 0x45, 1, 2, 7], false), None);
        assert_eq!(
            SeenMessage::read(&[0x42, 0x45, 1, 2, 7, 8, 0xff], true),
            None,
            "a marker without a payload"
        );
    }

    #[test]
    fn other_protocols_do_not_look_like_coap() {
        let plausible = |bytes: &[u8]| SeenMessage::read(bytes, true).is_some_and(|seen| seen.is_plausible());
        assert!(plausible(&[0x40, 1, 0, 1]));
        assert!(!plausible(&[0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]), "DNS");
        assert!(!plausible(&[0x16, 0xfe, 0xfd, 0, 0, 0, 0]), "DTLS");
        assert!(!plausible(&[0x60, 1, 0, 1]), "a request on an acknowledgement");
        assert!(!plausible(&[0x50, 0, 0, 1]), "an empty NON");
    }
}
