//! A client that writes files.

use std::net::{IpAddr, Ipv6Addr};

use coapace_net::{Identity, Request};

/// A client, as quotas and rates identify it: by the identity that it has proved, or without one by its network. One host may
/// have all addresses of an IPv6 network of 64 bits (RFC 4291 §2.5.4), and every port.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum WritingClient {
    Key(Vec<u8>),
    Certificate(String),
    Network(IpAddr),
}

impl From<&Request> for WritingClient {
    fn from(request: &Request) -> Self {
        match request.peer_identity() {
            Some(Identity::Psk(identity)) => return Self::Key(identity.clone()),
            // Without a subject, all certificates would be one client.
            Some(Identity::Certificate(certificate)) if !certificate.subject().is_empty() => {
                return Self::Certificate(certificate.subject().to_owned());
            }
            _ => {}
        }
        Self::Network(match request.from().ip() {
            IpAddr::V4(ip) => ip.into(),
            // The interface identifier is cleared, and the prefix of 64 bits stays.
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
        })
    }
}
