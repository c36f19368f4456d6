//! The transfer of a request body with Q-Block1, in blocks of any order (RFC 9177 §4.3).

use coap_numbers::code;

use super::TransferError;
use super::missing::{self, MISSING_BLOCKS};
use super::transfer::Piece;
use super::upload::{BlockAnswer, Upload};
use super::window::Window;
use crate::Message;

/// The most blocks, counted from the first missing one, that are sent to a server that has discarded a body because too many were
/// missing. libcoap keeps three runs of blocks: all before the first missing one, and every other one of the four after it.
const NARROW: u32 = 5;

/// The state of an upload with Q-Block1.
#[derive(Clone, Debug)]
pub(super) struct Quick {
    pub(super) window: Window,
    /// True if a server may carry out the request twice.
    idempotent: bool,
    /// True if the server has taken the first block, so that others may follow before it answers.
    known: bool,
    /// The number of blocks that were sent at least once, from the first on.
    sent: u32,
    /// The most blocks that may be sent, counted from the first that the server does not have.
    span: u32,
}

impl Quick {
    pub(super) const fn new(idempotent: bool) -> Self {
        Self { window: Window::from(0), idempotent, known: false, sent: 0, span: u32::MAX }
    }

    /// Returns the next block to send, if there is one for now. `due` is the first that the server does not have. `blocks` is the
    /// number of blocks of the body.
    pub(super) fn ask(&mut self, due: Piece, blocks: u32) -> Option<Piece> {
        let end = blocks.min(self.window.first().saturating_add(self.span));
        let (num, alone) = if self.known { self.window.ask(end)? } else { (0, true) };
        if num >= blocks {
            return None;
        }
        self.sent = self.sent.max(num + 1);
        Some(Piece { num, alone, ..due })
    }

    /// Begins again with the first block alone. A server that receives another block first concludes that it has lost some. Blocks of a
    /// smaller size were not sent before.
    pub(super) const fn restart(&mut self, smaller: bool) {
        self.window = Window::from(0);
        self.known = false;
        if smaller {
            self.sent = 0;
        }
    }
}

impl Upload {
    /// Notes that the server has this block, but has not responded yet. Returns whether the request waits for nothing more.
    pub(super) fn acknowledged(&mut self, piece: Piece) -> bool {
        let Some(quick) = &mut self.quick else { return false };
        if piece.turn == self.turn {
            quick.known = true;
            quick.window.add(piece.num);
        }
        true
    }

    /// Takes the response to a block with Q-Block1.
    pub(super) fn handle_quick(
        &mut self,
        piece: Piece,
        response: &Message<'_>,
    ) -> Result<BlockAnswer, TransferError> {
        let Some(quick) = &self.quick else { return Ok(BlockAnswer::Next) };
        let (known, idempotent, sent) = (quick.known, quick.idempotent, quick.sent);
        let is_success = response.code.0 >> 5 == 2 && response.code.0 != code::CONTINUE;
        if piece.turn != self.turn && !is_success {
            return Ok(BlockAnswer::Next);
        }
        match response.code.0 {
            code::CONTINUE => {
                self.acknowledged(piece);
                Ok(BlockAnswer::Next)
            }
            code::REQUEST_ENTITY_INCOMPLETE => Ok(self.resend(piece, response)),
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

    /// Takes a 4.08 response, which may list the missing blocks (RFC 9177 §5).
    fn resend(&mut self, piece: Piece, response: &Message<'_>) -> BlockAnswer {
        let listed = response.content_format() == Some(MISSING_BLOCKS);
        let missing = if listed { missing::read(response.payload()) } else { None };
        let Some(quick) = &mut self.quick else { return BlockAnswer::Next };
        // A block that is not acknowledged yet is under way, or will be.
        let again = match missing {
            Some(missing) if !missing.iter().any(|&num| quick.window.has(num)) => {
                quick.known = true;
                if missing.contains(&piece.num) {
                    quick.window.lose(piece.num)
                } else {
                    quick.window.add(piece.num);
                    true
                }
            }
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
