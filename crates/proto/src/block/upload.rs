//! Where the transfer of a request body stands (RFC 7959 §2.3, §2.5).

use core::ops::Range;

use coap_numbers::code;

use super::{BERT, Block, TransferError};
use crate::Message;

/// A body on its way to a server in blocks.
#[derive(Clone, Debug)]
pub(super) struct Upload {
    /// Bytes that the server has.
    offset: usize,
    /// Bytes in all.
    len: usize,
    szx: u8,
    /// Bytes to send at once.
    step: usize,
    /// Whether the transport is reliable, so that SZX 7 means something.
    reliable: bool,
    /// How often it had to begin again.
    restarts: u8,
}

/// How often an upload begins again because the server has discarded what it had. A server that is under load may discard it
/// more than once; one that is too small for the body does so each time.
const MAX_RESTARTS: u8 = 4;

/// What the response to a block means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// There is another block to send.
    Next,
    /// It is the response to the request, or its first part.
    Final,
}

impl Upload {
    pub(super) const fn new(len: usize, szx: u8) -> Self {
        Self { offset: 0, len, szx, step: super::size(szx), reliable: false, restarts: 0 }
    }

    /// Over a reliable transport, in payloads of no more than `room` bytes.
    pub(super) fn reliable(len: usize, room: usize) -> Self {
        let whole = (BERT, len);
        let (szx, step) =
            if len <= room { whole } else { super::step(BERT, room).unwrap_or((0, super::size(0))) };
        Self { offset: 0, len, szx, step, reliable: true, restarts: 0 }
    }

    /// The bytes to send now.
    pub(super) fn range(&self) -> Range<usize> {
        self.offset..self.len.min(self.offset + self.step)
    }

    /// Whether these are the last.
    pub(super) fn is_last(&self) -> bool {
        self.range().end == self.len
    }

    /// The block of these bytes; none if they are all of the body.
    ///
    /// # Errors
    /// [`TransferError::TooLarge`]: there is no number for so many blocks of this size.
    pub(super) fn block(&self) -> Result<Option<Block>, TransferError> {
        if self.offset == 0 && self.is_last() {
            return Ok(None);
        }
        let num = u32::try_from(self.offset / super::size(self.szx)).unwrap_or(u32::MAX);
        Block::new(num, !self.is_last(), self.szx).ok_or(TransferError::TooLarge).map(Some)
    }

    /// The server wants blocks no larger than this.
    fn shrink(&mut self, szx: u8) {
        if szx < self.szx {
            (self.szx, self.step) = (szx, super::size(szx));
        }
    }

    pub(super) fn handle(&mut self, response: &Message<'_>) -> Result<Answer, TransferError> {
        let ours = self.block()?;
        let theirs = if self.reliable { response.block1_reliable() } else { response.block1()? };
        match response.code.0 {
            code::REQUEST_ENTITY_INCOMPLETE if self.offset > 0 && self.restarts < MAX_RESTARTS => {
                self.offset = 0;
                self.restarts += 1;
                Ok(Answer::Next)
            }
            code::REQUEST_ENTITY_TOO_LARGE => match theirs {
                // The server would take it in smaller blocks (§2.9.3).
                Some(theirs) if theirs.szx() < self.szx => {
                    self.offset = 0;
                    self.shrink(theirs.szx());
                    Ok(Answer::Next)
                }
                _ => Ok(Answer::Final),
            },
            code if code == code::CONTINUE || code >> 5 == 2 => match (ours, theirs) {
                (Some(ours), Some(theirs)) if ours.num() != theirs.num() => Err(TransferError::OutOfPlace),
                // 2.31, or a success that the server declares to be of this block alone (§2.3).
                (Some(ours), Some(theirs)) if ours.more() && (code == code::CONTINUE || !theirs.more()) => {
                    self.offset = self.range().end;
                    self.shrink(theirs.szx());
                    Ok(Answer::Next)
                }
                _ if code == code::CONTINUE => Err(TransferError::OutOfPlace),
                _ => Ok(Answer::Final),
            },
            _ => Ok(Answer::Final),
        }
    }
}
