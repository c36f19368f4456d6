//! A server's membership of a group (RFC 7252 §8).

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::datagram::socket::Socket;

/// All CoAP Nodes, IPv4 (RFC 7252 §12.8).
pub const ALL_COAP_NODES: Ipv4Addr = Ipv4Addr::new(224, 0, 1, 187);
/// All CoAP Nodes of the link, IPv6 (RFC 7252 §12.8).
pub const ALL_COAP_NODES_LINK_LOCAL: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfd);
/// All CoAP Nodes of the site, IPv6 (RFC 7252 §12.8).
pub const ALL_COAP_NODES_SITE_LOCAL: Ipv6Addr = Ipv6Addr::new(0xff05, 0, 0, 0, 0, 0, 0, 0xfd);

/// A group that a server joins, on one interface.
///
/// ```
/// use coapace_net::{ALL_COAP_NODES, Membership};
///
/// let membership: Membership = "224.0.1.187%eth0".parse().unwrap();
/// assert_eq!(membership, Membership::of(ALL_COAP_NODES).on("eth0"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Membership {
    group: IpAddr,
    /// The name or index of the interface. If it is `None`, the system's routes choose one.
    interface: Option<String>,
    optional: bool,
}

impl Membership {
    /// Returns the membership of a group on the interface chosen by the system's routes. If the address is not a group's, the
    /// server fails to join.
    pub fn of(group: impl Into<IpAddr>) -> Self {
        Self { group: group.into(), interface: None, optional: false }
    }

    /// Sets the interface, by name or index.
    #[must_use]
    pub fn on(self, interface: impl Into<String>) -> Self {
        Self { interface: Some(interface.into()), ..self }
    }

    /// Lets the server continue if it cannot join this group, as long as it joins another.
    #[must_use]
    pub fn if_possible(self) -> Self {
        Self { optional: true, ..self }
    }

    /// Returns memberships of the three All CoAP Nodes groups. Each is joined only [if possible](Self::if_possible).
    pub fn all_coap_nodes() -> [Self; 3] {
        let groups: [IpAddr; 3] =
            [ALL_COAP_NODES.into(), ALL_COAP_NODES_LINK_LOCAL.into(), ALL_COAP_NODES_SITE_LOCAL.into()];
        groups.map(|group| Self::of(group).if_possible())
    }

    /// Makes a socket join the groups.
    ///
    /// # Errors
    /// [`NotJoined`], if the socket cannot join a group that is not optional, or can join none of the groups.
    pub(crate) fn join_all(memberships: &[Self], socket: &mut Socket) -> io::Result<()> {
        let mut failed = None;
        for membership in memberships {
            match membership.join(socket) {
                Ok(()) => socket.is_member = true,
                Err(reason) => {
                    let kind = reason.kind();
                    let error = io::Error::new(kind, NotJoined { membership: membership.clone(), reason });
                    if !membership.optional {
                        return Err(error);
                    }
                    // It is returned only if no group could be joined, and then the last reason is as good as any.
                    failed = Some(error);
                }
            }
        }
        failed.filter(|_| !socket.is_member).map_or(Ok(()), Err)
    }

    fn join(&self, socket: &Socket) -> io::Result<()> {
        let refused = |kind, why| Err(io::Error::new(kind, why));
        if !self.group.is_multicast() {
            return refused(io::ErrorKind::InvalidInput, "it is not the address of a group");
        }
        // On other systems, datagrams to a group could not be distinguished from others.
        if cfg!(not(target_os = "linux")) {
            return refused(io::ErrorKind::Unsupported, "only servers on Linux can join groups");
        }
        // The destination of a datagram shows whether it came to a group. The system names it only on such a socket.
        if !socket.tells_local {
            return refused(
                io::ErrorKind::InvalidInput,
                "only a server bound to every address, [::] or 0.0.0.0, can join groups",
            );
        }
        if self.group.is_ipv6() && !socket.v6 {
            return refused(io::ErrorKind::InvalidInput, "the server is bound to IPv4 only; bind it to [::]");
        }
        socket.join(self.group, self.interface.as_deref()).map_err(|error| {
            // `io::ErrorKind` has no kind for ENODEV.
            if error.raw_os_error() == Some(NO_DEVICE) {
                let why = match &self.interface {
                    Some(interface) => format!("this host has no interface {interface}"),
                    None => format!("no route leads there; name an interface, as in {}%eth0", self.group),
                };
                return io::Error::new(io::ErrorKind::NotFound, why);
            }
            match error.kind() {
                kind @ io::ErrorKind::AddrInUse => io::Error::new(kind, "the server has joined it already"),
                _ => error,
            }
        })
    }
}

/// The number of the error ENODEV (no such device), as on Linux.
const NO_DEVICE: i32 = 19;

/// Writes the form that [`FromStr`] parses.
impl fmt::Display for Membership {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.group)?;
        self.interface.iter().try_for_each(|interface| write!(f, "%{interface}"))
    }
}

/// Parses `ADDRESS` or `ADDRESS%INTERFACE`.
impl FromStr for Membership {
    type Err = NoGroup;

    fn from_str(text: &str) -> Result<Self, NoGroup> {
        let (group, interface) = text.split_once('%').map_or((text, None), |(group, on)| (group, Some(on)));
        let group: IpAddr = group.parse().map_err(|_| NoGroup)?;
        if !group.is_multicast() || interface == Some("") {
            return Err(NoGroup);
        }
        Ok(Self { group, interface: interface.map(str::to_owned), optional: false })
    }
}

/// The error of parsing a text that is not the address of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the address of a group, as 224.0.1.187 or ff02::fd%eth0")]
pub struct NoGroup;

/// The error inside the [`io::Error`] of a server that could not join a group.
#[derive(Debug, thiserror::Error)]
#[error("cannot join the group {membership}: {reason}")]
pub struct NotJoined {
    membership: Membership,
    // This is not the source of the error, because the text contains it.
    reason: io::Error,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_membership_parses_back_from_its_displayed_text() {
        for text in ["224.0.1.187", "224.0.1.187%eth0", "ff02::fd", "ff05::fd%2"] {
            assert_eq!(
                text.parse::<Membership>().map(|membership| membership.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in ["", "all", "192.0.2.7", "fe80::1%eth0", "ff02::fd%", "224.0.1.187:5683"] {
            assert_eq!(text.parse::<Membership>(), Err(NoGroup), "{text}");
        }
    }
}
