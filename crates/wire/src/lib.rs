//! Scenarios on real packets.
//!
//! The crate joins the simulator's networks and real sockets, which do not know each other.

pub mod advice;
#[cfg(target_os = "linux")]
pub mod emulation;
pub mod examination;
#[cfg(target_os = "linux")]
pub mod live;
pub mod relay;
