//! The client's side of a block-wise transfer. The request body goes in blocks, and after it the response
//! body comes in blocks.

use alloc::vec::Vec;
use core::fmt;

use coap_numbers::option;

use super::download::Download;
use super::partial::Partial;
use super::upload::{BlockAnswer, Upload};
use super::{BERT, MAX_SZX, ReservedSize};
use crate::options::{BadOption, Options};
use crate::{Code, Message, Tail, echo};

/// A request and its response, each in as many messages as necessary (RFC 7959 §2.7).
///
/// ```
/// # use coapace_proto::{Code, Kind, Message, Options, block::{Block, Progress, Transfer}};
/// let mut transfer = Transfer::new(Options::default().uri_path("firmware"), Vec::new(), 6, 65_536);
/// let first = transfer.request().unwrap();
/// assert_eq!(first.as_bytes(), b"\xb8firmware");
/// # let respond = |transfer: &mut Transfer, num, more, payload: &[u8]| {
/// #     let tail = Options::default().block2(Block::new(num, more, 0).unwrap()).tail(payload).unwrap();
/// #     let message = Message {
/// #         code: Code(0x45), tail: tail.as_bytes(), ..Message::empty(Kind::Acknowledgement, 1)
/// #     };
/// #     transfer.handle(&message).unwrap()
/// # };
/// // The server answers with Block2 2:0/1/16 (block 0, more follow, 16 bytes), so the client asks for 2:1/0/16.
/// assert_eq!(respond(&mut transfer, 0, true, b"0123456789abcdef"), Progress::Continue);
/// assert_eq!(transfer.request().unwrap().as_bytes(), b"\xb8firmware\xc1\x10");
/// assert_eq!(respond(&mut transfer, 1, false, b"!"), Progress::Complete);
/// assert_eq!(transfer.take_body(), b"0123456789abcdef!");
/// ```
#[derive(Clone, Debug)]
pub struct Transfer {
    options: Options,
    body: Vec<u8>,
    upload: Upload,
    download: Download,
    /// The request that is under way alone, if there is one.
    alone: Option<Piece>,
    over: bool,
}

/// The name of a request of a transfer. It links the answer to the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The number of the block that the request brings or asks for.
    pub(super) num: u32,
    /// The size exponent of the block.
    pub(super) szx: u8,
    /// The number of times that the upload had begun again.
    pub(super) turn: u8,
    /// True if the request brings a block.
    pub(super) up: bool,
    /// True if no other request is under way, so that an error in the answer is an error of the whole transfer.
    pub(super) alone: bool,
}

impl Piece {
    /// Returns whether no other request of the transfer is under way beside this one.
    pub const fn is_alone(self) -> bool {
        self.alone
    }

    /// Returns how many bytes of the body come before this block.
    pub(super) const fn offset(self) -> usize {
        self.num as usize * super::size(self.szx)
    }
}

/// The next step after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More requests are to be sent, with the same code, to the same address: [`Transfer::request`] or
    /// [`Transfer::next_request`].
    Continue,
    /// The response was the last one. Its code and options apply to the whole response, and the body is complete.
    Complete,
}

/// The bytes of both bodies that a transfer has moved so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transferred {
    /// Bytes of the request body that the server has.
    pub sent: usize,
    /// Bytes of the request body in all.
    pub to_send: usize,
    /// Bytes of the response body that have arrived.
    pub received: usize,
    /// Bytes of the response body in all, once the server has said so (Size2, RFC 7959 §4).
    pub to_receive: Option<usize>,
}

