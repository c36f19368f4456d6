//! The errors of handlers.

use coapace_proto::Code;

use crate::Response;

/// An error response: a code of class 4 or 5, and a payload that a person can read (RFC 7252 §5.5.2).
///
/// A handler may return any error that converts into a `Rejection`, so `?` works with every type that implements
/// `Into<Rejection>`.
#[derive(Clone, Debug)]
pub struct Rejection(Response);

impl Rejection {
    /// Returns an error with this code. A code of another class than 4 or 5 becomes 5.00.
    pub const fn new(code: Code) -> Self {
        let is_error = matches!(code.class(), 4 | 5);
        Self(Response::new(if is_error { code } else { Code::INTERNAL_SERVER_ERROR }))
    }

    /// Returns 4.00 with the reason as its payload.
    pub fn bad_request(why: impl Into<String>) -> Self {
        Self::new(Code::BAD_REQUEST).because(why)
    }

    /// Returns 4.04.
    pub const fn not_found() -> Self {
        Self::new(Code::NOT_FOUND)
    }

    /// Returns 5.00 with the reason as its payload.
    pub fn internal(why: impl Into<String>) -> Self {
        Self::new(Code::INTERNAL_SERVER_ERROR).because(why)
    }

    /// Returns 5.03: the client may try again after this many seconds (RFC 7252 §5.9.3.4).
    pub fn unavailable(seconds: u32) -> Self {
        Self(Response::new(Code::SERVICE_UNAVAILABLE).max_age(seconds))
    }

    /// Returns 4.29: the client is too fast, and may repeat the request after this many seconds (RFC 8516).
    pub fn too_many_requests(seconds: u32) -> Self {
        Self(Response::new(Code::TOO_MANY_REQUESTS).max_age(seconds))
    }

    /// Sets the payload to the reason, as readable text.
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

/// Allows handlers that cannot fail.
impl From<std::convert::Infallible> for Rejection {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

/// Returns 4.00 for bytes that are not UTF-8.
impl From<std::str::Utf8Error> for Rejection {
    fn from(error: std::str::Utf8Error) -> Self {
        Self::bad_request(error.to_string())
    }
}

/// Returns 4.00 for text that is not a number.
impl From<std::num::ParseIntError> for Rejection {
    fn from(error: std::num::ParseIntError) -> Self {
        Self::bad_request(error.to_string())
    }
}

/// Returns 5.00 without the text of the error, which may reveal internals of the system.
impl From<std::io::Error> for Rejection {
    fn from(_: std::io::Error) -> Self {
        Self::new(Code::INTERNAL_SERVER_ERROR)
    }
}
