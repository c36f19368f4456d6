//! Published experiments: their figures, orders and ratios as data, run by the same means as everything else.

mod experiment;
mod figures;
mod source;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

pub use self::source::Source;
use crate::contender::{Contender, TCP};
use crate::experiment::Trial;
use crate::results::{CellResult, Nearness, Published, judged, nearness, tally, verdicts};
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
    Paper {
        key: "betzler2015",
        source: include_str!("../../../papers/betzler2015/source.toml"),
        published: include_str!("../../../papers/betzler2015/published.csv"),
    },
    Paper {
        key: "ancillotti2018",
        source: include_str!("../../../papers/ancillotti2018/source.toml"),
        published: "",
    },
    Paper {
        key: "rathod2022",
        source: include_str!("../../../papers/rathod2022/source.toml"),
        published: include_str!("../../../papers/rathod2022/published.csv"),
    },
];

/// What was published of one mechanism under one condition.
#[derive(Clone, Debug)]
struct Claim {
    /// The name of the scenario, and what is set in it.
    scenario: String,
    settings: Vec<(String, String)>,
    /// As it is named here.
    mechanism: String,
    published: Published,
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

    /// What is less when it has to be quick, in words: `2 seeds, duration 120 s instead of 600 s`.
    ///
    /// # Errors
    /// One line that says what is wrong with its folder.
    pub fn quick(&self) -> Result<String, String> {
        let source = self.source()?;
        let claims = self.claims(&source)?;
        source.quick_words(&claims).map_err(|error| format!("papers/{}: {error}", self.key))
    }

