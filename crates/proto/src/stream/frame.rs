//! Messages in WebSocket frames (RFC 8323 §4.2). They are like messages on TCP, but without a length, because the frame
//! has one.

use alloc::vec::Vec;

use super::{Broken, StreamMessage};
use crate::code::Code;
use crate::message::Token;

impl<'a> StreamMessage<'a> {
    /// Returns the payload of a binary frame with this message.
    pub fn to_frame(&self) -> Vec<u8> {
        let mut frame = Vec::with_capacity(2 + self.token.len() + self.tail.len());
        // The first byte is a Len of 0 and the length of the token.
        frame.extend_from_slice(&[self.token.len() as u8, self.code.0]);
        frame.extend_from_slice(&self.token);
        frame.extend_from_slice(self.tail);
        frame
    }

    /// Reads the payload of a binary frame.
    ///
    /// # Errors
    /// [`Broken::Malformed`] if Len is not 0 or the message is cut short, [`Broken::TokenTooLong`] if the
    /// token has more than 8 bytes.
    pub fn from_frame(frame: &'a [u8]) -> Result<Self, Broken> {
        let &[first, code, ref rest @ ..] = frame else { return Err(Broken::Malformed) };
        let token_len = usize::from(first & 15);
        if token_len > 8 {
            return Err(Broken::TokenTooLong);
        }
        // The frame has the length of the message, so Len must be 0 (RFC 8323 §4.2).
        if first >> 4 != 0 {
            return Err(Broken::Malformed);
        }
        let (token, tail) = rest.split_at_checked(token_len).ok_or(Broken::Malformed)?;
        let token = Token::new(token).ok_or(Broken::TokenTooLong)?;
        Ok(Self { code: Code(code), token, tail })
    }
}

#[cfg(test)]
mod tests {
    use std::prelude::rust_2024::*;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_websocket_frame_with_a_length_field_is_malformed() {
        let token = Token::new(&[0x7f]).unwrap();
        let message = StreamMessage { code: Code(0x45), token, tail: b"\xffhi" };
        assert_eq!(message.to_frame(), b"\x01\x45\x7f\xffhi");
        assert_eq!(StreamMessage::from_frame(b"\x31\x45\x7f\xffhi"), Err(Broken::Malformed));
        for cut_short in [&b""[..], &[0], &[1, 0x45], &[8, 1, 0, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(StreamMessage::from_frame(cut_short), Err(Broken::Malformed), "{cut_short:?}");
        }
        assert_eq!(StreamMessage::from_frame(&[9; 12]), Err(Broken::TokenTooLong));
    }

    proptest! {
        #[test]
        fn a_parsed_frame_is_written_back_unchanged(frame in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(message) = StreamMessage::from_frame(&frame) {
                prop_assert_eq!(message.to_frame(), frame);
            }
        }

        #[test]
        fn a_written_message_over_tcp_parses_back_unchanged(
            code: u8, token in prop::collection::vec(any::<u8>(), 0..9), tail in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let message = StreamMessage { code: Code(code), token: Token::new(&token).unwrap(), tail: &tail };
            let frame = message.to_frame();
            prop_assert_eq!(StreamMessage::from_frame(&frame), Ok(message));
        }
    }
}
