//! Networks, as a first address and the number of leading bits that its addresses have in common (RFC 4632 §3.1, RFC 4291
//! §2.3).

use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use crate::address::mapped;

/// A network, parsed from `ADDRESS/BITS`, or from `ADDRESS` for a single address.
///
/// ```
/// use coapace_net::Network;
///
/// let network: Network = "10.0.0.0/8".parse().unwrap();
/// assert!(network.contains("10.1.2.3".parse().unwrap()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The first address, with IPv4 mapped into IPv6 and the other bits cleared.
    first: u128,
    /// The number of leading bits that all addresses of the network have in common, of 128.
    bits: u32,
}

/// The error of parsing a text that is not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoNetwork;

impl std::fmt::Display for NoNetwork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("expected a network, as 10.0.0.0/8 or 2001:db8::/32")
    }
}

impl std::error::Error for NoNetwork {}

impl Network {
    /// The addresses of this host, which no other host can use: 127.0.0.0/8 and ::1.
    pub const LOOPBACK: [Self; 2] = [
        Self { first: 0xffff_7f00_0000, bits: 96 + 8 },
        Self { first: Ipv6Addr::LOCALHOST.to_bits(), bits: 128 },
    ];

    /// Returns whether an address is in the network.
    pub fn contains(&self, address: IpAddr) -> bool {
        // The same IPv4 address may be given as it is or mapped into IPv6.
        cleared(mapped(address.to_canonical()), self.bits) == self.first
    }
}

/// Returns an address with all bits cleared except the first `bits`.
fn cleared(address: Ipv6Addr, bits: u32) -> u128 {
    // With 0 bits the shift is by the whole width, which only `checked_shl` allows.
    address.to_bits() & u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0)
}

impl FromStr for Network {
    type Err = NoNetwork;

    fn from_str(text: &str) -> Result<Self, NoNetwork> {
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| NoNetwork)?;
        // IPv4 is mapped into IPv6, behind 96 fixed bits.
        let before = if address.is_ipv4() { 96 } else { 0 };
        let bits = match bits {
            None => 128,
            Some(bits) => before + u32::from(bits.parse::<u8>().map_err(|_| NoNetwork)?),
        };
        if bits > 128 {
            return Err(NoNetwork);
        }
        Ok(Self { first: cleared(mapped(address), bits), bits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_the_addresses_with_its_prefix_even_as_mapped_ipv4() {
        let contains = |network: &str, address: &str| {
            network.parse::<Network>().unwrap().contains(address.parse().unwrap())
        };
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.1.2.3", "::ffff:10.1.2.3", "10.1.2.4"),
            ("192.0.2.77/25", "192.0.2.1", "192.0.2.128"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::1"),
            ("::/0", "192.0.2.1", "10.0.0.1"),
        ] {
            assert!(contains(network, inside), "{network} {inside}");
            assert!(network == "::/0" || !contains(network, outside), "{network} {outside}");
        }
        for address in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            let address = address.parse().unwrap();
            assert!(Network::LOOPBACK.iter().any(|network| network.contains(address)), "{address}");
        }
        for text in
            ["", "10.0.0.0/33", "2001:db8::/129", "10.0.0/8", "a/8", "10.0.0.0/x", "10.0.0.0/4294967295"]
        {
            assert_eq!(text.parse::<Network>(), Err(NoNetwork), "{text}");
        }
    }
}
