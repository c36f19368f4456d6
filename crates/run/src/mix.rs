//! Populations of clients, each with a mechanism of its own, that share one network.

use coapace_control::Mechanism;
use coapace_scenario::naming::{TCP, bulk_alone, parse_bulk, parse_mechanism, parse_mechanism_beside_tcp};

/// The greatest weight of a part.
const HEAVIEST: u32 = 100;

/// The most parts of a mix.
const MOST: usize = 64;

/// One or more mechanisms, and how they are dealt out to the clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    parts: Vec<MixPart>,
    /// The part of each client in one round. The next clients begin the round again.
    round: Vec<usize>,
}

/// The mechanism of one population.
#[derive(Clone, Debug, PartialEq)]
pub struct MixPart {
    /// The text that named the mechanism.
    pub label: String,
    /// The mechanism with its parameters.
    pub mechanism: Mechanism,
    /// The mechanism for the bodies of transfers, in place of the scenario's.
    pub bulk: Option<Mechanism>,
    /// The clients that have it for each client of a part of weight 1.
    pub weight: u32,
}

impl Mix {
    /// Reads `PART` or `PART+PART+…`. A part is `NAME` or `NAME:parameter=value,…`, with `*WEIGHT` behind it or without.
    ///
    /// # Errors
    /// Returns one line that names the fault in `label`.
    pub fn parse(label: &str) -> Result<Self, String> {
        let labels: Vec<&str> = label.split('+').collect();
        if labels.len() > MOST {
            return Err(format!("a mix has at most {MOST} mechanisms, not {}", labels.len()));
        }
        let is_one = labels.len() == 1;
        let part = |part: &str| {
            let (name, weight) = match part.rsplit_once('*') {
                Some((name, weight)) => (name, weighed(part, weight)?),
                None => (part, 1),
            };
            let is_tcp = name == TCP || name.starts_with("tcp:");
            match name {
                "" if !is_one => Err(format!(
                    "{label:?} has a part without a name; a mix is NAME+NAME or NAME*WEIGHT+NAME, ..."
                )),
                _ if is_tcp => Err(format!(
                    "`{TCP}` cannot be part of a mix: {label:?} is for mechanisms over UDP, which a client can be given \
                     one by one"
                )),
                _ => Ok(MixPart { weight, ..MixPart::parse(name)? }),
            }
        };
        Ok(Self::of(labels.into_iter().map(part).collect::<Result<_, _>>()?))
    }

    /// Mixes these parts.
    pub fn of(parts: Vec<MixPart>) -> Self {
        let round = round(&parts.iter().map(|part| part.weight).collect::<Vec<_>>());
        Self { parts, round }
    }

    /// Returns the parts, in the order in which they were named.
    pub fn parts(&self) -> &[MixPart] {
        &self.parts
    }

    /// Returns the number of the part that a client belongs to. The first client is 0.
    pub fn part_of(&self, client: u32) -> usize {
        // A round is never empty where there is a part.
        self.round.get(client as usize % self.round.len().max(1)).copied().unwrap_or(0)
    }

    /// Returns the fewest clients among which every part has one.
    pub fn fewest_clients(&self) -> u32 {
        let first = |part| self.round.iter().position(|&other| other == part).map_or(0, |place| place + 1);
        (0..self.parts.len()).map(first).max().unwrap_or(0) as u32
    }
}

impl MixPart {
    /// Makes a part of weight 1.
    pub fn new(label: impl Into<String>, mechanism: Mechanism) -> Self {
        Self { label: label.into(), mechanism, bulk: None, weight: 1 }
    }

    /// Reads the name of a mechanism with its parameters. A mechanism for bodies carries bodies, and `default` all else.
    fn parse(text: &str) -> Result<Self, String> {
        if bulk_alone(text).is_none() {
            return parse_mechanism_beside_tcp(text).map(|mechanism| Self::new(text, mechanism));
        }
        let bulk = Some(parse_bulk(text)?);
        Ok(Self { bulk, ..Self::new(text, parse_mechanism("default")?) })
    }
}

fn weighed(part: &str, weight: &str) -> Result<u32, String> {
    let number = weight.parse().ok().filter(|weight| (1..=HEAVIEST).contains(weight));
    number.ok_or_else(|| {
        format!("the weight of {part:?} is a whole number from 1 to {HEAVIEST}, not {weight:?}")
    })
}

