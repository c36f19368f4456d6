//! Experiments whose published result is an order of mechanisms.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Claim, Source};
use crate::results::{Chain, Metric, Order, Published};

/// Conditions, and the order of the mechanisms under each of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Experiment {
    /// What all conditions share: settings of the scenario.
    #[serde(default)]
    set: BTreeMap<String, String>,
    /// What is varied: the values of each key in turn, every combination a condition.
    #[serde(default)]
    sweep: BTreeMap<String, Vec<String>>,
    /// By metric: the rows of the paper, the larger figure first.
    orders: BTreeMap<Metric, Chain>,
}

impl Experiment {
    /// One for each condition and mechanism, the lowest mechanism first.
    pub(super) fn claims(&self, source: &Source) -> Result<Vec<Claim>, String> {
        let mut mechanisms: Vec<(String, Vec<Order>)> = Vec::new();
        for (metric, chain) in &self.orders {
            for (name, below) in chain.upwards() {
                let name = source.mechanism(name)?;
                let order = below
                    .map(|(relation, than)| {
                        let than = source.mechanism(than)?.to_owned();
                        Ok::<_, String>(Order { metric: *metric, relation, than })
                    })
                    .transpose()?;
                match mechanisms.iter_mut().find(|(known, _)| known == name) {
                    Some((_, orders)) => orders.extend(order),
                    None => mechanisms.push((name.to_owned(), order.into_iter().collect())),
                }
            }
        }
        let claim = |(settings, (mechanism, orders)): (&Vec<_>, &(String, Vec<Order>))| Claim {
            settings: settings.clone(),
            mechanism: mechanism.clone(),
            published: Published { orders: orders.clone(), source: source.place(), ..Published::default() },
        };
        let conditions = self.conditions();
        Ok(conditions
            .iter()
            .flat_map(|settings| mechanisms.iter().map(move |mechanism| (settings, mechanism)))
            .map(claim)
            .collect())
    }

    /// The settings of each condition.
    fn conditions(&self) -> Vec<Vec<(String, String)>> {
        let shared: Vec<(String, String)> =
            self.set.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        self.sweep.iter().fold(vec![shared], |conditions, (key, values)| {
            let with = |settings: &Vec<(String, String)>, value: &String| {
                settings.iter().cloned().chain([(key.clone(), value.clone())]).collect()
            };
            conditions
                .iter()
                .flat_map(|settings| values.iter().map(move |value| with(settings, value)))
                .collect()
        })
    }
}
