//! A [`Climb`] over the scenarios of a set, with a journal: what a [`Table`] reaches bounds what any mechanism with its state does.

use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use coapace_control::REGISTRY;

use super::climb::Climb;
use super::costs::NAMES;
use super::evaluation::{Evaluation, Set, Yardstick};
use super::journal::{Conditions, Journal};
use super::table::Table;
use crate::rank::Section;

/// A set with the journal of what was measured on it.
#[derive(Debug)]
pub struct Bench {
    set: Set,
    journal: Journal,
    jobs: usize,
}

impl Bench {
    /// Opens the journal, and measures the yardsticks that it lacks, on so many threads.
    ///
    /// # Errors
    /// Fails as the journal does.
    pub fn open(set: Set, path: Option<&Path>, conditions: &Conditions, jobs: usize) -> io::Result<Self> {
        let mut journal = Journal::open(path, conditions)?;
        if journal.yardsticks().len() < set.scenarios.len() {
            for yardstick in yardsticks(&set, jobs)?.into_iter().skip(journal.yardsticks().len()) {
                journal.add_yardstick(yardstick)?;
            }
        }
        Ok(Self { set, journal, jobs })
    }

    /// Returns the scenarios.
    pub fn set(&self) -> &Set {
        &self.set
    }

    /// Evaluates a mechanism on the first `scenarios`, unless the journal has that.
    ///
    /// # Errors
    /// Fails as the journal does, and if the mechanism is unknown.
    pub fn evaluate(&mut self, mechanism: &str, scenarios: usize) -> io::Result<Evaluation> {
        if let Some(known) = self.journal.evaluation(mechanism, scenarios) {
            return Ok(known.clone());
        }
        let yardsticks = &self.journal.yardsticks()[..scenarios];
        let evaluation = evaluate(&self.set, mechanism, yardsticks, self.jobs)?;
        self.journal.add(evaluation.clone())?;
        Ok(evaluation)
    }

    /// Makes so many steps of a climb that begins with the table of `ebb`. Calls `found` with each table that is better than all
    /// before, the number of its step, and its loss. Returns the last of them.
    ///
    /// # Errors
    /// Fails as [`evaluate`](Self::evaluate) does.
    pub fn climb(
        &mut self,
        steps: u32,
        seed: u64,
        found: &mut dyn FnMut(&Table, u32, f64),
    ) -> io::Result<Table> {
        let mut climb = Climb::new(Table::DEFAULT, self.set.scenarios.len(), seed);
        for step in 0..=steps {
            let better = climb.step::<io::Error>(&mut |table, scenarios| {
                Ok(self.evaluate(&table.label(), scenarios)?.loss())
            })?;
            if let Some(loss) = better {
                found(climb.best(), step, loss);
            }
        }
        Ok(*climb.best())
    }
}

fn evaluate(set: &Set, mechanism: &str, yardsticks: &[Yardstick], jobs: usize) -> io::Result<Evaluation> {
    let evaluation = set.evaluate(mechanism, yardsticks, jobs, &AtomicBool::new(false));
    evaluation.map_err(io::Error::other)?.ok_or_else(|| io::Error::other("a run is missing"))
}

/// Measures the yardsticks of a set: the ratios of each published mechanism to costs of one are its costs.
fn yardsticks(set: &Set, jobs: usize) -> io::Result<Vec<Yardstick>> {
    let unit = Yardstick { least: [1.0; 3], best: NAMES.map(str::to_owned) };
    let units = vec![unit; set.scenarios.len()];
    let alone = Set { shared: Vec::new(), ..set.clone() };
    let names = REGISTRY.iter().map(|entry| entry.name).filter(|name| Section::of(name).is_yardstick());
    let measured: Vec<Evaluation> =
        names.map(|name| evaluate(&alone, name, &units, jobs)).collect::<io::Result<_>>()?;
    let least = |place: usize, cost: usize| {
        let costs = measured.iter().map(|of| (of.ratios[place][cost], &of.mechanism));
        costs.min_by(|a, b| a.0.total_cmp(&b.0)).expect("some mechanism is published")
    };
    let yardstick = |place: usize| {
        let best = [0, 1, 2].map(|cost| least(place, cost));
        Yardstick { least: best.map(|best| best.0), best: best.map(|best| best.1.clone()) }
    };
    Ok((0..set.scenarios.len()).map(yardstick).collect())
}
