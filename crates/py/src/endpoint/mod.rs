//! Clients and servers on sockets, for asyncio.
//!
//! Endpoints run on threads of Rust. What they have for Python lies in a [`mailbox`] until the event loop takes it out, so no
//! endpoint ever waits for the interpreter, and nothing of Rust touches an interpreter that ends.

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