/// The reason why a transfer cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferError {
    /// A block has a size that is reserved.
    ReservedSize,
    /// The block is not the one that was due.
    OutOfPlace,
    /// The payload does not fill its block, or is longer.
    Length,
    /// The ETag or the code differs from the earlier blocks, because the representation has changed.
    Changed,
    /// Some blocks have an ETag and others have none. The server has not said the size of the body (Size2), or the blocks add up to
    /// another size.
    Untagged,
    /// The body is longer than allowed, or has more blocks than there are numbers.
    TooLarge,
    /// The server has answered a block before the last with a success, without Block1 (RFC 7959 §2.3). It has
    /// taken the block for the whole body, and the other blocks were not sent.
    Unfinished {
        /// The code of the answer.
        code: Code,
        /// Bytes of the body that were sent.
        sent: usize,
        /// Bytes of the body in all.
        len: usize,
    },
    /// An option of the request is not allowed.
    Option(BadOption),
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReservedSize => return ReservedSize.fmt(f),
            Self::OutOfPlace => "another block than the one that was due",
            Self::Length => "a block that is not full, or too long",
            Self::Changed => "the representation changed between two blocks",
            Self::Untagged => {
                "the server names the version (ETag) of some blocks alone, and nothing shows that all are of one"
            }
            Self::TooLarge => "the body is too large",
            Self::Unfinished { code, sent, len } => {
                return write!(
                    f,
                    "the server answered {code} to the first {sent} of {len} bytes as if they were the whole body: \
                     it takes no blocks (Block1), and the rest was not sent; send less at once"
                );
            }
            Self::Option(bad) => return bad.fmt(f),
        })
    }
}

impl core::error::Error for TransferError {}

impl From<ReservedSize> for TransferError {
    fn from(_: ReservedSize) -> Self {
        Self::ReservedSize
    }
}

impl Transfer {
    /// Creates a transfer with these options and this body. Blocks of either side have at most 2^(`szx` + 4)
    /// bytes; a `szx` above 6 counts as 6. A response body of more than `max_body` bytes is an error.
    ///
    /// The caller adds a Request-Tag (RFC 9175 §3) if one client has several transfers to one resource under
    /// way.
    pub fn new(options: Options, body: Vec<u8>, szx: u8, max_body: usize) -> Self {
        let szx = szx.min(MAX_SZX);
        let upload = Upload::new(body.len(), szx);
        Self::of(options, body, upload, Download::new(max_body, szx))
    }

    /// Creates a transfer over a reliable transport, with [`BERT`] (RFC 8323 §6). Payloads of requests have
    /// up to `room` bytes.
    pub fn reliable(options: Options, body: Vec<u8>, room: usize, max_body: usize) -> Self {
        let upload = Upload::reliable(body.len(), room);
        Self::of(options, body, upload, Download::new(max_body, BERT))
    }

    fn of(options: Options, body: Vec<u8>, upload: Upload, download: Download) -> Self {
        let options = options.without(option::BLOCK1).without(option::BLOCK2).without(option::SIZE1);
        Self { options, body, upload, download, alone: None, over: false }
    }

    /// Lets [`next_request`](Self::next_request) ask for several blocks of the response at once, after the first
    /// block (RFC 7959 §2.4). The method must be GET: a server may carry out another one for every block.
    ///
    /// If the server answers a request for a later block with an error, another block or nothing, the transfer asks for one block
    /// after the other from that block on.
    #[must_use]
    pub const fn with_random_access(mut self) -> Self {
        self.download.allow_random_access();
        self
    }

    /// Lets [`next_request`](Self::next_request) send several blocks of the body at once with Q-Block1 (RFC 9177 §4.3), in
    /// confirmable requests. `tag` is a Request-Tag that no other body of this client has. It is left out if the options have one.
    ///
    /// The first block is sent alone, to learn whether the server knows Q-Block1. If not, the body is sent with Block1. A server
    /// must not ignore the option (RFC 7252 §5.4.1). If it does, and takes the first block for the whole body, the body is sent
    /// with Block1 if the `method` is idempotent. Otherwise the transfer fails.
    #[must_use]
    pub fn with_q_block(mut self, method: Code, tag: &[u8]) -> Self {
        if self.upload.hurry(method.is_idempotent()) {
            self.tag(tag);
            self.download.open();
        }
        self
    }

