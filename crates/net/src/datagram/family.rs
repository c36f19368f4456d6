//! The addresses of IPv4 and IPv6 in system calls, and the control messages that name the local address.

use std::io::{self, IoSlice};
use std::net::{Ipv6Addr, SocketAddrV4};
use std::os::fd::RawFd;

use nix::libc;
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, SockaddrIn6, SockaddrLike, sendmsg,
};

use crate::address::{LocalAddress, Remote};

/// A socket address of IPv4 or IPv6. The trait also reads and makes the control message of its family, which names the
/// local address of a datagram.
pub(crate) trait Family: SockaddrLike + Copy {
    /// Returns a buffer that is large enough for the control message.
    fn space() -> Vec<u8>;
    /// Converts the address of a peer. The peer of an IPv4 socket must have an IPv4 address.
    fn of(to: Remote, local: LocalAddress) -> Self;
    /// Returns the IP address (IPv4 mapped into IPv6), the port, and the scope.
    fn parts(&self) -> (Ipv6Addr, u16, u32);
    /// Returns the local address in a control message, and whether the datagram came to a group. Returns `None` if the
    /// message has no address.
    fn arrival(control: ControlMessageOwned) -> Option<(Ipv6Addr, bool)>;
    /// Calls `with` with the control message that names the local address.
    fn with_source<T>(local: LocalAddress, with: impl FnOnce(&[ControlMessage<'_>]) -> T) -> T;
}

impl Family for SockaddrIn {
    fn space() -> Vec<u8> {
        nix::cmsg_space!(libc::in_pktinfo)
    }

    fn of(to: Remote, _: LocalAddress) -> Self {
        let ip = to.ip.to_ipv4_mapped().unwrap_or(std::net::Ipv4Addr::UNSPECIFIED);
        SocketAddrV4::new(ip, to.port).into()
    }

    fn parts(&self) -> (Ipv6Addr, u16, u32) {
        (self.ip().to_ipv6_mapped(), self.port(), 0)
    }

    fn arrival(control: ControlMessageOwned) -> Option<(Ipv6Addr, bool)> {
        let ControlMessageOwned::Ipv4PacketInfo(info) = control else { return None };
        // `ipi_spec_dst` is ours even if the datagram went to a group, or to all of a network.
        let own = std::net::Ipv4Addr::from(u32::from_be(info.ipi_spec_dst.s_addr));
        Some((own.to_ipv6_mapped(), info.ipi_addr.s_addr != info.ipi_spec_dst.s_addr))
    }

    fn with_source<T>(local: LocalAddress, with: impl FnOnce(&[ControlMessage<'_>]) -> T) -> T {
        let ip = local.ip.to_ipv4_mapped().unwrap_or(std::net::Ipv4Addr::UNSPECIFIED);
        let own = libc::in_addr { s_addr: u32::from(ip).to_be() };
        let any = libc::in_addr { s_addr: 0 };
        // With interface 0 the routes choose the interface, and only the source address is fixed (ip(7)).
        let info = libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: own, ipi_addr: any };
        with(&[ControlMessage::Ipv4PacketInfo(&info)])
    }
}

impl Family for SockaddrIn6 {
    fn space() -> Vec<u8> {
        nix::cmsg_space!(libc::in6_pktinfo)
    }

    fn of(to: Remote, local: LocalAddress) -> Self {
        to.v6(local.scope).into()
    }

    fn parts(&self) -> (Ipv6Addr, u16, u32) {
        (self.ip(), self.port(), self.scope_id())
    }

    fn arrival(control: ControlMessageOwned) -> Option<(Ipv6Addr, bool)> {
        let ControlMessageOwned::Ipv6PacketInfo(info) = control else { return None };
        let ip = Ipv6Addr::from(info.ipi6_addr.s6_addr);
        // The address of a group cannot be a source address.
        let group =
            ip.is_multicast() || ip.to_ipv4_mapped().is_some_and(|ip| ip.is_multicast() || ip.is_broadcast());
        Some((if group { Ipv6Addr::UNSPECIFIED } else { ip }, group))
    }

    fn with_source<T>(local: LocalAddress, with: impl FnOnce(&[ControlMessage<'_>]) -> T) -> T {
        let ipi6_addr = libc::in6_addr { s6_addr: local.ip.octets() };
        // A link-local source is ambiguous without its interface (RFC 3542 §6.2). Others have scope 0.
        let info = libc::in6_pktinfo { ipi6_addr, ipi6_ifindex: local.scope };
        with(&[ControlMessage::Ipv6PacketInfo(&info)])
    }
}

/// Sends `bytes` from a local address over the socket `fd`: as one datagram, or as datagrams of `segment` bytes, of which the
/// last may be shorter.
pub(crate) fn send_from<S: Family>(
    fd: RawFd,
    local: LocalAddress,
    to: Remote,
    bytes: &[u8],
    segment: Option<u16>,
) -> io::Result<()> {
    let (slices, address) = ([IoSlice::new(bytes)], S::of(to, local));
    let send = |control: &[ControlMessage<'_>]| {
        sendmsg(fd, &slices, control, MsgFlags::MSG_DONTWAIT, Some(&address))
    };
    let cut = segment.as_ref().map(ControlMessage::UdpGsoSegments);
    // Without the control message, the system chooses the source address.
    if local.ip.is_unspecified() {
        send(cut.as_slice())?;
    } else {
        S::with_source(local, |control| match cut {
            Some(cut) => send(&[control, &[cut]].concat()),
            None => send(control),
        })?;
    }
    Ok(())
}
