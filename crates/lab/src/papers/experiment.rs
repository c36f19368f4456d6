//! Experiments whose published result is an order of mechanisms or a ratio, and experiments without a usable result.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::PaperSource;
use super::claim::Claim;
use crate::grid::with_each;
use crate::papers::{Chain, Order, Published, Ranked};
use crate::results::Metric;

/// Conditions, and the claims about the mechanisms under each of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Experiment {
    /// The scenario, if it is not the paper's usual one.
    scenario: Option<String>,
    /// Settings of the scenario that all conditions share.
    #[serde(default)]
    set: BTreeMap<String, String>,
    /// The values of each key that is varied. Every combination is a condition.
    #[serde(default)]
    sweep: BTreeMap<String, Vec<String>>,
    /// The number of seeds of full runs, if it is not that of the scenario. It is fixed before they are made.
    seeds: Option<u32>,
    /// Rows of the paper that are run without a claim about them.
    #[serde(default)]
    mechanisms: Vec<String>,
    /// The rows of the paper for each metric, the larger figure first.
    #[serde(default)]
    orders: BTreeMap<Metric, Chain>,
    /// Further claims: more orders of a metric, ratios, and reasons.
    #[serde(default)]
    claims: Vec<Said>,
}

/// An order or a ratio, and the likely reason if it does not hold here.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    metric: Metric,
    /// The order of the rows of the paper, or a ratio of two.
    says: Chain,
    /// The likely reason if it does not hold here, in a line.
    #[serde(default)]
    why: String,
}

impl Experiment {
    /// Returns a claim for each condition and mechanism. An order gives its mechanisms from the lowest figure to the highest.
    pub(super) fn claims(&self, source: &PaperSource) -> Result<Vec<Claim>, String> {
        let known = |name: &String| source.mechanism(name).map(|label| (label.to_owned(), Vec::new()));
        let mut mechanisms: Vec<(String, Vec<Order>)> =
            self.mechanisms.iter().map(known).collect::<Result<_, _>>()?;
        let short = self.orders.iter().map(|(metric, chain)| (*metric, chain, ""));
        let long = self.claims.iter().map(|said| (said.metric, &said.says, said.why.as_str()));
        for (metric, chain, why) in short.chain(long) {
            for (name, below) in chain.upwards() {
                let name = source.mechanism(name)?;
                let order = below
                    .map(|Ranked { relation, times, name }| {
                        let (than, why) = (source.mechanism(name)?.to_owned(), why.to_owned());
                        let allowance = source.allowance.ok_or(
                            "source.toml has orders, and no `[allowance]` that says by what they are judged",
                        )?;
                        Ok::<_, String>(Order {
                            metric,
                            relation: *relation,
                            times: *times,
                            than,
                            why,
                            allowance,
                        })
                    })
                    .transpose()?;
                match mechanisms.iter_mut().find(|(known, _)| known == name) {
                    Some((_, orders)) => orders.extend(order),
                    None => mechanisms.push((name.to_owned(), order.into_iter().collect())),
                }
            }
        }
        if mechanisms.is_empty() {
            return Err("source.toml has an experiment without orders, claims or mechanisms".to_owned());
        }
        let scenario = self.scenario.as_deref().unwrap_or(&source.scenario);
        let claim = |(settings, (mechanism, orders)): (&Vec<_>, &(String, Vec<Order>))| Claim {
            scenario: scenario.to_owned(),
            settings: settings.clone(),
            mechanism: mechanism.clone(),
            seeds: self.seeds,
            published: Published { orders: orders.clone(), source: source.place(), ..Published::default() },
        };
        let conditions = swept(&self.set, &self.sweep);
        Ok(conditions
            .iter()
            .flat_map(|settings| mechanisms.iter().map(move |mechanism| (settings, mechanism)))
            .map(claim)
            .collect())
    }
}

/// Returns the settings of each combination of values.
pub(super) fn swept(
    set: &BTreeMap<String, String>,
    sweep: &BTreeMap<String, Vec<String>>,
) -> Vec<Vec<(String, String)>> {
    let shared: Vec<(String, String)> = set.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    sweep.iter().fold(vec![shared], |conditions, (key, values)| with_each(&conditions, key, values))
}

#[cfg(test)]
mod tests {
    use crate::papers::tests::paper;

    #[test]
    fn what_nothing_is_said_of_may_run_all_the_same() {
        let experiment = "[[experiments]]\nmechanisms = ['plain', 'ours']\nclaims = [\n\
                          { metric = 'throughput', says = 'ours > plain' }]\n\
                          [[experiments]]\nset = { loss = '4 %' }\nmechanisms = ['ours']";
        let (trials, references) = paper(experiment, "").trials(false, &[]).unwrap();
        let orders: Vec<_> =
            trials.iter().map(|trial| references.published(&trial.cell()).unwrap().orders.len()).collect();
        assert_eq!(orders, [0, 1, 0]);
    }

    #[test]
    fn claims_are_orders_and_ratios_with_a_reason_where_one_is_given() {
        let experiment = "[[experiments]]\norders = { jain = 'plain > ours' }\nclaims = [\n\
                          { metric = 'throughput', says = 'ours >= 2.5 plain' },\n\
                          { metric = 'mean_fct_s', says = 'ours = 0.6875 plain', why = 'w' }]";
        let (trials, references) = paper(experiment, "").trials(false, &[]).unwrap();
        let orders: Vec<_> =
            trials.iter().map(|trial| &references.published(&trial.cell()).unwrap().orders).collect();
        assert_eq!((trials.len(), orders[0][0].than.as_str()), (2, "default"));
        let [at_least, ratio] = &orders[0][..] else { panic!("{orders:?}") };
        assert_eq!(at_least.words(), "≥ 2.5 default");
        assert_eq!((ratio.words().as_str(), ratio.why.as_str()), ("= 0.6875 default", "w"));
    }
}
