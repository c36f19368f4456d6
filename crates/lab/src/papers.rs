//! Published experiments: their figures as data, run by the same means as everything else.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use crate::contender::{Contender, TCP};
use crate::experiment::Trial;
use crate::results::{CellResult, Published};
use crate::run::Observe;
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

    fn rows(&self) -> Result<Vec<Row>, String> {
        csv::Reader::from_reader(self.published.as_bytes())
            .into_deserialize()
            .map(|row| row.map_err(|error| format!("papers/{}/published.csv: {error}", self.key)))
            .collect()
    }

    /// One trial for each published figure, with as many repetitions as the paper made, or `quick`ly fewer.
    ///
    /// # Errors
    /// One line that says what is wrong with its folder.
    pub fn trials(&self, quick: bool) -> Result<Vec<Trial>, String> {
        let source = self.source()?;
        let trial = |row: Row| {
            let scenario =
                Scenario::load(&source.scenario, &row.settings()).map_err(|error| error.to_string())?;
            Ok(Trial {
                contender: Contender::parse(row.mechanism_in(&source)?)?,
                seeds: if quick { source.quick_seeds } else { scenario.defaults.seeds },
                scenario: Arc::new(scenario),
                published: Some(row.published(&source)),
                observe: Observe::Series,
            })
        };
        let named = |error: String| format!("papers/{}: {error}", self.key);
        self.rows()?.into_iter().map(|row| trial(row).map_err(named)).collect()
    }
}

impl Row {
    /// The knobs of the scenario, set as for this figure.
    fn settings(&self) -> Vec<(String, String)> {
        let settings = [
            ("workload", self.workload.clone()),
            ("clients", self.clients.to_string()),
            ("buffer", self.buffer_bytes.to_string()),
            ("errors", self.link_errors.clone()),
        ];
        settings.map(|(key, value)| (key.to_owned(), value)).into()
    }

    /// The mechanism as it is named here.
    fn mechanism_in<'a>(&self, source: &'a Source) -> Result<&'a str, String> {
        let mechanism = source.mechanisms.get(&self.mechanism).map(String::as_str);
        mechanism.ok_or_else(|| format!("source.toml names no mechanism for the row `{}`", self.mechanism))
    }

    fn published(&self, source: &Source) -> Published {
        Published { median_fct_s: self.median_fct_s, source: format!("{}, {}", source.key, source.figure) }
    }
}

/// What any paper published for this mechanism in a scenario that runs alike.
pub fn published_for(scenario: &Scenario, mechanism: &str) -> Option<Published> {
    PAPERS.iter().find_map(|paper| {
        let source = paper.source().ok().filter(|source| source.scenario == scenario.name)?;
        let rows = paper.rows().ok()?;
        let row = rows.iter().find(|row| {
            let knob = |(knob, value): &(String, String)| scenario.knob(knob) == Some(value);
            row.mechanism_in(&source) == Ok(mechanism)
                && row.settings().iter().all(knob)
                // A key beside the knobs may have been changed.
                && Scenario::load(&source.scenario, &row.settings()).is_ok_and(|same| same.hash() == scenario.hash())
        })?;
        Some(row.published(&source))
    })
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
        let tcp = |result: &&CellResult| result.cell.mechanism == TCP;
        format!(
            "{} published figures: {}; UDP: {}; TCP: {}",
            self.key,
            share(0.05, &|_| true),
            share(0.12, &|result| !tcp(result)),
            share(0.15, &tcp),
        )
    }
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

    #[test]
    fn a_figure_is_found_for_the_scenario_it_was_published_for_and_for_no_other() {
        let load = |extra: &[(&str, &str)]| {
            let base = [("clients", "100"), ("buffer", "2500")];
            let settings: Vec<_> = base
                .iter()
                .chain(extra)
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect();
            Scenario::load("nb-iot", &settings).unwrap()
        };
        let figure =
            |scenario: &Scenario, mechanism| published_for(scenario, mechanism).map(|it| it.median_fct_s);
        assert_eq!(figure(&load(&[]), "default"), Some(101.6));
        assert_eq!(figure(&load(&[("workload", "random")]), "tcp"), Some(145.32));
        assert_eq!(figure(&load(&[]), "linux-rto"), None);
        assert_eq!(figure(&load(&[("network.up.radio.delay", "201 ms")]), "default"), None);
        assert_eq!(figure(&load(&[("clients", "101")]), "default"), None);
    }
}
