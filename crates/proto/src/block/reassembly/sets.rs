//! The reassembly of request bodies whose blocks arrive in any sequence, with Q-Block1 (RFC 9177 §4.3).

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

use coap_numbers::{code, option};
use coapace_control::{Duration, Instant};

use super::{Assembled, PartialBody, Reassembly, STALLED, Unverified, answer, key};
use crate::block::missing::{self, MISSING_BLOCKS};
use crate::block::window::{ArrivedBlocks, SPAN};
use crate::block::{BERT, Block, MAX_PAYLOADS};
use crate::peer::Address;
use crate::{Code, Kind, Message, Options, Tail, Token};

/// The record of the blocks of one body that have arrived with Q-Block1.
#[derive(Debug)]
pub(super) struct BlockSets {
    arrived: ArrivedBlocks,
    /// The length of the body, bytes (Size1).
    size: u32,
    szx: u8,
    /// True if earlier blocks may have been discarded. The server then lists the missing blocks to the client.
    has_lost: bool,
    /// The number of a block. Missing blocks before it were requested again.
    asked: u32,
    /// True if the body was completed. Only late copies of its blocks may still arrive.
    pub(super) is_over: bool,
    /// The wait for non-confirmable blocks that are missing.
    wait: Option<Wait>,
}

/// The wait for the next non-confirmable block of a body (RFC 9177 §7.2).
#[derive(Clone, Copy, Debug)]
struct Wait {
    /// The time at which the client is asked for the missing blocks.
    until: Instant,
    /// The number of times that the client was asked since a block arrived.
    asked: u8,
    /// The token of the last request.
    token: Token,
}

/// A 4.08 response that the server sends unprompted, because blocks of a body have not arrived in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overdue<A> {
    /// The client.
    pub to: A,
    /// The token of the client's last request for the body, which the response also has.
    pub token: Token,
    /// The options and the payload, which lists the missing blocks.
    pub tail: Tail,
}

/// The time from the last block to the first 4.08 response, doubled after each response (NON_RECEIVE_TIMEOUT, RFC 9177
/// §7.2).
const NON_RECEIVE_TIMEOUT: Duration = Duration::from_secs(4);

/// The maximum number of 4.08 responses without a block between them (NON_MAX_RETRANSMIT, RFC 9177 §7.2).
const NON_MAX_RETRANSMIT: u8 = 4;

impl BlockSets {
    const fn new(block: Block, size: u32, has_lost: bool) -> Self {
        let arrived = ArrivedBlocks::before(0);
        Self { arrived, size, szx: block.szx(), has_lost, asked: 0, is_over: false, wait: None }
    }

    /// Returns whether all blocks have arrived.
    const fn is_whole(&self) -> bool {
        self.arrived.first() as usize * crate::block::size(self.szx) >= self.size as usize
    }

    /// Writes a block into the body. Returns false if it is too far ahead of the first missing one.
    fn write(&mut self, block: Block, payload: &[u8], bytes: &mut Vec<u8>) -> bool {
        if self.arrived.add(block.num()) {
            let end = block.offset() + payload.len();
            // A block that comes early leaves a gap of zeros. No block ends beyond Size1, which is at most `max_body`.
            bytes.resize(end.max(bytes.len()), 0);
            if let Some(place) = bytes.get_mut(block.offset()..end) {
                place.copy_from_slice(payload);
            }
            return true;
        }
        // A copy of a block is fine. Otherwise the block lies beyond the span of the bitmap.
        self.arrived.has(block.num())
    }

    /// Returns the numbers of the missing blocks below `before`, in ascending order, but at most a set
    /// ([`MAX_PAYLOADS`]).
    fn missing(&self, before: u32) -> Vec<u32> {
        let first = self.arrived.first();
        // Blocks further ahead were never accepted. They are listed once the first ones have arrived.
        let near = first..before.min(first.saturating_add(SPAN));
        near.filter(|&num| !self.arrived.has(num)).take(MAX_PAYLOADS as usize).collect()
    }

