//! The transfer of a response body from a server (RFC 7959 §2.4).

use alloc::boxed::Box;
use alloc::vec::Vec;

use coap_numbers::option;
use smallvec::SmallVec;

use super::partial::Partial;
use super::transfer::Piece;
use super::window::Window;
use super::{BERT, Block, MAX_SZX, TransferError};
use crate::{Code, Message};

/// A response body that arrives in blocks.
#[derive(Clone, Debug)]
pub(super) struct Download {
    /// The bytes from the front of the body to the end of the last block that has arrived.
    pub(super) body: Vec<u8>,
    max_body: usize,
    /// The properties that every block must have; `None` before the first block.
    common: Option<Common>,
    szx: u8,
    /// True if the transport is reliable, so that SZX 7 is [`BERT`].
    reliable: bool,
    /// True if several blocks may be asked for at once.
    random: bool,
    /// True if the first block may be larger than this side wants, because the request could not say so.
    open: bool,
    /// The option that the server names its blocks with.
    number: u16,
    /// The blocks that have arrived or are under way; `None` if one is asked for after the other.
    window: Option<Box<Window>>,
    /// The length of the body in bytes, if the last block has arrived.
    end: Option<usize>,
    /// The bytes that have arrived.
    pub(super) received: usize,
    /// The front of the body from an earlier transfer. It is used if the first block shows that it belongs to this body.
    earlier: Option<Box<Partial>>,
}

/// The properties of the first block.
#[derive(Clone, Debug)]
struct Common {
    code: Code,
    etag: Option<SmallVec<[u8; 8]>>,
    /// The length of the body in bytes, if the first block has Size2.
    size: Option<u32>,
    /// True if some blocks have an ETag and others have none.
    is_partly_tagged: bool,
}

impl Common {
    fn of(first: &Message<'_>) -> Self {
        let etag = first.etag().map(SmallVec::from_slice);
        Self { code: first.code, etag, size: first.size2(), is_partly_tagged: false }
    }

    /// Compares another block with those that have arrived. Where an ETag is missing, the size of the body has to
    /// show that the blocks belong together (RFC 7959 §2.4).
    fn compare(&mut self, block: &Message<'_>) -> Result<(), TransferError> {
        let tags = self.etag.as_deref().zip(block.etag());
        if self.code != block.code || tags.is_some_and(|(before, now)| before != now) {
            return Err(TransferError::Changed);
        }
        let is_tagged = tags.is_some();
        if !is_tagged && (self.etag.is_some() || block.etag().is_some()) {
            self.is_partly_tagged = true;
            self.etag = self.etag.take().or(block.etag().map(SmallVec::from_slice));
        }
        if self.is_partly_tagged && self.size.is_none() {
            return Err(TransferError::Untagged);
        }
        // If the ETags are equal, a size is an estimate and may differ.
        let differs = self.size.zip(block.size2()).is_some_and(|(before, now)| before != now);
        if differs && !is_tagged { Err(TransferError::Changed) } else { Ok(()) }
    }

    /// Checks the length of the whole body.
    fn check(&self, len: usize) -> Result<(), TransferError> {
        let differs = self.size.is_some_and(|size| size as usize != len);
        if self.is_partly_tagged && differs { Err(TransferError::Untagged) } else { Ok(()) }
    }
}

impl Download {
    pub(super) const fn new(max_body: usize, szx: u8) -> Self {
        Self {
            body: Vec::new(),
            max_body,
            common: None,
            szx,
            reliable: szx == BERT,
            random: false,
            open: false,
            number: option::BLOCK2,
            window: None,
            end: None,
            received: 0,
            earlier: None,
        }
    }

    /// Sets the front of the body from an earlier transfer. This transfer continues after it if the first block is of the same body.
    pub(super) fn resume(&mut self, earlier: Partial) {
        self.earlier = Some(Box::new(earlier));
    }

