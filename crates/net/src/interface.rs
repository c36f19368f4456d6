//! The interfaces of this host, which the zones of addresses name (RFC 4007 §11, RFC 6874).

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};

/// The reason why an IPv6 address does not specify its interface.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadZone {
    /// A link-local address has no zone. The same address may exist on many links.
    #[error("{address} is a link-local address; name its interface, too, as in [{address}%{example}]{}", here(.interfaces), example = .interfaces.last().map_or("eth0", |name| name))]
    Missing {
        /// The address.
        address: Ipv6Addr,
        /// The names of this host's interfaces.
        interfaces: Vec<String>,
    },
    /// This host has no interface with the name or index in the zone.
    #[error("this host has no interface {zone}{}", here(.interfaces))]
    Unknown {
        /// The zone.
        zone: String,
        /// The names of this host's interfaces.
        interfaces: Vec<String>,
    },
}

/// Returns the names as the end of an error message.
fn here(interfaces: &[String]) -> String {
    if interfaces.is_empty() { String::new() } else { format!("; there are {}", interfaces.join(", ")) }
}

/// Resolves a text such as `192.0.2.1:5683`, `[fe80::1%eth0]:5683` or `localhost:5683` to addresses.
///
/// # Errors
/// The errors of the resolver, and [`InvalidInput`](io::ErrorKind::InvalidInput) around [`BadZone`].
pub fn addresses(text: &str) -> io::Result<Vec<SocketAddr>> {
    // The standard library reads only the index of an interface as a zone, not its name.
    let literal = text.strip_prefix('[').and_then(|rest| {
        let (inside, port) = rest.split_once("]:")?;
        let (ip, zone) = inside.split_once('%').map_or((inside, None), |(ip, zone)| (ip, Some(zone)));
        Some((ip.parse::<Ipv6Addr>().ok()?, zone, port.parse().ok()?))
    });
    match literal {
        Some((ip, zone, port)) => scoped(ip.into(), zone, port)
            .map(|address| vec![address])
            .map_err(|bad| io::Error::new(io::ErrorKind::InvalidInput, bad)),
        None => Ok(text.to_socket_addrs()?.collect()),
    }
}

/// Returns the socket address of `ip` and `port`, on the interface that `zone` names.
pub(crate) fn scoped(ip: IpAddr, zone: Option<&str>, port: u16) -> Result<SocketAddr, BadZone> {
    match (ip, zone) {
        (IpAddr::V6(ip), Some(zone)) => {
            let unknown = || BadZone::Unknown { zone: zone.to_owned(), interfaces: names() };
            Ok(SocketAddrV6::new(ip, port, 0, index(zone).ok_or_else(unknown)?).into())
        }
        // The routes choose the interface for a group, so only a unicast address needs a zone.
        (IpAddr::V6(address), None) if address.is_unicast_link_local() => {
            Err(BadZone::Missing { address, interfaces: names() })
        }
        _ => Ok(SocketAddr::new(ip, port)),
    }
}

/// Returns the index of the interface with this name or index, if there is one.
#[cfg(target_os = "linux")]
pub(crate) fn index(zone: &str) -> Option<u32> {
    zone.parse().ok().or_else(|| nix::net::if_::if_nametoindex(zone).ok())
}

/// Returns the index of the interface with this name or index, if there is one.
#[cfg(not(target_os = "linux"))]
pub(crate) fn index(zone: &str) -> Option<u32> {
    // The system's resolver knows the names of interfaces.
    let by_name = || match (format!("fe80::1%{zone}"), 0).to_socket_addrs().ok()?.next()? {
        SocketAddr::V6(address) => Some(address.scope_id()).filter(|&index| index != 0),
        SocketAddr::V4(_) => None,
    };
    zone.parse().ok().or_else(by_name)
}

/// Returns the names of the interfaces of this host.
#[cfg(target_os = "linux")]
fn names() -> Vec<String> {
    let Ok(all) = nix::net::if_::if_nameindex() else { return Vec::new() };
    all.iter().map(|interface| interface.name().to_string_lossy().into_owned()).collect()
}

/// Returns the names of the interfaces of this host, which are unknown on this system.
#[cfg(not(target_os = "linux"))]
fn names() -> Vec<String> {
    Vec::new()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_the_name_or_the_index_of_an_interface() {
        let lo = index("lo").expect("every host has it");
        for text in ["[fe80::77%lo]:5683".to_owned(), format!("[fe80::77%{lo}]:5683")] {
            let found = addresses(&text).unwrap();
            let [SocketAddr::V6(address)] = found[..] else { panic!("{found:?}") };
            assert_eq!((address.scope_id(), address.port()), (lo, 5683), "{text}");
        }
        assert_eq!(addresses("[::1]:7").unwrap(), ["[::1]:7".parse().unwrap()]);
        assert_eq!(addresses("127.0.0.1:7").unwrap(), ["127.0.0.1:7".parse().unwrap()]);
        assert!(
            addresses("[::1]").is_err() && addresses("[h]:7").is_err() && addresses("[::1%lo]:x").is_err()
        );
    }

    #[test]
    fn a_link_local_address_without_a_zone_is_refused_with_the_interfaces_of_this_host() {
        let error = addresses("[fe80::77]:5683").unwrap_err().to_string();
        assert!(error.starts_with("fe80::77 is a link-local address; name its interface, too"), "{error}");
        assert!(error.contains("; there are ") && error.contains("lo"), "{error}");
        let error = addresses("[fe80::77%no-such]:5683").unwrap_err().to_string();
        assert!(error.starts_with("this host has no interface no-such; there are "), "{error}");
        assert!(addresses("[ff02::fd]:5683").is_ok(), "the routes choose the interface of a group");
    }
}
