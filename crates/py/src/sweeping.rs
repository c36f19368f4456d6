//! Sweeps: runs under many conditions, written into a directory. Threads of this process make the runs, or other
//! processes make batches of them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use coapace_dataset::sweep::{self, Batch, Plan, Setting, SweepDirectory, Unit};
use coapace_scenario::Amount;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::failing::refused_by_system;
use crate::scenario::Scenario;
use crate::scripted::{RunSession, check, is_scripted, raised};
use crate::value::written;
use crate::watching::watch;

/// A sweep that was begun: its plan, and the directory that it writes into.
#[pyclass(frozen, module = "coapace._native")]
pub(crate) struct Sweep {
    plan: Arc<Plan>,
    path: PathBuf,
    /// The directory, which is locked as long as the sweep is open.
    directory: Mutex<Option<Arc<SweepDirectory>>>,
    units: usize,
    missing: Vec<Unit>,
    /// True if a mechanism is written in Python. Only one thread calls it.
    is_scripted: bool,
}

#[pymethods]
impl Sweep {
    /// Opens a directory for the scenario under each condition. A condition is a list of keys and values. `seeds` is the first
    /// seed and the number of seeds.
    #[new]
    #[pyo3(signature = (scenario, conditions, mechanisms, seeds, to, shard))]
    fn new(
        py: Python<'_>,
        scenario: Scenario,
        conditions: Vec<Vec<(String, Bound<'_, PyAny>)>>,
        mechanisms: Option<Vec<String>>,
        seeds: (u64, Option<u32>),
        to: PathBuf,
        shard: Option<String>,
    ) -> PyResult<Self> {
        let source = scenario.text();
        let settings = conditions.into_iter().map(|condition| {
            let own = condition.into_iter().map(|(key, value)| Ok((key, written(&value)?)));
            // A condition overrides the scenario's own settings.
            Ok(last_of_each(scenario.settings.iter().cloned().map(Ok).chain(own).collect::<PyResult<_>>()?))
        });
        let settings = settings.collect::<PyResult<Vec<_>>>()?;
        let mechanisms = mechanisms.unwrap_or_else(|| scenario.read.defaults.mechanisms.clone());
        let is_scripted = mechanisms.iter().any(|label| is_scripted(label));
        let seeds = (seeds.0, seeds.1.unwrap_or(scenario.read.defaults.seeds));
        let shard = shard.map(|shard| shard.parse()).transpose().map_err(PyValueError::new_err::<String>)?;
        // Files are read and locked while other threads of Python run.
        let opened = py.detach(|| {
            let plan = Plan::new(source, settings, &mechanisms, Some(seeds));
            let plan = plan.map_err(|error| PyValueError::new_err(error.to_string()))?;
            let directory = SweepDirectory::open(&to, &plan, shard).map_err(|error| failed(&to, &error))?;
            PyResult::Ok((plan, directory))
        });
        let (plan, directory) = opened?;
        let (units, missing) = (directory.units(&plan), directory.missing(&plan));
        let directory = Mutex::new(Some(Arc::new(directory)));
        Ok(Self { plan: plan.into(), path: to, directory, units, missing, is_scripted })
    }

    /// The number of runs of the plan, or of its shard.
    #[getter]
    fn units(&self) -> usize {
        self.units
    }

    /// The number of runs that were missing when the directory was opened.
    #[getter]
    fn missing(&self) -> usize {
        self.missing.len()
    }

    /// Makes the missing runs on threads of this process. `progress(done, all)` is called a few times a second.
    fn conduct(&self, py: Python<'_>, jobs: usize, progress: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let directory = self.open()?;
        let (plan, missing) = (self.plan.clone(), self.missing.clone());
        // Several threads would wait for the interpreter in turn, and be slower than one.
        let jobs = if self.is_scripted { 1 } else { jobs };
        let mut made = 0;
        let conducted = watch(
            py,
            move |stop, done| {
                sweep::conduct(&plan, &directory, missing, jobs, stop, check, &mut |_| {
                    // Nobody listens after Ctrl-C.
                    let _ = done.send(());
                })
            },
            |more| {
                made += more;
                progress.as_ref().map_or(Ok(()), |it| it.call1((made, self.missing.len())).map(drop))
            },
        );
        conducted?.map(drop).map_err(|error| failed(&self.path, &error))
    }

    /// Returns some of the missing runs as a text that `make_batch` accepts, in this process or another.
    fn batch(&self, first: usize, count: usize) -> PyResult<String> {
        let last = first.saturating_add(count).min(self.missing.len());
        // `first` may be behind the end, which gives an empty batch.
        let units = self.missing.get(first..last).unwrap_or_default();
        Ok(self.plan.batch(self.open()?.columns(), units).to_json())
    }

    /// Removes rows that came twice, and returns the number of runs that are still missing.
    fn settle(&self, py: Python<'_>) -> PyResult<usize> {
        let directory = self.open()?;
        let left = py.detach(|| {
            // A scheduler may have given one batch to two workers.
            directory.settle()?;
            let keys = sweep::keys(directory.path())?;
            io::Result::Ok(self.missing.iter().filter(|unit| !keys.contains(&unit.key)).count())
        });
        left.map_err(|error| failed(&self.path, &error))
    }

    /// Closes the directory, so that others can write into it.
    fn close(&self) {
        self.directory.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Sweep {
    fn open(&self) -> PyResult<Arc<SweepDirectory>> {
        let directory = self.directory.lock().unwrap_or_else(PoisonError::into_inner);
        directory.clone().ok_or_else(|| PyValueError::new_err("the sweep is closed"))
    }
}

/// Makes the runs of a batch in this thread and writes them into a directory. Returns their number.
#[pyfunction]
pub(crate) fn make_batch(py: Python<'_>, batch: &str, to: PathBuf) -> PyResult<usize> {
    let _session = RunSession::begin();
    // A batch runs in a worker's process, where nobody could set this flag.
    let made = py.detach(|| Batch::from_json(batch)?.make(&to, &AtomicBool::new(false), check));
    raised()?;
    made.map_err(|error| failed(&to, &error))
}

/// Returns the number of runs in a directory.
#[pyfunction]
pub(crate) fn count_runs(py: Python<'_>, path: PathBuf) -> PyResult<usize> {
    let keys = py.detach(|| sweep::keys(&path)).map_err(|error| failed(&path, &error))?;
    Ok(keys.len())
}

/// Returns an amount, such as `5 %`, as a whole number of smallest units and the word for the quantity; `None` if the text is
/// no amount.
#[pyfunction]
pub(crate) fn amount(text: &str) -> Option<(u64, String)> {
    Amount::parse(text).map(|amount| (amount.value, amount.dimension.to_string()))
}

/// Returns an amount as scenarios write it.
#[pyfunction]
pub(crate) fn amount_text(value: u64, dimension: &str) -> PyResult<String> {
    let dimension =
        dimension.parse().map_err(|()| PyValueError::new_err(format!("{dimension:?} is not a dimension")))?;
    Ok(Amount { dimension, value }.to_string())
}

/// Keeps the last setting of each key.
fn last_of_each(settings: Vec<Setting>) -> Vec<Setting> {
    // A scenario has a handful of settings, so comparing each with each costs nothing.
    let is_last = |place: usize| settings[place + 1..].iter().all(|(key, _)| *key != settings[place].0);
    (0..settings.len()).filter(|&place| is_last(place)).map(|place| settings[place].clone()).collect()
}

/// Returns an error of a file that is being read or written.
pub(crate) fn failed(path: &Path, error: &io::Error) -> PyErr {
    refused_by_system("cannot use", path, error)
}
