//! Grids: lists of values for settings of a scenario. Every combination of the values is a condition.

use std::sync::Arc;

use coapace_scenario::{Scenario, ScenarioError, Source, Template, setting_of, split_values};

use crate::experiment::Trial;
use crate::lists::distinct;
use coapace_run::contender::Contender;

/// The maximum number of conditions of a grid.
pub const MOST: usize = 10_000;

/// A setting of a scenario: key and value.
pub type Setting = (String, String);

/// The conditions of one scenario, whose file is read only once.
#[derive(Debug)]
pub struct Grid {
    template: Template,
    conditions: Vec<Vec<Setting>>,
}

/// The reason why trials cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The scenario cannot be used.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A mistake in the arguments: a wrong list of values, a mechanism that is unknown or does not fit, or a wrong number of
    /// runs.
    #[error("{0}")]
    Usage(String),
}

impl Grid {
    /// Reads a built-in scenario or a file. `settings` describe its [`conditions`].
    ///
    /// # Errors
    /// Invalid conditions, or a file that cannot be read without the settings.
    pub fn new(name_or_path: &str, settings: &[Setting]) -> Result<Self, PlanError> {
        let conditions = conditions(settings).map_err(PlanError::Usage)?;
        Ok(Self { template: Source::find(name_or_path)?.template()?, conditions })
    }

    /// Returns the scenario under each condition, or the error in its settings. The scenarios name the keys with
    /// varying values, so that results show them.
    pub fn scenarios(&self) -> impl Iterator<Item = Result<Arc<Scenario>, ScenarioError>> {
        let varied = varied(&self.conditions);
        self.conditions
            .iter()
            .map(move |settings| Ok(Arc::new(self.template.scenario(settings)?.showing(&varied, settings))))
    }

    /// Returns a trial for each mechanism under each condition. If `mechanisms` is empty, they are the scenario's defaults.
    /// `seeds` is the first seed and the number of seeds; `None` means from 1 on, as many as the scenario specifies.
    ///
    /// # Errors
    /// Returns the first error in settings or mechanisms, condition by condition.
    pub fn trials(&self, mechanisms: &[String], seeds: Option<(u64, u32)>) -> Result<Vec<Trial>, PlanError> {
        let mut trials = Vec::new();
        for scenario in self.scenarios() {
            let scenario = scenario?;
            // Asked for each condition, because settings may change the defaults.
            let (first_seed, count) = seeds.unwrap_or((1, scenario.defaults.seeds));
            let labels = if mechanisms.is_empty() { &scenario.defaults.mechanisms } else { mechanisms };
            for label in labels {
                let contender = Contender::fitting(label, &scenario).map_err(PlanError::Usage)?;
                trials.push(Trial { first_seed, ..Trial::new(&scenario, contender, count) });
            }
        }
        Ok(trials)
    }
}

/// Returns the settings of every condition described by `settings`. The first key varies slowest.
///
/// Commas separate values: `clients=10,50,100`. A comma within quotes, brackets or braces does not, so `sinks=[0,1]` and
/// `uri_path="a,b"` are one value each. If a key is set more than once, the last setting counts.
///
/// # Errors
/// Returns one line if a value before or after a comma is missing, or if there are more than [`MOST`] conditions.
pub fn conditions(settings: &[Setting]) -> Result<Vec<Vec<Setting>>, String> {
    let mut conditions: Vec<Vec<Setting>> = vec![Vec::new()];
    for (place, (key, text)) in settings.iter().enumerate() {
        // Skipped here and not at the end, so that values that are replaced do not multiply the conditions.
        if settings[place + 1..].iter().any(|(later, _)| later == key) {
            continue;
        }
        let values = split_values(text);
        // A single empty value is left to the key, whose error says what it accepts.
        if values.len() > 1 && values.contains(&"") {
            return Err(format!(
                "--set {key}={text}: a value is missing beside a comma; put a comma that belongs to a value in quotes or brackets"
            ));
        }
        if let Some(advice) = unit_of_one(&values) {
            return Err(format!("--set {key}={text}: {advice}"));
        }
        // Checked before the product is made, which might fill the memory.
        if conditions.len() * values.len() > MOST {
            return Err(format!("--set {key}={text}: this makes more than {MOST} conditions"));
        }
        conditions = with_each(&conditions, key, &values);
    }
    Ok(conditions)
}

