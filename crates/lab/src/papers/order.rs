//! Published rankings of mechanisms, and ratios.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::lists::repeated;
use crate::results::Metric;

/// A published relation of one mechanism's value to another mechanism's value under the same conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The metric.
    pub metric: Metric,
    /// The relation of the first mechanism's value to the value of the other one, `than`.
    pub relation: Relation,
    /// The factor that multiplies the other mechanism's value before both values are compared; with `=`, the published
    /// ratio. `None` counts as 1.
    pub times: Option<f64>,
    /// The name of the other mechanism.
    pub than: String,
    /// The likely reason if the relation does not hold in our runs, in a line; empty if none is known.
    pub why: String,
    /// The deviations that count as agreement.
    pub allowance: RatioAllowance,
}

/// The deviations of a measured ratio from the published relation that count as agreement. The paper's file specifies them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatioAllowance {
    /// How much smaller a value may be that is claimed to be "not smaller", as a fraction of the other value: 0.05 for
    /// 5 %.
    pub margin: f64,
    /// How much a ratio may differ from the published one, as a factor in both directions: with 0.25 a ratio of 2 may be 1.6 to
    /// 2.5.
    pub tolerance: f64,
}

/// The relation of one mechanism's value to another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Relation {
    /// The value is larger.
    Above,
    /// The value is not smaller.
    NotBelow,
    /// The value is [`Order::times`] times the other.
    Times,
}

impl Order {
    /// Returns the relation and the other mechanism as text, such as `≥ 2.5 default`.
    pub fn words(&self) -> String {
        let times = self.times.map_or_else(String::new, |times| format!(" {times}"));
        format!("{}{times} {}", self.relation, self.than)
    }
}

impl Relation {
    /// Returns the sign of the relation as written in files.
    pub(crate) const fn sign(self) -> &'static str {
        match self {
            Self::Above => ">",
            Self::NotBelow => ">=",
            Self::Times => "=",
        }
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::NotBelow { "≥" } else { self.sign() })
    }
}

/// A line of a paper's file that relates two or more mechanisms: a ranking, such as `cocoa-i >= cocoa > default`; a
/// ranking with a factor, such as `rtt-coap >= 2.5 default`; or a ratio, such as `gst-coap = 0.69 default`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Chain {
    /// The first mechanism.
    pub first: String,
    /// The other mechanisms, each with the relation of the previous mechanism to it.
    pub rest: Vec<Ranked>,
}

/// A mechanism of a [`Chain`] after the first, and the relation of the previous mechanism to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// The relation of the previous mechanism to this one.
    pub relation: Relation,
    /// The ratio or factor, like [`Order::times`].
    pub times: Option<f64>,
    /// The name of the mechanism.
    pub name: String,
}

impl Chain {
    /// Returns the mechanisms from the last to the first. Each mechanism comes with the next one in the text, which has
    /// the relation between both; the last mechanism comes with `None`.
    pub fn upwards(&self) -> impl Iterator<Item = (&str, Option<&Ranked>)> {
        let below = self.rest.iter().rev().map(Some);
        self.names().rev().zip([None].into_iter().chain(below))
    }

    fn names(&self) -> impl DoubleEndedIterator<Item = &str> {
        [self.first.as_str()].into_iter().chain(self.rest.iter().map(|ranked| ranked.name.as_str()))
    }
}

impl TryFrom<String> for Chain {
    type Error = String;

    /// Parses names separated by `>`, `>=` or `=`, with an optional number before a name.
    fn try_from(text: String) -> Result<Self, String> {
        let invalid = |problem: &str| format!("the order `{text}` {problem}");
        let (first, mut left) = upto_relation(&text);
        let first = name(first).map_err(&invalid)?;
        let mut rest = Vec::new();
        // The rest begins with the sign at which `upto_relation` stopped.
        while !left.is_empty() {
            let (relation, after) = relation(left).map_err(&invalid)?;
            let (part, after) = upto_relation(after);
            rest.push(ranked(relation, part).map_err(&invalid)?);
            left = after;
        }
        if rest.is_empty() {
            return Err(invalid("needs two mechanisms"));
        }
        let chain = Self { first, rest };
        match repeated(chain.names()) {
            Some(name) => Err(invalid(&format!("names `{name}` twice"))),
            None => Ok(chain),
        }
    }
}

