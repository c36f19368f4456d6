//! Mechanisms written in Python.
//!
//! An endpoint keeps the state of a mechanism as bytes that it may copy. The bytes of these mechanisms are the number of a Python
//! object, which lies in a table here, and what the endpoint asks for without a call: the estimates.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use coapace_control::{
    Controller, Cue, Duration, Entry, Gauges, Limits, Marking, Mechanism, Notes, Origin, Outcome,
    OwnMechanism, Value, packed, parameters,
};
use coapace_scenario::naming;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::cue::{CueOfPython, SampleOfPython};
use crate::seconds;

parameters! {
    /// A mechanism that is a class of Python.
    pub(crate) struct Scripted {
        /// The number of the class among those that were registered.
        class: u8 = 0,
    }
    presets {}
}

packed! {
    /// The state: the number of the object that is the mechanism for one destination, and its estimates.
    pub(crate) struct ScriptedState { object: u32, rto: Duration, srtt: Option<Duration>, rttvar: Option<Duration> }
}

packed! {
    /// The number of the object that stands for an exchange.
    pub(crate) struct ScriptedExchange { object: u32 }
}

/// A class that was registered, and what it says about all its objects.
struct Class {
    name: &'static str,
    /// The callable that makes an object of it.
    make: Py<PyAny>,
    marking: Marking,
    final_wait: bool,
    max_timeout: Duration,
}

/// What Python keeps for Rust. Objects have numbers that are not used again, because runs that were interrupted may still ask.
struct Tables {
    classes: Vec<Class>,
    /// Mechanisms for one destination each, and exchanges under way, of runs.
    objects: BTreeMap<u32, Py<PyAny>>,
    /// Objects of mechanisms that are made step by step, which outlive runs.
    stepped: BTreeMap<u32, Py<PyAny>>,
    next: u32,
    /// The runs under way.
    runs: u32,
    /// The number of times that runs have begun while none was under way.
    session: u64,
    /// The first exception since the last run began.
    raised: Option<PyErr>,
}

/// A step outside of a run.
#[derive(Default)]
struct Step {
    raised: Vec<PyErr>,
    /// The numbers of the objects that it has made.
    made: Vec<u32>,
}

/// The objects that steps of a mechanism have made. They are forgotten with it.
#[derive(Debug, Default)]
pub(crate) struct Kept(Vec<u32>);

impl Drop for Kept {
    fn drop(&mut self) {
        // Destructors of Python may call back, so the tables are locked for the removal alone.
        for number in &self.0 {
            let object = tables().stepped.remove(number);
            drop(object);
        }
    }
}

static TABLES: Mutex<Tables> = Mutex::new(Tables {
    classes: Vec::new(),
    objects: BTreeMap::new(),
    stepped: BTreeMap::new(),
    next: 0,
    runs: 0,
    session: 0,
    raised: None,
});

thread_local! {
    /// The session that the runs of this thread belong to; unknown before their first step. Threads of runs that were interrupted go on
    /// for a while, and their exceptions are not those of the next session.
    static SESSION: Cell<Option<u64>> = const { Cell::new(None) };
    /// The step outside of a run that this thread is in.
    static STEP: RefCell<Option<Step>> = const { RefCell::new(None) };
}

/// The timeout that is armed after an exception, and the bound of all others if the class names none.
const FALLBACK: Duration = Duration::from_secs(60);

fn tables() -> MutexGuard<'static, Tables> {
    TABLES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the first exception that a mechanism has raised.
pub(crate) fn raised() -> PyResult<()> {
    tables().raised.take().map_or(Ok(()), Err)
}

/// Checks that no mechanism has raised an exception since the last call of [`raised`].
///
/// # Errors
/// Fails if one has. [`raised`] returns it.
pub(crate) fn check() -> std::io::Result<()> {
    if tables().raised.is_none() {
        Ok(())
    } else {
        Err(std::io::Error::other("a mechanism raised an exception"))
    }
}

/// Makes a step of a mechanism outside of a run. Returns what it returns, and the objects that it has made.
///
/// # Errors
/// Returns the first exception that the mechanism has raised in it.
pub(crate) fn attended<T>(step: impl FnOnce() -> T) -> PyResult<(T, Kept)> {
    // A class of Python may step another mechanism in its own step.
    let outer = STEP.replace(Some(Step::default()));
    let returned = step();
    let Step { raised, made } = STEP.replace(outer).unwrap_or_default();
    let kept = Kept(made);
    raised.into_iter().next().map_or(Ok((returned, kept)), Err)
}

