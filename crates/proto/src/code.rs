//! Codes of messages: methods, responses and signals (RFC 7252 §12.1, RFC 8323 §5).

use core::fmt;
use core::str::FromStr;

use coap_numbers::code;

/// The code of a message: class in the upper three bits, detail in the lower five.
///
/// ```
/// use coapace_proto::Code;
///
/// assert_eq!(Code::CONTENT.to_string(), "2.05 Content");
/// assert_eq!(Code::GET.to_string(), "GET");
/// assert_eq!("4.04".parse(), Ok(Code::NOT_FOUND));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Code(pub u8);

macro_rules! codes {
    ($($name:ident $dotted:literal $source:literal)+) => {
        impl Code {
            $(#[doc = concat!($dotted, ", ", $source, ".")] pub const $name: Self = Self(code::$name);)+
        }

        #[cfg(test)]
        const NAMED: &[(Code, &str)] = &[$((Code::$name, $dotted)),+];
    };
}

codes! {
    EMPTY "0.00" "neither request nor response, RFC 7252 §4.1"
    GET "0.01" "RFC 7252 §5.8.1"
    POST "0.02" "RFC 7252 §5.8.2"
    PUT "0.03" "RFC 7252 §5.8.3"
    DELETE "0.04" "RFC 7252 §5.8.4"
    FETCH "0.05" "RFC 8132 §2"
    PATCH "0.06" "RFC 8132 §3"
    IPATCH "0.07" "RFC 8132 §3"
    CREATED "2.01" "RFC 7252 §5.9.1.1"
    DELETED "2.02" "RFC 7252 §5.9.1.2"
    VALID "2.03" "RFC 7252 §5.9.1.3"
    CHANGED "2.04" "RFC 7252 §5.9.1.4"
    CONTENT "2.05" "RFC 7252 §5.9.1.5"
    CONTINUE "2.31" "RFC 7959 §2.9.1"
    BAD_REQUEST "4.00" "RFC 7252 §5.9.2.1"
    UNAUTHORIZED "4.01" "RFC 7252 §5.9.2.2"
    BAD_OPTION "4.02" "RFC 7252 §5.9.2.3"
    FORBIDDEN "4.03" "RFC 7252 §5.9.2.4"
    NOT_FOUND "4.04" "RFC 7252 §5.9.2.5"
    METHOD_NOT_ALLOWED "4.05" "RFC 7252 §5.9.2.6"
    NOT_ACCEPTABLE "4.06" "RFC 7252 §5.9.2.7"
    REQUEST_ENTITY_INCOMPLETE "4.08" "RFC 7959 §2.9.2"
    CONFLICT "4.09" "RFC 8132 §3.4"
    PRECONDITION_FAILED "4.12" "RFC 7252 §5.9.2.8"
    REQUEST_ENTITY_TOO_LARGE "4.13" "RFC 7252 §5.9.2.9"
    UNSUPPORTED_CONTENT_FORMAT "4.15" "RFC 7252 §5.9.2.10"
    UNPROCESSABLE_ENTITY "4.22" "RFC 8132 §3.4"
    TOO_MANY_REQUESTS "4.29" "RFC 8516"
    INTERNAL_SERVER_ERROR "5.00" "RFC 7252 §5.9.3.1"
    NOT_IMPLEMENTED "5.01" "RFC 7252 §5.9.3.2"
    BAD_GATEWAY "5.02" "RFC 7252 §5.9.3.3"
    SERVICE_UNAVAILABLE "5.03" "RFC 7252 §5.9.3.4"
    GATEWAY_TIMEOUT "5.04" "RFC 7252 §5.9.3.5"
    PROXYING_NOT_SUPPORTED "5.05" "RFC 7252 §5.9.3.6"
    HOP_LIMIT_REACHED "5.08" "RFC 8768"
    CSM "7.01" "RFC 8323 §5.3"
    PING "7.02" "RFC 8323 §5.4"
    PONG "7.03" "RFC 8323 §5.4"
    RELEASE "7.04" "RFC 8323 §5.5"
    ABORT "7.05" "RFC 8323 §5.6"
}

impl Code {
    /// Returns the class, 0 to 7.
    pub const fn class(self) -> u8 {
        self.0 >> 5
    }

    /// Returns whether the code is a request method (class 0, not empty).
    pub const fn is_request(self) -> bool {
        self.0 != 0 && self.0 < 32
    }

    /// Returns whether the code is a method with the same effect however often a server executes it: GET, PUT, DELETE (RFC 7252
    /// §5.8), FETCH, iPATCH (RFC 8132 §1). POST, PATCH and unknown methods are not idempotent.
    pub const fn is_idempotent(self) -> bool {
        matches!(self, Self::GET | Self::PUT | Self::DELETE | Self::FETCH | Self::IPATCH)
    }

    /// Returns whether the code is a response (classes 2, 4 and 5).
    pub const fn is_response(self) -> bool {
        matches!(self.class(), 2 | 4 | 5)
    }

    /// Returns whether the code is a successful response (class 2).
    pub const fn is_success(self) -> bool {
        self.class() == 2
    }

    /// Returns the registered name of the code, such as `GET` or `Not Found`; `None` for a code without a name.
    pub fn name(self) -> Option<&'static str> {
        code::to_name(self.0)
    }

    /// Returns only class and detail, such as `2.05`.
    pub const fn dotted(self) -> Dotted {
        Dotted(self)
    }
}

