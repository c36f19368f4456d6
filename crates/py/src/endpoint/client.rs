//! Clients.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use coapace_control::Mechanism;
use coapace_net as net;
use coapace_net::{Code, Dtls, Error, Profile};
use coapace_scenario::naming::{parse_bulk, parse_mechanism};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::failure::raised;
use super::group::NativeGroup;
use super::mailbox::Mailbox;
use super::observation::NativeObservation;
use super::response::Response;
use super::value::{OptionPairs, TextOrBytes};
use super::work::{Call, Desk};
use crate::seconds::{Seconds, span};

/// The longest wait for a DTLS handshake. A server with OpenSSL does not answer a wrong key.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// A client with callbacks in place of an asyncio interface.
#[pyclass(frozen, module = "coapace._native")]
pub(crate) struct NativeClient {
    desk: Desk,
    client: Mutex<Option<net::Client>>,
    /// True if payloads are sent with Q-Block1 to servers that support it.
    q_block: bool,
}

/// A request: its URI, method and body, and how it is to be sent.
#[derive(FromPyObject)]
pub(crate) struct ClientRequest {
    method: String,
    uri: String,
    payload: TextOrBytes,
    content_format: Option<u16>,
    accept: Option<u16>,
    confirmable: bool,
    timeout: Option<Seconds>,
    options: OptionPairs,
    once: bool,
}

#[pymethods]
impl NativeClient {
    #[new]
    #[allow(clippy::too_many_arguments)] // the arguments of Python's Client
    fn new(
        cc: &str,
        bulk: Option<&str>,
        q_block: bool,
        ack_timeout: Option<Seconds>,
        max_retransmit: Option<u8>,
        nstart: Option<u16>,
        block_size: Option<usize>,
        psk: Option<(TextOrBytes, TextOrBytes)>,
        proxy: Option<&str>,
        fail_fast: bool,
    ) -> PyResult<Self> {
        let mut mechanism = mechanism(cc)?;
        if let Some(timeout) = ack_timeout {
            set_ack_timeout(&mut mechanism, timeout.0)?;
        }
        let mut profile = Profile::from(mechanism);
        // With 0 no request would ever depart.
        if nstart == Some(0) {
            return Err(PyValueError::new_err("nstart is 0, but must be at least 1"));
        }
        // `None` leaves the bound to the mechanism.
        profile.config.nstart = nstart;
        profile.config.max_retransmit = max_retransmit.unwrap_or(profile.config.max_retransmit);
        let mut builder = net::Client::builder().mechanism(profile.mechanism).config(profile.config);
        // Without a bulk mechanism, blocks are requested one after the other.
        builder = builder.bulk(bulk.map(parse_bulk).transpose().map_err(PyValueError::new_err)?);
        if let Some(bytes) = block_size {
            builder = builder.block_size(bytes);
        }
        if fail_fast {
            builder = builder.fail_fast();
        }
        if let Some((identity, key)) = psk {
            let dtls = Dtls::client(identity.into_bytes(), key.into_bytes());
            builder = builder.dtls(dtls.handshake_timeout(HANDSHAKE_TIMEOUT));
        }
        if let Some(proxy) = proxy {
            let bad = |bad| PyValueError::new_err(format!("proxy is {proxy:?}: {bad}"));
            builder = builder.proxy(proxy).map_err(bad)?;
        }
        Ok(Self { desk: Desk::new()?, client: Mutex::new(Some(builder.build())), q_block })
    }

    /// The mailbox that the event loop watches for results.
    #[getter]
    fn mailbox(&self) -> Mailbox {
        Mailbox(self.desk.post.clone())
    }

    /// Starts a request. `future` gets the response.
    fn request(&self, py: Python<'_>, future: Py<PyAny>, asked: ClientRequest) -> PyResult<Call> {
        let (call, uri) = self.call(py, asked)?;
        self.desk.start(future, uri, async move { call.await.map(Response) })
    }

    /// Starts an observation. `future` gets the observation and the first representation.
    fn observe(&self, py: Python<'_>, future: Py<PyAny>, asked: ClientRequest) -> PyResult<Call> {
        let (call, uri) = self.call(py, asked)?;
        let desk = self.desk.clone();
        self.desk.start(future, uri.clone(), async move {
            // The first representation comes with the observation, so Python gets both in one result.
            let begun = call.observe().await?;
            let first = begun.first().clone();
            Ok((NativeObservation::new(desk, uri, begun), Response(first)))
        })
    }

    /// Sends a request to a group whose members spread their answers over `leisure` seconds. `future` gets the answers.
    fn group(
        &self,
        py: Python<'_>,
        future: Py<PyAny>,
        asked: ClientRequest,
        leisure: Seconds,
    ) -> PyResult<Call> {
        let (call, uri) = self.call(py, asked)?;
        let call = call.leisure(span("leisure", leisure.0)?.into());
        let desk = self.desk.clone();
        self.desk.start(
            future,
            uri.clone(),
            async move { Ok(NativeGroup::new(desk, uri, call.group().await?)) },
        )
    }

