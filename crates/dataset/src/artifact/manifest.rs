//! The manifest of an artefact: the runs, the program that made them, and the hash of every run.

use std::collections::BTreeMap;

use coapace_lab::results::CellResult;
use serde::{Deserialize, Serialize};

/// The content of `manifest.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of this file's keys: [`FORMAT`](Self::FORMAT).
    pub format: u32,
    /// The subject of the study.
    pub title: String,
    /// The author, title, venue and year of the paper.
    pub source: String,
    /// The command line as it was typed.
    pub command: String,
    /// The arguments that determine the runs.
    pub request: ReproductionRequest,
    /// The program that made the runs.
    pub program: ProgramVersion,
    /// The time of writing, as in `2026-11-23T10:00:00Z`.
    pub written: String,
    /// The cells, in the order of the rows of the results.
    pub cells: Vec<ManifestCell>,
}

/// The arguments of `coapace reproduce` that determine its runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReproductionRequest {
    /// The key of the paper.
    pub paper: String,
    /// Whether the runs were made with `--quick`.
    pub quick: bool,
    /// The mechanisms run in addition to the paper's.
    pub mechanisms: Vec<String>,
    /// The seeds of every cell, as in `1-20`; `None` for the seeds in the paper's file.
    pub seeds: Option<String>,
}

/// The program that made the runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramVersion {
    /// The version, as in `0.1.0`.
    pub version: String,
    /// The commit of the build; it ends with `-modified` if files had changed since.
    pub commit: String,
}

/// A cell, a scenario and a mechanism, with the hash of each of its runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestCell {
    /// The name of the scenario.
    pub scenario: String,
    /// The hash of the scenario with the values of its knobs.
    pub scenario_hash: String,
    /// The values of the scenario's knobs.
    pub knobs: BTreeMap<String, String>,
    /// The mechanism.
    pub mechanism: String,
    /// For the seed of each run, the hash over all events of this run.
    pub trace_hashes: BTreeMap<u64, String>,
}

impl Manifest {
    /// The version of the manifest's keys that this program writes and reads.
    pub const FORMAT: u32 = 1;

    /// Reads a manifest.
    ///
    /// # Errors
    /// Returns one line that names the error in `text`.
    pub fn read(text: &str) -> Result<Self, String> {
        /// The key `format`, which every version of a manifest has.
        #[derive(Deserialize)]
        struct Versioned {
            format: u32,
        }
        // The version is read first: another version has keys that would be reported as unknown.
        let Versioned { format } = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if format != Self::FORMAT {
            return Err(format!("its format is {format}, and this program reads {}", Self::FORMAT));
        }
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// Returns the number of runs.
    pub fn runs(&self) -> usize {
        self.cells.iter().map(|cell| cell.trace_hashes.len()).sum()
    }
}

impl ManifestCell {
    /// Makes the record of a cell, with the hash of every run in `result`.
    pub fn of(result: &CellResult) -> Self {
        let cell = &result.cell;
        Self {
            scenario: cell.scenario.clone(),
            scenario_hash: cell.scenario_hash.to_string(),
            knobs: cell.knobs.clone(),
            mechanism: cell.label().to_owned(),
            trace_hashes: result.runs.iter().map(|run| (run.seed, run.trace_hash.to_string())).collect(),
        }
    }

    /// Returns a description: the scenario with its knobs and its hash, and the mechanism.
    pub fn words(&self) -> String {
        let Self { scenario, scenario_hash, knobs, mechanism, .. } = self;
        let knobs: String = knobs.iter().flat_map(|(name, value)| [" ", name, "=", value]).collect();
        format!("{scenario}{knobs} (scenario {scenario_hash}), {mechanism}")
    }

    /// Returns the name of the scenario's files, without an extension.
    pub fn scenario_file(&self) -> String {
        // Conditions of one scenario differ in their knobs only, so the name alone would not be unique.
        format!("scenarios/{}-{}", self.scenario, self.scenario_hash)
    }
}

impl ProgramVersion {
    /// Returns a description: version and commit.
    pub fn words(&self) -> String {
        format!("{} ({})", self.version, self.commit)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use coapace_lab::experiment::{Trial, conduct};
    use coapace_run::contender::Contender;
    use coapace_scenario::Scenario;

    use super::*;

    /// Returns two cells of two runs each.
    pub(in crate::artifact) fn results() -> Vec<CellResult> {
        let settings = [("clients", "2"), ("workload.exchanges", "3")];
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let scenario = Arc::new(Scenario::load("nb-iot", &settings).unwrap());
        let trial = |name| Trial::of_totals(&scenario, Contender::parse(name).unwrap(), 2);
        conduct(&["default", "cocoa"].map(trial), 1, &|| ())
    }

    /// Returns the manifest of some results.
    pub(in crate::artifact) fn manifest(results: &[CellResult]) -> Manifest {
        Manifest {
            format: Manifest::FORMAT,
            title: "Congestion control on a slow link".to_owned(),
            source: "A. Author, A Paper, 2019".to_owned(),
            command: "coapace reproduce author2019 --quick --artifact a".to_owned(),
            request: ReproductionRequest {
                paper: "author2019".to_owned(),
                quick: true,
                mechanisms: vec!["ebb".to_owned()],
                seeds: None,
            },
            program: ProgramVersion { version: "0.1.0".to_owned(), commit: "c0ffee".to_owned() },
            written: "2026-11-23T10:00:00Z".to_owned(),
            cells: results.iter().map(ManifestCell::of).collect(),
        }
    }

    #[test]
    fn a_manifest_reads_back_as_written_and_another_format_is_refused() {
        let manifest = manifest(&results());
        assert_eq!(manifest.runs(), 4);
        let text = serde_json::to_string(&manifest).unwrap();
        assert_eq!(Manifest::read(&text), Ok(manifest));
        let other = text.replacen("\"format\":1", "\"format\":2", 1);
        assert_eq!(Manifest::read(&other).unwrap_err(), "its format is 2, and this program reads 1");
        assert!(Manifest::read("{}").unwrap_err().contains("format"));
        assert!(Manifest::read(&text[..text.len() / 2]).is_err());
    }
}
