//! Published experiments: their figures as data, run by the same means as everything else.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use crate::contender::Contender;
use crate::experiment::Trial;
use crate::results::{CellResult, Published};
use crate::scenario::Scenario;

/// A paper that can be reproduced.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// Its name on the command line.
    pub key: &'static str,
    source: &'static str,
    published: &'static str,
}

/// Every paper there is: a folder under `papers/` and a line here.
pub const PAPERS: &[Paper] = &[Paper {
    key: "raitahila2019",
    source: include_str!("../../../papers/raitahila2019/source.toml"),
    published: include_str!("../../../papers/raitahila2019/published.csv"),
}];

/// What `source.toml` says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The name of the folder.
    pub key: String,
    /// What was studied.
    pub title: String,
    /// Author, title, where and when.
    pub source: String,
    /// What the published figures are.
    pub figure: String,
    /// The scenario that the cells are variations of.
    pub scenario: String,
    /// Repetitions when it has to be quick.
    pub quick_seeds: u32,
    /// From the rows of the paper to mechanisms as they are named here.
    pub mechanisms: BTreeMap<String, String>,
}

/// One published figure.
#[derive(Clone, Debug, Deserialize)]
struct Row {
    workload: String,
    clients: u32,
    buffer_bytes: u64,
    link_errors: String,
    mechanism: String,
    median_fct_s: f64,
}

impl Paper {
    /// The paper of this key.
    pub fn find(key: &str) -> Option<&'static Self> {
        PAPERS.iter().find(|paper| paper.key == key)
    }

    /// What is known of the paper.
    ///
    /// # Errors
    /// One line that says what is wrong with its folder.
    pub fn source(&self) -> Result<Source, String> {
        toml::from_str(self.source).map_err(|error| format!("papers/{}/source.toml: {error}", self.key))
    }

    /// One trial for each published figure, with as many repetitions as the paper made, or `quick`ly fewer.
    ///
    /// # Errors
    /// One line that says what is wrong with its folder.
    pub fn trials(&self, quick: bool) -> Result<Vec<Trial>, String> {
        let source = self.source()?;
        let rows = csv::Reader::from_reader(self.published.as_bytes()).into_deserialize();
        rows.map(|row| {
            let row: Row = row.map_err(|error| format!("papers/{}/published.csv: {error}", self.key))?;
            trial(&source, &row, quick).map_err(|error| format!("papers/{}: {error}", self.key))
        })
        .collect()
    }
}

impl Paper {
    /// How near the measured figures are to the published ones, in a few lines.
    pub fn summary(&self, results: &[CellResult]) -> String {
        let share = |bound: f64, of: &dyn Fn(&&CellResult) -> bool| {
            let errors = results.iter().filter(of).map(|result| result.relative_error().map(f64::abs));
            let (within, all) = errors.fold((0, 0), |(within, all), error| {
                (within + usize::from(error.is_some_and(|error| error <= bound)), all + 1)
            });
            format!("{within} of {all} within {:.0} %", bound * 100.0)
        };
        let tcp = |result: &&CellResult| result.cell.mechanism == "tcp";
        format!(
            "{} published figures: {}; UDP: {}; TCP: {}",
            self.key,
            share(0.05, &|_| true),
            share(0.12, &|result| !tcp(result)),
            share(0.15, &tcp),
        )
    }
}

fn trial(source: &Source, row: &Row, quick: bool) -> Result<Trial, String> {
    let settings = [
        ("workload", row.workload.clone()),
        ("clients", row.clients.to_string()),
        ("buffer", row.buffer_bytes.to_string()),
        ("errors", row.link_errors.clone()),
    ]
    .map(|(key, value)| (key.to_owned(), value));
    let scenario = Scenario::load(&source.scenario, &settings).map_err(|error| error.to_string())?;
    let mechanism = source
        .mechanisms
        .get(&row.mechanism)
        .ok_or_else(|| format!("source.toml names no mechanism for the row `{}`", row.mechanism))?;
    let published =
        Published { median_fct_s: row.median_fct_s, source: format!("{}, {}", source.key, source.figure) };
    Ok(Trial {
        contender: Contender::parse(mechanism)?,
        seeds: if quick { source.quick_seeds } else { scenario.defaults.seeds },
        scenario: Arc::new(scenario),
        published: Some(published),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_figure_has_its_trial() {
        for paper in PAPERS {
            assert_eq!(paper.source().unwrap().key, paper.key);
            let trials = paper.trials(false).unwrap();
            assert_eq!(trials.len(), paper.published.lines().count() - 1);
        }
    }

    #[test]
    fn the_thesis_repeats_runs_without_errors_20_times_and_runs_with_errors_40_times() {
        for trial in Paper::find("raitahila2019").unwrap().trials(false).unwrap() {
            let errors = trial.scenario.knob_values().iter().find(|(name, _)| name == "errors").unwrap();
            assert_eq!(trial.seeds, if errors.1 == "none" { 20 } else { 40 });
        }
    }
}
