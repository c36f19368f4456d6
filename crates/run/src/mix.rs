//! Populations of clients, each with a mechanism of its own, that share one network.

use coapace_control::{Form, Mechanism, Seam, Value};
use coapace_scenario::naming::{TCP, bulk_alone, parse_bulk, parse_mechanism, parse_mechanism_beside_tcp};

/// The maximum weight of a part of a mix. The weight decides how many clients have the mechanism of the part.
const HEAVIEST: u32 = 100;

/// The maximum number of parts of a mix.
const MOST: usize = 64;

/// One or more mechanisms, and how they are distributed over the clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    parts: Vec<MixPart>,
    /// For each client of one round, the index of its part. After the last client of a round the next round begins.
    round: Vec<usize>,
}

/// One mechanism of a mix, and its share of the clients, which are its population.
#[derive(Clone, Debug, PartialEq)]
pub struct MixPart {
    /// The text that the mechanism was read from.
    pub label: String,
    /// The mechanism with its parameters.
    pub mechanism: Mechanism,
    /// Which part of the mechanism's interface the clients can use.
    pub form: Form,
    /// The bulk mechanism for bodies of transfers, which replaces the scenario's; `None` keeps the scenario's.
    pub bulk: Option<Mechanism>,
    /// The weight: a part of weight 2 has twice as many clients as a part of weight 1.
    pub weight: u32,
}

impl Mix {
    /// Reads `PART` or `PART+PART+…`. A part is `NAME` or `NAME:parameter=value,…`, optionally followed by `*WEIGHT`.
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
                _ if is_tcp => {
                    Err(format!("`{TCP}` cannot be part of a mix: {label:?} must name mechanisms over UDP"))
                }
                _ => Ok(MixPart { weight, ..MixPart::parse(name)? }),
            }
        };
        Ok(Self::of(labels.into_iter().map(part).collect::<Result<_, _>>()?))
    }

    /// Makes a mix of these parts.
    pub fn of(parts: Vec<MixPart>) -> Self {
        let round = round(&parts.iter().map(|part| part.weight).collect::<Vec<_>>());
        Self { parts, round }
    }

    /// Returns the parts, in the order in which they were named.
    pub fn parts(&self) -> &[MixPart] {
        &self.parts
    }

    /// Returns the index of the part that a client belongs to. Clients count from 0.
    pub fn part_of(&self, client: u32) -> usize {
        // A round is never empty where there is a part.
        self.round.get(client as usize % self.round.len().max(1)).copied().unwrap_or(0)
    }

    /// Returns the fewest clients with which every part has a client.
    pub fn fewest_clients(&self) -> u32 {
        let first = |part| self.round.iter().position(|&other| other == part).map_or(0, |place| place + 1);
        // The part whose first turn comes last decides.
        (0..self.parts.len()).map(first).max().unwrap_or(0) as u32
    }
}

impl MixPart {
    /// Makes a part of weight 1.
    pub fn new(label: impl Into<String>, mechanism: Mechanism) -> Self {
        Self { label: label.into(), mechanism, form: Form::Full, bulk: None, weight: 1 }
    }

    /// Returns the mechanism with the part of its interface that the clients can use.
    pub fn seam(&self) -> Seam {
        Seam { mechanism: self.mechanism, form: self.form }
    }

    /// Reads a part: the name of a mechanism with its parameters, and with `form=parameters` for a stack that takes
    /// only numbers from the mechanism. A bulk mechanism carries bodies only, so `default` carries all other exchanges.
    fn parse(text: &str) -> Result<Self, String> {
        let (named, form) = formed(text)?;
        if bulk_alone(text).is_none() {
            let mechanism = parse_mechanism_beside_tcp(&named)?;
            return Ok(Self { form, ..Self::new(text, mechanism) });
        }
        if form != Form::Full {
            return Err(format!("{text:?}: form={form} is for mechanisms for single exchanges"));
        }
        let bulk = Some(parse_bulk(&named)?);
        Ok(Self { bulk, ..Self::new(text, parse_mechanism("default")?) })
    }
}

/// Splits the setting `form=…` off the text of a mechanism. The setting describes the stack, not the mechanism.
fn formed(text: &str) -> Result<(String, Form), String> {
    let Some((name, settings)) = text.split_once(':') else { return Ok((text.to_owned(), Form::Full)) };
    let (mut form, mut others) = (Form::Full, Vec::new());
    for setting in settings.split(',') {
        match setting.split_once('=') {
            Some(("form", value)) => {
                form = Form::parse(value)
                    .ok_or_else(|| format!("form of {name} is {}, not {value:?}", Form::KIND))?;
            }
            _ => others.push(setting),
        }
    }
    Ok((if others.is_empty() { name.to_owned() } else { format!("{name}:{}", others.join(",")) }, form))
}

