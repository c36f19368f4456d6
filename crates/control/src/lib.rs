//! Congestion control for CoAP, one mechanism a file.
//!
//! A mechanism is a value that implements [`Controller`]: its fields are its parameters, it never changes, and one
//! value serves every destination. What a mechanism remembers of one destination is its [`Controller::State`], a few
//! bytes; what it remembers of one exchange is its [`Controller::Exchange`]. Time and randomness come in with every
//! call as a [`Cue`], so a controller runs the same in firmware, in a simulator and behind a socket.
//!
//! [`REGISTRY`] lists the mechanisms; [`Mechanism`] is the choice among all of them made at run time.
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
// Where it says so, a copy in each caller is less code for a Cortex-M3 than one and its calls: firmware/report.
#![allow(clippy::inline_always, reason = "measured")]

mod basic;
mod cocoa;
mod cocoa_plus_plus;
mod controller;
mod default;
mod division;
mod draw;
mod eifel;
mod estimator;
mod excerpt;
mod fasor;
mod fine;
mod fullbackoff;
mod karn;
mod linux;
mod mechanism;
mod notes;
mod own;
mod packed;
mod parameters;
mod peak_hopper;
mod registry;
mod rtt_coap;
mod stamp;
mod suggestion;
#[cfg(test)]
mod testing;
mod time;

pub use basic::{BasicExchange, BasicRto, BasicState};
pub use cocoa::{
    AfterBackoff, Ageing, Band, Cocoa, CocoaExchange, CocoaState, EstimatorOf, SampleOfGiveUp, VbfOn,
    Weighting,
};
pub use cocoa_plus_plus::{CocoaPlusPlus, CocoaPlusPlusState, Rule};
pub use controller::{Answer, Controller, Cue, Gauges, Limits, Marking, Outcome, Sample};
pub use default::{DefaultExchange, DefaultTimer};
pub use draw::Draw;
pub use eifel::{CoapEifel, EifelExchange, EifelState, FirstSample};
pub use estimator::{GRANULARITY, MIN_RTO};
pub use excerpt::Excerpt;
pub use fasor::{Fasor, FasorExchange, FasorState, GiveUp, Variant};
pub use fullbackoff::{Decay, FullBackoff, FullBackoffExchange, FullBackoffState, LearnFromGiveUp};
pub use linux::{LinuxExchange, LinuxRto, LinuxState, Rttvar};
pub use mechanism::{BadName, Mechanisms, ParseMechanismError, Shown};
pub use notes::Notes;
pub use own::{Own, OwnExchange, OwnMechanism, OwnState};
pub use packed::Packed;
pub use parameters::{Parameter, Parameters, Preset, Ratio, SetError, Switch, Value};
pub use peak_hopper::{PeakHopper, PeakHopperExchange, PeakHopperState, Rise};
pub use registry::{Entry, Exchange, Mechanism, REGISTRY, State};
pub use rtt_coap::{RttCoap, RttCoapExchange, RttCoapState};
pub use suggestion::{nearest, unknown};
pub use time::{Duration, Instant};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
