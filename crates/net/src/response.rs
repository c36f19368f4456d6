//! Responses.

use std::time::Duration;

use bytes::Bytes;
use coap_numbers::option;
use coapace_proto::block::{self, Part};
use coapace_proto::{Code, Kind, Message, Options};

use crate::Error;

/// A response: made by a handler, or received by a client.
#[derive(Clone, Debug)]
pub struct Response {
    /// The response code; the names are constants in [`Code`].
    pub code: Code,
    /// The options.
    pub options: Options,
    /// The payload, empty if there is none.
    pub payload: Bytes,
    /// The time from the call of the client to this response. Zero in a response that was not received.
    pub elapsed: Duration,
    /// The number of transmissions of the request, 1 if it was not retransmitted. If there were several blocks, it is that of
    /// the block that was sent most often. 0 in a response that was not received.
    pub transmissions: u8,
    /// The place of the first byte and the bytes of the whole, if this is a part of a representation.
    pub(crate) part: Option<(u32, u32)>,
}

impl Response {
    /// Returns a response of this code and nothing else.
    pub const fn new(code: Code) -> Self {
        Self {
            code,
            options: Options::new(),
            payload: Bytes::new(),
            elapsed: Duration::ZERO,
            transmissions: 0,
            part: None,
        }
    }

    /// Returns 2.05: the answer to a GET.
    pub fn content(payload: impl Into<Bytes>) -> Self {
        Self::new(Code::CONTENT).payload(payload)
    }

    /// Returns 2.05 with the bytes from `offset` on of a representation that has `size` bytes: for a GET of what is too large
    /// to be read as a whole. The handler is called for every block, and [`Request::range`](crate::Request::range) says what to
    /// read.
    ///
    /// A part begins where that range does or before it, and has 1024 bytes or more unless it is the last. The handler adds
    /// an ETag that is the same for all parts of a version: clients tell by it that nothing has changed between two blocks
    /// (RFC 7959 §2.4).
    pub fn part(payload: impl Into<Bytes>, offset: usize, size: usize) -> Self {
        // Block numbers end at 1 GiB.
        let short = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        Self { part: Some((short(offset), short(size))), ..Self::content(payload) }
    }

    /// Returns 2.04: a PUT, POST or PATCH has changed the resource.
    pub const fn changed() -> Self {
        Self::new(Code::CHANGED)
    }

    /// Returns 2.01: a PUT or POST has made a resource.
    pub const fn created() -> Self {
        Self::new(Code::CREATED)
    }

    /// Returns 2.02: the resource is gone.
    pub const fn deleted() -> Self {
        Self::new(Code::DELETED)
    }

    /// Sets the payload.
    #[must_use]
    pub fn payload(mut self, payload: impl Into<Bytes>) -> Self {
        self.payload = payload.into();
        self
    }

    /// Adds an option.
    #[must_use]
    pub fn option(mut self, number: u16, value: &[u8]) -> Self {
        self.options.push(number, value);
        self
    }

    /// Says what the payload is: 0 for text, 50 for JSON, 60 for CBOR (RFC 7252 §12.3).
    #[must_use]
    pub fn content_format(mut self, format: u16) -> Self {
        self.options = self.options.content_format(format);
        self
    }

    /// Says for how many seconds the response is fresh; 60 where this is not said (RFC 7252 §5.10.5).
    #[must_use]
    pub fn max_age(mut self, seconds: u32) -> Self {
        self.options = self.options.max_age(seconds);
        self
    }

    /// Returns whether the request was carried out: a code of class 2.
    pub fn is_success(&self) -> bool {
        self.code.is_success()
    }

    /// Returns the payload as text, with U+FFFD for bytes that are no text.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.payload)
    }

    /// Returns the Content-Format.
    pub fn format(&self) -> Option<u16> {
        self.options.uint(option::CONTENT_FORMAT)?.try_into().ok()
    }

    /// Returns the representation that blocks are cut from, or the part of it that is at hand.
    pub(crate) fn representation(&self) -> Part<'_> {
        let (offset, size) = self.part.unwrap_or_default();
        Part::new(&self.payload, offset as usize, size as usize).unwrap_or(Part::whole(&self.payload))
    }

    /// Returns the bytes of the representation, of which the payload may be a part.
    pub(crate) fn size(&self) -> usize {
        self.part.map_or(self.payload.len(), |(_, size)| size as usize)
    }

    /// Adds an ETag to a representation that leaves in blocks, unless it has one or is not at hand as a whole. Each block of
    /// a response that is kept would be hashed again otherwise.
    pub(crate) fn with_etag(mut self) -> Self {
        if self.part.is_none() && self.options.value(option::ETAG).is_none() {
            self.options = self.options.etag(&block::etag(&self.payload));
        }
        self
    }

    /// Reads it as a message.
    pub(crate) fn as_message<T>(&self, read: impl FnOnce(&Message<'_>) -> T) -> T {
        let mut tail = Vec::new();
        self.options.write(&self.payload, &mut tail);
        read(&Message { code: self.code, tail: &tail, ..Message::empty(Kind::Acknowledgement, 0) })
    }

    /// Reads a response that has arrived.
    ///
    /// # Errors
    /// [`Error::BadOption`] if it has an option that must be understood and is not (RFC 7252 §5.4.1).
    pub(crate) fn read(message: &Message<'_>, elapsed: Duration, transmissions: u8) -> Result<Self, Error> {
        if let Some(number) = message.first_unrecognised(&[option::BLOCK1, option::BLOCK2]) {
            return Err(Error::BadOption(number));
        }
        Ok(Self {
            code: message.code,
            options: Options::of(message),
            payload: Bytes::copy_from_slice(message.payload()),
            elapsed,
            transmissions,
            part: None,
        })
    }
}
