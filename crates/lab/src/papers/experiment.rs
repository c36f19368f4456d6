//! Experiments whose published result is a ranking of mechanisms or a ratio, and experiments without a usable result.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::PaperSource;
use super::claim::Claim;
use crate::grid::with_each;
use crate::papers::{Chain, Order, Published, Ranked};
use crate::results::Metric;

/// An experiment of a paper: its conditions, and the claims about the mechanisms under each of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Experiment {
    /// The scenario, if it is not the paper's main scenario.
    scenario: Option<String>,
    /// Settings of the scenario that all conditions share.
    #[serde(default)]
    set: BTreeMap<String, String>,
    /// The values of each varied key. Every combination is a condition.
    #[serde(default)]
    sweep: BTreeMap<String, Vec<String>>,
    /// The number of seeds of full runs, if it differs from the scenario's. It is fixed before the runs.
    seeds: Option<u32>,
    /// The mechanisms, by their names in the paper, that are run without a claim about them.
    #[serde(default)]
    mechanisms: Vec<String>,
    /// The ranking of the paper's mechanisms for each metric, the larger value first.
    #[serde(default)]
    orders: BTreeMap<Metric, Chain>,
    /// Further claims: additional rankings of a metric, ratios, and reasons.
    #[serde(default)]
    claims: Vec<Said>,
}

/// A published ranking or ratio, and the likely reason if it does not hold in our runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    metric: Metric,
    /// The ranking of the paper's mechanisms, or a ratio of two.
    says: Chain,
    /// The likely reason if the claim does not hold in our runs, in a line.
    #[serde(default)]
    why: String,
}

impl Experiment {
    /// Returns a claim for each mechanism under each condition. The mechanisms of a ranking come in the sequence from
    /// its lowest value to its highest.
    pub(super) fn claims(&self, source: &PaperSource) -> Result<Vec<Claim>, String> {
        let known = |name: &String| source.mechanism(name).map(|label| (label.to_owned(), Vec::new()));
        let mut mechanisms: Vec<(String, Vec<Order>)> =
            self.mechanisms.iter().map(known).collect::<Result<_, _>>()?;
        let short = self.orders.iter().map(|(metric, chain)| (*metric, chain, ""));
        let long = self.claims.iter().map(|said| (said.metric, &said.says, said.why.as_str()));
        // A relation belongs to its upper mechanism. A mechanism at the end of a chain has none, but must run, too.
        for (metric, chain, why) in short.chain(long) {
            for (name, below) in chain.upwards() {
                let name = source.mechanism(name)?;
                let order = below
                    .map(|Ranked { relation, times, name }| {
                        let (than, why) = (source.mechanism(name)?.to_owned(), why.to_owned());
                        // Papers without rankings have none, so it is asked for only here.
                        let allowance = source.allowance.ok_or(
                            "source.toml has orders, but not the `[allowance]` that they are judged by",
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
                // A mechanism in several rankings runs once, with the relations of all.
                match mechanisms.iter_mut().find(|(known, _)| known == name) {
                    Some((_, orders)) => orders.extend(order),
                    None => mechanisms.push((name.to_owned(), order.into_iter().collect())),
                }
            }
        }
        if mechanisms.is_empty() {
            return Err(
                "an experiment in source.toml names no mechanism: give it `orders`, `claims` or `mechanisms`"
                    .to_owned(),
            );
        }
        let scenario = self.scenario.as_deref().unwrap_or(&source.scenario);
        let claim = |(settings, (mechanism, orders)): (&Vec<_>, &(String, Vec<Order>))| Claim {
            scenario: scenario.to_owned(),
            settings: settings.clone(),
            mechanism: mechanism.clone(),
            seeds: self.seeds,
            published: Published { orders: orders.clone(), source: source.place(), ..Published::default() },
        };
        // Papers state a ranking for all points of a chart, so each point is checked.
        let conditions = swept(&self.set, &self.sweep);
        Ok(conditions
            .iter()
            .flat_map(|settings| mechanisms.iter().map(move |mechanism| (settings, mechanism)))
            .map(claim)
            .collect())
    }
}

/// Returns the settings of each condition: the shared settings, and one combination of the values in `sweep`.
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
    fn an_experiment_may_run_mechanisms_without_a_claim_on_them() {
        let experiment = "[[experiments]]\nmechanisms = ['plain', 'ours']\nclaims = [\n\
                          { metric = 'throughput', says = 'ours > plain' }]\n\
                          [[experiments]]\nset = { loss = '4 %' }\nmechanisms = ['ours']";
        let (trials, references) = paper(experiment, "").trials(false, &[]).unwrap();
        let orders: Vec<_> =
            trials.iter().map(|trial| references.published(&trial.cell()).unwrap().orders.len()).collect();
        assert_eq!(orders, [0, 1, 0]);
    }

    #[test]
    fn claims_of_a_paper_are_rankings_and_ratios_with_an_optional_reason() {
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
