//! The upload of a request body with Q-Block1, with blocks in any sequence (RFC 9177 §4.3).

use coap_numbers::code;

use super::TransferError;
use super::missing::{self, MISSING_BLOCKS};
use super::transfer::Piece;
use super::upload::{BlockAnswer, Upload};
use super::window::Window;
use crate::Message;

/// How many blocks, counted from the first missing one, may be sent to a server that has discarded a body because of
/// too many gaps. libcoap keeps at most three runs of blocks: all blocks before the first missing one, and two runs
/// after it. Four blocks after the missing one make at most two runs.
const NARROW: u32 = 5;

/// The state of an upload with Q-Block1.
#[derive(Clone, Debug)]
pub(super) struct Quick {
    pub(super) window: Window,
    /// True if a server may execute the request twice.
    idempotent: bool,
    /// True once the server has accepted a block, so that several requests may be outstanding. Before, the first block
    /// is sent alone.
    known: bool,
    /// The number of blocks that were sent at least once. They are the first blocks of the body.
    sent: u32,
    /// The maximum number of blocks that may be sent, counted from the first that the server does not have.
    span: u32,
}

impl Quick {
    pub(super) const fn new(idempotent: bool) -> Self {
        Self { window: Window::from(0), idempotent, known: false, sent: 0, span: u32::MAX }
    }

    /// Returns the next block to send; `None` if answers must arrive first. `due` is the first block that the server
    /// does not have. `blocks` is the number of blocks of the body.
    pub(super) fn ask(&mut self, due: Piece, blocks: u32) -> Option<Piece> {
        let end = blocks.min(self.window.first().saturating_add(self.span));
        let (num, alone) = if self.known { self.window.ask(end)? } else { (0, true) };
        // When all blocks have arrived, the window names the one after the last.
        if num >= blocks {
            return None;
        }
        self.sent = self.sent.max(num + 1);
        Some(Piece { num, alone, ..due })
    }

    /// Starts again with the first block, alone until the server accepts it: a server that receives another block first
    /// concludes that it has lost some. `smaller` is true if the block size was reduced, so that no block of the new
    /// size was sent yet.
    pub(super) const fn restart(&mut self, smaller: bool) {
        self.window = Window::from(0);
        // The new size may be refused, too, so its first block goes alone.
        self.known = false;
        if smaller {
            self.sent = 0;
        }
    }
}

impl Upload {
    /// Records that the server has this block, but has not responded yet. Returns whether the request needs no further answer.
    pub(super) fn acknowledged(&mut self, piece: Piece) -> bool {
        let Some(quick) = &mut self.quick else { return false };
        // A block of an earlier attempt has another Request-Tag, so it does not belong to this one.
        if piece.turn == self.turn {
            quick.known = true;
            quick.window.add(piece.num);
        }
        true
    }

    /// Handles the response to a block with Q-Block1.
    pub(super) fn handle_quick(
        &mut self,
        piece: Piece,
        response: &Message<'_>,
    ) -> Result<BlockAnswer, TransferError> {
        let Some(quick) = &self.quick else { return Ok(BlockAnswer::Next) };
        let (known, idempotent, sent) = (quick.known, quick.idempotent, quick.sent);
        let is_success = response.code.0 >> 5 == 2 && response.code.0 != code::CONTINUE;
        // An answer to an attempt that was given up does not count, unless it is the response to the whole body.
        if piece.turn != self.turn && !is_success {
            return Ok(BlockAnswer::Next);
        }
        match response.code.0 {
            code::CONTINUE => {
                self.acknowledged(piece);
                Ok(BlockAnswer::Next)
            }
            // 4.08 lists missing blocks (RFC 9177 §5), or says that the server has discarded the body.
            code::REQUEST_ENTITY_INCOMPLETE => Ok(self.resend(piece, response)),
            // Without a smaller block size, 4.13 is the answer to the whole request (RFC 7959 §2.9.3).
            code::REQUEST_ENTITY_TOO_LARGE => {
                let (ours, theirs) = (self.block(piece)?, response.q_block1()?);
                let smaller = self.smaller(ours, theirs, response.size1());
                Ok(smaller.map_or(BlockAnswer::Final, |szx| {
                    self.restart(szx);
                    BlockAnswer::Next
                }))
            }
            // The server does not know Q-Block1. It may have acknowledged the request before it looked at the option. Codes other than
            // 4.02 are guesses at how a server answers an unknown option.
            code::BAD_OPTION => Ok(self.begin_with_block1()),
            code::BAD_REQUEST | code::NOT_IMPLEMENTED if !known => Ok(self.begin_with_block1()),
            // The server has ignored Q-Block1, and has taken the block for the whole body.
            _ if is_success && sent < self.blocks() && idempotent => Ok(self.begin_with_block1()),
            _ if is_success && sent < self.blocks() => Err(self.unfinished(piece, response)),
            _ => Ok(BlockAnswer::Final),
        }
    }

    fn begin_with_block1(&mut self) -> BlockAnswer {
        self.slow_down();
        BlockAnswer::Next
    }

    /// Handles a 4.08 response, which may list the missing blocks (RFC 9177 §5).
    fn resend(&mut self, piece: Piece, response: &Message<'_>) -> BlockAnswer {
        let listed = response.content_format() == Some(MISSING_BLOCKS);
        let missing = if listed { missing::read(response.payload()) } else { None };
        let Some(quick) = &mut self.quick else { return BlockAnswer::Next };
        // A block that is not acknowledged yet is under way, or will be.
        let again = match missing {
            Some(missing) if !missing.iter().any(|&num| quick.window.has(num)) => {
                quick.known = true;
                // A 4.08 that does not list the block that it answers confirms this block.
                if missing.contains(&piece.num) {
                    quick.window.lose(piece.num)
                } else {
                    quick.window.add(piece.num);
                    true
                }
            }
            // A block is missing that the server had acknowledged, so it has discarded the body.
            Some(_) => self.was_discarded(),
            // The server did not keep track of so many missing blocks, or has another reason that it does not give.
            None if quick.span > NARROW => {
                quick.span = NARROW;
                self.was_discarded()
            }
            None => {
                self.slow_down();
                true
            }
        };
        if again { BlockAnswer::Next } else { BlockAnswer::Final }
    }
}
