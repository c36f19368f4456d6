//! The transfer of a request body to a server (RFC 7959 §2.3, §2.5).

use alloc::boxed::Box;
use core::ops::Range;

use coap_numbers::code;

use super::quick::Quick;
use super::transfer::Piece;
use super::{BERT, Block, MAX_SZX, TransferError};
use crate::Message;

/// A request body that is sent in blocks.
#[derive(Clone, Debug)]
pub(super) struct Upload {
    /// The number of bytes that the server has, if blocks are sent one after the other.
    offset: usize,
    /// The length of the body, bytes.
    len: usize,
    szx: u8,
    /// The largest payload of a request, in bytes.
    step: usize,
    /// True if the transport is reliable, so that SZX 7 is [`BERT`].
    reliable: bool,
    /// The number of times that the server has discarded earlier blocks.
    restarts: u8,
    /// The number of times that the upload started again. Answers to earlier requests no longer count.
    pub(super) turn: u8,
    /// The state of an upload with Q-Block1, with blocks in any sequence; `None` for any other upload.
    pub(super) quick: Option<Box<Quick>>,
}

/// The number of times that an upload starts again because the server has discarded earlier blocks. A server under load may do
/// that more than once; a server without space for the body does it each time.
const MAX_RESTARTS: u8 = 4;

/// The meaning of the response to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockAnswer {
    /// More blocks are to be sent.
    Next,
    /// The response answers the whole request. It is complete, or has the first block of the response body.
    Final,
}

impl Upload {
    pub(super) const fn new(len: usize, szx: u8) -> Self {
        let step = super::size(szx);
        Self { offset: 0, len, szx, step, reliable: false, restarts: 0, turn: 0, quick: None }
    }

    /// Creates an upload over a reliable transport, in payloads of at most `room` bytes.
    pub(super) fn reliable(len: usize, room: usize) -> Self {
        let whole = (BERT, len);
        let (szx, step) =
            // A body that fits into one message is not cut into blocks.
            if len <= room { whole } else { super::step(BERT, room).unwrap_or((0, super::size(0))) };
        Self { step, reliable: true, ..Self::new(len, szx) }
    }

    /// Switches to Q-Block1 if the body has several blocks and the transport is not reliable. Returns whether Q-Block1
    /// is used. `idempotent` is true if a server may execute the method twice.
    pub(super) fn hurry(&mut self, idempotent: bool) -> bool {
        let several = !self.reliable && self.len > self.step;
        self.quick = several.then(|| Box::new(Quick::new(idempotent)));
        several
    }

    /// Returns the first block that the server does not have, as the only outstanding request.
    pub(super) fn due(&self) -> Piece {
        let by_offset = || u32::try_from(self.offset / super::size(self.szx)).unwrap_or(u32::MAX);
        let num = self.quick.as_ref().map_or_else(by_offset, |quick| quick.window.first());
        Piece { num, szx: self.szx, turn: self.turn, up: true, alone: true }
    }

    /// Returns the next block to send; `None` if answers must arrive first.
    pub(super) fn ask(&mut self) -> Option<Piece> {
        let (due, blocks) = (self.due(), self.blocks());
        match &mut self.quick {
            None => Some(due),
            Some(quick) => quick.ask(due, blocks),
        }
    }

    /// Returns the number of blocks of the body.
    pub(super) fn blocks(&self) -> u32 {
        u32::try_from(self.len.div_ceil(super::size(self.szx))).unwrap_or(u32::MAX)
    }

    /// Stops waiting for the answer to a block. Returns whether the block may be sent again.
    pub(super) fn lose(&mut self, piece: Piece) -> bool {
        match &mut self.quick {
            // A block of an earlier attempt is sent once more in this one anyway.
            Some(quick) if !piece.alone => piece.turn != self.turn || quick.window.lose(piece.num),
            _ => false,
        }
    }

    /// Returns the number of bytes at the start of the body that the server has.
    pub(super) fn sent(&self) -> usize {
        self.due().offset().min(self.len)
    }

    /// Returns the byte range of a block.
    pub(super) fn range(&self, piece: Piece) -> Range<usize> {
        let start = piece.offset().min(self.len);
        start..self.len.min(start + self.step)
    }

    /// Returns whether this block is the last one of the body.
    pub(super) fn is_last(&self, piece: Piece) -> bool {
        self.range(piece).end == self.len
    }

