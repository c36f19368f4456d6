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
    /// The received bytes of the body, up to the end of the last block that has arrived.
    pub(super) body: Vec<u8>,
    max_body: usize,
    /// The properties that every block must share; `None` before the first block.
    common: Option<Common>,
    szx: u8,
    /// True if the transport is reliable, so that SZX 7 is [`BERT`].
    reliable: bool,
    /// True if several blocks may be requested at once.
    random: bool,
    /// True if the first block may be larger than this client wants, because the request could not state a size.
    open: bool,
    /// The number of the option in which the server names its blocks.
    number: u16,
    /// The blocks that have arrived or were requested; `None` if blocks are requested one after the other.
    window: Option<Box<Window>>,
    /// The length of the body in bytes, once the last block has arrived.
    end: Option<usize>,
    /// The number of bytes that have arrived.
    pub(super) received: usize,
    /// The first part of the body from an earlier transfer. It is used if the first block shows that both transfers
    /// have the same body.
    earlier: Option<Box<Partial>>,
}

/// The properties of the first block, which later blocks must share.
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

    /// Returns an error if a block does not belong to the same body as the earlier ones. If only some blocks have an
    /// ETag, the server must have stated the size of the body (RFC 7959 §2.4).
    fn compare(&mut self, block: &Message<'_>) -> Result<(), TransferError> {
        let tags = self.etag.as_deref().zip(block.etag());
        if self.code != block.code || tags.is_some_and(|(before, now)| before != now) {
            return Err(TransferError::Changed);
        }
        // Below, at most one of the two has an ETag. It is kept, so that a later block with another one still shows the change.
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

    /// Returns an error if only some blocks have an ETag and the length of the complete body differs from the stated
    /// size.
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

    /// Sets the first part of the body from an earlier transfer. This transfer continues after that part if the first
    /// block is of the same body.
    pub(super) fn resume(&mut self, earlier: Partial) {
        self.earlier = Some(Box::new(earlier));
    }

    /// Takes the first part of the body, up to the first missing block, from a transfer that has ended.
    pub(super) fn take_partial(&mut self) -> Option<Partial> {
        if let Some(earlier) = self.earlier.take() {
            // No block has arrived since, so this part is still all that is known of the body.
            return Some(*earlier);
        }
        // Only a 2.05 is a representation that a later request meets again, and only its ETag can show that it is the same one.
        let is_sure = |common: &&Common| common.code == Code::CONTENT && !common.is_partly_tagged;
        let etag = self.common.as_ref().filter(is_sure)?.etag.as_ref()?.to_vec();
        let len = self.prefix();
        let mut body = core::mem::take(&mut self.body);
        body.truncate(len);
        (len > 0).then_some(Partial { etag, body })
    }

    /// Allows several outstanding requests for blocks, after the first block. Does nothing over a reliable transport,
    /// which keeps blocks in sequence.
    pub(super) const fn allow_random_access(&mut self) {
        self.random = !self.reliable;
    }

    /// Accepts a first block of any size. Later blocks are requested in the size that this client wants.
    pub(super) const fn open(&mut self) {
        self.open = true;
    }

    /// Returns the Block2 option with which the first request asks for smaller blocks. Returns `None` if blocks have the
    /// largest size, or if a first block of any size is accepted.
    pub(super) fn early(&self) -> Option<Block> {
        Block::new(0, false, self.szx).filter(|early| early.szx() < MAX_SZX && !self.open)
    }

    /// Returns the number and the value of the option that requests a block.
    ///
    /// # Errors
    /// [`TransferError::TooLarge`] if the number of the block is above the largest.
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

    /// Returns the length of the body in bytes, if the server has stated it.
    pub(super) fn size(&self) -> Option<usize> {
        self.common.as_ref()?.size.map(|size| size as usize)
    }

    /// Returns the number of bytes at the start of the body that have arrived without gaps.
    pub(super) fn prefix(&self) -> usize {
        let first = self.window.as_ref().map(|window| window.first() as usize * super::size(self.szx));
        first.map_or(self.body.len(), |first| first.min(self.body.len()))
    }

    /// Returns the first missing block.
    pub(super) fn due(&self) -> Piece {
        let first = self.window.as_ref().map(|window| window.first());
        // A number above the largest is refused when `option` encodes it.
        let by_length = || u32::try_from(self.body.len() / super::size(self.szx)).unwrap_or(u32::MAX);
        Piece { num: first.unwrap_or_else(by_length), szx: self.szx, turn: 0, up: false, alone: true }
    }

    /// Returns the next block to request; `None` if outstanding blocks must arrive first.
    pub(super) fn ask(&mut self) -> Option<Piece> {
        let due = self.due();
        let Some(window) = &mut self.window else { return Some(due) };
        // The body ends where the server has said. If it has not, blocks beyond `max_body` are not asked for.
        let size = self.common.as_ref().and_then(|common| common.size).map(|size| size as usize);
        let end = self.end.or(size).unwrap_or(self.max_body).min(self.max_body);
        let blocks = u32::try_from(end.div_ceil(super::size(self.szx))).unwrap_or(u32::MAX);
        let (num, alone) = window.ask(blocks.min(super::MAX_NUM))?;
        Some(Piece { num, alone, ..due })
    }

    /// Stops waiting for a block after its request was lost. Returns whether the block may be requested again.
    pub(super) fn lose(&mut self, piece: Piece) -> bool {
        match &mut self.window {
            // A request in an earlier block size is not repeated: its bytes are requested in smaller blocks.
            Some(window) if !piece.alone => piece.szx != self.szx || window.lose(piece.num),
            _ => false,
        }
    }

    /// Handles the response to the request for this block. Returns whether the body is complete.
    pub(super) fn handle(&mut self, asked: Piece, response: &Message<'_>) -> Result<bool, TransferError> {
        let payload = response.payload();
        let code = response.code;
        let block = self.block(response)?;
        if let Some(window) = self.window.as_mut().filter(|_| !asked.alone) {
            // The answer is in an earlier block size, or this block has arrived already.
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
        // A server may send smaller blocks than it was asked for, but no larger ones (RFC 7959 §2.4).
        let is_large = block.szx() > self.szx && (self.has_begun() || !self.open);
        if block.offset() != asked.offset() || is_large {
            return Err(TransferError::OutOfPlace);
        }
        if !block.admits(payload.len()) {
            return Err(TransferError::Length);
        }
        match &mut self.common {
            Some(common) => common.compare(response)?,
            // Size2 shows with the first block that the body is too large, before the others are transferred.
            None if response.size2().is_some_and(|size| size as usize > self.max_body) => {
                return Err(TransferError::TooLarge);
            }
            None => {
                self.common = Some(Common::of(response));
                // Later blocks are requested with the option that the server has used.
                if response.value(option::BLOCK2).is_none() {
                    self.number = option::Q_BLOCK2;
                }
            }
        }
        if block.szx() < self.szx {
            self.shrink(block);
        }
        let end = block.offset() + payload.len();
        // Two blocks that place the end differently are parts of two representations.
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
            // The first block has shown the size of blocks, so several may now be asked for at once.
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

    /// Continues after the part of the body that an `earlier` transfer has received, if that part belongs to this body.
    /// The last block of that part is requested again, because the body may end with it.
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

    /// Continues in the smaller block size that the server has chosen. Blocks that arrived ahead of `block` are
    /// requested again.
    fn shrink(&mut self, block: Block) {
        self.szx = block.szx();
        if let Some(window) = &mut self.window {
            self.body.truncate(block.offset());
            (self.received, self.end) = (self.body.len(), None);
            **window = Window::from(block.num());
            // The other requests asked for larger blocks. One block at a time is requested until the end.
            window.refuse(0);
        }
    }

    fn write(&mut self, offset: usize, payload: &[u8]) -> Result<(), TransferError> {
        let end = offset.checked_add(payload.len()).filter(|&end| end <= self.max_body);
        let end = end.ok_or(TransferError::TooLarge)?;
        if offset == self.body.len() {
            self.body.extend_from_slice(payload);
        } else {
            // A block that came early leaves a gap of zeros. `prefix` keeps it from the application until it is filled.
            self.body.resize(end.max(self.body.len()), 0);
            self.body.get_mut(offset..end).ok_or(TransferError::OutOfPlace)?.copy_from_slice(payload);
        }
        self.received += payload.len();
        Ok(())
    }
}
