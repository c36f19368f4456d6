//! The part of a body that a transfer has received when it ends early.

use alloc::vec::Vec;

/// The first part of a body, with the ETag of its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    /// The ETag of all its blocks.
    pub etag: Vec<u8>,
    /// The bytes before the first missing block.
    pub body: Vec<u8>,
}
