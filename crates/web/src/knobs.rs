//! Knobs, the short names for settings of a scenario, and the values that their sliders offer.

use coapace_scenario::{Amount, Dimension, Scenario, Template};
use serde::Serialize;

/// A knob of a scenario, as the page shows it.
#[derive(Serialize)]
pub(crate) struct Knob {
    name: String,
    /// The value of the knob in the scenario file.
    value: String,
    /// `choice` if the steps are names, `range` if they are ascending amounts, or `text` if there are no steps.
    kind: &'static str,
    /// The values that the slider offers.
    steps: Vec<String>,
    /// A description of the values that the knob accepts.
    accepts: String,
}

/// The round numbers from 1 to 10 that sliders offer, times ten: 1, 1.5, 2, 3, 5 and 7.
const DIGITS: [u64; 6] = [10, 15, 20, 30, 50, 70];

/// The shares that sliders offer, in parts per thousand.
const SHARES: [u64; 14] = [0, 5, 10, 20, 30, 50, 80, 100, 150, 200, 250, 300, 400, 500];

/// Returns all knobs of a scenario, with the values of the scenario file and the steps of their sliders.
pub(crate) fn knobs(template: &Template, scenario: &Scenario) -> Vec<Knob> {
    let knob = |(name, value): &(String, String)| {
        let accepts = scenario.knob_accepts(name);
        let value = readable(value, &accepts);
        // Keys may limit each other, so only reading the whole scenario shows whether a value is valid.
        let fits = |step: &String| template.scenario(&[(name.clone(), step.clone())]).is_ok();
        let words = words(&accepts);
        let (mut kind, mut steps) =
            if words.len() > 1 { ("choice", words) } else { ("range", steps(&value)) };
        // Where both ends are valid, all between are.
        let is_right = kind == "choice" || [steps.first(), steps.last()].into_iter().flatten().all(fits);
        if !is_right {
            steps.retain(fits);
        }
        // A slider needs two ends.
        if steps.len() < 2 {
            (kind, steps) = ("text", Vec::new());
        }
        Knob { name: name.clone(), value, kind, steps, accepts }
    };
    scenario.knob_values().iter().map(knob).collect()
}

/// Returns an amount with the unit that suits it, such as `60 kbit/s`, and other values as they are. `accepts`
/// describes the accepted values, because sizes have no unit.
fn readable(value: &str, accepts: &str) -> String {
    let is_size = accepts.starts_with("a number of bytes");
    let size = || Some(Amount { dimension: Dimension::Size, value: value.parse().ok()? });
    let amount = if is_size { size() } else { Amount::parse(value) };
    amount.map_or_else(|| value.to_owned(), |amount| amount.to_string())
}

/// Returns the accepted words, if a knob accepts only words: the quoted parts of `accepts`, or `true` and `false`.
/// Empty otherwise.
fn words(accepts: &str) -> Vec<String> {
    if accepts == "true or false" {
        return vec!["false".to_owned(), "true".to_owned()];
    }
    let parts: Vec<&str> = accepts.split('"').collect();
    // Splitting at the quotes puts the words at odd indices, and everything between them at even ones.
    let is_list = parts.iter().step_by(2).all(|part| part.is_empty() || *part == " or ");
    if is_list { parts.into_iter().skip(1).step_by(2).map(str::to_owned).collect() } else { Vec::new() }
}

/// Returns values below and above `value`, and `value` itself, in ascending order; empty if it is neither a number nor
/// an amount.
fn steps(value: &str) -> Vec<String> {
    if let Ok(number) = value.parse::<u64>() {
        return around(number).into_iter().map(|step| step.to_string()).collect();
    }
    let Some(amount) = Amount::parse(value) else { return Vec::new() };
    let values = match amount.dimension {
        // An amount counts a share in parts per 10⁹.
        Dimension::Share => with(SHARES.map(|share| share * 1_000_000).to_vec(), amount.value),
        // From 100 ms to 100 s.
        Dimension::Time if amount.value == 0 => with(around(3_000_000), 0),
        _ => around(amount.value),
    };
    let text = |value| Amount { value, ..amount }.to_string();
    values.into_iter().map(text).collect()
}

/// Returns round numbers from a tenth of `number` to ten times `number`, and the number itself.
fn around(number: u64) -> Vec<u64> {
    // The largest product, 70 · 10¹⁷, fits into 64 bits.
    let powers = (0..18).map(|power| 10_u64.pow(power));
    let rounds = powers.flat_map(|power| DIGITS.map(|digit| (digit * power, digit * power % 10 == 0)));
    // Rounds are computed tenfold, because 1.5 is not whole.
    let near = rounds.filter(|(_, is_whole)| *is_whole).map(|(tenfold, _)| tenfold / 10);
    let (low, high) = (number.div_ceil(10), number.saturating_mul(10));
    if number >= 16 && number.is_power_of_two() {
        // Blocks and bodies, mostly. The smaller ones are whole, too.
        return (0..=6).map(|step| (number * 8) >> step).rev().collect();
    }
    with(near.filter(|step| (low..=high).contains(step)).collect(), number)
}

/// Returns `values` and `one` in ascending order, each once.
fn with(mut values: Vec<u64>, one: u64) -> Vec<u64> {
    values.push(one);
    values.sort_unstable();
    values.dedup();
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opened;

    #[test]
    fn steps_of_a_slider_are_round_ascending_and_include_the_current_value() {
        assert_eq!(steps("50"), "5 7 10 15 20 30 50 70 100 150 200 300 500".split(' ').collect::<Vec<_>>());
        assert_eq!(steps("3"), "1 2 3 5 7 10 15 20 30".split(' ').collect::<Vec<_>>());
        assert!(steps("60 kbit/s").contains(&"60 kbit/s".to_owned()));
        assert_eq!(steps("2.5 %")[..5], ["0 %", "0.5 %", "1 %", "2 %", "2.5 %"]);
        assert_eq!(steps("0 s")[..2], ["0 s", "300 ms"]);
        assert_eq!(
            steps("1 KiB"),
            "128 B,256 B,512 B,1 KiB,2 KiB,4 KiB,8 KiB".split(',').collect::<Vec<_>>()
        );
        assert!(steps("none").is_empty() && steps("10/20").is_empty());
    }

    #[test]
    fn every_slider_step_of_every_built_in_scenario_is_accepted() {
        let mut kinds = std::collections::BTreeMap::<&str, u32>::new();
        for builtin in Scenario::builtins() {
            let template = opened::template(builtin.name, builtin.text).unwrap();
            let scenario = template.scenario(&[]).unwrap();
            for knob in knobs(&template, &scenario) {
                let has_value =
                    knob.kind == "text" || knob.value == "custom" || knob.steps.contains(&knob.value);
                assert!(has_value, "{}: {} {}", builtin.name, knob.name, knob.value);
                *kinds.entry(knob.kind).or_default() += 1;
            }
        }
        assert!(kinds["range"] > 50 && kinds["choice"] > 15, "{kinds:?}");
    }
}
