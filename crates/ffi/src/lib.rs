//! The C library: every mechanism of `coapace-control` behind the functions of `include/coapace.h`, which documents them.
//!
//! The caller's memory holds a state as the mechanism's own type, so a call costs the same as in Rust. One byte before it, the
//! **tag**, identifies that type; `coapace_state_init` writes it. An exchange is stored in the same way.
//!
//! Each mechanism is a feature. The code names no mechanism whose feature is disabled, so none of its code is linked. Without
//! the feature `parameters`, parameters are constants.
//!
//! The library trusts what only the C program can ensure: a pointer that is not null points to what the header
//! requires, and bytes after a correct tag were written by this library. It checks everything else before use.

#![cfg_attr(panic = "abort", no_std)]
#![allow(unsafe_code, reason = "the border to C")]
#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

include!(concat!(env!("OUT_DIR"), "/registry.rs"));

#[macro_use]
mod chosen;
#[cfg(all(test, feature = "every-mechanism", feature = "parameters"))]
mod border;
mod calls;
mod facts;
#[cfg(test)]
mod header;
mod listed;
mod memory;
mod names;
mod setup;
mod status;

pub use calls::{
    coapace_gauges, coapace_limits, coapace_max_span, coapace_on_end, coapace_on_retransmit, coapace_on_start,
};
pub use chosen::{Chosen, MECHANISM_SIZE};
pub use facts::{Cue, End, Gauges, Limits, Outcome, Sample};
pub use memory::{EXCHANGE_SIZE, state_size};
pub use names::{coapace_name, coapace_source, coapace_summary, coapace_version};
pub use setup::{coapace_init, coapace_parse, coapace_set, coapace_state_init, coapace_state_size};
pub use status::{Status, coapace_strerror};

/// Loops forever. Nothing here panics, but `no_std` requires a panic handler. If panics unwind, as in tests, the standard
/// library has one.
#[cfg(panic = "abort")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
