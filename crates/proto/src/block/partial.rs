//! The part of a body that a transfer has brought when it ends early.

use alloc::vec::Vec;

/// The front of a body, with the ETag of its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    /// The ETag of all its blocks.
    pub etag: Vec<u8>,
    /// The bytes before the first block that was missing.
    pub body: Vec<u8>,
}
