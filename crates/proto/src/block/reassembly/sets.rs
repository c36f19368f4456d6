//! Bodies of requests whose blocks arrive in any order, with Q-Block1 (RFC 9177 §4.3).

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

use coap_numbers::{code, option};
use coapace_control::Instant;

use super::{Assembled, Body, Reassembly, STALLED, Unverified, answer, key};
use crate::block::missing::{self, MISSING_BLOCKS};
use crate::block::window::{Arrived, SPAN};
use crate::block::{BERT, Block, MAX_PAYLOADS};
use crate::peer::Address;
use crate::{Code, Kind, Message, Options, Tail};

/// The blocks of a body that have arrived.
#[derive(Debug)]
pub(super) struct Sets {
    arrived: Arrived,
    /// The length of the body, bytes (Size1).
    size: u32,
    szx: u8,
    /// True if blocks may have come before that are not here any more. The client is told what is missing then.
    has_lost: bool,
    /// The blocks of all sets before this one were asked for again if they were missing.
    asked: u32,
    /// True if the body was complete, and only late copies of its blocks may arrive.
    pub(super) is_over: bool,
}

impl Sets {
    const fn new(block: Block, size: u32, has_lost: bool) -> Self {
        let arrived = Arrived::before(0);
        Self { arrived, size, szx: block.szx(), has_lost, asked: 0, is_over: false }
    }

    /// Returns whether all blocks have arrived.
    const fn is_whole(&self) -> bool {
        self.arrived.first() as usize * crate::block::size(self.szx) >= self.size as usize
    }

    /// Writes a block at its place in the body. Returns false if it is too far ahead of those that are missing.
    fn write(&mut self, block: Block, payload: &[u8], bytes: &mut Vec<u8>) -> bool {
        if self.arrived.add(block.num()) {
            let end = block.offset() + payload.len();
            bytes.resize(end.max(bytes.len()), 0);
            if let Some(place) = bytes.get_mut(block.offset()..end) {
                place.copy_from_slice(payload);
            }
            return true;
        }
        self.arrived.has(block.num())
    }

    /// Returns the numbers of the first blocks that are missing before this one, no more than a set.
    fn missing(&self, before: u32) -> Vec<u32> {
        let first = self.arrived.first();
        let near = first..before.min(first.saturating_add(SPAN));
        near.filter(|&num| !self.arrived.has(num)).take(MAX_PAYLOADS as usize).collect()
    }

    /// Returns the answer to a request with this block, which has arrived, while others are missing.
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
    /// Takes a request with Q-Block1.
    pub(super) fn handle_set<'a>(
        &mut self,
        now: Instant,
        from: A,
        verified: bool,
        request: &Message<'a>,
    ) -> Result<Assembled<'a>, Unverified> {
        let plain = |code| Ok(answer(code, &Options::default()));
        // Over a reliable transport it has no use, and beside Block it must not be (RFC 9177 §4.1).
        let is_mixed = [option::BLOCK1, option::BLOCK2].iter().any(|&block| request.value(block).is_some());
        if is_mixed || self.bounds.max_szx == BERT {
            return plain(code::BAD_OPTION);
        }
        let tagged = request.value(option::REQUEST_TAG).is_some();
        let (Ok(Some(block)), Some(size), true) = (request.q_block1(), request.size1(), tagged) else {
            return plain(code::BAD_REQUEST);
        };
        let payload = request.payload();
        let (end, total) = (block.offset() + payload.len(), size as usize);
        let is_last = if block.more() { end < total } else { end == total };
        if !block.admits(payload.len()) || !is_last {
            return plain(code::BAD_REQUEST);
        }
        if total > self.bounds.max_body {
            let size = u32::try_from(self.bounds.max_body).unwrap_or(u32::MAX);
            return Ok(answer(code::REQUEST_ENTITY_TOO_LARGE, &Options::default().size1(size)));
        }
        if block.num() == 0 && !block.more() {
            return Ok(Assembled::Whole { body: Cow::Owned(payload.to_vec()), block: None });
        }
        if let Some(smaller) = Block::new(block.num(), block.more(), self.bounds.max_szx)
            && block.szx() > smaller.szx()
        {
            return Ok(answer(code::REQUEST_ENTITY_TOO_LARGE, &Options::default().q_block1(smaller)));
        }
        if !verified {
            return Err(Unverified);
        }
        self.expire(now);
        let key = key(request);
        let known = self.bodies.iter().position(|body| body.from == from && body.key == key);
        let known = known.map(|place| self.remove(place));
        // Others may have come before that are not here any more.
        let has_lost = block.num() > 0 || known.is_some();
        if let Some(body) = known
            && let Some(sets) = &body.sets
        {
            if sets.is_over && now.since(body.touched) < STALLED {
                self.keep(body);
                return Ok(Assembled::Taken);
            }
            if !sets.is_over && (sets.size, sets.szx) == (size, block.szx()) {
                return Ok(self.take_block(Body { touched: now, ..body }, block, request));
            }
        }
        let sets = Some(Box::new(Sets::new(block, size, has_lost)));
        let body = Body { from, key, bytes: Vec::new(), touched: now, verified, sets };
        Ok(self.take_block(body, block, request))
    }

    /// Adds a block to its body.
    fn take_block<'a>(&mut self, mut body: Body<A>, block: Block, request: &Message<'a>) -> Assembled<'a> {
        let Some(sets) = &mut body.sets else { return Assembled::Taken };
        if !sets.write(block, request.payload(), &mut body.bytes) {
            let mut missing = sets.missing(block.num());
            missing.push(block.num());
            self.keep(body);
            return incomplete(&missing);
        }
        if sets.is_whole() {
            sets.is_over = true;
            let whole = core::mem::take(&mut body.bytes);
            self.keep(body);
            return Assembled::Whole { body: Cow::Owned(whole), block: None };
        }
        let assembled = sets.answer(block, request.kind);
        self.keep(body);
        assembled
    }
}
