//! The choice of a mechanism, and the initialisation of its states.

use core::ffi::{CStr, c_char, c_int, c_void};

use crate::chosen::Chosen;
use crate::{Status, memory, names};

/// Chooses the mechanism `name` with its default parameters.
///
/// # Safety
/// `mechanism` is null or points to a `struct coapace_mechanism` that nothing else uses during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn coapace_init(mechanism: *mut Chosen, name: c_int) -> c_int {
    let chosen = usize::try_from(name).map_err(|_| Status::UnknownMechanism).and_then(Chosen::at);
    // SAFETY: the caller promises what `put` asks for.
    Status::of(unsafe { put(mechanism, chosen) })
}

/// Chooses a mechanism by a text `NAME` or `NAME:parameter=value,…`.
///
/// # Safety
/// As for [`coapace_init`], and `text` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn coapace_parse(mechanism: *mut Chosen, text: *const c_char) -> c_int {
    // SAFETY: the caller promises a text that ends, or null.
    let chosen = unsafe { bytes(text) }.and_then(parse);
    // SAFETY: the caller promises what `put` asks for.
    Status::of(unsafe { put(mechanism, chosen) })
}

/// Sets a parameter. If it returns an error, the mechanism is unchanged.
///
/// # Safety
/// As for [`coapace_init`], and this library wrote `mechanism`. Each text is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn coapace_set(
    mechanism: *mut Chosen,
    parameter: *const c_char,
    value: *const c_char,
) -> c_int {
    // SAFETY: null, or a `Chosen`, for which any bytes are valid; texts that end, or null.
    let given = unsafe { (mechanism.as_mut(), bytes(parameter), bytes(value)) };
    let (Some(chosen), Ok(parameter), Ok(value)) = given else { return Status::NullPointer as c_int };
    Status::of(set(chosen, parameter, value))
}

/// Returns the size in bytes of a state of this mechanism, or 0 if none is chosen.
///
/// # Safety
/// `mechanism` is null, or this library wrote it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn coapace_state_size(mechanism: *const Chosen) -> usize {
    // SAFETY: the caller promises what `from_c` asks for.
    let chosen = unsafe { Chosen::from_c(mechanism) };
    chosen
        .and_then(|chosen| on_chosen!(chosen, |controller, _tag| Ok(memory::state_size_of(controller))))
        .unwrap_or(0)
}

/// Writes the state of a destination before the first exchange with it.
///
/// # Safety
/// `mechanism` is null, or this library wrote it. `state` is null or points to `size` bytes that nothing else uses during the
/// call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn coapace_state_init(
    mechanism: *const Chosen,
    state: *mut c_void,
    size: usize,
) -> c_int {
    // SAFETY: the caller promises what `from_c` asks for.
    Status::of(unsafe { Chosen::from_c(mechanism) }.and_then(|chosen| {
        on_chosen!(chosen, |controller, tag| {
            if state.is_null() {
                Err(Status::NullPointer)
            } else if size < memory::state_size_of(controller) {
                Err(Status::TooSmall)
            } else {
                // SAFETY: `state` points at `size` bytes, and they are enough.
                unsafe { memory::keep_state(controller, tag, state) };
                Ok(())
            }
        })
    }))
}

/// Writes the chosen mechanism, or none if the choice failed. The previous mechanism is overwritten in both cases.
///
/// # Safety
/// As for [`coapace_init`].
unsafe fn put(mechanism: *mut Chosen, chosen: Result<Chosen, Status>) -> Result<(), Status> {
    if mechanism.is_null() {
        return Err(Status::NullPointer);
    }
    // SAFETY: not null, so the caller lets it be written.
    unsafe { mechanism.write(chosen.unwrap_or(Chosen::NOTHING)) };
    chosen.map(drop)
}

/// Returns the bytes of a text.
///
/// # Safety
/// `text` is null or points to bytes that end with a zero and do not change during `'a`.
unsafe fn bytes<'a>(text: *const c_char) -> Result<&'a [u8], Status> {
    if text.is_null() {
        return Err(Status::NullPointer);
    }
    // SAFETY: not null, so by the caller's promise a text that ends.
    Ok(unsafe { CStr::from_ptr(text) }.to_bytes())
}

#[cfg(feature = "parameters")]
fn parse(text: &[u8]) -> Result<Chosen, Status> {
    let text = utf8(text)?;
    let (name, settings) = text.split_once(':').unwrap_or((text, ""));
    let mut chosen = named(name.as_bytes())?;
    for setting in coapace_control::Mechanism::settings(settings) {
        let (parameter, value) = setting?;
        chosen.set(parameter, value)?;
    }
    Ok(chosen)
}

#[cfg(feature = "parameters")]
fn set(chosen: &mut Chosen, parameter: &[u8], value: &[u8]) -> Result<(), Status> {
    chosen.set(utf8(parameter)?, utf8(value)?)
}

#[cfg(feature = "parameters")]
fn utf8(text: &[u8]) -> Result<&str, Status> {
    core::str::from_utf8(text).map_err(|_| Status::NotText)
}

#[cfg(not(feature = "parameters"))]
fn parse(text: &[u8]) -> Result<Chosen, Status> {
    if text.contains(&b':') { Err(Status::NoParameters) } else { named(text) }
}

#[cfg(not(feature = "parameters"))]
fn set(_: &mut Chosen, _: &[u8], _: &[u8]) -> Result<(), Status> {
    Err(Status::NoParameters)
}

fn named(name: &[u8]) -> Result<Chosen, Status> {
    names::place_of(name).ok_or(Status::UnknownMechanism).and_then(Chosen::at)
}
