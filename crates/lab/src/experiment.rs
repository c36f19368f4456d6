//! Many runs in parallel: every scenario with every contender and every seed.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use coapace_scenario::Scenario;

use crate::contender::{Contender, ContenderKind};
use crate::papers::published_for;
use crate::results::{Cell, CellResult, Mode, Published, RunResult, bounds};
use crate::run::{Observe, run};

/// A scenario with one contender, to be run with `seeds` seeds from `first_seed` on.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The network and the workload.
    pub scenario: Arc<Scenario>,
    /// The mechanism, the mix or TCP that carries the exchanges.
    pub contender: Contender,
    /// The number of runs.
    pub seeds: u32,
    /// The seed of the first run. Each further run has the next one.
    pub first_seed: u64,
    /// The published figures and orders.
    pub published: Option<Published>,
    /// The series that the run with the first seed records for the report, if any.
    pub observe: Observe,
}

/// The longest time without a look at an interruption.
const PATIENCE: Duration = Duration::from_millis(20);

/// Runs all trials on `jobs` threads (0: one for each core) and calls `progress` after each run. The results do not depend on
/// the number of threads.
pub fn conduct(trials: &[Trial], jobs: usize, progress: &dyn Fn()) -> Vec<CellResult> {
    conduct_until(trials, jobs, &AtomicBool::new(false), &mut |_| progress())
}

/// Runs trials like [`conduct`], until all are done or `stop` is true. Then it returns the results so far at once, and
/// abandons the runs that are not over. This thread calls `ran` after each run, with all results so far in the order of the
/// trials.
///
/// # Panics
/// Panics if a run does.
pub fn conduct_until(
    trials: &[Trial],
    jobs: usize,
    stop: &AtomicBool,
    ran: &mut dyn FnMut(&[CellResult]),
) -> Vec<CellResult> {
    let make = |_, trial: &Trial, seed, observe| Some(run(&trial.scenario, &trial.contender, seed, observe));
    conduct_by(trials, jobs, stop, Arc::new(make), ran)
}

/// A function that makes a run of a trial with a seed; `None` if it cannot be made. It is told the place of the trial.
pub type Make = dyn Fn(usize, &Trial, u64, Observe) -> Option<RunResult> + Send + Sync;

/// Conducts trials like [`conduct_until`], whose runs `make` makes. A run that cannot be made is left out.
///
/// # Panics
/// Panics if a run does.
pub fn conduct_by(
    trials: &[Trial],
    jobs: usize,
    stop: &AtomicBool,
    make: Arc<Make>,
    ran: &mut dyn FnMut(&[CellResult]),
) -> Vec<CellResult> {
    let mut cells = cells(trials);
    let all = Arc::new(Work::new(trials, make));
    let (sender, results) = channel();
    let jobs = if jobs == 0 { thread::available_parallelism().map_or(1, usize::from) } else { jobs };
    let threads: Vec<_> = (0..jobs.min(all.runs.len()))
        .filter_map(|_| {
            let (all, sender) = (all.clone(), sender.clone());
            // The receiver is gone after an interruption.
            let work = move || {
                while let Some((trial, result)) = all.next() {
                    if result.is_some_and(|result| sender.send((trial, result)).is_err()) {
                        return;
                    }
                }
            };
            thread::Builder::new().spawn(work).ok()
        })
        .collect();
    if threads.is_empty() {
        // No thread could be started, so this one makes the runs.
        while !stop.load(Ordering::Relaxed)
            && let Some((trial, result)) = all.next()
        {
            let Some(result) = result else { continue };
            insert(&mut cells[trial], result);
            ran(&cells);
        }
        return cells;
    }
    drop(sender);
    while !stop.load(Ordering::Relaxed) {
        match results.recv_timeout(PATIENCE) {
            Ok((trial, result)) => {
                insert(&mut cells[trial], result);
                ran(&cells);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                for thread in threads {
                    thread.join().unwrap_or_else(|panic| resume_unwind(panic));
                }
                return cells;
            }
        }
    }
    all.taken.store(all.runs.len(), Ordering::Relaxed);
    cells
}

/// The runs to make. Threads take single runs, so heavy trials keep no thread busy alone at the end.
struct Work {
    trials: Vec<Trial>,
    /// The number of the trial and the seed of each run.
    runs: Vec<(usize, u64)>,
    taken: AtomicUsize,
    make: Arc<Make>,
}

impl Work {
    fn new(trials: &[Trial], make: Arc<Make>) -> Self {
        let seeds = |trial: &Trial| {
            (0..u64::from(trial.seeds)).map({
                let first = trial.first_seed;
                move |place| first + place
            })
        };
        let runs =
            trials.iter().enumerate().flat_map(|(place, trial)| seeds(trial).map(move |seed| (place, seed)));
        Self { runs: runs.collect(), trials: trials.to_vec(), taken: AtomicUsize::new(0), make }
    }

