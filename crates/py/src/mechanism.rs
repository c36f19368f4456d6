//! Mechanisms, step by step.

use std::hash::{DefaultHasher, Hash, Hasher};

use coapace_control as control;
use coapace_control::{Answer, Controller, Cue, Instant, Marking, Outcome, Sample, State};
use coapace_dataset::VERSION;
use coapace_lab::replay::replay;
use coapace_scenario::naming;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::failing::checked;
use crate::scripted::{ScriptObjects, attended, attended_with, register_again};
use crate::seconds::{Seconds, draw, moment, seconds};

/// A mechanism and its state for one destination.
///
/// Its calls are the calls of an endpoint: `start` at the first transmission of an exchange, `retransmit` at each further
/// one, and one of `acknowledge`, `reset`, `give_up` and `cancel` at the end. All times are in seconds.
#[pyclass(module = "coapace")]
#[derive(Debug)]
pub(crate) struct Mechanism {
    label: String,
    rules: control::Mechanism,
    state: State,
    outstanding: u16,
    /// The Python object of the mechanism; empty if the mechanism is not written in Python.
    object: ScriptObjects,
}

/// A running exchange.
#[pyclass(module = "coapace")]
#[derive(Debug)]
pub(crate) struct Exchange {
    /// The exchange's state; `None` once the exchange is over.
    open: Option<control::Exchange>,
    departures: Vec<Instant>,
    /// The Python object of the exchange; empty if the mechanism is not written in Python.
    _object: ScriptObjects,
    /// The timeout that is armed, in seconds.
    #[pyo3(get)]
    timeout: f64,
}

/// The maximum number of transmissions of an exchange.
const TRANSMISSIONS: usize = 256;

#[pymethods]
impl Exchange {
    /// The number of retransmissions so far.
    #[getter]
    fn retransmits(&self) -> usize {
        self.departures.len() - 1
    }

    /// Whether the exchange is under way.
    #[getter]
    fn is_open(&self) -> bool {
        self.open.is_some()
    }

    fn __repr__(&self) -> String {
        let (timeout, retransmits) = (self.timeout, self.retransmits());
        format!("<Exchange: timeout {timeout} s, retransmits {retransmits}>")
    }
}

#[pymethods]
impl Mechanism {
    /// Reads `NAME` or `NAME:parameter=value,…`.
    #[new]
    fn new(text: String) -> PyResult<Self> {
        Self::with(text, None)
    }

    /// Starts an exchange, as its first transmission departs.
    #[pyo3(signature = (now, draw=0.0))]
    fn start(&mut self, now: Seconds, draw: f64) -> PyResult<Exchange> {
        let outstanding = self
            .outstanding
            .checked_add(1)
            .ok_or_else(|| PyValueError::new_err("too many exchanges are open"))?;
        let cue = cue(now, draw, outstanding)?;
        let ((exchange, timeout), object) = attended(|| self.rules.on_start(&mut self.state, cue))?;
        // Only after the step: an exception leaves the count as it was.
        self.outstanding = outstanding;
        Ok(Exchange {
            open: Some(exchange),
            departures: vec![cue.now],
            _object: object,
            timeout: seconds(timeout),
        })
    }

    /// Backs off, as the timeout has passed and a retransmission departs. Returns the next timeout.
    #[pyo3(signature = (exchange, now, draw=0.0))]
    fn retransmit(&mut self, exchange: &mut Exchange, now: Seconds, draw: f64) -> PyResult<f64> {
        let cue = cue(now, draw, self.outstanding)?;
        // The ordinal of a transmission is a u8.
        if exchange.departures.len() >= TRANSMISSIONS {
            return Err(PyValueError::new_err("an exchange has at most 255 retransmissions"));
        }
        let Some(open) = &mut exchange.open else { return Err(over()) };
        let (timeout, _) = attended(|| self.rules.on_retransmit(&mut self.state, open, cue))?;
        exchange.timeout = seconds(timeout);
        exchange.departures.push(cue.now);
        Ok(exchange.timeout)
    }