/// Keeps an exception for the caller of the step or of the run.
fn keep(error: PyErr) {
    let of_run = STEP.with_borrow_mut(|step| match step {
        Some(step) => {
            step.raised.push(error);
            None
        }
        None => Some(error),
    });
    let Some(error) = of_run else { return };
    let mut tables = tables();
    if SESSION.get() == Some(tables.session) {
        tables.raised.get_or_insert(error);
    }
}

/// A run under way. After the last one the objects are forgotten.
pub(crate) struct Session;

impl Session {
    /// Begins a run.
    pub(crate) fn begin() -> Self {
        let mut tables = tables();
        if tables.runs == 0 {
            tables.raised = None;
            tables.session += 1;
        }
        tables.runs += 1;
        // A worker of Dask makes its runs in the thread that begins them, session after session.
        SESSION.set(Some(tables.session));
        Self
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let mut tables = tables();
        tables.runs -= 1;
        if tables.runs == 0 {
            let objects = std::mem::take(&mut tables.objects);
            // Destructors of Python may call back, so the tables are not locked any more.
            drop(tables);
            drop(objects);
        }
    }
}

/// Registers a class under a name. A class that was registered under this name before is replaced.
#[pyfunction]
pub(crate) fn register(name: &str, class: &Bound<'_, PyAny>, summary: &str) -> PyResult<()> {
    for method in ["on_start", "on_retransmit", "on_end"] {
        if !class.hasattr(method)? {
            return Err(PyTypeError::new_err(format!("a mechanism has a method {method}")));
        }
    }
    let marking: String = class.getattr("marking")?.extract()?;
    let marking = Marking::parse(&marking).ok_or_else(|| {
        PyValueError::new_err(format!("marking is {marking:?}, but must be {}", Marking::KIND))
    })?;
    let final_wait = class.getattr("final_wait")?.extract()?;
    let max_timeout = seconds::span("max_timeout", class.getattr("max_timeout")?.extract()?)?;
    let mut tables = tables();
    let described = |name| Class { name, make: class.clone().unbind(), marking, final_wait, max_timeout };
    if let Some(known) = tables.classes.iter_mut().find(|known| known.name == name) {
        *known = described(known.name);
        return Ok(());
    }
    let number = u8::try_from(tables.classes.len())
        .map_err(|_| PyValueError::new_err("256 mechanisms are registered; there is no room for more"))?;
    let (name, summary): (&'static str, &'static str) = (Box::leak(name.into()), Box::leak(summary.into()));
    let mut mechanism = Mechanism::own::<Scripted>();
    let set = mechanism.set("class", &number.to_string());
    set.map_err(|error| PyValueError::new_err(format!("{error:?}")))?;
    let notes = <Scripted as OwnMechanism>::NOTES;
    let entry = Entry { name, summary, source: Scripted::SOURCE, origin: Origin::Own, notes, mechanism };
    naming::add(Box::leak(Box::new([entry]))).map_err(PyValueError::new_err)?;
    tables.classes.push(described(name));
    Ok(())
}

impl Scripted {
    /// Returns what the class says about all its objects.
    fn of_class<T>(self, of: impl Fn(&Class) -> T) -> Option<T> {
        tables().classes.get(usize::from(self.class)).map(of)
    }

    /// Calls Python. An exception is kept for the caller of the run, who ends it.
    fn call(call: impl for<'py> FnOnce(Python<'py>) -> PyResult<()>) {
        if SESSION.get().is_none() {
            SESSION.set(Some(tables().session));
        }
        Python::attach(|py| {
            if let Err(error) = call(py) {
                keep(error);
            }
        });
    }

    /// Returns a timeout of Python, within the bound of the class.
    fn timeout(self, timeout: f64) -> PyResult<Duration> {
        let longest = self.of_class(|class| class.max_timeout).unwrap_or(FALLBACK);
        Ok(seconds::span("the timeout", timeout)?.clamp(Duration::from_micros(1), longest))
    }
}

/// Keeps an object: until the last run ends, or for the mechanism that is stepped. Returns its number.
fn number(object: Py<PyAny>) -> u32 {
    let mut tables = tables();
    let number = tables.next;
    tables.next = number.wrapping_add(1);
    let is_stepped = STEP.with_borrow_mut(|step| step.as_mut().map(|step| step.made.push(number)).is_some());
    let objects = if is_stepped { &mut tables.stepped } else { &mut tables.objects };
    objects.insert(number, object);
    number
}

