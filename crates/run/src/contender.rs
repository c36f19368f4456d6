//! Contenders, the subjects of comparisons: a mechanism over UDP, a mix of several mechanisms, or TCP.

use coapace_scenario::naming::{TCP, bulk_alone, mechanisms};
use coapace_scenario::{Protocol, Scenario, WorkloadKind};

use crate::mix::{Mix, MixPart};

/// The subject of a comparison: a mechanism over UDP, a mix of several mechanisms, or TCP.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// The text that the contender was read from, such as `cocoa+default`.
    pub label: String,
    /// The mechanisms and the transport.
    pub kind: ContenderKind,
}

/// The transport of the exchanges and, over UDP, the mechanisms.
#[derive(Clone, Debug, PartialEq)]
pub enum ContenderKind {
    /// UDP, with one mechanism for all clients, or with a mix of several.
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
                    "`tcp` takes no parameters: set keys of [tcp] in the scenario, such as --set tcp.nagle=false".to_owned()
                );
            }
            _ => ContenderKind::Udp(Mix::parse(label)?),
        };
        Ok(Self { label: label.to_owned(), kind })
    }

    /// Returns a contender for each known mechanism, and TCP.
    pub fn all() -> Vec<Self> {
        Self::all_over_udp().chain([Self { label: TCP.to_owned(), kind: ContenderKind::Tcp }]).collect()
    }

    /// Returns a contender for each known mechanism. In each of them, all clients have the same mechanism.
    pub fn all_over_udp() -> impl Iterator<Item = Self> {
        let entries = mechanisms().entries();
        entries.map(|entry| Self {
            label: entry.name.to_owned(),
            kind: ContenderKind::Udp(Mix::of(vec![MixPart::new(entry.name, entry.mechanism)])),
        })
    }

    /// Reads the contenders of a comparison in which every two of them share the network. Without labels, returns every
    /// known mechanism over UDP, or every bulk mechanism if all clients of the scenario transfer bodies.
    ///
    /// # Errors
    /// Returns the errors of [`named`](Self::named).
    pub fn paired(labels: &[String], scenario: &Scenario) -> Result<Vec<Self>, String> {
        if labels.is_empty() && !scenario.workload.transfers.is_empty() && nobody_asks(scenario) {
            let names = mechanisms().bulk_entries().map(|entry| entry.name);
            return names.filter(|name| bulk_alone(name).is_some()).map(Self::parse).collect();
        }
        Self::named(labels)
    }

    /// Reads a contender like [`parse`](Self::parse), and checks that it [fits](Self::fits) the scenario.
    ///
    /// # Errors
    /// Returns one line that names the fault in `label`, or the first obstacle in the scenario.
    pub fn fitting(label: &str, scenario: &Scenario) -> Result<Self, String> {
        let contender = Self::parse(label)?;
        contender.fits(scenario).map(|()| contender)
    }

    /// Reads a contender from each label. Without labels, returns every known mechanism over UDP.
    ///
    /// # Errors
    /// Returns one line that names the fault in the first label that cannot be read.
    pub fn named(labels: &[String]) -> Result<Vec<Self>, String> {
        if labels.is_empty() {
            return Ok(Self::all_over_udp().collect());
        }
        labels.iter().map(|label| Self::parse(label)).collect()
    }

    /// Returns the mechanisms of the mix; empty for TCP.
    pub fn parts(&self) -> &[MixPart] {
        match &self.kind {
            ContenderKind::Udp(mix) => mix.parts(),
            ContenderKind::Tcp => &[],
        }
    }

    /// Returns the mechanism if all clients have the same one over UDP; `None` for TCP and for a mix of several.
    pub fn only(&self) -> Option<&MixPart> {
        if let [part] = self.parts() { Some(part) } else { None }
    }

    /// Returns the mix of two mechanisms with half of the clients each.
    pub fn pair(one: &MixPart, other: &MixPart) -> Self {
        let parts = vec![one.clone(), other.clone()];
        Self { label: format!("{}+{}", one.label, other.label), kind: ContenderKind::Udp(Mix::of(parts)) }
    }

    /// Checks that the scenario suits this contender: its workload, its network, and its number of clients, of which
    /// every mechanism needs at least one.
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
            return Err(format!("`{TCP}` can run neither flows nor meshes of radios"));
        }
        if let Some(part) = self.parts().iter().find(|part| part.bulk.is_some())
            && scenario.workload.transfers.is_empty()
        {
            return Err(format!(
                "`{}` is a mechanism for bodies, and {} has no transfer: see coapace list scenarios",
                part.label, scenario.name
            ));
        }
        // A mix is compared by its populations, and one without a transfer would have no value.
        if self.only().is_none() && self.is_compared_by_transfers(scenario) {
            self.has_transfers_for_all(scenario, fewest)?;
        }
        // Last, because the errors above name a cause that more clients would not remove.
        let clients = scenario.clients.count;
        if clients >= fewest {
            return Ok(());
        }
        Err(format!(
            "{:?} needs at least {fewest} clients, so that each mechanism has one; the scenario has {clients}",
            self.label
        ))
    }

    /// Returns whether the populations are compared by their transfers of bodies. They are if clients transfer bodies,
    /// and either a mechanism of the mix is a bulk mechanism or all clients transfer bodies.
    pub fn is_compared_by_transfers(&self, scenario: &Scenario) -> bool {
        let has_bulk = self.parts().iter().any(|part| part.bulk.is_some());
        !scenario.workload.transfers.is_empty() && (has_bulk || nobody_asks(scenario))
    }

    /// Checks that every mechanism of a mix has a client that transfers bodies over UDP.
    fn has_transfers_for_all(&self, scenario: &Scenario, fewest: u32) -> Result<(), String> {
        let (workload, clients) = (&scenario.workload, scenario.clients.count);
        let all = workload.transfers.iter().zip(workload.transferring(clients));
        let (keys, sizes): (Vec<_>, Vec<_>) = all
            // The mechanisms of a mix are over UDP, so bodies over TCP show nothing of them.
            .filter(|(keys, _)| keys.protocol != Protocol::Tcp)
            .map(|(keys, own)| (keys, own.len() as u32))
            .unzip();
        let transferring: u32 = sizes.iter().sum();
        if transferring >= fewest {
            return Ok(());
        }
        let more = fewest - transferring;
        // The nodes of a mesh are its clients.
        let count =
            scenario.network.mesh.is_none().then(|| format!(" --set clients.count={}", clients + more));
        let advice = keys.last().zip(sizes.last()).map(|(keys, own)| {
            let count = count.unwrap_or_default();
            format!(":{count} --set workload.transfers.{}.clients={}", keys.name, own + more)
        });
        Err(format!(
            "{:?} needs at least {fewest} clients that transfer over UDP, and {} has {transferring}{}",
            self.label,
            scenario.name,
            advice.unwrap_or_default()
        ))
    }

    /// Returns [`all`](Self::all), but with each label of `preferred`, such as `cocoa:k_weak=2`, in place of the
    /// mechanism with its name.
    ///
    /// # Errors
    /// Returns one line if one of `preferred` cannot be read.
    pub fn all_preferring(preferred: &[String]) -> Result<Vec<Self>, String> {
        let name = |label: &str| label.split(':').next().map(str::to_owned);
        let variant = |any: Self| {
            // A variant is a name with parameters after a colon, so only the names are compared.
            let same = preferred.iter().find(|label| name(label) == name(&any.label));
            same.map_or(Ok(any), |label| Self::parse(label))
        };
        Self::all().into_iter().map(variant).collect()
    }
}

