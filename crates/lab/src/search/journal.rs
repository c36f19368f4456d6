//! The journal of a search: a line for each measurement, so that a killed search can continue.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::evaluation::{CostYardstick, Evaluation};
use super::networks::Networks;
use crate::journal::JournalFile;

/// The error message for a file that is not a journal.
const FOREIGN: &str = "this is not a journal of a search: name another file";

/// The conditions under which a search measures. A search cannot use lines of a journal that were measured under other
/// conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchConditions {
    /// The version of the program. Equal versions measure the same.
    pub commit: String,
    /// The kind of the networks; missing in journals from before there were several kinds.
    #[serde(default, skip_serializing_if = "Networks::is_default")]
    pub networks: Networks,
    /// The seed of the scenarios.
    pub generator_seed: u64,
    /// The number of scenarios.
    pub scenarios: usize,
}

/// A line of a journal, in JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Line {
    Conditions(SearchConditions),
    Yardstick(CostYardstick),
    Evaluation(Evaluation),
}

/// The measurements so far, and the file that stores them.
#[derive(Debug)]
pub struct Journal {
    file: Option<JournalFile>,
    yardsticks: Vec<CostYardstick>,
    evaluations: HashMap<(String, usize), Evaluation>,
}

impl Journal {
    /// Opens or creates the journal at `path`; without a path nothing is stored. An incomplete last line is removed,
    /// because the search was killed while it wrote the line. Its measurement is made again.
    ///
    /// # Errors
    /// Errors of the file, and one line if the file is not a journal or has other conditions. The file is not changed then.
    pub fn open(path: Option<&Path>, conditions: &SearchConditions) -> io::Result<Self> {
        let mut journal = Self { file: None, yardsticks: Vec::new(), evaluations: HashMap::new() };
        let Some(path) = path else { return Ok(journal) };
        let mut is_new = true;
        let mut file = JournalFile::open(path, FOREIGN, |line| {
            is_new = false;
            match line {
                Line::Conditions(found) if found != *conditions => {
                    return Err(io::Error::other(format!(
                        "this journal was begun with other settings (scenarios: {}, generator seed: {}, networks: {}, version: {}): \
                         continue with those, or name another file",
                        found.scenarios, found.generator_seed, found.networks, found.commit
                    )));
                }
                Line::Conditions(_) => {}
                Line::Yardstick(yardstick) => journal.yardsticks.push(yardstick),
                Line::Evaluation(evaluation) => journal.keep(evaluation),
            }
            Ok(())
        })?;
        // Written at once, so that a journal without measurements has its conditions, too.
        if is_new {
            file.write(&Line::Conditions(conditions.clone()))?;
        }
        journal.file = Some(file);
        Ok(journal)
    }

    /// Returns the baselines so far, in the sequence of the scenarios.
    pub fn yardsticks(&self) -> &[CostYardstick] {
        &self.yardsticks
    }

    /// Adds the baseline of the next scenario.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn add_yardstick(&mut self, yardstick: CostYardstick) -> io::Result<()> {
        self.write(&Line::Yardstick(yardstick.clone()))?;
        self.yardsticks.push(yardstick);
        Ok(())
    }

    /// Returns the evaluation of a mechanism on the first `scenarios`, if the journal has it.
    pub fn evaluation(&self, mechanism: &str, scenarios: usize) -> Option<&Evaluation> {
        self.evaluations.get(&(mechanism.to_owned(), scenarios))
    }

    /// Returns the number of evaluations.
    pub fn evaluations(&self) -> usize {
        self.evaluations.len()
    }

    /// Adds an evaluation.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn add(&mut self, evaluation: Evaluation) -> io::Result<()> {
        self.write(&Line::Evaluation(evaluation.clone()))?;
        self.keep(evaluation);
        Ok(())
    }

    /// Closes the file, so that another search can continue with it. Later lines are not written.
    pub fn close(&mut self) {
        self.file = None;
    }

    fn keep(&mut self, evaluation: Evaluation) {
        // The number of scenarios is part of the key: a rung evaluates the same mechanism again on more of them.
        self.evaluations.insert((evaluation.mechanism.clone(), evaluation.ratios.len()), evaluation);
    }

    fn write(&mut self, line: &Line) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), |file| file.write(line))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;

    fn conditions(generator_seed: u64) -> SearchConditions {
        SearchConditions { commit: "c".into(), networks: Networks::Mixed, generator_seed, scenarios: 2 }
    }

    fn evaluation(mechanism: &str) -> Evaluation {
        Evaluation { mechanism: mechanism.into(), ratios: vec![[1.0, 0.1 + 0.2, 1.5]], shares: vec![] }
    }

    #[test]
    fn a_journal_truncated_within_a_line_keeps_all_lines_before() {
        let path = std::env::temp_dir().join(format!("coapace-journal-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let mut journal = Journal::open(Some(&path), &conditions(1)).unwrap();
        journal.add(evaluation("a")).unwrap();
        journal.add(evaluation("b")).unwrap();
        drop(journal);
        let whole = std::fs::metadata(&path).unwrap().len();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(whole - 5).unwrap();
        let mut journal = Journal::open(Some(&path), &conditions(1)).unwrap();
        assert_eq!((journal.evaluation("a", 1), journal.evaluation("b", 1)), (Some(&evaluation("a")), None));
        journal.add(evaluation("b")).unwrap();
        drop(journal);
        let journal = Journal::open(Some(&path), &conditions(1)).unwrap();
        assert_eq!((journal.evaluations(), journal.evaluation("b", 1)), (2, Some(&evaluation("b"))));
        drop(journal);
        let whole = std::fs::metadata(&path).unwrap().len();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(whole - 1).unwrap();
        let mut journal = Journal::open(Some(&path), &conditions(1)).unwrap();
        assert_eq!(journal.evaluations(), 1, "a line that lacks its end alone is cut off, too");
        journal.add(evaluation("b")).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), whole);
        let held = Journal::open(Some(&path), &conditions(1)).unwrap_err().to_string();
        assert_eq!(
            held,
            "this journal is in use: wait until the other process has ended, or name another file"
        );
        journal.close();
        let other = Journal::open(Some(&path), &conditions(2)).unwrap_err().to_string();
        assert!(other.contains("generator seed: 1"), "{other}");
        for foreign in ["hello\n", "hello", "{\"conditions\":1}\n"] {
            std::fs::write(&path, foreign).unwrap();
            assert!(
                Journal::open(Some(&path), &conditions(1)).unwrap_err().to_string().contains("not a journal")
            );
            assert_eq!(std::fs::read_to_string(&path).unwrap(), foreign, "it is left as it was");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
