//! Signalling messages about a connection.

use alloc::vec::Vec;

use coap_message_implementations::option_iteration::{OptItem, OptPayloadReader};
use coap_numbers::{code, signaling_option};

use super::{Broken, StreamMessage};
use crate::Tail;
use crate::code::Code;
use crate::message::Token;

/// A message about the connection (RFC 8323 §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// 7.01: the capabilities of the sender. It is the first message of each side.
    Csm {
        /// The largest message that the sender accepts, in bytes. `None` keeps the value of the previous CSM, which is at first
        /// [`BASE_MAX_MESSAGE_SIZE`](super::BASE_MAX_MESSAGE_SIZE).
        max_message_size: Option<u32>,
        /// True if the sender supports block-wise transfers.
        block_wise_transfer: bool,
    },
    /// 7.02: tests whether the peer is alive. A Pong with the same token answers it.
    Ping {
        /// True if the Pong must wait until all messages before the Ping are processed.
        custody: bool,
    },
    /// 7.03: answers a Ping.
    Pong {
        /// True if all messages before the Ping are processed.
        custody: bool,
    },
    /// 7.04: the sender wants to close the connection once all requests are answered.
    Release,
    /// 7.05: the sender closes the connection at once.
    Abort {
        /// The number of the CSM option that the sender of the Abort does not know; `None` if the reason is another.
        bad_csm_option: Option<u16>,
    },
}

impl Signal {
    /// Reads a signal. Returns `None` if `message` is not a signal, or has an undefined code 7.xx, which is
    /// ignored.
    ///
    /// # Errors
    /// [`Broken::Malformed`] and [`Broken::UnknownOption`].
    pub fn read(message: &StreamMessage<'_>) -> Result<Option<Self>, Broken> {
        let mut signal = match message.code.0 {
            code::CSM => Self::Csm { max_message_size: None, block_wise_transfer: false },
            code::PING => Self::Ping { custody: false },
            code::PONG => Self::Pong { custody: false },
            code::RELEASE => Self::Release,
            code::ABORT => Self::Abort { bad_csm_option: None },
            _ => return Ok(None),
        };
        for item in OptPayloadReader::new(message.tail) {
            match item {
                OptItem::Option { number, data } => signal.take_option(number, data)?,
                OptItem::Payload(_) => break, // a diagnostic text
                OptItem::Error(_) => return Err(Broken::Malformed),
            }
        }
        Ok(Some(signal))
    }

    fn take_option(&mut self, option: u16, data: &[u8]) -> Result<(), Broken> {
        match (&mut *self, option) {
            (Self::Csm { max_message_size, .. }, signaling_option::MAX_MESSAGE_SIZE) => {
                *max_message_size = Some(uint(data)?);
            }
            (Self::Csm { block_wise_transfer, .. }, signaling_option::BLOCK_WISE_TRANSFER) => {
                // The option has no value (RFC 8323 §5.3.2).
                *block_wise_transfer = true;
            }
            (Self::Ping { custody } | Self::Pong { custody }, signaling_option::CUSTODY) => *custody = true,
            (Self::Abort { bad_csm_option }, signaling_option::BAD_CSM_OPTION) => {
                // No option has a number beyond 16 bits. The connection ends in any case.
                *bad_csm_option = u16::try_from(uint(data)?).ok();
            }
            // Options of signals are critical if their number is odd, like all others (RFC 8323 §5.2).
            (_, number) if number % 2 == 1 => {
                return Err(Broken::UnknownOption { number, in_csm: matches!(self, Self::Csm { .. }) });
            }
            _ => {}
        }
        Ok(())
    }

    /// Appends the signal to `buffer`. `token` is empty, except in a Pong: it repeats the token of the Ping.
    pub fn write(self, token: Token, buffer: &mut Vec<u8>) {
        let (code, tail) = self.encode();
        let written = StreamMessage { code, token, tail: &tail }.write(buffer);
        debug_assert!(written.is_ok(), "a signal is a few bytes");
    }

    /// Returns the code and the encoded options of the signal.
    pub fn encode(self) -> (Code, Vec<u8>) {
        let mut tail = Tail::default();
        let code = match self {
            Self::Csm { max_message_size, block_wise_transfer } => {
                // Options are written in the order of their numbers, 2 before 4 (RFC 8323 §5.3).
                if let Some(size) = max_message_size {
                    let size = size.to_be_bytes();
                    tail = tail.option(signaling_option::MAX_MESSAGE_SIZE, significant(&size));
                }
                if block_wise_transfer {
                    tail = tail.option(signaling_option::BLOCK_WISE_TRANSFER, &[]);
                }
                code::CSM
            }
            // Custody is an option of both signals (RFC 8323 §5.4.1).
            Self::Ping { custody } | Self::Pong { custody } => {
                if custody {
                    tail = tail.option(signaling_option::CUSTODY, &[]);
                }
                if matches!(self, Self::Ping { .. }) { code::PING } else { code::PONG }
            }
            Self::Release => code::RELEASE,
            Self::Abort { bad_csm_option } => {
                if let Some(number) = bad_csm_option {
                    let number = number.to_be_bytes();
                    tail = tail.option(signaling_option::BAD_CSM_OPTION, significant(&number));
                }
                code::ABORT
            }
        };
        (Code(code), tail.into_bytes())
    }
}

/// Reads a uint option (RFC 7252 §3.2) of at most 32 bits.
fn uint(data: &[u8]) -> Result<u32, Broken> {
    let data = significant(data);
    if data.len() > 4 {
        return Err(Broken::Malformed);
    }
    Ok(data.iter().fold(0, |value, &byte| value << 8 | u32::from(byte)))
}

/// Returns big-endian bytes without leading zeros.
fn significant(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.iter().take_while(|&&byte| byte == 0).count()..]
}

#[cfg(test)]
mod tests {
    use std::prelude::rust_2024::*;

    use super::super::Decoder;
    use super::*;

    #[test]
    fn a_csm_announces_the_capabilities_of_its_sender() {
        let csm = Signal::Csm { max_message_size: Some(1152), block_wise_transfer: true };
        let mut bytes = Vec::new();
        csm.write(Token::EMPTY, &mut bytes);
        assert_eq!(bytes, [0x40, 0xe1, 0x22, 0x04, 0x80, 0x20]);
        let mut decoder = Decoder::new(99);
        let message = decoder.read(&bytes).unwrap().1.unwrap();
        assert_eq!(Signal::read(&message), Ok(Some(csm)));
    }

    #[test]
    fn an_unknown_critical_option_in_a_signal_aborts_the_connection() {
        let csm = StreamMessage { code: Code(code::CSM), token: Token::EMPTY, tail: &[0x70] };
        let broken = Signal::read(&csm).unwrap_err();
        assert_eq!(broken.abort(), Signal::Abort { bad_csm_option: Some(7) });
        let elective = StreamMessage { tail: &[0x60], ..csm };
        assert!(Signal::read(&elective).unwrap().is_some());
        let ping = StreamMessage { code: Code(code::PING), ..csm };
        assert_eq!(Signal::read(&ping).unwrap_err().abort(), Signal::Abort { bad_csm_option: None });
    }

    #[test]
    fn a_pong_repeats_the_token_of_the_ping() {
        let token = Token::new(&[4, 2]).unwrap();
        let mut bytes = Vec::new();
        Signal::Pong { custody: true }.write(token, &mut bytes);
        assert_eq!(bytes, [0x12, 0xe3, 4, 2, 0x20]);
        let get = StreamMessage { code: Code(code::GET), token: Token::EMPTY, tail: &[] };
        assert_eq!(Signal::read(&get), Ok(None));
    }
}