    /// Returns whether the body is sent with Q-Block1.
    pub const fn uses_q_block(&self) -> bool {
        self.upload.quick.is_some()
    }

    /// Begins again with Block1, because the server has rejected the first request or has not answered it.
    pub fn without_q_block(&mut self) {
        self.alone = None;
        self.upload.slow_down();
    }

    /// Returns the options and the payload of the next request, in a transfer with one request at a time.
    ///
    /// # Errors
    /// [`TransferError::Option`] or [`TransferError::TooLarge`].
    pub fn request(&self) -> Result<Tail, TransferError> {
        self.tail(self.due())
    }

    /// Returns the name, options and payload of the next request that is not under way. Returns `None` if the transfer is over, if
    /// it first needs the answer to a request under way, or if all other requests are under way.
    ///
    /// The answer goes to [`handle_piece`](Self::handle_piece), an empty acknowledgement to
    /// [`acknowledged`](Self::acknowledged). A request without either goes to [`lost`](Self::lost).
    ///
    /// # Errors
    /// [`TransferError::Option`] or [`TransferError::TooLarge`]. The transfer is over then.
    pub fn next_request(&mut self) -> Result<Option<(Piece, Tail)>, TransferError> {
        if self.over || self.alone.is_some() {
            return Ok(None);
        }
        let piece = if self.download.has_begun() { self.download.ask() } else { self.upload.ask() };
        let Some(piece) = piece else { return Ok(None) };
        self.alone = Some(piece).filter(|piece| piece.alone);
        let tail = self.tail(piece);
        self.over = tail.is_err();
        tail.map(|tail| Some((piece, tail)))
    }

    /// Returns the next request of a transfer with one request at a time.
    fn due(&self) -> Piece {
        if self.download.has_begun() { self.download.due() } else { self.upload.due() }
    }

    fn tail(&self, piece: Piece) -> Result<Tail, TransferError> {
        let mut options = self.options.clone();
        if !piece.up {
            let (number, block) = self.download.option(piece)?;
            options = options.without(option::OBSERVE).with_uint(number, block.encode().into());
            return options.tail(&[]).map_err(TransferError::Option);
        }
        let size = u32::try_from(self.body.len()).unwrap_or(u32::MAX);
        match self.upload.block(piece)? {
            // Every block has the size of the body (RFC 9177 §4.6).
            Some(block) if self.uses_q_block() => options = options.q_block1(block).size1(size),
            Some(block) if block.num() == 0 => options = options.block1(block).size1(size),
            Some(block) => options = options.block1(block),
            None => {}
        }
        // The client asks for smaller blocks of the response early, with the last block of the request.
        if let Some(early) = self.download.early().filter(|_| self.upload.is_last(piece)) {
            options = options.block2(early);
        }
        options.tail(&self.body[self.upload.range(piece)]).map_err(TransferError::Option)
    }

    /// Takes the response to the last request.
    ///
    /// # Errors
    /// [`TransferError`] if the transfer cannot go on. It is over then.
    pub fn handle(&mut self, response: &Message<'_>) -> Result<Progress, TransferError> {
        self.handle_piece(self.due(), response)
    }

    /// Takes the response to this request. The answers to several come in any order.
    ///
    /// # Errors
    /// [`TransferError`] if the transfer cannot go on. It is over then.
    pub fn handle_piece(&mut self, piece: Piece, response: &Message<'_>) -> Result<Progress, TransferError> {
        if self.over {
            return Err(TransferError::OutOfPlace);
        }
        self.alone = self.alone.filter(|&alone| alone != piece);
        let progress = self.advance(piece, response);
        self.over = progress != Ok(Progress::Continue);
        progress
    }

