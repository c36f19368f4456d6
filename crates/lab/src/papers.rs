//! Published experiments: their figures and orders as data, run by the same means as everything else.

mod experiment;
mod figures;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use serde::Deserialize;

use self::experiment::Experiment;
use crate::contender::{Contender, TCP};
use crate::experiment::Trial;
use crate::results::{CellResult, Published, tally, verdicts};
use crate::run::Observe;
use crate::scenario::Scenario;

/// A paper that can be reproduced.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// Its name on the command line.
    pub key: &'static str,
    source: &'static str,
    /// Its figures as CSV; empty if it publishes orders alone.
    published: &'static str,
}

/// Every paper there is: a folder under `papers/` and an entry here.
pub const PAPERS: &[Paper] = &[
    Paper {
        key: "raitahila2019",
        source: include_str!("../../../papers/raitahila2019/source.toml"),
        published: include_str!("../../../papers/raitahila2019/published.csv"),
    },
    Paper { key: "meng2017", source: include_str!("../../../papers/meng2017/source.toml"), published: "" },
];

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
    /// What was published.
    pub figure: String,
    /// The scenario that the cells are variations of.
    pub scenario: String,
    /// Repetitions when it has to be quick.
    pub quick_seeds: u32,
    /// From the rows of the paper to mechanisms as they are named here.
    pub mechanisms: BTreeMap<String, String>,
    /// From columns of `published.csv` to the knobs that they set.
    #[serde(default)]
    columns: BTreeMap<String, String>,
    #[serde(default)]
    experiments: Vec<Experiment>,
}

/// What was published of one mechanism under one condition.
#[derive(Clone, Debug)]
struct Claim {
    settings: Vec<(String, String)>,
    /// As it is named here.
    mechanism: String,
    published: Published,
}

impl Source {
    /// The mechanism of a row of the paper as it is named here.
    fn mechanism(&self, row: &str) -> Result<&str, String> {
        let mechanism = self.mechanisms.get(row).map(String::as_str);
        mechanism.ok_or_else(|| format!("source.toml names no mechanism for the row `{row}`"))
    }

    /// Where things are printed.
    fn place(&self) -> String {
        format!("{}, {}", self.key, self.figure)
    }
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
        toml::from_str(self.source)
            .map_err(|error| format!("papers/{}/source.toml: {}", self.key, error.message()))
    }

    /// All that was published: figures in the order of their file, then orders.
    fn claims(&self, source: &Source) -> Result<Vec<Claim>, String> {
        let mut claims = figures::read(self.published, source)
            .map_err(|error| format!("papers/{}/published.csv: {error}", self.key))?;
        for experiment in &source.experiments {
            claims
                .extend(experiment.claims(source).map_err(|error| format!("papers/{}: {error}", self.key))?);
        }
        Ok(claims)
    }

    /// One trial for each mechanism under each condition of which something was published, with as many repetitions as
    /// the paper made, or `quick`ly fewer; and under each condition one for each of the `others`, for comparison.
    ///
    /// # Errors
    /// One line that says what is wrong with its folder, or which of the others does not fit.
    pub fn trials(&self, quick: bool, others: &[Contender]) -> Result<Vec<Trial>, String> {
        let source = self.source()?;
        let mut places = BTreeMap::new();
        let mut trials: Vec<(String, Trial)> = Vec::new();
        for Claim { settings, mechanism, published } in self.claims(&source)? {
            let named = |error: String| format!("papers/{}: {error}", self.key);
            let scenario =
                Scenario::load(&source.scenario, &settings).map_err(|error| named(error.to_string()))?;
            let hash = scenario.hash();
            match places.entry((hash.clone(), mechanism)) {
                Entry::Occupied(place) => {
                    let (_, trial): &mut (_, Trial) = &mut trials[*place.get()];
                    trial.published.get_or_insert_default().extend(published);
                }
                Entry::Vacant(place) => {
                    let trial = Trial {
                        contender: Contender::parse(&place.key().1).map_err(named)?,
                        seeds: if quick { source.quick_seeds } else { scenario.defaults.seeds },
                        scenario: Arc::new(scenario),
                        // Where only an order counts there are many conditions, and nobody looks into each.
                        observe: if published.figures.is_empty() { Observe::Totals } else { Observe::Series },
                        published: Some(published),
                    };
                    place.insert(trials.len());
                    trials.push((hash, trial));
                }
            }
        }
        let mut all = Vec::new();
        for condition in trials.chunk_by(|(a, _), (b, _)| a == b) {
            all.extend(condition.iter().map(|(_, trial)| trial.clone()));
            let (hash, alike) = &condition[0];
            for other in others {
                if let Entry::Vacant(place) = places.entry((hash.clone(), other.label.clone())) {
                    other.fits(&alike.scenario)?;
                    place.insert(all.len());
                    all.push(Trial { contender: other.clone(), published: None, ..alike.clone() });
                }
            }
        }
        Ok(all)
    }

    /// How far the measured figures and orders agree with the published ones, in a few lines.
    pub fn summary(&self, results: &[CellResult]) -> String {
        let compared: Vec<_> = results.iter().filter(|result| !result.compared().is_empty()).collect();
        let verdicts = verdicts(results);
        let mut lines = Vec::new();
        if !compared.is_empty() {
            lines.push(format!("{} published figures: {}", self.key, nearness(&compared)));
        }
        if !verdicts.is_empty() {
            lines.push(format!("{} published orders: {}", self.key, tally(&verdicts)));
        }
        lines.join("\n")
    }
}

