//! What a transfer leaves that ends before its body is whole.

use alloc::vec::Vec;

/// The front of a body, with the ETag that tells its version from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    /// The ETag of all its blocks.
    pub etag: Vec<u8>,
    /// The bytes before the first block that was missing.
    pub body: Vec<u8>,
}
