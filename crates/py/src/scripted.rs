//! Mechanisms written in Python.
//!
//! An endpoint keeps the state of a mechanism as bytes that it may copy. Here the bytes hold the number of a Python object,
//! which is in a table of this module, and the estimates, which the endpoint reads without a call.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use coapace_control::{
    Controller, Cue, Duration, Entry, Gauges, Limits, Marking, Mechanism, Notes, Origin, Outcome,
    OwnMechanism, Value, packed, parameters,
};
use coapace_run::contender::Contender;
use coapace_scenario::naming;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::cue::{CueOfPython, SampleOfPython};
use crate::seconds;

parameters! {
    /// A mechanism that is a Python class.
    pub(crate) struct Scripted {
        /// The number of the class among the registered classes.
        class: u8 = 0,
    }
    presets {}
}

packed! {
    /// The state: the number of the object that is the mechanism for one destination, and its estimates.
    pub(crate) struct ScriptedState { object: u32, rto: Duration, srtt: Option<Duration>, rttvar: Option<Duration> }
}

packed! {
    /// The number of the object of an exchange.
    pub(crate) struct ScriptedExchange { object: u32 }
}

/// A registered class, and its settings for all its objects.
struct Class {
    name: &'static str,
    /// The callable that makes an object of the class.
    make: Py<PyAny>,
    marking: Marking,
    final_wait: bool,
    max_timeout: Duration,
}

/// The Python objects that Rust refers to by number. No number is used again, because interrupted runs may still look it up.
struct Tables {
    classes: Vec<Class>,
    /// Objects of runs: mechanisms for one destination each, and their exchanges.
    objects: BTreeMap<u32, Py<PyAny>>,
    /// Objects of mechanisms that are called step by step. They outlive runs.
    stepped: BTreeMap<u32, Py<PyAny>>,
    next: u32,
    /// The number of running runs.
    runs: u32,
    /// The number of times that a run began while no other was running.
    session: u64,
    /// The first exception since the last run began.
    raised: Option<PyErr>,
}

/// A step of a mechanism outside of runs: one call from Python, such as `start` or `acknowledge`.
#[derive(Default)]
struct OutsideStep {
    raised: Vec<PyErr>,
    /// The numbers of the objects that this step has made.
    made: Vec<u32>,
    /// The object of the mechanism, in place of a new object of its class.
    given: Option<Py<PyAny>>,
}

/// The Python objects that steps of a mechanism have made. They are forgotten when this value is dropped.
#[derive(Debug, Default)]
pub(crate) struct ScriptObjects(Vec<u32>);

impl ScriptObjects {
    /// Returns the first of the objects: the mechanism itself. `None` if the mechanism is not written in Python.
    pub(crate) fn first(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let number = self.0.first()?;
        tables().stepped.get(number).map(|object| object.clone_ref(py))
    }
}

impl Drop for ScriptObjects {
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
    /// The session that the runs of this thread belong to; unknown before their first step. Threads of interrupted runs
    /// continue for a while, and the next session ignores their exceptions.
    static SESSION: Cell<Option<u64>> = const { Cell::new(None) };
    /// The step outside of runs that this thread executes.
    static STEP: RefCell<Option<OutsideStep>> = const { RefCell::new(None) };
}

/// The timeout after an exception, the RTO if the object has none, and the longest timeout if the class is not known.
const FALLBACK: Duration = Duration::from_secs(60);

impl Tables {
    /// Returns whether no run is running, or one has raised an exception and will be ended.
    fn is_over(&self) -> bool {
        self.runs == 0 || self.raised.is_some()
    }
}

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
/// An error if one has. [`raised`] returns the exception.
pub(crate) fn check() -> std::io::Result<()> {
    if tables().raised.is_none() {
        Ok(())
    } else {
        Err(std::io::Error::other("a mechanism raised an exception"))
    }
}

/// Makes a step of a mechanism outside of runs. Returns its result, and the objects that it has made.
///
/// # Errors
/// Returns the first exception that the mechanism has raised in the step.
pub(crate) fn attended<T>(step: impl FnOnce() -> T) -> PyResult<(T, ScriptObjects)> {
    attended_with(None, step)
}

