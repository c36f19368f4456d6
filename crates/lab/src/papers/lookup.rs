//! All claims of a paper, and the claims of any paper about a scenario.

use coapace_scenario::Scenario;

use super::claim::Claim;
use super::{PAPERS, Paper, PaperSource, figures};
use crate::papers::Published;

impl Paper {
    /// Returns all claims: figures in the order of their file, then orders.
    pub(super) fn claims(&self, source: &PaperSource) -> Result<Vec<Claim>, String> {
        let mut claims = figures::read(self.published, source)
            .map_err(|error| format!("papers/{}/published.csv: {error}", self.key))?;
        for experiment in &source.experiments {
            let own = experiment.claims(source);
            claims.extend(own.map_err(|error| self.wrong(&error))?);
        }
        Ok(claims)
    }
}

/// Returns the published results of this mechanism in a scenario that runs like the given one.
pub fn published_for(scenario: &Scenario, mechanism: &str) -> Option<Published> {
    PAPERS.iter().find_map(|paper| {
        let source = paper.source().ok()?;
        let claims = paper.claims(&source).ok()?.into_iter().filter(|claim| {
            let knob = |(knob, value): &(String, String)| scenario.knob(knob).is_none_or(|own| own == value);
            claim.mechanism == mechanism
                && claim.scenario == scenario.name
                && claim.settings.iter().all(knob)
                // A key that no knob sets may differ, so the hashes are compared, too.
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
    use crate::results::Metric;

    #[test]
    fn whatever_is_published_is_found_for_a_scenario_that_runs_alike() {
        for paper in PAPERS {
            assert_eq!(paper.source().unwrap().key, paper.key);
            // Quick runs may be shorter than the published ones, so they are left out.
            for trial in paper.trials(false, &[]).unwrap().iter().step_by(7) {
                assert_eq!(published_for(&trial.scenario, &trial.contender.label), trial.published);
            }
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
