//! The calls of an exchange, and what may be asked of a state.

use core::ffi::{c_int, c_void};

use coapace_control::{self as control, Controller, Duration};

use crate::Status;
use crate::chosen::Chosen;
use crate::facts::{Cue, Gauges, Limits, Outcome};
use crate::kept::{Slot, state, state_mut};

/// What is armed where a call fails: the longest first timeout of RFC 7252 §4.8.
const FALLBACK: Duration = Duration::from_secs(3);

/// The first transmission departs.
///
/// # Safety
/// Each pointer is null or points at what `coapace.h` says, as this library left it. During the call nothing else uses
/// what it may write, and nothing writes what it reads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn coapace_on_start(
    mechanism: *const Chosen,
    state: *mut c_void,
    exchange: *mut c_void,
    cue: *const Cue,
    timeout_us: *mut u64,
) -> c_int {
    // SAFETY: the caller's promise.
    let slot = unsafe { Slot::new(exchange) };
    // First of all, so that an exchange which could not be started is never taken for one.
    let cleared = slot.clear();
    let call = || {
        // SAFETY: the caller's promise.
        let ((), chosen, cue) = unsafe { (cleared?, Chosen::from_c(mechanism)?, told(cue)?) };
        on_chosen!(chosen, |controller, tag| {
            // SAFETY: the caller's promise.
            let state = unsafe { state_mut(controller, tag, state)? };
            let (made, timeout) = controller.on_start(state, cue);
            slot.put(controller, tag, made)?;
            Ok(timeout)
        })
    };
    // SAFETY: the caller's promise.
    unsafe { arm(timeout_us, call) }
}

/// The timeout passed and a retransmission departs.
///
/// # Safety
/// As of [`coapace_on_start`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn coapace_on_retransmit(
    mechanism: *const Chosen,
    state: *mut c_void,
    exchange: *mut c_void,
    cue: *const Cue,
    timeout_us: *mut u64,
) -> c_int {
    // SAFETY: the caller's promise.
    let slot = unsafe { Slot::new(exchange) };
    let call = || {
        // SAFETY: the caller's promise.
        let (chosen, cue) = unsafe { (Chosen::from_c(mechanism)?, told(cue)?) };
        on_chosen!(chosen, |controller, tag| {
            // SAFETY: the caller's promise.
            let state = unsafe { state_mut(controller, tag, state)? };
            // SAFETY: the caller's promise.
            let exchange = unsafe { slot.get(controller, tag)? };
            Ok(controller.on_retransmit(state, exchange, cue))
        })
    };
    // SAFETY: the caller's promise.
    unsafe { arm(timeout_us, call) }
}

/// The exchange is over.
///
/// # Safety
/// As of [`coapace_on_start`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn coapace_on_end(
    mechanism: *const Chosen,
    state: *mut c_void,
    exchange: *mut c_void,
    outcome: *const Outcome,
    cue: *const Cue,
) -> c_int {
    // SAFETY: the caller's promise.
    let slot = unsafe { Slot::new(exchange) };
    let call = || {
        // SAFETY: the caller's promise.
        let (chosen, cue, outcome) =
            unsafe { (Chosen::from_c(mechanism)?, told(cue)?, Outcome::from_c(outcome)?) };
        on_chosen!(chosen, |controller, tag| {
            // SAFETY: the caller's promise.
            let state = unsafe { state_mut(controller, tag, state)? };
            // SAFETY: the caller's promise; the copy is all that is used.
            let exchange = *unsafe { slot.get(controller, tag)? };
            controller.on_end(state, exchange, outcome, cue);
            slot.clear()
        })
    };
    Status::of(call())
}

/// The longest time from the first transmission to the last of `retransmits` retransmissions.
///
/// # Safety
/// As of [`coapace_on_start`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn coapace_max_span(
    mechanism: *const Chosen,
    retransmits: u8,
    span_us: *mut u64,
) -> c_int {
    let call = || {
        // SAFETY: the caller's promise.
        let chosen = unsafe { Chosen::from_c(mechanism)? };
        on_chosen!(chosen, |controller, _tag| Ok(controller.max_span(retransmits).as_micros()))
    };
    // SAFETY: the caller's promise.
    unsafe { tell(span_us, call) }
}

/// What to respect towards this destination.
///
/// # Safety
/// As of [`coapace_on_start`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn coapace_limits(
    mechanism: *const Chosen,
    state_bytes: *const c_void,
    limits: *mut Limits,
) -> c_int {
    let call = || {
        // SAFETY: the caller's promise.
        let chosen = unsafe { Chosen::from_c(mechanism)? };
        on_chosen!(chosen, |controller, tag| {
            // SAFETY: the caller's promise.
            let state = unsafe { state(controller, tag, state_bytes)? };
            Ok(controller.limits(state).into())
        })
    };
    // SAFETY: the caller's promise.
    unsafe { tell(limits, call) }
}

/// What the mechanism believes of this destination.
///
/// # Safety
/// As of [`coapace_on_start`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn coapace_gauges(
    mechanism: *const Chosen,
    state_bytes: *const c_void,
    gauges: *mut Gauges,
) -> c_int {
    let call = || {
        // SAFETY: the caller's promise.
        let chosen = unsafe { Chosen::from_c(mechanism)? };
        on_chosen!(chosen, |controller, tag| {
            // SAFETY: the caller's promise.
            let state = unsafe { state(controller, tag, state_bytes)? };
            Ok(controller.gauges(state).into())
        })
    };
    // SAFETY: the caller's promise.
    unsafe { tell(gauges, call) }
}

/// The cue of a call.
///
/// # Safety
/// `cue` is null or points at a cue.
unsafe fn told(cue: *const Cue) -> Result<control::Cue, Status> {
    // SAFETY: null, or a cue, whose fields are integers.
    unsafe { cue.as_ref() }.map(|cue| (*cue).into()).ok_or(Status::NullPointer)
}

/// Makes a call that arms a timeout, unless there is no place to tell it; tells [`FALLBACK`] if the call fails.
///
/// # Safety
/// `timeout_us` is null or can be written.
unsafe fn arm(timeout_us: *mut u64, call: impl FnOnce() -> Result<Duration, Status>) -> c_int {
    if timeout_us.is_null() {
        return Status::NullPointer as c_int;
    }
    let timeout = call();
    // SAFETY: not null, so it can be written.
    unsafe { timeout_us.write(timeout.unwrap_or(FALLBACK).as_micros()) };
    Status::of(timeout.map(drop))
}

/// Makes a call that finds something, unless there is no place to tell it; tells nothing if the call fails.
///
/// # Safety
/// `place` is null or can be written.
unsafe fn tell<T>(place: *mut T, call: impl FnOnce() -> Result<T, Status>) -> c_int {
    if place.is_null() {
        return Status::NullPointer as c_int;
    }
    // SAFETY: not null, so it can be written.
    Status::of(call().map(|found| unsafe { place.write(found) }))
}
