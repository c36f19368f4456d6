//! The server's side of Block1 and Q-Block1, which puts request bodies together (RFC 7959 §2.3, RFC 9175 §3.3, RFC 9177
//! §4.3).

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

/// The bounds of a [`Reassembly`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The most bodies at once. If there are more, a body of an unverified source is discarded, or else the
    /// one whose last block is the oldest.
    pub max_bodies: usize,
    /// The most bytes of one body. A larger one is answered with 4.13.
    pub max_body: usize,
    /// The most bytes of all bodies and of the options that tell them apart. If there are more, bodies are
    /// discarded in the same order.
    pub max_bytes: usize,
    /// The time for which a body waits for its next block. RFC 7959 §2.5 suggests EXCHANGE_LIFETIME.
    pub patience: Duration,
    /// The largest size exponent. Clients that begin with larger blocks are asked for it.
    /// [`BERT`](super::BERT) means that the transport is reliable.
    pub max_szx: u8,
}

impl Default for Bounds {
    /// Returns bounds of 16 bodies, 64 KiB for each, 256 KiB for all, 247 s, and blocks of 1024 bytes.
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

/// The age at which the first block of an unverified source makes room for the first block of another source. It is
/// longer than a round trip, and shorter than the time after which a client gives up.
const STALLED: Duration = Duration::from_secs(10);

/// The request bodies that are not complete, in the order of their last blocks.
#[derive(Debug)]
pub struct Reassembly<A> {
    bounds: Bounds,
    bodies: Vec<PartialBody<A>>,
    bytes: usize,
    /// No block is [overdue](Self::take_overdue) before this moment.
    overdue_from: Instant,
}

#[derive(Debug)]
struct PartialBody<A> {
    from: A,
    /// The identity of the operation: the code, and the options that are part of the cache key without the
    /// block options.
    key: Vec<u8>,
    bytes: Vec<u8>,
    touched: Instant,
    /// True if the client is known to receive messages to its address. It has shown an Echo option, or has sent a
    /// second block, for which it had to receive the answer to the first.
    verified: bool,
    /// The blocks that have arrived, if they come in any order.
    sets: Option<Box<BlockSets>>,
}

impl<A> PartialBody<A> {
    fn cost(&self) -> usize {
        self.key.len() + self.bytes.len() + self.sets.as_ref().map_or(0, |_| size_of::<BlockSets>())
    }

    /// Returns whether the body was complete, so that only late copies of its blocks may arrive.
    fn is_over(&self) -> bool {
        self.sets.as_ref().is_some_and(|sets| sets.is_over)
    }

    /// Returns whether the body is discarded before others.
    fn may_go(&self) -> bool {
        !self.verified || self.is_over()
    }
}

/// The meaning of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assembled<'a> {
    /// The body is complete. The response must have the `block`, if there is one, in its Block1 option.
    Whole {
        /// The whole body.
        body: Cow<'a, [u8]>,
        /// The Block1 of the response.
        block: Option<Block>,
    },
    /// The server has taken a block. It acknowledges a confirmable request, and sends no response. The request that
    /// completes the body gets the response.
    Taken,
    /// The server sends this answer, 2.31 or an error. No handler sees the request.
    Answer {
        /// 2.31 Continue, 4.00, 4.02, 4.08 or 4.13.
        code: Code,
        /// The options of the answer.
        tail: Tail,
    },
}

/// The error that an unverified source sent a block that is not kept. The block is one of several with Q-Block1, or the
/// room for unverified sources is full. The server asks for an Echo option ([`echo`](crate::echo)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unverified;

impl<A: Address> Reassembly<A> {
    /// Creates a reassembly without any bodies.
    pub const fn new(bounds: Bounds) -> Self {
        Self { bounds, bodies: Vec::new(), bytes: 0, overdue_from: Instant::MAX }
    }

    /// Returns how many bytes are held.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns how many bodies are not complete.
    pub fn len(&self) -> usize {
        self.bodies.iter().filter(|body| !body.is_over()).count()
    }

