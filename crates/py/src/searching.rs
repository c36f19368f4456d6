//! Searches for parameters: on the threads of this process, or in pieces that other processes measure.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use coapace_dataset::search as tables;
use coapace_dataset::{VERSION, check_version};
use coapace_lab::search::evaluation::{Evaluation, Measured, SearchPiece};
use coapace_lab::search::networks::Networks;
use coapace_lab::search::space::Varied;
use coapace_lab::search::terms::SearchTerms;
use coapace_lab::search::{self as lab, SearchError};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::scripted::{RunSession, check, is_scripted, raised};
use crate::sweeping::failed;
use crate::table::Table;
use crate::watching::watch;

/// A piece of a search, the runs of a mechanism on one scenario: the mechanism, and the number of the scenario.
type PieceOfPython = (String, usize);

/// The results of a piece: the costs, and the share beside clients with `default`; None if the scenario has no such
/// clients.
type MeasuredOfPython = ([f64; 3], Option<f64>);

/// Pieces with everything that is needed to measure them elsewhere: the version, the kind of the networks, the
/// generator seed, the number of scenarios, and the pieces.
type BatchOfPython = (String, String, u64, u32, Vec<PieceOfPython>);

/// A search for parameters of mechanisms, or a comparison of given mechanisms.
#[pyclass(frozen, module = "coapace._native")]
pub(crate) struct Search(Arc<Mutex<lab::Search>>);

#[pymethods]
impl Search {
    #[classattr]
    const NETWORKS: &'static str = Networks::Mixed.name();
    #[classattr]
    const GENERATOR_SEED: u64 = SearchTerms::GENERATOR_SEED;
    #[classattr]
    const SCENARIOS: u32 = SearchTerms::SCENARIOS;
    #[classattr]
    const BRACKETS: u32 = SearchTerms::BRACKETS;
    #[classattr]
    const SEED: u64 = SearchTerms::SEED;

    /// Begins a search, or continues the search of a journal. `drawn` is the kind of the networks, the seed of their generator,
    /// and their number.
    #[new]
    #[pyo3(signature = (mechanisms, vary, drawn, brackets, seed, journal))]
    fn new(
        py: Python<'_>,
        mechanisms: Vec<String>,
        vary: Vec<String>,
        drawn: (String, u64, u32),
        brackets: u32,
        seed: u64,
        journal: Option<PathBuf>,
    ) -> PyResult<Self> {
        let vary = vary.iter().map(|text| Varied::parse(text)).collect::<Result<_, _>>();
        let vary = vary.map_err(PyValueError::new_err)?;
        let (networks, generator_seed, scenarios) = drawn;
        let networks = Networks::parse(&networks).map_err(PyValueError::new_err)?;
        let terms = SearchTerms { mechanisms, vary, networks, generator_seed, scenarios, brackets, seed };
        let search = py.detach(|| lab::Search::open(terms, VERSION, journal.as_deref()));
        Ok(Self(Arc::new(Mutex::new(search.map_err(refused)?))))
    }

    /// Measures on threads of this process until the search is over. `progress(done, all)` is called a few times a second.
    fn conduct(&self, py: Python<'_>, jobs: usize, progress: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let all = self.progress().1;
        // One thread calls a mechanism that is written in Python.
        let scripted = self.locked().terms().mechanisms.iter().any(|label| is_scripted(label));
        let jobs = if scripted { 1 } else { jobs };
        let (search, done) = (self.0.clone(), Arc::new(AtomicUsize::new(0)));
        let conducted = watch(
            py,
            {
                let done = done.clone();
                move |stop, news| {
                    locked(&search).conduct(jobs, stop, check, &mut |search| {
                        done.store(search.progress().0, Ordering::Relaxed);
                        // Nobody listens after Ctrl-C.
                        let _ = news.send(());
                        Ok(())
                    })
                }
            },
            |_| {
                let runs = (done.load(Ordering::Relaxed), all);
                progress.as_ref().map_or(Ok(()), |it| it.call1(runs).map(drop))
            },
        );
        conducted?.map(drop).map_err(refused)
    }

    /// Returns the number of pieces to be measured before the search can continue; 0 if it is over.
    fn ask(&self) -> usize {
        self.locked().ask().len()
    }