    /// Returns the value of the option that names a block (Block1 or Q-Block1); `None` if the block is the whole body.
    ///
    /// # Errors
    /// [`TransferError::TooLarge`] if the number of the block is above the largest.
    pub(super) fn block(&self, piece: Piece) -> Result<Option<Block>, TransferError> {
        if piece.num == 0 && self.is_last(piece) {
            return Ok(None);
        }
        Block::new(piece.num, !self.is_last(piece), self.szx).ok_or(TransferError::TooLarge).map(Some)
    }

    /// Starts again with the first block. The size exponent becomes `szx` if that is smaller.
    pub(super) fn restart(&mut self, szx: u8) {
        self.offset = 0;
        self.turn = self.turn.wrapping_add(1);
        if let Some(quick) = &mut self.quick {
            quick.restart(szx < self.szx);
        }
        self.shrink(szx);
    }

    /// Starts again because the server has discarded earlier blocks. Returns false if the server has done so more than
    /// [`MAX_RESTARTS`] times.
    pub(super) fn was_discarded(&mut self) -> bool {
        self.restarts += 1;
        self.restart(self.szx);
        self.restarts <= MAX_RESTARTS
    }

    /// Starts again with Block1 instead of Q-Block1.
    pub(super) fn slow_down(&mut self) {
        self.quick = None;
        self.restart(self.szx);
    }

    fn shrink(&mut self, szx: u8) {
        if szx < self.szx {
            (self.szx, self.step) = (szx, super::size(szx));
        }
    }

    /// Returns the size exponent to start again with after a 4.13 response (RFC 7959 §2.9.3). The response states the
    /// size in Block1 (`theirs`), or else in `size1`. If the request had no Block1 (`ours`), 4.13 alone is a hint to
    /// try blocks. Returns `None` if there are no smaller blocks, or if the server does not ask for them.
    pub(super) fn smaller(
        &self,
        ours: Option<Block>,
        theirs: Option<Block>,
        size1: Option<u32>,
    ) -> Option<u8> {
        let named = theirs.map(Block::size).or(size1.map(|size| size as usize));
        let size = match ours {
            Some(_) => named?,
            // A body that was sent in one piece needs blocks that are smaller than itself.
            None => named.unwrap_or(usize::MAX).min(self.len.checked_sub(1)?),
        };
        // The largest block that `size` admits; there is none below 16 bytes.
        let szx = size.checked_ilog2()?.checked_sub(4)?.min(MAX_SZX.into()) as u8;
        (szx < self.szx).then_some(szx)
    }

    /// Handles the response to a block.
    pub(super) fn handle(
        &mut self,
        piece: Piece,
        response: &Message<'_>,
    ) -> Result<BlockAnswer, TransferError> {
        if self.quick.is_some() {
            return self.handle_quick(piece, response);
        }
        // This answers a request from before the upload began again.
        if piece.turn != self.turn {
            return Ok(BlockAnswer::Next);
        }
        let ours = self.block(piece)?;
        let theirs = if self.reliable { response.block1_reliable() } else { response.block1()? };
        match response.code.0 {
            // 4.08 after the first block: the server has lost earlier blocks (RFC 7959 §2.9.2).
            code::REQUEST_ENTITY_INCOMPLETE if self.offset > 0 && self.was_discarded() => {
                Ok(BlockAnswer::Next)
            }
            code::REQUEST_ENTITY_TOO_LARGE => match self.smaller(ours, theirs, response.size1()) {
                // Each time the blocks are smaller, so this ends.
                Some(szx) => {
                    self.restart(szx);
                    Ok(BlockAnswer::Next)
                }
                None => Ok(BlockAnswer::Final),
            },
            code if code == code::CONTINUE || code >> 5 == 2 => match (ours, theirs) {
                (Some(ours), Some(theirs)) if ours.num() != theirs.num() => Err(TransferError::OutOfPlace),
                // The answer to a block before the last ends nothing. It is 2.31, or without M a success of this block alone
                // (RFC 7959 §2.3). Servers written to drafts of RFC 7959 have 2.04 with M in place of 2.31.
                (Some(ours), Some(theirs)) if ours.more() => {
                    self.offset = self.range(piece).end;
                    self.shrink(theirs.szx());
                    Ok(BlockAnswer::Next)
                }
                _ if code == code::CONTINUE => Err(TransferError::OutOfPlace),
                // The server has taken the block for the whole body.
                (Some(ours), None) if ours.more() => Err(self.unfinished(piece, response)),
                _ => Ok(BlockAnswer::Final),
            },
            _ => Ok(BlockAnswer::Final),
        }
    }

    /// Returns the error that the server has taken a block for the whole body.
    pub(super) fn unfinished(&self, piece: Piece, response: &Message<'_>) -> TransferError {
        TransferError::Unfinished { code: response.code, sent: self.range(piece).end, len: self.len }
    }
}
