//! CoAP messages in datagrams (RFC 7252 §3).
//!
//! The four header bytes and the token are read and written here. [`coap_message_implementations`] reads and writes the
//! options. The options and the payload, which follow the token, are together called the *tail*.

use alloc::vec::Vec;
use core::hash::Hasher;

use coap_message_implementations::option_extension::encode_extensions;
use coap_message_implementations::option_iteration::{OptItem, OptPayloadReader};
use coap_numbers::option;
use siphasher::sip::SipHasher13;

use crate::code::Code;

/// The type of a message (RFC 7252 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// CON, which asks for an acknowledgement.
    Confirmable = 0,
    /// NON, which asks for no acknowledgement.
    NonConfirmable = 1,
    /// ACK, empty or with a piggybacked response.
    Acknowledgement = 2,
    /// RST: the recipient could not process the message.
    Reset = 3,
}

/// A token: 0 to 8 bytes that the client has chosen (RFC 7252 §5.3.1).
///
/// A request may have a longer token (RFC 8974). The value is then a digest of 8 bytes, and the endpoint that received
/// the request stores the bytes of the token for the answer.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Token {
    bytes: [u8; 8],
    len: u8,
}

/// The value of `len` in a token that is the digest of a longer one.
const EXTENDED: u8 = u8::MAX;

/// The largest ordinal that other implementations are assumed to write at the end of a token.
const MAX_ORDINAL: u8 = 32;

impl Token {
    /// The empty token.
    pub const EMPTY: Self = Self { bytes: [0; 8], len: 0 };

    /// Creates a token of these bytes. Returns `None` if there are more than 8.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut token = Self { bytes: [0; 8], len: u8::try_from(bytes.len()).ok()? };
        token.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(token)
    }

    /// Creates the digest of a token of more than 8 bytes.
    #[cold]
    fn digest(bytes: &[u8]) -> Self {
        let mut hasher = SipHasher13::new();
        hasher.write(bytes);
        Self { bytes: hasher.finish().to_be_bytes(), len: EXTENDED }
    }

    /// Returns whether this is the digest of a token of more than 8 bytes.
    pub fn is_extended(&self) -> bool {
        self.len == EXTENDED
    }

    /// Returns whether the token has 8 bytes, so that no byte can be added.
    pub fn is_full(&self) -> bool {
        usize::from(self.len) >= self.bytes.len()
    }

    /// Returns this token with one more byte at its end. A full token is returned unchanged.
    #[must_use]
    pub fn with(mut self, byte: u8) -> Self {
        if let Some(last) = self.bytes.get_mut(usize::from(self.len)) {
            *last = byte;
            self.len += 1;
        }
        self
    }

    /// Returns the token without the bytes at its end that may be an ordinal, 0 to [`MAX_ORDINAL`]. Copies of one
    /// message have the same base, even if their sender marks each transmission with its ordinal. Tokens that differ
    /// only in such bytes also have the same base.
    pub(crate) fn base(&self) -> u64 {
        let mut base = u64::from_be_bytes(self.bytes);
        while base != 0 {
            // The last byte that is not 0. The bytes behind the token are 0, and an ordinal may be 0, too.
            let end = base.trailing_zeros() & !7;
            if (base >> end) as u8 > MAX_ORDINAL {
                break;
            }
            base &= !(0xff << end);
        }
        base
    }

    /// Returns the last byte of `longer` if that token is this one with a byte added, otherwise `None`.
    pub fn byte_beyond(&self, longer: &Self) -> Option<u8> {
        let len = usize::from(self.len);
        (!self.is_full() && longer.len == self.len + 1 && longer.bytes[..len] == self.bytes[..len])
            .then(|| longer.bytes[len])
    }
}

impl core::ops::Deref for Token {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len).min(self.bytes.len())]
    }
}

impl core::fmt::Debug for Token {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("0x")?;
        self.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A message, which borrows the received bytes.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// CON, NON, ACK or RST.
    pub kind: Kind,
    /// The method or the response code.
    pub code: Code,
    /// The Message ID.
    pub message_id: u16,
    /// The token.
    pub token: Token,
    /// The bytes of a token of more than 8 bytes (RFC 8974); empty for any other.
    pub extended_token: &'a [u8],
    /// Options and payload, encoded.
    pub tail: &'a [u8],
    /// The value of the Rexmit-Cnt option, if the message has it.
    pub rexmit_cnt: Option<u8>,
}

