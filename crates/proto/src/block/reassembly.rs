//! The server's side of Block1 and Q-Block1: reassembly of request bodies (RFC 7959 §2.3, RFC 9175 §3.3, RFC 9177 §4.3).

mod sets;

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::vec::Vec;

use coap_numbers::{code, option};
use coapace_control::{Duration, Instant};

use self::sets::BlockSets;
pub use self::sets::Overdue;
use super::Block;
use crate::options::{Options, is_no_cache_key};
use crate::peer::Address;
use crate::{Code, Message, Tail};

/// The limits of a [`Reassembly`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The maximum number of bodies at once. Beyond that, a body of an unverified source is discarded, or else the body
    /// that has waited longest for its next block.
    pub max_bodies: usize,
    /// The maximum number of bytes of one body. A larger one is answered with 4.13.
    pub max_body: usize,
    /// The maximum number of bytes of all bodies, including the options that distinguish them. Beyond that, bodies are
    /// discarded in the sequence described at [`max_bodies`](Self::max_bodies).
    pub max_bytes: usize,
    /// The time for which a body waits for its next block. RFC 7959 §2.5 suggests EXCHANGE_LIFETIME.
    pub patience: Duration,
    /// The largest size exponent of blocks. Clients that begin with larger blocks are asked for this size.
    /// [`BERT`](super::BERT) means that the transport is reliable.
    pub max_szx: u8,
}

impl Default for Bounds {
    /// Returns limits of 16 bodies, 64 KiB for each, 256 KiB in total, 247 s, and blocks of 1024 bytes.
    fn default() -> Self {
        Self {
            max_bodies: 16,
            max_body: 64 << 10,
            max_bytes: 256 << 10,
            patience: Duration::from_secs(247),
            max_szx: super::MAX_SZX,
        }
    }
}

/// The time without a new block after which a body of an unverified source may be discarded for another one. It is
/// longer than a round trip, and shorter than the time after which a client gives up.
const STALLED: Duration = Duration::from_secs(10);

/// The incomplete request bodies, sorted by the time of their last blocks.
#[derive(Debug)]
pub struct Reassembly<A> {
    bounds: Bounds,
    bodies: Vec<PartialBody<A>>,
    bytes: usize,
    /// The earliest time at which [`take_overdue`](Self::take_overdue) may have a response to return.
    overdue_from: Instant,
}

#[derive(Debug)]
struct PartialBody<A> {
    from: A,
    /// The identity of the request: its code, and its options. Block options are left out, and so are options that are
    /// not part of the cache key.
    key: Vec<u8>,
    bytes: Vec<u8>,
    touched: Instant,
    /// True if the client is known to receive messages at its address: it has returned an Echo option, or has sent a second
    /// block, for which it had to receive the answer to the first.
    verified: bool,
    /// The record of the blocks that have arrived with Q-Block1, in any sequence; `None` with Block1.
    sets: Option<Box<BlockSets>>,
}

impl<A> PartialBody<A> {
    fn cost(&self) -> usize {
        self.key.len() + self.bytes.len() + self.sets.as_ref().map_or(0, |_| size_of::<BlockSets>())
    }

    /// Returns whether the body was completed before. Only late copies of its blocks may still arrive.
    fn is_over(&self) -> bool {
        self.sets.as_ref().is_some_and(|sets| sets.is_over)
    }

    /// Returns whether this body is among the first to be discarded, because its source is unverified or the body was
    /// completed.
    fn may_go(&self) -> bool {
        !self.verified || self.is_over()
    }
}

/// The result of a request with a block: how the server continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assembled<'a> {
    /// The body is complete. The response must have the `block`, if there is one, in its Block1 option.
    Whole {
        /// The complete body.
        body: Cow<'a, [u8]>,
        /// The Block1 option of the response.
        block: Option<Block>,
    },
    /// The server has accepted a block. It acknowledges a confirmable request, and sends no response. The request that
    /// completes the body gets the response.
    Taken,
    /// The server sends this answer, 2.31 or an error, without calling a handler.
    Answer {
        /// 2.31 Continue, 4.00, 4.02, 4.08 or 4.13.
        code: Code,
        /// The options of the answer.
        tail: Tail,
    },
}

/// The error that a block is not stored because its source is unverified. Either the body has several blocks with
/// Q-Block1, or the share of unverified sources is used up. The server asks for an Echo option ([`echo`](crate::echo)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unverified;

