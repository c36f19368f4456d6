//! Suites: the cells of a ranking.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use coapace_scenario::{Scenario, Source, WorkloadKind};
use serde::Deserialize;

use crate::experiment::Trial;
use crate::grid::{Grid, Setting};
use crate::papers::Paper;
use crate::results::Metric;
use coapace_run::contender::Contender;

/// The suites that come with the program, by name.
const BUILTINS: &[(&str, &str)] = &[
    ("published", include_str!("../../suites/published.toml")),
    ("bottleneck", include_str!("../../suites/bottleneck.toml")),
    ("mesh", include_str!("../../suites/mesh.toml")),
    ("lossy", include_str!("../../suites/lossy.toml")),
];

/// The maximum number of cells of a suite.
const MOST_CELLS: usize = 10_000;

/// Cells over which mechanisms are compared.
#[derive(Clone, Debug, Default)]
pub struct Suite {
    /// The heading of the suite.
    pub title: String,
    /// The purpose, in a sentence; may be empty.
    pub summary: String,
    /// The cells, no two of which have equal runs.
    pub cells: Vec<SuiteCell>,
}

/// A cell of a suite: a condition, its number of seeds, and the metrics that count in it.
#[derive(Clone, Debug)]
pub struct SuiteCell {
    /// The network and the workload.
    pub scenario: Arc<Scenario>,
    /// The number of seeds of each mechanism.
    pub seeds: u32,
    /// The metrics that count, the most important first.
    pub metrics: Vec<Metric>,
}

/// The content of a suite's file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    title: String,
    #[serde(default)]
    summary: String,
    entries: Vec<SuiteEntry>,
}

/// An entry of a suite's file: cells that share a scenario or a paper.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SuiteEntry {
    /// A built-in scenario, or the path of a file relative to the suite's folder.
    scenario: Option<String>,
    /// The key of a paper, instead of a scenario. Every condition of the paper is a cell.
    paper: Option<String>,
    /// Settings of the scenario. A list of values makes a grid.
    #[serde(default)]
    set: BTreeMap<String, SettingValues>,
    /// A cell is left out if its knobs have the values in one of these tables. A list means any of its values.
    #[serde(default)]
    except: Vec<BTreeMap<String, SettingValues>>,
    /// The number of seeds; `None` for the scenario's number.
    seeds: Option<u32>,
    /// The metrics that count; empty for the default metrics of the workload.
    #[serde(default)]
    metrics: Vec<Metric>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum SettingValues {
    Several(Vec<toml::Value>),
    One(toml::Value),
}

