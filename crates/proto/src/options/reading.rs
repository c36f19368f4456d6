//! The options of a message, by their meaning.
//!
//! An option that is too long or too short, and one that is there again though it must not be, is treated like one that is
//! not understood (RFC 7252 §5.4.3, §5.4.5): if it is elective it is not there, and if it is critical
//! [`first_unrecognised`](Message::first_unrecognised) names it.

use coap_numbers::option;

use super::rule::{Rule, is_critical};
use crate::Message;
use crate::block::{Block, ReservedSize};

/// Max-Age where a response does not say it, seconds (RFC 7252 §5.10.5).
pub const DEFAULT_MAX_AGE: u32 = 60;

impl<'a> Message<'a> {
    /// The values of an option, in their order; of one that may not be repeated, the first at most.
    pub fn values(&self, number: u16) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let rule = Rule::of(number);
        self.options()
            .take_while(move |&(at, _)| at <= number)
            .filter(move |&(at, _)| at == number)
            .take(if rule.repeatable { usize::MAX } else { 1 })
            .filter_map(move |(_, value)| rule.allows(value.len()).then_some(value))
    }

    /// The value of an option, the first if there are several.
    pub fn value(&self, number: u16) -> Option<&'a [u8]> {
        self.values(number).next()
    }

    /// The value of an option as a number, leading zeros or not (RFC 7252 §3.2); `None` beyond eight bytes.
    pub fn uint(&self, number: u16) -> Option<u64> {
        uint(self.value(number)?)
    }

    /// The segments of the path, not percent-encoded (RFC 7252 §5.10.1). They should be UTF-8, and may be anything.
    pub fn uri_path(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.values(option::URI_PATH)
    }

    /// The arguments of the query, not percent-encoded (RFC 7252 §5.10.1).
    pub fn uri_query(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.values(option::URI_QUERY)
    }

    /// What the payload is (RFC 7252 §5.10.3; numbers in RFC 7252 §12.3).
    pub fn content_format(&self) -> Option<u16> {
        self.uint(option::CONTENT_FORMAT).map(|value| value as u16)
    }

    /// What the client wants the payload to be (RFC 7252 §5.10.4).
    pub fn accept(&self) -> Option<u16> {
        self.uint(option::ACCEPT).map(|value| value as u16)
    }

    /// For how many seconds the response is fresh (RFC 7252 §5.10.5).
    pub fn max_age(&self) -> u32 {
        self.uint(option::MAX_AGE).map_or(DEFAULT_MAX_AGE, |value| value as u32)
    }

    /// The version of the representation, of 1 to 8 bytes; the first if there are several (RFC 7252 §5.10.6).
    pub fn etag(&self) -> Option<&'a [u8]> {
        self.value(option::ETAG)
    }

    /// In a request 0 to register and 1 to deregister, in a notification its sequence number (RFC 7641 §2).
    pub fn observe(&self) -> Option<u32> {
        self.uint(option::OBSERVE).map(|value| value as u32)
    }

    /// Block1: the part of the request body (RFC 7959 §2.1).
    ///
    /// # Errors
    /// [`ReservedSize`]: to be answered with 4.00.
    pub fn block1(&self) -> Result<Option<Block>, ReservedSize> {
        self.uint(option::BLOCK1).map(|value| Block::decode(value as u32)).transpose()
    }

    /// Block2: the part of the response body (RFC 7959 §2.1).
    ///
    /// # Errors
    /// [`ReservedSize`]: to be answered with 4.00.
    pub fn block2(&self) -> Result<Option<Block>, ReservedSize> {
        self.uint(option::BLOCK2).map(|value| Block::decode(value as u32)).transpose()
    }

    /// Block1 over a reliable transport, where SZX 7 is [`BERT`](crate::block::BERT).
    pub fn block1_reliable(&self) -> Option<Block> {
        self.uint(option::BLOCK1).map(|value| Block::decode_reliable(value as u32))
    }

    /// Block2 over a reliable transport, where SZX 7 is [`BERT`](crate::block::BERT).
    pub fn block2_reliable(&self) -> Option<Block> {
        self.uint(option::BLOCK2).map(|value| Block::decode_reliable(value as u32))
    }

    /// Size1: bytes of the request body, or in a 4.13 the most that are taken (RFC 7959 §4).
    pub fn size1(&self) -> Option<u32> {
        self.uint(option::SIZE1).map(|value| value as u32)
    }

    /// Size2: bytes of the response body; 0 in a request asks for it (RFC 7959 §4).
    pub fn size2(&self) -> Option<u32> {
        self.uint(option::SIZE2).map(|value| value as u32)
    }

    /// Whether the client does not want a response of this code (RFC 7967 §2). What is confirmable is acknowledged
    /// nevertheless: [`Endpoint::acknowledge`](crate::Endpoint::acknowledge).
    pub fn suppresses(&self, response: crate::Code) -> bool {
        let classes = self.uint(option::NO_RESPONSE).unwrap_or(0);
        response.is_response() && classes >> ((response.0 >> 5) - 1) & 1 == 1
    }

    /// The Echo value (RFC 9175 §2.2).
    pub fn echo(&self) -> Option<&'a [u8]> {
        self.value(option::ECHO)
    }

    /// The Request-Tag values (RFC 9175 §3.2).
    pub fn request_tags(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.values(option::REQUEST_TAG)
    }

    /// The first critical option that is not among `known`, or is there in a way that its specification excludes. A
    /// server answers 4.02; a client rejects a response, and with it a piggybacked one without a word (RFC 7252 §5.4.1).
    pub fn first_unrecognised(&self, known: &[u16]) -> Option<u16> {
        let mut last = None;
        self.options()
            .find(|&(number, value)| {
                let rule = Rule::of(number);
                let again = last.replace(number) == Some(number);
                let sound = rule.allows(value.len()) && (rule.repeatable || !again);
                is_critical(number) && !(sound && known.contains(&number))
            })
            .map(|(number, _)| number)
    }
}

/// A number of at most eight bytes.
fn uint(value: &[u8]) -> Option<u64> {
    (value.len() <= 8).then(|| value.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
}
