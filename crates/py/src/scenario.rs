//! Scenarios.

use std::collections::BTreeMap;
use std::sync::Arc;

use coapace_scenario as scenario;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};

/// The name in messages of a scenario that was given as text.
const TEXT: &str = "the text";

/// A network and a workload, read and checked. It never changes: `set` returns another scenario.
#[pyclass(frozen, module = "coapace", eq, from_py_object)]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scenario {
    /// The name, the path, or the text that it was read from.
    source: String,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) read: Arc<scenario::Scenario>,
}

impl Scenario {
    fn new(source: String, settings: Vec<(String, String)>) -> PyResult<Self> {
        // A name or a path is one line.
        let read = if source.contains('\n') {
            scenario::Scenario::parse("text", TEXT, &source, &settings)
        } else {
            scenario::Scenario::load(&source, &settings)
        };
        match read {
            Ok(read) => Ok(Self { source, settings, read: Arc::new(read) }),
            Err(error) => Err(PyValueError::new_err(error.to_string())),
        }
    }

    /// Returns the scenario, which shows the values of these keys.
    pub(crate) fn showing(&self, keys: &[&str]) -> Arc<scenario::Scenario> {
        Arc::new(self.read.as_ref().clone().showing(keys, &self.settings))
    }

    /// Returns the text without the settings, with its name.
    pub(crate) fn text(&self) -> PyResult<scenario::Source> {
        if self.source.contains('\n') {
            let (name, file, text) = ("text".to_owned(), TEXT.to_owned(), self.source.clone());
            return Ok(scenario::Source { name, file, text });
        }
        scenario::Source::find(&self.source).map_err(|error| PyValueError::new_err(error.to_string()))
    }
}

#[pymethods]
impl Scenario {
    /// Reads a built-in scenario, a file, or the text of a file (more than one line).
    #[staticmethod]
    fn load(source: String) -> PyResult<Self> {
        Self::new(source, Vec::new())
    }

    /// Returns this scenario with another value of a knob or of a dotted key, as `--set` does.
    fn set(&self, key: String, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut settings = self.settings.clone();
        settings.push((key, written(value)?));
        Self::new(self.source.clone(), settings)
    }

    /// The name of the built-in scenario, or of the file without its ending.
    #[getter]
    fn name(&self) -> &str {
        &self.read.name
    }

    /// The name for people.
    #[getter]
    fn title(&self) -> &str {
        &self.read.title
    }

    /// The purpose, in one sentence.
    #[getter]
    fn summary(&self) -> &str {
        &self.read.summary
    }

    /// The source of the numbers.
    #[getter]
    fn source(&self) -> &str {
        &self.read.source
    }

    /// The present value of every knob.
    #[getter]
    fn knobs(&self) -> BTreeMap<String, String> {
        self.read.knob_values().iter().cloned().collect()
    }

    /// The names that a knob takes; empty if it takes the values of its keys.
    fn choices(&self, knob: &str) -> Vec<String> {
        self.read.knob_choices(knob).into_iter().map(str::to_owned).collect()
    }

    /// The mechanisms that a run has if none are named.
    #[getter]
    fn mechanisms(&self) -> Vec<String> {
        self.read.defaults.mechanisms.clone()
    }

    /// The number of seeds that a run has if none is named.
    #[getter]
    fn seeds(&self) -> u32 {
        self.read.defaults.seeds
    }

    /// Every key that shapes a run with its effective value, one `path = value` a line.
    fn canonical(&self) -> String {
        self.read.canonical()
    }

    /// Returns a scenario file with all settings made, which reads back to a scenario of the same hash.
    fn to_toml(&self) -> String {
        self.read.to_toml()
    }

    /// The hash of `canonical()`. Results of scenarios with equal hashes may be compared.
    #[getter]
    fn hash(&self) -> String {
        self.read.hash()
    }

    fn __repr__(&self) -> String {
        let set = self.settings.iter().map(|(key, value)| format!(".set({key:?}, {value:?})"));
        let set = set.collect::<Vec<_>>().concat();
        let source = if self.source.contains('\n') { "…" } else { &self.source };
        format!("Scenario.load({source:?}){set}")
    }
}

/// Returns the names of the built-in scenarios.
#[pyfunction]
pub(crate) fn scenarios() -> Vec<&'static str> {
    scenario::Scenario::builtins().map(|builtin| builtin.name).collect()
}

/// Returns a value of Python as `--set` takes it.
pub(crate) fn written(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true().to_string());
    }
    if value.is_instance_of::<PyString>()
        || value.is_instance_of::<PyInt>()
        || value.is_instance_of::<PyFloat>()
    {
        return Ok(value.str()?.to_string());
    }
    if let Ok(items) = value.extract::<Vec<Bound<'_, PyAny>>>() {
        let items: Vec<String> = items
            .iter()
            .map(|item| {
                Ok(if item.is_instance_of::<PyString>() {
                    format!("{:?}", written(item)?)
                } else {
                    written(item)?
                })
            })
            .collect::<PyResult<_>>()?;
        return Ok(format!("[{}]", items.join(", ")));
    }
    Err(PyValueError::new_err(format!(
        "a value must be text, a number, a truth value or a list of these, not {}",
        value.repr()?
    )))
}
