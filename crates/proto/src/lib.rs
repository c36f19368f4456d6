//! A CoAP endpoint that is a state machine: the messages and exchanges of RFC 7252, without sockets, clock or
//! threads.
//!
//! The application passes datagrams and the time to an [`Endpoint`]. The endpoint returns the datagrams to send, and the time
//! at which to call it again:
//!
//! | call | when |
//! |---|---|
//! | [`Endpoint::handle_datagram`] | a datagram has arrived; returns an event for the application |
//! | [`Endpoint::handle_timeout`] | the time that `poll_timeout` returned has come |
//! | [`Endpoint::poll_transmit`] | after any other call, until it returns `None`: the next datagram to send |
//! | [`Endpoint::poll_event`] | after these two, until it returns `None`: failed exchanges and lost observers |
//! | [`Endpoint::poll_timeout`] | last: when to call `handle_timeout` |
//!
//! A [`Controller`](coapace_control::Controller) decides how long to wait for an answer. It is named the *mechanism*
//! here. The endpoint calls it when a message departs and when an exchange ends. [`Config`] limits every table. If a
//! table is full, a call returns an error, or a counter shows the loss.
//!
//! # Words
//!
//! These words are not in RFC 7252, or have a narrower meaning here:
//!
//! * *Peer*: another endpoint, identified by its address.
//! * *Exchange*: a message that this endpoint began (a request, a separate response, a notification or a
//!   ping), all its transmissions, and the answer.
//! * *Transmission*: one copy of that message that is sent. Its *ordinal* is 0 for the first transmission.
//! * *To depart*: to be returned by [`Endpoint::poll_transmit`]. Exchanges that are due for departure are in the *queue of
//!   departures*.
//! * *Outstanding*: an exchange that occupies one of the NSTART slots of its peer (RFC 7252 §4.7). The others *wait*. To be
//!   *admitted* is to get a slot.
//! * *Under way*: an exchange that has begun and has not ended.
//! * *Marking*: a change to a message that distinguishes its transmissions, so that an answer identifies the transmission that
//!   it answers. The mechanism chooses the [kind of marking](coapace_control::Marking).
//! * *Rate*: the mechanism's pace for confirmable messages, or PROBING_RATE (RFC 7252 §4.7) for
//!   non-confirmable ones.
//! * *Tail*: the encoded options and payload of a message, which follow the token.
//! * *Reply*: a message that only waits for its departure: an acknowledgement, a Reset, a piggybacked or non-confirmable
//!   response.
//! * *Listener*: an observation or a request to a group of this endpoint. It may get more than one response.
//! * *Stranger*: an observer whose address is not verified ([`Endpoint::register_stranger`]).
//! * *Lane*: the queue and the window of a peer for messages that transfer parts of bodies ([`Endpoint::request_part`]).
//! * *Repeatable*: a request that a server may execute more than once, with the same effect ([`Request::repeatable`]).
//! * *Silent*: a peer that let the timeouts of a whole exchange pass without an answer ([`Patience`]).
//! * *Held*: a peer that is not dropped when the table of peers is full, because it observes a resource.
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
pub use observe::{NotificationOrder, Sequence};
pub use options::{
    BadHopLimit, BadOption, DEFAULT_MAX_AGE, Options, is_critical, is_no_cache_key, is_unsafe,
};
pub use patience::Patience;
pub use peer::Address;
pub use registrations::Observer;
pub use request::{Request, SendError};
pub use tail::Tail;
pub use transmit::Transmit;

/// An index that no slot has, which ends a list.
const NONE: u32 = u32::MAX;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