/// The reason why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The bytes are shorter than a header, or have another version than 1. Such messages are ignored silently (RFC 7252 §3).
    NotCoap,
    /// The header is valid, but the rest is not. Such messages are rejected (RFC 7252 §4.2, §4.3).
    Format {
        /// The type in the header.
        kind: Kind,
        /// The Message ID in the header.
        message_id: u16,
    },
}

/// The number of the Rexmit-Cnt option. draft-ietf-core-fasor-02 §4.4 leaves it unassigned; this number is from the
/// experimental range (RFC 7252 §12.2). The option is elective, safe to forward and not part of the cache key.
pub const REXMIT_CNT: u16 = 65020;

/// The value of Rexmit-Cnt in a request that tests whether the peer echoes the option.
pub(crate) const REXMIT_CNT_PROBE: u8 = 255;

impl<'a> Message<'a> {
    /// Reads a message from a datagram.
    ///
    /// # Errors
    /// [`Malformed`] says how RFC 7252 requires the bytes to be treated.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let &[first, code, high, low, ref rest @ ..] = bytes else { return Err(Malformed::NotCoap) };
        // Messages of unknown versions are ignored silently (RFC 7252 §3).
        if first >> 6 != 1 {
            return Err(Malformed::NotCoap);
        }
        let kind = match first >> 4 & 3 {
            0 => Kind::Confirmable,
            1 => Kind::NonConfirmable,
            2 => Kind::Acknowledgement,
            _ => Kind::Reset,
        };
        let message_id = u16::from_be_bytes([high, low]);
        // From here on an error has a type and a Message ID, so that the message can be rejected.
        let malformed = Malformed::Format { kind, message_id };

        let (token, extended_token, tail) = if first & 15 <= 8 {
            let (token, tail) = rest.split_at_checked(usize::from(first & 15)).ok_or(malformed)?;
            (Token::new(token).ok_or(malformed)?, &[][..], tail)
        } else {
            let (token, tail) = split_extended(first & 15, rest).ok_or(malformed)?;
            (Token::digest(token), token, tail)
        };
        let code = Code(code);
        // An empty message has four bytes (RFC 7252 §4.1). Classes 1, 6 and 7 are reserved in datagrams (§3).
        if code == Code::EMPTY && !rest.is_empty() || matches!(code.0 >> 5, 1 | 6 | 7) {
            return Err(malformed);
        }
        let mut rexmit_cnt = None;
        for item in OptPayloadReader::new(tail) {
            match item {
                // A second one counts as unrecognised (RFC 7252 §5.4.5). One that is too long does, too
                // (§5.4.3).
                OptItem::Option { number: REXMIT_CNT, data } => rexmit_cnt = rexmit_cnt.or(small_uint(data)),
                OptItem::Option { .. } => {}
                // A payload marker without a payload is a format error (RFC 7252 §3).
                OptItem::Payload([]) | OptItem::Error(_) => return Err(malformed),
                OptItem::Payload(_) => break,
            }
        }
        Ok(Self { kind, code, message_id, token, extended_token, tail, rexmit_cnt })
    }

    /// Returns the header and the token of a truncated message, as a message without options and payload. Returns `None` if
    /// they are incomplete.
    pub fn head(bytes: &[u8]) -> Option<&[u8]> {
        let &[first, _, _, _, ref rest @ ..] = bytes else { return None };
        let tail = match usize::from(first & 15) {
            len @ 0..=8 => rest.get(len..)?,
            _ => split_extended(first & 15, rest)?.1,
        };
        bytes.get(..bytes.len() - tail.len())
    }

    /// Appends the message to `buffer`.
    pub fn write(&self, buffer: &mut Vec<u8>) {
        self.write_head(buffer);
        buffer.extend_from_slice(self.tail);
    }

    /// Appends the message to `buffer`, with the Rexmit-Cnt option inserted if there is a `count`.
    pub(crate) fn write_marked(&self, count: Option<u8>, buffer: &mut Vec<u8>) {
        self.write_head(buffer);
        match count {
            Some(count) => write_with_rexmit_cnt(self.tail, count, buffer),
            None => buffer.extend_from_slice(self.tail),
        }
    }

    fn write_head(&self, buffer: &mut Vec<u8>) {
        let [high, low] = self.message_id.to_be_bytes();
        let first = 1 << 6 | (self.kind as u8) << 4;
        if self.token.is_extended() {
            return write_extended([first, self.code.0, high, low], self.extended_token, buffer);
        }
        buffer.extend_from_slice(&[first | self.token.len, self.code.0, high, low]);
        buffer.extend_from_slice(&self.token);
    }

    /// Creates a message of four bytes: an empty acknowledgement, a Reset or a ping.
    pub const fn empty(kind: Kind, message_id: u16) -> Self {
        Self {
            kind,
            code: Code::EMPTY,
            message_id,
            token: Token::EMPTY,
            extended_token: &[],
            tail: &[],
            rexmit_cnt: None,
        }
    }

    /// Returns whether a server may execute this request more than once, with the same effect and the same answer.
    ///
    /// The method must be idempotent. Block1 (RFC 7959), Q-Block1 (RFC 9177), If-Match and If-None-Match (RFC 7252 §5.10.8)
    /// make the effect depend on earlier requests. GET is not affected by them.
    pub(crate) fn is_repeatable(&self) -> bool {
        const DEPENDENT: [u16; 4] =
            [option::IF_MATCH, option::IF_NONE_MATCH, option::BLOCK1, option::Q_BLOCK1];
        self.code == Code::GET
            || self.code.is_idempotent() && !self.options().any(|(number, _)| DEPENDENT.contains(&number))
    }

    /// Returns the options in sequence, as (number, value).
    pub fn options(&self) -> impl Iterator<Item = (u16, &'a [u8])> + use<'a> {
        OptPayloadReader::new(self.tail).map_while(|item| match item {
            OptItem::Option { number, data } => Some((number, data)),
            _ => None,
        })
    }

    /// Returns the payload, empty if there is none.
    pub fn payload(&self) -> &'a [u8] {
        OptPayloadReader::new(self.tail)
            .find_map(|item| match item {
                OptItem::Payload(payload) => Some(payload),
                _ => None,
            })
            .unwrap_or(&[])
    }
}

