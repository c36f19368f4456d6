//! Congestion control for CoAP, each mechanism in its own file.
//!
//! A mechanism is a value that implements [`Controller`]. Its fields are its parameters. It never changes, and one value serves
//! every destination. The caller keeps its memory: a [`Controller::State`] of a few bytes for each destination, and a
//! [`Controller::Exchange`] for each exchange that has not ended. Every call passes the time and a random number in a [`Cue`],
//! so a mechanism runs the same in firmware, in a simulator and with sockets.
//!
//! [`REGISTRY`] lists the mechanisms for single exchanges, and [`BULK`] those for many exchanges at once that carry one
//! body. A [`Mechanism`] is a mechanism of either list, chosen at run time.
//!
//! # Words
//!
//! Terms of RFC 7252 and RFC 6298 keep their meaning. These terms are used in addition:
//!
//! * **exchange**: one confirmable message, its retransmissions and its acknowledgement.
//! * **timeout**: the time armed for one transmission. **RTO**: the estimate that timeouts are made from.
//! * **dither**: the random part of a timeout, for example the part that ACK_RANDOM_FACTOR bounds.
//! * **backoff**: the growth of timeouts from one retransmission to the next, and the resulting timeout. If a backoff
//!   is **kept**, the next exchange starts from it.
//! * **sample**: a measured round-trip time. It is **ambiguous** if the exchange was retransmitted and nothing identifies the
//!   transmission that was answered.
//! * **strong** sample (CoCoA): a sample from an exchange without retransmissions. A **weak** sample is from an
//!   exchange with retransmissions.
//! * **ordinal**: the number of a transmission within its exchange, 0 for the first.
//! * **overtaken**: an exchange is overtaken if it is unanswered, and an exchange that departed at least a given time
//!   later has been answered ([`Limits::overtaken`]).
//! * **window**: the number of exchanges that may be outstanding.
//! * **marking**: how a transmission carries its ordinal, so that an answer identifies the transmission.
//! * **giving up**: the end of an exchange without an answer to any of its transmissions.
//! * **tick**: the unit that an implementation counts time in.
//! * **preset**: a named set of parameter values, for instance the values of a published implementation.
//!
//! ```
//! use coapace_control::{Controller, Cue, Draw, Duration, Instant, Mechanism};
//!
//! let default: Mechanism = "default:ack_timeout=3s".parse().unwrap();
//! let mut state = default.state();
//! let cue = |ms| Cue { now: Instant::from_millis(ms), draw: Draw::ZERO, outstanding: 1 };
//!
//! let (mut exchange, timeout) = default.on_start(&mut state, cue(0));
//! assert_eq!(timeout, Duration::from_secs(3));
//! assert_eq!(default.on_retransmit(&mut state, &mut exchange, cue(3_000)), Duration::from_secs(6));
//! ```
#![no_std]
// `inline(always)` is used where copies in each caller are less code for a Cortex-M3 than one function and its calls, by the
// measurements of firmware/report.
#![allow(clippy::inline_always, reason = "measured")]

mod controller;
mod division;
mod draw;
mod estimator;
mod excerpt;
mod fine;
mod karn;
mod mechanism;
mod own;
mod packed;
mod parameters;
mod registry;
mod seam;
mod stamp;
mod suggestion;
#[cfg(test)]
mod testing;
mod time;

pub use controller::{Answer, Controller, Cue, Gauges, Limits, Marking, Outcome, Sample};
pub use draw::Draw;
pub use estimator::{GRANULARITY, MIN_RTO};
pub use excerpt::Excerpt;
pub use mechanism::{BadName, Mechanisms, ParseMechanismError, Shown};
pub use own::{Own, OwnExchange, OwnMechanism, OwnState};
pub use packed::Packed;
pub use parameters::{Parameter, Parameters, Preset, Ratio, SetError, Switch, Value};
pub use registry::*;
pub use seam::{Form, Seam, SeamExchange};
pub use suggestion::{nearest, unknown};
pub use time::{Duration, Instant};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
