//! Bodies larger than a datagram: block-wise transfer (RFC 7959).

mod download;
mod reassembly;
mod slice;
mod transfer;
mod upload;

use core::fmt;

pub use reassembly::{Assembled, Bounds, Reassembly};
pub use slice::{Slice, etag};
pub use transfer::{Progress, Transfer, TransferError};

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
    /// Block `num` (at most [`MAX_NUM`]) of 2^(`szx` + 4) bytes (at most [`MAX_SZX`]), and whether there are more.
    pub const fn new(num: u32, more: bool, szx: u8) -> Option<Self> {
        if num <= MAX_NUM && szx <= MAX_SZX { Some(Self { num, more, szx }) } else { None }
    }

    /// Reads the value of an option.
    ///
    /// # Errors
    /// [`ReservedSize`] for SZX 7.
    pub const fn decode(value: u32) -> Result<Self, ReservedSize> {
        match Self::new(value >> 4 & MAX_NUM, value & 8 != 0, value as u8 & 7) {
            Some(block) => Ok(block),
            None => Err(ReservedSize),
        }
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

    /// SZX: the size exponent, 0 to 6.
    pub const fn szx(self) -> u8 {
        self.szx
    }

    /// Bytes of a block.
    pub const fn size(self) -> usize {
        16 << self.szx
    }

    /// Bytes of the body before this block.
    pub const fn offset(self) -> usize {
        self.num as usize * self.size()
    }
}

#[cfg(test)]
mod tests;
