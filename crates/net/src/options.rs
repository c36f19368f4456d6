//! The options of a message in the making.

use coap_message_implementations::option_extension::encode_extensions;
use coap_message_implementations::option_iteration::{OptItem, OptPayloadReader};
use coap_numbers::option;
use smallvec::SmallVec;

/// Options, kept as they travel (RFC 7252 §3.1): in the order of their numbers, whatever the order they are added in.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Options {
    bytes: SmallVec<[u8; 32]>,
    last: u16,
}

impl Options {
    /// No options.
    pub const fn new() -> Self {
        Self { bytes: SmallVec::new_const(), last: 0 }
    }

    /// Adds an option, behind those of the same number. A value longer than 65,535 bytes is left out: no datagram takes
    /// it.
    #[must_use]
    pub fn with(mut self, number: u16, value: &[u8]) -> Self {
        self.push(number, value);
        self
    }

    /// Adds an option whose value is an unsigned integer, in as few bytes as it takes (RFC 7252 §3.2).
    #[must_use]
    pub fn with_uint(self, number: u16, value: u64) -> Self {
        let bytes = value.to_be_bytes();
        self.with(number, &bytes[value.leading_zeros() as usize / 8..])
    }

    pub(crate) fn push(&mut self, number: u16, value: &[u8]) {
        let Ok(len) = u16::try_from(value.len()) else { return };
        if number >= self.last {
            self.bytes.extend_from_slice(encode_extensions(number - self.last, len).as_ref());
            self.bytes.extend_from_slice(value);
            self.last = number;
            return;
        }
        let mut sorted = Self::new();
        let mut added = false;
        for (other, data) in self.iter() {
            if other > number && !added {
                sorted.push(number, value);
                added = true;
            }
            sorted.push(other, data);
        }
        *self = sorted;
    }

    /// The options of a message: of the options and payload, encoded, that follow its token.
    pub(crate) fn of(tail: &[u8]) -> Self {
        let mut options = Self::new();
        read(tail).for_each(|(number, value)| options.push(number, value));
        options
    }

    /// The options as (number, value), in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &[u8])> {
        read(&self.bytes)
    }

    /// The first value of this number.
    pub fn get(&self, number: u16) -> Option<&[u8]> {
        self.iter().find(|&(other, _)| other == number).map(|(_, value)| value)
    }

    /// The first value of this number, as an unsigned integer.
    pub fn uint(&self, number: u16) -> Option<u64> {
        self.get(number).and_then(uint)
    }

    /// Appends the options and `payload` to `buffer`.
    pub(crate) fn write(&self, payload: &[u8], buffer: &mut Vec<u8>) {
        buffer.extend_from_slice(&self.bytes);
        if !payload.is_empty() {
            buffer.push(0xff);
            buffer.extend_from_slice(payload);
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map()
            .entries(self.iter().map(|(number, value)| (number, value.escape_ascii().to_string())))
            .finish()
    }
}

/// The options of a message as (number, value), from what follows its token.
pub(crate) fn read(tail: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    OptPayloadReader::new(tail).map_while(|item| match item {
        OptItem::Option { number, data } => Some((number, data)),
        OptItem::Payload(_) | OptItem::Error(_) => None,
    })
}

/// An unsigned integer (RFC 7252 §3.2); nothing if it is longer than 8 bytes.
pub(crate) fn uint(value: &[u8]) -> Option<u64> {
    (value.len() <= 8).then(|| value.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
}

/// Whether an option must be understood by whoever gets it (RFC 7252 §5.4.1), and is not by this crate.
pub(crate) fn is_foreign(number: u16) -> bool {
    const UNDERSTOOD: [u16; 7] = [
        option::IF_MATCH,
        option::URI_HOST,
        option::IF_NONE_MATCH,
        option::URI_PORT,
        option::URI_PATH,
        option::URI_QUERY,
        option::ACCEPT,
    ];
    number % 2 == 1 && !UNDERSTOOD.contains(&number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn options_come_back_in_the_order_of_their_numbers(
            added in proptest::collection::vec((0u16..3000, proptest::collection::vec(any::<u8>(), 0..300)), 0..12),
        ) {
            let mut options = Options::new();
            for (number, value) in &added {
                options.push(*number, value);
            }
            let mut sorted = added.clone();
            sorted.sort_by_key(|&(number, _)| number);
            let read: Vec<_> = options.iter().map(|(number, value)| (number, value.to_vec())).collect();
            prop_assert_eq!(read, sorted);
        }
    }

    #[test]
    fn an_integer_takes_as_few_bytes_as_it_needs() {
        let options = Options::new().with_uint(14, 0).with_uint(14, 60).with_uint(14, 256);
        let values: Vec<_> = options.iter().map(|(_, value)| value).collect();
        assert_eq!(values, [&[][..], &[60], &[1, 0]]);
        assert_eq!(options.uint(14), Some(0));
        assert_eq!(uint(&[0, 0, 1]), Some(1));
    }
}
