//! Many runs in parallel: every scenario with every contender and every seed.

use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use coapace_scenario::Scenario;

use crate::results::{Cell, CellResult, Mode};
use coapace_run::contender::Contender;
use coapace_run::measured::RunResult;
use coapace_run::workers::make_all;
use coapace_run::{Observe, run};

/// A scenario and one contender (a mechanism, a mix or TCP), to be run with `seeds` seeds from `first_seed` on.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The network and the workload.
    pub scenario: Arc<Scenario>,
    /// The mechanism, the mix or TCP that carries the exchanges.
    pub contender: Contender,
    /// The number of runs.
    pub seeds: u32,
    /// The seed of the first run. Each later run has the next seed.
    pub first_seed: u64,
    /// The time series that the run with the first seed records for the report, if any.
    pub observe: Observe,
}

/// Runs all trials on `jobs` threads (0: one for each core) and calls `progress` after each run. The results do not depend on
/// the number of threads.
pub fn conduct(trials: &[Trial], jobs: usize, progress: &dyn Fn()) -> Vec<CellResult> {
    conduct_until(trials, jobs, &AtomicBool::new(false), &mut |_| progress())
}

/// Runs trials like [`conduct`], until all are done or `stop` is true. If `stop` is true, abandons unfinished runs, and
/// returns the results so far at once. The calling thread calls `ran` after each run, with all results so far in the
/// sequence of the trials.
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

/// A function that makes a run from the index of a trial, the trial, a seed, and the series to record; `None` if the
/// run cannot be made.
pub type Make = dyn Fn(usize, &Trial, u64, Observe) -> Option<RunResult> + Send + Sync;

/// Runs trials like [`conduct_until`], but makes each run with `make`. A run for which `make` returns `None` is left
/// out.
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
    // Threads take single runs, so heavy trials keep no thread busy alone at the end.
    let mut runs = Vec::new();
    for (place, trial) in trials.iter().enumerate() {
        runs.extend((0..u64::from(trial.seeds)).map(|number| (place, trial.first_seed + number)));
    }
    // Copied, because runs that an interruption abandons outlive this call.
    let (count, trials) = (runs.len(), trials.to_vec());
    let run = move |place: usize| {
        let (place, seed) = runs[place];
        let trial = &trials[place];
        // Series take much memory, and charts show one seed only.
        let observe = if seed == trial.first_seed { trial.observe } else { Observe::Totals };
        (place, make(place, trial, seed, observe))
    };
    let ended = make_all(count, jobs, stop, run, &mut |(place, result)| {
        if let Some(result) = result {
            // Runs end in any order. Sorted by seed, results do not depend on the number of threads.
            let runs = &mut cells[place].runs;
            runs.insert(runs.partition_point(|run| run.seed < result.seed), result);
            ran(&cells);
        }
        ControlFlow::Continue(())
    });
    // Without this, a run that panicked would only be missing from the results.
    ended.unwrap_or_else(|panic| resume_unwind(panic));
    cells
}

/// Returns a cell without runs for each of these trials.
pub fn cells(trials: &[Trial]) -> Vec<CellResult> {
    trials.iter().map(|trial| CellResult { cell: trial.cell(), runs: Vec::new() }).collect()
}

/// Returns the number of runs that [`conduct`] makes for these trials.
pub fn runs(trials: &[Trial]) -> usize {
    trials.iter().map(|trial| trial.seeds as usize).sum()
}

impl Trial {
    /// Makes a trial with the seeds from 1 to `seeds`.
    pub fn new(scenario: &Arc<Scenario>, contender: Contender, seeds: u32) -> Self {
        Self { observe: Observe::Series, ..Self::of_totals(scenario, contender, seeds) }
    }

    /// Makes a trial with the seeds from 1 to `seeds` that records no time series.
    pub fn of_totals(scenario: &Arc<Scenario>, contender: Contender, seeds: u32) -> Self {
        Self { scenario: scenario.clone(), contender, seeds, first_seed: 1, observe: Observe::Totals }
    }

    /// Returns the cell of the trial's runs.
    pub fn cell(&self) -> Cell {
        let scenario = &self.scenario;
        let mix = self.contender.parts();
        Cell {
            scenario: scenario.name.clone(),
            // The hash is 16 hexadecimal digits, which always parse.
            scenario_hash: scenario.hash().parse().unwrap_or_default(),
            workload: scenario.workload.kind.word().to_owned(),
            clients: scenario.clients.count,
            mechanism: self.contender.label.clone(),
            knobs: scenario.knob_values().iter().cloned().collect(),
            flows: scenario.workload.flows.iter().map(|flow| flow.name.clone()).collect(),
            transfers: scenario.workload.transfers.iter().map(|transfer| transfer.name.clone()).collect(),
            // One mechanism for all clients is not a mix.
            mix: mix.iter().filter(|_| mix.len() > 1).map(|part| part.label.clone()).collect(),
            is_mesh: scenario.network.mesh.is_some(),
            mode: Mode::Simulated,
            label: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

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
    fn a_range_of_seeds_repeats_the_runs_of_a_longer_range() {
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
    fn an_interrupted_experiment_keeps_its_finished_runs() {
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