    /// The destinations with which an exchange has ended.
    fn remotes(&self, py: Python<'_>) -> Vec<Remote> {
        py.detach(|| {
            let known = self.client().as_ref().map(net::Client::destinations).unwrap_or_default();
            known.into_iter().map(|(_, known)| Remote(known)).collect()
        })
    }

    /// Refuses further requests, and closes the sockets when all requests are done.
    fn close(&self, py: Python<'_>) {
        // The holder of a lock may wait for the interpreter, so nobody waits for a lock while holding the interpreter.
        py.detach(|| drop(self.client().take()));
    }
}

impl NativeClient {
    fn client(&self) -> std::sync::MutexGuard<'_, Option<net::Client>> {
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the call of a request, and its URI.
    fn call(&self, py: Python<'_>, asked: ClientRequest) -> PyResult<(net::Call, String)> {
        let ClientRequest {
            method,
            uri,
            payload,
            content_format,
            accept,
            confirmable,
            timeout,
            options,
            once,
        } = asked;
        // Codes from 32 on are responses and signals.
        let method: Code = method.parse().ok().filter(|code: &Code| code.0 < 32).ok_or_else(|| {
            PyValueError::new_err(format!(
                "method is {method:?}, but must be a name such as GET, or a code such as 0.01"
            ))
        })?;
        // A wrong argument is reported before anything is sent.
        let timeout = timeout.map(|timeout| span("timeout", timeout.0)).transpose()?;
        // A clone, so that the lock is not held while the request runs.
        let client = self.client().clone().ok_or_else(|| raised(py, Error::Closed, &uri))?;
        let mut call = client.request(method, &uri).payload(payload.into_bytes());
        if let Some(format) = content_format {
            call = call.content_format(format);
        }
        if let Some(format) = accept {
            call = call.accept(format);
        }
        if !confirmable {
            call = call.non_confirmable();
        }
        if !self.q_block {
            call = call.no_q_block();
        }
        if once {
            call = call.once();
        }
        if let Some(timeout) = timeout {
            call = call.timeout(timeout.into());
        }
        let call =
            options.into_iter().fold(call, |call, (number, value)| call.option(number, &value.into_bytes()));
        Ok((call, uri))
    }
}

/// Reads the name of a mechanism.
///
/// # Errors
/// Raises `ValueError` with a line that names the mistake. Mechanisms written in Python are refused, because an endpoint would
/// wait for the interpreter.
pub(crate) fn mechanism(cc: &str) -> PyResult<Mechanism> {
    match parse_mechanism(cc) {
        Ok(Mechanism::Own(_)) => {
            Err(PyValueError::new_err(format!("{cc} is written in Python, and runs in simulations only")))
        }
        parsed => parsed.map_err(PyValueError::new_err),
    }
}

/// Sets ACK_TIMEOUT, in seconds. In a mechanism that measures, it is the initial RTO.
fn set_ack_timeout(mechanism: &mut Mechanism, timeout: f64) -> PyResult<()> {
    // Mechanisms count whole microseconds, so this text is exact.
    let text = format!("{}us", span("ack_timeout", timeout)?.as_micros());
    let set = mechanism.set("ack_timeout", &text).or_else(|_| mechanism.set("initial_rto", &text));
    set.map_err(|_| {
        PyValueError::new_err(format!(
            "ack_timeout is {timeout}, which this mechanism does not use; see coapace.mechanisms()"
        ))
    })
}

/// A destination of a client's requests, and the estimates of the mechanism for it. All times are in seconds.
#[pyclass(frozen, module = "coapace")]
#[derive(Debug)]
pub(crate) struct Remote(net::Destination);

#[pymethods]
impl Remote {
    /// The address and port.
    #[getter]
    fn address(&self) -> String {
        self.0.address.to_string()
    }

    /// The RTO: the estimate that timeouts start from, before dither.
    #[getter]
    fn rto(&self) -> f64 {
        self.0.rto.as_secs_f64()
    }

    /// The smoothed round-trip time; None if the mechanism does not measure it, or has not yet.
    #[getter]
    fn srtt(&self) -> Option<f64> {
        self.0.srtt.map(|srtt| srtt.as_secs_f64())
    }

    /// The variation of the round-trip time; None if the mechanism does not measure it, or has not yet.
    #[getter]
    fn rttvar(&self) -> Option<f64> {
        self.0.rttvar.map(|rttvar| rttvar.as_secs_f64())
    }

    /// The number of exchanges that have ended.
    #[getter]
    fn exchanges(&self) -> u64 {
        self.0.exchanges
    }

    /// The number of exchanges that have ended without an answer.
    #[getter]
    fn failed(&self) -> u64 {
        self.0.failed
    }

    /// The number of retransmissions in all exchanges that have ended.
    #[getter]
    fn retransmissions(&self) -> u64 {
        self.0.retransmissions
    }

    fn __repr__(&self) -> String {
        let net::Destination { address, rto, exchanges, .. } = self.0;
        format!("<Remote {address}: RTO {} s, {exchanges} exchanges>", rto.as_secs_f64())
    }
}