/// Makes a step of a mechanism like [`attended`]. If the step makes a new state, the state gets the object `given`, if any.
///
/// # Errors
/// Returns the errors of [`attended`].
pub(crate) fn attended_with<T>(
    given: Option<Py<PyAny>>,
    step: impl FnOnce() -> T,
) -> PyResult<(T, ScriptObjects)> {
    // A class of Python may step another mechanism in its own step.
    let outer = STEP.replace(Some(OutsideStep { given, ..OutsideStep::default() }));
    let returned = step();
    let OutsideStep { raised, made, .. } = STEP.replace(outer).unwrap_or_default();
    let kept = ScriptObjects(made);
    // Later exceptions of a step usually follow from the first.
    raised.into_iter().next().map_or(Ok((returned, kept)), Err)
}

/// Stores an exception for the caller of the step or of the run.
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

/// A running run. When the last run ends, all objects of runs are forgotten.
pub(crate) struct RunSession;

impl RunSession {
    /// Begins a run.
    pub(crate) fn begin() -> Self {
        let mut tables = tables();
        if tables.runs == 0 {
            // An exception that nobody has fetched belongs to runs that are over.
            tables.raised = None;
            tables.session += 1;
        }
        tables.runs += 1;
        // A worker of Dask makes its runs in the thread that begins them, session after session.
        SESSION.set(Some(tables.session));
        Self
    }
}

impl Drop for RunSession {
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
    // A missing method is reported here and not in the middle of a run.
    for method in ["on_start", "on_retransmit", "on_end"] {
        if !class.hasattr(method)? {
            return Err(PyTypeError::new_err(format!("a mechanism must have the method {method}")));
        }
    }
    let marking: String = class.getattr("marking")?.extract()?;
    let marking = Marking::parse(&marking).ok_or_else(|| {
        PyValueError::new_err(format!("marking is {marking:?}, but must be {}", Marking::KIND))
    })?;
    let final_wait = class.getattr("final_wait")?.extract()?;
    let max_timeout = seconds::span("max_timeout", class.getattr("max_timeout")?.extract()?)?;
    if max_timeout == Duration::ZERO {
        return Err(PyValueError::new_err("max_timeout must be at least 1 µs"));
    }
    let mut tables = tables();
    let described = |name| Class { name, make: class.clone().unbind(), marking, final_wait, max_timeout };
    // The class keeps its number, so mechanisms that name it use the new one.
    if let Some(known) = tables.classes.iter_mut().find(|known| known.name == name) {
        let former = std::mem::replace(known, described(known.name));
        // The end of a class may run code of Python, which may call back here.
        drop(tables);
        drop(former);
        return Ok(());
    }
    // `Scripted::class` is a u8.
    let number = u8::try_from(tables.classes.len())
        .map_err(|_| PyValueError::new_err("256 mechanisms are registered, the most that fit"))?;
    // The registry keeps its texts as long as the process lives, so they are never freed.
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

/// Registers the class of a pickled mechanism, unless its name is known.
pub(crate) fn register_again(name: &str, class: &Bound<'_, PyAny>) -> PyResult<()> {
    let is_known = tables().classes.iter().any(|known| known.name == name);
    if is_known { Ok(()) } else { register(name, class, "A class of Python.") }
}

/// Returns whether a mechanism is a Python class.
pub(crate) fn is_of_python(mechanism: &Mechanism) -> bool {
    // This package has no other own mechanism.
    matches!(mechanism, Mechanism::Own(_))
}

/// Returns whether a text names a mechanism, or a mix, with a Python class.
#[pyfunction]
pub(crate) fn is_scripted(label: &str) -> bool {
    let contender = Contender::parse(label);
    contender.is_ok_and(|it| it.parts().iter().any(|part| is_of_python(&part.mechanism)))
}

impl Scripted {
    /// Returns a setting of the class; `None` if the class is not known.
    fn of_class<T>(self, of: impl Fn(&Class) -> T) -> Option<T> {
        tables().classes.get(usize::from(self.class)).map(of)
    }

    /// Calls Python. Stores an exception for the caller of the run, who ends the run.
    fn call(call: impl for<'py> FnOnce(Python<'py>) -> PyResult<()>) {
        // Threads of runs are started elsewhere, so their first step finds out their session.
        if SESSION.get().is_none() {
            SESSION.set(Some(tables().session));
        }
        Python::attach(|py| {
            if let Err(error) = call(py) {
                keep(error);
            }
            if STEP.with_borrow(Option::is_none) && tables().is_over() {
                // An interrupted run goes on without calls, so other threads get the interpreter here.
                py.detach(|| ());
            }
        });
    }

