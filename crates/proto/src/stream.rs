//! CoAP over reliable transports: framing and signalling of RFC 8323.
//!
//! The transport retransmits, removes duplicates and controls congestion. So messages have no type and no Message ID. They
//! start with a length, and messages with codes 7.xx are about the connection.

mod frame;
mod signal;

use alloc::vec::Vec;

use coap_message_implementations::option_iteration::{OptItem, OptPayloadReader};

use crate::code::Code;
use crate::message::Token;

pub use signal::Signal;

/// Max-Message-Size until a CSM changes it, in bytes (RFC 8323 §5.3.1).
pub const BASE_MAX_MESSAGE_SIZE: u32 = 1152;

/// The maximum number of bytes before the token: a byte with the lengths of message and token, four bytes of extended
/// length, and the code.
const MAX_HEAD: usize = 6;

/// A message of a stream, which borrows the received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamMessage<'a> {
    /// The code of a method, a response or a signal.
    pub code: Code,
    /// The token.
    pub token: Token,
    /// Options and payload, encoded. They are not checked, see [`is_well_formed`](Self::is_well_formed).
    pub tail: &'a [u8],
}

/// The reason why a connection cannot continue. The endpoint sends a [`Signal::Abort`] and closes the connection (RFC 8323
/// §5.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A message is larger than the receiver accepts.
    TooLong,
    /// The token length is 9 to 15. RFC 8323 reserves these values. RFC 8974 allows them only towards peers that
    /// announce it in their CSM.
    TokenTooLong,
    /// The options of a message cannot be read, or a frame is not a message.
    Malformed,
    /// A signalling message has an unknown critical option (RFC 8323 §5.2).
    UnknownOption {
        /// The number of the option.
        number: u16,
        /// True if the option came in a CSM. The Abort then names it in its Bad-CSM-Option.
        in_csm: bool,
    },
}

impl Broken {
    /// Returns the signal to send before the connection is closed.
    pub const fn abort(self) -> Signal {
        match self {
            Self::UnknownOption { number, in_csm: true } => Signal::Abort { bad_csm_option: Some(number) },
            _ => Signal::Abort { bad_csm_option: None },
        }
    }
}

impl StreamMessage<'_> {
    /// Returns whether options and payload can be read (RFC 7252 §3).
    pub fn is_well_formed(&self) -> bool {
        for item in OptPayloadReader::new(self.tail) {
            match item {
                OptItem::Option { .. } => {}
                OptItem::Payload(payload) => return !payload.is_empty(),
                OptItem::Error(_) => return false,
            }
        }
        true
    }

    /// Appends the message to `buffer`.
    ///
    /// # Errors
    /// [`Broken::TooLong`] if the tail does not fit the 32-bit length of RFC 8323 §3.2; nothing is appended.
    pub fn write(&self, buffer: &mut Vec<u8>) -> Result<(), Broken> {
        // Len counts options and payload alone (RFC 8323 §3.2), and the token has at most 8 bytes.
        let token_len = self.token.len() as u8;
        let first = |nibble: u8| nibble << 4 | token_len;
        match self.tail.len() {
            len @ 0..13 => buffer.push(first(len as u8)),
            len @ 13..269 => buffer.extend_from_slice(&[first(13), (len - 13) as u8]),
            len @ 269..65_805 => {
                buffer.push(first(14));
                buffer.extend_from_slice(&((len - 269) as u16).to_be_bytes());
            }
            len => {
                let extended = u32::try_from(len - 65_805).map_err(|_| Broken::TooLong)?;
                buffer.push(first(15));
                buffer.extend_from_slice(&extended.to_be_bytes());
            }
        }
        buffer.push(self.code.0);
        buffer.extend_from_slice(&self.token);
        buffer.extend_from_slice(self.tail);
        Ok(())
    }
}

/// The lengths in the first bytes of a message.
#[derive(Clone, Copy, Debug)]
struct StreamHead {
    /// The offset of the code.
    code_at: usize,
    token_len: usize,
    /// The length of the whole message, bytes.
    total: usize,
}

