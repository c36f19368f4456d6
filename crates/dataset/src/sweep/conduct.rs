//! A sweep on the threads of this process.

use std::io;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::columns::Row;
use super::{Check, Columns, Directory, Plan, Unit, part};

/// The longest time without a look at an interruption.
const PATIENCE: Duration = Duration::from_millis(20);

/// The shortest and the longest time for which runs wait to be written. It is a fiftieth of the time since the begin, so that a
/// short sweep loses little when it is killed, and a long one does not end in a hundred thousand files.
const WAITING: [Duration; 2] = [Duration::from_secs(1), Duration::from_mins(1)];

/// The most rows of a part.
const MOST_ROWS: usize = 10_000;

/// Makes `units` of a plan on `jobs` threads (0: one for each core) and writes them into the directory, until all are made or
/// `stop` is true. This thread calls `ran` with the number of runs after each. Returns the number of runs made.
///
/// An interruption keeps the runs that are over, and abandons the others. The rows do not depend on the number of threads.
/// `check` is called after each run: after an error of it the run is not kept, and the sweep ends.
///
/// # Errors
/// Fails as the directory and `check` do.
///
/// # Panics
/// Panics if a run does; what was made before is kept.
pub fn conduct(
    plan: &Arc<Plan>,
    directory: &Directory,
    units: Vec<Unit>,
    jobs: usize,
    stop: &AtomicBool,
    check: Check,
    ran: &mut dyn FnMut(usize),
) -> io::Result<usize> {
    let jobs = if jobs == 0 { thread::available_parallelism().map_or(1, usize::from) } else { jobs };
    let jobs = jobs.min(units.len());
    let work = Arc::new(Work {
        plan: plan.clone(),
        units,
        check,
        taken: AtomicUsize::new(0),
        part: Mutex::new(Part {
            path: directory.path().to_owned(),
            draft: directory.draft(),
            columns: directory.columns().clone(),
            began: Instant::now(),
            oldest: Instant::now(),
            rows: Vec::new(),
            written: 0,
            is_closed: false,
        }),
    });
    let (sender, results) = channel();
    let threads: Vec<_> = (0..jobs)
        .filter_map(|_| {
            let (work, sender) = (work.clone(), sender.clone());
            let make = move || {
                // The receiver is gone after an interruption.
                while let Some(made) = work.next() {
                    if sender.send(made).is_err() {
                        return;
                    }
                }
            };
            thread::Builder::new().spawn(make).ok()
        })
        .collect();
    if threads.is_empty() && jobs > 0 {
        return Err(io::Error::other("no thread can be started"));
    }
    drop(sender);
    let mut made = 0;
    let mut failed = None;
    while !stop.load(Ordering::Relaxed) && failed.is_none() {
        match results.recv_timeout(PATIENCE) {
            Ok(Ok(())) => {
                made += 1;
                ran(made);
            }
            Ok(Err(error)) => failed = Some(error),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    work.taken.store(work.units.len(), Ordering::Relaxed);
    let mut part = work.part();
    part.is_closed = true;
    part.write()?;
    let written = part.written;
    drop(part);
    if let Some(error) = failed {
        return Err(error);
    }
    if !stop.load(Ordering::Relaxed) {
        for thread in threads {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    }
    Ok(written)
}

/// The runs to make, and those that are not written yet.
struct Work {
    plan: Arc<Plan>,
    units: Vec<Unit>,
    check: Check,
    taken: AtomicUsize,
    part: Mutex<Part>,
}

impl Work {
    /// Takes the next run, makes it and adds it to the part; `None` if there is none left.
    fn next(&self) -> Option<io::Result<()>> {
        let unit = self.units.get(self.taken.fetch_add(1, Ordering::Relaxed))?;
        let row = self.plan.make(unit)?;
        if let Err(error) = (self.check)() {
            return Some(Err(error));
        }
        let mut part = self.part();
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

    fn part(&self) -> MutexGuard<'_, Part> {
        self.part.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part that is being filled.
struct Part {
    path: PathBuf,
    draft: String,
    columns: Columns,
    began: Instant,
    /// When the first of `rows` was made.
    oldest: Instant,
    rows: Vec<Row>,
    /// The number of rows in parts that are written.
    written: usize,
    /// Whether runs that are over now come too late.
    is_closed: bool,
}

impl Part {
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
