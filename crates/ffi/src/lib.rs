//! The C library: every mechanism of `coapace-control` behind the functions of `include/coapace.h`, which describes them.
//!
//! Idea: a state lies in the caller's bytes as the mechanism's own type, so a call costs what it costs in Rust. A byte
//! before it, written by `coapace_state_init`, says which type that is. A mechanism that was not chosen as a feature is
//! named nowhere in the code, so nothing of it is linked; without the feature `parameters` its parameters are constants.
//!
//! Bytes from C are trusted where C alone can know better: that a pointer which is not null points at what the header
//! says, and that bytes behind a right tag are those this library wrote there. All else is looked at before it is used.

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
mod kept;
mod names;
mod setup;
mod status;

pub use calls::{
    coapace_gauges, coapace_limits, coapace_max_span, coapace_on_end, coapace_on_retransmit, coapace_on_start,
};
pub use chosen::{Chosen, MECHANISM_SIZE};
pub use facts::{Cue, End, Gauges, Limits, Outcome, Sample};
pub use kept::{EXCHANGE_SIZE, state_size};
pub use names::{coapace_name, coapace_source, coapace_summary, coapace_version};
pub use setup::{coapace_init, coapace_parse, coapace_set, coapace_state_init, coapace_state_size};
pub use status::{Status, coapace_strerror};

/// Nothing here panics, but the language wants to know what would happen. Where panics unwind, as in tests, the standard
/// library answers that.
#[cfg(panic = "abort")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