    /// Returns the answer to a request with this block, while other blocks are missing.
    fn answer<'a>(&mut self, block: Block, kind: Kind) -> Assembled<'a> {
        if kind == Kind::Confirmable {
            // The client knows by the acknowledgements which blocks have arrived, unless they were discarded since.
            let blocks = self.size.div_ceil(block.size() as u32);
            return if self.has_lost { incomplete(&self.missing(blocks)) } else { Assembled::Taken };
        }
        let (first, set) = (self.arrived.first(), block.num() - block.num() % MAX_PAYLOADS);
        if first > block.num() && first.is_multiple_of(MAX_PAYLOADS) {
            // All of its set have arrived, and all before.
            let last = Block::new(first - 1, true, self.szx).unwrap_or(block);
            return answer(code::CONTINUE, &Options::default().q_block1(last));
        }
        // The first block of a set shows that the client has gone on.
        if set > self.asked && first < set {
            self.asked = set;
            return incomplete(&self.missing(set));
        }
        Assembled::Taken
    }
}

/// Returns 4.08 with the numbers of missing blocks (RFC 9177 §5).
fn incomplete<'a>(missing: &[u32]) -> Assembled<'a> {
    let options = Options::default().content_format(MISSING_BLOCKS);
    let tail: Result<Tail, _> = options.tail(&missing::write(missing.iter().copied()));
    Assembled::Answer { code: Code(code::REQUEST_ENTITY_INCOMPLETE), tail: tail.unwrap_or_default() }
}

