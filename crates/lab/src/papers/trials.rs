//! The trials that test the claims of a paper, simulated and live.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use coapace_scenario::Scenario;
use serde::Deserialize;

use super::claim::Claim;
use super::experiment::swept;
use super::values;
use super::{Paper, PaperSource, Published, References};
use crate::experiment::Trial;
use crate::lists::distinct;
use coapace_run::Observe;
use coapace_run::contender::Contender;

/// The name of a scenario, and its settings.
type TrialCondition = (String, Vec<(String, String)>);

/// A trial with the published results of its cell.
pub(super) struct ClaimedTrial {
    /// The hash of the trial's scenario.
    pub(super) hash: String,
    pub(super) trial: Trial,
    pub(super) published: Published,
}

/// Conditions and mechanisms for live runs, which are few because they take real time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LiveCells {
    /// The settings of the paper's scenario shared by all conditions.
    set: BTreeMap<String, String>,
    /// The values of each varied key. Every combination is a condition.
    #[serde(default)]
    sweep: BTreeMap<String, Vec<String>>,
    /// The mechanisms to run, by their names in the paper.
    mechanisms: Vec<String>,
    /// Further mechanisms to run, which are not in the paper.
    #[serde(default)]
    others: Vec<String>,
    /// The number of seeds.
    seeds: u32,
    /// The settings that shorten quick runs.
    #[serde(default)]
    quick: BTreeMap<String, String>,
}

impl Paper {
    /// Returns a trial for each mechanism under each condition with a claim of the paper. The trials have as many seeds as the
    /// paper's runs, or if `quick`, fewer seeds and shorter runs. Each condition also has a trial for each of the `others`. The
    /// published results are returned with the trials.
    ///
    /// # Errors
    /// Returns one line that describes the error in the folder, or names one of the `others` for which a condition has
    /// too few clients.
    pub fn trials(&self, quick: bool, others: &[Contender]) -> Result<(Vec<Trial>, References), String> {
        let source = self.source()?;
        let trials = self.trials_of(&source, self.claims_to_run(&source, quick)?, quick)?;
        let mut known: BTreeSet<_> =
            trials.iter().map(|own| (own.hash.clone(), own.trial.contender.label.clone())).collect();
        let (mut all, mut references) = (Vec::new(), References::default());
        // Claims about one condition need not follow each other. `known` keeps other mechanisms from being added twice.
        for condition in trials.chunk_by(|a, b| a.hash == b.hash) {
            for own in condition {
                references.add(&own.trial, Some(own.published.clone()));
                all.push(own.trial.clone());
            }
            let ClaimedTrial { hash, trial: alike, .. } = &condition[0];
            for other in others {
                if known.insert((hash.clone(), other.label.clone())) {
                    other.fits(&alike.scenario)?;
                    all.push(Trial { contender: other.clone(), ..alike.clone() });
                }
            }
        }
        Ok((all, references))
    }

    /// Returns a trial for each mechanism under each condition of live runs; with `quick`, shorter ones. `others` are run in
    /// addition. The results that any paper published for such a cell are returned with the trials.
    ///
    /// # Errors
    /// Returns one line if the paper has no cells for live runs, or describes the error in its folder.
    pub fn live_trials(&self, quick: bool, others: &[Contender]) -> Result<(Vec<Trial>, References), String> {
        let source = self.source()?;
        let live = source.live.as_ref().ok_or_else(|| {
            format!("the paper {} has no experiments that can run live; leave out --live", self.key)
        })?;
        let rows = live.mechanisms.iter().map(|row| source.mechanism(row).map(str::to_owned));
        let labels = rows.chain(live.others.iter().cloned().map(Ok)).collect::<Result<Vec<_>, _>>();
        let labels = labels.map_err(|error| self.wrong(&error))?;
        let known = labels.iter().map(|label| Contender::parse(label)).collect::<Result<Vec<_>, _>>();
        let mut contenders = known.map_err(|error| self.wrong(&error))?;
        // A mechanism that the paper has is not run twice.
        contenders.extend(others.iter().filter(|other| !labels.contains(&other.label)).cloned());
        let shorter = if quick { live.quick.clone() } else { BTreeMap::new() };
        let mut trials = Vec::new();
        for mut settings in swept(&live.set, &live.sweep) {
            settings.extend(shorter.clone());
            let scenario = Scenario::load(&source.scenario, &settings)
                .map_err(|error| self.wrong(&error.to_string()))?;
            let scenario = Arc::new(scenario);
            for contender in &contenders {
                contender.fits(&scenario)?;
                let seeds = if quick { 1 } else { live.seeds };
                trials.push(Trial::new(&scenario, contender.clone(), seeds));
            }
        }
        let references = References::of(&trials);
        Ok((trials, references))
    }