fn weighed(part: &str, weight: &str) -> Result<u32, String> {
    let number = weight.parse().ok().filter(|weight| (1..=HEAVIEST).contains(weight));
    number.ok_or_else(|| {
        format!("the weight of {part:?} is a whole number from 1 to {HEAVIEST}, not {weight:?}")
    })
}

/// Returns a round of parts, in which each part occurs as often as its weight says, as evenly spread as possible. Parts
/// of equal weight take turns.
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
    fn mechanisms_of_a_mix_with_equal_weights_alternate_over_the_clients() {
        assert_eq!(turns("cocoa+default", 5), [0, 1, 0, 1, 0]);
        assert_eq!(turns("cocoa+default+fasor", 7), [0, 1, 2, 0, 1, 2, 0]);
        assert_eq!(turns("cocoa", 3), [0, 0, 0]);
        assert_eq!(turns("cocoa+cocoa", 4), [0, 1, 0, 1], "two populations of the same mechanism are two");
    }

    #[test]
    fn a_mechanism_of_a_mix_with_more_weight_gets_more_clients_evenly_spread() {
        assert_eq!(turns("cocoa*3+default", 8), [0, 0, 1, 0, 0, 0, 1, 0]);
        assert_eq!(turns("default+cocoa*2", 6), [1, 0, 1, 1, 0, 1]);
        let mix = Mix::parse("cocoa*3+default").unwrap();
        assert_eq!(mix.fewest_clients(), 3, "the third client is the first of default");
    }

    #[test]
    fn the_form_is_a_setting_of_any_mechanism_for_single_exchanges() {
        let part = |label: &str| Mix::parse(label).map(|mix| mix.parts()[0].clone());
        for label in
            ["ebb:form=parameters", "ebb:form=parameters,max_rto=20s", "ebb:max_rto=20s,form=parameters"]
        {
            let part = part(label).unwrap();
            assert_eq!((part.form, part.label.as_str()), (Form::Parameters, label));
            let bound = if label.contains("max") { "20s" } else { "247s" };
            assert_eq!(part.mechanism.get("max_rto").unwrap().to_string(), bound, "{label}");
        }
        assert_eq!(part("ebb:form=full").unwrap().seam(), Seam::from(part("ebb").unwrap().mechanism));
        assert_eq!(part("ebb:form=half").unwrap_err(), "form of ebb is full or parameters, not \"half\"");
        assert!(part("tide:form=parameters").unwrap_err().contains("single exchanges"));
    }

    #[test]
    fn a_client_with_a_bulk_mechanism_uses_default_for_single_exchanges() {
        let mix = Mix::parse("tide:target=3+rtt-coap").unwrap();
        let [tide, single] = mix.parts() else { panic!("{mix:?}") };
        assert_eq!((tide.label.as_str(), tide.mechanism), ("tide:target=3", "default".parse().unwrap()));
        assert_eq!(tide.bulk.unwrap().get("target").unwrap().to_string(), "3");
        assert_eq!(single.bulk, None, "it is for single exchanges, too");
        assert!(Mix::parse("tide:zzz=3").unwrap_err().contains("target"));
    }

    #[test]
    fn parameters_in_a_mix_apply_to_their_own_mechanism() {
        let mix = Mix::parse("cocoa:max_rto=20s,k_weak=2*2+default:ack_timeout=3s").unwrap();
        let [cocoa, default] = mix.parts() else { panic!("{mix:?}") };
        assert_eq!((cocoa.label.as_str(), cocoa.weight), ("cocoa:max_rto=20s,k_weak=2", 2));
        assert_eq!(cocoa.mechanism, "cocoa:max_rto=20s,k_weak=2".parse().unwrap());
        assert_eq!((default.label.as_str(), default.weight), ("default:ack_timeout=3s", 1));
        assert_eq!(default.mechanism.get("ack_timeout").unwrap().to_string(), "3s");
    }

    #[test]
    fn a_bad_mix_is_refused_in_one_line() {
        for (label, expected) in [
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
            assert!(error.contains(expected) && error.lines().count() == 1, "{label}: {error}");
        }
        assert!(Mix::parse(&["cocoa"; 65].join("+")).unwrap_err().contains("at most 64 mechanisms, not 65"));
    }
}
