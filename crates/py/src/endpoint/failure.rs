//! Errors as exceptions of Python, with the sentences of the command.

use std::io;

use coapace_net::{BadOption, Error, Refused, TlsError, TransferError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use super::response::Response;

/// Returns the exception that says why a request to `uri` has no response.
pub(crate) fn raised(py: Python<'_>, error: Error, uri: &str) -> PyErr {
    use io::ErrorKind::ConnectionRefused;
    let text = match &error {
        Error::Uri(bad) => format!("bad URI {uri:?}: {bad}; as in coap://[::1]:5683/path"),
        Error::Transfer(TransferError::Option(bad @ BadOption::BesideProxyUri { .. })) => {
            format!("{uri}: {bad}; give proxy=URI to the client")
        }
        Error::Transfer(TransferError::Option(bad)) => format!("{uri}: {bad}"),
        Error::Session(Refused::NoKeys) => {
            format!("{uri}: DTLS takes keys; give psk=(IDENTITY, KEY) to the client")
        }
        Error::Session(Refused::TimedOut) => format!(
            "{uri}: {error}; check address and port, and the key, for some servers keep silent about a wrong one"
        ),
        Error::Session(Refused::Alert(20 | 51 | 115)) => format!("{uri}: {error}; check psk"),
        Error::Tls(TlsError::NoRoots) => {
            format!("{uri}: certificates are not for Python yet; use coaps with psk")
        }
        Error::Unreachable(ConnectionRefused)
        | Error::Connection(ConnectionRefused)
        | Error::Session(Refused::Unreachable(ConnectionRefused)) => {
            format!("{uri}: nobody listens there; check the port, and whether the server runs")
        }
        Error::Unreachable(kind) => format!("{uri}: {kind}; check address and network"),
        Error::Group(_) => {
            format!(
                "{uri}: a group takes requests that are not confirmable; ask its members with Client.group"
            )
        }
        error => format!("{uri}: {error}"),
    };
    match error {
        Error::Uri(_)
        | Error::Scheme(_)
        | Error::Group(_)
        | Error::Zone(_)
        | Error::TooLarge { .. }
        | Error::Transfer(TransferError::Option(_))
        | Error::Session(Refused::NoKeys)
        | Error::Tls(TlsError::NoRoots) => PyValueError::new_err(text),
        Error::GivenUp { .. } | Error::TimedOut | Error::Session(Refused::TimedOut) => {
            exception(py, "Timeout", text)
        }
        Error::Reset => exception(py, "Reset", text),
        Error::NotObserved(response) => exception(py, "NotObserved", (text, Response(*response))),
        _ => exception(py, "NetworkError", text),
    }
}

/// Returns an exception of the package by its name.
fn exception(py: Python<'_>, name: &str, arguments: impl pyo3::PyErrArguments + 'static) -> PyErr {
    static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = ERRORS.get_or_try_init(py, || py.import("coapace._errors").map(Bound::unbind));
    let class = module.and_then(|module| Ok(module.bind(py).getattr(name)?.cast_into::<PyType>()?));
    class.map_or_else(|error| error, |class| PyErr::from_type(class, arguments))
}
