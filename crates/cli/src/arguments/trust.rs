//! The argument that names networks without forged addresses.

use clap::Args;
use coapace_net::{Network, Verify};

/// The networks in which no address can be forged.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Trust {
    /// A network whose hosts cannot send from forged addresses: ADDRESS/BITS, ADDRESS, loopback for this host, or none;
    /// repeatable. All other clients over UDP are sent at most three times the bytes that they send, until they return an Echo
    /// option (RFC 9175). If a relay on this host does not demand it of its clients, give none [default: loopback]
    #[arg(long = "trust", value_name = "NETWORK", value_parser = networks)]
    given: Vec<NetworkList>,
}

/// The networks in one value of the argument.
type NetworkList = std::sync::Arc<[Network]>;

impl Trust {
    /// Returns which clients must verify their address.
    pub(crate) fn verify(&self) -> Verify {
        if self.given.is_empty() {
            return Verify::Strangers;
        }
        // After `none` the list has no network, so every client has to verify its address.
        Verify::Outside(self.given.iter().flat_map(|networks| networks.iter().copied()).collect())
    }
}

fn networks(text: &str) -> Result<NetworkList, String> {
    match text {
        // An empty list counts as given, unlike no argument.
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
    fn loopback_is_trusted_by_default_and_none_trusts_nobody() {
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
