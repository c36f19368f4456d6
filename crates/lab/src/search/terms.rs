//! The terms of a search: its mechanisms, parameters, networks and seeds.

use super::networks::Networks;
use super::space::{Space, Varied};
use coapace_run::contender::Contender;

/// The numbers of scenarios that a set may have.
const SCENARIOS: [u32; 2] = [9, 10_000];

/// The terms of a search, or of a comparison if no parameter varies.
#[derive(Clone, Debug)]
pub struct SearchTerms {
    /// The mechanisms, as they are named on the command line; one if parameters vary.
    pub mechanisms: Vec<String>,
    /// The parameters that vary.
    pub vary: Vec<Varied>,
    /// The kind of the networks that are drawn.
    pub networks: Networks,
    /// The seed of the scenarios that are drawn.
    pub generator_seed: u64,
    /// The number of scenarios that are drawn. Half as many more show how a mechanism shares with `default`, except with meshes.
    pub scenarios: u32,
    /// The brackets of successive halving.
    pub brackets: u32,
    /// The seed of the search.
    pub seed: u64,
}

impl SearchTerms {
    /// The generator seed of a search that names none.
    pub const GENERATOR_SEED: u64 = 1;
    /// The number of scenarios of a search that names none.
    pub const SCENARIOS: u32 = 72;
    /// The brackets of a search that names none.
    pub const BRACKETS: u32 = 10;
    /// The seed of a search that names none.
    pub const SEED: u64 = 1;

    /// Returns the parameters to vary, if there are any. Every mechanism and every value is checked before the first measurement.
    ///
    /// # Errors
    /// Returns one line on the first term that cannot be searched or compared.
    pub fn space(&self) -> Result<Option<Space>, String> {
        let [least, most] = SCENARIOS;
        if !(least..=most).contains(&self.scenarios) {
            return Err(format!("scenarios is {}, but must be from {least} to {most}", self.scenarios));
        }
        if self.mechanisms.is_empty() {
            return Err("name a mechanism".to_owned());
        }
        let parse = |label: &str| match Contender::parse(label)?.only() {
            Some(part) if part.bulk.is_some() => Err(format!(
                "{label:?} is a mechanism for bodies, and the networks of a search have no transfers (docs/bulk.md)"
            )),
            Some(_) => Ok(()),
            None => Err(format!("{label:?} is not a single mechanism over UDP")),
        };
        self.mechanisms.iter().try_for_each(|label| parse(label))?;
        if self.vary.is_empty() {
            return Ok(None);
        }
        if self.brackets == 0 {
            return Err("brackets is 0, but must be at least 1".to_owned());
        }
        let [mechanism] = &self.mechanisms[..] else {
            return Err("parameters of one mechanism vary: name one".to_owned());
        };
        // Parameters are checked one by one, because their combinations are too many.
        for varied in &self.vary {
            let alone = Space { mechanism: mechanism.clone(), varied: vec![varied.clone()] };
            (0..varied.values.len()).try_for_each(|value| parse(&alone.label(&vec![value])))?;
        }
        Ok(Some(Space { mechanism: mechanism.clone(), varied: self.vary.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_that_cannot_be_searched_are_told_in_a_line() {
        let terms = |mechanisms: &[&str], vary: &[&str]| SearchTerms {
            mechanisms: mechanisms.iter().map(|&it| it.to_owned()).collect(),
            vary: vary.iter().map(|text| Varied::parse(text).unwrap()).collect(),
            networks: Networks::default(),
            generator_seed: SearchTerms::GENERATOR_SEED,
            scenarios: SearchTerms::SCENARIOS,
            brackets: SearchTerms::BRACKETS,
            seed: SearchTerms::SEED,
        };
        assert_eq!(terms(&["default", "ebb"], &[]).space(), Ok(None));
        let space = terms(&["default"], &["ack_timeout=1s|2s"]).space().unwrap().unwrap();
        assert_eq!(space.label(&vec![1]), "default:ack_timeout=2s");
        let few = SearchTerms { scenarios: 8, ..terms(&["default"], &[]) };
        let none = SearchTerms { brackets: 0, ..terms(&["default"], &["ack_timeout=1s|2s"]) };
        for (wrong, sentence) in [
            (few, "scenarios is 8, but must be from 9 to 10000"),
            (none, "brackets is 0, but must be at least 1"),
            (terms(&[], &[]), "name a mechanism"),
            (terms(&["tcp"], &[]), "\"tcp\" is not a single mechanism over UDP"),
            (
                terms(&["tide"], &["target=2|3"]),
                "\"tide\" is a mechanism for bodies, and the networks of a search have no transfers (docs/bulk.md)",
            ),
            (terms(&["default+ebb"], &[]), "\"default+ebb\" is not a single mechanism over UDP"),
            (
                terms(&["default", "ebb"], &["ack_timeout=1s|2s"]),
                "parameters of one mechanism vary: name one",
            ),
        ] {
            assert_eq!(wrong.space(), Err(sentence.to_owned()));
        }
        assert!(terms(&["default"], &["ack_timeout=1s|x"]).space().is_err());
    }
}
