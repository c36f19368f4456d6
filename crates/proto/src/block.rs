//! Block-wise transfer of bodies that are larger than a datagram (RFC 7959).

mod asked;
mod download;
mod missing;
mod partial;
mod quick;
mod reassembly;
mod slice;
mod transfer;
mod upload;
mod window;

use core::fmt;

use coap_numbers::option;

pub use asked::{Asked, BadBlocks};
pub use missing::MISSING_BLOCKS;
pub use partial::Partial;
pub use reassembly::{Assembled, Bounds, Overdue, Reassembly, Unverified};
pub use slice::{Part, Slice, etag};
pub use transfer::{Piece, Progress, Transfer, TransferError, Transferred};

/// The value of a Block1 or Block2 option, which names a part of a body (RFC 7959 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    num: u32,
    more: bool,
    szx: u8,
}

/// The option numbers of Block1, Block2, Q-Block1 and Q-Block2 (RFC 7959 §2.1, RFC 9177 §4.1).
pub const OPTIONS: [u16; 4] = [option::BLOCK1, option::BLOCK2, option::Q_BLOCK1, option::Q_BLOCK2];

/// The largest block number (RFC 7959 §2.2).
pub const MAX_NUM: u32 = 0xf_ffff;

/// The largest size exponent, for blocks of 1024 bytes (RFC 7959 §2.2).
pub const MAX_SZX: u8 = 6;

/// The number of blocks that a sender sends before it waits for the receiver. Such blocks form a *set* (MAX_PAYLOADS,
/// RFC 9177 §7.2).
pub const MAX_PAYLOADS: u32 = 10;

/// The size exponent 7: over a reliable transport, one message carries any number of blocks of 1024 bytes (BERT, RFC
/// 8323 §6).
pub const BERT: u8 = 7;

/// The error that a block in a datagram has SZX 7, which is reserved there (RFC 7959 §2.2). Over streams it is [`BERT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservedSize;

impl fmt::Display for ReservedSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("block size exponent 7 is reserved")
    }
}

impl core::error::Error for ReservedSize {}

impl Block {
    /// Creates the value for block `num` of 2^(`szx` + 4) bytes. `more` is true if blocks follow. Returns
    /// `None` if `num` is above [`MAX_NUM`] or `szx` above [`BERT`].
    pub const fn new(num: u32, more: bool, szx: u8) -> Option<Self> {
        if num <= MAX_NUM && szx <= BERT { Some(Self { num, more, szx }) } else { None }
    }

    /// Reads the value of an option.
    ///
    /// # Errors
    /// [`ReservedSize`] for SZX 7.
    pub const fn decode(value: u32) -> Result<Self, ReservedSize> {
        match Self::decode_reliable(value) {
            Self { szx: BERT, .. } => Err(ReservedSize),
            block => Ok(block),
        }
    }

    /// Reads the value of an option that came over a reliable transport, where SZX 7 is [`BERT`].
    pub const fn decode_reliable(value: u32) -> Self {
        // The option has 24 bits. More of them in `value` would exceed the range of NUM.
        Self { num: value >> 4 & MAX_NUM, more: value & 8 != 0, szx: value as u8 & 7 }
    }

    /// Returns the value of the option.
    pub const fn encode(self) -> u32 {
        self.num << 4 | (self.more as u32) << 3 | self.szx as u32
    }

    /// Returns NUM: how many blocks of this size come before this one.
    pub const fn num(self) -> u32 {
        self.num
    }

    /// Returns M: whether more blocks follow.
    pub const fn more(self) -> bool {
        self.more
    }

    /// Returns SZX: the size exponent, 0 to 6, or [`BERT`].
    pub const fn szx(self) -> u8 {
        self.szx
    }

    /// Returns the size of a block in bytes. A message with [`BERT`] may have several blocks of this size.
    pub const fn size(self) -> usize {
        size(self.szx)
    }

    /// Returns whether this block may have a payload of `len` bytes. A block that others follow must be full; the last
    /// one may be shorter.
    pub(crate) const fn admits(self, len: usize) -> bool {
        match (self.szx, self.more) {
            // Only the payload with the end of the body may end within a block of 1024 bytes (RFC 8323 §6).
            (BERT, true) => len > 0 && len.is_multiple_of(self.size()),
            (BERT, false) => true,
            (_, true) => len == self.size(),
            (_, false) => len <= self.size(),
        }
    }

    /// Returns how many bytes of the body come before this block.
    pub const fn offset(self) -> usize {
        // A body has at most 2²⁰ blocks of 1024 bytes, so this fits 32 bits.
        self.num as usize * self.size()
    }
}

/// Returns the size in bytes of a block with this size exponent.
const fn size(szx: u8) -> usize {
    // BERT numbers its blocks in units of 1024 bytes (RFC 8323 §6).
    16 << if szx > MAX_SZX { MAX_SZX } else { szx }
}

/// Returns the size exponent and the payload length, in bytes, for messages with `room` bytes for blocks. Only [`BERT`]
/// adapts to `room`.
///
/// With [`BERT`] a payload has as many blocks of 1024 bytes as fit. If not even one fits, the size exponent is reduced.
/// Returns `None` if even a block of 16 bytes does not fit.
const fn step(szx: u8, room: usize) -> Option<(u8, usize)> {
    if szx < BERT {
        return Some((szx, size(szx)));
    }
    match room / size(BERT) {
        0 if room < size(0) => None,
        0 => {
            // There is room for 16 to 1023 bytes here, so the exponent is 0 to 5.
            let szx = room.ilog2() as u8 - 4;
            Some((szx, size(szx)))
        }
        blocks => Some((BERT, blocks * size(BERT))),
    }
}

#[cfg(test)]
mod tests;
