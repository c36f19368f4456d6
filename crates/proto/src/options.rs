//! Options, which are added in any sequence, and written sorted by number.

mod reading;
mod rule;

use alloc::vec::Vec;
use core::fmt;

use coap_message_implementations::option_extension::encode_extensions;
use coap_numbers::option;
use smallvec::SmallVec;

pub use reading::{BadHopLimit, DEFAULT_MAX_AGE};
use rule::OptionRule;
pub use rule::{is_critical, is_no_cache_key, is_unsafe};

use crate::block::Block;
use crate::{Kind, Message, Tail};

/// The options of a message, in the encoding of RFC 7252 §3.1. A few short options need no allocation.
///
/// ```
/// use coapace_proto::Options;
///
/// let tail = Options::default().content_format(0).uri_path("sensors/temperature").etag(b"v1").tail(b"21").unwrap();
/// assert_eq!(tail.as_bytes(), b"\x42v1\x77sensors\x0btemperature\x10\xff21");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The encoded options, sorted by number.
    bytes: SmallVec<[u8; 32]>,
    /// The number of the last option.
    last: u16,
    /// The number of the first option that was left out because its value is too long for any message.
    too_long: Option<u16>,
}

/// The error that an option is not allowed by its specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadOption {
    /// The value is too short or too long (RFC 7252 §5.4.3).
    Length {
        /// The number of the option.
        number: u16,
    },
    /// The option is repeated but must not be (RFC 7252 §5.4.5).
    Repeated {
        /// The number of the option.
        number: u16,
    },
    /// The value is `.` or `..`, which no segment of a path may be (RFC 7252 §5.10.1, §5.10.7).
    Dots {
        /// The number of the option.
        number: u16,
    },
    /// The option names a part of the URI beside Proxy-Uri, which names the whole (RFC 7252 §5.10.2).
    BesideProxyUri {
        /// The number of the option.
        number: u16,
    },
}

impl fmt::Display for BadOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Length { number }
        | Self::Repeated { number }
        | Self::Dots { number }
        | Self::BesideProxyUri { number }) = *self;
        match option::to_name(number) {
            Some(name) => f.write_str(name)?,
            None => write!(f, "option {number}")?,
        }
        f.write_str(match self {
            Self::Length { .. } => " is too short or too long",
            Self::Repeated { .. } => " is there twice",
            Self::Dots { .. } => " must not be . or ..",
            Self::BesideProxyUri { .. } => " must not be there beside Proxy-Uri",
        })
    }
}

impl core::error::Error for BadOption {}

impl Options {
    /// Creates options without any option.
    pub const fn new() -> Self {
        Self { bytes: SmallVec::new_const(), last: 0, too_long: None }
    }

    /// Copies the options of a message.
    pub fn of(message: &Message<'_>) -> Self {
        Self::new().and(message.options())
    }

    /// Adds an option, after others with its number. Numbers are constants in [`coap_numbers::option`]. A value of more than
    /// 65,535 bytes is left out, and [`tail`](Self::tail) then returns an error.
    #[must_use]
    pub fn with(mut self, number: u16, value: &[u8]) -> Self {
        self.push(number, value);
        self
    }

    /// Adds an option, like [`with`](Self::with) does.
    pub fn push(&mut self, number: u16, value: &[u8]) {
        let Ok(len) = u16::try_from(value.len()) else {
            self.too_long.get_or_insert(number);
            return;
        };
        // Numbers are encoded as differences, so an option in the middle changes the one after it. All are written again.
        if number < self.last {
            let before = Self { too_long: self.too_long, ..Self::new() };
            let before = before.and(self.iter().filter(|&(other, _)| other <= number)).with(number, value);
            *self = before.and(self.iter().filter(|&(other, _)| other > number));
            return;
        }
        self.bytes.extend_from_slice(encode_extensions(number - self.last, len).as_ref());
        self.bytes.extend_from_slice(value);
        self.last = number;
    }

