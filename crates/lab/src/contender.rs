//! What is compared: a mechanism over UDP, or TCP.

use coapace_control::Mechanism;

use crate::naming::parse_mechanism_beside;

/// One of those compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// As it was asked for.
    pub label: String,
    /// What it is.
    pub kind: ContenderKind,
}

/// The contender that is no mechanism.
pub const TCP: &str = "tcp";

/// How exchanges are carried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ContenderKind {
    /// Over UDP, with this congestion control.
    Udp(Mechanism),
    /// Over TCP (RFC 8323).
    Tcp,
}

impl Contender {
    /// Reads `tcp`, `NAME` or `NAME:parameter=value,…`.
    ///
    /// # Errors
    /// One clear line.
    pub fn parse(label: &str) -> Result<Self, String> {
        let kind = match label.split_once(':') {
            None if label == TCP => ContenderKind::Tcp,
            Some((TCP, _)) => {
                return Err(
                    "`tcp` takes no parameters here: they are in [tcp] of the scenario, for --set".to_owned()
                );
            }
            _ => ContenderKind::Udp(parse_mechanism_beside(&[TCP], label)?),
        };
        Ok(Self { label: label.to_owned(), kind })
    }

    /// Every mechanism there is, and TCP.
    pub fn all() -> Vec<Self> {
        let udp = coapace_control::REGISTRY
            .iter()
            .map(|entry| Self { label: entry.name.to_owned(), kind: ContenderKind::Udp(entry.mechanism) });
        udp.chain([Self { label: TCP.to_owned(), kind: ContenderKind::Tcp }]).collect()
    }

    /// [`all`](Self::all), but those that are among `preferred` in a variant, in that variant.
    ///
    /// # Errors
    /// One clear line if one of `preferred` cannot be read.
    pub fn all_preferring(preferred: &[String]) -> Result<Vec<Self>, String> {
        let name = |label: &str| label.split(':').next().map(str::to_owned);
        let variant = |any: Self| {
            let same = preferred.iter().find(|label| name(label) == name(&any.label));
            same.map_or(Ok(any), |label| Self::parse(label))
        };
        Self::all().into_iter().map(variant).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_is_among_what_can_be_named_and_not_among_the_parameters_of_a_mechanism() {
        assert_eq!(Contender::parse("tcp").unwrap().kind, ContenderKind::Tcp);
        let unknown = Contender::parse("zzz").unwrap_err();
        assert!(unknown.ends_with(" and tcp"), "{unknown}");
        let parameter = Contender::parse("cocoa:zzz=1").unwrap_err();
        assert!(parameter.contains("There are initial_rto") && !parameter.contains("tcp"), "{parameter}");
        assert!(Contender::parse("tcp:x=1").unwrap_err().contains("[tcp]"));
    }
}
