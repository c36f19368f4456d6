//! A [`Climb`] over the scenarios of a set, with a journal. The best [`Table`] shows how well any mechanism with its state could
//! do.

use std::io;
use std::path::Path;

use coapace_lab::search::evaluation::{CostYardstick, Evaluation, Set};
use coapace_lab::search::journal::{Journal, SearchConditions};

use crate::climb::Climb;
use crate::table::Table;

/// A set with the journal of its measurements.
#[derive(Debug)]
pub(crate) struct Bench {
    set: Set,
    journal: Journal,
    jobs: usize,
}

impl Bench {
    /// Opens the journal, and measures the yardsticks that it lacks, on `jobs` threads.
    ///
    /// # Errors
    /// Fails as the journal does.
    pub(crate) fn open(
        set: Set,
        path: Option<&Path>,
        conditions: &SearchConditions,
        jobs: usize,
    ) -> io::Result<Self> {
        let mut journal = Journal::open(path, conditions)?;
        for place in journal.yardsticks().len()..set.scenarios.len() {
            let measured = set.measure_all(CostYardstick::pieces(place), jobs).map_err(io::Error::other)?;
            journal.add_yardstick(CostYardstick::of(&measured))?;
        }
        Ok(Self { set, journal, jobs })
    }

    /// Returns the scenarios.
    pub(crate) fn set(&self) -> &Set {
        &self.set
    }

    /// Evaluates a mechanism on the first `scenarios`, unless the journal has the evaluation.
    ///
    /// # Errors
    /// Fails as the journal does, and if the mechanism is unknown.
    pub(crate) fn evaluate(&mut self, mechanism: &str, scenarios: usize) -> io::Result<Evaluation> {
        if let Some(known) = self.journal.evaluation(mechanism, scenarios) {
            return Ok(known.clone());
        }
        let yardsticks = &self.journal.yardsticks()[..scenarios];
        let evaluation = self.set.evaluate(mechanism, yardsticks, self.jobs).map_err(io::Error::other)?;
        self.journal.add(evaluation.clone())?;
        Ok(evaluation)
    }

    /// Makes `steps` steps of a climb that begins with the table of `ebb`. Calls `found` with each table that is better than all
    /// before, the number of its step, and its loss. Returns the best table.
    ///
    /// # Errors
    /// Fails as [`evaluate`](Self::evaluate) does.
    pub(crate) fn climb(
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

#[cfg(test)]
mod tests {
    use coapace_lab::search::networks::Networks;
    use coapace_scenario::naming;

    use super::*;
    use crate::table::ENTRY;

    /// Searches over nine networks. Returns every table that was found, and its loss.
    fn climb(journal: &Path, jobs: usize) -> Vec<(String, f64)> {
        let set = Set::draw(Networks::Mixed, 1, 9).unwrap();
        let conditions = SearchConditions {
            commit: "test".into(),
            networks: Networks::Mixed,
            generator_seed: 1,
            scenarios: 9,
        };
        let mut bench = Bench::open(set, Some(journal), &conditions, jobs).unwrap();
        let mut found = Vec::new();
        let best = bench.climb(4, 1, &mut |table, _, loss| found.push((table.label(), loss))).unwrap();
        assert_eq!(found.last().unwrap().0, best.label());
        found
    }

    #[test]
    fn a_search_goes_on_from_its_journal_and_finds_the_same_on_any_number_of_threads() {
        naming::add(&ENTRY).unwrap();
        let path = std::env::temp_dir().join(format!("coapace-table-{}.jsonl", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let whole = climb(&path, 1);
        assert_eq!(whole[0].0, Table::DEFAULT.label());
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().count();
        // The search is killed while it writes the fifth line from the end.
        let cut = text.match_indices('\n').nth(lines - 5).unwrap().0 - 7;
        std::fs::write(&path, &text[..cut]).unwrap();
        assert_eq!(climb(&path, 2), whole);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "only what was cut off is measured again");
        std::fs::remove_file(&path).unwrap();
    }
}