/// Returns advice in one line if some values of a list have a unit and others are bare numbers, because a unit after
/// the last value is often meant for all; `None` otherwise.
fn unit_of_one(values: &[&str]) -> Option<String> {
    let parts = |value: &'_ str| -> Option<(usize, f64)> {
        let end = value.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-').unwrap_or(value.len());
        Some((end, value.get(..end)?.parse().ok()?))
    };
    // 0 means the same in every unit.
    let is_bare = |value: &str| parts(value).is_some_and(|(end, number)| end == value.len() && number != 0.0);
    // From the end, because a unit is most often written after the last value.
    let unit = values.iter().rev().find_map(|value| {
        let unit = value.get(parts(value)?.0..)?;
        let is_unit = |c: char| c.is_alphabetic() || c == '/' || c == '%';
        (!unit.is_empty() && unit.trim_start().chars().all(is_unit)).then_some(unit)
    })?;
    let whole = |value: &&str| if is_bare(value) { format!("{value}{unit}") } else { (*value).to_owned() };
    let meant = values.iter().map(whole).collect::<Vec<_>>().join(",");
    values
        .iter()
        .any(|value| is_bare(value))
        .then(|| format!("each value has its own unit; did you mean {meant}?"))
}

/// Returns the keys whose values differ between conditions. A later setting of a key replaces an earlier one.
pub fn varied<S: AsRef<[Setting]>>(conditions: &[S]) -> Vec<&str> {
    let keys = distinct(conditions.iter().flat_map(AsRef::as_ref).map(|(key, _)| key.as_str()));
    let differs = |key: &&str| {
        let values = conditions.iter().map(|settings| setting_of(settings.as_ref(), key));
        // Neighbours are enough: if all neighbours are equal, all conditions are.
        values.clone().zip(values.skip(1)).any(|(one, next)| one != next)
    };
    keys.into_iter().filter(differs).collect()
}

