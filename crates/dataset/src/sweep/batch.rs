//! Units that another process makes.

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

/// Some units of a plan, with all that another process needs to make them. They become one part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Batch {
    version: String,
    name: String,
    file: String,
    text: String,
    columns: Columns,
    conditions: Vec<Vec<Setting>>,
    mechanisms: Vec<String>,
    /// The places of the condition and of the mechanism, and the seed.
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

    /// Returns the batch as text.
    pub fn to_json(&self) -> String {
        // Texts and numbers can always be written as JSON.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads a batch.
    ///
    /// # Errors
    /// Fails if the text is not a batch.
    pub fn from_json(text: &str) -> io::Result<Self> {
        serde_json::from_str(text).map_err(io::Error::from)
    }

    /// Makes the units in this thread, one after another, and writes them into a directory as a part, unless that part exists.
    /// Returns the number of its units. If `stop` becomes true before all are made, writes nothing and returns 0. Calls `check`
    /// after each run.
    ///
    /// # Errors
    /// Fails as `check` does, if the batch is of another version, if a scenario or a mechanism is unknown here, or if the part
    /// cannot be written.
    pub fn make(&self, directory: &Path, stop: &AtomicBool, check: Check) -> io::Result<usize> {
        check_version("sweep", &self.version).map_err(io::Error::other)?;
        let source = Source { name: self.name.clone(), file: self.file.clone(), text: self.text.clone() };
        let wrong = |error: ScenarioError| io::Error::other(error.to_string());
        let template = source.template().map_err(wrong)?;
        let conditions =
            self.conditions.iter().map(|settings| Condition::read(&template, settings.clone()).map(Arc::new));
        let conditions: Vec<_> = conditions.collect::<Result<_, _>>().map_err(wrong)?;
        let contenders = self.mechanisms.iter().map(|label| Contender::parse(label));
        let contenders: Vec<_> = contenders.collect::<Result<_, _>>().map_err(io::Error::other)?;
        let mut units = Vec::new();
        for &(condition, contender, seed) in &self.units {
            let (Some(condition), Some(contender)) = (conditions.get(condition), contenders.get(contender))
            else {
                return Err(io::Error::other("this is no batch of a sweep"));
            };
            units.push((Key::of(&condition.hash, &contender.label, seed), condition, contender, seed));
        }
        // A part is named by the hash of its keys, so this one was written before.
        if directory.join(part::name(units.iter().map(|(key, ..)| *key))).exists() {
            return Ok(units.len());
        }
        let mut rows = Vec::with_capacity(units.len());
        for (_, condition, contender, seed) in units {
            if stop.load(Ordering::Relaxed) {
                return Ok(0);
            }
            rows.push(make(condition, contender, seed));
            check()?;
        }
        part::write(directory, part::DRAFT, &self.columns, rows)
    }
}
