//! `sweep.json`: the version, the scenario and the plans of the parts in a directory.

use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::part::put;
use super::{Columns, Plan, Setting};
use crate::VERSION;

/// The name of the file.
const NAME: &str = "sweep.json";

/// The version, the scenario and the columns shared by all parts of a directory, and the plans that were started there.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SweepManifest {
    /// The version that made all parts.
    version: String,
    /// The scenario's name.
    scenario: String,
    /// The hash of the scenario without the settings of any condition.
    scenario_hash: String,
    /// The text of the scenario's file.
    text: String,
    pub(super) columns: Columns,
    plans: Vec<BegunPlan>,
}

/// A plan that was started in the directory.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct BegunPlan {
    mechanisms: Vec<String>,
    first_seed: u64,
    seeds: u32,
    conditions: Vec<Vec<Setting>>,
}

impl SweepManifest {
    /// Adds a plan to the manifest of a directory, which the first plan creates. Returns the manifest. `has_parts` says
    /// whether the directory has parts, and `draft` is the prefix of temporary files.
    ///
    /// # Errors
    /// Errors of the file, and one line if the directory belongs to another version or scenario, or has other columns.
    pub(super) fn begin(directory: &Path, plan: &Plan, has_parts: bool, draft: &str) -> io::Result<Self> {
        let path = directory.join(NAME);
        let new = BegunPlan {
            mechanisms: plan.contenders.iter().map(|contender| contender.label.clone()).collect(),
            first_seed: plan.seeds.0,
            seeds: plan.seeds.1,
            conditions: plan.conditions.iter().map(|condition| condition.settings.clone()).collect(),
        };
        let mut manifest = match std::fs::read_to_string(&path) {
            // The error quotes nothing of the file, which may be any file of that name.
            Ok(text) => serde_json::from_str(&text).map_err(|_| {
                io::Error::other(format!(
                    "{NAME} does not describe a sweep: name another directory with --to"
                ))
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound && has_parts => {
                // Without the file, the parts may be of another version or scenario.
                return Err(io::Error::other(format!("there are parts but no {NAME}: copy it beside them")));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self {
                version: VERSION.to_owned(),
                scenario: plan.base.name.clone(),
                scenario_hash: plan.base.hash(),
                text: plan.source.text.clone(),
                columns: plan.columns.clone(),
                plans: Vec::new(),
            },
            Err(error) => return Err(error),
        };
        manifest
            .check(plan)
            .map_err(|why| io::Error::other(format!("{why}: name another directory with --to")))?;
        // A sweep that is continued has its plan already, and the file stays as it is.
        if !manifest.plans.contains(&new) {
            // A new manifest always passes: it has the version and the columns of this plan.
            manifest.plans.push(new);
            let text = serde_json::to_string(&manifest)?;
            put(directory, draft, NAME, |out| writeln!(out, "{text}"))?;
        }
        Ok(manifest)
    }

    /// Checks that the rows of a plan can be added to the rows in the directory.
    fn check(&self, plan: &Plan) -> Result<(), String> {
        // First, because another version may give the same scenario another hash.
        if self.version != VERSION {
            return Err(format!(
                "its sweep was begun with coapace {}, and this is {VERSION}, whose runs may differ",
                self.version
            ));
        }
        if self.scenario != plan.base.name {
            return Err(format!("its sweep is of the scenario {}, not of {}", self.scenario, plan.base.name));
        }
        if self.scenario_hash != plan.base.hash() {
            return Err(format!("the scenario {} has changed since its sweep was begun", self.scenario));
        }
        self.columns.take(&plan.columns)
    }
}