/// Returns an object by its number; `None` if its run was interrupted.
fn kept(py: Python<'_>, number: u32) -> Option<Bound<'_, PyAny>> {
    let tables = tables();
    tables.objects.get(&number).or_else(|| tables.stepped.get(&number)).map(|object| object.bind(py).clone())
}

/// Forgets an object. Returns it if it was there.
fn forget(number: u32) -> Option<Py<PyAny>> {
    let mut tables = tables();
    tables.objects.remove(&number).or_else(|| tables.stepped.remove(&number))
}

/// Reads the estimates of a destination.
fn note_gauges(state: &mut ScriptedState, object: &Bound<'_, PyAny>) -> PyResult<()> {
    let estimate = |name: &str| -> PyResult<Option<Duration>> {
        let value: Option<f64> = object.getattr(name)?.extract()?;
        value.map(|value| seconds::span(name, value)).transpose()
    };
    state.rto = estimate("rto")?.unwrap_or(FALLBACK);
    state.srtt = estimate("srtt")?;
    state.rttvar = estimate("rttvar")?;
    Ok(())
}

impl Controller for Scripted {
    type State = ScriptedState;
    type Exchange = ScriptedExchange;

    fn state(&self) -> ScriptedState {
        let mut state = ScriptedState { object: u32::MAX, rto: FALLBACK, srtt: None, rttvar: None };
        Self::call(|py| {
            let Some(make) = self.of_class(|class| class.make.clone_ref(py)) else { return Ok(()) };
            let object = make.bind(py).call0()?;
            note_gauges(&mut state, &object)?;
            state.object = number(object.unbind());
            Ok(())
        });
        state
    }

    fn on_start(&self, state: &mut ScriptedState, cue: Cue) -> (ScriptedExchange, Duration) {
        let mut started = (ScriptedExchange { object: u32::MAX }, FALLBACK);
        Self::call(|py| {
            let Some(object) = kept(py, state.object) else { return Ok(()) };
            let returned = object.call_method1("on_start", (CueOfPython(cue),))?;
            let (exchange, timeout): (Py<PyAny>, f64) = returned.extract().map_err(|_| {
                PyTypeError::new_err("on_start returns the exchange, any object, and the timeout in seconds")
            })?;
            note_gauges(state, &object)?;
            let timeout = self.timeout(timeout)?;
            started = (ScriptedExchange { object: number(exchange) }, timeout);
            Ok(())
        });
        started
    }

    fn on_retransmit(
        &self,
        state: &mut ScriptedState,
        exchange: &mut ScriptedExchange,
        cue: Cue,
    ) -> Duration {
        let mut next = FALLBACK;
        Self::call(|py| {
            let Some(object) = kept(py, state.object) else { return Ok(()) };
            let exchange = kept(py, exchange.object);
            let timeout = object.call_method1("on_retransmit", (exchange, CueOfPython(cue)))?.extract()?;
            note_gauges(state, &object)?;
            next = self.timeout(timeout)?;
            Ok(())
        });
        next
    }

    fn on_end(&self, state: &mut ScriptedState, exchange: ScriptedExchange, outcome: Outcome, cue: Cue) {
        Self::call(|py| {
            let Some(object) = kept(py, state.object) else { return Ok(()) };
            let exchange = forget(exchange.object);
            let (name, sample) = match outcome {
                Outcome::Acked(sample) => ("acked", Some(SampleOfPython(sample))),
                Outcome::Reset => ("reset", None),
                Outcome::Cancelled => ("cancelled", None),
                Outcome::GivenUp => ("given_up", None),
            };
            object.call_method1("on_end", (exchange, name, sample, CueOfPython(cue)))?;
            note_gauges(state, &object)
        });
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        self.of_class(|class| class.max_timeout).unwrap_or(FALLBACK).times(retransmits.into())
    }

    fn limits(&self, state: &ScriptedState) -> Limits {
        let (marking, final_wait) =
            self.of_class(|class| (class.marking, class.final_wait)).unwrap_or((Marking::None, true));
        Limits { final_wait, ..Limits::with_gauges(self.gauges(state), marking) }
    }

    fn gauges(&self, state: &ScriptedState) -> Gauges {
        Gauges { rto: state.rto, srtt: state.srtt, rttvar: state.rttvar, rate_per_ks: None }
    }
}

impl OwnMechanism for Scripted {
    const NAME: &'static str = "python";
    const SUMMARY: &'static str = "a mechanism written in Python";
    const SOURCE: &'static str = "a class of Python";
    const NOTES: Notes = Notes {
        status: "A class of the running program.",
        use_when: "Trying out an idea.",
        avoid_when: "Speed matters: each step is a call of Python.",
        hazards: "Unknown.",
    };
}