impl Suite {
    /// Returns the names of the suites that come with the program.
    pub fn names() -> impl Iterator<Item = &'static str> {
        BUILTINS.iter().map(|(name, _)| *name)
    }

    /// Reads suites and scenarios, built-in or in files, into one suite. `settings` apply to every cell; several values of a
    /// key, separated by commas, make a grid.
    ///
    /// # Errors
    /// Returns the first error in one line.
    pub fn load(words: &[String], settings: &[Setting]) -> Result<Self, String> {
        Self::joined(words.iter().map(|word| Self::load_one(word, settings)))
    }

    /// Returns the suite of one cell: a scenario with its number of seeds.
    pub fn of(scenario: &Arc<Scenario>) -> Self {
        let (title, summary) = (scenario.title.clone(), scenario.summary.clone());
        let (seeds, metrics) = (scenario.defaults.seeds, headline_metrics(scenario));
        Self { title, summary, cells: vec![SuiteCell { scenario: scenario.clone(), seeds, metrics }] }
    }

    /// Joins suites into one. If several cells have equal runs, only the first is kept.
    ///
    /// # Errors
    /// Returns the first error among the suites, or a line if there are none.
    pub fn joined(suites: impl IntoIterator<Item = Result<Self, String>>) -> Result<Self, String> {
        let mut suites = suites.into_iter();
        let mut all = suites.next().ok_or("a ranking needs a suite or a scenario")??;
        for suite in suites {
            let suite = suite?;
            all.title = format!("{}; {}", all.title, suite.title);
            // A sentence about one suite does not hold for several.
            all.summary = String::new();
            all.cells.extend(suite.cells);
        }
        // A cell that is in two suites must not count twice.
        let mut known = BTreeSet::new();
        all.cells.retain(|cell| known.insert((cell.scenario.name.clone(), cell.scenario.hash())));
        Ok(all)
    }

    fn load_one(word: &str, settings: &[Setting]) -> Result<Self, String> {
        if let Some((_, text)) = BUILTINS.iter().find(|(name, _)| *name == word) {
            return Self::parse(text, None, settings).map_err(|error| format!("suites/{word}.toml: {error}"));
        }
        // A built-in name takes precedence over a file of that name.
        if Scenario::builtin(word).is_none() && Path::new(word).is_file() {
            // Read like a scenario, with the same bound on the length.
            let text = Source::find(word).map_err(|error| error.to_string())?.text;
            let is_suite =
                toml::from_str::<toml::Table>(&text).is_ok_and(|table| table.contains_key("entries"));
            if is_suite {
                let folder = Path::new(word).parent();
                return Self::parse(&text, folder, settings).map_err(|error| format!("{word}: {error}"));
            }
        }
        let entry = SuiteEntry::default();
        let cells = entry.cells_of(word, &[], settings).map_err(|error| {
            let suites = Self::names().collect::<Vec<_>>().join(", ");
            format!("{error}; a suite is {suites} or a file with `[[entries]]`")
        })?;
        // All cells are of one scenario, so the first has its title.
        let first = cells.first().map(|cell| cell.scenario.clone());
        let (title, summary) =
            first.map_or_else(Default::default, |first| (first.title.clone(), first.summary.clone()));
        Ok(Self { title, summary, cells })
    }

    /// Reads a suite. Paths of scenarios are relative to `folder`.
    fn parse(text: &str, folder: Option<&Path>, settings: &[Setting]) -> Result<Self, String> {
        let text: Text = toml::from_str(text).map_err(|error| wrong(text, &error))?;
        let mut cells = Vec::new();
        for (place, entry) in text.entries.iter().enumerate() {
            let own = entry.cells(folder, settings);
            cells.extend(own.map_err(|error| format!("entry {}: {error}", place + 1))?);
            // Counted after every entry, because each may be a large grid.
            if cells.len() > MOST_CELLS {
                return Err(format!("the suite has more than {MOST_CELLS} cells"));
            }
        }
        Ok(Self { title: text.title, summary: text.summary, cells })
    }

    /// Returns a trial for each cell and contender, cell by cell. Every cell has its own number of seeds, from 1 on.
    ///
    /// # Errors
    /// Returns one line if a contender does not fit a scenario.
    pub fn trials(&self, contenders: &[Contender]) -> Result<Vec<Trial>, String> {
        let mut trials = Vec::new();
        for cell in &self.cells {
            for contender in contenders {
                contender.fits(&cell.scenario)?;
                trials.push(Trial::of_totals(&cell.scenario, contender.clone(), cell.seeds));
            }
        }
        Ok(trials)
    }
}

/// Returns the error in a suite in one line, without the text of the file.
fn wrong(text: &str, error: &toml::de::Error) -> String {
    // `message` has no excerpt of the file, which may be any file.
    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let message = error.message().replace(char::is_control, " ");
    format!("line {line}: {message}")
}