impl StreamHead {
    /// Reads the lengths. Returns `None` if they are not complete.
    fn read(bytes: &[u8], max: u32) -> Result<Option<Self>, Broken> {
        let Some(&first) = bytes.first() else { return Ok(None) };
        let token_len = usize::from(first & 15);
        if token_len > 8 {
            return Err(Broken::TokenTooLong);
        }
        let (extended, base): (usize, u64) = match first >> 4 {
            len @ 0..13 => (0, u64::from(len)),
            13 => (1, 13),
            14 => (2, 269),
            _ => (4, 65_805),
        };
        let code_at = 1 + extended;
        let Some(field) = bytes.get(1..code_at) else { return Ok(None) };
        let tail_len = field.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)) + base;
        let total = (code_at + 1 + token_len) as u64 + tail_len;
        // The length is checked before anything is buffered, so a peer cannot make this side allocate more.
        if total > u64::from(max) {
            return Err(Broken::TooLong);
        }
        // This cannot fail where an address has 32 bits or more, because `max` has 32.
        let total = usize::try_from(total).map_err(|_| Broken::TooLong)?;
        Ok(Some(Self { code_at, token_len, total }))
    }

    /// Returns the message in `bytes`; `None` if it is not complete.
    fn message(self, bytes: &[u8]) -> Option<StreamMessage<'_>> {
        let bytes = bytes.get(..self.total)?;
        let code = Code(*bytes.get(self.code_at)?);
        let (token, tail) = bytes.get(self.code_at + 1..)?.split_at_checked(self.token_len)?;
        Some(StreamMessage { code, token: Token::new(token)?, tail })
    }
}

/// A decoder, which cuts a stream of bytes into messages.
///
/// A message that arrives in one piece is returned without a copy. Only a message in several pieces is copied. The buffer never
/// holds more than one message of the largest size.
#[derive(Debug)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// True if the buffer holds a message that was already returned.
    spent: bool,
    max_message_size: u32,
}

impl Decoder {
    /// Creates a decoder for messages of up to `max_message_size` bytes, header and token included. It is the Max-Message-Size
    /// of our own CSM (RFC 8323 §5.3.1).
    pub const fn new(max_message_size: u32) -> Self {
        Self { buffer: Vec::new(), spent: false, max_message_size }
    }