    fn and<'a>(self, options: impl Iterator<Item = (u16, &'a [u8])>) -> Self {
        options.fold(self, |options, (number, value)| options.with(number, value))
    }

    /// Adds an option whose value is a number, in as few bytes as possible (RFC 7252 §3.2).
    #[must_use]
    pub fn with_uint(self, number: u16, value: u64) -> Self {
        let bytes = value.to_be_bytes();
        // The number 0 has 64 leading zeros, and so no bytes.
        self.with(number, &bytes[value.leading_zeros() as usize / 8..])
    }

    /// Removes all options of this number.
    #[must_use]
    pub fn without(self, number: u16) -> Self {
        if self.iter().all(|(other, _)| other != number) {
            return self;
        }
        let rest = Self { too_long: self.too_long, ..Self::new() };
        rest.and(self.iter().filter(|&(other, _)| other != number))
    }

    /// Adds a Uri-Path for each part of `path` between slashes (RFC 7252 §6.4). A slash at the front is left
    /// out. Nothing is percent-decoded.
    #[must_use]
    pub fn uri_path(self, path: &str) -> Self {
        let path = path.strip_prefix('/').unwrap_or(path);
        let segments = path.split('/').filter(|_| !path.is_empty());
        segments.fold(self, |options, segment| options.with(option::URI_PATH, segment.as_bytes()))
    }

    /// Adds a Uri-Query: one argument, for example `name=value`, not percent-encoded.
    #[must_use]
    pub fn uri_query(self, argument: &str) -> Self {
        self.with(option::URI_QUERY, argument.as_bytes())
    }

    /// Adds Content-Format: the format of the payload.
    #[must_use]
    pub fn content_format(self, format: u16) -> Self {
        self.with_uint(option::CONTENT_FORMAT, format.into())
    }

    /// Adds Accept: the format that the client wants the payload of the response to have.
    #[must_use]
    pub fn accept(self, format: u16) -> Self {
        self.with_uint(option::ACCEPT, format.into())
    }

    /// Adds Max-Age, seconds.
    #[must_use]
    pub fn max_age(self, seconds: u32) -> Self {
        self.with_uint(option::MAX_AGE, seconds.into())
    }

    /// Adds an ETag of 1 to 8 bytes.
    #[must_use]
    pub fn etag(self, etag: &[u8]) -> Self {
        self.with(option::ETAG, etag)
    }

    /// Adds Observe with the lower 24 bits of `value` (RFC 7641 §2).
    #[must_use]
    pub fn observe(self, value: u32) -> Self {
        self.with_uint(option::OBSERVE, (value & 0xff_ffff).into())
    }

    /// Adds Block1, which names a part of the request body.
    #[must_use]
    pub fn block1(self, block: Block) -> Self {
        self.with_uint(option::BLOCK1, block.encode().into())
    }

    /// Adds Block2, which names a part of the response body.
    #[must_use]
    pub fn block2(self, block: Block) -> Self {
        self.with_uint(option::BLOCK2, block.encode().into())
    }

    /// Adds Q-Block1, which names a part of a request body whose parts may arrive in any sequence.
    #[must_use]
    pub fn q_block1(self, block: Block) -> Self {
        self.with_uint(option::Q_BLOCK1, block.encode().into())
    }

    /// Adds Q-Block2, after others. The block numbers of several such options must ascend (RFC 9177 §4.4).
    #[must_use]
    pub fn q_block2(self, block: Block) -> Self {
        self.with_uint(option::Q_BLOCK2, block.encode().into())
    }

    /// Adds Size1: the length of the request body, bytes. In a 4.13 response it is the largest length that the server
    /// accepts.
    #[must_use]
    pub fn size1(self, bytes: u32) -> Self {
        self.with_uint(option::SIZE1, bytes.into())
    }

    /// Adds Size2: the length of the response body, bytes.
    #[must_use]
    pub fn size2(self, bytes: u32) -> Self {
        self.with_uint(option::SIZE2, bytes.into())
    }

    /// Adds No-Response. `classes` is the sum of 2 for no 2.xx response, 8 for no 4.xx and 16 for no 5.xx (RFC 7967
    /// §2.1).
    #[must_use]
    pub fn no_response(self, classes: u8) -> Self {
        self.with_uint(option::NO_RESPONSE, classes.into())
    }

    /// Adds an Echo value of 1 to 40 bytes.
    #[must_use]
    pub fn echo(self, value: &[u8]) -> Self {
        self.with(option::ECHO, value)
    }

    /// Adds a Request-Tag of 0 to 8 bytes.
    #[must_use]
    pub fn request_tag(self, tag: &[u8]) -> Self {
        self.with(option::REQUEST_TAG, tag)
    }

    /// Returns the options as (number, value), sorted by number.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &[u8])> {
        self.message().options()
    }

    /// Returns the value of the first option of this number, like [`Message::value`] does.
    pub fn value(&self, number: u16) -> Option<&[u8]> {
        self.message().value(number)
    }

    /// Returns the value of an option as a number, like [`Message::uint`] does.
    pub fn uint(&self, number: u16) -> Option<u64> {
        self.message().uint(number)
    }

    /// Returns a message with these options, so that the functions of [`Message`] can read them.
    fn message(&self) -> Message<'_> {
        Message { tail: &self.bytes, ..Message::empty(Kind::Reset, 0) }
    }

    /// Returns the tail of a message with these options and this payload.
    ///
    /// # Errors
    /// [`BadOption`] names the first option that a recipient would not recognise.
    pub fn tail(&self, payload: &[u8]) -> Result<Tail, BadOption> {
        let (mut last, mut part_of_uri) = (None, None);
        // A recipient ignores such an option, or rejects the message (RFC 7252 §5.4). So the sender learns of it here.
        for (number, value) in self.iter() {
            let rule = OptionRule::of(number);
            if !rule.allows(value.len()) {
                return Err(BadOption::Length { number });
            }
            if last.replace(number) == Some(number) && !rule.repeatable {
                return Err(BadOption::Repeated { number });
            }
            match number {
                option::URI_PATH | option::LOCATION_PATH if matches!(value, b"." | b"..") => {
                    return Err(BadOption::Dots { number });
                }
                option::URI_HOST | option::URI_PORT | option::URI_PATH | option::URI_QUERY => {
                    part_of_uri.get_or_insert(number);
                }
                // Its number is higher than theirs, so they were read before it.
                option::PROXY_URI => {
                    part_of_uri.map_or(Ok(()), |number| Err(BadOption::BesideProxyUri { number }))?;
                }
                _ => {}
            }
        }
        match self.too_long {
            Some(number) => Err(BadOption::Length { number }),
            None => Ok(Tail::of(&self.bytes, self.last).payload(payload)),
        }
    }

    /// Appends the options, valid or not, and the payload to `buffer`.
    pub fn write(&self, payload: &[u8], buffer: &mut Vec<u8>) {
        buffer.extend_from_slice(&self.bytes);
        if !payload.is_empty() {
            buffer.push(0xff);
            buffer.extend_from_slice(payload);
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = self.iter().map(|(number, value)| (number, value.escape_ascii()));
        f.debug_map().entries(values.map(|(number, value)| (number, alloc::format!("{value}")))).finish()
    }
}

#[cfg(test)]
mod tests;
