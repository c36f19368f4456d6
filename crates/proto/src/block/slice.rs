//! The server's side of Block2, which cuts a representation into blocks.

use core::hash::Hasher;

use siphasher::sip::SipHasher13;

use super::{BERT, Block};
use crate::options::Options;

/// The maximum number of bytes that the options ETag, Size2 and Block2 and the payload marker take together.
const OPTIONS: usize = 10 + 6 + 5 + 1;

/// A representation, or the part of it that the application has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    bytes: &'a [u8],
    offset: usize,
    size: usize,
}

impl<'a> Part<'a> {
    /// Creates a part that starts at `offset` in a representation of `size` bytes. Returns `None` if it ends beyond the
    /// representation.
    ///
    /// A part that is not the last must have at least 1024 bytes, so that a block of any size can be cut from it.
    pub fn new(bytes: &'a [u8], offset: usize, size: usize) -> Option<Self> {
        let end = offset.checked_add(bytes.len())?;
        (end <= size).then_some(Self { bytes, offset, size })
    }

    /// Creates a part that is the complete representation.
    pub const fn whole(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0, size: bytes.len() }
    }

    /// Returns whether this part is the complete representation.
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
    /// Cuts the requested block (`asked`) from a representation; the first block if `asked` is `None`. The block has at
    /// most 2^(`max_szx` + 4) bytes. Returns `None` if the block does not exist: answer with 4.00.
    pub fn new(representation: &'a [u8], asked: Option<Block>, max_szx: u8) -> Option<Self> {
        Self::of(Part::whole(representation), asked, max_szx)
    }

    /// Cuts the requested block from a part of a representation, like [`new`](Self::new). Also returns `None` if the
    /// part does not contain the block.
    pub fn of(part: Part<'a>, asked: Option<Block>, max_szx: u8) -> Option<Self> {
        let szx = asked.map_or(super::MAX_SZX, Block::szx).min(max_szx);
        Self::cut(part, asked, szx, super::size(szx))
    }

    /// Cuts as many blocks as fit into `room` bytes, from the requested block (`asked`) on, for a client on a reliable
    /// transport that accepts [`BERT`]. The payload and the options Block2, Size2 and ETag share the `room`. Returns
    /// `None` if the requested block does not exist.
    pub fn reliable(representation: &'a [u8], asked: Option<Block>, room: usize) -> Option<Self> {
        Self::reliable_of(Part::whole(representation), asked, room)
    }

    /// Cuts as many blocks as fit into `room` bytes from a part of a representation, like [`reliable`](Self::reliable). Also
    /// returns `None` if the part does not contain the block.
    pub fn reliable_of(part: Part<'a>, asked: Option<Block>, room: usize) -> Option<Self> {
        let room = room.saturating_sub(OPTIONS);
        // A stream carries a long message, so a body that fits into one needs no blocks.
        if asked.is_none() && part.is_whole() && part.size <= room {
            return Self::cut(part, None, BERT, part.size);
        }
        let (szx, len) = super::step(asked.map_or(BERT, Block::szx), room)?;
        Self::cut(part, asked, szx, len)
    }

    fn cut(part: Part<'a>, asked: Option<Block>, szx: u8, len: usize) -> Option<Self> {
        let offset = asked.map_or(0, Block::offset);
        // Block 0 exists even if the representation is empty.
        if offset > 0 && offset >= part.size {
            return None;
        }
        let rest = part.bytes.get(offset.checked_sub(part.offset)?..)?;
        let mut payload = &rest[..rest.len().min(len)];
        let more = offset + payload.len() < part.size;
        if more && payload.len() < len {
            // The part ends here and the representation goes on. A block that others follow is full.
            payload = &payload[..payload.len() - payload.len() % super::size(szx)];
            if payload.is_empty() {
                return None;
            }
        }
        let block = if more || asked.is_some() {
            // The number counts blocks of the size that is sent, which may be below the requested one (RFC 7959 §2.4).
            Some(Block::new(u32::try_from(offset / super::size(szx)).ok()?, more, szx)?)
        } else {
            None
        };
        Some(Self { payload, block, part })
    }

    /// Adds the options of the block to the `options` of the response (RFC 7959 §2.4).
    ///
    /// * Block2, if the representation has more than one block or the client requested a block. An empty representation, for
    ///   example the answer to a PUT, has no blocks.
    /// * Size2, with the first block.
    /// * An ETag, if the application set none and has the complete representation.
    #[must_use]
    pub fn options(&self, options: Options) -> Options {
        let Some(block) = self.block.filter(|_| self.part.size > 0) else { return options };
        let size = u32::try_from(self.part.size).ok().filter(|_| block.num() == 0);
        size.into_iter().fold(self.tagged(options), Options::size2).block2(block)
    }

    /// Adds the options of the block to the `options` of a response to a request with Q-Block2: Q-Block2, and in
    /// every block Size2 and an ETag (RFC 9177 §4.4, §4.6).
    #[must_use]
    pub fn quick_options(&self, options: Options) -> Options {
        let Some(block) = self.block else { return options };
        let size = u32::try_from(self.part.size).ok();
        size.into_iter().fold(self.tagged(options), Options::size2).q_block2(block)
    }

    /// Adds an ETag, if the application set none and has the complete representation.
    fn tagged(&self, options: Options) -> Options {
        let named = options.iter().any(|(number, _)| number == coap_numbers::option::ETAG);
        if named || !self.part.is_whole() { options } else { options.etag(&etag(self.part.bytes)) }
    }
}

/// Returns an ETag derived from the bytes of a representation. Equal bytes have equal ETags on every machine. It does not
/// protect against someone who searches for two representations with one ETag.
pub fn etag(representation: &[u8]) -> [u8; 8] {
    let mut hasher = SipHasher13::new();
    hasher.write(representation);
    hasher.finish().to_be_bytes()
}
