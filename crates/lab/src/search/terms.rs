//! The settings of a search: its mechanisms, parameters, networks and seeds.

use super::networks::Networks;
use super::space::{Space, Varied};
use coapace_run::contender::Contender;

/// The allowed numbers of scenarios in a set.
const SCENARIOS: [u32; 2] = [9, 10_000];

/// The settings of a search, or of a comparison if no parameter varies.
#[derive(Clone, Debug)]
pub struct SearchTerms {
    /// The mechanisms, as named on the command line; only one if parameters vary.
    pub mechanisms: Vec<String>,
    /// The parameters that vary.
    pub vary: Vec<Varied>,
    /// The kind of the networks that are drawn.
    pub networks: Networks,
    /// The seed of the random scenarios.
    pub generator_seed: u64,
    /// The number of random scenarios. Half as many further scenarios measure how a mechanism shares with `default`, except
    /// with meshes.
    pub scenarios: u32,
    /// The number of brackets of successive halving.
    pub brackets: u32,
    /// The seed from which the search draws the values of parameters.
    pub seed: u64,
}

impl SearchTerms {
    /// The default generator seed of a search.
    pub const GENERATOR_SEED: u64 = 1;
    /// The default number of scenarios of a search.
    pub const SCENARIOS: u32 = 72;
    /// The default number of brackets of a search.
    pub const BRACKETS: u32 = 10;
    /// The default seed of a search.
    pub const SEED: u64 = 1;

    /// Returns the parameters to vary, if there are any. Every mechanism and every value is checked before the first
    /// measurement.
    ///
    /// # Errors
    /// Returns one line on the first setting that cannot be searched or compared.
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
            None => Err(format!("{label:?} is not one mechanism over UDP")),
        };
        self.mechanisms.iter().try_for_each(|label| parse(label))?;
        // Without parameters to vary, the mechanisms are compared as they are.
        if self.vary.is_empty() {
            return Ok(None);
        }
        if self.brackets == 0 {
            return Err("brackets is 0, but must be at least 1".to_owned());
        }
        // Loss compares places of one space, and every mechanism has parameters of its own.
        let [mechanism] = &self.mechanisms[..] else {
            return Err("parameters can vary for one mechanism only: name a single one".to_owned());
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
    fn an_impossible_search_is_refused_in_one_line() {
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
            (terms(&["tcp"], &[]), "\"tcp\" is not one mechanism over UDP"),
            (
                terms(&["tide"], &["target=2|3"]),
                "\"tide\" is a mechanism for bodies, and the networks of a search have no transfers (docs/bulk.md)",
            ),
            (terms(&["default+ebb"], &[]), "\"default+ebb\" is not one mechanism over UDP"),
            (
                terms(&["default", "ebb"], &["ack_timeout=1s|2s"]),
                "parameters can vary for one mechanism only: name a single one",
            ),
        ] {
            assert_eq!(wrong.space(), Err(sentence.to_owned()));
        }
        assert!(terms(&["default"], &["ack_timeout=1s|x"]).space().is_err());
    }
}
