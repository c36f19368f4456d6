//! The published values and bounds that results are compared with.

use std::collections::BTreeMap;

use coapace_scenario::Scenario;
use serde::{Deserialize, Serialize};

use super::claim::Claim;
use super::{Compared, PAPERS, Published};
use crate::experiment::Trial;
use crate::results::{Bound, Cell, CellResult, Metric, bounds};

/// The published results and the bounds of some cells, which are the same for live and for simulated runs. They can be
/// serialised and sent with the results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct References(BTreeMap<String, ConditionReferences>);

/// The published results and bounds of one scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct ConditionReferences {
    bounds: Vec<Bound>,
    /// The published results for each mechanism.
    published: BTreeMap<String, Published>,
}

/// Returns the name and the hash of a cell's scenario, which identify it.
fn key(cell: &Cell) -> String {
    format!("{} {}", cell.scenario, cell.scenario_hash)
}

impl References {
    /// Returns the references of the cells of these trials, from every paper.
    pub fn of(trials: &[Trial]) -> Self {
        // A paper with an error has no claims here. `coapace reproduce` reports the error.
        let claims = PAPERS.iter().filter_map(|paper| paper.claims(&paper.source().ok()?).ok());
        let claims: Vec<Vec<Claim>> = claims.collect();
        let mut all = Self::default();
        for trial in trials {
            all.add(trial, published_for(&claims, trial));
        }
        all
    }

    /// Adds the bounds of the cell of a trial, and its published results if there are any.
    pub(super) fn add(&mut self, trial: &Trial, published: Option<Published>) {
        let cell = trial.cell();
        // The trials of a scenario share its bounds.
        let own = self.0.entry(key(&cell)).or_insert_with(|| ConditionReferences {
            bounds: bounds(&trial.scenario),
            ..ConditionReferences::default()
        });
        own.published.extend(published.map(|published| (cell.mechanism, published)));
    }

    /// Sets the published results of a cell, and replaces earlier ones.
    pub fn publish(&mut self, cell: &Cell, published: Published) {
        self.0.entry(key(cell)).or_default().published.insert(cell.mechanism.clone(), published);
    }

    /// Returns the published values and rankings of a cell, if there are any.
    pub fn published(&self, cell: &Cell) -> Option<&Published> {
        self.0.get(&key(cell))?.published.get(&cell.mechanism)
    }

    /// Returns the bounds of a cell that follow from its scenario; empty if none are known.
    pub fn bounds(&self, cell: &Cell) -> &[Bound] {
        self.0.get(&key(cell)).map_or(&[], |own| &own.bounds)
    }

    /// Returns the published results of all cells.
    pub fn all_published(&self) -> impl Iterator<Item = &Published> {
        self.0.values().flat_map(|own| own.published.values())
    }

    /// Returns the published value of a metric, if there is one.
    pub fn value(&self, cell: &Cell, metric: Metric) -> Option<f64> {
        self.published(cell)?.get(metric)
    }

    /// Returns every published value beside the measured one.
    pub fn compared(&self, result: &CellResult) -> Vec<Compared> {
        let published = self.published(&result.cell);
        published.map_or_else(Vec::new, |published| published.compared(&result.summary()).collect())
    }

    /// Returns the published values whose metric has no table of the paper, each beside the measured one. The values of a
    /// table are judged together, by the factor of the table.
    pub fn plain(&self, result: &CellResult) -> Vec<Compared> {
        let Some(published) = self.published(&result.cell) else { return Vec::new() };
        let is_plain = |value: &Compared| !published.tables.contains_key(&value.metric);
        published.compared(&result.summary()).filter(is_plain).collect()
    }

    /// Returns the relative error of the measured value: its difference from the published value, as a fraction of the
    /// published value; positive if the measured value is larger. If there are several values, returns the largest
    /// error.
    pub fn relative_error(&self, result: &CellResult) -> Option<f64> {
        self.published(&result.cell)?.relative_error(&result.summary())
    }

    /// Sorts results by their relative errors: unmeasured ones first, then the largest errors.
    pub fn sort_worst_first(&self, results: &mut [CellResult]) {
        let error = |result: &CellResult| self.relative_error(result).map_or(f64::INFINITY, f64::abs);
        results.sort_by(|a, b| error(b).total_cmp(&error(a)));
    }
}

