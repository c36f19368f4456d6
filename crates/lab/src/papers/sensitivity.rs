//! The conditions that a paper does not state, varied one at a time and in pairs: how many of its values and rankings are
//! confirmed under each variant. This shows what the publication determines.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::claim::Claim;
use super::trials::ClaimedTrial;
use super::{Compared, OrderOutcome, Paper, PaperSource, Published, References, count, judged, verdicts};
use crate::experiment::Trial;
use crate::results::CellResult;
use coapace_run::Observe;

/// A condition that the paper does not state.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OpenCondition {
    /// The unstated condition in words.
    condition: String,
    /// The value used in all other runs, in words.
    chosen: String,
    /// Other plausible values of the condition.
    others: Vec<OpenValue>,
}

/// A value of an unstated condition.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenValue {
    /// The value in words.
    value: String,
    /// The scenario that the value applies to; `None` for all.
    scenario: Option<String>,
    /// Limits the condition to claims whose settings match: for each key, one of the listed values. An empty string matches a
    /// claim without that key.
    #[serde(default)]
    only: BTreeMap<String, Vec<String>>,
    /// The settings of the scenario that give the condition this value.
    #[serde(default)]
    set: BTreeMap<String, String>,
    /// For the name of a mechanism in the paper, the mechanism to run under this value instead of the usual one.
    #[serde(default)]
    mechanisms: BTreeMap<String, String>,
}

/// The trials of a paper under all values of its unstated conditions.
#[derive(Clone, Debug)]
pub struct SensitivityPlan {
    /// The trials, each once, even if several variants use it.
    pub trials: Vec<Trial>,
    values: Vec<VariedValue>,
    chosen: Vec<(String, String)>,
    variants: Vec<PlanVariant>,
}

/// A variant of the conditions. The first part has the indices of two values as in [`Sensitivity::scores`], or `None`
/// for the chosen values. The second part has the index of the trial and the published results for each cell.
type PlanVariant = (Option<(usize, usize)>, Vec<(usize, Published)>);

/// A value of an unstated condition, other than the chosen one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariedValue {
    /// The unstated condition in words.
    pub condition: String,
    /// The value in words.
    pub value: String,
}

/// How many published values and rankings are confirmed under one variant of the conditions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SensitivityScore {
    /// The number of confirmed values, and the number of all published values. A value is confirmed if ours differs
    /// from it by at most the factor of its table, or by at most 5 % without a table.
    pub values: (usize, usize),
    /// The number of rankings and ratios that hold, and the number of all rankings and ratios.
    pub orders: (usize, usize),
    /// The number of rankings and ratios that are inconclusive.
    pub inconclusive: usize,
}

/// The scores of a paper under every variant of its unstated conditions.
#[derive(Clone, Debug)]
pub struct Sensitivity {
    /// The conditions that are varied, each with the value that all other runs have.
    pub chosen: Vec<(String, String)>,
    /// The values to try besides the chosen one, in the sequence of the paper's file.
    pub values: Vec<VariedValue>,
    /// The score under the chosen values.
    pub base: SensitivityScore,
    /// The scores, by the indices of two of the [values](Self::values). Two equal indices mean that value alone. Two
    /// values of the same condition exclude each other and have no score.
    pub scores: BTreeMap<(usize, usize), SensitivityScore>,
}

