//! Requests that a server has received.

use coapace_net as net;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The numbers of the options that have a name here (RFC 7252 §5.10).
const CONTENT_FORMAT: u16 = 12;
const ACCEPT: u16 = 17;

/// A request that a server has received.
#[pyclass(frozen, name = "Request", module = "coapace")]
#[derive(Debug)]
pub(crate) struct RequestOfPython(pub(crate) net::Request);

#[pymethods]
impl RequestOfPython {
    /// The method: `GET`, `PUT`, …
    #[getter]
    fn method(&self) -> String {
        self.0.method().to_string()
    }

    /// The path, with a slash before each segment.
    #[getter]
    fn path(&self) -> String {
        self.0.path()
    }

    /// Returns the segment that `{name}` matched in the path of the resource; None if the path has no `{name}`, or if
    /// the segment is not UTF-8.
    fn parameter(&self, name: &str) -> Option<&str> {
        self.0.parameter(name)
    }

    /// The arguments of the query, in their order.
    #[getter]
    fn query(&self) -> Vec<&str> {
        self.0.query().collect()
    }

    /// Returns the value of the argument `name=value` of the query: empty for a name alone, None without the argument.
    fn argument(&self, name: &str) -> Option<&str> {
        self.0.argument(name)
    }

    /// The payload, empty if there is none. Its blocks are put together.
    #[getter]
    fn payload<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.payload())
    }

    /// The payload as text, with U+FFFD for bytes that are no UTF-8.
    #[getter]
    fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.0.payload())
    }

    /// The options as (number, value), in the order of their numbers.
    #[getter]
    fn options<'py>(&self, py: Python<'py>) -> Vec<(u16, Bound<'py, PyBytes>)> {
        self.0.options().map(|(number, value)| (number, PyBytes::new(py, value))).collect()
    }

    /// The Content-Format of the payload; None if the request does not say.
    #[getter]
    fn content_format(&self) -> Option<u16> {
        // A malformed option may be longer than two bytes, and then names no format.
        self.0.uint(CONTENT_FORMAT)?.try_into().ok()
    }

    /// The Content-Format that the response shall have; None if the request does not say.
    #[getter]
    fn accept(&self) -> Option<u16> {
        self.0.uint(ACCEPT)?.try_into().ok()
    }

    /// The client's address and port.
    #[getter]
    fn remote(&self) -> String {
        self.0.from().to_string()
    }

    /// The identity of the pre-shared key that the client has proved; None without DTLS.
    #[getter]
    fn identity(&self) -> Option<String> {
        self.0.peer_identity().map(ToString::to_string)
    }

    fn __repr__(&self) -> String {
        format!("<Request {} {}, {} bytes>", self.0.method(), self.0.path(), self.0.payload().len())
    }
}