    /// Returns whether no body is incomplete.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes a request from a verified source. It may be a part of a body or a whole one.
    pub fn handle<'a>(&mut self, now: Instant, from: A, request: &Message<'a>) -> Assembled<'a> {
        let handled = self.handle_from(now, from, true, request);
        handled.unwrap_or_else(|Unverified| answer(code::SERVICE_UNAVAILABLE, &Options::default()))
    }

    /// Takes a request. Sources that are not `verified` may take half of all room. Only the first block of a
    /// body is unverified, and it is the first to make room for others.
    ///
    /// # Errors
    /// [`Unverified`] if the source is not verified, and its half is full or the blocks come with Q-Block1. Blocks with
    /// Q-Block1 do not show that the source receives the answers.
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
            Err(_) => return Ok(answer(code::BAD_REQUEST, &Options::default())),
        };
        if !block.admits(payload.len()) {
            return Ok(answer(code::BAD_REQUEST, &Options::default()));
        }
        self.expire(now);
        let key = key(request);
        let known = self.bodies.iter().position(|body| body.from == from && body.key == key);
        let known = known.map(|place| self.remove(place));
        let mut body = match known {
            _ if block.num() == 0 => {
                PartialBody { from, key, bytes: Vec::new(), touched: now, verified, sets: None }
            }
            Some(body) => PartialBody { verified: true, ..body },
            None => return Ok(incomplete(block)),
        };
        let end = block.offset() + payload.len();
        if end > self.bounds.max_body
            || request.size1().is_some_and(|size| size as usize > self.bounds.max_body)
        {
            return Ok(self.too_large(Some(block)));
        }
        // The block may be the last one again, in a message with another Message ID.
        let again = end == body.bytes.len() && body.bytes[block.offset()..] == *payload && block.more();
        if !again {
            if block.offset() != body.bytes.len() {
                return Ok(incomplete(block));
            }
            body.bytes.extend_from_slice(payload);
        }
        if !block.more() {
            return Ok(Assembled::Whole { body: Cow::Owned(body.bytes), block: Some(block) });
        }
        body.touched = now;
        if !body.verified && !self.has_room_for_stranger(now, body.cost()) {
            return Err(Unverified);
        }
        self.keep(body);
        let smaller = Block::new(block.num(), true, block.szx().min(self.bounds.max_szx));
        Ok(answer(code::CONTINUE, &Options::default().block1(smaller.unwrap_or(block))))
    }

    /// Keeps a body without its last block, which `request` has brought, for a client that is asked to repeat that
    /// request with an Echo value (RFC 9175 §2.3). It takes the room of unverified sources, and is the first to make
    /// room for others.
    pub fn put_back(&mut self, now: Instant, from: A, request: &Message<'_>, body: &[u8]) {
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

    /// Returns whether there is room for the first block of an unverified source. Discards stalled blocks of such
    /// sources for it.
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
            match oldest.filter(|&place| now.since(self.bodies[place].touched) >= STALLED) {
                Some(place) => drop(self.remove(place)),
                None => return false,
            }
        }
    }

    /// Keeps a body. Discards others if they leave too little room.
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

    /// Returns 4.13 with the size that would be taken (RFC 7959 §2.9.3).
    fn too_large<'a>(&self, block: Option<Block>) -> Assembled<'a> {
        let size = u32::try_from(self.bounds.max_body).unwrap_or(u32::MAX);
        let options = Options::default().size1(size);
        answer(code::REQUEST_ENTITY_TOO_LARGE, &block.into_iter().fold(options, Options::block1))
    }
}

/// Returns 4.08, because a block before this one is missing (RFC 7959 §2.9.2).
fn incomplete<'a>(block: Block) -> Assembled<'a> {
    answer(code::REQUEST_ENTITY_INCOMPLETE, &Options::default().block1(block))
}

fn answer<'a>(code: u8, options: &Options) -> Assembled<'a> {
    // The lengths of Block1 and Size1 are always allowed, so this does not fail.
    Assembled::Answer { code: Code(code), tail: options.tail(&[]).unwrap_or_default() }
}

/// Returns the identity of the operation that a request belongs to, see [`PartialBody::key`]. A body with Q-Block1 and a body
/// with Block1 have different identities.
fn key(request: &Message<'_>) -> Vec<u8> {
    const LEFT_OUT: [u16; 3] = [option::BLOCK1, option::BLOCK2, option::Q_BLOCK2];
    let parts = request
        .options()
        .filter(|&(number, _)| !is_no_cache_key(number) && !LEFT_OUT.contains(&number))
        .map(|(number, value)| (number, if number == option::Q_BLOCK1 { &[] } else { value }));
    let mut key =
        parts.fold(Tail::default(), |tail, (number, value)| tail.option(number, value)).into_bytes();
    key.push(request.code.0);
    key
}