impl Paper {
    /// Returns the trials of the paper under the chosen conditions, under each other value of an unstated condition, and under
    /// each pair of such values.
    ///
    /// # Errors
    /// Returns one line that describes the error in the paper's folder, or says that it lists no unstated condition.
    pub fn sensitivity(&self, quick: bool) -> Result<SensitivityPlan, String> {
        let source = self.source()?;
        if source.open.is_empty() {
            return Err(self.wrong("source.toml names no open condition"));
        }
        let claims = self.claims_to_run(&source, quick)?;
        let values: Vec<(usize, &OpenValue)> = (source.open.iter().enumerate())
            .flat_map(|(condition, open)| open.others.iter().map(move |value| (condition, value)))
            .collect();
        // A pair of equal indices is a single value, so one loop covers single values and pairs. Two values of one condition
        // exclude each other.
        let pairs =
            (0..values.len()).flat_map(|first| (first..values.len()).map(move |second| (first, second)));
        let varied = pairs.filter(|&(first, second)| first == second || values[first].0 != values[second].0);
        let mut plan = SensitivityPlan {
            trials: Vec::new(),
            values: (values.iter())
                .map(|(place, value)| VariedValue {
                    condition: source.open[*place].condition.clone(),
                    value: value.value.clone(),
                })
                .collect(),
            chosen: source.open.iter().map(|open| (open.condition.clone(), open.chosen.clone())).collect(),
            variants: Vec::new(),
        };
        // Most variants leave most cells as they are, so equal cells run once.
        let mut places = BTreeMap::new();
        for pair in [None].into_iter().chain(varied.map(Some)) {
            let mut claims = claims.clone();
            let own: BTreeSet<usize> = pair.into_iter().flat_map(|(first, second)| [first, second]).collect();
            for value in own {
                values[value].1.vary(&source, &mut claims)?;
            }
            let mut cells = Vec::new();
            for ClaimedTrial { hash, trial, published } in self.trials_of(&source, claims, quick)? {
                let place = match places.entry((hash, trial.contender.label.clone())) {
                    Entry::Occupied(place) => *place.get(),
                    Entry::Vacant(place) => {
                        // Variants are many, and no chart shows their series.
                        plan.trials.push(Trial { observe: Observe::Totals, ..trial });
                        *place.insert(plan.trials.len() - 1)
                    }
                };
                cells.push((place, published));
            }
            plan.variants.push((pair, cells));
        }
        Ok(plan)
    }
}

impl OpenValue {
    /// Changes the settings and mechanisms of those claims to which this value applies.
    fn vary(&self, source: &PaperSource, claims: &mut [Claim]) -> Result<(), String> {
        // The file names mechanisms like the paper, and claims have their names here.
        let mut labels = BTreeMap::new();
        for (row, label) in &self.mechanisms {
            labels.insert(source.mechanism(row)?.to_owned(), label.clone());
        }
        for claim in claims {
            let has = |(key, values): (&String, &Vec<String>)| {
                let own = claim.settings.iter().find(|(other, _)| other == key);
                values.iter().any(|value| *value == *own.map_or("", |(_, own)| own))
            };
            let concerns = self.scenario.as_ref().is_none_or(|name| *name == claim.scenario);
            if !concerns || !self.only.iter().all(has) {
                continue;
            }
            // The last setting of a key counts, so these replace the claim's own.
            claim.settings.extend(self.set.iter().map(|(key, value)| (key.clone(), value.clone())));
            // Both sides of a ranking change, or it would name a mechanism that does not run.
            let orders = claim.published.orders.iter_mut().map(|order| &mut order.than);
            for label in orders.chain([&mut claim.mechanism]) {
                if let Some(other) = labels.get(label) {
                    label.clone_from(other);
                }
            }
        }
        Ok(())
    }
}

impl SensitivityPlan {
    /// Returns the number of variants: the chosen conditions, every other value, and every pair of other values.
    pub fn variants(&self) -> usize {
        self.variants.len()
    }

    /// Returns the score of every variant. `results` are the results of the plan's trials, in the same sequence.
    pub fn judge(&self, results: &[CellResult]) -> Sensitivity {
        let mut base = SensitivityScore::default();
        let mut scores = BTreeMap::new();
        for (pair, cells) in &self.variants {
            let (mut own, mut references) = (Vec::new(), References::default());
            for (place, published) in cells {
                if let Some(result) = results.get(*place) {
                    references.publish(&result.cell, published.clone());
                    own.push(result.clone());
                }
            }
            let score = SensitivityScore::of(&own, &references);
            if let Some(pair) = *pair {
                scores.insert(pair, score);
            } else {
                base = score;
            }
        }
        Sensitivity { chosen: self.chosen.clone(), values: self.values.clone(), base, scores }
    }
}

