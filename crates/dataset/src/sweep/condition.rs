//! The conditions of a sweep.

use std::sync::Arc;

use coapace_lab::experiment::Trial;
use coapace_run::contender::Contender;
use coapace_scenario::{Scenario, ScenarioError, Template};

use super::Setting;

/// One condition of a sweep: a scenario with some settings.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) settings: Vec<Setting>,
    pub(super) scenario: Arc<Scenario>,
    pub(super) hash: String,
}

impl Condition {
    pub(super) fn read(template: &Template, settings: Vec<Setting>) -> Result<Self, ScenarioError> {
        let keys: Vec<&str> = settings.iter().map(|(key, _)| key.as_str()).collect();
        // All keys, not only varied ones: a later plan may give a key other values, and the rows of both share their columns.
        let scenario = template.scenario(&settings)?.showing(&keys, &settings);
        Ok(Self { hash: scenario.hash(), settings, scenario: Arc::new(scenario) })
    }

    /// Returns a trial with one run of a mechanism under this condition.
    pub(super) fn trial(&self, contender: &Contender, seed: u64) -> Trial {
        Trial { first_seed: seed, ..Trial::of_totals(&self.scenario, contender.clone(), 1) }
    }
}