    /// Takes the front of the body, up to the first block that is missing, out of a transfer that is over.
    pub(super) fn take_partial(&mut self) -> Option<Partial> {
        if let Some(earlier) = self.earlier.take() {
            return Some(*earlier);
        }
        let is_sure = |common: &&Common| common.code == Code::CONTENT && !common.is_partly_tagged;
        let etag = self.common.as_ref().filter(is_sure)?.etag.as_ref()?.to_vec();
        let len = self.prefix();
        let mut body = core::mem::take(&mut self.body);
        body.truncate(len);
        (len > 0).then_some(Partial { etag, body })
    }

    /// Allows several requests for blocks at once, after the first block. A reliable transport keeps blocks in order, so nothing
    /// changes there.
    pub(super) const fn allow_random_access(&mut self) {
        self.random = !self.reliable;
    }

    /// Takes a first block of any size. Later ones are asked for in the size that this side wants.
    pub(super) const fn open(&mut self) {
        self.open = true;
    }

    /// Returns the Block2 option with which the first request asks for smaller blocks. Returns `None` if blocks have the largest size,
    /// or if a first block of any size is taken.
    pub(super) fn early(&self) -> Option<Block> {
        Block::new(0, false, self.szx).filter(|early| early.szx() < MAX_SZX && !self.open)
    }

    /// Returns the option that asks for a block, and its value.
    ///
    /// # Errors
    /// [`TransferError::TooLarge`] if the block has no number.
    pub(super) fn option(&self, piece: Piece) -> Result<(u16, Block), TransferError> {
        let block = Block::new(piece.num, false, piece.szx).ok_or(TransferError::TooLarge)?;
        Ok((self.number, block))
    }

    /// Reads the option that says which block a response has.
    fn block(&self, response: &Message<'_>) -> Result<Option<Block>, TransferError> {
        if self.reliable {
            return Ok(response.block2_reliable());
        }
        let block = response.block2()?;
        Ok(if block.is_some() { block } else { response.q_block2()? })
    }

    /// Returns whether the first block has arrived.
    pub(super) fn has_begun(&self) -> bool {
        self.common.is_some()
    }

    /// Returns the length of the body in bytes, if the server has said it.
    pub(super) fn size(&self) -> Option<usize> {
        self.common.as_ref()?.size.map(|size| size as usize)
    }

    /// Returns the number of bytes at the front of the body that have no gaps.
    pub(super) fn prefix(&self) -> usize {
        let first = self.window.as_ref().map(|window| window.first() as usize * super::size(self.szx));
        first.map_or(self.body.len(), |first| first.min(self.body.len()))
    }

    /// Returns the first block that is missing.
    pub(super) fn due(&self) -> Piece {
        let first = self.window.as_ref().map(|window| window.first());
        let by_length = || u32::try_from(self.body.len() / super::size(self.szx)).unwrap_or(u32::MAX);
        Piece { num: first.unwrap_or_else(by_length), szx: self.szx, turn: 0, up: false, alone: true }
    }

    /// Returns the next block to ask for, if there is one for now.
    pub(super) fn ask(&mut self) -> Option<Piece> {
        let due = self.due();
        let Some(window) = &mut self.window else { return Some(due) };
        // The body ends where the server has said. If it has not, blocks beyond `max_body` are not asked for.
        let said = self.common.as_ref().and_then(|common| common.size).map(|size| size as usize);
        let end = self.end.or(said).unwrap_or(self.max_body).min(self.max_body);
        let blocks = u32::try_from(end.div_ceil(super::size(self.szx))).unwrap_or(u32::MAX);
        let (num, alone) = window.ask(blocks.min(super::MAX_NUM))?;
        Some(Piece { num, alone, ..due })
    }

    /// Ends the wait for a block. Returns whether it may be asked for again.
    pub(super) fn lose(&mut self, piece: Piece) -> bool {
        match &mut self.window {
            Some(window) if !piece.alone => piece.szx != self.szx || window.lose(piece.num),
            _ => false,
        }
    }

