//! The caller's memory: the bytes of a state for each destination, and of each exchange that has not ended.
//!
//! Both begin with a tag: the number of the kind of mechanism that wrote them, or zero. The tag reveals memory that was never
//! written, and memory of another mechanism.

use core::ffi::c_void;

use coapace_control::{Controller, Mechanism};

use crate::Status;
use crate::listed::{self, COUNT};

/// The tag of an exchange that has ended, and of memory that was never written.
const NOTHING: u8 = 0;

/// The size in bytes of an exchange, with the tag: enough for any mechanism of the library.
pub const EXCHANGE_SIZE: usize = {
    let (mut size, mut place) = (0, 0);
    while place < COUNT {
        let own = listed::entry(place).mechanism.exchange_bytes();
        size = if own > size { own } else { size };
        place += 1;
    }
    1 + size
};

/// Returns the size in bytes of a state of `mechanism`, with the tag.
pub const fn state_size(mechanism: &Mechanism) -> usize {
    1 + mechanism.state_bytes()
}

/// Returns the size in bytes of a state of a mechanism of known type, with the tag.
pub(crate) const fn state_size_of<C: Controller>(_: &C) -> usize {
    1 + size_of::<C::State>()
}

/// Returns a pointer to the value after the tag.
fn behind_tag<T>(bytes: *mut c_void) -> *mut T {
    // Not `add`, which is unsafe: only the callers know that there are bytes behind the tag.
    bytes.cast::<u8>().wrapping_add(1).cast()
}

/// Writes `value` with its tag.
///
/// # Safety
/// `bytes` points to 1 + `size_of::<T>()` bytes that nothing else uses during the call.
unsafe fn keep<T: Copy>(bytes: *mut c_void, tag: u8, value: T) {
    // SAFETY: the caller promises enough bytes; `write_unaligned` asks for no alignment.
    unsafe {
        bytes.cast::<u8>().write(tag);
        behind_tag::<T>(bytes).write_unaligned(value);
    }
}

/// Checks that `bytes` begin with this tag.
///
/// # Errors
/// `problem` if they begin with another tag; [`Status::NullPointer`].
///
/// # Safety
/// `bytes` is null or points to a byte.
unsafe fn expect(bytes: *const c_void, tag: u8, problem: Status) -> Result<(), Status> {
    if bytes.is_null() {
        return Err(Status::NullPointer);
    }
    // SAFETY: not null, so it points at a byte, and any byte is a valid `u8`.
    if unsafe { bytes.cast::<u8>().read() } == tag { Ok(()) } else { Err(problem) }
}

/// Writes the state of a new destination.
///
/// # Safety
/// `bytes` points to `state_size_of(controller)` bytes that nothing else uses during the call.
pub(crate) unsafe fn keep_state<C: Controller>(controller: &C, tag: u8, bytes: *mut c_void) {
    // SAFETY: the caller promises what `keep` asks for.
    unsafe { keep(bytes, tag, controller.state()) }
}

/// Returns a reference to the state in `bytes`.
///
/// # Safety
/// `bytes` is null, or points to bytes that nothing writes during `'a`. If the first byte is `tag`, `keep_state` wrote the
/// bytes for a controller of this type, and only this library has changed them since.
pub(crate) unsafe fn state<'a, C: Controller>(
    _: &C,
    tag: u8,
    bytes: *const c_void,
) -> Result<&'a C::State, Status> {
    // SAFETY: the caller promises what `state_in` asks for; a valid state that nothing writes can be lent.
    unsafe { state_in::<C>(tag, bytes.cast_mut()).map(|state| &*state) }
}

/// Returns a mutable reference to the state in `bytes`.
///
/// # Safety
/// As for [`state`], and nothing else uses the bytes during `'a`.
pub(crate) unsafe fn state_mut<'a, C: Controller>(
    _: &C,
    tag: u8,
    bytes: *mut c_void,
) -> Result<&'a mut C::State, Status> {
    // SAFETY: the caller promises what `state_in` asks for; a valid state that nothing else uses can be lent to be changed.
    unsafe { state_in::<C>(tag, bytes).map(|state| &mut *state) }
}

/// Returns a pointer to a valid state in `bytes`.
///
/// # Safety
/// As for [`state`].
unsafe fn state_in<C: Controller>(tag: u8, bytes: *mut c_void) -> Result<*mut C::State, Status> {
    // A reference needs the alignment of its type, and the caller's bytes have none.
    const { assert!(align_of::<C::State>() == 1, "a state is made of bytes, like Fine and Stamp") };
    // SAFETY: null or a byte at least. If the tag is right, the caller promises that `keep_state` wrote the bytes behind it,
    // or that they are a copy, which is as good: a state is `Copy`.
    unsafe { expect(bytes, tag, Status::BadState)? };
    Ok(behind_tag(bytes))
}

/// The caller's bytes for an exchange.
#[derive(Clone, Copy)]
pub(crate) struct ExchangeBytes(*mut c_void);

impl ExchangeBytes {
    /// Uses the memory at `bytes` for an exchange.
    ///
    /// # Safety
    /// While the value is used, `bytes` is null or points to `EXCHANGE_SIZE` bytes that nothing else uses. If the first byte is
    /// the tag of a kind, this library wrote the bytes for that kind, and nothing else has changed them since.
    pub(crate) unsafe fn new(bytes: *mut c_void) -> Self {
        Self(bytes)
    }

    /// Writes the tag that means that the bytes hold no exchange.
    ///
    /// # Errors
    /// [`Status::NullPointer`].
    pub(crate) fn clear(self) -> Result<(), Status> {
        if self.0.is_null() {
            return Err(Status::NullPointer);
        }
        // SAFETY: `new` was promised bytes here, and one of them is enough.
        unsafe { self.0.cast::<u8>().write(NOTHING) };
        Ok(())
    }

    /// Writes `exchange` with its tag.
    ///
    /// # Errors
    /// [`Status::NullPointer`].
    pub(crate) fn put<C: Controller>(self, _: &C, tag: u8, exchange: C::Exchange) -> Result<(), Status> {
        if self.0.is_null() {
            return Err(Status::NullPointer);
        }
        const { assert!(size_of::<C::Exchange>() < EXCHANGE_SIZE) };
        // SAFETY: `new` was promised EXCHANGE_SIZE bytes here, and they are enough.
        unsafe { keep(self.0, tag, exchange) };
        Ok(())
    }

    /// Returns a mutable reference to the exchange.
    ///
    /// # Errors
    /// [`Status::BadExchange`] if the bytes are not an exchange of this kind; [`Status::NullPointer`].
    ///
    /// # Safety
    /// Nothing else uses the bytes during `'a`, including this value.
    pub(crate) unsafe fn get<'a, C: Controller>(self, _: &C, tag: u8) -> Result<&'a mut C::Exchange, Status> {
        const { assert!(align_of::<C::Exchange>() == 1, "an exchange is made of bytes, like Fine and Ratio") };
        // SAFETY: `new` was promised null or bytes.
        unsafe { expect(self.0, tag, Status::BadExchange)? };
        // SAFETY: the tag is right, so by the promise to `new` a valid exchange is behind it, and the caller lends it.
        Ok(unsafe { &mut *behind_tag(self.0) })
    }
}
