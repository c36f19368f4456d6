//! A CoAP endpoint as a state machine: RFC 7252's messages and exchanges, without sockets, clock or threads.
//!
//! An [`Endpoint`] is told what arrives and what time it is, and says what to send and when to be called again:
//!
//! | call | when |
//! |---|---|
//! | [`Endpoint::handle_datagram`] | a datagram arrived; returns what it means to the application |
//! | [`Endpoint::handle_timeout`] | the moment named by `poll_timeout` has come |
//! | [`Endpoint::poll_transmit`] | after any other call, until it returns `None`: the next datagram to send |
//! | [`Endpoint::poll_timeout`] | then: when to call `handle_timeout` |
//! | [`Endpoint::poll_event`] | after `handle_timeout` and `poll_transmit`: exchanges that failed, observers that are lost |
//!
//! Congestion control is a [`Controller`](coapace_control::Controller), asked at the moment of departure.
//! Every table is bounded by [`Config`]; what is full is reported.
#![no_std]
#![cfg_attr(test, allow(clippy::disallowed_types))]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod block;
mod code;
mod config;
mod counters;
mod deadlines;
mod deduplication;
pub mod echo;
mod endpoint;
mod exchange;
pub mod group;
mod histogram;
mod lifecycle;
pub mod link_format;
mod listeners;
mod measures;
mod message;
mod message_ids;
mod notify;
mod observe;
mod observers;
mod options;
mod outbox;
mod patience;
mod peer;
mod rare;
mod receive;
mod slab;
pub mod stream;
mod tail;
mod tokens;
mod transmit;

pub use code::{BadCode, Code, Dotted};
pub use config::{Config, Setup};
pub use counters::Counters;
pub use endpoint::{Endpoint, Event, Request, Responder, SendError};
pub use exchange::{ExchangeId, Failure};
pub use histogram::Histogram;
pub use measures::Measures;
pub use message::{Kind, Malformed, Message, REXMIT_CNT, Token};
pub use observe::{Observation, Sequence};
pub use observers::Observer;
pub use options::{BadOption, DEFAULT_MAX_AGE, Options, is_critical, is_no_cache_key, is_unsafe};
pub use patience::Patience;
pub use peer::Address;
pub use tail::Tail;
pub use transmit::{Step, Transmit};

/// No slot, at the end of a list.
const NONE: u32 = u32::MAX;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
