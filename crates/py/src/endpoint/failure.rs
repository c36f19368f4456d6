//! Errors as exceptions of Python, with the sentences of the command.

use std::io;

use coapace_net::{BadOption, Error, Refused, TlsError, TransferError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use super::response::Response;

/// Returns the exception that explains why a request to `uri` has no response.
pub(crate) fn raised(py: Python<'_>, error: Error, uri: &str) -> PyErr {
    use io::ErrorKind::ConnectionRefused;
    // The advice names arguments of Python, not functions of Rust.
    let text = match &error {
        Error::Uri(bad) => format!("bad URI {uri:?}: {bad}; as in coap://[::1]:5683/path"),
        Error::Transfer(TransferError::Option(bad @ BadOption::BesideProxyUri { .. })) => {
            format!("{uri}: {bad}; give proxy=URI to the client")
        }
        Error::Transfer(TransferError::Option(bad)) => format!("{uri}: {bad}"),
        Error::Session(Refused::NoKeys) => {
            format!("{uri}: DTLS needs a key; give psk=(IDENTITY, KEY) to the client")
        }
        Error::Session(Refused::TimedOut) => format!(
            "{uri}: {error}; check address, port and key: some servers do not answer a client with a wrong key"
        ),
        // bad_record_mac, decrypt_error and unknown_psk_identity (RFC 5246 §7.2, RFC 4279 §6): the keys differ.
        Error::Session(Refused::Alert(20 | 51 | 115)) => format!("{uri}: {error}; check psk"),
        Error::Tls(TlsError::NoRoots) => {
            format!("{uri}: Python clients cannot check certificates yet; use coaps with psk")
        }
        Error::Unreachable(ConnectionRefused)
        | Error::Connection(ConnectionRefused)
        | Error::Session(Refused::Unreachable(ConnectionRefused)) => {
            format!("{uri}: nobody listens there; check the port, and whether the server runs")
        }
        Error::Unreachable(kind) => format!("{uri}: {kind}; check address and network"),
        Error::Group(_) => {
            format!(
                "{uri}: a group accepts only requests that are not confirmable; ask its members with Client.group"
            )
        }
        error => format!("{uri}: {error}"),
    };
    // A wrong argument is a `ValueError`: a program that retries after errors of the network must not retry it.
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
        // The server has answered, so the exception carries its response.
        Error::NotObserved(response) => exception(py, "NotObserved", (text, Response(*response))),
        _ => exception(py, "NetworkError", text),
    }
}

/// Returns an exception of the package by its name.
fn exception(py: Python<'_>, name: &str, arguments: impl pyo3::PyErrArguments + 'static) -> PyErr {
    static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = ERRORS.get_or_try_init(py, || py.import("coapace._errors").map(Bound::unbind));
    let class = module.and_then(|module| Ok(module.bind(py).getattr(name)?.cast_into::<PyType>()?));
    // An import that fails raises its own exception, which says more.
    class.map_or_else(|error| error, |class| PyErr::from_type(class, arguments))
}
