//! The client's side of a block-wise transfer. The request body is sent in blocks, then the response body is received in
//! blocks.

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
    /// The outstanding request during which no other may be sent, if there is one.
    alone: Option<Piece>,
    over: bool,
}

/// The identity of a request in a transfer. It links the answer to the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The number of the block that the request sends or asks for.
    pub(super) num: u32,
    /// The size exponent of the block.
    pub(super) szx: u8,
    /// How often the upload had started again when this request was made.
    pub(super) turn: u8,
    /// True if the request sends a block.
    pub(super) up: bool,
    /// True if no other request is outstanding, so that an error in the answer is an error of the whole transfer.
    pub(super) alone: bool,
}

impl Piece {
    /// Returns whether this is the only outstanding request of the transfer.
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
    /// More requests follow, with the same code, to the same address: [`Transfer::request`] or [`Transfer::next_request`].
    Continue,
    /// The response was the last one. Its code and options apply to the whole response, and the body is complete.
    Complete,
}

/// The progress of a transfer: how many bytes of the request body and of the response body have arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transferred {
    /// Bytes of the request body that the server has.
    pub sent: usize,
    /// Total bytes of the request body.
    pub to_send: usize,
    /// Bytes of the response body that have arrived.
    pub received: usize,
    /// Total bytes of the response body, once the server has stated them (Size2, RFC 7959 §4).
    pub to_receive: Option<usize>,
}

/// The reason why a transfer cannot continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferError {
    /// The server has used the reserved size exponent 7.
    ReservedSize,
    /// The server has sent another block than the requested one.
    OutOfPlace,
    /// The payload is longer than its block, or shorter although other blocks follow.
    Length,
    /// The ETag or the code differs from the earlier blocks, because the representation has changed.
    Changed,
    /// Some blocks have an ETag and others have none, and no size shows that the blocks belong together: the server has not
    /// stated it (Size2), or the blocks add up to another size.
    Untagged,
    /// The body is longer than allowed, or one of its blocks needs a number above the largest.
    TooLarge,
    /// The server has answered a block before the last with success, without Block1 (RFC 7959 §2.3). It has taken the block for
    /// the whole body, and the other blocks were not sent.
    Unfinished {
        /// The code of the answer.
        code: Code,
        /// Bytes of the body that were sent.
        sent: usize,
        /// Total bytes of the body.
        len: usize,
    },
    /// An option of the request is not allowed.
    Option(BadOption),
}

