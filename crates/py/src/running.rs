//! Runs of scenarios, and their results.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use coapace_lab::contender::Contender;
use coapace_lab::experiment::{Trial, conduct_until, runs};
use coapace_lab::results::CellResult;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::scenario::Scenario;
use crate::scripted::{Session, raised};
use crate::table::Table;

/// The longest time without a look at Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(100);

/// Runs the scenarios with the mechanisms and `seeds` seeds from `first_seed` on.
///
/// `progress(done, all)` is called a few times a second. Python goes on in other threads; Ctrl-C ends the call.
#[pyfunction]
#[pyo3(signature = (scenarios, mechanisms=None, seeds=None, first_seed=1, jobs=0, progress=None))]
pub(crate) fn run(
    py: Python<'_>,
    scenarios: Vec<Scenario>,
    mechanisms: Option<Vec<String>>,
    seeds: Option<u32>,
    first_seed: u64,
    jobs: usize,
    progress: Option<Bound<'_, PyAny>>,
) -> PyResult<Results> {
    let mut trials = Vec::new();
    for Scenario { read, .. } in &scenarios {
        let seeds = seeds.unwrap_or(read.defaults.seeds);
        if seeds == 0 {
            return Err(PyValueError::new_err("seeds is 0, but must be at least 1"));
        }
        for label in mechanisms.as_ref().unwrap_or(&read.defaults.mechanisms) {
            let contender =
                Contender::parse(label).and_then(|contender| contender.fits(read).map(|()| contender));
            let contender = contender.map_err(PyValueError::new_err)?;
            trials.push(Trial { first_seed, ..Trial::new(read, contender, seeds) });
        }
    }
    let all = runs(&trials);
    let _session = Session::begin();
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, mut done) = channel();
    let conducted = thread::Builder::new().spawn({
        let stop = stop.clone();
        move || {
            conduct_until(&trials, jobs, &stop, &mut |_| {
                // Nobody listens after Ctrl-C.
                let _ = sender.send(());
            })
        }
    })?;
    let mut count = 0;
    loop {
        let news;
        (news, done) = py.detach(move || {
            let first = done.recv_timeout(PATIENCE);
            (first.map(|()| 1 + done.try_iter().count()), done)
        });
        let watched = raised().and_then(|()| py.check_signals()).and_then(|()| match (&news, &progress) {
            (Ok(more), Some(progress)) => {
                count += more;
                progress.call1((count, all)).map(drop)
            }
            _ => Ok(()),
        });
        if let Err(error) = watched {
            stop.store(true, Ordering::Relaxed);
            return Err(error);
        }
        if news == Err(RecvTimeoutError::Disconnected) {
            break;
        }
    }
    let ended = py.detach(|| conducted.join());
    raised()?;
    ended.map(|cells| Results { cells: cells.into() }).map_err(|_| {
        PyRuntimeError::new_err(
            "a run ended by a mistake of the simulator; please report it with the scenario",
        )
    })
}

/// The results of runs.
#[pyclass(frozen, module = "coapace._native")]
pub(crate) struct Results {
    cells: Arc<[CellResult]>,
}

#[pymethods]
impl Results {
    /// A row for each scenario and mechanism, its seeds pooled.
    fn cells(&self, py: Python<'_>) -> PyResult<Table> {
        Table::new(py.detach(|| coapace_dataset::cells(&self.cells)))
    }

    /// A row for each run.
    fn runs(&self, py: Python<'_>) -> PyResult<Table> {
        Table::new(py.detach(|| coapace_dataset::runs(&self.cells)))
    }

    /// A row for each client of each run: when it was done, and its exchanges.
    fn clients(&self, py: Python<'_>) -> PyResult<Table> {
        Table::new(py.detach(|| coapace_dataset::clients(&self.cells)))
    }
}
