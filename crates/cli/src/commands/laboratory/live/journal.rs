//! The journal of live runs: a line for each run, so that an interruption does not lose hours of real time.

use std::io;
use std::path::Path;

use coapace_lab::journal::JournalFile;
use coapace_lab::results::Cell;
use coapace_run::measured::RunResult;
use serde::{Deserialize, Serialize};

/// The error message for a file that is not a journal.
const FOREIGN: &str = "this is not a journal of live runs: name another file";

/// A line of a journal, in JSON.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum JournalLine {
    /// The commit of the program that made the runs.
    Commit(String),
    Run(RunKey, Box<RunResult>),
}

/// The key of a run in the journal: its conditions, mechanism and seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct RunKey {
    scenario_hash: String,
    /// The mechanism, followed by ` live` and the other stack.
    mechanism: String,
    seed: u64,
}

impl RunKey {
    fn of(cell: &Cell, seed: u64) -> Self {
        Self { scenario_hash: cell.scenario_hash.to_string(), mechanism: cell.label().to_owned(), seed }
    }
}

/// The live runs in a journal, and its open file.
#[derive(Debug)]
pub(crate) struct LiveJournal {
    file: JournalFile,
    runs: Vec<(RunKey, RunResult)>,
}

impl LiveJournal {
    /// Opens or creates the journal at `path` for runs of this `commit`.
    ///
    /// # Errors
    /// Errors of the file, and one line if the file is not a journal or belongs to another commit. The file is not changed
    /// then.
    pub(crate) fn open(path: &Path, commit: &str) -> io::Result<Self> {
        let (mut runs, mut is_new) = (Vec::new(), true);
        let mut file = JournalFile::open(path, FOREIGN, |line| {
            is_new = false;
            match line {
                JournalLine::Commit(found) if found != commit => Err(io::Error::other(format!(
                    "this journal was begun at commit {found}: continue with that commit, or name another file"
                ))),
                JournalLine::Commit(_) => Ok(()),
                JournalLine::Run(key, run) => {
                    runs.push((key, *run));
                    Ok(())
                }
            }
        })?;
        if is_new {
            // Another commit may have other results, and a journal must not mix them.
            file.write(&JournalLine::Commit(commit.to_owned()))?;
        }
        Ok(Self { file, runs })
    }

    /// Returns the number of runs.
    pub(crate) fn runs(&self) -> usize {
        self.runs.len()
    }

    /// Returns the run of a cell with this seed, if the journal has it.
    pub(crate) fn run(&self, cell: &Cell, seed: u64) -> Option<&RunResult> {
        let key = RunKey::of(cell, seed);
        self.runs.iter().find(|(known, _)| *known == key).map(|(_, run)| run)
    }

    /// Adds a run to the journal.
    ///
    /// # Errors
    /// Errors of the file.
    pub(crate) fn add(&mut self, cell: &Cell, run: &RunResult) -> io::Result<()> {
        let key = RunKey::of(cell, run.seed);
        self.file.write(&JournalLine::Run(key.clone(), Box::new(run.clone())))?;
        self.runs.push((key, run.clone()));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use coapace_lab::results::Mode;

    use super::*;

    #[test]
    fn a_journal_gives_back_its_runs_and_refuses_another_commit() {
        let path = std::env::temp_dir().join(format!("coapace-live-journal-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let cell = Cell { mechanism: "cocoa".into(), ..Cell::default() }.in_mode(Mode::Live);
        let run = RunResult { seed: 3, fct_s: vec![Some(0.1 + 0.2), None], drops: 7, ..RunResult::default() };
        LiveJournal::open(&path, "c").unwrap().add(&cell, &run).unwrap();
        let journal = LiveJournal::open(&path, "c").unwrap();
        assert_eq!((journal.runs(), journal.run(&cell, 3), journal.run(&cell, 4)), (1, Some(&run), None));
        drop(journal);
        let other = LiveJournal::open(&path, "d").unwrap_err().to_string();
        assert!(other.contains("commit c"), "{other}");
        std::fs::remove_file(&path).unwrap();
    }
}
