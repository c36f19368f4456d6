//! The conditions of a sweep.

use std::sync::Arc;

use coapace_lab::experiment::Trial;
use coapace_lab::output::SheetValue;
use coapace_run::contender::Contender;
use coapace_scenario::{Scenario, ScenarioError, Template};

use super::Setting;

/// One condition of a sweep: a scenario with some settings.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) settings: Vec<Setting>,
    pub(super) scenario: Arc<Scenario>,
    pub(super) hash: String,
    /// The settings of keys that are not knobs, each with its effective value. They have columns of their own.
    pub(super) set: Vec<(String, SheetValue)>,
}

impl Condition {
    pub(super) fn read(template: &Template, settings: Vec<Setting>) -> Result<Self, ScenarioError> {
        let scenario = template.scenario(&settings)?;
        let set = settings.iter().filter(|(key, _)| scenario.knob(key).is_none());
        let set = set.map(|(key, given)| {
            // The effective value, because `0.08 s` and `80ms` are one condition. A table or the name of a preset has none.
            (key.clone(), SheetValue::Text(scenario.effective(key).unwrap_or_else(|| given.clone())))
        });
        Ok(Self { set: set.collect(), hash: scenario.hash(), settings, scenario: Arc::new(scenario) })
    }

    /// Returns a trial with one run of a mechanism under this condition.
    pub(super) fn trial(&self, contender: &Contender, seed: u64) -> Trial {
        Trial { first_seed: seed, ..Trial::of_totals(&self.scenario, contender.clone(), 1) }
    }
}
