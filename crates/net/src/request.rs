//! Requests that a server has received.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

use coap_numbers::option;
use coapace_proto::block::{Asked, BERT, Block, MAX_SZX};
use coapace_proto::{Code, Kind, Message};
use smallvec::SmallVec;

use crate::identity::IdentifiedPeer;
use crate::{Identity, Rejection};

/// The names of a route's parameters, in the sequence of its path.
pub(crate) type Names = Arc<[Box<str>]>;

/// The range of a path segment in the options and payload of a message: its start and its length, in bytes.
pub(crate) type SegmentRange = (u16, u16);

/// A request that a server has received. Its handler owns it. A short request needs no allocation.
#[derive(Clone, Debug)]
pub struct Request {
    peer: IdentifiedPeer,
    kind: Kind,
    code: Code,
    tail: SmallVec<[u8; 64]>,
    names: Option<Names>,
    /// The values of the route's parameters, as ranges in the options and payload.
    values: SmallVec<[SegmentRange; 4]>,
}

impl Request {
    pub(crate) fn new(
        peer: IdentifiedPeer,
        message: &Message<'_>,
        names: Option<Names>,
        values: SmallVec<[SegmentRange; 4]>,
    ) -> Self {
        let &Message { kind, code, tail, .. } = message;
        Self { peer, kind, code, tail: SmallVec::from_slice(tail), names, values }
    }

    /// Returns the client's address.
    pub fn from(&self) -> SocketAddr {
        self.peer.remote.address()
    }

    /// Returns the identity that the client has proved, if it has proved one: the identity of its pre-shared key, or
    /// its certificate. A resource whose representation depends on the identity must not be observed over DTLS, because
    /// [observers share calls](crate::Router::observe) of the handler.
    pub fn peer_identity(&self) -> Option<&Identity> {
        self.peer.identity.as_deref()
    }

    /// Returns the method: GET, PUT, … (constants in [`Code`]).
    pub fn method(&self) -> Code {
        self.code
    }

    /// Returns whether the request is confirmable.
    pub fn is_confirmable(&self) -> bool {
        self.kind == Kind::Confirmable
    }

    /// Returns the request as a message, without its Message ID and token.
    pub fn message(&self) -> Message<'_> {
        Message { code: self.code, tail: &self.tail, ..Message::empty(self.kind, 0) }
    }

    /// Returns the options as (number, value), sorted by number.
    pub fn options(&self) -> impl Iterator<Item = (u16, &[u8])> {
        self.message().options()
    }

    /// Returns the value of the first option of this number, if there is one.
    pub fn option(&self, number: u16) -> Option<&[u8]> {
        self.options().find(|&(other, _)| other == number).map(|(_, value)| value)
    }

    /// Returns the value of the first option of this number as an unsigned integer, if there is one.
    pub fn uint(&self, number: u16) -> Option<u64> {
        self.message().uint(number)
    }

    /// Returns the value of a parameter of the route: `id` names `{id}`. Returns `None` if the route has no such parameter, or
    /// if the value is not UTF-8.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        let place = self.names.as_ref()?.iter().position(|other| **other == *name)?;
        let &(start, len) = self.values.get(place)?;
        std::str::from_utf8(self.tail.get(usize::from(start)..)?.get(..usize::from(len))?).ok()
    }

    /// Returns the byte range of the representation that a GET asks for: the block of a Block2 option (RFC 7959 §2.2), or the
    /// blocks of a Q-Block2 option (RFC 9177 §4.4). It has no end if the server may choose how much to send. Only handlers that
    /// answer with [`Response::part`](crate::Response::part) need it.
    pub fn range(&self) -> Range<usize> {
        // A malformed option was answered 4.00 before the handler was called.
        if let Ok(Some(set)) = Asked::of(&self.message(), MAX_SZX) {
            return set.range();
        }
        match self.message().block2_reliable() {
            // With BERT the server may fill the message (RFC 8323 §6), so the range has no end.
            Some(block) if block.szx() < BERT => block.offset()..block.offset() + block.size(),
            block => block.map_or(0, Block::offset)..usize::MAX,
        }
    }

    /// Checks the conditions of the request (RFC 7252 §5.10.8). `etag` is the resource's ETag, or `None` if the resource does
    /// not exist. Declare a handler that calls this before it changes anything with
    /// [`Router::conditional`](crate::Router::conditional).
    ///
    /// # Errors
    /// 4.12 if there are If-Match options, but none with this ETag and none empty. 4.12 if there is an If-None-Match option and
    /// the resource exists.
    pub fn precondition(&self, etag: Option<&[u8]>) -> Result<(), Rejection> {
        // An empty If-Match is fulfilled by any representation (RFC 7252 §5.10.8.1).
        let mut wanted = self.options().filter(|&(number, _)| number == option::IF_MATCH).peekable();
        let matches = wanted.peek().is_none()
            || etag.is_some_and(|etag| wanted.any(|(_, wanted)| wanted.is_empty() || wanted == etag));
        let forbidden = etag.is_some() && self.option(option::IF_NONE_MATCH).is_some();
        if matches && !forbidden { Ok(()) } else { Err(Code::PRECONDITION_FAILED.into()) }
    }

    /// Returns the path, with a slash before each segment, or `/` if there is none.
    pub fn path(&self) -> String {
        path(&self.message())
    }

    /// Returns the arguments of the query, in sequence.
    pub fn query(&self) -> impl Iterator<Item = &str> {
        let arguments = self.options().filter(|&(number, _)| number == option::URI_QUERY);
        arguments.filter_map(|(_, argument)| std::str::from_utf8(argument).ok())
    }

    /// Returns the value of the argument `name=value`. It is empty if the argument is only the name.
    pub fn argument(&self, name: &str) -> Option<&str> {
        self.query().find_map(|argument| {
            let (key, value) = argument.split_once('=').unwrap_or((argument, ""));
            (key == name).then_some(value)
        })
    }

    /// Returns the payload, empty if there is none.
    pub fn payload(&self) -> &[u8] {
        self.message().payload()
    }

    /// Returns the payload as text.
    ///
    /// # Errors
    /// The error of bytes that are not UTF-8. Converted into a [`Rejection`](crate::Rejection), it is 4.00.
    pub fn text(&self) -> Result<&str, std::str::Utf8Error> {
        std::str::from_utf8(self.message().payload())
    }
}

/// Returns the path of a request, with a slash before each segment, or `/` if there is none.
pub(crate) fn path(message: &Message<'_>) -> String {
    let mut path = String::new();
    for segment in message.uri_path() {
        path.push('/');
        path.push_str(&String::from_utf8_lossy(segment));
    }
    if path.is_empty() { String::from("/") } else { path }
}