impl<A: Address> Reassembly<A> {
    /// Creates a reassembly without any bodies.
    pub const fn new(bounds: Bounds) -> Self {
        Self { bounds, bodies: Vec::new(), bytes: 0, overdue_from: Instant::MAX }
    }

    /// Returns the number of stored bytes.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of incomplete bodies.
    pub fn len(&self) -> usize {
        self.bodies.iter().filter(|body| !body.is_over()).count()
    }

    /// Returns whether no body is incomplete.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Handles a request from a verified source that has a complete body or one block of it.
    pub fn handle<'a>(&mut self, now: Instant, from: A, request: &Message<'a>) -> Assembled<'a> {
        let handled = self.handle_from(now, from, true, request);
        // Only unverified sources are refused, so this answer is never sent.
        handled.unwrap_or_else(|Unverified| answer(code::SERVICE_UNAVAILABLE, &Options::default()))
    }

    /// Handles a request with a complete body or one block of it. All sources that are not `verified` share half of
    /// each limit. A body counts as verified from its second block on. Bodies of unverified sources are discarded
    /// first.
    ///
    /// # Errors
    /// [`Unverified`] if the source is not `verified`, and either the half for such sources is used up, or the body has
    /// several blocks with Q-Block1. These do not show that the source receives the answers.
    pub fn handle_from<'a>(
        &mut self,
        now: Instant,
        from: A,
        verified: bool,
        request: &Message<'a>,
    ) -> Result<Assembled<'a>, Unverified> {
        if request.value(option::Q_BLOCK1).is_some() {
            return self.handle_set(now, from, verified, request);
        }
        let payload = request.payload();
        let reliable = self.bounds.max_szx == super::BERT;
        let block = match if reliable { Ok(request.block1_reliable()) } else { request.block1() } {
            Ok(Some(block)) => block,
            Ok(None) if payload.len() <= self.bounds.max_body => {
                return Ok(Assembled::Whole { body: Cow::Borrowed(payload), block: None });
            }
            Ok(None) => return Ok(self.too_large(None)),
            // The reserved SZX of 7 must lead to 4.00 (RFC 7959 §2.2).
            Err(_) => return Ok(answer(code::BAD_REQUEST, &Options::default())),
        };
        // A block of another length would put all later ones at the wrong place.
        if !block.admits(payload.len()) {
            return Ok(answer(code::BAD_REQUEST, &Options::default()));
        }
        self.expire(now);
        // A client may send several bodies at once. The options of the cache key distinguish them (RFC 9175 §3.3).
        let key = key(request);
        let known = self.bodies.iter().position(|body| body.from == from && body.key == key);
        // `keep` appends the body again, so that the list stays sorted by the time of the last block.
        let known = known.map(|place| self.remove(place));
        let mut body = match known {
            // Block 0 begins the body again, and replaces its blocks so far (RFC 7959 §2.5).
            _ if block.num() == 0 => {
                PartialBody { from, key, bytes: Vec::new(), touched: now, verified, sets: None }
            }
            Some(body) => PartialBody { touched: now, ..body },
            None => return Ok(incomplete(block)),
        };
        let end = block.offset() + payload.len();
        // Size1 shows with the first block that a body is too large, before the rest is sent (RFC 7959 §4).
        if end > self.bounds.max_body
            || request.size1().is_some_and(|size| size as usize > self.bounds.max_body)
        {
            return Ok(self.too_large(Some(block)));
        }
        // The block may be one that was here, in a message with another Message ID.
        let again = block.more() && body.bytes.get(block.offset()..end) == Some(payload);
        if !again {
            if block.offset() != body.bytes.len() {
                // A stray block must not cost the client the blocks before it.
                self.keep(body);
                return Ok(incomplete(block));
            }
            body.bytes.extend_from_slice(payload);
            // The client has received the answer to its first block, so its address is not forged.
            body.verified |= block.num() > 0;
        }
        if !block.more() {
            return Ok(Assembled::Whole { body: Cow::Owned(body.bytes), block: Some(block) });
        }
        // Unverified sources share half of the room, so that forged addresses cannot displace everybody.
        if !body.verified && !self.has_room_for_stranger(now, body.cost()) {
            return Err(Unverified);
        }
        self.keep(body);
        // The client sends its next blocks in the size that the answer names (RFC 7959 §2.3).
        let smaller = Block::new(block.num(), true, block.szx().min(self.bounds.max_szx));
        Ok(answer(code::CONTINUE, &Options::default().block1(smaller.unwrap_or(block))))
    }

    /// Stores a complete body without its last block, for a client that is asked to repeat `request` with an Echo value
    /// (RFC 9175 §2.3). `request` carried that last block. The body counts as one from an unverified source, and is not
    /// stored if their share is used up.
    pub fn put_back(&mut self, now: Instant, from: A, request: &Message<'_>, body: &[u8]) {
        // The client repeats the request, and with it this last block.
        let rest = body.len().saturating_sub(request.payload().len());
        let bytes = body.get(..rest).unwrap_or_default().to_vec();
        let body = PartialBody { from, key: key(request), bytes, touched: now, verified: false, sets: None };
        if rest > 0 && self.has_room_for_stranger(now, body.cost()) {
            self.keep(body);
        }
    }

    /// Discards bodies that have waited too long for their next block.
    pub fn expire(&mut self, now: Instant) {
        while self.bodies.first().is_some_and(|body| now.since(body.touched) > self.bounds.patience) {
            self.remove(0);
        }
    }

    /// Returns whether a body of `cost` bytes fits into the share of unverified sources. Discards stalled bodies of
    /// such sources if necessary.
    fn has_room_for_stranger(&mut self, now: Instant, cost: usize) -> bool {
        let Bounds { max_bodies, max_bytes, .. } = self.bounds;
        loop {
            let strangers = self.bodies.iter().filter(|body| !body.verified);
            let (count, bytes) =
                strangers.fold((0, 0), |(count, bytes), body| (count + 1, bytes + body.cost()));
            if 2 * count < max_bodies && 2 * (bytes + cost) <= max_bytes {
                return true;
            }
            let oldest = self.bodies.iter().position(|body| !body.verified);
            // A body that still moves is not displaced. Otherwise strangers would discard each other's bodies for ever.
            match oldest.filter(|&place| now.since(self.bodies[place].touched) >= STALLED) {
                Some(place) => drop(self.remove(place)),
                None => return false,
            }
        }
    }

    /// Stores a body, and discards other bodies if there is too little space.
    fn keep(&mut self, body: PartialBody<A>) {
        let Bounds { max_bodies, max_bytes, .. } = self.bounds;
        while !self.bodies.is_empty()
            && (self.bodies.len() >= max_bodies || self.bytes + body.cost() > max_bytes)
        {
            self.remove(self.bodies.iter().position(PartialBody::may_go).unwrap_or(0));
        }
        // A body that would not fit alone is not kept. Its next block is answered with 4.08.
        if max_bodies > 0 && body.cost() <= max_bytes {
            self.bytes += body.cost();
            self.bodies.push(body);
        }
    }

    fn remove(&mut self, place: usize) -> PartialBody<A> {
        let body = self.bodies.remove(place);
        self.bytes -= body.cost();
        body
    }

    /// Returns 4.13 with the accepted size (RFC 7959 §2.9.3).
    fn too_large<'a>(&self, block: Option<Block>) -> Assembled<'a> {
        let size = u32::try_from(self.bounds.max_body).unwrap_or(u32::MAX);
        let options = Options::default().size1(size);
        answer(code::REQUEST_ENTITY_TOO_LARGE, &block.into_iter().fold(options, Options::block1))
    }
}

