//! The file `source.toml` of a paper.

use std::collections::{BTreeMap, BTreeSet};

use coapace_scenario::Scenario;
use serde::Deserialize;

use super::claim::Claim;
use super::experiment::Experiment;
use super::sensitivity::OpenCondition;
use super::trials::LiveCells;
use crate::papers::{PaperTable, RatioAllowance};

/// The content of `source.toml`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaperSource {
    /// The key of the paper, which is the name of its folder.
    pub key: String,
    /// The subject of the study.
    pub title: String,
    /// The author, title, venue and year of the publication.
    pub source: String,
    /// The published results that are reproduced, in words: tables, figures, or the quantities in them.
    pub results: String,
    /// The scenario of all cells that do not specify another one.
    pub scenario: String,
    /// The number of seeds of quick runs.
    pub quick_seeds: u32,
    /// The number of seeds of full runs, for each scenario where it differs from the scenario's own.
    #[serde(default)]
    pub(super) seeds: BTreeMap<String, u32>,
    /// The mechanism to run for each name of a mechanism in the paper.
    pub mechanisms: BTreeMap<String, String>,
    /// The knob for each column of `published.csv` that is a condition.
    #[serde(default)]
    pub(super) columns: BTreeMap<String, String>,
    /// The tables named in the column `table` of `published.csv`.
    #[serde(default)]
    pub(super) tables: BTreeMap<String, SourceTable>,
    /// The deviations allowed for rankings; a paper without rankings has none.
    pub(super) allowance: Option<RatioAllowance>,
    #[serde(default)]
    pub(super) experiments: Vec<Experiment>,
    /// The conditions that the paper does not state, with other plausible values.
    #[serde(default)]
    pub(super) open: Vec<OpenCondition>,
    /// The conditions and mechanisms of live runs, if there are any.
    pub(super) live: Option<LiveCells>,
    /// The settings that shorten quick runs, for each scenario.
    #[serde(default)]
    pub(super) quick: BTreeMap<String, BTreeMap<String, String>>,
}

/// A table of the paper, with the factors within which its values agree: a value agrees if it is at most `factor` times
/// the published one, and at least 1 / `factor` of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "TableText")]
pub(super) struct SourceTable {
    /// The table, with the factor that applies to full runs.
    usual: PaperTable,
    /// The factor that applies to quick runs.
    quick_factor: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TableText {
    title: String,
    factor: f64,
    quick_factor: Option<f64>,
    runs: Option<u32>,
    #[serde(default)]
    why: String,
    #[serde(default)]
    witness: String,
}

impl TryFrom<TableText> for SourceTable {
    type Error = String;

    fn try_from(text: TableText) -> Result<Self, String> {
        let TableText { title, factor, quick_factor, runs, why, witness } = text;
        let quick_factor = quick_factor.unwrap_or(factor);
        if !factor.is_finite() || factor < 1.0 {
            return Err(format!("the factor {factor} of `{title}` is not 1 or more"));
        }
        // Fewer seeds scatter more, so a quick run cannot be judged more strictly.
        if !quick_factor.is_finite() || quick_factor < factor {
            return Err(format!(
                "the quick_factor {quick_factor} of `{title}` is less than its factor {factor}"
            ));
        }
        Ok(Self { usual: PaperTable { title, factor, runs, why, witness }, quick_factor })
    }
}

impl PaperSource {
    /// Returns the mechanism to run for `row`, the name of a mechanism in the paper.
    pub(super) fn mechanism(&self, row: &str) -> Result<&str, String> {
        let mechanism = self.mechanisms.get(row).map(String::as_str);
        mechanism.ok_or_else(|| format!("source.toml names no mechanism for the row `{row}`"))
    }

    /// Returns the table of this name with the factor of full runs.
    pub(super) fn table(&self, name: &str) -> Result<&PaperTable, String> {
        let table = self.tables.get(name).map(|table| &table.usual);
        table.ok_or_else(|| format!("source.toml has no table `{name}`"))
    }

    /// Returns a text that says where a value is printed: the key of the paper, and the reproduced results in words.
    pub(super) fn place(&self) -> String {
        format!("{}, {}", self.key, self.results)
    }

