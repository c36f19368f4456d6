//! CoAP over reliable transports (RFC 8323): TCP, TLS and WebSockets.
//!
//! A [`Wire`](wire::Wire) carries whole messages: as bytes behind one another (`bytes.rs`; TCP, TLS) or as frames of a
//! WebSocket (`frames.rs`). All else is the same for all of them: a [`Connection`](connection::Connection) has the
//! signals, the client its requests (`client.rs`), the server its conversations (`server.rs`, `talk.rs`). What these may
//! take of the server's memory is bounded: a connection has a place (`places.rs`) and a share (`share.rs`).
mod bytes;
mod client;
mod connection;
#[cfg(feature = "ws")]
mod frames;
mod lost;
mod observers;
mod observing;
mod places;
mod server;
mod share;
mod talk;
mod wire;

#[cfg(feature = "tls")]
pub(crate) use client::Connector;
pub(crate) use client::{Connections, Stream};
pub(crate) use lost::Lost;
pub(crate) use observing::Observing;
pub(crate) use places::Places;
pub use server::TcpCounters;
pub(crate) use server::{Acceptor, Shared, listen, serve};
pub(crate) use share::Pool;

/// The largest message that is taken, in bytes (RFC 8323 §5.3.1): what the places of a route's parameters reach.
const MAX_MESSAGE: u32 = 65_535;

/// How long a peer may take nothing of what is sent to it, and take until a connection with it is there.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);
