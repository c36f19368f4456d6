//! The functions that C calls during an exchange, and the functions that query a state.

use core::ffi::{c_int, c_void};

use coapace_control::{self as control, Controller, Duration};

use crate::Status;
use crate::chosen::Chosen;
use crate::facts::{Cue, Gauges, Limits, Outcome};
use crate::memory::{ExchangeBytes, state, state_mut};

/// The timeout that a failed call arms: the longest first timeout of RFC 7252 §4.8.
const FALLBACK: Duration = Duration::from_secs(3);

/// Starts an exchange, as its first transmission departs.
///
/// # Safety
/// Each pointer is null or points to what `coapace.h` requires, as this library left it. During the call nothing else uses the
/// memory that the call may write, and nothing writes the memory that it reads.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn coapace_on_start(
    mechanism: *const Chosen,
    state: *mut c_void,
    exchange: *mut c_void,
    cue: *const Cue,
    timeout_us: *mut u64,
) -> c_int {
    // SAFETY: the caller's promise.
    let bytes = unsafe { ExchangeBytes::new(exchange) };
    // Cleared first, so that an exchange that could not be started is never taken for one.
    let cleared = bytes.clear();
    let call = || {
        // SAFETY: the caller's promise.
        let ((), chosen, cue) = unsafe { (cleared?, Chosen::from_c(mechanism)?, read_cue(cue)?) };
        on_chosen!(chosen, |controller, tag| {
            // SAFETY: the caller's promise.
            let state = unsafe { state_mut(controller, tag, state)? };
            let (made, timeout) = controller.on_start(state, cue);
            bytes.put(controller, tag, made)?;
            Ok(timeout)
        })
    };
    // SAFETY: the caller's promise.
    unsafe { arm(timeout_us, call) }
}

/// Backs off when the timeout has passed and a retransmission departs.
///
/// # Safety
/// As for [`coapace_on_start`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn coapace_on_retransmit(
    mechanism: *const Chosen,
    state: *mut c_void,
    exchange: *mut c_void,
    cue: *const Cue,
    timeout_us: *mut u64,
) -> c_int {
    // SAFETY: the caller's promise.
    let bytes = unsafe { ExchangeBytes::new(exchange) };
    let call = || {
        // SAFETY: the caller's promise.
        let (chosen, cue) = unsafe { (Chosen::from_c(mechanism)?, read_cue(cue)?) };
        on_chosen!(chosen, |controller, tag| {
            // SAFETY: the caller's promise.
            let state = unsafe { state_mut(controller, tag, state)? };
            // SAFETY: the caller's promise.
            let exchange = unsafe { bytes.get(controller, tag)? };
            Ok(controller.on_retransmit(state, exchange, cue))
        })
    };
    // SAFETY: the caller's promise.
    unsafe { arm(timeout_us, call) }
}

/// Ends an exchange.
///
/// # Safety
/// As for [`coapace_on_start`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn coapace_on_end(
    mechanism: *const Chosen,
    state: *mut c_void,
    exchange: *mut c_void,
    outcome: *const Outcome,
    cue: *const Cue,
) -> c_int {
    // SAFETY: the caller's promise.
    let bytes = unsafe { ExchangeBytes::new(exchange) };
    let call = || {
        // SAFETY: the caller's promise.
        let (chosen, cue, outcome) =
            unsafe { (Chosen::from_c(mechanism)?, read_cue(cue)?, Outcome::from_c(outcome)?) };
        on_chosen!(chosen, |controller, tag| {
            // SAFETY: the caller's promise.
            let state = unsafe { state_mut(controller, tag, state)? };
            // SAFETY: the caller's promise; the copy is all that is used.
            let exchange = *unsafe { bytes.get(controller, tag)? };
            controller.on_end(state, exchange, outcome, cue);
            bytes.clear()
        })
    };
    Status::of(call())
}

/// Writes the longest time from the first transmission to the last of `retransmits` retransmissions, in microseconds.
///
/// # Safety
/// As for [`coapace_on_start`].
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
    unsafe { answer(span_us, call) }
}

/// Writes the limits to keep towards this destination.
///
/// # Safety
/// As for [`coapace_on_start`].
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
    unsafe { answer(limits, call) }
}

/// Writes the estimates for this destination.
///
/// # Safety
/// As for [`coapace_on_start`].
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
    unsafe { answer(gauges, call) }
}

/// Returns the cue of a call.
///
/// # Safety
/// `cue` is null or points at a cue.
unsafe fn read_cue(cue: *const Cue) -> Result<control::Cue, Status> {
    // SAFETY: null, or a cue, whose fields are integers.
    unsafe { cue.as_ref() }.map(|cue| (*cue).into()).ok_or(Status::NullPointer)
}

/// Makes a call and writes the timeout that it returns, or [`FALLBACK`] if it fails. If `timeout_us` is null, makes no call.
///
/// # Safety
/// `timeout_us` is null or writable.
unsafe fn arm(timeout_us: *mut u64, call: impl FnOnce() -> Result<Duration, Status>) -> c_int {
    if timeout_us.is_null() {
        return Status::NullPointer as c_int;
    }
    let timeout = call();
    // SAFETY: not null, so it can be written.
    unsafe { timeout_us.write(timeout.unwrap_or(FALLBACK).as_micros()) };
    Status::of(timeout.map(drop))
}

/// Makes a call and writes its result to `out`, or nothing if it fails. If `out` is null, makes no call.
///
/// # Safety
/// `out` is null or writable.
unsafe fn answer<T>(out: *mut T, call: impl FnOnce() -> Result<T, Status>) -> c_int {
    if out.is_null() {
        return Status::NullPointer as c_int;
    }
    // SAFETY: not null, so it can be written.
    Status::of(call().map(|result| unsafe { out.write(result) }))
}