/// Splits `text` into the part before its first relation and the rest, which is empty without a relation.
fn upto_relation(text: &str) -> (&str, &str) {
    // `<` is not accepted, but ends a name, so that the error is about the relation.
    text.split_at(text.find(['>', '=', '<']).unwrap_or(text.len()))
}

/// Returns the relation at the beginning of `text`, and the remaining text.
fn relation(text: &str) -> Result<(Relation, &str), &'static str> {
    // `>=` before `>`, with which it begins.
    [(">=", Relation::NotBelow), (">", Relation::Above), ("=", Relation::Times)]
        .into_iter()
        .find_map(|(sign, relation)| Some((relation, text.strip_prefix(sign)?)))
        .ok_or("must be names with `>`, `>=` or `=` between them")
}

fn ranked(relation: Relation, part: &str) -> Result<Ranked, &'static str> {
    // Names have no blanks, so a word before a blank must be the number.
    let (times, rest) = match part.trim().split_once(char::is_whitespace) {
        Some((number, rest)) => {
            let times = number.parse().ok().filter(|times: &f64| times.is_finite() && *times > 0.0);
            (Some(times.ok_or("must have a number above 0, or nothing, before a mechanism")?), rest)
        }
        None => (None, part),
    };
    match (relation, times) {
        (Relation::Times, None) => Err("lacks the number after its `=`"),
        (Relation::Times, Some(1.0)) => Err("must not have the ratio 1, which puts neither mechanism first"),
        _ => Ok(Ranked { relation, times, name: name(rest)? }),
    }
}

fn name(part: &str) -> Result<String, &'static str> {
    match part.trim() {
        "" => Err("lacks a mechanism"),
        name if name.contains(char::is_whitespace) => Err("has two words for a mechanism"),
        name => Ok(name.to_owned()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const ALLOWANCE: RatioAllowance = RatioAllowance { margin: 0.05, tolerance: 0.25 };

    fn chain(text: &str) -> Chain {
        Chain::try_from(text.to_owned()).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_chain_of_mechanisms_is_read_as_comparisons_of_neighbours() {
        let ranked = |relation, name: &str| Ranked { relation, times: None, name: name.to_owned() };
        let chain = chain("cocoa-i >= cocoa>default");
        let (above, not_below) = (ranked(Relation::Above, "default"), ranked(Relation::NotBelow, "cocoa"));
        let upwards: Vec<_> = chain.upwards().collect();
        assert_eq!(upwards, [("default", None), ("cocoa", Some(&above)), ("cocoa-i", Some(&not_below))]);
    }

    #[test]
    fn a_ratio_in_a_published_ranking_multiplies_the_mechanism_after_it() {
        for (text, relation, times) in [
            ("a = 0.6875 b", Relation::Times, Some(0.6875)),
            ("a>=2.5 b", Relation::NotBelow, Some(2.5)),
            ("a > 1.1 b", Relation::Above, Some(1.1)),
            ("a > b", Relation::Above, None),
        ] {
            assert_eq!(chain(text).rest, [Ranked { relation, times, name: "b".to_owned() }], "{text}");
        }
    }

    #[test]
    fn an_invalid_published_ranking_is_refused() {
        for (text, problem) in [
            ("", "lacks a mechanism"),
            ("cocoa", "needs two mechanisms"),
            ("cocoa >", "lacks a mechanism"),
            ("> cocoa", "lacks a mechanism"),
            ("a >> b", "lacks a mechanism"),
            ("a < b", "must be names with `>`, `>=` or `=` between them"),
            ("a > b < c", "must be names with `>`, `>=` or `=` between them"),
            ("a => b", "lacks the number after its `=`"),
            ("a >== b", "lacks a mechanism"),
            ("a > b > a", "names `a` twice"),
            ("a b > c", "has two words for a mechanism"),
            ("a = b", "lacks the number after its `=`"),
            ("a = 1 b", "must not have the ratio 1, which puts neither mechanism first"),
            ("a > -2 b", "must have a number above 0, or nothing, before a mechanism"),
            ("a > inf b", "must have a number above 0, or nothing, before a mechanism"),
            ("a = 2 ", "lacks the number after its `=`"),
        ] {
            let error = Chain::try_from(text.to_owned()).unwrap_err();
            assert_eq!(error, format!("the order `{text}` {problem}"));
        }
    }
}
