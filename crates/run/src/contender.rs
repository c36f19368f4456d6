//! Contenders: a mechanism over UDP, a mix of several, or TCP.

use coapace_scenario::naming::{TCP, mechanisms};
use coapace_scenario::{Scenario, WorkloadKind};

use crate::mix::{Mix, MixPart};

/// A mechanism, a mix of several, or TCP, which is compared with others.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// The text that named it.
    pub label: String,
    /// The mechanisms and the transport.
    pub kind: ContenderKind,
}

/// The transport of the exchanges, and their mechanisms.
#[derive(Clone, Debug, PartialEq)]
pub enum ContenderKind {
    /// UDP, with one congestion control for all clients, or with several.
    Udp(Mix),
    /// TCP (RFC 8323).
    Tcp,
}

impl Contender {
    /// Reads `tcp`, `NAME`, `NAME:parameter=value,…`, or a [mix](Mix::parse) of several with `+` between them.
    ///
    /// # Errors
    /// Returns one line that names the fault in `label`.
    pub fn parse(label: &str) -> Result<Self, String> {
        let kind = match label.split_once(':') {
            None if label == TCP => ContenderKind::Tcp,
            Some((TCP, _)) if !label.contains('+') => {
                return Err(
                    "`tcp` takes no parameters here: they are in [tcp] of the scenario, for --set".to_owned()
                );
            }
            _ => ContenderKind::Udp(Mix::parse(label)?),
        };
        Ok(Self { label: label.to_owned(), kind })
    }

    /// Returns every known mechanism, and TCP.
    pub fn all() -> Vec<Self> {
        Self::all_over_udp().chain([Self { label: TCP.to_owned(), kind: ContenderKind::Tcp }]).collect()
    }

    /// Returns every known mechanism, each for all clients.
    pub fn all_over_udp() -> impl Iterator<Item = Self> {
        let entries = mechanisms().entries();
        entries.map(|entry| Self {
            label: entry.name.to_owned(),
            kind: ContenderKind::Udp(Mix::of(vec![MixPart::new(entry.name, entry.mechanism)])),
        })
    }

    /// Reads the contenders with these labels. Without labels, returns every known mechanism over UDP.
    ///
    /// # Errors
    /// Returns one line that names the fault in the first label that cannot be read.
    pub fn named(labels: &[String]) -> Result<Vec<Self>, String> {
        if labels.is_empty() {
            return Ok(Self::all_over_udp().collect());
        }
        labels.iter().map(|label| Self::parse(label)).collect()
    }

    /// Returns the mechanisms over UDP; none over TCP.
    pub fn parts(&self) -> &[MixPart] {
        match &self.kind {
            ContenderKind::Udp(mix) => mix.parts(),
            ContenderKind::Tcp => &[],
        }
    }

    /// Returns the mechanism, if all clients have the same one over UDP.
    pub fn only(&self) -> Option<&MixPart> {
        if let [part] = self.parts() { Some(part) } else { None }
    }

    /// Returns the mix of two mechanisms with half of the clients each.
    pub fn pair(one: &MixPart, other: &MixPart) -> Self {
        let parts = vec![one.clone(), other.clone()];
        Self { label: format!("{}+{}", one.label, other.label), kind: ContenderKind::Udp(Mix::of(parts)) }
    }

    /// Checks that the scenario suits this contender: its workload, its network, and a client for every population.
    ///
    /// # Errors
    /// Returns one line that names the first obstacle.
    pub fn fits(&self, scenario: &Scenario) -> Result<(), String> {
        let fewest = match &self.kind {
            ContenderKind::Udp(mix) => mix.fewest_clients(),
            ContenderKind::Tcp => 1,
        };
        let has_flows = scenario.workload.kind == WorkloadKind::Flows;
        if self.kind == ContenderKind::Tcp && (has_flows || scenario.network.mesh.is_some()) {
            return Err(format!("`{TCP}` has neither flows nor meshes of radios"));
        }
        if let Some(part) = self.parts().iter().find(|part| part.bulk.is_some())
            && scenario.workload.transfers.is_empty()
        {
            return Err(format!(
                "`{}` is a mechanism for bodies, and {} has no transfer: see coapace list scenarios",
                part.label, scenario.name
            ));
        }
        if self.only().is_none() && self.parts().iter().any(|part| part.bulk.is_some()) {
            return Err(format!(
                "{:?} mixes mechanisms for bodies: give each transfer of a scenario its `bulk` instead",
                self.label
            ));
        }
        let clients = scenario.clients.count;
        if clients >= fewest {
            return Ok(());
        }
        Err(format!(
            "{:?} needs at least {fewest} clients, or a mechanism has none; the scenario has {clients}",
            self.label
        ))
    }

    /// Returns [`all`](Self::all), but with the variants in `preferred` in place of the plain mechanisms.
    ///
    /// # Errors
    /// Returns one line if one of `preferred` cannot be read.
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

    #[test]
    fn a_mix_has_no_mechanism_that_is_the_only_one() {
        assert_eq!(Contender::parse("cocoa").unwrap().only().unwrap().label, "cocoa");
        assert_eq!(Contender::parse("cocoa+default").unwrap().only(), None);
        assert_eq!(Contender::parse("tcp").unwrap().only(), None);
        let part = |name| Contender::parse(name).unwrap().only().unwrap().clone();
        let pair = Contender::pair(&part("cocoa"), &part("default:ack_timeout=3s"));
        assert_eq!(pair, Contender::parse("cocoa+default:ack_timeout=3s").unwrap());
    }

    #[test]
    fn a_mix_needs_a_client_for_each_mechanism() {
        let scenario =
            |clients: &str| Scenario::load("nb-iot", &[("clients".into(), clients.into())]).unwrap();
        let mix = Contender::parse("cocoa*3+default").unwrap();
        assert_eq!(mix.fits(&scenario("3")), Ok(()));
        let tide = Contender::parse("tide").unwrap();
        assert!(tide.fits(&scenario("3")).unwrap_err().starts_with("`tide` is a mechanism for bodies"));
        assert_eq!(tide.fits(&Scenario::load("fota-lte-m", &[]).unwrap()), Ok(()));
        assert_eq!(
            mix.fits(&scenario("2")).unwrap_err(),
            "\"cocoa*3+default\" needs at least 3 clients, or a mechanism has none; the scenario has 2"
        );
    }
}