    /// One trial for each mechanism under each condition of which something was published, with as many repetitions as
    /// the paper made, or `quick`ly fewer and shorter; and under each condition one for each of the `others`, for comparison.
    ///
    /// # Errors
    /// One line that says what is wrong with its folder, or which of the others does not fit.
    pub fn trials(&self, quick: bool, others: &[Contender]) -> Result<Vec<Trial>, String> {
        let source = self.source()?;
        let mut places = BTreeMap::new();
        let mut trials: Vec<(String, Trial)> = Vec::new();
        let named = |error: String| format!("papers/{}: {error}", self.key);
        let claims = self.claims(&source)?;
        let claims = if quick { source.shortened(claims).map_err(named)? } else { claims };
        for Claim { scenario, settings, mechanism, published } in claims {
            let scenario = Scenario::load(&scenario, &settings).map_err(|error| named(error.to_string()))?;
            let hash = scenario.hash();
            match places.entry((hash.clone(), mechanism)) {
                Entry::Occupied(place) => {
                    let (_, trial): &mut (_, Trial) = &mut trials[*place.get()];
                    let known = trial.published.get_or_insert_default();
                    if let Some(metric) =
                        published.figures.keys().find(|metric| known.get(**metric).is_some())
                    {
                        let place = format!("{} in {}", trial.contender.label, trial.scenario.name);
                        return Err(named(format!("two figures are published of the {metric} of {place}")));
                    }
                    known.extend(published);
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
        let plain = |result: &&CellResult| {
            result.published.as_ref().is_some_and(|published| published.plain().next().is_some())
        };
        let compared: Vec<_> = results.iter().filter(plain).collect();
        let (judged, verdicts) = (judged(results), verdicts(results));
        let mut lines = Vec::new();
        if !compared.is_empty() {
            lines.push(format!("{} published figures: {}", self.key, near(&compared)));
        }
        lines.extend(
            nearness(&judged).iter().map(|table: &Nearness| format!("{} {}", self.key, table.words())),
        );
        if !verdicts.is_empty() {
            lines.push(format!("{} published orders: {}", self.key, tally(&verdicts)));
        }
        lines.join("\n")
    }
}

/// How many of these results are near what was published; those of UDP and of TCP apart if there are both.
fn near(results: &[&CellResult]) -> String {
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
        let source = paper.source().ok()?;
        let claims = paper.claims(&source).ok()?.into_iter().filter(|claim| {
            let knob = |(knob, value): &(String, String)| scenario.knob(knob).is_none_or(|own| own == value);
            claim.mechanism == mechanism
                && claim.scenario == scenario.name
                && claim.settings.iter().all(knob)
                // A key beside the knobs may have been changed.
                && Scenario::load(&claim.scenario, &claim.settings).is_ok_and(|same| same.hash() == scenario.hash())
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
                [Order {
                    metric: Metric::Throughput,
                    relation,
                    times: None,
                    than: than.to_owned(),
                    why: String::new(),
                }]
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
            // A quick run may be a shorter one, of which nothing is published.
            for trial in paper.trials(false, &[]).unwrap().iter().step_by(7) {
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
    fn rows_and_experiments_name_their_scenario_or_have_that_of_the_paper() {
        let experiments = "[[experiments]]\nscenario = 'lte-m'\norders = { throughput = 'ours > plain' }\n\
                           [[experiments]]\norders = { throughput = 'ours > plain' }";
        let csv = "scenario,loss,mechanism,throughput\nnb-iot,,ours,9\n,4 %,ours,650\n";
        let trials = paper(experiments, csv).trials(false, &[]).unwrap();
        let names: Vec<_> = trials.iter().map(|trial| trial.scenario.name.as_str()).collect();
        assert_eq!(names, ["nb-iot", "lossy-switch", "lte-m", "lte-m", "lossy-switch", "lossy-switch"]);
        assert_eq!(trials[0].published.as_ref().unwrap().get(Metric::Throughput), Some(9.0));
    }

    #[test]
    fn claims_are_orders_and_ratios_with_a_reason_where_one_is_given() {
        let experiment = "[[experiments]]\norders = { jain = 'plain > ours' }\nclaims = [\n\
                          { metric = 'throughput', says = 'ours >= 2.5 plain' },\n\
                          { metric = 'mean_fct_s', says = 'ours = 0.6875 plain', why = 'w' }]";
        let trials = paper(experiment, "").trials(false, &[]).unwrap();
        let orders: Vec<_> = trials.iter().map(|trial| &trial.published.as_ref().unwrap().orders).collect();
        assert_eq!((trials.len(), orders[0][0].than.as_str()), (2, "default"));
        let [at_least, ratio] = &orders[0][..] else { panic!("{orders:?}") };
        assert_eq!(at_least.words(), "≥ 2.5 default");
        assert_eq!((ratio.words().as_str(), ratio.why.as_str()), ("= 0.6875 default", "w"));
    }

    #[test]
    fn a_figure_of_a_table_is_judged_by_its_factor_and_a_quick_one_by_that_of_quick_runs() {
        let tables = "[tables.3]\ntitle = 'Table 3'\nfactor = 1.5\nquick_factor = 2\nwhy = 'w'\n";
        let paper = paper(tables, "table,loss,mechanism,throughput\n3,4 %,ours,650\n,4 %,plain,190\n");
        for (quick, factor) in [(false, 1.5), (true, 2.0)] {
            let trials = paper.trials(quick, &[]).unwrap();
            let published: Vec<_> = trials.iter().filter_map(|trial| trial.published.as_ref()).collect();
            assert!((published[0].tables[&Metric::Throughput].factor - factor).abs() < 1e-12);
            assert_eq!(published[0].plain().count(), 0);
            assert_eq!(published[1].plain().collect::<Vec<_>>(), [Metric::Throughput]);
        }
    }

    #[test]
    fn a_quick_run_is_shortened_and_says_by_how_much() {
        let text = "[quick.lossy-switch]\n'workload.duration' = '30 s'\nloss = '4 %'\n\
                    [tables.3]\ntitle = 'Table 3'\nfactor = 1.5\nquick_factor = 2\n";
        let paper = paper(text, "table,loss,mechanism,throughput\n3,8 %,ours,650\n3,12 %,plain,190\n");
        let words = paper.quick().unwrap();
        assert_eq!(
            words,
            "2 seeds, loss 4 % instead of 12 % or 8 %, workload.duration 30 s instead of 140 s, \
             a factor of 2 instead of 1.5 for Table 3"
        );
        let trials = paper.trials(true, &[]).unwrap();
        assert!(trials.iter().all(|trial| trial.scenario.knob("loss") == Some("4 %") && trial.seeds == 2));
        assert_eq!(paper.trials(false, &[]).unwrap()[0].scenario.knob("loss"), Some("8 %"));
        let raitahila = Paper::find("raitahila2019").unwrap();
        assert_eq!(raitahila.quick().unwrap(), "2 seeds", "nothing else is less");
    }

    #[test]
    fn the_summary_has_a_line_for_each_table() {
        let tables = "[tables.3]\ntitle = 'Table 3'\nfactor = 1.5\nwhy = 'other radios'\n";
        let paper = paper(tables, "table,loss,mechanism,throughput\n3,4 %,ours,650\n");
        let results = crate::experiment::conduct(&paper.trials(true, &[]).unwrap(), 1, &|| ());
        let factor = judged(&results)[0].figure.factor().unwrap();
        assert!(factor < 1.5, "{factor}");
        let summary = paper.summary(&results);
        assert!(summary.starts_with("k Table 3: 1 of 1 within a factor of 1.5, largest 1.0"), "{summary}");
        assert!(summary.ends_with("; other radios"), "{summary}");
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
            (
                "[[experiments]]\nclaims = [{ metric = 'jain', says = 'ours = plain' }]",
                "",
                "papers/k/source.toml: the order `ours = plain` lacks the number after its `=`",
            ),
            (
                "[tables.3]\ntitle = 'T'\nfactor = 0.5",
                "",
                "papers/k/source.toml: the factor 0.5 of `T` is not 1 or more",
            ),
            (
                "[tables.3]\ntitle = 'T'\nfactor = 2\nquick_factor = 1.5",
                "",
                "papers/k/source.toml: the quick_factor 1.5 of `T` is less than its factor 2",
            ),
            ("", "table,mechanism,jain\n3,ours,1\n", "line 2: source.toml has no table `3`"),
            (
                "[quick.nb-iot]\nclients = '1'",
                "loss,mechanism,jain\n4 %,ours,1\n",
                "papers/k: source.toml shortens `nb-iot`, a scenario that nothing is published of",
            ),
            (
                "",
                "loss,mechanism,jain\n4 %,ours,1\n4 %,ours,0.9\n",
                "papers/k: two figures are published of the jain of cocoa-i in lossy-switch",
            ),
            (
                "[[experiments]]\nset = {}",
                "",
                "papers/k: source.toml has an experiment with neither orders nor claims",
            ),
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
