//! The server's side of Block2: one block of a representation.

use core::hash::Hasher;

use siphasher::sip::SipHasher13;

use super::{BERT, Block};
use crate::options::Options;

/// Bytes of an ETag, a Size2 and a Block2 option, and of the payload marker, at most.
const OPTIONS: usize = 10 + 6 + 5 + 1;

/// One block of a representation, to be sent in a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice<'a> {
    /// The bytes of the block.
    pub payload: &'a [u8],
    block: Option<Block>,
    etag: [u8; 8],
    size: usize,
}

impl<'a> Slice<'a> {
    /// The block of `representation` that is `asked` for, of at most 2^(`max_szx` + 4) bytes; the first if none is asked
    /// for. `None` where there is no such block: to be answered with 4.00.
    pub fn new(representation: &'a [u8], asked: Option<Block>, max_szx: u8) -> Option<Self> {
        let szx = asked.map_or(super::MAX_SZX, Block::szx).min(max_szx);
        Self::cut(representation, asked, szx, super::size(szx))
    }

    /// The same for a client that is reached over a reliable transport, and takes [`BERT`]: all that fits into `room`
    /// bytes, of which options other than Block2, Size2 and ETag are not part.
    pub fn reliable(representation: &'a [u8], asked: Option<Block>, room: usize) -> Option<Self> {
        let room = room.saturating_sub(OPTIONS);
        if asked.is_none() && representation.len() <= room {
            return Self::cut(representation, None, BERT, representation.len());
        }
        let (szx, len) = super::step(asked.map_or(BERT, Block::szx), room)?;
        Self::cut(representation, asked, szx, len)
    }

    fn cut(representation: &'a [u8], asked: Option<Block>, szx: u8, len: usize) -> Option<Self> {
        let offset = asked.map_or(0, Block::offset);
        let rest = representation.get(offset..).filter(|rest| offset == 0 || !rest.is_empty())?;
        let payload = &rest[..rest.len().min(len)];
        let more = payload.len() < rest.len();
        let block = if more || asked.is_some() {
            Some(Block::new(u32::try_from(offset / super::size(szx)).ok()?, more, szx)?)
        } else {
            None
        };
        let etag = if block.is_some() { etag(representation) } else { [0; 8] };
        Some(Self { payload, block, etag, size: representation.len() })
    }

    /// Adds Block2 where the representation needs more blocks than one or the client asked for one, with the first block
    /// Size2, and an ETag where the application gave none (RFC 7959 §2.4). Nothing has no blocks, whatever was asked for:
    /// the answer to a PUT, as a rule.
    #[must_use]
    pub fn options(&self, options: Options) -> Options {
        let Some(block) = self.block.filter(|_| self.size > 0) else { return options };
        let named = options.iter().any(|(number, _)| number == coap_numbers::option::ETAG);
        let options = if named { options } else { options.etag(&self.etag) };
        let size = u32::try_from(self.size).ok().filter(|_| block.num() == 0);
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
