//! Scenarios.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use coapace_dataset::VERSION;
use coapace_scenario as scenario;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::failing::{checked, refused_by_system};
use crate::value::written;

/// The name in messages of a scenario that was given as text.
const TEXT: &str = "the text";

/// A network and a workload, read and checked. It never changes: `set` returns another scenario.
#[pyclass(frozen, module = "coapace", from_py_object)]
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    /// The text that the scenario was read from, which stays the same if the file changes.
    source: scenario::Source,
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) read: Arc<scenario::Scenario>,
}

impl Scenario {
    fn new(source: scenario::Source, settings: Vec<(String, String)>) -> PyResult<Self> {
        match source.scenario(&settings) {
            Ok(read) => Ok(Self { source, settings, read: Arc::new(read) }),
            Err(error) => Err(PyValueError::new_err(error.to_string())),
        }
    }

    fn of_file(path: &Path) -> PyResult<Self> {
        let name =
            path.to_str().ok_or_else(|| PyValueError::new_err("the path of a scenario must be UTF-8"))?;
        there(name)?;
        let source = scenario::Source::find(name);
        Self::new(source.map_err(|error| PyValueError::new_err(error.to_string()))?, Vec::new())
    }

    /// Returns the scenario with these keys added to its knob values, so that results show them.
    pub(crate) fn showing(&self, keys: &[&str]) -> Arc<scenario::Scenario> {
        Arc::new(self.read.as_ref().clone().showing(keys, &self.settings))
    }

    /// Returns the text of the scenario without the settings of `set`, with the name of its file.
    pub(crate) fn text(&self) -> scenario::Source {
        self.source.clone()
    }
}

/// Checks that a file can be opened, if `name_or_path` is its path and not the name of a built-in scenario.
///
/// # Errors
/// `OSError`, such as `FileNotFoundError`.
pub(crate) fn there(name_or_path: &str) -> PyResult<()> {
    let path = Path::new(name_or_path);
    // Another word is the name of a built-in scenario, and reading it reports unknown names.
    let is_path = path.extension().is_some() || path.components().count() > 1;
    // Opening also shows whether the file may be read.
    match std::fs::File::open(path) {
        Err(error) if is_path && scenario::Scenario::builtin(name_or_path).is_none() => {
            Err(refused_by_system("cannot read", path, &error))
        }
        _ => Ok(()),
    }
}

#[pymethods]
impl Scenario {
    /// Reads a built-in scenario, a file, or the text of a file (more than one line).
    ///
    /// Raises `FileNotFoundError` if the file does not exist, and `ValueError` with a line about the mistake in it.
    #[staticmethod]
    fn load(source: PathBuf) -> PyResult<Self> {
        match source.to_str() {
            // A name or a path is one line.
            Some(text) if text.contains('\n') => {
                let (name, file, text) = ("text".to_owned(), TEXT.to_owned(), text.to_owned());
                Self::new(scenario::Source { name, file, text }, Vec::new())
            }
            _ => Self::of_file(&source),
        }
    }

    /// Returns this scenario with another value of a knob or of a dotted key, as `--set` does: a text, a number, a truth value, a
    /// path, a `timedelta`, or several of them.
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

    /// The names that a knob accepts; empty if it accepts the values of its keys.
    fn choices(&self, knob: &str) -> Vec<String> {
        self.read.knob_choices(knob).into_iter().map(str::to_owned).collect()
    }

    /// The mechanisms of a run that names no mechanisms.
    #[getter]
    fn mechanisms(&self) -> Vec<String> {
        self.read.defaults.mechanisms.clone()
    }

    /// The number of seeds of a run that names no seeds.
    #[getter]
    fn seeds(&self) -> u32 {
        self.read.defaults.seeds
    }

    /// Every key that shapes a run with its effective value, one `path = value` a line.
    fn canonical(&self) -> String {
        self.read.canonical()
    }

    /// Returns this scenario as a scenario file (TOML) with all settings applied. Its scenario hash is the same.
    fn to_toml(&self) -> String {
        self.read.to_toml()
    }

    /// The hash of `canonical()`. Results of scenarios with equal hashes may be compared.
    #[getter]
    fn hash(&self) -> String {
        self.read.hash()
    }

    /// Scenarios are equal if they have the same name, and all their keys have the same values.
    fn __eq__(&self, other: &Self) -> bool {
        let texts =
            |it: &scenario::Scenario| [&it.name, &it.title, &it.summary, &it.source].map(Clone::clone);
        let (one, other) = (&*self.read, &*other.read);
        // `canonical` has only the keys that shape a run, so the others are compared here.
        texts(one) == texts(other)
            && one.canonical() == other.canonical()
            && one.knob_values() == other.knob_values()
            && (one.defaults.seeds, &one.defaults.mechanisms)
                == (other.defaults.seeds, &other.defaults.mechanisms)
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.read.name, self.read.hash()).hash(&mut hasher);
        hasher.finish()
    }

    /// A scenario never changes, so a copy is the scenario itself.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: &Bound<'_, PyAny>) -> Py<Self> {
        slf
    }

    /// Pickled as its text and its settings.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, PickledScenario)> {
        let scenario::Source { name, file, text } = self.source.clone();
        let restore = py.import("coapace._native")?.getattr("restore_scenario")?;
        Ok((restore, (VERSION, (name, file, text), self.settings.clone())))
    }

    fn __repr__(&self) -> String {
        let set = self.settings.iter().map(|(key, value)| format!(".set({key:?}, {value:?})"));
        let set = set.collect::<Vec<_>>().concat();
        let scenario::Source { name, file, .. } = &self.source;
        // A user's file may have the name of a built-in scenario, so the texts decide.
        let is_builtin = scenario::Scenario::builtin(name).is_some_and(|it| it.text == self.source.text);
        let source = if file == TEXT {
            "…"
        } else if is_builtin {
            name
        } else {
            file
        };
        format!("Scenario.load({source:?}){set}")
    }
}

/// Returns the names of the built-in scenarios.
#[pyfunction]
pub(crate) fn scenarios() -> Vec<&'static str> {
    scenario::Scenario::builtins().map(|builtin| builtin.name).collect()
}

/// The content of a pickled scenario: the version, its name, file and text, and the settings.
type PickledScenario = (&'static str, (String, String, String), Vec<(String, String)>);

/// Restores a pickled scenario.
#[pyfunction]
pub(crate) fn restore_scenario(
    version: &str,
    source: (String, String, String),
    settings: Vec<(String, String)>,
) -> PyResult<Scenario> {
    checked(version)?;
    let (name, file, text) = source;
    Scenario::new(scenario::Source { name, file, text }, settings)
}
