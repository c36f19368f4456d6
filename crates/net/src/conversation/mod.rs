//! The part of a server that is common to datagrams and connections.
//!
//! It takes messages and returns the next step. It does not use sockets or framing, and never waits. The servers over datagrams
//! (`datagram/serving.rs`, `datagram/answering.rs`) and over connections (`stream/talk.rs`) do the following with each request:
//!
//! 1. [`Terms::of`] reads the [terms](Terms) of the request. The server adds whether the client's address is verified.
//! 2. [`TransferBodies::take`] reassembles bodies, and decides whether to call the handler.
//! 3. [`Terms::wish`] returns whether the client wants to observe.
//! 4. The router calls the handler. Over datagrams, the handler takes a [`HandlerPlace`] first, because it may wait.
//! 5. [`TransferBodies::answer`] cuts the response to the size that the client accepts.
//!
//! [`ResponseTransport`] and [`Terms`] hold the differences. Over datagrams, a message has one block, and an unverified client
//! is sent at most three times the bytes that it sent. Over connections, a message may have many blocks (BERT), and every
//! client is verified. Running handlers are not limited there, because the server stops reading when its memory is used up.
mod bodies;
mod format;
mod large_responses;
mod places;
mod terms;

pub(crate) use bodies::{ResponseOutcome, ResponseTransport, ServerStep, TransferBodies};
pub(crate) use format::Format;
pub(crate) use places::{HandlerPlace, HandlerPlaces, NoPlace};
pub(crate) use terms::{Terms, Wish, has_terms, length};