    /// Ends an exchange with an acknowledgement. `answered` is the number of the transmission that was answered, 0 for
    /// the first, or None. A mechanism learns this number only if it asks for a marking, because unmarked messages do
    /// not show it.
    #[pyo3(signature = (exchange, now, answered=None, draw=0.0))]
    fn acknowledge(
        &mut self,
        exchange: &mut Exchange,
        now: Seconds,
        answered: Option<u8>,
        draw: f64,
    ) -> PyResult<()> {
        let at = moment("now", now.0)?;
        let departure = |ordinal: u8| exchange.departures.get(usize::from(ordinal)).copied();
        let answer = match answered {
            None => None,
            Some(ordinal) => Some(Answer {
                ordinal,
                since: at.since(departure(ordinal).ok_or_else(|| {
                    PyValueError::new_err(format!(
                        "answered is {ordinal}, but there was no such transmission"
                    ))
                })?),
            }),
        };
        // `start` notes the first departure, so there is always one.
        let (Some(first), Some(last)) = (exchange.departures.first(), exchange.departures.last()) else {
            return Err(over());
        };
        // TRANSMISSIONS keeps this below 256.
        let retransmits = exchange.retransmits() as u8;
        // Without a marking the wire does not say which copy was answered, so the mechanism must not learn it.
        let answered = answer.filter(|_| self.rules.limits(&self.state).marking != Marking::None);
        let sample =
            Sample { since_first: at.since(*first), since_last: at.since(*last), retransmits, answered };
        self.end(exchange, cue(now, draw, self.outstanding)?, Outcome::Acked(sample))
    }

    /// Ends an exchange with a Reset.
    fn reset(&mut self, exchange: &mut Exchange, now: Seconds) -> PyResult<()> {
        self.end(exchange, cue(now, 0.0, self.outstanding)?, Outcome::Reset)
    }

    /// Ends an exchange after its last timeout.
    fn give_up(&mut self, exchange: &mut Exchange, now: Seconds) -> PyResult<()> {
        self.end(exchange, cue(now, 0.0, self.outstanding)?, Outcome::GivenUp)
    }

    /// Ends an exchange that the application has lost interest in.
    fn cancel(&mut self, exchange: &mut Exchange, now: Seconds) -> PyResult<()> {
        self.end(exchange, cue(now, 0.0, self.outstanding)?, Outcome::Cancelled)
    }

    /// The RTO: the estimate that timeouts start from, before dither, in seconds.
    #[getter]
    fn rto(&self) -> f64 {
        seconds(self.rules.gauges(&self.state).rto)
    }

    /// The smoothed round-trip time in seconds; None before the first sample.
    #[getter]
    fn srtt(&self) -> Option<f64> {
        self.rules.gauges(&self.state).srtt.map(seconds)
    }

    /// The variation of the round-trip time in seconds; None before the first sample.
    #[getter]
    fn rttvar(&self) -> Option<f64> {
        self.rules.gauges(&self.state).rttvar.map(seconds)
    }

    /// The time from `now` until the next confirmable message may depart, in seconds; 0 without pacing.
    fn pause(&self, now: Seconds) -> PyResult<f64> {
        Ok(seconds(self.rules.limits(&self.state).next_confirmable.since(moment("now", now.0)?)))
    }

    /// The maximum number of exchanges under way, if the mechanism sets its own; None for NSTART, which is 1 by default
    /// (RFC 7252 §4.7).
    #[getter]
    fn nstart(&self) -> Option<u16> {
        self.rules.limits(&self.state).nstart
    }

    /// How a transmission carries its ordinal: none, token, token-on-retransmit, option or fresh-message-id.
    #[getter]
    fn marking(&self) -> String {
        self.rules.limits(&self.state).marking.to_string()
    }

    /// The value of every parameter.
    #[getter]
    fn parameters(&self) -> std::collections::BTreeMap<&'static str, String> {
        let parameters = self.rules.parameters().iter();
        parameters
            .filter_map(|parameter| Some((parameter.name, self.rules.get(parameter.name)?.to_string())))
            .collect()
    }

    /// Returns the longest time from the first transmission to the last of `retransmits` retransmissions, in seconds.
    fn max_span(&self, retransmits: u8) -> f64 {
        seconds(self.rules.max_span(retransmits))
    }

    /// Mechanisms are equal if they have equal parameters and have learned the same.
    fn __eq__(&self, py: Python<'_>, other: &Self) -> PyResult<bool> {
        if (&self.rules, self.outstanding) != (&other.rules, other.outstanding) {
            return Ok(false);
        }
        match (self.object.first(py), other.object.first(py)) {
            (Some(one), Some(other)) => one.bind(py).eq(other),
            // A `State` cannot be compared, and its Debug text has every field.
            _ => Ok(format!("{:?}", self.state) == format!("{:?}", other.state)),
        }
    }

    /// The hash is of the parameters, and does not change as the mechanism learns.
    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        format!("{:?}", self.rules).hash(&mut hasher);
        hasher.finish()
    }

    /// Returns a mechanism that has learned the same, and learns on its own.
    fn __copy__(&self, py: Python<'_>) -> PyResult<Self> {
        self.copied(py, |object| py.import("copy")?.call_method1("copy", (object,)))
    }

    fn __deepcopy__(&self, py: Python<'_>, memo: &Bound<'_, PyAny>) -> PyResult<Self> {
        self.copied(py, |object| py.import("copy")?.call_method1("deepcopy", (object, memo)))
    }

    /// Pickled as the text that named it, and the object of a mechanism that is a class of Python.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, PickledMechanism)> {
        // What a built-in mechanism has learned is in its `State`, which no pickle takes.
        let object = self.object.first(py);
        let fresh = attended(|| self.rules.state())?.0;
        if object.is_none() && (self.outstanding > 0 || format!("{:?}", self.state) != format!("{fresh:?}")) {
            let label = &self.label;
            return Err(PyTypeError::new_err(format!(
                "the state of {label} cannot be pickled: pickle Mechanism({label:?}) before its first step, or use copy.copy"
            )));
        }
        let restore = py.import("coapace._native")?.getattr("restore_mechanism")?;
        Ok((restore, (VERSION, self.label.clone(), object, self.outstanding)))
    }

    /// The text that names the mechanism, as `run` accepts it.
    fn __str__(&self) -> &str {
        &self.label
    }

    fn __repr__(&self) -> String {
        format!("Mechanism({:?})", self.label)
    }
}

