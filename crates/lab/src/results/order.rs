//! Published orders of mechanisms.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Metric;

/// That the figure of one mechanism is above that of another under the same conditions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// What is measured.
    pub metric: Metric,
    /// How far above.
    pub relation: Relation,
    /// The mechanism that is below.
    pub than: String,
}

/// How far one figure is above another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Relation {
    /// It is larger.
    #[serde(rename = ">")]
    Above,
    /// It is not smaller.
    #[serde(rename = ">=")]
    NotBelow,
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Above => ">",
            Self::NotBelow => "≥",
        })
    }
}

/// Several mechanisms in order, such as `cocoa-i >= cocoa > default`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Chain {
    /// The first of them.
    pub first: String,
    /// Each of the others with its relation to the one before.
    pub rest: Vec<(Relation, String)>,
}

impl Chain {
    /// Each mechanism from the last to the first, and what it is above.
    pub fn upwards(&self) -> impl Iterator<Item = (&str, Option<(Relation, &str)>)> {
        let names = self.names().rev();
        let below = self.rest.iter().rev().map(|(relation, name)| Some((*relation, name.as_str())));
        names.zip([None].into_iter().chain(below))
    }

    fn names(&self) -> impl DoubleEndedIterator<Item = &str> {
        [self.first.as_str()].into_iter().chain(self.rest.iter().map(|(_, name)| name.as_str()))
    }
}

impl TryFrom<String> for Chain {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl FromStr for Chain {
    type Err = String;

    /// Reads names with `>` or `>=` between them.
    fn from_str(text: &str) -> Result<Self, String> {
        let told = |problem: &str| format!("the order `{text}` {problem}");
        let mut parts = text.split('>');
        let name = |part: &str| match part.trim() {
            "" => Err(told("lacks a mechanism beside a `>`")),
            name if name.contains(['=', '<']) => Err(told("is not of names with `>` or `>=` between them")),
            name => Ok(name.to_owned()),
        };
        let first = name(parts.next().unwrap_or_default())?;
        let rest = parts
            .map(|part| match part.strip_prefix('=') {
                Some(part) => Ok((Relation::NotBelow, name(part)?)),
                None => Ok((Relation::Above, name(part)?)),
            })
            .collect::<Result<Vec<_>, String>>()?;
        if rest.is_empty() {
            return Err(told("needs two mechanisms"));
        }
        let chain = Self { first, rest };
        let mut names: Vec<_> = chain.names().collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(told(&format!("names `{}` twice", pair[0]))),
            None => Ok(chain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_read_as_its_neighbours() {
        let chain: Chain = "cocoa-i >= cocoa>default".parse().unwrap_or_else(|error| panic!("{error}"));
        let upwards: Vec<_> = chain.upwards().collect();
        assert_eq!(
            upwards,
            [
                ("default", None),
                ("cocoa", Some((Relation::Above, "default"))),
                ("cocoa-i", Some((Relation::NotBelow, "cocoa"))),
            ]
        );
    }

    #[test]
    fn what_is_no_order_is_told() {
        for (text, problem) in [
            ("", "lacks a mechanism beside a `>`"),
            ("cocoa", "needs two mechanisms"),
            ("cocoa >", "lacks a mechanism beside a `>`"),
            ("> cocoa", "lacks a mechanism beside a `>`"),
            ("a >> b", "lacks a mechanism beside a `>`"),
            ("a < b", "is not of names with `>` or `>=` between them"),
            ("a > b < c", "is not of names with `>` or `>=` between them"),
            ("a => b", "is not of names with `>` or `>=` between them"),
            ("a >== b", "is not of names with `>` or `>=` between them"),
            ("a > b > a", "names `a` twice"),
        ] {
            let error = text.parse::<Chain>().unwrap_err();
            assert_eq!(error, format!("the order `{text}` {problem}"));
        }
    }
}
