//! Runs of scenarios, and their results.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use coapace_lab::contender::Contender;
use coapace_lab::experiment::{Trial, conduct_until, runs};
use coapace_lab::results::{CellResult, Lines, Rows};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::scenario::Scenario;
use crate::scripted::{Session, raised};
use crate::table::{Table, Values};

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
        self.rows(py, false)
    }

    /// A row for each run.
    fn runs(&self, py: Python<'_>) -> PyResult<Table> {
        self.rows(py, true)
    }

    /// A row for each client of each run: when it was done, and its exchanges.
    fn clients(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| {
            let mut places = Vec::new();
            let (mut mechanism, mut seed, mut client) = (Vec::new(), Vec::new(), Vec::new());
            let (mut fct, mut exchanges) = (Vec::new(), Vec::new());
            for (place, cell) in self.cells.iter().enumerate() {
                for run in &cell.runs {
                    for (number, completed) in run.exchanges.iter().enumerate() {
                        places.push(i64::try_from(place).ok());
                        mechanism.push(Some(cell.cell.mechanism.clone()));
                        seed.push(i64::try_from(run.seed).ok());
                        client.push(i64::try_from(number).ok());
                        fct.push(run.fct_s.get(number).copied().flatten());
                        exchanges.push(Some(i64::from(*completed)));
                    }
                }
            }
            Table::new(vec![
                ("cell".to_owned(), Values::Count(places)),
                ("mechanism".to_owned(), Values::Text(mechanism)),
                ("seed".to_owned(), Values::Count(seed)),
                ("client".to_owned(), Values::Count(client)),
                ("fct_s".to_owned(), Values::Number(fct)),
                ("exchanges".to_owned(), Values::Count(exchanges)),
            ])
        })
    }
}

impl Results {
    fn rows(&self, py: Python<'_>, each: bool) -> PyResult<Table> {
        py.detach(|| {
            let rows = Rows::new(&self.cells, Lines::Csv, each, env!("CARGO_PKG_VERSION"));
            let columns = rows.columns(&self.cells).into_iter();
            Table::new(columns.map(|(name, values)| (name, Values::of(values))).collect())
        })
    }
}
