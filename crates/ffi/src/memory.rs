//! What the caller keeps for a mechanism as bytes: a state for each destination, an exchange for each under way.
//!
//! Both begin with a tag, the number of the kind of mechanism they are of. Zero is the tag of nothing, so what was never
//! written is told from what was, and what one mechanism wrote from what another reads.

use core::ffi::c_void;

use coapace_control::{Controller, Mechanism, REGISTRY};

use crate::Status;

/// The tag of what is not kept any more.
const NOTHING: u8 = 0;

/// Bytes of an exchange of any mechanism in the registry, with the tag.
pub const EXCHANGE_SIZE: usize = {
    let (mut size, mut place) = (0, 0);
    while place < REGISTRY.len() {
        let own = REGISTRY[place].mechanism.exchange_bytes();
        size = if own > size { own } else { size };
        place += 1;
    }
    1 + size
};

/// Bytes of a state of `mechanism`, with the tag.
pub const fn state_size(mechanism: &Mechanism) -> usize {
    1 + mechanism.state_bytes()
}

/// The same where the mechanism is known.
pub(crate) const fn state_size_of<C: Controller>(_: &C) -> usize {
    1 + size_of::<C::State>()
}

/// Where the value begins, behind the tag.
fn behind_tag<T>(bytes: *mut c_void) -> *mut T {
    // Not `add`: that it stays within the bytes is for the caller to say who reads them.
    bytes.cast::<u8>().wrapping_add(1).cast()
}

/// Writes `value` with its tag.
///
/// # Safety
/// `bytes` points at 1 + `size_of::<T>()` bytes that nothing else uses during the call.
unsafe fn keep<T: Copy>(bytes: *mut c_void, tag: u8, value: T) {
    // SAFETY: the caller gives that many bytes; `write_unaligned` asks for no alignment.
    unsafe {
        bytes.cast::<u8>().write(tag);
        behind_tag::<T>(bytes).write_unaligned(value);
    }
}

/// Whether `bytes` have this tag, or else `problem`.
///
/// # Safety
/// `bytes` is null or points at a byte.
unsafe fn expect(bytes: *const c_void, tag: u8, problem: Status) -> Result<(), Status> {
    if bytes.is_null() {
        return Err(Status::NullPointer);
    }
    // SAFETY: not null, so it points at a byte; a `u8` is whatever that holds.
    if unsafe { bytes.cast::<u8>().read() } == tag { Ok(()) } else { Err(problem) }
}

/// Makes a state.
///
/// # Safety
/// `bytes` points at `state_size_of(controller)` bytes that nothing else uses during the call.
pub(crate) unsafe fn keep_state<C: Controller>(controller: &C, tag: u8, bytes: *mut c_void) {
    // SAFETY: the caller's promise is that of `keep`.
    unsafe { keep(bytes, tag, controller.state()) }
}

/// The state in `bytes`, where it lies.
///
/// # Safety
/// `bytes` is null, or points at bytes that nothing writes during `'a`; if the first of them is `tag`, `keep_state` wrote
/// them for a controller of this type, and nothing changed them since but this library.
pub(crate) unsafe fn state<'a, C: Controller>(
    _: &C,
    tag: u8,
    bytes: *const c_void,
) -> Result<&'a C::State, Status> {
    // SAFETY: the caller's promise is that of `state_in`; a valid state that nothing writes can be lent.
    unsafe { state_in::<C>(tag, bytes.cast_mut()).map(|state| &*state) }
}

/// The state in `bytes`, to be changed where it lies.
///
/// # Safety
/// As of [`state`], and nothing else uses the bytes during `'a`.
pub(crate) unsafe fn state_mut<'a, C: Controller>(
    _: &C,
    tag: u8,
    bytes: *mut c_void,
) -> Result<&'a mut C::State, Status> {
    // SAFETY: the caller's promise is that of `state_in`; a valid state that nothing else uses can be lent to be changed.
    unsafe { state_in::<C>(tag, bytes).map(|state| &mut *state) }
}

/// Where the state lies: a valid one.
///
/// # Safety
/// As of [`state`].
unsafe fn state_in<C: Controller>(tag: u8, bytes: *mut c_void) -> Result<*mut C::State, Status> {
    // What is used where it lies has to lie well wherever that is.
    const { assert!(align_of::<C::State>() == 1, "a state is made of bytes, like Fine and Stamp") };
    // SAFETY: null or a byte at least. If the tag is right, what lies behind it is by the caller's promise what
    // `keep_state` wrote, or a copy of that, which is as good: a state is `Copy`.
    unsafe { expect(bytes, tag, Status::BadState)? };
    Ok(behind_tag(bytes))
}

/// An exchange in the caller's bytes.
#[derive(Clone, Copy)]
pub(crate) struct Slot(*mut c_void);

impl Slot {
    /// The exchange at `bytes`.
    ///
    /// # Safety
    /// As long as the slot is used, `bytes` is null or points at `EXCHANGE_SIZE` bytes that nothing else uses; if the
    /// first of them is the tag of a kind, this library wrote them for that kind, and nothing else changed them since.
    pub(crate) unsafe fn new(bytes: *mut c_void) -> Self {
        Self(bytes)
    }

    /// Forgets what is kept, if there is a place for it at all.
    pub(crate) fn clear(self) -> Result<(), Status> {
        if self.0.is_null() {
            return Err(Status::NullPointer);
        }
        // SAFETY: `new` was promised bytes here, and one of them is enough.
        unsafe { self.0.cast::<u8>().write(NOTHING) };
        Ok(())
    }

    /// Keeps `exchange`, if there is a place.
    pub(crate) fn put<C: Controller>(self, _: &C, tag: u8, exchange: C::Exchange) -> Result<(), Status> {
        if self.0.is_null() {
            return Err(Status::NullPointer);
        }
        const { assert!(size_of::<C::Exchange>() < EXCHANGE_SIZE) };
        // SAFETY: `new` was promised EXCHANGE_SIZE bytes here, and they are enough.
        unsafe { keep(self.0, tag, exchange) };
        Ok(())
    }

    /// What is kept, where it lies, if it is of this kind.
    ///
    /// # Safety
    /// Nothing else uses the bytes during `'a`, the slot included.
    pub(crate) unsafe fn get<'a, C: Controller>(self, _: &C, tag: u8) -> Result<&'a mut C::Exchange, Status> {
        const { assert!(align_of::<C::Exchange>() == 1, "an exchange is made of bytes, like Fine and Ratio") };
        // SAFETY: `new` was promised null or bytes.
        unsafe { expect(self.0, tag, Status::BadExchange)? };
        // SAFETY: the tag is right, so by the promise to `new` a valid exchange lies behind it, and the caller lends it.
        Ok(unsafe { &mut *behind_tag(self.0) })
    }
}