    /// Returns the timeout that Python returned, limited to the class's longest.
    fn timeout(self, returned: &Bound<'_, PyAny>) -> PyResult<Duration> {
        let timeout = returned.extract().map_err(|_| PyTypeError::new_err(TIMEOUT))?;
        let longest = self.of_class(|class| class.max_timeout).unwrap_or(FALLBACK);
        // A timeout of 0 would be due at once, again and again.
        Ok(seconds::span("the timeout", timeout)?.clamp(Duration::from_micros(1), longest))
    }
}

/// The error of a method that does not return a timeout.
const TIMEOUT: &str = "on_start must return the exchange, any object, and the timeout in seconds; on_retransmit must return the timeout in seconds";

/// Stores an object: until the last run ends, or for the mechanism that is stepped. Returns its number.
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

/// Reads the estimates of a destination's object.
fn note_gauges(state: &mut ScriptedState, object: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = object.py();
    let estimate = |name: &Bound<'_, PyString>| -> PyResult<Option<Duration>> {
        let value = object.getattr(name)?;
        if value.is_none() {
            return Ok(None);
        }
        let refused = || PyTypeError::new_err(format!("{name} must be a number of seconds or None"));
        let value = value.extract().map_err(|_| refused())?;
        seconds::span(name.to_str()?, value).map(Some)
    };
    state.rto = estimate(intern!(py, "rto"))?.unwrap_or(FALLBACK);
    state.srtt = estimate(intern!(py, "srtt"))?;
    state.rttvar = estimate(intern!(py, "rttvar"))?;
    Ok(())
}

impl Controller for Scripted {
    type State = ScriptedState;
    type Exchange = ScriptedExchange;

    fn state(&self) -> ScriptedState {
        // No object has this number, so the state of a class that raises an exception makes no further calls.
        let mut state = ScriptedState { object: u32::MAX, rto: FALLBACK, srtt: None, rttvar: None };
        Self::call(|py| {
            let Some(make) = self.of_class(|class| class.make.clone_ref(py)) else { return Ok(()) };
            let given = STEP.with_borrow_mut(|step| step.as_mut().and_then(|step| step.given.take()));
            let object = given.map_or_else(|| make.bind(py).call0(), |given| Ok(given.into_bound(py)))?;
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
            let returned = object.call_method1(intern!(py, "on_start"), (CueOfPython(cue),))?;
            let refused = |_| PyTypeError::new_err(TIMEOUT);
            let (exchange, timeout): (Py<PyAny>, Bound<'_, PyAny>) = returned.extract().map_err(refused)?;
            note_gauges(state, &object)?;
            let timeout = self.timeout(&timeout)?;
            // Stored last, so that a wrong timeout leaves no object behind.
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
            let timeout = object.call_method1(intern!(py, "on_retransmit"), (exchange, CueOfPython(cue)))?;
            note_gauges(state, &object)?;
            next = self.timeout(&timeout)?;
            Ok(())
        });
        next
    }

    fn on_end(&self, state: &mut ScriptedState, exchange: ScriptedExchange, outcome: Outcome, cue: Cue) {
        Self::call(|py| {
            let Some(object) = kept(py, state.object) else { return Ok(()) };
            // The method gets the object for the last time.
            let exchange = forget(exchange.object);
            let (name, sample) = match outcome {
                Outcome::Acked(sample) => (intern!(py, "acked"), Some(SampleOfPython(sample))),
                Outcome::Reset => (intern!(py, "reset"), None),
                Outcome::Cancelled => (intern!(py, "cancelled"), None),
                Outcome::GivenUp => (intern!(py, "given_up"), None),
            };
            object.call_method1(intern!(py, "on_end"), (exchange, name, sample, CueOfPython(cue)))?;
            note_gauges(state, &object)
        });
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        // Each timeout is at most the longest of the class.
        self.of_class(|class| class.max_timeout).unwrap_or(FALLBACK).times(retransmits.into())
    }

    fn limits(&self, state: &ScriptedState) -> Limits {
        let (marking, final_wait) =
            // A state of an unknown class makes no calls, so these values only have to be valid.
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
