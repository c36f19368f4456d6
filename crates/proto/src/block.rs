//! Bodies larger than a datagram: block-wise transfer (RFC 7959).

mod download;
mod reassembly;
mod slice;
mod transfer;
mod upload;

use core::fmt;

pub use reassembly::{Assembled, Bounds, Reassembly, Unverified};
pub use slice::{Part, Slice, etag};
pub use transfer::{Progress, Transfer, TransferError, Transferred};

/// The value of a Block1 or Block2 option: which part of a body (RFC 7959 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    num: u32,
    more: bool,
    szx: u8,
}

/// The largest block number (RFC 7959 §2.2).
pub const MAX_NUM: u32 = 0xf_ffff;

/// The largest size exponent: blocks of 1024 bytes (RFC 7959 §2.2).
pub const MAX_SZX: u8 = 6;

/// The size exponent that over reliable transports stands for any number of blocks of 1024 bytes (BERT, RFC 8323 §6).
pub const BERT: u8 = 7;

/// SZX 7 is reserved where messages travel in datagrams (RFC 7959 §2.2); over streams it is BERT (RFC 8323 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservedSize;

impl fmt::Display for ReservedSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("block size exponent 7 is reserved")
    }
}

impl core::error::Error for ReservedSize {}

impl Block {
    /// Block `num` (at most [`MAX_NUM`]) of 2^(`szx` + 4) bytes (at most [`MAX_SZX`], or [`BERT`] over reliable
    /// transports), and whether there are more.
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
        Self { num: value >> 4 & MAX_NUM, more: value & 8 != 0, szx: value as u8 & 7 }
    }

    /// The value of the option.
    pub const fn encode(self) -> u32 {
        self.num << 4 | (self.more as u32) << 3 | self.szx as u32
    }

    /// NUM: how many blocks of this size come before.
    pub const fn num(self) -> u32 {
        self.num
    }

    /// M: whether more blocks follow.
    pub const fn more(self) -> bool {
        self.more
    }

    /// SZX: the size exponent, 0 to 6, or [`BERT`].
    pub const fn szx(self) -> u8 {
        self.szx
    }

    /// Bytes of a block; of each of them with [`BERT`].
    pub const fn size(self) -> usize {
        size(self.szx)
    }

    /// Whether a payload of so many bytes is one of this block: a full one where others follow.
    pub(crate) const fn admits(self, len: usize) -> bool {
        match (self.szx, self.more) {
            (BERT, true) => len > 0 && len.is_multiple_of(self.size()),
            (BERT, false) => true,
            (_, true) => len == self.size(),
            (_, false) => len <= self.size(),
        }
    }

    /// Bytes of the body before this block.
    pub const fn offset(self) -> usize {
        self.num as usize * self.size()
    }
}

/// Bytes of a block.
const fn size(szx: u8) -> usize {
    16 << if szx > MAX_SZX { MAX_SZX } else { szx }
}

/// Of how many bytes the payloads of an endpoint with this size exponent are, if no more than `room` fit: with [`BERT`]
/// as many blocks as there is room for. The exponent is smaller where there is not even room for one.
const fn step(szx: u8, room: usize) -> Option<(u8, usize)> {
    if szx < BERT {
        return Some((szx, size(szx)));
    }
    match room / size(BERT) {
        0 if room < size(0) => None,
        0 => {
            let szx = room.ilog2() as u8 - 4;
            Some((szx, size(szx)))
        }
        blocks => Some((BERT, blocks * size(BERT))),
    }
}

#[cfg(test)]
mod tests;