/// Returns whether all clients transfer bodies, so that no client sends single requests.
fn nobody_asks(scenario: &Scenario) -> bool {
    scenario.workload.asking(scenario.clients.count) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tcp_is_accepted_in_place_of_a_mechanism_but_without_parameters() {
        assert_eq!(Contender::parse("tcp").unwrap().kind, ContenderKind::Tcp);
        let unknown = Contender::parse("zzz").unwrap_err();
        assert!(unknown.ends_with(" and tcp"), "{unknown}");
        let parameter = Contender::parse("cocoa:zzz=1").unwrap_err();
        assert!(parameter.contains("There are initial_rto") && !parameter.contains("tcp"), "{parameter}");
        assert!(Contender::parse("tcp:x=1").unwrap_err().contains("[tcp]"));
    }

    #[test]
    fn a_mix_is_not_a_single_mechanism() {
        assert_eq!(Contender::parse("cocoa").unwrap().only().unwrap().label, "cocoa");
        assert_eq!(Contender::parse("cocoa+default").unwrap().only(), None);
        assert_eq!(Contender::parse("tcp").unwrap().only(), None);
        let part = |name| Contender::parse(name).unwrap().only().unwrap().clone();
        let pair = Contender::pair(&part("cocoa"), &part("default:ack_timeout=3s"));
        assert_eq!(pair, Contender::parse("cocoa+default:ack_timeout=3s").unwrap());
    }

    #[test]
    fn a_mix_of_bulk_mechanisms_needs_a_transfer_for_each_and_the_error_says_how() {
        let fits = |name: &str, label: &str, set: &[(&str, &str)]| {
            let set: Vec<_> = set.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
            Contender::parse(label).unwrap().fits(&Scenario::load(name, &set).unwrap())
        };
        let two = &[("clients", "2"), ("workload.transfers.firmware.clients", "2")];
        assert_eq!(fits("fota-lte-m", "tide+newreno", two), Ok(()));
        assert_eq!(fits("fleet-fota", "tide*3+newreno+rfc9177", &[]), Ok(()));
        assert_eq!(fits("fota-mesh", "tide+newreno", &two[1..]), Ok(()));
        for (name, label, advice) in [
            (
                "fota-lte-m",
                "tide+newreno",
                " 2 clients that transfer over UDP, and fota-lte-m has 1: --set clients.count=2 \
                                            --set workload.transfers.firmware.clients=2",
            ),
            ("fota-mesh", "tide*2+newreno", " has 1: --set workload.transfers.firmware.clients=2"),
            (
                "fota-lte-m",
                "cocoa+default",
                " has 1: --set clients.count=2 --set workload.transfers.firmware.clients=2",
            ),
        ] {
            let line = fits(name, label, &[]).unwrap_err();
            assert!(line.ends_with(advice) && line.lines().count() == 1, "{line}");
        }
        let over_tcp = [two, &[("protocol", "tcp")][..]].concat();
        assert!(fits("fota-lte-m", "tide+newreno", &over_tcp).unwrap_err().ends_with(" has 0"));
        assert_eq!(fits("fota-lte-m", "cocoa+default", &[("clients", "3")]), Ok(()), "two clients ask");
    }

    #[test]
    fn bulk_mechanisms_are_paired_if_all_clients_transfer() {
        let named = |name| {
            let all = Contender::paired(&[], &Scenario::load(name, &[]).unwrap()).unwrap();
            all.into_iter().map(|contender| contender.label).collect::<Vec<_>>()
        };
        assert_eq!(named("fota-wifi"), ["tide", "newreno", "rfc9177"]);
        assert_eq!(named("coexistence").len(), Contender::all_over_udp().count());
        assert_eq!(named("fleet-fota").len(), Contender::all_over_udp().count(), "some clients ask");
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
            "\"cocoa*3+default\" needs at least 3 clients, so that each mechanism has one; the scenario has 2"
        );
    }
}