    /// Returns the scenario and the settings of every condition with a claim of the paper, each once.
    ///
    /// # Errors
    /// Returns one line that describes the error in the folder.
    pub fn conditions(&self) -> Result<Vec<TrialCondition>, String> {
        let claims = self.claims(&self.source()?)?;
        Ok(distinct(claims.into_iter().map(|claim| (claim.scenario, claim.settings))))
    }

    /// Returns all claims: values in the sequence of their file, then rankings.
    pub(super) fn claims(&self, source: &PaperSource) -> Result<Vec<Claim>, String> {
        let mut claims = values::read(self.published, source)
            .map_err(|error| format!("papers/{}/published.csv: {error}", self.key))?;
        for experiment in &source.experiments {
            let own = experiment.claims(source);
            claims.extend(own.map_err(|error| self.wrong(&error))?);
        }
        Ok(claims)
    }

    /// Returns all claims, or only the claims that quick runs check.
    pub(super) fn claims_to_run(&self, source: &PaperSource, quick: bool) -> Result<Vec<Claim>, String> {
        let claims = self.claims(source)?;
        if quick { source.shortened(claims).map_err(|error| self.wrong(&error)) } else { Ok(claims) }
    }

    /// Returns a trial for each scenario and mechanism among `claims`.
    pub(super) fn trials_of(
        &self,
        source: &PaperSource,
        claims: Vec<Claim>,
        quick: bool,
    ) -> Result<Vec<ClaimedTrial>, String> {
        let wrong = |error: String| self.wrong(&error);
        let mut trials: Vec<ClaimedTrial> = Vec::new();
        // Mechanisms share conditions, and to read a scenario and to hash it take milliseconds.
        let mut conditions: BTreeMap<TrialCondition, (String, Arc<Scenario>)> = BTreeMap::new();
        for Claim { scenario, settings, mechanism, seeds, published } in claims {
            let (hash, scenario) = match conditions.entry((scenario, settings)) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(place) => {
                    let (name, settings) = place.key();
                    let scenario =
                        Scenario::load(name, settings).map_err(|error| wrong(error.to_string()))?;
                    place.insert((scenario.hash(), Arc::new(scenario))).clone()
                }
            };
            let is_known =
                |own: &&mut ClaimedTrial| own.hash == hash && own.trial.contender.label == mechanism;
            let Some(ClaimedTrial { trial, published: known, .. }) = trials.iter_mut().find(is_known) else {
                let usual = source.seeds.get(&scenario.name).copied().unwrap_or(scenario.defaults.seeds);
                let seeds = if quick { source.quick_seeds } else { seeds.unwrap_or(usual) };
                let contender = Contender::parse(&mechanism).map_err(wrong)?;
                // Papers that publish orders have too many conditions for anybody to look at the series of each.
                let observe = if published.values.is_empty() { Observe::Totals } else { Observe::Series };
                let trial = Trial { observe, ..Trial::of_totals(&scenario, contender, seeds) };
                trials.push(ClaimedTrial { hash, trial, published });
                continue;
            };
            // Claims about one cell share its runs, so the largest number of seeds counts.
            trial.seeds = seeds.filter(|_| !quick).map_or(trial.seeds, |seeds| seeds.max(trial.seeds));
            // Two rows with one value are a mistake in the file, and neither could be preferred.
            if let Some(metric) = published.values.keys().find(|metric| known.get(**metric).is_some()) {
                let place = format!("{} in {}", trial.contender.label, trial.scenario.name);
                return Err(wrong(format!("published.csv has two values for the {metric} of {place}")));
            }
            known.extend(published);
        }
        Ok(trials)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::tests::paper;
    use crate::papers::{Order, RatioAllowance, Relation};
    use crate::results::Metric;

    /// The variant of CoCoA that the paper has.
    const COCOA: &str = "cocoa:preset=draft-03";

    #[test]
    fn every_published_value_has_a_trial() {
        let paper = Paper::find("raitahila2019").unwrap();
        let (trials, references) = paper.trials(false, &[]).unwrap();
        let published = |trial: &Trial| references.published(&trial.cell()).cloned();
        let values = |trial: &Trial| published(trial).map_or(0, |published| published.values.len());
        assert_eq!(trials.iter().map(values).sum::<usize>(), paper.published.lines().count() - 1);
        assert!(trials.iter().all(|trial| values(trial) <= 1));
        // The other trials are variants of FASOR. The paper has orders and ratios of them.
        let mut others = trials.iter().filter(|trial| values(trial) == 0);
        assert!(others.all(|trial| trial.contender.label.starts_with("fasor:preset=")));
    }

