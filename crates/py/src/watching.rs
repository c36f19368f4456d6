//! Work in another thread, while Python goes on, progress is told, and Ctrl-C ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use coapace_lab::experiment::{Trial, conduct_until, runs};
use coapace_lab::results::CellResult;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::scripted::{Session, check, raised};

/// The longest time without a look at Ctrl-C.
const PATIENCE: Duration = Duration::from_millis(100);

/// The most news that are counted before a look at Ctrl-C: short runs may be over faster than they are counted.
const MOST_NEWS: usize = 10_000;

/// The seeds of runs, the number of threads (0: one for each core), and a function that is told the runs done and all runs.
#[derive(FromPyObject)]
pub(crate) struct Terms<'py> {
    #[pyo3(item)]
    pub(crate) seeds: Option<u32>,
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
/// Returns `KeyboardInterrupt`, the first exception of a mechanism that is written in Python, or that of `progress`.
pub(crate) fn conduct(py: Python<'_>, trials: Vec<Trial>, terms: &Terms<'_>) -> PyResult<Vec<CellResult>> {
    let (all, jobs) = (runs(&trials), terms.jobs);
    let mut count = 0;
    watch(
        py,
        move |stop, done| {
            conduct_until(&trials, jobs, stop, &mut |_| {
                // Nobody listens after Ctrl-C.
                let _ = done.send(());
            })
        },
        |more| match &terms.progress {
            Some(progress) => {
                count += more;
                progress.call1((count, all)).map(drop)
            }
            None => Ok(()),
        },
    )
}

/// Does `work` in another thread and waits for its end. It is to end soon after its flag is true, and sends news, whose number `told`
/// gets a few times a second.
///
/// # Errors
/// Those of [`conduct`].
pub(crate) fn watch<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool, &Sender<()>) -> T + Send + 'static,
    mut told: impl FnMut(usize) -> PyResult<()>,
) -> PyResult<T> {
    let _session = Session::begin();
    let stop = Arc::new(AtomicBool::new(false));
    let (sender, mut news) = channel();
    let working = thread::Builder::new().spawn({
        let stop = stop.clone();
        move || work(&stop, &sender)
    })?;
    let watched = loop {
        let first;
        (first, news) = py.detach(move || {
            let first = news.recv_timeout(PATIENCE);
            (first.map(|()| 1 + news.try_iter().take(MOST_NEWS).count()), news)
        });
        let watched = py.check_signals().and_then(|()| first.as_ref().map_or(Ok(()), |more| told(*more)));
        if watched.is_err() || check().is_err() || first == Err(RecvTimeoutError::Disconnected) {
            break watched;
        }
    };
    stop.store(watched.is_err() || check().is_err(), Ordering::Relaxed);
    // Work that is stopped keeps what is over before the exception is seen.
    let ended = py.detach(|| working.join());
    raised()?;
    watched?;
    ended.map_err(|_| {
        PyRuntimeError::new_err(
            "a run ended by a mistake of the simulator; please report it with the scenario",
        )
    })
}
