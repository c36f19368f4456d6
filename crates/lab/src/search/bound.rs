//! A [`Climb`] over the scenarios of a set, with a journal: what a [`Table`] reaches bounds what any mechanism with its state does.

use std::io;
use std::path::Path;

use super::climb::Climb;
use super::evaluation::{Evaluation, Set, Yardstick};
use super::journal::{Conditions, Journal};
use super::table::Table;

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
        for place in journal.yardsticks().len()..set.scenarios.len() {
            let measured = set.measure_all(Yardstick::pieces(place), jobs).map_err(io::Error::other)?;
            journal.add_yardstick(Yardstick::of(&measured))?;
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
        let evaluation = self.set.evaluate(mechanism, yardsticks, self.jobs).map_err(io::Error::other)?;
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
