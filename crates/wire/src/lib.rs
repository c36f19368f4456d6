//! Runs the networks and hosts of scenarios with real packets.
//!
//! The crate connects the simulator's networks with real sockets. Neither knows the other.

pub mod client_command;
#[cfg(all(target_os = "linux", feature = "tun"))]
pub mod emulation;
mod lateness;
pub mod link;
#[cfg(all(target_os = "linux", feature = "tun"))]
pub mod live;
mod program;

pub use lateness::Lateness;
pub use program::{Program, Readiness, shell};
