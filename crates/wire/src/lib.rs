//! Scenarios on real packets.
//!
//! The crate joins the simulator's networks and real sockets, which do not know each other.

pub mod advice;
pub mod emulation;
pub mod examination;
pub mod live;
pub mod relay;
