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

/// The shortest and the longest time for which runs wait to be written. In between, they wait a fiftieth of the sweep's time so
/// far. So a short sweep loses little when it is killed, and a long one does not end in a hundred thousand files.
const WAITING: [Duration; 2] = [Duration::from_secs(1), Duration::from_mins(1)];

/// The most rows of a part.
const MOST_ROWS: usize = 10_000;

/// Makes `units` of a plan on `jobs` threads (0: one for each core) and writes them into the directory, until all are made or
/// `stop` is true. This thread calls `ran` with the number of runs after each. Returns the number of runs made.
///
/// An interruption keeps the runs that are over, and abandons the others. The rows do not depend on the number of threads. `check`
/// is called after each run. If it fails, the run is not kept, and the sweep ends.
///
/// # Errors
/// Fails as the directory and `check` do.
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
    ended.unwrap_or_else(|panic| resume_unwind(panic));
    Ok(part.written)
}

/// The runs to make, and the part that takes them.
struct Work {
    plan: Arc<Plan>,
    units: Vec<Unit>,
    check: Check,
    part: Arc<Mutex<OpenPart>>,
}

impl Work {
    /// Makes the run at `place` and adds it to the part; `None` if the plan has no such run, or if it ends after the part was
    /// closed.
    fn make(&self, place: usize) -> Option<io::Result<()>> {
        let row = self.plan.make(self.units.get(place)?)?;
        if let Err(error) = (self.check)() {
            return Some(Err(error));
        }
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
    part.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The part that is being filled.
struct OpenPart {
    path: PathBuf,
    draft: String,
    columns: Columns,
    began: Instant,
    /// The time when the first of `rows` was made.
    oldest: Instant,
    rows: Vec<Row>,
    /// The number of rows in parts that are written.
    written: usize,
    /// Whether runs that end from now on are not kept.
    is_closed: bool,
}

impl OpenPart {
    fn waiting(&self) -> Duration {
        (self.began.elapsed() / 50).clamp(WAITING[0], WAITING[1])
    }

    fn write(&mut self) -> io::Result<()> {
        let rows = std::mem::take(&mut self.rows);
        if !rows.is_empty() {
            self.written += part::write(&self.path, &self.draft, &self.columns, rows)?;
        }
        Ok(())
    }
}