/// Writes the header and a token whose length may need additional bytes (RFC 8974 §2.1).
#[cold]
fn write_extended(mut header: [u8; 4], token: &[u8], buffer: &mut Vec<u8>) {
    let extended = token.len().saturating_sub(13);
    // TKL is the length up to 12. 13 and 14 announce one and two bytes with the rest of it (RFC 8974 §2.1).
    let (tkl, skip) = match extended {
        0 if token.len() <= 12 => (token.len() as u8, 2),
        0..256 => (13, 1),
        _ => (14, 0),
    };
    header[0] |= tkl;
    buffer.extend_from_slice(&header);
    // A datagram has no room for a token whose length does not fit.
    let len = if tkl == 14 { u16::try_from(extended - 256).unwrap_or(u16::MAX) } else { extended as u16 };
    buffer.extend_from_slice(&len.to_be_bytes()[skip..]);
    buffer.extend_from_slice(token);
}

/// Returns the token at the start of `rest`, and the bytes after it. `tkl` is the Token Length field: 9 to 12, or 13 or
/// 14 if additional bytes with the length come first (RFC 8974 §2.1).
#[cold]
fn split_extended(tkl: u8, rest: &[u8]) -> Option<(&[u8], &[u8])> {
    match (tkl, rest) {
        (9..=12, rest) => rest.split_at_checked(tkl.into()),
        (13, &[len, ref rest @ ..]) => rest.split_at_checked(13 + usize::from(len)),
        (14, &[high, low, ref rest @ ..]) => {
            rest.split_at_checked(269 + usize::from(u16::from_be_bytes([high, low])))
        }
        // 15 is reserved (RFC 8974 §2.1).
        _ => None,
    }
}

/// Appends `tail` to `buffer` with the Rexmit-Cnt option inserted.
fn write_with_rexmit_cnt(tail: &[u8], count: u8, buffer: &mut Vec<u8>) {
    let mut last = 0;
    let mut payload_len = 0;
    for item in OptPayloadReader::new(tail) {
        match item {
            OptItem::Option { number, .. } => last = number,
            // The marker has one byte.
            OptItem::Payload(payload) => payload_len = payload.len() + 1,
            OptItem::Error(_) => break,
        }
    }
    // Options are written in the order of their numbers. Numbers beyond this one are almost never used: then
    // the message goes without the option.
    let Some(delta) = REXMIT_CNT.checked_sub(last) else { return buffer.extend_from_slice(tail) };
    let (options, payload) = tail.split_at(tail.len() - payload_len);
    buffer.extend_from_slice(options);
    // A uint of 0 has no bytes (RFC 7252 §3.2).
    buffer.extend_from_slice(encode_extensions(delta, u16::from(count != 0)).as_ref());
    if count != 0 {
        buffer.push(count);
    }
    buffer.extend_from_slice(payload);
}

/// Reads a uint option (RFC 7252 §3.2) of at most one byte.
fn small_uint(data: &[u8]) -> Option<u8> {
    match *data {
        [] => Some(0),
        [value] => Some(value),
        _ => None,
    }
}
