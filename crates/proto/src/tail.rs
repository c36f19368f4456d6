//! Writing what follows the token: options and payload.

use alloc::vec::Vec;

use coap_message_implementations::option_extension::encode_extensions;

/// The tail of a message in the making.
///
/// ```
/// use coapace_proto::Tail;
///
/// let tail = Tail::default().option(11, b"hello").payload(b"!");
/// assert_eq!(tail.as_bytes(), b"\xb5hello\xff!");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    bytes: Vec<u8>,
    last: u16,
}

impl Tail {
    /// One that begins with these options, encoded, the last of which has this number.
    pub(crate) fn of(options: &[u8], last: u16) -> Self {
        Self { bytes: options.into(), last }
    }

    /// Adds an option. Options are added in the order of their numbers (constants in [`coap_numbers::option`]); one that
    /// comes too late, or is longer than 65,535 bytes, is left out.
    #[must_use]
    pub fn option(mut self, number: u16, value: &[u8]) -> Self {
        if let (Some(delta), Ok(len)) = (number.checked_sub(self.last), u16::try_from(value.len())) {
            self.bytes.extend_from_slice(encode_extensions(delta, len).as_ref());
            self.bytes.extend_from_slice(value);
            self.last = number;
        }
        self
    }

    /// Adds the payload; nothing if it is empty (RFC 7252 §3). No option can follow.
    #[must_use]
    pub fn payload(mut self, payload: &[u8]) -> Self {
        if !payload.is_empty() {
            self.bytes.push(0xff);
            self.bytes.extend_from_slice(payload);
            self.last = u16::MAX;
        }
        self
    }

    /// The bytes so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