/// Returns a round in which each part has as many turns as it weighs, spread as evenly as they can be. Parts of equal weight
/// take turns.
fn round(weights: &[u32]) -> Vec<usize> {
    let total: i64 = weights.iter().map(|&weight| i64::from(weight)).sum();
    // Each turn is owed to the parts in proportion to their weights. The part that is owed most takes the turn.
    let mut owed = vec![0_i64; weights.len()];
    let turn = |_| {
        for (owed, weight) in owed.iter_mut().zip(weights) {
            *owed += i64::from(*weight);
        }
        // Among equals, the first takes the turn.
        let next = (0..owed.len()).rev().max_by_key(|&part| owed[part]).unwrap_or(0);
        if let Some(owed) = owed.get_mut(next) {
            *owed -= total;
        }
        next
    };
    (0..total).map(turn).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(label: &str, clients: u32) -> Vec<usize> {
        let mix = Mix::parse(label).unwrap();
        (0..clients).map(|client| mix.part_of(client)).collect()
    }

    #[test]
    fn equal_parts_take_turns() {
        assert_eq!(turns("cocoa+default", 5), [0, 1, 0, 1, 0]);
        assert_eq!(turns("cocoa+default+fasor", 7), [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(turns("cocoa", 3), [0, 0, 0]);
        assert_eq!(turns("cocoa+cocoa", 4), [0, 1, 0, 1], "two populations of the same mechanism are two");
    }

    #[test]
    fn a_heavier_part_has_more_turns_spread_over_the_round() {
        assert_eq!(turns("cocoa*3+default", 8), [0, 0, 1, 0, 0, 0, 1, 0]);
        assert_eq!(turns("default+cocoa*2", 6), [1, 0, 1, 1, 0, 1]);
        let mix = Mix::parse("cocoa*3+default").unwrap();
        assert_eq!(mix.fewest_clients(), 3, "the third client is the first of default");
    }

    #[test]
    fn a_mechanism_for_bodies_leaves_other_exchanges_to_default() {
        let mix = Mix::parse("tide:target=3+rtt-coap").unwrap();
        let [tide, single] = mix.parts() else { panic!("{mix:?}") };
        assert_eq!((tide.label.as_str(), tide.mechanism), ("tide:target=3", "default".parse().unwrap()));
        assert_eq!(tide.bulk.unwrap().get("target").unwrap().to_string(), "3");
        assert_eq!(single.bulk, None, "it is for single exchanges, too");
        assert!(Mix::parse("tide:zzz=3").unwrap_err().contains("target"));
    }

    #[test]
    fn parameters_belong_to_their_part() {
        let mix = Mix::parse("cocoa:max_rto=20s,k_weak=2*2+default:ack_timeout=3s").unwrap();
        let [cocoa, default] = mix.parts() else { panic!("{mix:?}") };
        assert_eq!((cocoa.label.as_str(), cocoa.weight), ("cocoa:max_rto=20s,k_weak=2", 2));
        assert_eq!(cocoa.mechanism, "cocoa:max_rto=20s,k_weak=2".parse().unwrap());
        assert_eq!((default.label.as_str(), default.weight), ("default:ack_timeout=3s", 1));
        assert_eq!(default.mechanism.get("ack_timeout").unwrap().to_string(), "3s");
    }

    #[test]
    fn a_bad_mix_is_refused_in_one_line() {
        for (label, told) in [
            ("cocoa+", "has a part without a name"),
            ("+", "has a part without a name"),
            ("cocoa+coca", "no mechanism is called \"coca\"; did you mean cocoa?"),
            ("tcp+cocoa", "`tcp` cannot be part of a mix"),
            ("cocoa+tcp:x=1", "`tcp` cannot be part of a mix"),
            ("cocoa*0+default", "the weight of \"cocoa*0\" is a whole number from 1 to 100, not \"0\""),
            ("cocoa*many+default", "not \"many\""),
            ("cocoa*101+default", "from 1 to 100"),
            ("cocoa+default:zzz=1", "no parameter of default is called \"zzz\""),
        ] {
            let error = Mix::parse(label).unwrap_err();
            assert!(error.contains(told) && error.lines().count() == 1, "{label}: {error}");
        }
        assert!(Mix::parse(&["cocoa"; 65].join("+")).unwrap_err().contains("at most 64 mechanisms, not 65"));
    }
}