impl<A: Address> Reassembly<A> {
    /// Handles a request with Q-Block1.
    pub(super) fn handle_set<'a>(
        &mut self,
        now: Instant,
        from: A,
        verified: bool,
        request: &Message<'a>,
    ) -> Result<Assembled<'a>, Unverified> {
        let plain = |code| Ok(answer(code, &Options::default()));
        // Q-Block1 has no use over a reliable transport, and must not be there beside Block1 or Block2 (RFC 9177 §4.1).
        let is_mixed = [option::BLOCK1, option::BLOCK2].iter().any(|&block| request.value(block).is_some());
        if is_mixed || self.bounds.max_szx == BERT {
            return plain(code::BAD_OPTION);
        }
        let tagged = request.value(option::REQUEST_TAG).is_some();
        // Requests with Q-Block1 must have Request-Tag and Size1 (RFC 9177 §4.3, §4.6).
        let (Ok(Some(block)), Some(size), true) = (request.q_block1(), request.size1(), tagged) else {
            return plain(code::BAD_REQUEST);
        };
        let payload = request.payload();
        let (end, total) = (block.offset() + payload.len(), size as usize);
        // Size1 has the length of the body in every block (RFC 9177 §4.6), so it shows which one is the last.
        let is_last = if block.more() { end < total } else { end == total };
        if !block.admits(payload.len()) || !is_last {
            return plain(code::BAD_REQUEST);
        }
        if total > self.bounds.max_body {
            let size = u32::try_from(self.bounds.max_body).unwrap_or(u32::MAX);
            return Ok(answer(code::REQUEST_ENTITY_TOO_LARGE, &Options::default().size1(size)));
        }
        // The block is the whole body, so there is nothing to keep.
        if block.num() == 0 && !block.more() {
            return Ok(Assembled::Whole { body: Cow::Owned(payload.to_vec()), block: None });
        }
        if let Some(smaller) = Block::new(block.num(), block.more(), self.bounds.max_szx)
            && block.szx() > smaller.szx()
        {
            return Ok(answer(code::REQUEST_ENTITY_TOO_LARGE, &Options::default().q_block1(smaller)));
        }
        // These blocks come before any answer, so they do not show that the source receives answers.
        if !verified {
            return Err(Unverified);
        }
        self.expire(now);
        let key = key(request);
        let known = self.bodies.iter().position(|body| body.from == from && body.key == key);
        let known = known.map(|place| self.remove(place));
        // Earlier blocks may have been discarded.
        let has_lost = block.num() > 0 || known.is_some();
        if let Some(body) = known
            && let Some(sets) = &body.sets
        {
            // Within this time the block is a late copy. After it, the client has used its Request-Tag again for a new body.
            if sets.is_over && now.since(body.touched) < STALLED {
                self.keep(body);
                return Ok(Assembled::Taken);
            }
            // Another length or block size means that the client has begun another body with its Request-Tag.
            if !sets.is_over && (sets.size, sets.szx) == (size, block.szx()) {
                return Ok(self.take_block(PartialBody { touched: now, ..body }, block, request));
            }
        }
        let sets = Some(Box::new(BlockSets::new(block, size, has_lost)));
        let body = PartialBody { from, key, bytes: Vec::new(), touched: now, verified, sets };
        Ok(self.take_block(body, block, request))
    }

    /// Adds the block of a request to its body. Returns how the server continues.
    fn take_block<'a>(
        &mut self,
        mut body: PartialBody<A>,
        block: Block,
        request: &Message<'a>,
    ) -> Assembled<'a> {
        let Some(sets) = &mut body.sets else { return Assembled::Taken };
        // The block lies too far ahead. It is listed as missing as well, so that the client sends it again.
        if !sets.write(block, request.payload(), &mut body.bytes) {
            let mut missing = sets.missing(block.num());
            missing.push(block.num());
            self.keep(body);
            return incomplete(&missing);
        }
        if sets.is_whole() {
            // The entry stays without its bytes: a late copy of a block must not begin a new body.
            sets.is_over = true;
            let whole = core::mem::take(&mut body.bytes);
            self.keep(body);
            return Assembled::Whole { body: Cow::Owned(whole), block: None };
        }
        let assembled = sets.answer(block, request.kind);
        // The client retransmits a confirmable block by itself. After a non-confirmable one the server has to ask.
        if request.kind == Kind::NonConfirmable {
            let until = body.touched + NON_RECEIVE_TIMEOUT;
            sets.wait = Some(Wait { until, asked: 0, token: request.token });
            self.overdue_from = self.overdue_from.min(until);
        }
        self.keep(body);
        assembled
    }

    /// Returns when to call [`take_overdue`](Self::take_overdue); [`Instant::MAX`] if no non-confirmable blocks are
    /// missing. A call at that time may still return `None`.
    pub const fn overdue_from(&self) -> Instant {
        self.overdue_from
    }

    /// Returns the next 4.08 response to a client whose non-confirmable blocks have not arrived in time; `None` if none
    /// is due. If NON_MAX_RETRANSMIT such responses bring no block, the body is discarded.
    pub fn take_overdue(&mut self, now: Instant) -> Option<Overdue<A>> {
        if self.overdue_from > now {
            return None;
        }
        let wait = |body: &PartialBody<A>| body.sets.as_ref().filter(|sets| !sets.is_over)?.wait;
        loop {
            let waits = self.bodies.iter().enumerate().filter_map(|(n, body)| Some((wait(body)?.until, n)));
            let (until, place) = waits.min().unwrap_or((Instant::MAX, 0));
            // This is the exact moment. The moment kept before may have been too early.
            self.overdue_from = until;
            if until > now {
                return None;
            }
            let body = self.bodies.get_mut(place)?;
            let sets = body.sets.as_mut()?;
            let wait = sets.wait.as_mut()?;
            if wait.asked < NON_MAX_RETRANSMIT {
                wait.asked += 1;
                // Each 4.08 doubles the wait for the next one (RFC 9177 §7.2).
                wait.until = now + NON_RECEIVE_TIMEOUT.times(1 << wait.asked);
                let token = wait.token;
                let blocks = sets.size.div_ceil(crate::block::size(sets.szx) as u32);
                // `incomplete` never returns anything but an answer.
                let Assembled::Answer { tail, .. } = incomplete(&sets.missing(blocks)) else { continue };
                return Some(Overdue { to: body.from, token, tail });
            }
            self.remove(place);
        }
    }
}
