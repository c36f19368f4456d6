//! Judges the traffic of other programs: examines CoAP stacks from outside, and reads captures of networks.

pub mod advice;
#[cfg(feature = "examine")]
pub mod examination;
mod nearest;

pub use nearest::Nearest;

/// EXCHANGE_LIFETIME with the parameters of RFC 7252 §4.8.2, in seconds.
const EXCHANGE_LIFETIME_S: u64 = 247;
