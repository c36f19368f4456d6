//! Responses: received by a client, or made by a handler.

use coapace_net as net;
use coapace_net::Code;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::value::{OptionPairs, TextOrBytes};

/// The numbers of the options that have a name here (RFC 7252 §5.10).
const MAX_AGE: u16 = 14;
/// The time that a response without Max-Age is fresh, in seconds (RFC 7252 §5.10.5).
const DEFAULT_MAX_AGE: u64 = 60;

/// A response: received by a client, or made by a handler from a payload (text or bytes), a code, a Content-Format, Max-Age in
/// seconds, and further options as pairs of number and value.
#[pyclass(frozen, module = "coapace")]
#[derive(Debug)]
pub(crate) struct Response(pub(crate) net::Response);

#[pymethods]
impl Response {
    #[new]
    #[pyo3(signature = (payload=None, code="2.05", *, content_format=None, max_age=None, options=Vec::new()))]
    fn new(
        payload: Option<TextOrBytes>,
        code: &str,
        content_format: Option<u16>,
        max_age: Option<u32>,
        options: OptionPairs,
    ) -> PyResult<Self> {
        // With a code of class 0 the message would be a request (RFC 7252 §12.1).
        let code = code.parse().ok().filter(|code: &Code| code.is_response()).ok_or_else(|| {
            PyValueError::new_err(format!(
                "code is {code:?}, but must be the code of a response, such as 2.05 or 4.04"
            ))
        })?;
        let mut response =
            net::Response::new(code).payload(payload.map(TextOrBytes::into_bytes).unwrap_or_default());
        if let Some(format) = content_format {
            response = response.content_format(format);
        }
        if let Some(seconds) = max_age {
            response = response.max_age(seconds);
        }
        Ok(Self(
            options
                .into_iter()
                .fold(response, |response, (number, value)| response.option(number, &value.into_bytes())),
        ))
    }

    /// The code as class and detail, such as `2.05`.
    #[getter]
    fn code(&self) -> String {
        self.0.code.dotted().to_string()
    }

    /// Whether the request was carried out: the code has class 2.
    #[getter]
    fn is_success(&self) -> bool {
        self.0.is_success()
    }

    /// The payload, empty if there is none.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.payload)
    }

    /// The payload as text, with U+FFFD for bytes that are no UTF-8.
    #[getter]
    fn text(&self) -> std::borrow::Cow<'_, str> {
        self.0.text()
    }

    /// The options as (number, value), in the order of their numbers.
    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> Vec<(u16, Bound<'py, PyBytes>)> {
        self.0.options.iter().map(|(number, value)| (number, PyBytes::new(py, value))).collect()
    }

    /// The Content-Format of the payload; None if the response does not say.
    #[getter]
    fn content_format(&self) -> Option<u16> {
        self.0.format()
    }

    /// The time that the response is fresh, in seconds; 60 if it does not say.
    #[getter]
    fn max_age(&self) -> u64 {
        self.0.options.uint(MAX_AGE).unwrap_or(DEFAULT_MAX_AGE)
    }

    /// The time from the request to this response, in seconds. 0 in a response that was not received.
    #[getter]
    fn elapsed(&self) -> f64 {
        self.0.elapsed.as_secs_f64()
    }

    /// The number of transmissions of the request, the largest of any block. 0 in a response that was not received.
    #[getter]
    fn transmissions(&self) -> u8 {
        self.0.transmissions
    }

    fn __repr__(&self) -> String {
        format!("<Response {}, {} bytes>", self.0.code, self.0.payload.len())
    }
}
