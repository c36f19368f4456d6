//! The estimate of how long live runs take, from the simulated ones.

use std::time::Duration;

use coapace_lab::experiment::Trial;
use coapace_lab::results::CellResult;
use coapace_run::contender::ContenderKind;
use coapace_run::measured::RunResult;
use coapace_run::{tcp_plans, window};

/// The estimated duration of each live run of a list of trials.
#[derive(Clone, Debug, Default)]
pub(crate) struct DurationEstimate {
    /// The durations of the runs of each trial, from its first seed on.
    runs: Vec<Vec<Duration>>,
}

/// Estimates how long the live runs of `trials` take, from `simulated` runs of the same trials. The simulated runs have
/// at least the seeds of the live runs.
pub(crate) fn estimate(trials: &[Trial], simulated: &[CellResult]) -> DurationEstimate {
    let runs = trials.iter().zip(simulated).map(|(trial, cell)| {
        let runs = cell.runs.iter().take(trial.seeds as usize);
        // `from_secs_f64` panics below 0.
        runs.map(|run| Duration::from_secs_f64(run_s(trial, run).max(0.0))).collect()
    });
    DurationEstimate { runs: runs.collect() }
}

/// Returns how long a simulated run would take live, in seconds.
fn run_s(trial: &Trial, run: &RunResult) -> f64 {
    let Trial { scenario, contender, .. } = trial;
    // A workload with a window ends with it, whatever its clients do.
    if let Some((_, end)) = window(scenario, contender) {
        return end.as_secs_f64();
    }
    if !scenario.workload.transfers.is_empty() {
        return run.duration_s;
    }
    let last = run.fct_s.iter().try_fold(0.0, |last: f64, fct| Some(last.max((*fct)?)));
    let first_request = match contender.kind {
        ContenderKind::Tcp => {
            tcp_plans(scenario, run.seed).iter().map(|plan| plan.request_at.as_secs_f64()).fold(0.0, f64::max)
        }
        ContenderKind::Udp(_) => (scenario.clients.start + scenario.clients.start_spread).as_secs_f64(),
    };
    // A client that gave up goes on until its last timeout.
    last.map_or(run.duration_s, |last| first_request + last)
}

impl DurationEstimate {
    /// Returns the duration of the run of trial `place` with its `number`th seed, counted from 0;
    /// `None` without an estimate.
    pub(crate) fn of(&self, place: usize, number: u64) -> Option<Duration> {
        self.runs.get(place)?.get(number as usize).copied()
    }

    /// Returns the number of runs.
    pub(crate) fn count(&self) -> usize {
        self.runs.iter().map(Vec::len).sum()
    }

    /// Returns the time until all runs have ended, if `jobs` of them run at a time.
    pub(crate) fn all(&self, jobs: usize) -> Duration {
        let mut free = vec![Duration::ZERO; jobs.max(1)];
        for &run in self.runs.iter().flatten() {
            // The next run begins where one ends first.
            if let Some(first) = free.iter_mut().min() {
                *first += run;
            }
        }
        free.into_iter().max().unwrap_or_default()
    }

    /// Returns the estimate of these trials followed by the trials of `others`.
    #[must_use]
    pub(crate) fn and(mut self, others: Self) -> Self {
        self.runs.extend(others.runs);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_of_time_starts_a_run_when_another_one_ends() {
        let seconds = |all: &[u64]| all.iter().map(|&s| Duration::from_secs(s)).collect::<Vec<_>>();
        let estimate = DurationEstimate { runs: vec![seconds(&[10, 4]), seconds(&[3, 5])] };
        assert_eq!([1, 2, 9].map(|jobs| estimate.all(jobs).as_secs()), [22, 12, 10]);
        assert_eq!((estimate.count(), estimate.of(1, 1)), (4, Some(Duration::from_secs(5))));
    }
}
