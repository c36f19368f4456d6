//! Arguments that Python may pass in more than one type.

use pyo3::prelude::*;

/// Bytes, or text, which becomes UTF-8.
#[derive(FromPyObject)]
pub(crate) enum TextOrBytes {
    #[pyo3(annotation = "str")]
    Text(String),
    #[pyo3(annotation = "bytes")]
    Bytes(Vec<u8>),
}

impl TextOrBytes {
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// The value of an option: bytes, text, or a number.
#[derive(FromPyObject)]
pub(crate) enum OptionValue {
    #[pyo3(annotation = "str")]
    Text(String),
    #[pyo3(annotation = "int")]
    Number(u64),
    #[pyo3(annotation = "bytes")]
    Bytes(Vec<u8>),
}

impl OptionValue {
    /// Returns the bytes of the value. A number has no leading zeros (RFC 7252 §3.2).
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_bytes(),
            // For 0 all eight bytes are leading zeros, and the value is empty.
            Self::Number(number) => number.to_be_bytes()[number.leading_zeros() as usize / 8..].to_vec(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

/// Options as (number, value).
pub(crate) type OptionPairs = Vec<(u16, OptionValue)>;
