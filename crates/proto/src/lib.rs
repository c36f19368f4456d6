//! A CoAP endpoint that is a state machine: the messages and exchanges of RFC 7252, without sockets, clock or
//! threads.
//!
//! The application passes datagrams and the time to an [`Endpoint`]. The endpoint returns the datagrams to send, and the moment at
//! which to call it again:
//!
//! | call | when |
//! |---|---|
//! | [`Endpoint::handle_datagram`] | a datagram has arrived; returns an event for the application |
//! | [`Endpoint::handle_timeout`] | the moment named by `poll_timeout` has come |
//! | [`Endpoint::poll_transmit`] | after any other call, until it returns `None`: the next datagram to send |
//! | [`Endpoint::poll_event`] | after `handle_timeout` and `poll_transmit`, until it returns `None`: failed exchanges, lost observers |
//! | [`Endpoint::poll_timeout`] | last: when to call `handle_timeout` |
//!
//! A [`Controller`](coapace_control::Controller) decides how long to wait for an answer. It is called the
//! *mechanism* here, and is asked when a message departs. [`Config`] bounds every table. A full table is an
//! error or a counter.
//!
//! # Words
//!
//! These words are not in RFC 7252, or have a narrower meaning here:
//!
//! * *Peer*: another endpoint, known by its address.
//! * *Exchange*: a message that this endpoint began (a request, a separate response, a notification or a
//!   ping), all its transmissions, and the answer.
//! * *Transmission*: one copy of that message that is sent. Its *ordinal* is 0 for the first transmission.
//! * *To depart*: to be handed out by [`Endpoint::poll_transmit`]. Exchanges that are due for departure stand
//!   in the *line of departures*.
//! * *Outstanding*: an exchange that occupies one of the NSTART places of its peer (RFC 7252 §4.7). The
//!   others *wait*. To be *admitted* is to get a place.
//! * *Under way*: an exchange that has begun and is not over.
//! * *Marking*: a change to a message that tells its transmissions apart, so that an answer names the
//!   transmission that it answers. The mechanism chooses the [kind of marking](coapace_control::Marking).
//! * *Rate*: the mechanism's pace for confirmable messages, or PROBING_RATE (RFC 7252 §4.7) for
//!   non-confirmable ones.
//! * *Tail*: the encoded options and payload of a message, which follow the token.
//! * *Reply*: a message that waits for nothing but its departure: an acknowledgement, a Reset, a piggybacked
//!   or non-confirmable response.
//! * *Listener*: an observation or a request to a group of this endpoint. More than one response may come to
//!   it.
//! * *Stranger*: an observer whose address was not verified ([`Endpoint::register_stranger`]).
//! * *Silent*: a peer that let the timeouts of a whole exchange pass without an answer ([`Patience`]).
//! * *Held*: a peer that is not forgotten when the table of peers is full, because it observes a resource.
#![no_std]
#![cfg_attr(test, allow(clippy::disallowed_types))]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod allowance;
pub mod block;
mod code;
mod config;
mod counters;
mod deadlines;
mod deduplication;
pub mod echo;
mod endpoint;
mod event;
mod exchange;
mod extended_tokens;
pub mod group;
mod histogram;
mod lane;
mod lifecycle;
pub mod link_format;
mod list;
mod listeners;
mod measures;
mod message;
mod message_ids;
mod observe;
mod options;
mod outbox;
mod patience;
mod peer;
mod rare;
mod receive;
mod registrations;
mod request;
mod slab;
mod sluice;
pub mod stream;
mod tail;
mod transmit;

pub use allowance::Allowance;
pub use code::{BadCode, Code, Dotted};
pub use config::{Config, Setup};
pub use counters::Counters;
pub use endpoint::Endpoint;
pub use event::{Event, Responder};
pub use exchange::{ExchangeId, Failure, Step};
pub use histogram::Histogram;
pub use measures::Measures;
pub use message::{Kind, Malformed, Message, REXMIT_CNT, Token};
pub use observe::{Observation, Sequence};
pub use options::{
    BadHopLimit, BadOption, DEFAULT_MAX_AGE, Options, is_critical, is_no_cache_key, is_unsafe,
};
pub use patience::Patience;
pub use peer::Address;
pub use registrations::Observer;
pub use request::{Request, SendError};
pub use tail::Tail;
pub use transmit::Transmit;

/// An index that no slot has. It ends a list.
const NONE: u32 = u32::MAX;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
