//! The status that a call returns.

use core::ffi::{CStr, c_char, c_int};

use coapace_control::{ParseMechanismError, SetError};

macro_rules! statuses {
    ($($(#[doc = $doc:literal])+ $name:ident = $number:literal $text:literal,)+) => {
        /// The status of a call, by the numbers of `enum coapace_status`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(i32)]
        pub enum Status { $($(#[doc = $doc])+ $name = $number,)+ }

        /// Returns a status in words, without a full stop. Never null.
        #[unsafe(no_mangle)]
        pub extern "C" fn coapace_strerror(status: c_int) -> *const c_char {
            let text: &CStr = match status { $($number => $text,)+ _ => c"no status of this library" };
            text.as_ptr()
        }
    };
}

statuses! {
    /// The call succeeded.
    Ok = 0 c"ok",
    /// A pointer is null.
    NullPointer = 1 c"a pointer is null",
    /// The library has no mechanism of this name or number.
    UnknownMechanism = 2 c"the library has no mechanism of this name or number",
    /// The library was built without `parameters`.
    NoParameters = 3 c"the library was built without parameters",
    /// A text is not UTF-8.
    NotText = 4 c"the text is not UTF-8",
    /// The text after the colon is not `parameter=value,…`.
    NotAnAssignment = 5 c"expected parameter=value",
    /// The mechanism has no such parameter.
    UnknownParameter = 6 c"the mechanism has no parameter of this name",
    /// The mechanism has no such preset.
    UnknownPreset = 7 c"the mechanism has no preset of this name",
    /// The parameter does not accept this value.
    BadValue = 8 c"the parameter does not accept this value",
    /// The mechanism was never initialised.
    BadMechanism = 9 c"the mechanism is not initialised",
    /// The state was never initialised, or belongs to another mechanism.
    BadState = 10 c"the state is not initialised, or of another mechanism",
    /// The exchange was never started, has ended, or belongs to another mechanism.
    BadExchange = 11 c"the exchange was not started, has ended, or belongs to another mechanism",
    /// The field `end` of the outcome is not a number of `enum coapace_end`.
    BadOutcome = 12 c"the end of the outcome has an invalid number",
    /// The memory for the state is too small.
    TooSmall = 13 c"too few bytes for the state of this mechanism",
}

impl Status {
    /// Returns the number of the status of a call.
    pub(crate) fn of(result: Result<(), Self>) -> c_int {
        result.err().unwrap_or(Self::Ok) as c_int
    }
}

impl From<SetError> for Status {
    fn from(error: SetError) -> Self {
        match error {
            SetError::UnknownParameter => Self::UnknownParameter,
            SetError::UnknownPreset => Self::UnknownPreset,
            SetError::BadValue(_) => Self::BadValue,
        }
    }
}

impl From<ParseMechanismError> for Status {
    fn from(error: ParseMechanismError) -> Self {
        match error {
            ParseMechanismError::UnknownMechanism { .. }
            | ParseMechanismError::UnknownBulk { .. }
            | ParseMechanismError::NoBulk { .. }
            | ParseMechanismError::NoSingle { .. } => Self::UnknownMechanism,
            ParseMechanismError::NotAnAssignment(_) => Self::NotAnAssignment,
            ParseMechanismError::Parameter { error, .. } => error.into(),
        }
    }
}
