//! Batches of runs for another process.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use coapace_run::contender::Contender;
use coapace_scenario::{ScenarioError, Source};
use serde::{Deserialize, Serialize};

use super::condition::Condition;
use super::plan::make;
use super::{Check, Columns, Key, Setting, part};
use crate::{VERSION, check_version};

/// Some runs of a plan, with everything that another process needs to make them. Their rows become one part of the dataset.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Batch {
    version: String,
    name: String,
    file: String,
    text: String,
    columns: Columns,
    conditions: Vec<Vec<Setting>>,
    mechanisms: Vec<String>,
    /// For each run, the index of its condition in `conditions`, the index of its mechanism in `mechanisms`, and the
    /// seed.
    units: Vec<(usize, usize, u64)>,
}

impl Batch {
    pub(super) fn new(
        source: &Source,
        columns: Columns,
        conditions: Vec<Vec<Setting>>,
        mechanisms: Vec<String>,
        units: Vec<(usize, usize, u64)>,
    ) -> Self {
        // The other process has another working directory.
        let file = std::path::absolute(&source.file)
            .map_or_else(|_| source.file.clone(), |it| it.display().to_string());
        let Source { name, text, .. } = source.clone();
        Self { version: VERSION.to_owned(), name, file, text, columns, conditions, mechanisms, units }
    }

    /// Returns the batch as JSON.
    pub fn to_json(&self) -> String {
        // Texts and numbers can always be written as JSON.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Parses a batch.
    ///
    /// # Errors
    /// An error if the text is not a batch.
    pub fn from_json(text: &str) -> io::Result<Self> {
        serde_json::from_str(text).map_err(io::Error::from)
    }

    /// Makes the runs in this thread, one after another, and writes their rows into a directory as a part, unless that
    /// part exists. Returns the number of runs. If `stop` becomes true before all runs are made, writes nothing and
    /// returns 0. Calls `check` after each run.
    ///
    /// # Errors
    /// Errors of `check`, a batch of another version, a scenario or mechanism that is unknown here, or a part that cannot be
    /// written.
    pub fn make(&self, directory: &Path, stop: &AtomicBool, check: Check) -> io::Result<usize> {
        check_version("sweep", &self.version).map_err(io::Error::other)?;
        let source = Source { name: self.name.clone(), file: self.file.clone(), text: self.text.clone() };
        let wrong = |error: ScenarioError| io::Error::other(error.to_string());
        // The text travels with the batch, so the other process needs no scenario file. Files that it names are read here.
        let template = source.template().map_err(wrong)?;
        let conditions =
            self.conditions.iter().map(|settings| Condition::read(&template, settings.clone()).map(Arc::new));
        let conditions: Vec<_> = conditions.collect::<Result<_, _>>().map_err(wrong)?;
        let contenders = self.mechanisms.iter().map(|label| Contender::parse(label));
        let contenders: Vec<_> = contenders.collect::<Result<_, _>>().map_err(io::Error::other)?;
        let mut units = Vec::new();
        for &(condition, contender, seed) in &self.units {
            // The indices come from a text, which need not have been made by `Plan::batch`.
            let (Some(condition), Some(contender)) = (conditions.get(condition), contenders.get(contender))
            else {
                return Err(io::Error::other("this is not a batch of a sweep"));
            };
            units.push((Key::of(&condition.hash, &contender.label, seed), condition, contender, seed));
        }
        // A part is named by the hash of its keys, so this one was written before.
        if directory.join(part::name(units.iter().map(|(key, ..)| *key))).exists() {
            return Ok(units.len());
        }
        let mut rows = Vec::with_capacity(units.len());
        for (_, condition, contender, seed) in units {
            // Relaxed is enough: no other memory is read because of the flag.
            if stop.load(Ordering::Relaxed) {
                // A part with some of the units would have another name, and the batch would be made again beside it.
                return Ok(0);
            }
            rows.push(make(condition, contender, seed));
            check()?;
        }
        // Workers may write at the same time: a temporary name is random behind this prefix.
        part::write(directory, part::DRAFT, &self.columns, rows)
    }
}
