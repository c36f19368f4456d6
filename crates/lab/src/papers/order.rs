//! Published orders of mechanisms, and ratios.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::lists::repeated;
use crate::results::Metric;

/// A published relation of one mechanism's figure to that of another under the same conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The metric.
    pub metric: Metric,
    /// The relation of the figure to the other.
    pub relation: Relation,
    /// The published ratio with `=`; otherwise a factor of the other figure before both are compared.
    pub times: Option<f64>,
    /// The other mechanism.
    pub than: String,
    /// The likely reason if it does not hold here, in a line; empty if none is known.
    pub why: String,
    /// The deviations that count as agreement.
    pub allowance: RatioAllowance,
}

/// The deviations of a measured ratio from the published relation that count as agreement. The paper's file states them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatioAllowance {
    /// The share by which a figure may be smaller that is said to be not smaller: 0.05 for 5 %.
    pub margin: f64,
    /// The share by which a ratio may differ from the published one, as a factor either way: with 0.25 a ratio of 2 may be
    /// 1.6 to 2.5.
    pub tolerance: f64,
}

/// The relation of one figure to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Relation {
    /// The figure is larger.
    Above,
    /// The figure is not smaller.
    NotBelow,
    /// The figure is so many times the other.
    Times,
}

impl Order {
    /// Returns the relation and the other mechanism, such as `≥ 2.5 default`.
    pub fn words(&self) -> String {
        let times = self.times.map_or_else(String::new, |times| format!(" {times}"));
        format!("{}{times} {}", self.relation, self.than)
    }
}

impl Relation {
    /// Returns the sign of the relation in files.
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

/// Several mechanisms in order, such as `cocoa-i >= cocoa > default`; with a factor, such as `rtt-coap >= 2.5 default`; or a
/// ratio, such as `gst-coap = 0.69 default`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Chain {
    /// The first mechanism.
    pub first: String,
    /// The other mechanisms, each with the relation of the one before to it.
    pub rest: Vec<Ranked>,
}

/// A mechanism of a [`Chain`] and the relation of the one before to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// The relation of the mechanism before to this one.
    pub relation: Relation,
    /// The ratio or factor, like [`Order::times`].
    pub times: Option<f64>,
    /// The name of the mechanism.
    pub name: String,
}

impl Chain {
    /// Returns the mechanisms from the last to the first, each with its relation to the one that follows it in the text.
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

    /// Reads names with `>`, `>=` or `=` between them, and optionally a number before a name.
    fn try_from(text: String) -> Result<Self, String> {
        let told = |problem: &str| format!("the order `{text}` {problem}");
        let (first, mut left) = upto_relation(&text);
        let first = name(first).map_err(&told)?;
        let mut rest = Vec::new();
        while !left.is_empty() {
            let (relation, after) = relation(left).map_err(&told)?;
            let (part, after) = upto_relation(after);
            rest.push(ranked(relation, part).map_err(&told)?);
            left = after;
        }
        if rest.is_empty() {
            return Err(told("needs two mechanisms"));
        }
        let chain = Self { first, rest };
        match repeated(chain.names()) {
            Some(name) => Err(told(&format!("names `{name}` twice"))),
            None => Ok(chain),
        }
    }
}

/// Splits the text before the next relation.
fn upto_relation(text: &str) -> (&str, &str) {
    text.split_at(text.find(['>', '=', '<']).unwrap_or(text.len()))
}

/// Returns the relation at the beginning of `text`, and the rest.
fn relation(text: &str) -> Result<(Relation, &str), &'static str> {
    [(">=", Relation::NotBelow), (">", Relation::Above), ("=", Relation::Times)]
        .into_iter()
        .find_map(|(sign, relation)| Some((relation, text.strip_prefix(sign)?)))
        .ok_or("is not of names with `>`, `>=` or `=` between them")
}

fn ranked(relation: Relation, part: &str) -> Result<Ranked, &'static str> {
    let (times, rest) = match part.trim().split_once(char::is_whitespace) {
        Some((number, rest)) => {
            let times = number.parse().ok().filter(|times: &f64| times.is_finite() && *times > 0.0);
            (Some(times.ok_or("has something else than a number above 0 before a mechanism")?), rest)
        }
        None => (None, part),
    };
    match (relation, times) {
        (Relation::Times, None) => Err("lacks the number after its `=`"),
        (Relation::Times, Some(1.0)) => Err("says with `= 1` nothing of who is above"),
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
    fn a_chain_is_read_as_its_neighbours() {
        let ranked = |relation, name: &str| Ranked { relation, times: None, name: name.to_owned() };
        let chain = chain("cocoa-i >= cocoa>default");
        let (above, not_below) = (ranked(Relation::Above, "default"), ranked(Relation::NotBelow, "cocoa"));
        let upwards: Vec<_> = chain.upwards().collect();
        assert_eq!(upwards, [("default", None), ("cocoa", Some(&above)), ("cocoa-i", Some(&not_below))]);
    }

    #[test]
    fn a_number_stands_before_the_mechanism_that_it_multiplies() {
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
    fn a_bad_order_is_refused() {
        for (text, problem) in [
            ("", "lacks a mechanism"),
            ("cocoa", "needs two mechanisms"),
            ("cocoa >", "lacks a mechanism"),
            ("> cocoa", "lacks a mechanism"),
            ("a >> b", "lacks a mechanism"),
            ("a < b", "is not of names with `>`, `>=` or `=` between them"),
            ("a > b < c", "is not of names with `>`, `>=` or `=` between them"),
            ("a => b", "lacks the number after its `=`"),
            ("a >== b", "lacks a mechanism"),
            ("a > b > a", "names `a` twice"),
            ("a b > c", "has two words for a mechanism"),
            ("a = b", "lacks the number after its `=`"),
            ("a = 1 b", "says with `= 1` nothing of who is above"),
            ("a > -2 b", "has something else than a number above 0 before a mechanism"),
            ("a > inf b", "has something else than a number above 0 before a mechanism"),
            ("a = 2 ", "lacks the number after its `=`"),
        ] {
            let error = Chain::try_from(text.to_owned()).unwrap_err();
            assert_eq!(error, format!("the order `{text}` {problem}"));
        }
    }
}
