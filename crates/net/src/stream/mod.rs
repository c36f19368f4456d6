//! CoAP over reliable transports (RFC 8323): TCP, TLS and WebSockets.
//!
//! A [`Wire`](wire::Wire) carries whole messages: as bytes behind one another (`bytes.rs`; TCP, TLS) or as frames of a
//! WebSocket (`frames.rs`). All else is the same for all of them: a [`Connection`](connection::Connection) has the
//! signals, the client its requests (`client.rs`), the server its conversations (`server.rs`, `talk.rs`). What these may
//! take of the server's memory is bounded: a connection has a place (`places.rs`) and a share (`share.rs`).
mod admission;
mod bytes;
mod client;
mod connection;
mod lost;
mod observers;
mod server;
mod share;
mod talk;
mod unanswered;
mod websocket;
mod wire;

pub(crate) use admission::Admission;
pub(crate) use client::{ConnectionHandle, Connections, Outstanding};
pub(crate) use lost::Lost;
pub(crate) use server::{Acceptor, StreamServer, listen, serve};
pub(crate) use share::Pool;
pub(crate) use unanswered::StreamRequest;
pub(crate) use wire::ByteStream;

/// The largest message that is taken, in bytes (RFC 8323 §5.3.1). The places of a route's parameters reach no further.
const MAX_MESSAGE: u32 = 65_535;

/// The time that a peer may take nothing of what is sent to it, and the time to open a connection.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// The most requests of one connection of a client that may be under way, observations included. Others wait.
const MAX_OUTSTANDING: usize = 256;
