//! Clients and servers on sockets, for asyncio.
//!
//! Endpoints run on Rust threads. Results for Python wait in a [`mailbox`] until the event loop fetches them, so no endpoint
//! ever waits for the interpreter, and no Rust thread uses an interpreter that is shutting down.

pub(crate) mod client;
mod failure;
pub(crate) mod group;
pub(crate) mod mailbox;
pub(crate) mod observation;
pub(crate) mod request;
pub(crate) mod response;
mod runtime;
pub(crate) mod server;
mod value;
mod work;

pub(crate) use work::Call;