impl fmt::Display for TransferError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReservedSize => return ReservedSize.fmt(f),
            Self::OutOfPlace => "the server sent another block than the requested one",
            Self::Length => "the server sent a block of the wrong length",
            Self::Changed => "the representation changed between two blocks",
            Self::Untagged => {
                "only some blocks have an ETag, and nothing else shows that all are of the same version"
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
    /// Creates a transfer of a request with these `options` and this `body`. Blocks of the request and of the response
    /// have at most 2^(`szx` + 4) bytes; a `szx` above 6 counts as 6. A response body of more than `max_body` bytes is
    /// an error.
    ///
    /// The caller adds a Request-Tag (RFC 9175 §3) if one client makes several concurrent transfers to one resource.
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
        // The transfer adds these options itself, and none of them may be repeated (RFC 7252 §5.4.5).
        let options = options.without(option::BLOCK1).without(option::BLOCK2).without(option::SIZE1);
        Self { options, body, upload, download, alone: None, over: false }
    }

    /// Lets [`next_request`](Self::next_request) request several blocks of the response at once, after the first block
    /// (RFC 7959 §2.4). The method must be GET, because a server may execute any other method once for every block.
    ///
    /// If the server answers a request for a later block with an error, with another block or not at all, that block
    /// and all after it are requested one by one.
    #[must_use]
    pub const fn with_random_access(mut self) -> Self {
        self.download.allow_random_access();
        self
    }

    /// Lets [`next_request`](Self::next_request) send several blocks of the body at once with Q-Block1 (RFC 9177 §4.3),
    /// in confirmable requests. `tag` is a Request-Tag that no other body of this client has. It is not added if the
    /// options already have a Request-Tag.
    ///
    /// The first block is sent alone, to test whether the server supports Q-Block1. If the server rejects the option,
    /// the body is sent with Block1. A server must not ignore the option (RFC 7252 §5.4.1). If a server nevertheless
    /// does, and takes the first block for the whole body, the body is sent with Block1 if the `method` is idempotent.
    /// Otherwise the transfer fails.
    #[must_use]
    pub fn with_q_block(mut self, method: Code, tag: &[u8]) -> Self {
        if self.upload.hurry(method.is_idempotent()) {
            self.tag(tag);
            // Block2 is not allowed beside Q-Block1 (RFC 9177 §4.1), so no request can state a block size for the response.
            self.download.open();
        }
        self
    }

    /// Returns whether the body is sent with Q-Block1.
    pub const fn uses_q_block(&self) -> bool {
        self.upload.quick.is_some()
    }

    /// Starts again with Block1, because the server has rejected the first request or has not answered it.
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

    /// Returns the next request to send: its identity, and its options and payload. Returns `None` if the transfer has
    /// ended, or if the answer to an outstanding request must arrive first.
    ///
    /// Pass the answer to [`handle_piece`](Self::handle_piece), and an empty acknowledgement to
    /// [`acknowledged`](Self::acknowledged). If neither arrives, call [`lost`](Self::lost).
    ///
    /// # Errors
    /// [`TransferError::Option`] or [`TransferError::TooLarge`]. The transfer has then ended.
    pub fn next_request(&mut self) -> Result<Option<(Piece, Tail)>, TransferError> {
        // The answer to a request that goes alone decides how the transfer goes on.
        if self.over || self.alone.is_some() {
            return Ok(None);
        }
        // Blocks of the response are requested only once the whole request is there (RFC 7959 §2.7).
        let piece = if self.download.has_begun() { self.download.ask() } else { self.upload.ask() };
        let Some(piece) = piece else { return Ok(None) };
        self.alone = Some(piece).filter(|piece| piece.alone);
        let tail = self.tail(piece);
        self.over = tail.is_err();
        tail.map(|tail| Some((piece, tail)))
    }

    /// Returns the identity of the next request, in a transfer with one request at a time.
    fn due(&self) -> Piece {
        if self.download.has_begun() { self.download.due() } else { self.upload.due() }
    }

    fn tail(&self, piece: Piece) -> Result<Tail, TransferError> {
        let mut options = self.options.clone();
        if !piece.up {
            let (number, block) = self.download.option(piece)?;
            // A request for a later block has no payload (RFC 7959 §3.3), and must not register once more (§2.6).
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

    /// Handles the response to the last request, in a transfer with one request at a time.
    ///
    /// # Errors
    /// [`TransferError`] if the transfer cannot continue. It has then ended.
    pub fn handle(&mut self, response: &Message<'_>) -> Result<Progress, TransferError> {
        self.handle_piece(self.due(), response)
    }

    /// Handles the response to the request `piece`. The answers to several requests may come in any sequence.
    ///
    /// # Errors
    /// [`TransferError`] if the transfer cannot continue. It has then ended.
    pub fn handle_piece(&mut self, piece: Piece, response: &Message<'_>) -> Result<Progress, TransferError> {
        if self.over {
            return Err(TransferError::OutOfPlace);
        }
        self.alone = self.alone.filter(|&alone| alone != piece);
        let progress = self.advance(piece, response);
        // Both an error and the last response end the transfer.
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
                // The upload began again while blocks of the former attempt are under way.
                if quick && self.upload.turn != turn {
                    self.change_tag();
                }
                return Ok(Progress::Continue);
            }
            // This response is the first block of the response body, or all of it.
            piece = self.download.due();
        }
        let complete = self.download.handle(piece, response)?;
        Ok(if complete { Progress::Complete } else { Progress::Continue })
    }

    /// Handles the empty acknowledgement of the request `piece`. Returns false if the response to this request will
    /// follow.
    ///
    /// Returns true in an upload with Q-Block1: the server has the block, and this request needs no further answer. The
    /// one response to all blocks may answer any of the requests, usually the last that the server received (RFC 9177
    /// §4.3).
    pub fn acknowledged(&mut self, piece: Piece) -> bool {
        let taken = piece.up && self.upload.acknowledged(piece);
        self.alone = self.alone.filter(|&alone| !taken || alone != piece);
        taken
    }

    /// Stops waiting for the answer to the request `piece`. Returns true if the transfer continues, because other
    /// requests are answered: [`next_request`](Self::next_request) may return this request again. After false, the
    /// caller repeats the request, or the transfer has failed.
    pub fn lost(&mut self, piece: Piece) -> bool {
        self.alone = self.alone.filter(|&alone| alone != piece);
        if piece.up { self.upload.lose(piece) } else { self.download.lose(piece) }
    }

    /// Adds an Echo value to all further requests, because the server wants the last request repeated with it (RFC 9175
    /// §2.3).
    pub fn repeat_with(&mut self, echo: &[u8]) {
        self.options = echo::repeated(core::mem::take(&mut self.options), echo);
    }

    /// Adds a Request-Tag (RFC 9175 §3) to all later requests, unless they have one. The caller does so if a body that was
    /// planned for one message is sent in blocks.
    pub fn tag(&mut self, tag: &[u8]) {
        if self.options.value(option::REQUEST_TAG).is_none() {
            self.options.push(option::REQUEST_TAG, tag);
        }
    }

    /// Changes the Request-Tag of an upload that starts again. Its earlier blocks are still travelling, and the server must not
    /// take them for new ones (RFC 9175 §3.3).
    fn change_tag(&mut self) {
        let Some(mut tag) = self.options.value(option::REQUEST_TAG).map(<[u8]>::to_vec) else { return };
        let Some(last) = tag.last_mut() else { return };
        *last = last.wrapping_add(1);
        self.options = core::mem::take(&mut self.options).without(option::REQUEST_TAG);
        self.options.push(option::REQUEST_TAG, &tag);
    }

    /// Returns the progress of the transfer.
    pub fn transferred(&self) -> Transferred {
        let answered = self.over || self.download.has_begun();
        Transferred {
            sent: if answered { self.body.len() } else { self.upload.sent() },
            to_send: self.body.len(),
            received: self.download.received,
            to_receive: self.download.size(),
        }
    }

    /// Returns the response body up to the first missing block.
    pub fn body(&self) -> &[u8] {
        &self.download.body[..self.download.prefix()]
    }

    /// Takes the response body.
    pub fn take_body(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.download.body)
    }

    /// Continues the response body of an earlier transfer after the part that was received
    /// ([`take_partial`](Self::take_partial)). The first block is requested again. If its ETag or its bytes differ, the
    /// whole body is transferred.
    pub fn resume(&mut self, earlier: Partial) {
        self.download.resume(earlier);
    }

    /// Ends an incomplete transfer. Returns the received first part of the response body, if the server has sent an
    /// ETag. Returns `None` if a response has made the transfer fail, for example because the representation changed.
    /// Before the first block has arrived, returns the part that was passed to [`resume`](Self::resume).
    pub fn take_partial(&mut self) -> Option<Partial> {
        let is_over = core::mem::replace(&mut self.over, true);
        if is_over { None } else { self.download.take_partial() }
    }
}