/// The content of a pickled mechanism: the version, the text that named it, the object of a class of Python, and the number of
/// exchanges under way.
type PickledMechanism = (&'static str, String, Option<Py<PyAny>>, u16);

/// Restores a pickled mechanism. If its Python class has no name in this process, it gets its earlier name.
#[pyfunction]
#[pyo3(signature = (version, text, object, outstanding))]
pub(crate) fn restore_mechanism(
    py: Python<'_>,
    version: &str,
    text: String,
    object: Option<Py<PyAny>>,
    outstanding: u16,
) -> PyResult<Mechanism> {
    checked(version)?;
    if let Some(object) = &object {
        register_again(&text, &object.bind(py).get_type())?;
    }
    let mut mechanism = Mechanism::with(text, object)?;
    mechanism.outstanding = outstanding;
    Ok(mechanism)
}

impl Mechanism {
    /// Reads the text that names a mechanism. `object` is used in place of a new object of its class of Python.
    fn with(text: String, object: Option<Py<PyAny>>) -> PyResult<Self> {
        let rules =
            naming::mechanisms().parse(&text).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let (state, object) = attended_with(object, || rules.state())?;
        Ok(Self { label: text, rules, state, outstanding: 0, object })
    }

    fn copied<'py>(
        &self,
        py: Python<'py>,
        copy: impl FnOnce(Py<PyAny>) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let mut copied = match self.object.first(py) {
            Some(object) => Self::with(self.label.clone(), Some(copy(object)?.unbind()))?,
            None => Self { state: self.state, rules: self.rules, ..Self::with(self.label.clone(), None)? },
        };
        copied.outstanding = self.outstanding;
        Ok(copied)
    }

    fn end(&mut self, exchange: &mut Exchange, cue: Cue, outcome: Outcome) -> PyResult<()> {
        // The exchange is over even if the mechanism raises an exception now.
        let open = exchange.open.take().ok_or_else(over)?;
        // A caller may pass an exchange of another mechanism.
        self.outstanding = self.outstanding.saturating_sub(1);
        let ((), _) = attended(|| self.rules.on_end(&mut self.state, open, outcome, cue))?;
        Ok(())
    }
}

fn cue(now: Seconds, fraction: f64, outstanding: u16) -> PyResult<Cue> {
    Ok(Cue { now: moment("now", now.0)?, draw: draw(fraction)?, outstanding })
}

fn over() -> PyErr {
    PyValueError::new_err("the exchange is over")
}

/// Returns every mechanism with a sentence about it.
#[pyfunction]
pub(crate) fn mechanisms() -> Vec<(&'static str, &'static str)> {
    naming::mechanisms().entries().map(|entry| (entry.name, entry.summary)).collect()
}

/// Replays a script, which is CSV, through a mechanism, as `coapace trace` does, and returns CSV.
#[pyfunction]
pub(crate) fn trace(py: Python<'_>, mechanism: &str, script: &str) -> PyResult<String> {
    let mechanism =
        naming::mechanisms().parse(mechanism).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let mut out = Vec::new();
    let (replayed, _) = attended(|| py.detach(|| replay(&mechanism, script.as_bytes(), &mut out)))?;
    replayed.map_err(|failed| PyValueError::new_err(failed.to_string()))?;
    String::from_utf8(out).map_err(|error| PyValueError::new_err(error.to_string()))
}
