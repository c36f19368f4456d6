//! Why a handler does not do what was asked.

use coap_numbers::code;
use coapace_proto::Code;

use crate::Response;

/// An error as the client gets it: a code of class 4 or 5 and, as its payload, words for a person (RFC 7252 §5.5.2).
///
/// A handler returns any error that converts into this one. Where the own error type implements `Into<Rejection>`, `?`
/// does the rest.
#[derive(Clone, Debug)]
pub struct Rejection(Response);

impl Rejection {
    /// An error of this code. One that is of neither class 4 nor 5 becomes 5.00.
    pub const fn new(code: Code) -> Self {
        let is_error = matches!(code.0 >> 5, 4 | 5);
        Self(Response::new(if is_error { code } else { Code(code::INTERNAL_SERVER_ERROR) }))
    }

    /// 4.00.
    pub fn bad_request(why: impl Into<String>) -> Self {
        Self::new(Code(code::BAD_REQUEST)).because(why)
    }

    /// 4.04.
    pub const fn not_found() -> Self {
        Self::new(Code(code::NOT_FOUND))
    }

    /// 5.00.
    pub fn internal(why: impl Into<String>) -> Self {
        Self::new(Code(code::INTERNAL_SERVER_ERROR)).because(why)
    }

    /// 5.03: to be tried again after so many seconds (RFC 7252 §5.9.3.4).
    pub fn unavailable(seconds: u32) -> Self {
        Self(Response::new(Code(code::SERVICE_UNAVAILABLE)).max_age(seconds))
    }

    /// Says why, to the person who reads it.
    #[must_use]
    pub fn because(self, why: impl Into<String>) -> Self {
        Self(self.0.payload(why.into()))
    }

    /// Adds an option.
    #[must_use]
    pub fn option(self, number: u16, value: &[u8]) -> Self {
        Self(self.0.option(number, value))
    }
}

impl From<Code> for Rejection {
    fn from(code: Code) -> Self {
        Self::new(code)
    }
}

impl From<Rejection> for Response {
    fn from(rejection: Rejection) -> Self {
        rejection.0
    }
}

/// For handlers that cannot fail.
impl From<std::convert::Infallible> for Rejection {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

/// What is no text is a bad request.
impl From<std::str::Utf8Error> for Rejection {
    fn from(error: std::str::Utf8Error) -> Self {
        Self::bad_request(error.to_string())
    }
}

/// What is no number is a bad request.
impl From<std::num::ParseIntError> for Rejection {
    fn from(error: std::num::ParseIntError) -> Self {
        Self::bad_request(error.to_string())
    }
}

/// 5.00. What the system said is not for strangers.
impl From<std::io::Error> for Rejection {
    fn from(_: std::io::Error) -> Self {
        Self::new(Code(code::INTERNAL_SERVER_ERROR))
    }
}
