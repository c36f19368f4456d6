//! The addresses of peers, and the local addresses that they talk to.

use crate::lock::lock;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::sync::Mutex;

/// The address of a peer, and the local address that the peer sends to. This type has only 20 bytes, because an
/// endpoint stores a value of it with every remembered message. IPv4 is mapped into IPv6 (RFC 4291 §2.5.5.2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Remote {
    pub(crate) ip: Ipv6Addr,
    pub(crate) port: u16,
    /// The number of the local address in [`LocalAddresses`]. At an endpoint of a DTLS server, it is the number of the
    /// session instead.
    pub(crate) local: u16,
}

/// Hashes the address as three integers, which is faster than the derived implementation.
impl Hash for Remote {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let ip = self.ip.to_bits();
        state.write_u64((ip >> 64) as u64);
        state.write_u64(ip as u64);
        state.write_u32(u32::from(self.port) << 16 | u32::from(self.local));
    }
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}#{}", self.address(), self.local)
    }
}

impl Remote {
    pub(crate) const fn new(ip: Ipv6Addr, port: u16, local: u16) -> Self {
        Self { ip, port, local }
    }

    /// Returns a hash of the peer's [`network`].
    pub(crate) fn source(&self) -> u64 {
        let bits = network(self.ip).to_bits();
        // The upper bits of the product depend on all bits of the address.
        ((bits >> 64) as u64 ^ bits as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
    }

    /// Returns the address in its usual form, with IPv4 unmapped.
    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::new(self.ip.to_canonical(), self.port)
    }

    /// Returns the address in the form for an IPv6 socket. `scope` is the index of the interface, or 0.
    pub(crate) fn v6(&self, scope: u32) -> SocketAddrV6 {
        SocketAddrV6::new(self.ip, self.port, 0, scope)
    }
}

/// Returns the network that counts as one source: an IPv4 address, or an IPv6 prefix of 64 bits, because one host may
/// have all addresses of the prefix (RFC 4291 §2.5.4).
pub(crate) fn network(ip: Ipv6Addr) -> Ipv6Addr {
    if ip.to_ipv4_mapped().is_some() { ip } else { Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64) }
}

/// Returns an address with IPv4 mapped into IPv6.
pub(crate) fn mapped(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

/// An address of this host, from which datagrams are sent to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LocalAddress {
    /// The address, unspecified if the system is to choose.
    pub(crate) ip: Ipv6Addr,
    /// The index of the interface, if the peer's address is link-local, and 0 otherwise.
    pub(crate) scope: u32,
}

impl LocalAddress {
    /// A local address chosen by the system.
    pub(crate) const ANY: Self = Self { ip: Ipv6Addr::UNSPECIFIED, scope: 0 };
}

/// The local addresses at which datagrams have arrived so far. The number of an address is its index here. A host has
/// few local addresses. Beyond the limit no address is added, and the system chooses the source address of answers.
#[derive(Debug)]
pub(crate) struct LocalAddresses(Mutex<Vec<LocalAddress>>);

const MAX_LOCALS: usize = 1024;

impl Default for LocalAddresses {
    fn default() -> Self {
        Self(Mutex::new(vec![LocalAddress::ANY]))
    }
}

impl LocalAddresses {
    /// Returns the number of this address, which is added if it is new. Returns 0, the number of [`LocalAddress::ANY`],
    /// if the table is full.
    pub(crate) fn number(&self, local: LocalAddress) -> u16 {
        let mut known = lock(&self.0);
        // A host has few addresses, so a search takes less time than a hash.
        match known.iter().position(|&other| other == local) {
            Some(place) => place as u16,
            None if known.len() < MAX_LOCALS => {
                known.push(local);
                known.len() as u16 - 1
            }
            // The table is full. Number 0 leaves the choice of the source to the system.
            None => 0,
        }
    }

    /// Returns the address with this number, or [`LocalAddress::ANY`] if the number is unknown.
    pub(crate) fn get(&self, number: u16) -> LocalAddress {
        let known = lock(&self.0);
        known.get(usize::from(number)).copied().unwrap_or(LocalAddress::ANY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_peer_takes_20_bytes_and_gives_back_its_address() {
        assert_eq!(size_of::<Remote>(), 20);
        for text in ["192.0.2.7:5683", "[2001:db8::7]:61616"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(Remote::new(mapped(address.ip()), address.port(), 0).address(), address);
        }
    }

    #[test]
    fn an_ipv6_network_of_64_bits_counts_as_one_source_and_an_ipv4_address_as_another() {
        let source = |text: &str| Remote::new(mapped(text.parse().unwrap()), 1, 0).source();
        assert_eq!(source("2001:db8::1"), source("2001:db8::ffff:2"));
        assert_ne!(source("2001:db8::1"), source("2001:db8:0:1::1"));
        assert_ne!(source("192.0.2.1"), source("192.0.2.2"));
    }

    #[test]
    fn local_addresses_of_a_server_are_numbered_up_to_a_limit() {
        let locals = LocalAddresses::default();
        let nth = |n: u128| LocalAddress { ip: Ipv6Addr::from_bits(n), scope: 0 };
        assert_eq!(
            (locals.number(LocalAddress::ANY), locals.number(nth(5)), locals.number(nth(5))),
            (0, 1, 1)
        );
        assert_eq!(locals.get(1), nth(5));
        for n in 10..2_000 {
            locals.number(nth(n));
        }
        assert_eq!(locals.number(nth(9_999)), 0);
        assert_eq!(locals.get(9_999), LocalAddress::ANY);
    }
}