/// How many of these results are near what was published; those of UDP and of TCP apart if there are both.
fn nearness(results: &[&CellResult]) -> String {
    let share = |bound: f64, of: &dyn Fn(&CellResult) -> bool| {
        let errors =
            results.iter().filter(|result| of(result)).map(|result| result.relative_error().map(f64::abs));
        let (within, all) = errors.fold((0, 0), |(within, all), error| {
            (within + usize::from(error.is_some_and(|error| error <= bound)), all + 1)
        });
        format!("{within} of {all} within {:.0} %", bound * 100.0)
    };
    let tcp = |result: &CellResult| result.cell.mechanism == TCP;
    let all = share(0.05, &|_| true);
    if !results.iter().any(|result| tcp(result)) {
        return all;
    }
    format!("{all}; UDP: {}; TCP: {}", share(0.12, &|result| !tcp(result)), share(0.15, &tcp))
}

/// What any paper published for this mechanism in a scenario that runs alike.
pub fn published_for(scenario: &Scenario, mechanism: &str) -> Option<Published> {
    PAPERS.iter().find_map(|paper| {
        let source = paper.source().ok().filter(|source| source.scenario == scenario.name)?;
        let claims = paper.claims(&source).ok()?.into_iter().filter(|claim| {
            let knob = |(knob, value): &(String, String)| scenario.knob(knob) == Some(value);
            claim.mechanism == mechanism
                && claim.settings.iter().all(knob)
                // A key beside the knobs may have been changed.
                && Scenario::load(&source.scenario, &claim.settings).is_ok_and(|same| same.hash() == scenario.hash())
        });
        claims.map(|claim| claim.published).reduce(|mut all, published| {
            all.extend(published);
            all
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{Metric, Order, Relation};

    #[test]
    fn every_published_figure_has_its_trial() {
        let paper = Paper::find("raitahila2019").unwrap();
        let trials = paper.trials(false, &[]).unwrap();
        assert_eq!(trials.len(), paper.published.lines().count() - 1);
        assert!(trials.iter().all(|trial| trial.published.as_ref().unwrap().figures.len() == 1));
    }

    #[test]
    fn every_order_of_an_experiment_has_its_trials() {
        let trials = Paper::find("meng2017").unwrap().trials(false, &[]).unwrap();
        // 9 numbers of clients, 7 losses, 10 delays; one condition is of the losses and of the delays.
        assert_eq!(trials.len(), 25 * 3);
        for condition in trials.chunks(3) {
            let claims: Vec<_> = (condition.iter())
                .map(|trial| (trial.contender.label.as_str(), &trial.published.as_ref().unwrap().orders[..]))
                .collect();
            let order = |relation, than: &str| {
                [Order { metric: Metric::Throughput, relation, than: than.to_owned() }]
            };
            let cocoa = order(Relation::Above, "default");
            let cocoa_i = order(Relation::NotBelow, "cocoa");
            assert_eq!(claims, [("default", &[][..]), ("cocoa", &cocoa), ("cocoa-i", &cocoa_i)]);
        }
    }

    #[test]
    fn whatever_is_published_is_found_for_a_scenario_that_runs_alike() {
        for paper in PAPERS {
            assert_eq!(paper.source().unwrap().key, paper.key);
            for trial in paper.trials(true, &[]).unwrap().iter().step_by(7) {
                assert_eq!(published_for(&trial.scenario, &trial.contender.label), trial.published);
            }
        }
    }

    #[test]
    fn others_are_run_under_every_condition_once() {
        let others = ["fasor", "cocoa"].map(|label| Contender::parse(label).unwrap());
        let trials = Paper::find("meng2017").unwrap().trials(true, &others).unwrap();
        assert_eq!(trials.len(), 25 * 4, "cocoa is the paper's own");
        for condition in trials.chunks(4) {
            assert_eq!((condition[3].contender.label.as_str(), &condition[3].published), ("fasor", &None));
            assert_eq!(condition[3].scenario, condition[0].scenario);
        }
        let mix = Contender::parse("cocoa*100+default").unwrap();
        assert!(Paper::find("meng2017").unwrap().trials(true, &[mix]).unwrap_err().contains("clients"));
    }

    /// A paper about `lossy-switch` with these experiments and figures.
    fn paper(experiments: &str, published: &'static str) -> Paper {
        let head = "key = 'k'\ntitle = 't'\nsource = 's'\nfigure = 'f'\nscenario = 'lossy-switch'\nquick_seeds = 2\n\
                    mechanisms = { ours = 'cocoa-i', plain = 'default' }\ncolumns = { loss = 'loss' }\n";
        let source = format!("{head}{experiments}").leak();
        Paper { key: "k", source, published }
    }

    #[test]
    fn a_figure_of_any_metric_can_be_published_and_some_can_be_missing() {
        let csv = "loss,mechanism,throughput,jain\n4 %,ours,650,\n4 %,plain,190,0.97\n";
        let trials = paper("", csv).trials(true, &[]).unwrap();
        let figures: Vec<_> = trials.iter().map(|trial| trial.published.clone().unwrap().figures).collect();
        assert_eq!(figures[0], BTreeMap::from([(Metric::Throughput, 650.0)]));
        assert_eq!(figures[1], BTreeMap::from([(Metric::Throughput, 190.0), (Metric::Jain, 0.97)]));
        assert_eq!(trials[0].scenario.knob("loss"), Some("4 %"));
    }

    #[test]
    fn figures_and_orders_of_one_cell_are_one_trial_and_sweeps_are_combined() {
        let experiment = "[[experiments]]\norders = { throughput = 'ours > plain' }\n\
                          sweep = { loss = ['4 %', '8 %'], clients = ['2', '60'] }";
        let trials =
            paper(experiment, "loss,mechanism,throughput\n4 %,ours,650\n").trials(true, &[]).unwrap();
        assert_eq!(trials.len(), 8);
        let published = trials[0].published.as_ref().unwrap();
        assert_eq!((published.figures.len(), published.orders.len()), (1, 1));
    }

    #[test]
    fn what_is_wrong_with_a_folder_is_told_with_its_place() {
        for (experiments, csv, told) in [
            (
                "",
                "loss,mechanism,troughput\n",
                "papers/k/published.csv: source.toml has no knob for the column `troughput`, and there is no metric",
            ),
            ("", "loss,throughput\n4 %,1\n", "papers/k/published.csv: there is no column `mechanism`"),
            (
                "",
                "loss,mechanism,jain\n4 %,ours,1\n4 %,ours,high\n",
                "papers/k/published.csv: line 3: the jain `high` is no number",
            ),
            ("", "loss,mechanism,jain\n4 %,ours,inf\n", "line 2: the jain `inf` is no number"),
            (
                "",
                "loss,mechanism,jain\n4 %,theirs,1\n",
                "line 2: source.toml names no mechanism for the row `theirs`",
            ),
            ("", "loss,mechanism,jain\n4 %,ours\n", "papers/k/published.csv: CSV error"),
            ("", "loss,mechanism,jain\n400 %,ours,1\n", "papers/k: --set loss=400 %: "),
            (
                "[[experiments]]\norders = { throughput = 'ours >' }",
                "",
                "papers/k/source.toml: the order `ours >` lacks a mechanism",
            ),
            (
                "[[experiments]]\norders = { speed = 'ours > plain' }",
                "",
                "papers/k/source.toml: there is no metric `speed`",
            ),
            (
                "[[experiments]]\norders = { jain = 'ours > theirs' }",
                "",
                "papers/k: source.toml names no mechanism for the row `theirs`",
            ),
            ("[[experiments]]\nset = {}", "", "papers/k/source.toml: missing field `orders`"),
        ] {
            let error = paper(experiments, csv).trials(true, &[]).unwrap_err();
            assert!(error.contains(told), "{error}");
            assert_eq!(error.lines().count(), 1, "{error}");
        }
    }

    #[test]
    fn the_thesis_repeats_runs_without_errors_20_times_and_runs_with_errors_40_times() {
        for trial in Paper::find("raitahila2019").unwrap().trials(false, &[]).unwrap() {
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
        let figure = |scenario: &Scenario, mechanism| {
            published_for(scenario, mechanism).and_then(|it| it.get(Metric::MedianFct))
        };
        assert_eq!(figure(&load(&[]), "default"), Some(101.6));
        assert_eq!(figure(&load(&[("workload", "random")]), "tcp"), Some(145.32));
        assert_eq!(figure(&load(&[]), "linux-rto"), None);
        assert_eq!(figure(&load(&[("network.up.radio.delay", "201 ms")]), "default"), None);
        assert_eq!(figure(&load(&[("clients", "101")]), "default"), None);
    }
}