    /// Takes the response to the request for this block. Returns whether the body is complete.
    pub(super) fn handle(&mut self, asked: Piece, response: &Message<'_>) -> Result<bool, TransferError> {
        let payload = response.payload();
        let code = response.code;
        let block = self.block(response)?;
        if let Some(window) = self.window.as_mut().filter(|_| !asked.alone) {
            if asked.szx != self.szx || !window.end(asked.num) {
                return Ok(false);
            }
            // An error or another block does not end the transfer while others are under way. The server may want
            // the blocks in their order, or the body may end before this one.
            let is_asked = |block: &Block| (block.num(), block.szx()) == (asked.num, asked.szx);
            let is_answer = code.0 >> 5 == 2 && block.as_ref().is_some_and(is_asked) && !payload.is_empty();
            if !is_answer {
                window.refuse(asked.num);
                return Ok(false);
            }
        }
        let changed = self.common.as_ref().is_some_and(|common| common.code != code);
        if changed && code.0 >> 5 != 2 || !self.has_begun() && block.is_none() {
            // This is an error after the first block, or a body in one piece. It replaces the blocks before.
            self.body.clear();
            self.window = None;
            self.received = 0;
            return self.write(0, payload).map(|()| true);
        }
        let block = block.ok_or(TransferError::OutOfPlace)?;
        let is_large = block.szx() > self.szx && (self.has_begun() || !self.open);
        if block.offset() != asked.offset() || is_large {
            return Err(TransferError::OutOfPlace);
        }
        if !block.admits(payload.len()) {
            return Err(TransferError::Length);
        }
        match &mut self.common {
            Some(common) => common.compare(response)?,
            None if response.size2().is_some_and(|size| size as usize > self.max_body) => {
                return Err(TransferError::TooLarge);
            }
            None => {
                self.common = Some(Common::of(response));
                if response.value(option::BLOCK2).is_none() {
                    self.number = option::Q_BLOCK2;
                }
            }
        }
        if block.szx() < self.szx {
            self.shrink(block);
        }
        let end = block.offset() + payload.len();
        let is_beyond = self.end.is_some_and(|last| last < end || block.more() && last == end);
        if is_beyond || !block.more() && end < self.body.len() {
            return Err(TransferError::Changed);
        }
        self.write(block.offset(), payload)?;
        if !block.more() {
            self.end = Some(end);
        } else if let Some(earlier) = self.earlier.take() {
            self.go_on_after(*earlier);
        }
        match &mut self.window {
            Some(window) => window.add(block.num()),
            None if self.random && block.more() => {
                self.window = Some(Box::new(Window::from(self.due().num)));
            }
            None => {}
        }
        let complete = self.end.is_some_and(|end| self.prefix() == end);
        if complete {
            self.common.iter().try_for_each(|common| common.check(end.max(self.body.len())))?;
        }
        Ok(complete)
    }

    /// Continues after the front of the body from an earlier transfer, if it is of this body. The last block of that front is asked for
    /// again, because the body may end with it.
    fn go_on_after(&mut self, mut earlier: Partial) {
        let etag = self.common.as_ref().and_then(|common| common.etag.as_deref());
        let size = super::size(self.szx);
        let len = earlier.body.len().saturating_sub(1) / size * size;
        let is_of_this = etag == Some(&earlier.etag[..]) && earlier.body.starts_with(&self.body);
        let most = self.size().unwrap_or(self.max_body).min(self.max_body);
        if is_of_this && len > self.body.len() && earlier.body.len() <= most {
            earlier.body.truncate(len);
            (self.body, self.received) = (earlier.body, len);
        }
    }

    /// Continues with the smaller blocks of the server. Blocks that arrived out of order are asked for again.
    fn shrink(&mut self, block: Block) {
        self.szx = block.szx();
        if let Some(window) = &mut self.window {
            self.body.truncate(block.offset());
            (self.received, self.end) = (self.body.len(), None);
            **window = Window::from(block.num());
            window.refuse(0);
        }
    }

    fn write(&mut self, offset: usize, payload: &[u8]) -> Result<(), TransferError> {
        let end = offset.checked_add(payload.len()).filter(|&end| end <= self.max_body);
        let end = end.ok_or(TransferError::TooLarge)?;
        if offset == self.body.len() {
            self.body.extend_from_slice(payload);
        } else {
            self.body.resize(end.max(self.body.len()), 0);
            self.body.get_mut(offset..end).ok_or(TransferError::OutOfPlace)?.copy_from_slice(payload);
        }
        self.received += payload.len();
        Ok(())
    }
}
