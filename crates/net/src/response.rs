//! Responses.

use std::time::Duration;

use bytes::Bytes;
use coap_numbers::option;
use coapace_proto::block::{self, Part};
use coapace_proto::{Code, Kind, Message, Options, echo};

/// A response: made by a handler, or received by a client.
#[derive(Clone, Debug)]
pub struct Response {
    /// The response code; the names are constants in [`Code`].
    pub code: Code,
    /// The options.
    pub options: Options,
    /// The payload, empty if there is none.
    pub payload: Bytes,
    /// The time from the client's call to this response. Zero if the response was not received.
    pub elapsed: Duration,
    /// The number of transmissions of the request, 1 if it was not retransmitted. In a block-wise transfer it is the largest
    /// number of any block. 0 if the response was not received.
    pub transmissions: u8,
    /// The offset of the payload in the representation, and the size of the representation, if the payload is a part of it.
    pub(crate) part: Option<(u32, u32)>,
}

impl Response {
    /// Returns a response with this code and nothing else.
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

    /// Returns 2.05 with a part of a representation of `size` bytes, which starts at `offset`. It is for a GET of a
    /// representation that is too large to be read as a whole. The handler is called for every block, and reads
    /// [`Request::range`](crate::Request::range).
    ///
    /// A part starts at or before the start of that range, and has at least 1024 bytes unless it is the last. The handler adds
    /// an ETag, which is the same for all parts of a version. Clients use it to detect changes between two blocks (RFC 7959
    /// §2.4).
    pub fn part(payload: impl Into<Bytes>, offset: usize, size: usize) -> Self {
        // No block number names an offset beyond 1 GiB.
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

    /// Sets the Content-Format of the payload: 0 for text, 50 for JSON, 60 for CBOR (RFC 7252 §12.3).
    #[must_use]
    pub fn content_format(mut self, format: u16) -> Self {
        self.options = self.options.content_format(format);
        self
    }

    /// Sets the number of seconds that the response is fresh. The default is 60 (RFC 7252 §5.10.5).
    #[must_use]
    pub fn max_age(mut self, seconds: u32) -> Self {
        self.options = self.options.max_age(seconds);
        self
    }

    /// Returns whether the code has class 2, a success.
    pub fn is_success(&self) -> bool {
        self.code.is_success()
    }

    /// Returns the payload as text, with U+FFFD for bytes that are not UTF-8.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.payload)
    }

    /// Returns the Content-Format of the response, if it has one.
    pub fn format(&self) -> Option<u16> {
        self.options.uint(option::CONTENT_FORMAT)?.try_into().ok()
    }

    /// Returns this response for a client that accepts the Content-Format `accepted`, or any if it is `None`. A
    /// representation in another format becomes 4.06 (RFC 7252 §5.10.4). A representation without a Content-Format is
    /// kept, and so is a response other than 2.05.
    pub(crate) fn in_format(self, accepted: Option<u16>) -> Self {
        let named = accepted.zip(self.format());
        // A format is judged only if both sides name one.
        let differs = self.code == Code::CONTENT && named.is_some_and(|(accepted, own)| own != accepted);
        if differs { Self::new(Code::NOT_ACCEPTABLE) } else { self }
    }

    /// Returns the representation that blocks are cut from, or the part of it in this response.
    pub(crate) fn representation(&self) -> Part<'_> {
        let (offset, size) = self.part.unwrap_or_default();
        // A response without a part has size 0 here, and one with a wrong size is sent as if it were the whole.
        Part::new(&self.payload, offset as usize, size as usize).unwrap_or(Part::whole(&self.payload))
    }

    /// Returns the size of the representation, in bytes. The payload may be a part of it.
    pub(crate) fn size(&self) -> usize {
        self.part.map_or(self.payload.len(), |(_, size)| size as usize)
    }

    /// Adds an ETag, unless there is one or the payload is a part. Without an ETag, the payload would be hashed again for each
    /// block.
    pub(crate) fn with_etag(mut self) -> Self {
        if self.part.is_none() && self.options.value(option::ETAG).is_none() {
            self.options = self.options.etag(&block::etag(&self.payload));
        }
        self
    }

    /// Calls `read` with the response as a message.
    pub(crate) fn as_message<T>(&self, read: impl FnOnce(&Message<'_>) -> T) -> T {
        let mut tail = Vec::new();
        self.options.write(&self.payload, &mut tail);
        read(&Message { code: self.code, tail: &tail, ..Message::empty(Kind::Acknowledgement, 0) })
    }

    /// Returns the Echo value with which a server wants the request repeated, if it does (RFC 9175 §2.3).
    pub(crate) fn challenge(&self) -> Option<Vec<u8>> {
        self.as_message(|message| echo::challenged(message).map(<[u8]>::to_vec))
    }

    /// Creates a response from a received message.
    pub(crate) fn of(message: &Message<'_>, elapsed: Duration, transmissions: u8) -> Self {
        let payload = Bytes::copy_from_slice(message.payload());
        Self { options: Options::of(message), payload, elapsed, transmissions, ..Self::new(message.code) }
    }
}
