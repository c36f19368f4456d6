//! Settings with several values each: every combination is a condition.

use coapace_scenario::{setting_of, split_values};

use crate::lists::distinct;

/// The most conditions of a grid.
pub const MOST: usize = 10_000;

/// A setting of a scenario: key and value.
pub type Setting = (String, String);

/// Returns the settings of every condition that `settings` describe. The first key varies slowest.
///
/// Commas separate values: `clients=10,50,100`. A comma within quotes, brackets or braces does not, so `sinks=[0,1]` and
/// `uri_path="a,b"` are one value each. Where a key is set more than once, the last setting counts.
///
/// # Errors
/// Returns one line if a value beside a comma is missing, or there are more than [`MOST`] conditions.
pub fn conditions(settings: &[Setting]) -> Result<Vec<Vec<Setting>>, String> {
    let mut conditions: Vec<Vec<Setting>> = vec![Vec::new()];
    for (place, (key, text)) in settings.iter().enumerate() {
        if settings[place + 1..].iter().any(|(later, _)| later == key) {
            continue;
        }
        let values = split_values(text);
        if values.len() > 1 && values.contains(&"") {
            return Err(format!(
                "--set {key}={text}: a value is missing beside a comma; put a comma that belongs to a value in quotes or brackets"
            ));
        }
        if let Some(told) = unit_of_one(&values) {
            return Err(format!("--set {key}={text}: {told}"));
        }
        if conditions.len() * values.len() > MOST {
            return Err(format!("--set {key}={text}: these are more than {MOST} conditions"));
        }
        conditions = with_each(&conditions, key, &values);
    }
    Ok(conditions)
}

/// Returns a line if some values have a unit and others, of the same list, are bare numbers: a unit behind the last value is often
/// meant for all.
fn unit_of_one(values: &[&str]) -> Option<String> {
    let parts = |value: &'_ str| -> Option<(usize, f64)> {
        let end = value.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-').unwrap_or(value.len());
        Some((end, value.get(..end)?.parse().ok()?))
    };
    let is_bare = |value: &str| parts(value).is_some_and(|(end, number)| end == value.len() && number != 0.0);
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
        values.clone().zip(values.skip(1)).any(|(one, next)| one != next)
    };
    keys.into_iter().filter(differs).collect()
}

/// Returns each condition with each of the values of a further key. The condition varies slowest.
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
    fn every_combination_is_a_condition_and_the_first_key_varies_slowest() {
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
    fn a_comma_within_brackets_braces_or_quotes_separates_nothing() {
        for value in ["[0, 1]", "{ good = \"0 %\", bad = \"50 %\" }", "\"a,b\"", "'a,b'", "[[1,2],[3,4]]"] {
            assert_eq!(of(&[("k", value)]).unwrap(), [format!("k={value}")]);
        }
        assert_eq!(of(&[("k", "[0,1],[2,3]")]).unwrap(), ["k=[0,1]", "k=[2,3]"]);
        assert_eq!(of(&[("k", "")]).unwrap(), ["k="], "an empty value is for the scenario to judge");
    }

    #[test]
    fn a_unit_behind_one_value_is_not_that_of_all() {
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
    fn the_last_setting_of_a_key_counts() {
        assert_eq!(of(&[("a", "1,2"), ("b", "3"), ("a", "4")]).unwrap(), ["b=3 a=4"]);
    }

    #[test]
    fn keys_are_varied_whose_last_values_differ() {
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
    fn a_missing_value_and_too_many_conditions_are_told() {
        for value in ["1,,2", ",1", "1,"] {
            assert!(
                of(&[("k", value)]).unwrap_err().starts_with(&format!("--set k={value}: a value is missing"))
            );
        }
        let many = (0..101).map(|value| value.to_string()).collect::<Vec<_>>().join(",");
        assert!(of(&[("a", &many), ("b", &many)]).unwrap_err().contains("more than 10000 conditions"));
    }
}
