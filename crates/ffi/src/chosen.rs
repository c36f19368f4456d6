//! The mechanism that a program chose, and the dispatch of calls to it.
//!
//! With the feature `parameters`, the mechanism is stored as a value. Without it, only its number is stored, and the value is a
//! constant in the code. In both cases a call has one branch for each mechanism that was compiled, and none for the others.

#[cfg(feature = "parameters")]
use core::mem::MaybeUninit;

use coapace_control::Mechanism;

use crate::Status;
use crate::listed::COUNT;

/// The size in bytes of `struct coapace_mechanism`: the number, padded, and the value. The feature `parameters` does not change
/// it.
pub const MECHANISM_SIZE: usize = (size_of::<u64>() + size_of::<Mechanism>()).next_multiple_of(8);

/// The Rust side of `struct coapace_mechanism`. Any bytes are a valid value, because the number is checked before use.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Chosen {
    /// The position in the registry, counted from 1; [`NONE`] if no mechanism is chosen.
    number: u8,
    #[cfg(feature = "parameters")]
    mechanism: MaybeUninit<Mechanism>,
}

/// The number that means no mechanism, which zeroed memory has.
const NONE: u8 = 0;

const _: () = assert!(size_of::<Chosen>() <= MECHANISM_SIZE && align_of::<Chosen>() <= align_of::<u64>());
const _: () = assert!(COUNT < u8::MAX as usize);

macro_rules! at_among {
    ([$(($place:literal $number:literal $kind:ident $($_:literal)+))+] $asked:expr) => {
        match $asked {
            $($place => Ok(Self {
                number: $number,
                #[cfg(feature = "parameters")]
                mechanism: MaybeUninit::new(const { crate::listed::entry($place).mechanism }),
            }),)+
            _ => Err(Status::UnknownMechanism),
        }
    };
}

#[cfg(feature = "parameters")]
macro_rules! set_of_kind {
    ([$(($kind:ident $_:literal))+] $mechanism:expr, $parameter:expr, $value:expr) => {
        match $mechanism {
            $(Mechanism::$kind(own) => own.set($parameter, $value).map_err(Status::from),)+
            #[allow(unreachable_patterns, reason = "reachable where a kind was left out")]
            _ => Err(Status::BadMechanism),
        }
    };
}

impl Chosen {
    /// The value without a mechanism, which no call accepts.
    pub(crate) const NOTHING: Self = Self {
        number: NONE,
        #[cfg(feature = "parameters")]
        mechanism: MaybeUninit::uninit(),
    };

    /// Returns the mechanism at `place` of the registry, with the parameters of its entry, if it was compiled.
    pub(crate) fn at(place: usize) -> Result<Self, Status> {
        entries!(at_among place)
    }

    /// Returns a reference to the mechanism that C passed.
    ///
    /// # Safety
    /// `mechanism` is null, or points to a `struct coapace_mechanism` that nothing writes during `'a`. If its number is one of
    /// the registry's, this library wrote it, and nothing else has changed it since.
    pub(crate) unsafe fn from_c<'a>(mechanism: *const Self) -> Result<&'a Self, Status> {
        // SAFETY: null or readable; any bytes are a valid `Chosen`.
        unsafe { mechanism.as_ref() }.ok_or(Status::NullPointer)
    }

    /// Returns the number of the mechanism. It may be [`NONE`], or a number without a mechanism.
    #[cfg(not(feature = "parameters"))]
    pub(crate) fn number(self) -> u8 {
        self.number
    }

    /// Returns the mechanism with its parameters.
    #[cfg(feature = "parameters")]
    pub(crate) fn mechanism(&self) -> Result<&Mechanism, Status> {
        if self.number == NONE || usize::from(self.number) > COUNT {
            return Err(Status::BadMechanism);
        }
        // SAFETY: a number of the registry is written together with a mechanism, by this library alone.
        Ok(unsafe { self.mechanism.assume_init_ref() })
    }

    /// Sets a parameter. An error leaves the mechanism unchanged.
    #[cfg(feature = "parameters")]
    pub(crate) fn set(&mut self, parameter: &str, value: &str) -> Result<(), Status> {
        let mut mechanism = *self.mechanism()?;
        // Not `Mechanism::set`, which would link the parameters of mechanisms whose feature is off.
        kinds!(set_of_kind &mut mechanism, parameter, value)?;
        self.mechanism.write(mechanism);
        Ok(())
    }
}

/// Evaluates `call` of `on_chosen!(chosen, |controller, tag| call)` with the concrete controller and the tag of its kind.
#[cfg(feature = "parameters")]
macro_rules! on_chosen {
    ($chosen:expr, |$controller:ident, $tag:ident| $call:expr) => {
        kinds!(on_kind $chosen, $controller, $tag, $call)
    };
}

#[cfg(feature = "parameters")]
macro_rules! on_kind {
    ([$(($kind:ident $number:literal))+] $chosen:expr, $controller:ident, $tag:ident, $call:expr) => {
        match $chosen.mechanism() {
            $(Ok(coapace_control::Mechanism::$kind($controller)) => { let $tag = $number; $call })+
            _ => Err($crate::Status::BadMechanism),
        }
    };
}

#[cfg(not(feature = "parameters"))]
macro_rules! on_chosen {
    ($chosen:expr, |$controller:ident, $tag:ident| $call:expr) => {
        entries!(on_entry $chosen, $controller, $tag, $call)
    };
}

#[cfg(not(feature = "parameters"))]
macro_rules! on_entry {
    (
        [$(($place:literal $number:literal $kind:ident $own_tag:literal $($_:literal)+))+]
        $chosen:expr, $controller:ident, $tag:ident, $call:expr
    ) => {
        match $chosen.number() {
            $($number => {
                // A constant of its own, so that the rest of the registry is not linked.
                const MECHANISM: coapace_control::Mechanism = $crate::listed::entry($place).mechanism;
                match &MECHANISM {
                    coapace_control::Mechanism::$kind($controller) => { let $tag = $own_tag; $call }
                    #[allow(unreachable_patterns, reason = "reachable while there is more than one kind")]
                    _ => Err($crate::Status::BadMechanism),
                }
            })+
            _ => Err($crate::Status::BadMechanism),
        }
    };
}
