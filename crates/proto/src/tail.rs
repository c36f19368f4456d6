//! The tail of a message: the options and the payload.

use alloc::vec::Vec;

use coap_message_implementations::option_extension::encode_extensions;

/// The tail of a message: its options, and the payload after them.
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
    /// Creates a tail that starts with these encoded options. `last` is the number of the last one.
    pub(crate) fn of(options: &[u8], last: u16) -> Self {
        Self { bytes: options.into(), last }
    }

    /// Adds an option. Add options sorted by number; the numbers are constants in [`coap_numbers::option`]. An option
    /// with a lower number than the last one is left out, and so is one of more than 65,535 bytes.
    #[must_use]
    pub fn option(mut self, number: u16, value: &[u8]) -> Self {
        if let (Some(delta), Ok(len)) = (number.checked_sub(self.last), u16::try_from(value.len())) {
            self.bytes.extend_from_slice(encode_extensions(delta, len).as_ref());
            self.bytes.extend_from_slice(value);
            self.last = number;
        }
        self
    }

    /// Adds the payload. An empty payload has no marker (RFC 7252 §3). After a payload, further options are left out.
    #[must_use]
    pub fn payload(mut self, payload: &[u8]) -> Self {
        if !payload.is_empty() {
            self.bytes.push(0xff);
            self.bytes.extend_from_slice(payload);
            // `option` then leaves out all that follow, because their numbers are lower.
            self.last = u16::MAX;
        }
        self
    }

    /// Returns the bytes so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}
