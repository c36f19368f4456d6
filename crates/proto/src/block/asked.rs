//! The blocks of a response that a request asks for with Q-Block2 (RFC 9177 §4.4).

use coap_numbers::option;

use super::{Block, MAX_PAYLOADS, ReservedSize};
use crate::Message;

/// The blocks that one request asks for. The server sends each in a response of its own, with the token of the request.
/// They are at most a set ([`MAX_PAYLOADS`]), so that a request is answered with ten blocks at most. The client asks for
/// the others when it has these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    first: u32,
    /// Bit n is set if block `first` + n is asked for. Blocks further ahead are left out. The client asks for them again.
    bits: u64,
    szx: u8,
}

/// The error that Q-Block2 options do not name blocks as RFC 9177 §4.4 wants: answer with 4.00.
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
    /// Reads the options of a request. Returns `None` if it has no Q-Block2. A representation is cut into blocks of
    /// 2^(`max_szx` + 4) bytes at most, if the request is the first for it.
    ///
    /// # Errors
    /// [`BadBlocks`] if the numbers do not ascend, or the sizes differ or are reserved.
    pub fn of(request: &Message<'_>, max_szx: u8) -> Result<Option<Self>, BadBlocks> {
        let Some(named) = request.q_block2()? else { return Ok(None) };
        let szx = if named.num() == 0 { named.szx().min(max_szx) } else { named.szx() };
        let (mut asked, mut last) = (Self { first: named.num(), bits: 0, szx }, None);
        for value in request.values(option::Q_BLOCK2) {
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
            for ahead in (block.num()..end).map(|num| num - asked.first).take_while(|&ahead| ahead < 64) {
                asked.bits |= 1 << ahead;
            }
        }
        Ok(Some(asked))
    }

    /// Returns the bytes of the representation from the first of the blocks to the last.
    pub fn range(self) -> core::ops::Range<usize> {
        let end = self.blocks().last().map_or(0, |block| block.offset() + block.size());
        self.first as usize * super::size(self.szx)..end
    }

    /// Returns the blocks in ascending order. Blocks beyond the end of the representation have no
    /// [`Slice`](super::Slice). If the first block has none, answer with 4.00.
    pub fn blocks(self) -> impl Iterator<Item = Block> {
        let named = (0..64).filter(move |ahead| self.bits >> ahead & 1 == 1).map(move |n| self.first + n);
        named.map_while(move |num| Block::new(num, false, self.szx)).take(MAX_PAYLOADS as usize)
    }
}
