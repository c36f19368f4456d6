//! The numbers of missing blocks in a 4.08 response (RFC 9177 §5).

use alloc::vec::Vec;

use super::MAX_NUM;

/// The Content-Format of a list of missing blocks: `application/missing-blocks+cbor-seq` (RFC 9177 §12.3).
pub const MISSING_BLOCKS: u16 = 272;

/// Writes block numbers as a CBOR sequence of unsigned integers.
pub(super) fn write(numbers: impl Iterator<Item = u32>) -> Vec<u8> {
    numbers.fold(Vec::new(), |mut bytes, number| {
        let [_, high, mid, low] = number.to_be_bytes();
        match number {
            0..24 => bytes.push(low),
            24..0x100 => bytes.extend([0x18, low]),
            0x100..0x1_0000 => bytes.extend([0x19, mid, low]),
            // A block number has 20 bits, so the first of its four bytes is 0.
            _ => bytes.extend([0x1a, 0, high, mid, low]),
        }
        bytes
    })
}

/// Reads block numbers from a CBOR sequence. Returns `None` unless there are one or more, in ascending order.
pub(super) fn read(mut bytes: &[u8]) -> Option<Vec<u32>> {
    let mut numbers: Vec<u32> = Vec::new();
    while let Some((&head, rest)) = bytes.split_first() {
        let len = match head {
            // Unsigned integers (major type 0) of up to 32 bits; one below 24 is the head itself (RFC 8949 §3.1).
            0..24 => 0,
            0x18 => 1,
            0x19 => 2,
            0x1a => 4,
            _ => return None,
        };
        let (value, rest) = rest.split_at_checked(len)?;
        let number = match value {
            [] => u32::from(head),
            value => value.iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte)),
        };
        let ascends = numbers.last().is_none_or(|&last| last < number);
        if number > MAX_NUM || !ascends {
            return None;
        }
        numbers.push(number);
        bytes = rest;
    }
    (!numbers.is_empty()).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn missing_block_numbers_are_encoded_as_cbor_of_rfc_8949() {
        let bytes = write([0, 23, 24, 255, 256, 65_535, 65_536, MAX_NUM].into_iter());
        assert_eq!(bytes, b"\0\x17\x18\x18\x18\xff\x19\x01\0\x19\xff\xff\x1a\0\x01\0\0\x1a\0\x0f\xff\xff");
        for bad in [&b""[..], b"\x01\x01", b"\x02\x01", b"\x18", b"\x1a\0\x10\0\0", b"\x20", b"\x81\x01"] {
            assert_eq!(read(bad), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn missing_block_numbers_are_decoded_and_other_bytes_refused(
            numbers in proptest::collection::btree_set(0..=MAX_NUM, 1..50),
            noise in proptest::collection::vec(any::<u8>(), 0..50),
        ) {
            let numbers: Vec<_> = numbers.into_iter().collect();
            prop_assert_eq!(read(&write(numbers.iter().copied())), Some(numbers));
            let ascending = read(&noise).is_none_or(|numbers| numbers.is_sorted());
            prop_assert!(ascending);
        }
    }
}
