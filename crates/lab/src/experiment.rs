//! Many runs in parallel: scenarios by contenders by seeds.

use std::sync::Arc;

use rayon::prelude::*;

use crate::contender::Contender;
use crate::papers::published_for;
use crate::results::{Cell, CellResult, Published, RunResult};
use crate::run::{Observe, run};
use crate::scenario::Scenario;

/// A scenario with one contender, to be run with seeds 1 to `seeds`.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The network and the workload.
    pub scenario: Arc<Scenario>,
    /// What carries the exchanges.
    pub contender: Contender,
    /// Repetitions.
    pub seeds: u32,
    /// What a publication measured.
    pub published: Option<Published>,
    /// What is recorded of the first seed: its series are drawn in the report.
    pub observe: Observe,
}

/// Runs all trials on `jobs` threads (0: one a core) and calls `progress` after each run, from any of them. The results
/// do not depend on the number of threads.
pub fn conduct(trials: &[Trial], jobs: usize, progress: &(dyn Fn() + Sync)) -> Vec<CellResult> {
    let work: Vec<(usize, u64)> = trials
        .iter()
        .enumerate()
        .flat_map(|(trial, Trial { seeds, .. })| (1..=u64::from(*seeds)).map(move |seed| (trial, seed)))
        .collect();
    let one = |&(trial, seed): &(usize, u64)| {
        let Trial { scenario, contender, observe, .. } = &trials[trial];
        let observe = if seed == 1 { *observe } else { Observe::Totals };
        let result = run(scenario, contender, seed, observe);
        progress();
        result
    };
    // Heavy and light trials lie side by side: taking single runs keeps every thread busy to the end.
    let all = || work.par_iter().with_max_len(1).map(one).collect::<Vec<RunResult>>();
    let results = match rayon::ThreadPoolBuilder::new().num_threads(jobs).build() {
        Ok(pool) => pool.install(all),
        // No threads to be had: run here.
        Err(_) => work.iter().map(one).collect(),
    };

    let mut cells: Vec<CellResult> = trials.iter().map(Trial::empty).collect();
    for ((trial, _), result) in work.into_iter().zip(results) {
        cells[trial].runs.push(result);
    }
    cells
}

/// How many runs [`conduct`] makes of these.
pub fn runs(trials: &[Trial]) -> usize {
    trials.iter().map(|trial| trial.seeds as usize).sum()
}

impl Trial {
    /// A trial beside what was published for the same scenario and mechanism, if anything was.
    pub fn new(scenario: &Arc<Scenario>, contender: Contender, seeds: u32) -> Self {
        let published = published_for(scenario, &contender.label);
        Self { scenario: scenario.clone(), contender, seeds, published, observe: Observe::Series }
    }

    fn empty(&self) -> CellResult {
        let scenario = &self.scenario;
        let mut cell = Cell {
            scenario: scenario.name.clone(),
            scenario_hash: scenario.hash().parse().unwrap_or_default(),
            clients: scenario.clients.count,
            buffer_bytes: scenario.network.down.iter().find_map(|hop| hop.buffer_bytes),
            mechanism: self.contender.label.clone(),
            workload: scenario.workload.kind.word().to_owned(),
            ..Cell::default()
        };
        for (name, value) in scenario.knob_values() {
            match name.as_str() {
                "errors" => cell.link_errors.clone_from(value),
                "workload" | "clients" | "buffer" => {}
                _ => drop(cell.knobs.insert(name.clone(), value.clone())),
            }
        }
        CellResult { cell, runs: Vec::new(), published: self.published.clone() }
    }
}