    /// Returns some of the pieces to be measured, as `measure` accepts them, in this process or another.
    fn batch(&self, first: usize, count: usize) -> BatchOfPython {
        let search = self.locked();
        let pieces = search.asked().iter().skip(first).take(count);
        let pieces = pieces.map(|piece| (piece.mechanism.clone(), piece.place)).collect();
        let SearchTerms { networks, generator_seed, scenarios, .. } = search.terms();
        (VERSION.to_owned(), networks.to_string(), *generator_seed, *scenarios, pieces)
    }

    /// Adds the measurements of these pieces.
    fn tell(&self, first: usize, measured: Vec<MeasuredOfPython>) -> PyResult<()> {
        let mut search = self.locked();
        for (place, (costs, share)) in measured.into_iter().enumerate() {
            search.tell(first.saturating_add(place), Measured { costs, share }).map_err(refused)?;
        }
        Ok(())
    }

    /// Closes the journal, so that another search can continue it.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.locked().close());
    }

    /// The number of finished runs, and of all runs.
    fn progress(&self) -> (usize, usize) {
        self.locked().progress()
    }

    /// The mechanism with the least loss so far, and its loss.
    fn best(&self) -> Option<(String, f64)> {
        self.locked().best().map(|best| (best.mechanism.clone(), best.loss()))
    }

    /// Returns the lines that the command prints about the result of the search; with `each`, also a line for each scenario.
    fn text(&self, each: bool) -> String {
        let search = self.locked();
        let text = |found: &Evaluation| found.text(search.set(), each);
        search.found().iter().map(text).collect()
    }

    /// Refused, because a search has a journal and threads, which cannot be pickled.
    #[allow(clippy::unused_self)] // Python calls it as a method
    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a search cannot be pickled: pickle its tables, such as `evaluations`, or keep its journal",
        ))
    }

    /// A row for each evaluation.
    fn evaluations(&self, py: Python<'_>) -> PyResult<Table> {
        Table::new(py.detach(|| tables::evaluations(&self.locked())))
    }

    /// A row for each scenario, of each evaluation that covered all scenarios.
    fn ratios(&self, py: Python<'_>) -> PyResult<Table> {
        Table::new(py.detach(|| tables::ratios(&self.locked())))
    }

    /// A row for each scenario that is shared with `default`, of each evaluation that covered all scenarios.
    fn shares(&self, py: Python<'_>) -> PyResult<Table> {
        Table::new(py.detach(|| tables::shares(&self.locked())))
    }

    /// A row for each scenario.
    fn yardsticks(&self, py: Python<'_>) -> PyResult<Table> {
        Table::new(py.detach(|| tables::yardsticks(&self.locked())))
    }
}

impl Search {
    fn locked(&self) -> MutexGuard<'_, lab::Search> {
        locked(&self.0)
    }
}

/// Measures pieces of a search in this thread, one after another.
#[pyfunction]
pub(crate) fn measure(py: Python<'_>, batch: BatchOfPython) -> PyResult<Vec<MeasuredOfPython>> {
    let (version, networks, generator_seed, scenarios, pieces) = batch;
    check_version("search", &version).map_err(PyValueError::new_err)?;
    let networks = Networks::parse(&networks).map_err(PyValueError::new_err)?;
    let measure = |(mechanism, place): PieceOfPython| {
        // The scenario is drawn again from the seed, which is shorter than its text.
        let drawn = u32::try_from(place).map_err(|error| error.to_string())?;
        let drawn = networks.draw(generator_seed, scenarios, drawn).map_err(|error| error.to_string())?;
        let Measured { costs, share } = SearchPiece { mechanism, place }.measure(&drawn)?;
        // Measurements after an exception of a mechanism are not kept.
        check().map(|()| (costs, share)).map_err(|error| error.to_string())
    };
    let _session = RunSession::begin();
    let measured = py.detach(|| pieces.into_iter().map(measure).collect::<Result<Vec<_>, String>>());
    // The exception of a mechanism explains more than the error that ended the measurements.
    raised()?;
    measured.map_err(PyValueError::new_err)
}

fn locked(search: &Mutex<lab::Search>) -> MutexGuard<'_, lab::Search> {
    search.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(error: SearchError) -> PyErr {
    match &error {
        SearchError::Journal(path, error) => failed(path, error),
        _ => PyValueError::new_err(error.to_string()),
    }
}
