//! The argument that names the clients whose addresses are trusted.

use clap::Args;
use coapace_net::{Network, Verify};

/// The networks in which nobody can forge an address.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Trust {
    /// A network in which nobody can send in the name of another: ADDRESS/BITS, ADDRESS, loopback for this host, or
    /// none; repeatable. All other clients over UDP are sent at most three times the bytes that they send, until they
    /// have shown an Echo option (RFC 9175). Behind a relay that does not ask for it, none is right [default:
    /// loopback]
    #[arg(long = "trust", value_name = "NETWORK", value_parser = networks)]
    given: Vec<NetworkList>,
}

/// The networks that one value names.
type NetworkList = std::sync::Arc<[Network]>;

impl Trust {
    /// Returns the clients that have to show that their address is their own.
    pub(crate) fn verify(&self) -> Verify {
        if self.given.is_empty() {
            return Verify::Strangers;
        }
        Verify::Outside(self.given.iter().flat_map(|networks| networks.iter().copied()).collect())
    }
}

fn networks(text: &str) -> Result<NetworkList, String> {
    match text {
        "none" => Ok([].into()),
        "loopback" => Ok(Network::LOOPBACK.into()),
        text => {
            text.parse().map(|network| [network].into()).map_err(|error| format!("{error}, loopback or none"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_is_trusted_unless_networks_are_named_and_none_is_one_of_the_names() {
        let concerns = |texts: &[&str], address: &str| {
            let given = texts.iter().map(|text| networks(text).unwrap()).collect();
            Trust { given }.verify().concerns(address.parse().unwrap())
        };
        assert!(!concerns(&[], "127.0.0.1") && concerns(&[], "10.1.2.3"));
        assert!(concerns(&["none"], "127.0.0.1"));
        assert!(!concerns(&["10.0.0.0/8"], "10.1.2.3") && concerns(&["10.0.0.0/8"], "127.0.0.1"));
        assert!(!concerns(&["loopback", "2001:db8::/32"], "::1"));
        assert!(!concerns(&["loopback", "2001:db8::/32"], "2001:db8::7"));
        assert!(networks("10.0.0.0/40").unwrap_err().ends_with("loopback or none"));
    }
}