    /// Returns the claims for quick runs: with shortened scenarios and the wider factors of tables.
    ///
    /// # Errors
    /// Returns a line if a shortened scenario has no claims.
    pub(super) fn shortened(&self, mut claims: Vec<Claim>) -> Result<Vec<Claim>, String> {
        // A mistyped name would shorten nothing, and quick runs would take as long as full ones.
        if let Some(name) = self.quick.keys().find(|name| claims.iter().all(|claim| claim.scenario != **name))
        {
            return Err(format!("source.toml shortens `{name}`, a scenario without published values"));
        }
        for claim in &mut claims {
            let settings = self.quick.get(&claim.scenario).into_iter().flatten();
            claim.settings.extend(settings.map(|(key, value)| (key.clone(), value.clone())));
            for table in claim.published.tables.values_mut() {
                // A claim has a copy of its table, which the title identifies.
                let quick = self.tables.values().find(|quick| quick.usual.title == table.title);
                table.factor = quick.map_or(table.factor, |quick| quick.quick_factor);
            }
        }
        Ok(claims)
    }

    /// Returns how quick runs are reduced, as text: `2 seeds, duration 120 s instead of 600 s`.
    pub(super) fn quick_words(&self, claims: &[Claim]) -> Result<String, String> {
        let seeds = if self.quick_seeds == 1 { "seed" } else { "seeds" };
        let mut words = vec![format!("{} {seeds}", self.quick_seeds)];
        for (name, settings) in &self.quick {
            let conditions: BTreeSet<_> = (claims.iter())
                .filter(|claim| claim.scenario == *name)
                .map(|claim| &claim.settings)
                .collect();
            for (key, value) in settings {
                // Conditions may differ in the setting. Each value is named once.
                let mut usual = BTreeSet::new();
                for settings in &conditions {
                    let scenario = Scenario::load(name, settings).map_err(|error| error.to_string())?;
                    usual.extend(setting(&scenario, key));
                }
                let usual = usual.into_iter().collect::<Vec<_>>().join(" or ");
                let place = if self.quick.len() > 1 { format!(" ({name})") } else { String::new() };
                words.push(format!("{key} {value} instead of {usual}{place}"));
            }
        }
        let loosened = self.tables.values().filter(|table| table.quick_factor > table.usual.factor);
        words.extend(loosened.map(|SourceTable { usual, quick_factor }| {
            format!("a factor of {quick_factor} instead of {} for {}", usual.factor, usual.title)
        }));
        Ok(words.join(", "))
    }
}

/// Returns the value of a knob or of a key.
fn setting(scenario: &Scenario, key: &str) -> Option<String> {
    let canonical = scenario.canonical();
    // The separator must follow the key, or `a.b` would find `a.bc`.
    let line = || canonical.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
    scenario.knob(key).or_else(line).map(|value| value.trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use crate::papers::Paper;
    use crate::papers::tests::paper;
    use crate::results::Metric;

    #[test]
    fn published_values_are_judged_by_the_factor_of_their_table_and_quick_runs_by_a_wider_one() {
        let tables = "[tables.3]\ntitle = 'Table 3'\nfactor = 1.5\nquick_factor = 2\nwhy = 'w'\n";
        let paper = paper(tables, "table,loss,mechanism,throughput\n3,4 %,ours,650\n,4 %,plain,190\n");
        for (quick, factor) in [(false, 1.5), (true, 2.0)] {
            let (trials, references) = paper.trials(quick, &[]).unwrap();
            let published: Vec<_> =
                trials.iter().filter_map(|trial| references.published(&trial.cell())).collect();
            assert!((published[0].tables[&Metric::Throughput].factor - factor).abs() < 1e-12);
            assert_eq!(published[0].plain().count(), 0);
            assert_eq!(published[1].plain().collect::<Vec<_>>(), [Metric::Throughput]);
        }
    }

    #[test]
    fn a_quick_reproduction_is_shortened_and_says_by_how_much() {
        let text = "[quick.lossy-switch]\n'workload.duration' = '30 s'\nloss = '4 %'\n\
                    [tables.3]\ntitle = 'Table 3'\nfactor = 1.5\nquick_factor = 2\n";
        let paper = paper(text, "table,loss,mechanism,throughput\n3,8 %,ours,650\n3,12 %,plain,190\n");
        let words = paper.quick().unwrap();
        assert_eq!(
            words,
            "2 seeds, loss 4 % instead of 12 % or 8 %, workload.duration 30 s instead of 140 s, \
             a factor of 2 instead of 1.5 for Table 3"
        );
        let (trials, _) = paper.trials(true, &[]).unwrap();
        assert!(trials.iter().all(|trial| trial.scenario.knob("loss") == Some("4 %") && trial.seeds == 2));
        assert_eq!(paper.trials(false, &[]).unwrap().0[0].scenario.knob("loss"), Some("8 %"));
        let raitahila = Paper::find("raitahila2019").unwrap();
        assert_eq!(raitahila.quick().unwrap(), "2 seeds", "only the seeds are fewer");
    }
}