/// Returns each condition combined with each value of another key. The condition varies slowest.
pub(crate) fn with_each(
    conditions: &[Vec<Setting>],
    key: &str,
    values: &[impl AsRef<str>],
) -> Vec<Vec<Setting>> {
    let with = |condition: &Vec<Setting>, value: &str| {
        condition.iter().cloned().chain([(key.to_owned(), value.to_owned())]).collect()
    };
    conditions.iter().flat_map(|it| values.iter().map(move |value| with(it, value.as_ref()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(settings: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let settings: Vec<_> =
            settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let words = |condition: Vec<Setting>| {
            condition.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
        };
        Ok(conditions(&settings)?.into_iter().map(words).collect())
    }

    #[test]
    fn a_grid_has_a_trial_for_each_mechanism_under_each_condition_and_shows_the_varying_keys() {
        let grid = |settings: &[(&str, &str)]| {
            let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
            Grid::new("nb-iot", &settings.iter().map(own).collect::<Vec<_>>())
        };
        let delays = grid(&[("network.up.radio.delay", "200 ms,300 ms"), ("clients", "2")]).unwrap();
        let trials = delays.trials(&["default".to_owned(), "cocoa".to_owned()], Some((5, 2))).unwrap();
        let planned: Vec<_> = (trials.iter())
            .map(|it| (it.scenario.knob("network.up.radio.delay"), it.contender.label.as_str()))
            .collect();
        let [short, long] = [Some("200 ms"), Some("300 ms")];
        assert_eq!(planned, [(short, "default"), (short, "cocoa"), (long, "default"), (long, "cocoa")]);
        assert!(trials.iter().all(|it| (it.first_seed, it.seeds) == (5, 2)));
        assert!(Arc::ptr_eq(&trials[0].scenario, &trials[1].scenario));
        let all = delays.trials(&[], None).unwrap();
        let defaults = &all[0].scenario.defaults;
        assert_eq!((all.len(), all[0].seeds), (2 * defaults.mechanisms.len(), defaults.seeds));

        assert!(matches!(grid(&[("clients", "2,,3")]), Err(PlanError::Usage(_))));
        let wrong = grid(&[("clients", "1,0")]).unwrap();
        assert!(matches!(wrong.trials(&["default".to_owned()], None), Err(PlanError::Scenario(_))));
        let unknown = wrong.trials(&["nosuch".to_owned()], None).unwrap_err();
        assert!(
            unknown.to_string().starts_with("no mechanism is called \"nosuch\""),
            "the first condition's"
        );
    }

    #[test]
    fn every_combination_of_values_is_a_condition_and_the_first_key_varies_slowest() {
        assert_eq!(
            of(&[("clients", "10, 50"), ("loss", "1 %,5%"), ("buffer", "2500")]).unwrap(),
            [
                "clients=10 loss=1 % buffer=2500",
                "clients=10 loss=5% buffer=2500",
                "clients=50 loss=1 % buffer=2500",
                "clients=50 loss=5% buffer=2500"
            ]
        );
        assert_eq!(of(&[]).unwrap(), [""], "without settings there is one condition");
    }

    #[test]
    fn a_comma_within_brackets_braces_or_quotes_does_not_separate_values() {
        for value in ["[0, 1]", "{ good = \"0 %\", bad = \"50 %\" }", "\"a,b\"", "'a,b'", "[[1,2],[3,4]]"] {
            assert_eq!(of(&[("k", value)]).unwrap(), [format!("k={value}")]);
        }
        assert_eq!(of(&[("k", "[0,1],[2,3]")]).unwrap(), ["k=[0,1]", "k=[2,3]"]);
        assert_eq!(of(&[("k", "")]).unwrap(), ["k="], "an empty value is for the scenario to judge");
    }

    #[test]
    fn a_unit_after_the_last_value_does_not_apply_to_the_others() {
        for (values, meant) in [
            ("1,2,5min", "1min,2min,5min"),
            ("1 s, 2, 0", "1 s,2 s,0"),
            ("0.1,5%", "0.1%,5%"),
            ("10,20 m", "10 m,20 m"),
        ] {
            assert_eq!(
                of(&[("k", values)]).unwrap_err(),
                format!("--set k={values}: each value has its own unit; did you mean {meant}?")
            );
        }
        for values in ["1min,2min", "0,5 %", "1,2,5", "none,5", "a1,2", "5,5x5,tsch-101"] {
            assert!(of(&[("k", values)]).is_ok(), "{values}");
        }
    }

    #[test]
    fn the_last_of_several_settings_of_a_key_counts() {
        assert_eq!(of(&[("a", "1,2"), ("b", "3"), ("a", "4")]).unwrap(), ["b=3 a=4"]);
    }

    #[test]
    fn a_key_counts_as_varied_if_its_last_values_differ_between_conditions() {
        let settings = |text: &[(&str, &str)]| -> Vec<Setting> {
            text.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let (one, other) =
            (settings(&[("a", "1"), ("b", "2")]), settings(&[("a", "3"), ("b", "2"), ("a", "4")]));
        assert_eq!(varied(&[one.clone(), other]), ["a"]);
        assert_eq!(varied(&[settings(&[]), one.clone()]), ["a", "b"], "a key that only some conditions set");
        assert_eq!(varied(&[one.clone(), settings(&[("a", "7"), ("b", "2"), ("a", "1")]), one]), [""; 0]);
    }

    #[test]
    fn a_setting_without_a_value_and_too_many_conditions_are_refused() {
        for value in ["1,,2", ",1", "1,"] {
            assert!(
                of(&[("k", value)]).unwrap_err().starts_with(&format!("--set k={value}: a value is missing"))
            );
        }
        let many = (0..101).map(|value| value.to_string()).collect::<Vec<_>>().join(",");
        assert!(of(&[("a", &many), ("b", &many)]).unwrap_err().contains("more than 10000 conditions"));
    }
}