    /// Takes the next run and makes it; `None` if there is none left.
    fn next(&self) -> Option<(usize, Option<RunResult>)> {
        let &(place, seed) = self.runs.get(self.taken.fetch_add(1, Ordering::Relaxed))?;
        let trial = &self.trials[place];
        let observe = if seed == trial.first_seed { trial.observe } else { Observe::Totals };
        Some((place, (self.make)(place, trial, seed, observe)))
    }
}

/// Inserts a run in the order of the seeds.
fn insert(cell: &mut CellResult, result: RunResult) {
    let place = cell.runs.partition_point(|run| run.seed < result.seed);
    cell.runs.insert(place, result);
}

/// Returns the cells of these trials, without runs.
pub fn cells(trials: &[Trial]) -> Vec<CellResult> {
    trials.iter().map(Trial::empty).collect()
}

/// Returns the number of runs that [`conduct`] makes of these trials.
pub fn runs(trials: &[Trial]) -> usize {
    trials.iter().map(|trial| trial.seeds as usize).sum()
}

impl Trial {
    /// Makes a trial with what was published for the same scenario and mechanism, if anything was.
    pub fn new(scenario: &Arc<Scenario>, contender: Contender, seeds: u32) -> Self {
        let published = published_for(scenario, &contender.label);
        Self {
            scenario: scenario.clone(),
            contender,
            seeds,
            first_seed: 1,
            published,
            observe: Observe::Series,
        }
    }

    /// Makes a trial that records no series and is compared with no published figure.
    pub fn of_totals(scenario: &Arc<Scenario>, contender: Contender, seeds: u32) -> Self {
        Self {
            scenario: scenario.clone(),
            contender,
            seeds,
            first_seed: 1,
            published: None,
            observe: Observe::Totals,
        }
    }

    fn empty(&self) -> CellResult {
        let scenario = &self.scenario;
        let mix = match &self.contender.kind {
            ContenderKind::Udp(mix) => mix.parts(),
            ContenderKind::Tcp => &[],
        };
        let cell = Cell {
            scenario: scenario.name.clone(),
            scenario_hash: scenario.hash().parse().unwrap_or_default(),
            workload: scenario.workload.kind.word().to_owned(),
            clients: scenario.clients.count,
            mechanism: self.contender.label.clone(),
            knobs: scenario.knob_values().iter().cloned().collect(),
            flows: scenario.workload.flows.iter().map(|flow| flow.name.clone()).collect(),
            mix: mix.iter().filter(|_| mix.len() > 1).map(|part| part.label.clone()).collect(),
            is_mesh: scenario.network.mesh.is_some(),
            mode: Mode::Simulated,
        };
        CellResult { cell, runs: Vec::new(), published: self.published.clone(), bounds: bounds(scenario) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trials(seeds: u32, first_seed: u64) -> Vec<Trial> {
        let settings =
            [("clients".to_owned(), "2".to_owned()), ("workload.exchanges".to_owned(), "5".to_owned())];
        let scenario = Arc::new(Scenario::load("nb-iot", &settings).unwrap());
        ["default", "cocoa"]
            .map(|name| Trial { first_seed, ..Trial::new(&scenario, Contender::parse(name).unwrap(), seeds) })
            .into()
    }

    fn seeds(cell: &CellResult) -> Vec<u64> {
        cell.runs.iter().map(|run| run.seed).collect()
    }

    #[test]
    fn a_range_of_seeds_makes_the_same_runs_as_a_longer_one_from_the_first() {
        let all = conduct(&trials(4, 1), 2, &|| ());
        let some = conduct(&trials(2, 3), 1, &|| ());
        assert_eq!((seeds(&all[0]), seeds(&some[0])), (vec![1, 2, 3, 4], vec![3, 4]));
        assert_eq!(all[1].runs[2].trace_hash, some[1].runs[0].trace_hash);
        assert!(
            !some[0].runs[0].rto.is_empty() && some[0].runs[1].rto.is_empty(),
            "only the first seed has a series"
        );
    }

    #[test]
    fn whoever_is_interrupted_keeps_what_was_run() {
        for jobs in [1, 2] {
            let stop = AtomicBool::new(false);
            let mut made = 0;
            let results = conduct_until(&trials(50, 1), jobs, &stop, &mut |cells| {
                made = cells.iter().map(|cell| cell.runs.len()).sum();
                stop.store(made == 3, Ordering::Relaxed);
            });
            assert_eq!((made, results.len()), (3, 2));
            assert_eq!(results.iter().map(|cell| cell.runs.len()).sum::<usize>(), 3);
        }
    }
}