/// A [`Code`] that is displayed as class and detail, such as `2.05`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dotted(Code);

impl fmt::Display for Dotted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        code::format_dotted(self.0.0, f)
    }
}

/// Writes `GET` for a method, `2.05 Content` for another code, and `4.31` for a code without a name.
impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) if self.is_request() => f.write_str(name),
            Some(name) => write!(f, "{} {name}", self.dotted()),
            None => self.dotted().fmt(f),
        }
    }
}

/// The error that a text is not a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadCode;

impl fmt::Display for BadCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected a method such as GET, or a code such as 2.05")
    }
}

impl core::error::Error for BadCode {}

/// Reads `2.05 Content`, as [`Display`](fmt::Display) writes it, or only `2.05`, or only `Content`. Case does not
/// matter.
impl FromStr for Code {
    type Err = BadCode;

    fn from_str(text: &str) -> Result<Self, BadCode> {
        let (first, name) = text.split_once(' ').unwrap_or((text, ""));
        if let Some(code) = from_dotted(first) {
            let fits = name.is_empty() || code.name().is_some_and(|known| known.eq_ignore_ascii_case(name));
            return if fits { Ok(code) } else { Err(BadCode) };
        }
        let named = |code: &Self| code.name().is_some_and(|known| known.eq_ignore_ascii_case(text));
        // No two codes share a name.
        (0..=u8::MAX).map(Self).find(named).ok_or(BadCode)
    }
}

/// Reads `2.05`: one digit of the class, two of the detail.
fn from_dotted(text: &str) -> Option<Code> {
    let &[class @ b'0'..=b'7', b'.', tens @ b'0'..=b'3', ones @ b'0'..=b'9'] = text.as_bytes() else {
        return None;
    };
    let detail = (tens - b'0') * 10 + (ones - b'0');
    // The detail has five bits (RFC 7252 §3).
    (detail < 32).then_some(Code((class - b'0') << 5 | detail))
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn every_code_has_the_number_and_name_of_the_iana_registry() {
        for (code, dotted) in NAMED {
            assert_eq!(code.dotted().to_string(), *dotted);
            assert!(code.name().is_some(), "{dotted}");
        }
        let named = (0..=u8::MAX).filter(|&code| code::to_name(code).is_some()).count();
        assert_eq!(NAMED.len(), named, "every code with a name is a constant");
    }

    #[test]
    fn a_code_parses_back_from_its_text() {
        for number in 0..=u8::MAX {
            let code = Code(number);
            assert_eq!(code.to_string().parse(), Ok(code));
            assert_eq!(code.dotted().to_string().parse(), Ok(code));
        }
        for (text, code) in [
            ("get", Code::GET),
            ("iPATCH", Code::IPATCH),
            ("not found", Code::NOT_FOUND),
            ("5.08", Code::HOP_LIMIT_REACHED),
            ("4.29 too many requests", Code::TOO_MANY_REQUESTS),
        ] {
            assert_eq!(text.parse(), Ok(code), "{text}");
        }
    }

    #[test]
    fn an_invalid_code_is_refused() {
        for text in ["", " ", "8.00", "2.5", "2.32", "2.055", "2,05", "2.05 Changed", "GETT", "é.05"] {
            assert_eq!(text.parse::<Code>(), Err(BadCode), "{text:?}");
        }
    }

    #[test]
    fn codes_are_requests_responses_or_signals_by_class() {
        assert!(Code::GET.is_request() && !Code::EMPTY.is_request() && !Code::CONTENT.is_request());
        assert!(Code::CONTENT.is_success() && !Code::NOT_FOUND.is_success() && Code::NOT_FOUND.is_response());
        assert!(!Code::CSM.is_response() && !Code(0x61).is_response());
        assert!(Code::PUT.is_idempotent() && !Code::POST.is_idempotent() && !Code(31).is_idempotent());
    }
}