/// The name of a count, and a function that returns it from a score: how many are confirmed, and how many there are.
pub type Count = (&'static str, fn(&SensitivityScore) -> (usize, usize));

impl SensitivityScore {
    /// The counts of a score, values first.
    pub const COUNTS: [Count; 2] =
        [("values met", |score| score.values), ("orders that hold", |score| score.orders)];

    fn of(results: &[CellResult], references: &References) -> Self {
        let judged = judged(results, references);
        let within = judged.iter().filter(|one| one.within()).count();
        let plain: Vec<Compared> = results.iter().flat_map(|result| references.plain(result)).collect();
        let met = plain.iter().filter(|value| value.is_met()).count();
        let verdicts = verdicts(results, references);
        Self {
            values: (within + met, judged.len() + plain.len()),
            orders: (count(&verdicts, OrderOutcome::Held), verdicts.len()),
            inconclusive: count(&verdicts, OrderOutcome::Inconclusive),
        }
    }
}

impl Sensitivity {
    /// Returns the score under two values, given by their indices, or under one value if both indices are equal; `None`
    /// if both are values of the same condition.
    pub fn score(&self, first: usize, second: usize) -> Option<SensitivityScore> {
        self.scores.get(&(first.min(second), first.max(second))).copied()
    }
}

#[cfg(test)]
mod tests {
    use crate::experiment::conduct;
    use crate::output::RowFormat;
    use crate::papers::tests::paper;

    const OPEN: &str = "[[experiments]]
        set = { loss = '20 %', clients = '20' }
        orders = { throughput = 'ours > plain' }
        [[open]]
        condition = 'a'
        chosen = '1'
        others = [
            { value = '2', set = { 'network.up.link.loss' = '0 %' } },
            { value = '3', only = { loss = ['4 %'] }, set = { 'network.up.link.loss' = '1 %' } },
        ]
        [[open]]
        condition = 'b'
        chosen = '4'
        others = [{ value = '5', mechanisms = { ours = 'default:ack_timeout=3s' } }]";

    #[test]
    fn sensitivity_varies_values_singly_and_in_pairs_and_runs_equal_conditions_once() {
        let plan = paper(OPEN, "").sensitivity(true).unwrap();
        assert_eq!(plan.variants(), 1 + 3 + 2, "no two values of one condition go together");
        // The chosen and the lossless network, each with three mechanisms; the third value concerns no claim.
        assert_eq!(plan.trials.len(), 6);
        let sensitivity = plan.judge(&conduct(&plan.trials, 1, &|| ()));
        assert_eq!(sensitivity.base.orders, (1, 1));
        assert_eq!(sensitivity.score(1, 1), Some(sensitivity.base));
        assert_eq!(sensitivity.score(2, 2).unwrap().orders, (0, 1), "with 3 s it is slower than the default");
        assert_eq!(sensitivity.score(0, 1), None);
        assert_eq!(sensitivity.score(0, 2), sensitivity.score(2, 0));

        let table = sensitivity.table();
        let line = |number: &str, value: &str, orders: &str| {
            format!("{number:>2}  {value:13}  {:>9}  {orders:>9}", "–")
        };
        for line in [line("", "all as chosen", "1/1"), "a: 1".to_owned(), line("3", "5", "0/1")] {
            assert!(table.lines().any(|other| other == line), "{table}");
        }
        assert!(
            table.contains("orders that hold, of 1, in pairs\n       1   2   3\n 1     1   ·   0  2\n"),
            "{table}"
        );
        let mut csv = Vec::new();
        sensitivity.write(&mut csv, RowFormat::Csv, "c0ffee", "k").unwrap();
        let csv = String::from_utf8(csv).unwrap();
        assert_eq!(csv.lines().count(), 1 + plan.variants());
        assert!(csv.contains("\nk,,,,,0,0,1,0,1,c0ffee\n") && csv.contains("\nk,a,2,b,5,0,0,0,"), "{csv}");
    }

    #[test]
    fn a_paper_without_unknown_conditions_has_no_sensitivity_to_compute() {
        let paper = paper("[[experiments]]\norders = { throughput = 'ours > plain' }", "");
        assert_eq!(paper.sensitivity(true).unwrap_err(), "papers/k: source.toml names no open condition");
    }
}
