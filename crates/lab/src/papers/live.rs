//! The cells of a paper that are run live.

use std::collections::BTreeMap;
use std::sync::Arc;

use coapace_scenario::Scenario;
use serde::Deserialize;

use super::Paper;
use super::experiment::swept;
use crate::contender::Contender;
use crate::experiment::Trial;

/// Conditions and mechanisms to be run live: few, because they take real time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LiveCells {
    /// Settings of the paper's scenario that all conditions share.
    set: BTreeMap<String, String>,
    /// The values of each key that is varied. Every combination is a condition.
    #[serde(default)]
    sweep: BTreeMap<String, Vec<String>>,
    /// Rows of the paper.
    mechanisms: Vec<String>,
    /// Mechanisms that the paper does not have.
    #[serde(default)]
    others: Vec<String>,
    /// The number of seeds.
    seeds: u32,
    /// The settings that shorten quick runs.
    #[serde(default)]
    quick: BTreeMap<String, String>,
}

impl Paper {
    /// Returns a trial for each mechanism under each condition that is run live; with `quick`, shorter ones. `others` are run
    /// in addition.
    ///
    /// # Errors
    /// Returns one line if the paper has no such cells, or what is wrong with its folder.
    pub fn live_trials(&self, quick: bool, others: &[Contender]) -> Result<Vec<Trial>, String> {
        let source = self.source()?;
        let live = source.live.as_ref().ok_or_else(|| format!("{} has no cells for --live", self.key))?;
        let rows = live.mechanisms.iter().map(|row| source.mechanism(row).map(str::to_owned));
        let labels = rows.chain(live.others.iter().cloned().map(Ok)).collect::<Result<Vec<_>, _>>();
        let labels = labels.map_err(|error| self.wrong(&error))?;
        let known = labels.iter().map(|label| Contender::parse(label)).collect::<Result<Vec<_>, _>>();
        let mut contenders = known.map_err(|error| self.wrong(&error))?;
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
        Ok(trials)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Metric;

    #[test]
    fn the_thesis_has_twelve_live_cells_and_figures_for_those_of_its_own_mechanisms() {
        let paper = Paper::find("raitahila2019").unwrap();
        let trials = paper.live_trials(false, &[]).unwrap();
        let published = |trial: &Trial| trial.published.as_ref()?.get(Metric::MedianFct);
        let figures: Vec<Option<f64>> = trials.iter().map(published).collect();
        assert_eq!((trials.len(), figures.iter().flatten().count()), (12, 10), "{figures:?}");
        assert_eq!(figures[0], Some(101.6));
        let quick = paper.live_trials(true, &[Contender::parse("ebb").unwrap()]).unwrap();
        assert!(quick.len() == 12 && quick.iter().all(|trial| trial.scenario.clients.count == 10));
        let other = Paper::find("meng2017").unwrap().live_trials(false, &[]).unwrap_err();
        assert_eq!(other, "meng2017 has no cells for --live");
    }
}
