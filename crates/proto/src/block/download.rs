//! The transfer of a response body from a server (RFC 7959 §2.4).

use alloc::vec::Vec;

use smallvec::SmallVec;

use super::{Block, TransferError};
use crate::{Code, Message};

/// A response body of which blocks have arrived.
#[derive(Clone, Debug)]
pub(super) struct Download {
    pub(super) body: Vec<u8>,
    max_body: usize,
    /// The properties that every block must have; `None` before the first block.
    common: Option<Common>,
    szx: u8,
    /// True if the transport is reliable, so that SZX 7 is [`BERT`](super::BERT).
    reliable: bool,
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

    /// Compares a later block with those before. Where an ETag is missing, the size of the body has to show that
    /// the blocks belong together (RFC 7959 §2.4).
    fn compare(&mut self, block: &Message<'_>) -> Result<(), TransferError> {
        let tags = self.etag.as_deref().zip(block.etag());
        if self.code != block.code || tags.is_some_and(|(before, now)| before != now) {
            return Err(TransferError::Changed);
        }
        if tags.is_none() && (self.etag.is_some() || block.etag().is_some()) {
            self.is_partly_tagged = true;
            self.etag = self.etag.take().or(block.etag().map(SmallVec::from_slice));
        }
        match block.size2() {
            _ if !self.is_partly_tagged => Ok(()),
            _ if self.size.is_none() => Err(TransferError::Untagged),
            Some(size) if self.size != Some(size) => Err(TransferError::Changed),
            _ => Ok(()),
        }
    }

    /// Checks the length of the whole body.
    fn check(&self, len: usize) -> Result<(), TransferError> {
        let differs = self.size.is_some_and(|size| size as usize != len);
        if self.is_partly_tagged && differs { Err(TransferError::Untagged) } else { Ok(()) }
    }
}

impl Download {
    pub(super) const fn new(max_body: usize, szx: u8) -> Self {
        Self { body: Vec::new(), max_body, common: None, szx, reliable: szx == super::BERT }
    }

    /// Returns whether the first block has arrived.
    pub(super) fn has_begun(&self) -> bool {
        self.common.is_some()
    }

    /// Returns the length of the body in bytes, if the server has said it.
    pub(super) fn size(&self) -> Option<usize> {
        self.common.as_ref()?.size.map(|size| size as usize)
    }

    /// Returns the block to ask for now.
    ///
    /// # Errors
    /// [`TransferError::TooLarge`] if the block has no number.
    pub(super) fn block(&self) -> Result<Block, TransferError> {
        let num = u32::try_from(self.body.len() / super::size(self.szx)).unwrap_or(u32::MAX);
        Block::new(num, false, self.szx).ok_or(TransferError::TooLarge)
    }

    /// Takes a response. Returns whether the body is complete.
    pub(super) fn handle(&mut self, response: &Message<'_>) -> Result<bool, TransferError> {
        let payload = response.payload();
        let code = response.code;
        let block = if self.reliable { response.block2_reliable() } else { response.block2()? };
        let changed = self.common.as_ref().is_some_and(|common| common.code != code);
        if changed && code.0 >> 5 != 2 || !self.has_begun() && block.is_none() {
            // This is an error after the first block, or a body in one piece. It replaces the blocks before.
            self.body.clear();
            return self.append(payload).map(|()| true);
        }
        let block = block.ok_or(TransferError::OutOfPlace)?;
        if block.offset() != self.body.len() || block.szx() > self.szx {
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
            None => self.common = Some(Common::of(response)),
        }
        self.szx = block.szx();
        self.append(payload)?;
        if !block.more() {
            self.common.iter().try_for_each(|common| common.check(self.body.len()))?;
        }
        Ok(!block.more())
    }

    fn append(&mut self, payload: &[u8]) -> Result<(), TransferError> {
        if self.body.len() + payload.len() > self.max_body {
            return Err(TransferError::TooLarge);
        }
        self.body.extend_from_slice(payload);
        Ok(())
    }
}
