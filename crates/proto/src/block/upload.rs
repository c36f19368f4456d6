//! The transfer of a request body to a server (RFC 7959 §2.3, §2.5).

use core::ops::Range;

use coap_numbers::code;

use super::{BERT, Block, TransferError};
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

    /// Returns the block of these bytes; `None` if they are the whole body.
    ///
    /// # Errors
    /// [`TransferError::TooLarge`] if the block has no number.
    pub(super) fn block(&self) -> Result<Option<Block>, TransferError> {
        if self.offset == 0 && self.is_last() {
            return Ok(None);
        }
        let num = u32::try_from(self.offset / super::size(self.szx)).unwrap_or(u32::MAX);
        Block::new(num, !self.is_last(), self.szx).ok_or(TransferError::TooLarge).map(Some)
    }

    /// Makes blocks no larger than the server wants them.
    fn shrink(&mut self, szx: u8) {
        if szx < self.szx {
            (self.szx, self.step) = (szx, super::size(szx));
        }
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
            code::REQUEST_ENTITY_TOO_LARGE => match theirs {
                // The server takes smaller blocks (RFC 7959 §2.9.3).
                Some(theirs) if theirs.szx() < self.szx => {
                    self.offset = 0;
                    self.shrink(theirs.szx());
                    Ok(BlockAnswer::Next)
                }
                _ => Ok(BlockAnswer::Final),
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
                _ => Ok(BlockAnswer::Final),
            },
            _ => Ok(BlockAnswer::Final),
        }
    }
}
