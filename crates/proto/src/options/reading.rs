//! Reading the options of a message.
//!
//! An option that is too long or too short counts as unrecognised (RFC 7252 §5.4.3), and so does a repeated option that must
//! not be repeated (§5.4.5). An elective option is then ignored. A critical one is returned by
//! [`first_unrecognised`](Message::first_unrecognised).

use core::num::NonZeroU8;

use coap_numbers::option;

use super::rule::{OptionRule, is_critical};
use crate::Message;
use crate::block::{Block, ReservedSize};

/// The Max-Age of a response without the option, seconds (RFC 7252 §5.10.5).
pub const DEFAULT_MAX_AGE: u32 = 60;

/// The error that a Hop-Limit is not a number from 1 to 255 in one byte (RFC 8768 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadHopLimit;

impl<'a> Message<'a> {
    /// Returns the values of an option in sequence. An option that must not be repeated has at most one.
    pub fn values(&self, number: u16) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let rule = OptionRule::of(number);
        self.options()
            .take_while(move |&(at, _)| at <= number)
            .filter(move |&(at, _)| at == number)
            // This comes before the check of the length: a second option never takes the place of an invalid first (RFC 7252 §5.4.5).
            .take(if rule.repeatable { usize::MAX } else { 1 })
            .filter_map(move |(_, value)| rule.allows(value.len()).then_some(value))
    }

    /// Returns the value of an option, the first if there are several.
    pub fn value(&self, number: u16) -> Option<&'a [u8]> {
        self.values(number).next()
    }

    /// Returns the value of an option as a number, with or without leading zeros (RFC 7252 §3.2). Returns
    /// `None` for more than eight bytes.
    pub fn uint(&self, number: u16) -> Option<u64> {
        uint(self.value(number)?)
    }

    /// Returns the segments of the path, not percent-encoded (RFC 7252 §5.10.1). They should be UTF-8, but
    /// may be any bytes.
    pub fn uri_path(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.values(option::URI_PATH)
    }

    /// Returns the arguments of the query, not percent-encoded (RFC 7252 §5.10.1).
    pub fn uri_query(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.values(option::URI_QUERY)
    }

    /// Returns the format of the payload (RFC 7252 §5.10.3; numbers in RFC 7252 §12.3).
    pub fn content_format(&self) -> Option<u16> {
        // `OptionRule` allows two bytes, so nothing is cut off, as with the other numbers here.
        self.uint(option::CONTENT_FORMAT).map(|value| value as u16)
    }

    /// Returns the format that the client wants the payload to have (RFC 7252 §5.10.4).
    pub fn accept(&self) -> Option<u16> {
        self.uint(option::ACCEPT).map(|value| value as u16)
    }

    /// Returns for how many seconds the response is fresh (RFC 7252 §5.10.5); [`DEFAULT_MAX_AGE`] without the option.
    pub fn max_age(&self) -> u32 {
        self.uint(option::MAX_AGE).map_or(DEFAULT_MAX_AGE, |value| value as u32)
    }

    /// Returns the ETag of the representation, 1 to 8 bytes, the first if there are several (RFC 7252
    /// §5.10.6).
    pub fn etag(&self) -> Option<&'a [u8]> {
        self.value(option::ETAG)
    }

    /// Returns Observe: in a request 0 to register and 1 to deregister, in a notification its sequence number
    /// (RFC 7641 §2).
    pub fn observe(&self) -> Option<u32> {
        self.uint(option::OBSERVE).map(|value| value as u32)
    }

    /// Returns Block1, the part of the request body (RFC 7959 §2.1).
    ///
    /// # Errors
    /// [`ReservedSize`]: answer with 4.00.
    pub fn block1(&self) -> Result<Option<Block>, ReservedSize> {
        self.uint(option::BLOCK1).map(|value| Block::decode(value as u32)).transpose()
    }

    /// Returns Block2, the part of the response body (RFC 7959 §2.1).
    ///
    /// # Errors
    /// [`ReservedSize`]: answer with 4.00.
    pub fn block2(&self) -> Result<Option<Block>, ReservedSize> {
        self.uint(option::BLOCK2).map(|value| Block::decode(value as u32)).transpose()
    }

    /// Returns Q-Block1, the part of a request body whose parts may arrive in any sequence (RFC 9177 §4.3).
    ///
    /// # Errors
    /// [`ReservedSize`]: answer with 4.00.
    pub fn q_block1(&self) -> Result<Option<Block>, ReservedSize> {
        self.uint(option::Q_BLOCK1).map(|value| Block::decode(value as u32)).transpose()
    }

    /// Returns Q-Block2, the part of the response body, the first if a request has several (RFC 9177 §4.4).
    ///
    /// # Errors
    /// [`ReservedSize`]: answer with 4.00.
    pub fn q_block2(&self) -> Result<Option<Block>, ReservedSize> {
        self.uint(option::Q_BLOCK2).map(|value| Block::decode(value as u32)).transpose()
    }

    /// Returns Block1 over a reliable transport, where SZX 7 is [`BERT`](crate::block::BERT).
    pub fn block1_reliable(&self) -> Option<Block> {
        self.uint(option::BLOCK1).map(|value| Block::decode_reliable(value as u32))
    }

    /// Returns Block2 over a reliable transport, where SZX 7 is [`BERT`](crate::block::BERT).
    pub fn block2_reliable(&self) -> Option<Block> {
        self.uint(option::BLOCK2).map(|value| Block::decode_reliable(value as u32))
    }

    /// Returns Size1: the bytes of the request body, or in a 4.13 response the most that the server accepts (RFC 7959 §4).
    pub fn size1(&self) -> Option<u32> {
        self.uint(option::SIZE1).map(|value| value as u32)
    }

    /// Returns Size2: the bytes of the response body. In a request, 0 asks for that number (RFC 7959 §4).
    pub fn size2(&self) -> Option<u32> {
        self.uint(option::SIZE2).map(|value| value as u32)
    }

    /// Returns whether the client does not want a response of this code (RFC 7967 §2). A confirmable request is still
    /// acknowledged: [`Endpoint::acknowledge`](crate::Endpoint::acknowledge).
    pub fn suppresses(&self, response: crate::Code) -> bool {
        let classes = self.uint(option::NO_RESPONSE).unwrap_or(0);
        // The values 2, 8 and 16 are for the classes 2, 4 and 5 (RFC 7967 §2.1).
        response.is_response() && classes >> ((response.0 >> 5) - 1) & 1 == 1
    }

    /// Returns the Hop-Limit: how many proxies the request may still pass (RFC 8768 §3).
    ///
    /// # Errors
    /// [`BadHopLimit`]: answer with 4.00.
    pub fn hop_limit(&self) -> Result<Option<NonZeroU8>, BadHopLimit> {
        // `uint` would skip a value of the wrong length, but here it is an error (RFC 8768 §3).
        let found = self.options().take_while(|&(at, _)| at <= option::HOP_LIMIT);
        match found.filter(|&(at, _)| at == option::HOP_LIMIT).map(|(_, value)| value).next() {
            None => Ok(None),
            Some(&[hops]) => NonZeroU8::new(hops).map(Some).ok_or(BadHopLimit),
            Some(_) => Err(BadHopLimit),
        }
    }

    /// Returns the Echo value (RFC 9175 §2.2).
    pub fn echo(&self) -> Option<&'a [u8]> {
        self.value(option::ECHO)
    }

    /// Returns the first critical option that is not among `known`, or that its specification does not allow
    /// in this form.
    ///
    /// A server answers 4.02. A client rejects a separate response with a Reset, and ignores a piggybacked
    /// one (RFC 7252 §5.4.1).
    pub fn first_unrecognised(&self, known: &[u16]) -> Option<u16> {
        let mut last = None;
        self.options()
            .find(|&(number, value)| {
                let rule = OptionRule::of(number);
                let again = last.replace(number) == Some(number);
                let sound = rule.allows(value.len()) && (rule.repeatable || !again);
                is_critical(number) && !(sound && known.contains(&number))
            })
            .map(|(number, _)| number)
    }
}

/// Reads a number of at most eight bytes.
fn uint(value: &[u8]) -> Option<u64> {
    (value.len() <= 8).then(|| value.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
}
