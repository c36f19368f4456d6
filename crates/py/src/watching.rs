//! Work in another thread, with progress reports. Ctrl-C ends the work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use coapace_lab::experiment::{Make, Trial, conduct_by, conduct_until, runs};
use coapace_lab::results::CellResult;
use coapace_run::{Observe, run};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::scripted::{RunSession, check, is_of_python, raised};

/// The longest time between two checks for Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(100);

/// The maximum number of finished runs that are counted before a check for Ctrl-C: short runs may finish faster than
/// they are counted.
const MOST_NEWS: usize = 10_000;

/// The seeds of runs, the number of threads (0: one for each core), and a function that is called with the numbers of finished
/// runs and of all runs.
#[derive(FromPyObject)]
pub(crate) struct RunSettings<'py> {
    /// Ranges of consecutive seeds: the first seed of each range, and its length. None: as many seeds as the trial has.
    #[pyo3(item)]
    pub(crate) seeds: Option<Vec<(u64, u32)>>,
    #[pyo3(item)]
    pub(crate) first_seed: u64,
    #[pyo3(item)]
    pub(crate) jobs: usize,
    #[pyo3(item)]
    pub(crate) progress: Option<Bound<'py, PyAny>>,
}

/// Makes all runs of the trials.
///
/// # Errors
/// Returns `KeyboardInterrupt`, the first exception of a mechanism that is written in Python, or the exception of `progress`.
pub(crate) fn conduct(
    py: Python<'_>,
    trials: Vec<Trial>,
    run_settings: &RunSettings<'_>,
) -> PyResult<Vec<CellResult>> {
    let trials = run_settings.of_stretches(trials);
    let (all, jobs, stretches) =
        (runs(&trials), run_settings.jobs, run_settings.seeds.as_ref().map_or(1, Vec::len));
    let mut count = 0;
    let cells = watch(
        py,
        // The runs need no interpreter. Only their number comes back to it.
        move |stop, done| conduct_apart(&trials, jobs, stop, done),
        |more| match &run_settings.progress {
            Some(progress) => {
                count += more;
                progress.call1((count, all)).map(drop)
            }
            None => Ok(()),
        },
    )?;
    // The stretches of a cell follow each other.
    let joined = cells.chunks(stretches.max(1)).filter_map(|stretches| {
        let mut cell = stretches.first()?.clone();
        cell.runs = stretches.iter().flat_map(|stretch| &stretch.runs).cloned().collect();
        // Ranges of seeds may come in any order, and the command sorts runs by seed.
        cell.runs.sort_by_key(|run| run.seed);
        Some(cell)
    });
    if stretches > 1 { Ok(joined.collect()) } else { Ok(cells) }
}

impl RunSettings<'_> {
    /// Returns a copy of each trial for each range of seeds. Only the trials of the first range record time series.
    fn of_stretches(&self, trials: Vec<Trial>) -> Vec<Trial> {
        let own = |trial: Trial| Trial { first_seed: self.first_seed, ..trial };
        let Some(stretches) = &self.seeds else { return trials.into_iter().map(own).collect() };
        let of = |trial: &Trial, (place, &(first_seed, seeds)): (usize, &(u64, u32))| {
            let observe = if place == 0 { trial.observe } else { Observe::Totals };
            Trial { first_seed, seeds, observe, ..trial.clone() }
        };
        let all =
            |trial: Trial| stretches.iter().enumerate().map(move |stretch| of(&trial, stretch)).collect();
        trials.into_iter().flat_map::<Vec<_>, _>(all).collect()
    }
}

/// Makes the runs of mechanisms that are written in Python on one thread, and all others on the other threads. Several threads that
/// call Python wait for each other, and are slower than one.
fn conduct_apart(trials: &[Trial], jobs: usize, stop: &AtomicBool, done: &Sender<()>) -> Vec<CellResult> {
    let tell = || {
        // Nobody listens after Ctrl-C.
        let _ = done.send(());
    };
    let is_scripted =
        |trial: &Trial| trial.contender.parts().iter().any(|part| is_of_python(&part.mechanism));
    let (scripted, others): (Vec<_>, Vec<_>) =
        (0..trials.len()).partition(|&place| is_scripted(&trials[place]));
    if scripted.is_empty() {
        return conduct_until(trials, jobs, stop, &mut |_| tell());
    }
    let pick = |places: &[usize]| places.iter().map(|&place| trials[place].clone()).collect::<Vec<_>>();
    // The interpreter is held for a whole run, because each step would wait for it. Other threads of Python get it in the steps.
    let make: Arc<Make> = Arc::new(|_, trial: &Trial, seed, observe| {
        Some(Python::attach(|_| run(&trial.scenario, &trial.contender, seed, observe)))
    });
    let threads = if jobs == 0 { thread::available_parallelism().map_or(1, usize::from) } else { jobs };
    let sender = done.clone();
    let (own, rest) = (pick(&scripted), pick(&others));
    let by_python = move || {
        conduct_by(&own, 1, stop, make, &mut |_| {
            let _ = sender.send(());
        })
    };
    let (by_python, native) = thread::scope(|scope| {
        // One thread makes both kinds, one after the other.
        if threads == 1 || others.is_empty() {
            let by_python = by_python();
            return (by_python, conduct_until(&rest, threads, stop, &mut |_| tell()));
        }
        let handle = scope.spawn(by_python);
        // The thread that calls Python is one of the threads that the caller asked for.
        let native = conduct_until(&rest, threads - 1, stop, &mut |_| tell());
        (handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), native)
    });
    let mut cells: Vec<_> =
        scripted.into_iter().zip(by_python).chain(others.into_iter().zip(native)).collect();
    // Callers expect the order of the trials.
    cells.sort_by_key(|(place, _)| *place);
    cells.into_iter().map(|(_, cell)| cell).collect()
}

/// Does `work` in another thread and waits for its end. `work` must return soon after its flag is true. The callback gets the
/// number of reports of `work` since its last call.
///
/// # Errors
/// Returns the errors of [`conduct`], and a `RuntimeError` if `work` panics.
pub(crate) fn watch<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool, &Sender<()>) -> T + Send + 'static,
    mut report: impl FnMut(usize) -> PyResult<()>,
) -> PyResult<T> {
    // The session lasts until the work has ended, so that the objects of its mechanisms stay.
    let _session = RunSession::begin();
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, mut news) = channel();
    let working = thread::Builder::new().spawn({
        let stop = stop.clone();
        move || work(&stop, &sender)
    })?;
    let watched = loop {
        let first;
        // Other threads of Python run while this one waits. In between it looks for Ctrl-C.
        (first, news) = py.detach(move || {
            let first = news.recv_timeout(PATIENCE);
            (first.map(|()| 1 + news.try_iter().take(MOST_NEWS).count()), news)
        });
        let watched = py.check_signals().and_then(|()| first.as_ref().map_or(Ok(()), |more| report(*more)));
        if watched.is_err() || check().is_err() || first == Err(RecvTimeoutError::Disconnected) {
            break watched;
        }
    };
    stop.store(watched.is_err() || check().is_err(), Ordering::Relaxed);
    // Work that is stopped keeps its finished runs before the exception is returned.
    let ended = py.detach(|| working.join());
    // The exception of a mechanism comes first, because an interruption may only follow from it.
    raised()?;
    watched?;
    ended.map_err(|_| {
        PyRuntimeError::new_err("a bug of the simulator ended a run; please report it with the scenario")
    })
}