    /// Reads from `input` up to the end of one message. Returns how many bytes it consumed, and the message if it is complete.
    /// If it is not, all of `input` is consumed.
    ///
    /// # Errors
    /// [`Broken`] if the connection cannot continue.
    pub fn read<'a>(&'a mut self, input: &'a [u8]) -> Result<(usize, Option<StreamMessage<'a>>), Broken> {
        // The message of the last call lay in the buffer, and was borrowed until now.
        if self.spent {
            self.buffer.clear();
            self.spent = false;
        }
        // Most messages arrive in one piece. They are not copied.
        if self.buffer.is_empty()
            && let Some(head) = StreamHead::read(input, self.max_message_size)?
            && let Some(message) = head.message(input)
        {
            return Ok((head.total, Some(message)));
        }
        let mut taken = 0;
        loop {
            let head = StreamHead::read(&self.buffer, self.max_message_size)?;
            let wanted = match head {
                Some(head) if self.buffer.len() >= head.total => {
                    self.spent = true;
                    return Ok((taken, head.message(&self.buffer)));
                }
                Some(head) => head.total - self.buffer.len(),
                // One byte at a time, so that nothing after this message is taken.
                None => 1,
            };
            let rest = input.get(taken..).unwrap_or_default();
            if rest.is_empty() {
                return Ok((taken, None));
            }
            let piece = &rest[..wanted.min(rest.len())];
            // The head was read before, so this is never above Max-Message-Size.
            self.buffer.reserve_exact(wanted.max(MAX_HEAD));
            self.buffer.extend_from_slice(piece);
            taken += piece.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use std::prelude::rust_2024::*;

    use coap_numbers::code;
    use proptest::prelude::*;

    use super::*;

    fn bytes_of(message: StreamMessage<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        message.write(&mut bytes).unwrap();
        bytes
    }

    fn get(tail: &[u8]) -> StreamMessage<'_> {
        StreamMessage { code: Code(code::GET), token: Token::EMPTY, tail }
    }

    /// Returns all messages of `bytes`, read in pieces of `piece` bytes.
    fn read_all(bytes: &[u8], piece: usize, max: u32) -> Result<Vec<(Code, Token, Vec<u8>)>, Broken> {
        let mut decoder = Decoder::new(max);
        let mut messages = Vec::new();
        for mut input in bytes.chunks(piece) {
            while !input.is_empty() {
                let (used, message) = decoder.read(input)?;
                if let Some(StreamMessage { code, token, tail }) = message {
                    messages.push((code, token, tail.to_vec()));
                }
                input = &input[used..];
            }
        }
        Ok(messages)
    }

    #[test]
    fn a_tcp_message_without_token_and_options_takes_two_bytes() {
        // The empty CSM and the GET with a token of RFC 8323's figures 5 and 6.
        assert_eq!(
            bytes_of(StreamMessage { code: Code(code::CSM), token: Token::EMPTY, tail: &[] }),
            [0x00, 0xe1]
        );
        let token = Token::new(&[0x7f]).unwrap();
        assert_eq!(
            bytes_of(StreamMessage { code: Code(code::CONTENT), token, tail: b"\xffhi" }),
            *b"\x31\x45\x7f\xffhi"
        );
    }

    #[test]
    fn the_length_field_over_tcp_grows_at_13_269_and_65805_bytes() {
        for (tail, head) in [
            (12, vec![0xc0]),
            (13, vec![0xd0, 0]),
            (268, vec![0xd0, 255]),
            (269, vec![0xe0, 0, 0]),
            (65_804, vec![0xe0, 255, 255]),
            (65_805, vec![0xf0, 0, 0, 0, 0]),
        ] {
            let bytes = bytes_of(get(&vec![7; tail]));
            assert_eq!(bytes[..head.len()], head, "{tail}");
            assert_eq!(bytes.len(), head.len() + 1 + tail);
            assert_eq!(read_all(&bytes, 1000, u32::MAX).unwrap()[0].2.len(), tail);
        }
    }

    #[test]
    fn a_tcp_message_received_in_one_piece_is_not_copied() {
        let bytes = bytes_of(get(b"\xffpayload"));
        let mut decoder = Decoder::new(BASE_MAX_MESSAGE_SIZE);
        let (used, message) = decoder.read(&bytes).unwrap();
        assert_eq!(used, bytes.len());
        assert_eq!(message.unwrap().tail.as_ptr(), bytes[2..].as_ptr());
        assert_eq!(decoder.buffer.capacity(), 0);
    }

    #[test]
    fn a_tcp_message_one_byte_above_the_limit_ends_the_connection() {
        let largest = bytes_of(get(&[1; 96])); // three bytes of head
        assert_eq!(read_all(&largest, 7, 99).unwrap().len(), 1);
        assert_eq!(read_all(&bytes_of(get(&[1; 97])), 7, 99), Err(Broken::TooLong));
    }

    #[test]
    fn an_announced_length_of_four_gigabytes_is_refused_before_anything_is_stored() {
        let mut decoder = Decoder::new(BASE_MAX_MESSAGE_SIZE);
        assert_eq!(decoder.read(&[0xf0, 255, 255, 255, 255, 1]).unwrap_err(), Broken::TooLong);
        assert_eq!(decoder.buffer.capacity(), 0);
    }

    #[test]
    fn an_extended_token_over_tcp_is_refused() {
        assert_eq!(read_all(&[0x09, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0], 11, 99), Err(Broken::TokenTooLong));
        assert_eq!(read_all(&[0x0d, 1, 0], 1, 99), Err(Broken::TokenTooLong));
    }

    #[test]
    fn a_tcp_message_with_invalid_options_or_payload_is_malformed() {
        for sound in [&b""[..], b"\xb1x", b"\xb1x\xff!", b"\xff\xff"] {
            assert!(get(sound).is_well_formed(), "{sound:?}");
        }
        for malformed in [&b"\xff"[..], b"\xb1x\xff", b"\xb2x", b"\xf0", b"\x0f", b"\xd0", b"\xe0\xff\xff"] {
            assert!(!get(malformed).is_well_formed(), "{malformed:?}");
        }
    }

    proptest! {
        #[test]
        fn a_stream_cut_at_any_places_gives_the_same_messages(
            sent in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..9), prop::collection::vec(any::<u8>(), 0..400)), 1..8),
            piece in 1_usize..700,
        ) {
            let mut bytes = Vec::new();
            let mut expected = Vec::new();
            for (code, token, tail) in sent {
                let token = Token::new(&token).unwrap();
                StreamMessage { code: Code(code), token, tail: &tail }.write(&mut bytes).unwrap();
                expected.push((Code(code), token, tail));
            }
            prop_assert_eq!(read_all(&bytes, piece, BASE_MAX_MESSAGE_SIZE).unwrap(), expected);
        }

        #[test]
        fn arbitrary_bytes_on_a_stream_cause_no_panic_and_take_bounded_memory(bytes in prop::collection::vec(any::<u8>(), 0..600), piece in 1_usize..50) {
            let mut decoder = Decoder::new(100);
            'stream: for mut input in bytes.chunks(piece) {
                while !input.is_empty() {
                    let Ok((used, message)) = decoder.read(input) else { break 'stream };
                    prop_assert!(used > 0);
                    if let Some(message) = message {
                        let _ = Signal::read(&message);
                    }
                    input = &input[used..];
                    prop_assert!(decoder.buffer.len() <= 100);
                }
            }
        }
    }
}
