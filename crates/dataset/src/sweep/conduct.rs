//! A sweep on the threads of this process.

use std::io;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use coapace_run::workers::make_all;

use super::columns::Row;
use super::{Check, Columns, Plan, SweepDirectory, Unit, part};

/// The shortest and the longest time for which finished rows wait to be written. Between these limits the time is a
/// fiftieth of the duration of the sweep so far. So a short sweep loses little if it is killed, and a long one does not
/// create a hundred thousand files.
const WAITING: [Duration; 2] = [Duration::from_secs(1), Duration::from_mins(1)];

/// The maximum number of rows of a part.
const MOST_ROWS: usize = 10_000;

/// Makes the runs `units` of a plan on `jobs` threads (0: one for each core) and writes them into the directory, until
/// all are made or `stop` is true. After each run, the calling thread calls `ran` with the number of runs so far.
/// Returns the number of runs written.
///
/// An interruption keeps the finished runs, and abandons the others. The rows do not depend on the number of threads. `check`
/// is called after each run. If it fails, the run is not kept, and the sweep ends.
///
/// # Errors
/// Errors of the directory and of `check`.
///
/// # Panics
/// Panics if a run does. Earlier runs are kept.
pub fn conduct(
    plan: &Arc<Plan>,
    directory: &SweepDirectory,
    units: Vec<Unit>,
    jobs: usize,
    stop: &AtomicBool,
    check: Check,
    ran: &mut dyn FnMut(usize),
) -> io::Result<usize> {
    let count = units.len();
    // All threads fill one part. A part for each thread would leave a file for each of them.
    let part = Arc::new(Mutex::new(OpenPart {
        path: directory.path().to_owned(),
        draft: directory.draft(),
        columns: directory.columns().clone(),
        began: Instant::now(),
        oldest: Instant::now(),
        rows: Vec::new(),
        written: 0,
        is_closed: false,
    }));
    let work = Work { plan: plan.clone(), units, check, part: part.clone() };
    let mut made = 0;
    let mut failed = None;
    let ended = make_all(count, jobs, stop, move |place| work.make(place), &mut |kept| {
        match kept {
            // The first failure ends the sweep: a check that fails once would fail for all runs that follow.
            Some(Err(error)) => {
                failed = Some(error);
                return ControlFlow::Break(());
            }
            Some(Ok(())) => {
                made += 1;
                ran(made);
            }
            None => {}
        }
        ControlFlow::Continue(())
    });
    // Runs that end from now on are not kept. The kept ones are written before a failure is returned.
    let mut part = locked(&part);
    part.is_closed = true;
    part.write()?;
    if let Some(error) = failed {
        return Err(error);
    }
    // Last, so that a panic loses no run that was over before.
    ended.unwrap_or_else(|panic| resume_unwind(panic));
    Ok(part.written)
}

/// The runs to make, and the part that receives them.
struct Work {
    plan: Arc<Plan>,
    units: Vec<Unit>,
    check: Check,
    part: Arc<Mutex<OpenPart>>,
}

impl Work {
    /// Makes run number `place` and adds it to the part. Returns `None` if the plan has no such run, or if the part was
    /// closed before the run ended.
    fn make(&self, place: usize) -> Option<io::Result<()>> {
        let row = self.plan.make(self.units.get(place)?)?;
        if let Err(error) = (self.check)() {
            return Some(Err(error));
        }
        // Locked only after the run, so that runs go on in parallel.
        let mut part = locked(&self.part);
        if part.is_closed {
            return None;
        }
        if part.rows.is_empty() {
            part.oldest = Instant::now();
        }
        part.rows.push(row);
        let is_due = part.rows.len() >= MOST_ROWS || part.oldest.elapsed() >= part.waiting();
        // Other threads go on with their runs meanwhile.
        Some(if is_due { part.write() } else { Ok(()) })
    }
}

fn locked(part: &Mutex<OpenPart>) -> MutexGuard<'_, OpenPart> {
    // A thread that panicked held no half-written row: rows are added whole.
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The part of the dataset that gets the rows of finished runs until it is written.
struct OpenPart {
    path: PathBuf,
    draft: String,
    columns: Columns,
    began: Instant,
    /// The time at which the first of `rows` was made.
    oldest: Instant,
    rows: Vec<Row>,
    /// The number of rows in the parts that are already written.
    written: usize,
    /// Whether runs that end from now on are discarded.
    is_closed: bool,
}

impl OpenPart {
    fn waiting(&self) -> Duration {
        (self.began.elapsed() / 50).clamp(WAITING[0], WAITING[1])
    }

    fn write(&mut self) -> io::Result<()> {
        // Rows that cannot be written are dropped. The failure ends the sweep, and the next one makes these runs again.
        let rows = std::mem::take(&mut self.rows);
        if !rows.is_empty() {
            self.written += part::write(&self.path, &self.draft, &self.columns, rows)?;
        }
        Ok(())
    }
}