    #[test]
    fn every_published_ranking_has_its_trials() {
        let (trials, references) = Paper::find("meng2017").unwrap().trials(false, &[]).unwrap();
        let orders = |trial: &Trial| &references.published(&trial.cell()).unwrap().orders[..];
        // There are 9 numbers of clients, 7 losses and 10 delays. One condition is both a loss and a delay.
        assert_eq!(trials.len(), 25 * 3);
        for condition in trials.chunks(3) {
            let claims: Vec<_> =
                (condition.iter()).map(|trial| (trial.contender.label.as_str(), orders(trial))).collect();
            let order = |relation, than: &str| {
                [Order {
                    metric: Metric::Throughput,
                    relation,
                    times: None,
                    than: than.to_owned(),
                    why: String::new(),
                    allowance: RatioAllowance { margin: 0.05, tolerance: 0.25 },
                }]
            };
            let cocoa = order(Relation::Above, "default");
            let cocoa_i = order(Relation::NotBelow, COCOA);
            assert_eq!(claims, [("default", &[][..]), (COCOA, &cocoa), ("cocoa-i:min_rto=1us", &cocoa_i)]);
        }
    }

    #[test]
    fn additional_mechanisms_run_once_under_every_condition() {
        let others = ["fasor", COCOA].map(|label| Contender::parse(label).unwrap());
        let (trials, references) = Paper::find("meng2017").unwrap().trials(true, &others).unwrap();
        assert_eq!(trials.len(), 25 * 4, "cocoa is the paper's own");
        for condition in trials.chunks(4) {
            let published = references.published(&condition[3].cell());
            assert_eq!((condition[3].contender.label.as_str(), published), ("fasor", None));
            assert_eq!(condition[3].scenario, condition[0].scenario);
        }
        let mix = Contender::parse("cocoa*100+default").unwrap();
        assert!(Paper::find("meng2017").unwrap().trials(true, &[mix]).unwrap_err().contains("clients"));
    }

    #[test]
    fn published_values_and_rankings_of_one_cell_share_a_trial() {
        let experiment = "[[experiments]]\norders = { throughput = 'ours > plain' }\n\
                          sweep = { loss = ['4 %', '8 %'], clients = ['2', '60'] }";
        let (trials, references) =
            paper(experiment, "loss,mechanism,throughput\n4 %,ours,650\n").trials(true, &[]).unwrap();
        assert_eq!(trials.len(), 8);
        let published = references.published(&trials[0].cell()).unwrap();
        assert_eq!((published.values.len(), published.orders.len()), (1, 1));
    }

    #[test]
    fn an_experiment_may_have_more_seeds_than_its_scenario() {
        let experiment = "[seeds]\nlossy-switch = 7\n[[experiments]]\nseeds = 9\nset = { loss = '4 %' }\n\
                          orders = { throughput = 'ours > plain' }\n[[experiments]]\n\
                          orders = { throughput = 'ours > plain' }";
        let paper = paper(experiment, "loss,mechanism,throughput\n4 %,ours,650\n8 %,ours,300\n");
        let seeds =
            |quick| paper.trials(quick, &[]).unwrap().0.iter().map(|trial| trial.seeds).collect::<Vec<_>>();
        assert_eq!(seeds(false), [9, 7, 9, 7, 7]);
        assert_eq!(seeds(true), [2; 5]);
    }

    #[test]
    fn the_thesis_repeats_runs_without_errors_20_times_and_runs_with_errors_40_times() {
        for trial in Paper::find("raitahila2019").unwrap().trials(false, &[]).unwrap().0 {
            let errors = trial.scenario.knob_values().iter().find(|(name, _)| name == "errors").unwrap();
            assert_eq!(trial.seeds, if errors.1 == "none" { 20 } else { 40 });
        }
    }

    #[test]
    fn the_thesis_has_twelve_live_cells_with_published_values_for_its_own_mechanisms() {
        let paper = Paper::find("raitahila2019").unwrap();
        let (trials, references) = paper.live_trials(false, &[]).unwrap();
        let published = |trial: &Trial| references.value(&trial.cell(), Metric::MedianFct);
        let values: Vec<Option<f64>> = trials.iter().map(published).collect();
        assert_eq!((trials.len(), values.iter().flatten().count()), (12, 10), "{values:?}");
        assert_eq!(values[0], Some(101.6));
        let (quick, _) = paper.live_trials(true, &[Contender::parse("ebb").unwrap()]).unwrap();
        assert!(quick.len() == 12 && quick.iter().all(|trial| trial.scenario.clients.count == 10));
        let other = Paper::find("meng2017").unwrap().live_trials(false, &[]).unwrap_err();
        assert_eq!(other, "the paper meng2017 has no experiments that can run live; leave out --live");
    }
}
