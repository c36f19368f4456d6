//! The transfer of a request body to a server (RFC 7959 §2.3, §2.5).

use core::ops::Range;

use coap_numbers::code;

use super::transfer::Piece;
use super::{BERT, Block, MAX_SZX, TransferError};
use crate::Message;

/// A request body of which blocks are sent.
#[derive(Clone, Debug)]
pub(super) struct Upload {
    /// The number of bytes that the server has.
    offset: usize,
    /// The length of the body, bytes.
    len: usize,
    szx: u8,
    /// The most bytes of a payload.
    step: usize,
    /// True if the transport is reliable, so that SZX 7 is [`BERT`].
    reliable: bool,
    /// The number of times that the upload had to begin again.
    restarts: u8,
}

/// The number of times that an upload begins again because the server has discarded the blocks before. A
/// server under load may do that more than once. A server that has no room for the body does it each time.
const MAX_RESTARTS: u8 = 4;

/// The meaning of the response to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockAnswer {
    /// The next block is to be sent.
    Next,
    /// This is the response to the request, or its first block.
    Final,
}

impl Upload {
    pub(super) const fn new(len: usize, szx: u8) -> Self {
        Self { offset: 0, len, szx, step: super::size(szx), reliable: false, restarts: 0 }
    }

    /// Creates an upload over a reliable transport, in payloads of at most `room` bytes.
    pub(super) fn reliable(len: usize, room: usize) -> Self {
        let whole = (BERT, len);
        let (szx, step) =
            if len <= room { whole } else { super::step(BERT, room).unwrap_or((0, super::size(0))) };
        Self { offset: 0, len, szx, step, reliable: true, restarts: 0 }
    }

    /// Returns which bytes to send now.
    pub(super) fn range(&self) -> Range<usize> {
        self.offset..self.len.min(self.offset + self.step)
    }

    /// Returns whether these are the last bytes.
    pub(super) fn is_last(&self) -> bool {
        self.range().end == self.len
    }

    /// Returns the block of these bytes, as the only request under way.
    pub(super) fn due(&self) -> Piece {
        let num = u32::try_from(self.offset / super::size(self.szx)).unwrap_or(u32::MAX);
        Piece { num, szx: self.szx, alone: true }
    }

    /// Returns the block of these bytes; `None` if they are the whole body.
    ///
    /// # Errors
    /// [`TransferError::TooLarge`] if the block has no number.
    pub(super) fn block(&self) -> Result<Option<Block>, TransferError> {
        if self.offset == 0 && self.is_last() {
            return Ok(None);
        }
        Block::new(self.due().num, !self.is_last(), self.szx).ok_or(TransferError::TooLarge).map(Some)
    }

    /// Makes blocks no larger than the server wants them.
    fn shrink(&mut self, szx: u8) {
        if szx < self.szx {
            (self.szx, self.step) = (szx, super::size(szx));
        }
    }

    /// Returns the size exponent to begin again with after 4.13 (RFC 7959 §2.9.3). The server names the size in
    /// Block1, or without it in Size1. To a body without Block1, 4.13 alone is a hint to try blocks. Returns
    /// `None` if there are no smaller blocks, or the server does not want these.
    fn smaller(&self, ours: Option<Block>, theirs: Option<Block>, size1: Option<u32>) -> Option<u8> {
        let named = theirs.map(Block::size).or(size1.map(|size| size as usize));
        let size = match ours {
            Some(_) => named?,
            None => named.unwrap_or(usize::MAX).min(self.len.checked_sub(1)?),
        };
        let szx = size.checked_ilog2()?.checked_sub(4)?.min(MAX_SZX.into()) as u8;
        (szx < self.szx).then_some(szx)
    }

    /// Takes the response to a block.
    pub(super) fn handle(&mut self, response: &Message<'_>) -> Result<BlockAnswer, TransferError> {
        let ours = self.block()?;
        let theirs = if self.reliable { response.block1_reliable() } else { response.block1()? };
        match response.code.0 {
            code::REQUEST_ENTITY_INCOMPLETE if self.offset > 0 && self.restarts < MAX_RESTARTS => {
                self.offset = 0;
                self.restarts += 1;
                Ok(BlockAnswer::Next)
            }
            code::REQUEST_ENTITY_TOO_LARGE => match self.smaller(ours, theirs, response.size1()) {
                // Each time the blocks are smaller, so this ends.
                Some(szx) => {
                    self.offset = 0;
                    self.shrink(szx);
                    Ok(BlockAnswer::Next)
                }
                None => Ok(BlockAnswer::Final),
            },
            code if code == code::CONTINUE || code >> 5 == 2 => match (ours, theirs) {
                (Some(ours), Some(theirs)) if ours.num() != theirs.num() => Err(TransferError::OutOfPlace),
                // The answer to a block before the last ends nothing. It is 2.31, or without M a success of this block alone
                // (RFC 7959 §2.3). Servers written to drafts of RFC 7959 have 2.04 with M in place of 2.31.
                (Some(ours), Some(theirs)) if ours.more() => {
                    self.offset = self.range().end;
                    self.shrink(theirs.szx());
                    Ok(BlockAnswer::Next)
                }
                _ if code == code::CONTINUE => Err(TransferError::OutOfPlace),
                // The server has taken the block for the whole body.
                (Some(ours), None) if ours.more() => {
                    let sent = self.range().end;
                    Err(TransferError::Unfinished { code: response.code, sent, len: self.len })
                }
                _ => Ok(BlockAnswer::Final),
            },
            _ => Ok(BlockAnswer::Final),
        }
    }
}