/// Returns 4.08, because an earlier block is missing (RFC 7959 §2.9.2).
fn incomplete<'a>(block: Block) -> Assembled<'a> {
    answer(code::REQUEST_ENTITY_INCOMPLETE, &Options::default().block1(block))
}

fn answer<'a>(code: u8, options: &Options) -> Assembled<'a> {
    // The lengths of Block1 and Size1 are always allowed, so this does not fail.
    Assembled::Answer { code: Code(code), tail: options.tail(&[]).unwrap_or_default() }
}

/// Returns the identity of a request, see [`PartialBody::key`]. A request with Q-Block1 and one with Block1 have
/// different identities.
fn key(request: &Message<'_>) -> Vec<u8> {
    const LEFT_OUT: [u16; 3] = [option::BLOCK1, option::BLOCK2, option::Q_BLOCK2];
    let parts = request
        .options()
        .filter(|&(number, _)| !is_no_cache_key(number) && !LEFT_OUT.contains(&number))
        .map(|(number, value)| (number, if number == option::Q_BLOCK1 { &[] } else { value }));
    let mut key =
        // Options of a message ascend, as `Tail` needs them.
        parts.fold(Tail::default(), |tail, (number, value)| tail.option(number, value)).into_bytes();
    key.push(request.code.0);
    key
}