    fn advance(&mut self, mut piece: Piece, response: &Message<'_>) -> Result<Progress, TransferError> {
        if piece.up {
            // The response to the request may have come as the answer to another block.
            if self.download.has_begun() {
                return Ok(Progress::Continue);
            }
            let (turn, quick) = (self.upload.turn, self.uses_q_block());
            if self.upload.handle(piece, response)? == BlockAnswer::Next {
                if quick && self.upload.turn != turn {
                    self.change_tag();
                }
                return Ok(Progress::Continue);
            }
            piece = self.download.due();
        }
        let complete = self.download.handle(piece, response)?;
        Ok(if complete { Progress::Complete } else { Progress::Continue })
    }

    /// Takes the empty acknowledgement of this request. Returns false if the response to this request follows. Returns true if the
    /// server now has the block that it brought, so that the request waits for nothing more. The one response to all blocks may
    /// answer any of them, usually the last that the server received (RFC 9177 §4.3).
    pub fn acknowledged(&mut self, piece: Piece) -> bool {
        let taken = piece.up && self.upload.acknowledged(piece);
        self.alone = self.alone.filter(|&alone| !taken || alone != piece);
        taken
    }

    /// Ends the wait for the answer to this request, which was given up or is to be repeated. Returns whether
    /// [`next_request`](Self::next_request) may return it again, because other requests are answered. If not, the transfer has
    /// failed, unless the request is to be repeated.
    pub fn lost(&mut self, piece: Piece) -> bool {
        self.alone = self.alone.filter(|&alone| alone != piece);
        if piece.up { self.upload.lose(piece) } else { self.download.lose(piece) }
    }

    /// Adds an Echo value to this and all later requests, because the server wants the last request repeated
    /// with it (RFC 9175 §2.3).
    pub fn repeat_with(&mut self, echo: &[u8]) {
        self.options = echo::repeated(core::mem::take(&mut self.options), echo);
    }

    /// Adds a Request-Tag (RFC 9175 §3) to all later requests, unless there is one: a body that was to go in one
    /// message goes in blocks.
    pub fn tag(&mut self, tag: &[u8]) {
        if self.options.value(option::REQUEST_TAG).is_none() {
            self.options.push(option::REQUEST_TAG, tag);
        }
    }

    /// Changes the Request-Tag of an upload that begins again. Its earlier blocks are still under way, and the server must not take
    /// them for new ones (RFC 9175 §3.3).
    fn change_tag(&mut self) {
        let Some(mut tag) = self.options.value(option::REQUEST_TAG).map(<[u8]>::to_vec) else { return };
        let Some(last) = tag.last_mut() else { return };
        *last = last.wrapping_add(1);
        self.options = core::mem::take(&mut self.options).without(option::REQUEST_TAG);
        self.options.push(option::REQUEST_TAG, &tag);
    }

    /// Returns how far the transfer has come.
    pub fn transferred(&self) -> Transferred {
        let answered = self.over || self.download.has_begun();
        Transferred {
            sent: if answered { self.body.len() } else { self.upload.sent() },
            to_send: self.body.len(),
            received: self.download.received,
            to_receive: self.download.size(),
        }
    }

    /// Returns the response body, from its front to the first block that is missing.
    pub fn body(&self) -> &[u8] {
        &self.download.body[..self.download.prefix()]
    }

    /// Takes the response body.
    pub fn take_body(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.download.body)
    }

    /// Continues after the front of the response body that an earlier transfer has brought ([`take_partial`](Self::take_partial)).
    /// The first block is asked for again. If it has another ETag or other bytes, the whole body is transferred.
    pub fn resume(&mut self, earlier: Partial) {
        self.download.resume(earlier);
    }

    /// Ends a transfer that is not complete. Returns the front of the response body, if the server has named its version (ETag).
    /// Returns `None` if a response has made the transfer fail, for example because the representation changed. Before the first
    /// block has arrived, returns the front that an earlier transfer has brought.
    pub fn take_partial(&mut self) -> Option<Partial> {
        let is_over = core::mem::replace(&mut self.over, true);
        if is_over { None } else { self.download.take_partial() }
    }
}