impl SuiteEntry {
    fn cells(&self, folder: Option<&Path>, settings: &[Setting]) -> Result<Vec<SuiteCell>, String> {
        match (&self.scenario, &self.paper) {
            (Some(scenario), None) => {
                // A built-in name is not a path. A file is looked for beside the suite.
                let path = folder.filter(|_| Scenario::builtin(scenario).is_none());
                let path = path.map(|folder| folder.join(scenario).to_string_lossy().into_owned());
                self.cells_of(path.as_deref().unwrap_or(scenario), &[], settings)
            }
            (None, Some(key)) => {
                let paper = Paper::named(key)?;
                let cells = paper.conditions()?.into_iter().map(|(scenario, own)| {
                    let cells = self.cells_of(&scenario, &own, settings);
                    cells.map_err(|error| format!("{key}: {error}"))
                });
                Ok(cells.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
            }
            _ => Err("an entry must have either `scenario` or `paper`".to_owned()),
        }
    }

    /// Returns the cells of one scenario. The caller's settings override the entry's settings, which override the
    /// paper's settings.
    fn cells_of(
        &self,
        scenario: &str,
        of_paper: &[Setting],
        of_caller: &[Setting],
    ) -> Result<Vec<SuiteCell>, String> {
        let own = self.set.iter().map(|(key, values)| Ok((key.clone(), values.text(key)?)));
        let own = own.collect::<Result<Vec<_>, String>>()?;
        // A value of a paper is one value, even with commas.
        let of_paper = of_paper.iter().map(|(key, value)| (key.clone(), quoted(value)));
        // Where a key is set more than once, the last setting counts.
        let settings: Vec<Setting> = of_paper.chain(own).chain(of_caller.iter().cloned()).collect();
        let mut cells = Vec::new();
        let grid = Grid::new(scenario, &settings).map_err(|error| error.to_string())?;
        for scenario in grid.scenarios() {
            let scenario = scenario.map_err(|error| error.to_string())?;
            let seeds = self.seeds.unwrap_or(scenario.defaults.seeds);
            // The bounds of `defaults.seeds` in a scenario.
            if seeds == 0 || seeds > 100_000 {
                return Err(format!("`seeds` must be a number from 1 to 100000, not {seeds}"));
            }
            // After the scenario is made, because an exception is about its knobs, which settings and choices decide.
            if self.excepts(&scenario)? {
                continue;
            }
            let metrics =
                if self.metrics.is_empty() { headline_metrics(&scenario) } else { self.metrics.clone() };
            cells.push(SuiteCell { scenario, seeds, metrics });
        }
        Ok(cells)
    }

    /// Returns whether [`except`](Self::except) leaves out the cell of this scenario.
    fn excepts(&self, scenario: &Scenario) -> Result<bool, String> {
        for exception in &self.except {
            // A cell is an exception if all knobs of one table match.
            let mut is_one = true;
            for (knob, values) in exception {
                let text = values.text(knob)?;
                match scenario.knob(knob) {
                    Some(value) => is_one &= coapace_scenario::split_values(&text).contains(&value),
                    // The scenarios of a paper have different knobs.
                    None if self.paper.is_some() => is_one = false,
                    None => {
                        let name = &scenario.name;
                        return Err(format!("`except` names the knob `{knob}`, which {name} does not have"));
                    }
                }
            }
            // An empty table would except every cell.
            if is_one && !exception.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl SettingValues {
    /// Returns the values as one setting of a grid.
    fn text(&self, key: &str) -> Result<String, String> {
        let values = match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Several(values) => values,
        };
        let text = |value: &toml::Value| match value {
            toml::Value::String(text) => Ok(quoted(text)),
            toml::Value::Integer(number) => Ok(number.to_string()),
            toml::Value::Float(number) => Ok(number.to_string()),
            toml::Value::Boolean(flag) => Ok(flag.to_string()),
            _ => Err(format!("`set.{key}` takes texts, numbers and lists of these")),
        };
        if values.is_empty() {
            return Err(format!("`set.{key}` has no value"));
        }
        Ok(values.iter().map(text).collect::<Result<Vec<_>, _>>()?.join(","))
    }
}

/// Returns a text in quotes if it has commas, which a grid would treat as separators. The scenario removes the quotes.
fn quoted(value: &str) -> String {
    if coapace_scenario::split_values(value).len() > 1 { format!("'{value}'") } else { value.to_owned() }
}

/// Returns the metrics that count in a scenario, the most important first. If clients finish, the median alone would reward a
/// mechanism that lets a few clients wait, so the mean, the slowest tenth and the last client count as much.
pub fn headline_metrics(scenario: &Scenario) -> Vec<Metric> {
    let workload = &scenario.workload;
    if workload.kind == WorkloadKind::Flows {
        let event = workload.flows.iter().any(|flow| flow.pattern.is_event());
        let backlogged = workload.flows.iter().any(|flow| flow.pattern.is_backlogged());
        // Backlogged clients offer as much as is carried, so their delivery ratio says nothing.
        let delivered = if backlogged { Metric::CarriedLoad } else { Metric::Pdr };
        let all = [event.then_some(Metric::SettlingTime), Some(delivered), Some(Metric::Delay)];
        return all.into_iter().flatten().collect();
    }
    if workload.kind == WorkloadKind::Transfer {
        // The slowest transfer counts as much as the mean, and blocks that arrive twice are the price of speed.
        return [Metric::TransferTime, Metric::TransferTimeMax, Metric::BlocksTwice].into();
    }
    if workload.duration.is_some() {
        // The time of completed exchanges is left out: a mechanism that gives up soon completes only the quick ones.
        return [Metric::Throughput, Metric::TransmissionsPerExchange].into();
    }
    [Metric::MedianFct, Metric::MeanFct, Metric::FctP90, Metric::FctMax, Metric::TransmissionsPerExchange]
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(entries: &str) -> Result<Suite, String> {
        Suite::parse(&format!("title = 't'\n{entries}"), None, &[])
    }

    #[test]
    fn every_built_in_suite_is_valid_and_has_no_two_equal_cells() {
        for name in Suite::names() {
            let suite = Suite::load(&[name.to_owned()], &[]).unwrap();
            assert!(!suite.cells.is_empty() && !suite.title.is_empty(), "{name}");
            assert!(suite.cells.iter().all(|cell| !cell.metrics.is_empty()));
            assert!(Scenario::builtin(name).is_none(), "a scenario has the name {name}, too");
        }
    }

    #[test]
    fn the_suite_published_has_the_conditions_of_all_papers_except_hopeless_ones() {
        let suite = Suite::load(&["published".to_owned()], &[]).unwrap();
        let cells: BTreeSet<_> = suite.cells.iter().map(|cell| cell.scenario.hash()).collect();
        let mut left_out = BTreeSet::new();
        for paper in crate::papers::PAPERS {
            for trial in paper.trials(false, &[]).unwrap().0 {
                let knob = |name| trial.scenario.knob(name).unwrap_or_default();
                if !cells.contains(&trial.scenario.hash()) {
                    let lossy = knob("success_tx") == "50 %";
                    let flooded = knob("radio") == "unit-disk" && knob("background") != "20 kbit/s";
                    assert!(lossy || flooded, "{}: {:?}", paper.key, trial.scenario.knob_values());
                    left_out.insert(trial.scenario.hash());
                }
            }
        }
        assert_eq!((left_out.len(), cells.len()), (12, 75));
    }

    #[test]
    fn lists_in_a_suite_make_a_grid_and_settings_of_the_caller_override_them() {
        let entry =
            "[[entries]]\nscenario = 'nb-iot'\nseeds = 3\nset = { clients = [10, '50'], errors = 'high' }";
        let suite = parse(entry).unwrap();
        let knobs = |suite: &Suite, knob: &str| -> Vec<String> {
            suite.cells.iter().map(|cell| cell.scenario.knob(knob).unwrap().to_owned()).collect()
        };
        assert_eq!(knobs(&suite, "clients"), ["10", "50"]);
        assert_eq!(knobs(&suite, "errors"), ["high", "high"]);
        assert!(suite.cells.iter().all(|cell| cell.seeds == 3 && cell.metrics[0] == Metric::MedianFct));
        let except =
            format!("{entry}\nexcept = [{{ clients = [50, 60], errors = 'high' }}, {{ clients = 70 }}]");
        assert_eq!(knobs(&parse(&except).unwrap(), "clients"), ["10"]);
        let settings = [("errors".to_owned(), "none,low".to_owned()), ("clients".to_owned(), "7".to_owned())];
        let suite = Suite::parse(&format!("title = 't'\n{entry}"), None, &settings).unwrap();
        assert_eq!(
            (knobs(&suite, "clients"), knobs(&suite, "errors")),
            (vec!["7".into(); 2], vec!["none".into(), "low".into()])
        );
    }

    #[test]
    fn a_suite_value_with_commas_is_one_value() {
        let value = "network.down.link.jitter";
        let entry = format!(
            "[[entries]]\nscenario = 'lossy-switch'\nset = {{ '{value}' = '[\"0 ms\", \"40 ms\"]' }}"
        );
        assert_eq!(parse(&entry).unwrap().cells.len(), 1);
        let path = "[[entries]]\nscenario = 'nb-iot'\nset = { 'clients.uri_path' = 'a,b' }";
        let cells = parse(path).unwrap().cells;
        assert_eq!(cells[0].scenario.clients.uri_path, "a,b");
    }

    #[test]
    fn an_unreadable_suite_is_refused() {
        for (entries, expected) in [
            ("[[entries]]\nseeds = 3", "entry 1: an entry must have either `scenario` or `paper`"),
            ("[[entries]]\nscenario = 'nb-iot'\npaper = 'meng2017'", "either `scenario` or `paper`"),
            ("[[entries]]\npaper = 'zzz'", "`zzz` is not the name of a paper; the papers are "),
            ("[[entries]]\nscenario = 'nb-iot'\nset = { clients = [] }", "`set.clients` has no value"),
            ("[[entries]]\nscenario = 'nb-iot'\nset = { clients = { a = 1 } }", "takes texts, numbers"),
            ("[[entries]]\nscenario = 'nb-iot'\nset = { cleints = 1 }", "did you mean `clients`?"),
            (
                "[[entries]]\nscenario = 'nb-iot'\nexcept = [{ loss = '2 %' }]",
                "`except` names the knob `loss`, which nb-iot",
            ),
            ("[[entries]]\nscenario = 'nb-iot'\nseeds = 0", "`seeds` must be a number from 1"),
            (
                "[[entries]]\nscenario = 'nb-iot'\nmetrics = ['median']",
                "`median` is not the name of a metric",
            ),
            ("[[entries]]\nscenario = 'nb-iot'\nseed = 3", "unknown field `seed`"),
            ("", "missing field `entries`"),
        ] {
            let error = parse(entries).unwrap_err();
            assert!(error.contains(expected) && !error.contains('\n'), "{entries}: {error}");
        }
        let error = Suite::load(&["publishd".to_owned()], &[]).unwrap_err();
        assert!(
            error.contains("neither a built-in scenario nor a file") && error.contains("published, "),
            "{error}"
        );
        assert!(Suite::load(&[], &[]).is_err());
    }

    #[test]
    fn each_kind_of_workload_has_its_own_main_metrics() {
        let of = |name: &str| headline_metrics(&Scenario::load(name, &[]).unwrap());
        assert_eq!(of("nb-iot").len(), 5);
        assert_eq!(of("lossy-switch"), [Metric::Throughput, Metric::TransmissionsPerExchange]);
        assert_eq!(of("mesh-grid"), [Metric::Pdr, Metric::Delay]);
        let settings = [("traffic".to_owned(), "event".to_owned())];
        let event = Scenario::load("mesh-grid", &settings).unwrap();
        assert_eq!(headline_metrics(&event)[0], Metric::SettlingTime);
    }
}
