//! The blocks of a response that a request asks for with Q-Block2 (RFC 9177 §4.4).

use coap_numbers::option;

use super::{Block, MAX_PAYLOADS, ReservedSize};
use crate::Message;

/// The blocks of a response body that one request asks for: at most a set ([`MAX_PAYLOADS`]), so at most ten blocks.
///
/// The server sends each block in a separate response, with the token of the request. The client requests further
/// blocks once it has these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    first: u32,
    /// Bit n is set if block `first` + n is requested. Blocks from `first` + 64 on are ignored, so the client requests
    /// them again.
    bits: u64,
    szx: u8,
}

/// The error that Q-Block2 options are not as RFC 9177 §4.4 requires: answer with 4.00.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadBlocks;

impl From<ReservedSize> for BadBlocks {
    fn from(_: ReservedSize) -> Self {
        Self
    }
}

impl core::fmt::Display for BadBlocks {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the blocks of Q-Block2 are not of one size, or not in ascending order")
    }
}

impl core::error::Error for BadBlocks {}

impl Asked {
    /// Reads the Q-Block2 options of a request; `None` if it has none. The options state the block size. Only if the
    /// request asks for block 0, a larger size is reduced to 2^(`max_szx` + 4) bytes.
    ///
    /// # Errors
    /// [`BadBlocks`] if the numbers do not ascend, or the sizes differ or are reserved.
    pub fn of(request: &Message<'_>, max_szx: u8) -> Result<Option<Self>, BadBlocks> {
        let Some(named) = request.q_block2()? else { return Ok(None) };
        // Only from block 0 on may the server choose smaller blocks: any other number counts blocks of the size in the option.
        let szx = if named.num() == 0 { named.szx().min(max_szx) } else { named.szx() };
        let (mut asked, mut last) = (Self { first: named.num(), bits: 0, szx }, None);
        for value in request.values(option::Q_BLOCK2) {
            // `values` returns at most three bytes, so this fits.
            let value = value.iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte));
            let block = Block::decode(value)?;
            if block.szx() != named.szx() || last.is_some_and(|last| last >= block.num()) {
                return Err(BadBlocks);
            }
            last = Some(block.num());
            // With M the option asks for this block and the later ones of its set. For block 0 it asks for the whole
            // body, and the server sends the first set.
            let set = MAX_PAYLOADS - block.num() % MAX_PAYLOADS;
            let end = block.num() + if block.more() { set } else { 1 };
            // The numbers ascend, so none is below `first`.
            for ahead in (block.num()..end).map(|num| num - asked.first).take_while(|&ahead| ahead < 64) {
                asked.bits |= 1 << ahead;
            }
        }
        Ok(Some(asked))
    }

    /// Returns the range of bytes of the representation from the start of the first requested block to the end of the
    /// last one.
    pub fn range(self) -> core::ops::Range<usize> {
        let end = self.blocks().last().map_or(0, |block| block.offset() + block.size());
        self.first as usize * super::size(self.szx)..end
    }

    /// Returns the requested blocks in ascending order. Some may lie beyond the end of the representation:
    /// [`Slice::new`](super::Slice::new) returns `None` for them. If it does so for the first block, answer with 4.00.
    pub fn blocks(self) -> impl Iterator<Item = Block> {
        let named = (0..64).filter(move |ahead| self.bits >> ahead & 1 == 1).map(move |n| self.first + n);
        // The last blocks of a set may lie beyond the largest number.
        named.map_while(move |num| Block::new(num, false, self.szx)).take(MAX_PAYLOADS as usize)
    }
}
