//! CoAP over reliable transports (RFC 8323): TCP, TLS and WebSockets.
//!
//! A [`Wire`](wire::Wire) carries complete messages: in a stream of bytes (`bytes.rs`; TCP, TLS) or in the frames of a
//! WebSocket (`websocket.rs`). A [`Connection`](connection::Connection) adds the signals. The client sends requests over it
//! (`client.rs`, `unanswered.rs`), and the server answers (`acceptor.rs`, `server.rs`, `shared.rs`, `talk.rs`, `observers.rs`).
//! The number of a server's connections is limited (`admission.rs`), and so is the memory of each (`share.rs`).
mod acceptor;
mod admission;
mod bytes;
mod client;
mod connection;
mod lost;
mod observers;
mod server;
mod share;
mod shared;
mod talk;
mod unanswered;
mod websocket;
mod wire;

pub(crate) use acceptor::Acceptor;
pub(crate) use admission::Admission;
pub(crate) use client::{ConnectionHandle, Connections};
pub(crate) use lost::ConnectionFailure;
pub(crate) use server::{listen, serve};
pub(crate) use share::Pool;
pub(crate) use shared::StreamServer;
pub(crate) use unanswered::StreamRequest;
pub(crate) use wire::ByteStream;

/// The largest accepted message, in bytes (RFC 8323 §5.3.1). The router relies on it, because it stores the ranges of
/// parameters in 16 bits.
const MAX_MESSAGE: u32 = 65_535;

/// The time after which a connection to a peer that reads nothing is closed, and the time to open a connection.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// The maximum number of outstanding requests of a client's connection, observations included. Further requests wait.
const MAX_OUTSTANDING: usize = 256;