/// Returns the published results for a trial, from the first paper that has any for its mechanism in an equal scenario.
/// `claims` has the claims of each paper.
fn published_for(claims: &[Vec<Claim>], trial: &Trial) -> Option<Published> {
    let scenario = &trial.scenario;
    let is_alike = |claim: &&Claim| {
        let knob = |(knob, value): &(String, String)| scenario.knob(knob).is_none_or(|own| own == value);
        // The cheap comparisons first, because loading a scenario takes milliseconds.
        claim.mechanism == trial.contender.label
            && claim.scenario == scenario.name
            && claim.settings.iter().all(knob)
            // A key that no knob sets may differ, so the hashes are compared, too.
            && Scenario::load(&claim.scenario, &claim.settings).is_ok_and(|same| same.hash() == scenario.hash())
    };
    claims.iter().find_map(|claims| {
        let own = claims.iter().filter(is_alike).map(|claim| claim.published.clone());
        // A cell may have several claims, such as its values and a ranking.
        own.reduce(|mut all, published| {
            all.extend(published);
            all
        })
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::results::cell::tests::sample;
    use coapace_run::contender::Contender;
    use coapace_scenario::Hash64;

    /// Makes a published median for [`sample`].
    pub(crate) fn sample_references() -> References {
        let mut references = References::default();
        references.publish(&sample().cell, Published::value(Metric::MedianFct, 40.0, "Table 1"));
        references
    }

    /// A result with the published results of its cell.
    pub(crate) type WithPublished = (CellResult, Option<Published>);

    /// Separates results from the published ones. Each result gets its own scenario, by its hash.
    pub(crate) fn parted(all: impl IntoIterator<Item = WithPublished>) -> (Vec<CellResult>, References) {
        let mut references = References::default();
        let part = |((mut result, published), place): (WithPublished, u64)| {
            result.cell.scenario_hash = Hash64(place);
            if let Some(published) = published {
                references.publish(&result.cell, published);
            }
            result
        };
        (all.into_iter().zip(1..).map(part).collect(), references)
    }

    #[test]
    fn published_values_are_found_for_every_scenario_with_equal_runs() {
        for paper in PAPERS {
            assert_eq!(paper.source().unwrap().key, paper.key);
            // Quick runs may be shorter than the published ones, so they are left out.
            let (trials, references) = paper.trials(false, &[]).unwrap();
            for trial in trials.iter().step_by(7) {
                let (known, cell) = (References::of(std::slice::from_ref(trial)), trial.cell());
                assert_eq!(known.published(&cell), references.published(&cell));
            }
        }
    }

    #[test]
    fn a_published_value_is_found_only_for_its_own_scenario() {
        let load = |extra: &[(&str, &str)]| {
            let base = [("clients", "100"), ("buffer", "2500")];
            let settings: Vec<_> = base
                .iter()
                .chain(extra)
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect();
            Scenario::load("nb-iot", &settings).unwrap()
        };
        let value = |scenario: &Scenario, mechanism| {
            let scenario = Arc::new(scenario.clone());
            let trial = Trial::new(&scenario, Contender::parse(mechanism).unwrap(), 1);
            References::of(std::slice::from_ref(&trial)).value(&trial.cell(), Metric::MedianFct)
        };
        assert_eq!(value(&load(&[]), "default"), Some(101.6));
        assert_eq!(value(&load(&[("workload", "random")]), "tcp"), Some(145.32));
        assert_eq!(value(&load(&[]), "linux-rto"), None);
        assert_eq!(value(&load(&[("network.up.radio.delay", "201 ms")]), "default"), None);
        assert_eq!(value(&load(&[("clients", "101")]), "default"), None);
    }

    #[test]
    fn the_relative_error_is_a_fraction_of_the_published_value() {
        let error = sample_references().relative_error(&sample());
        assert!((error.unwrap() - (37.75 / 40.0 - 1.0)).abs() < 1e-12);
    }

    #[test]
    fn of_several_published_values_the_one_with_the_largest_error_is_returned() {
        let (result, mut references) = (sample(), sample_references());
        let mut publish = |metric, value| {
            let mut published = references.published(&result.cell).cloned().unwrap_or_default();
            published.extend(Published::value(metric, value, ""));
            references.publish(&result.cell, published);
            references.clone()
        };
        let two = publish(Metric::Throughput, 4.0);
        assert_eq!(two.relative_error(&result), Some(-0.5), "2 exchanges a second were measured");
        assert_eq!(two.compared(&result).len(), 2);
        let three = publish(Metric::ExchangeTime, 1.0);
        assert_eq!(three.relative_error(&result), None, "an unknown value is the worst");
    }
}
