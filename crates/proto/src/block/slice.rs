//! The server's side of Block2: one block of a representation.

use core::hash::Hasher;

use siphasher::sip::SipHasher13;

use super::{BERT, Block};
use crate::options::Options;

/// Bytes of an ETag, a Size2 and a Block2 option, and of the payload marker, at most.
const OPTIONS: usize = 10 + 6 + 5 + 1;

/// A representation, or as much of it as is at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    bytes: &'a [u8],
    offset: usize,
    size: usize,
}

impl<'a> Part<'a> {
    /// Takes the bytes from `offset` on of a representation of `size` bytes. Returns `None` if it has not so many.
    ///
    /// A part that is not the last has 1024 bytes or more, so that a block of any size can be cut from it.
    pub fn new(bytes: &'a [u8], offset: usize, size: usize) -> Option<Self> {
        let end = offset.checked_add(bytes.len())?;
        (end <= size).then_some(Self { bytes, offset, size })
    }

    /// All of a representation.
    pub const fn whole(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0, size: bytes.len() }
    }

    /// Returns whether it is all of the representation.
    pub const fn is_whole(&self) -> bool {
        self.bytes.len() == self.size
    }
}

/// One block of a representation, to be sent in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice<'a> {
    /// The bytes of the block.
    pub payload: &'a [u8],
    block: Option<Block>,
    part: Part<'a>,
}

impl<'a> Slice<'a> {
    /// The block of `representation` that is `asked` for, of at most 2^(`max_szx` + 4) bytes; the first if none is asked
    /// for. `None` where there is no such block: to be answered with 4.00.
    pub fn new(representation: &'a [u8], asked: Option<Block>, max_szx: u8) -> Option<Self> {
        Self::of(Part::whole(representation), asked, max_szx)
    }

    /// Cuts the block from a part of a representation. `None` also where the part does not have the block.
    pub fn of(part: Part<'a>, asked: Option<Block>, max_szx: u8) -> Option<Self> {
        let szx = asked.map_or(super::MAX_SZX, Block::szx).min(max_szx);
        Self::cut(part, asked, szx, super::size(szx))
    }

    /// The same for a client that is reached over a reliable transport, and takes [`BERT`]: all that fits into `room`
    /// bytes, of which options other than Block2, Size2 and ETag are not part.
    pub fn reliable(representation: &'a [u8], asked: Option<Block>, room: usize) -> Option<Self> {
        Self::reliable_of(Part::whole(representation), asked, room)
    }

    /// Cuts as much as fits into `room` bytes, as [`reliable`](Self::reliable) does, from a part of a representation.
    /// `None` also where the part does not have the block.
    pub fn reliable_of(part: Part<'a>, asked: Option<Block>, room: usize) -> Option<Self> {
        let room = room.saturating_sub(OPTIONS);
        if asked.is_none() && part.is_whole() && part.size <= room {
            return Self::cut(part, None, BERT, part.size);
        }
        let (szx, len) = super::step(asked.map_or(BERT, Block::szx), room)?;
        Self::cut(part, asked, szx, len)
    }

    fn cut(part: Part<'a>, asked: Option<Block>, szx: u8, len: usize) -> Option<Self> {
        let offset = asked.map_or(0, Block::offset);
        if offset > 0 && offset >= part.size {
            return None;
        }
        let rest = part.bytes.get(offset.checked_sub(part.offset)?..)?;
        let mut payload = &rest[..rest.len().min(len)];
        let more = offset + payload.len() < part.size;
        if more && payload.len() < len {
            // The part ends here, the representation does not: a block that others follow is full.
            payload = &payload[..payload.len() - payload.len() % super::size(szx)];
            if payload.is_empty() {
                return None;
            }
        }
        let block = if more || asked.is_some() {
            Some(Block::new(u32::try_from(offset / super::size(szx)).ok()?, more, szx)?)
        } else {
            None
        };
        Some(Self { payload, block, part })
    }

    /// Adds Block2 where the representation needs more blocks than one or the client asked for one, with the first block
    /// Size2, and an ETag where the application gave none (RFC 7959 §2.4) and all of the representation is at hand. Nothing
    /// has no blocks, whatever was asked for: the answer to a PUT, as a rule.
    #[must_use]
    pub fn options(&self, options: Options) -> Options {
        let Some(block) = self.block.filter(|_| self.part.size > 0) else { return options };
        let named = options.iter().any(|(number, _)| number == coap_numbers::option::ETAG);
        let options =
            if named || !self.part.is_whole() { options } else { options.etag(&etag(self.part.bytes)) };
        let size = u32::try_from(self.part.size).ok().filter(|_| block.num() == 0);
        let options = size.into_iter().fold(options, Options::size2);
        options.block2(block)
    }
}

/// A version of a representation, derived from its bytes: the same bytes have the same on every machine. It tells versions
/// apart, not malice.
pub fn etag(representation: &[u8]) -> [u8; 8] {
    let mut hasher = SipHasher13::new();
    hasher.write(representation);
    hasher.finish().to_be_bytes()
}
