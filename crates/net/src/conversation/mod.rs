//! A server's side of requests and responses, whatever carries them.
//!
//! Everything here takes messages and returns what is to be done: it knows neither sockets nor framing, and nothing here
//! waits. The servers over datagrams (`serving.rs`, `answers.rs`) and over connections (`stream/talk.rs`) do the following
//! with each request:
//!
//! 1. [`Terms::of`] reads how the request wants to be answered. The server adds whether the client's address is known to be
//!    its own.
//! 2. [`Bodies::take`] puts bodies together, and says whether the handler is to be called.
//! 3. [`Terms::wish`] says whether the client wants to observe.
//! 4. The router calls the handler. A handler that waits takes a [`Place`] first, where the server has so many and no more.
//! 5. [`Bodies::answer`] cuts what the handler has said to the size that the client takes.
//!
//! [`Medium`] and [`Terms`] state what differs. Over datagrams, blocks have a size of their own, and a stranger is
//! sent no more than three times what it sent. Over connections a message may hold many blocks (BERT), every client
//! is known to be where it says it is, and a server stops reading where it has no room: it has no need of 5.03.
mod bodies;
mod format;
mod kept;
mod places;
mod terms;

pub(crate) use bodies::{Answered, Bodies, Medium, Step};
pub(crate) use format::Format;
pub(crate) use places::{NoPlace, Place, Places};
pub(crate) use terms::{Terms, Wish, has_terms};
