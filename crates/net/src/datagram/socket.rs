//! A UDP socket: IPv4, IPv6, or both.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
#[cfg(unix)]
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use super::io::DatagramTrain;
use crate::address::{LocalAddress, LocalAddresses, Remote, mapped};
use crate::{Datagram, Direction, Interceptor};

/// The requested size of the receive buffer, in bytes. It holds what 1,000 clients that start at once send in half a second.
/// The system may grant less.
const RECEIVE_BUFFER: usize = 4 << 20;

/// The purpose of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketPurpose {
    /// A server, which answers from the address that a request was sent to.
    Serve {
        /// Set if several sockets share the port, and the system spreads the clients over these sockets.
        shared: bool,
    },
    /// A client, which receives the ICMP errors of its destinations.
    Ask,
}

/// A bound, non-blocking UDP socket.
#[derive(Debug)]
pub(crate) struct Socket {
    inner: UdpSocket,
    /// Set if it is an IPv6 socket, which may carry mapped IPv4 addresses.
    pub(crate) v6: bool,
    /// Set if the system reports which local address a datagram was sent to.
    pub(crate) tells_local: bool,
    /// Set if the socket has joined a group. Otherwise datagrams to groups and broadcasts are dropped.
    pub(crate) is_member: bool,
    pub(crate) locals: LocalAddresses,
    /// The hook that sees every datagram, and may drop it. With an interceptor, each datagram takes a separate system
    /// call.
    pub(crate) interceptor: Option<Arc<dyn Interceptor>>,
}

#[cfg(unix)]
impl AsRawFd for Socket {
    fn as_raw_fd(&self) -> RawFd {
        self.inner.as_raw_fd()
    }
}

impl Socket {
    /// Binds to `address`. `[::]` also means every IPv4 address.
    pub(crate) fn bind(address: SocketAddr, purpose: SocketPurpose) -> io::Result<Self> {
        let domain = socket2::Domain::for_address(address);
        let socket = socket2::Socket::new(domain, socket2::Type::DGRAM, None)?;
        // One socket serves both families. Some systems have the other default.
        if address.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        if purpose == (SocketPurpose::Serve { shared: true }) {
            #[cfg(unix)]
            socket.set_reuse_port(true)?;
            // Windows spreads no clients: its option of that name lets another program take the port over.
            #[cfg(not(unix))]
            return Err(io::ErrorKind::Unsupported.into());
        }
        // A smaller buffer is not an error.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        Self::new(socket.into(), address, purpose)
    }

    /// Takes over the socket of a server that is bound already.
    pub(crate) fn adopt(socket: UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        Self::new(socket, address, SocketPurpose::Serve { shared: false })
    }

    fn new(inner: UdpSocket, address: SocketAddr, purpose: SocketPurpose) -> io::Result<Self> {
        let serves = matches!(purpose, SocketPurpose::Serve { .. });
        let mut socket = Self {
            inner,
            v6: address.is_ipv6(),
            tells_local: serves && address.ip().is_unspecified(),
            is_member: false,
            locals: LocalAddresses::default(),
            interceptor: None,
        };
        socket.set_options(purpose)?;
        Ok(socket)
    }

    /// Opens a client's socket of the same family as `destination`. An IPv6 socket could carry IPv4 too, but the system
    /// would do more work for each datagram.
    pub(crate) fn open(destination: SocketAddr) -> io::Result<Self> {
        let any: IpAddr = match destination {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        Self::bind((any, 0).into(), SocketPurpose::Ask)
    }

    /// Returns a duplicate of the socket, which a runtime can watch.
    pub(crate) fn duplicate(&self) -> io::Result<UdpSocket> {
        self.inner.try_clone()
    }

    /// Makes receiving block until there is a datagram.
    pub(crate) fn block(&self) -> io::Result<()> {
        self.inner.set_nonblocking(false)
    }

    /// Sets the longest time that receiving blocks.
    pub(crate) fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.inner.set_read_timeout(Some(patience))
    }

    pub(crate) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    /// Returns whether the interceptor passes a datagram. Without an interceptor, all pass.
    pub(crate) fn passes(&self, direction: Direction, peer: Remote, bytes: &[u8]) -> bool {
        let Some(interceptor) = &self.interceptor else { return true };
        let Ok(mut local) = self.local_addr() else { return true };
        let known = self.locals.get(peer.local).ip;
        if !known.is_unspecified() {
            local.set_ip(known.to_canonical());
        }
        interceptor.pass(&Datagram { direction, local, peer: peer.address(), bytes })
    }

    /// Receives one datagram. Returns its length and its sender.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, Remote)> {
        let (len, from) = self.inner.recv_from(buffer)?;
        Ok((len, self.remote(from)))
    }

    /// Returns the peer at this address, with the interface if the address is link-local.
    pub(crate) fn remote(&self, address: SocketAddr) -> Remote {
        let local = match address {
            SocketAddr::V6(address) if address.scope_id() != 0 => {
                self.locals.number(LocalAddress { scope: address.scope_id(), ..LocalAddress::ANY })
            }
            _ => 0,
        };
        Remote::new(mapped(address.ip()), address.port(), local)
    }

    /// Returns the address of a peer in its usual form, with the interface if it is link-local.
    pub(crate) fn address(&self, peer: Remote) -> SocketAddr {
        match peer.address() {
            SocketAddr::V6(_) => peer.v6(self.locals.get(peer.local).scope).into(),
            address @ SocketAddr::V4(_) => address,
        }
    }

    /// Returns the address of a peer in the family of this socket.
    fn address_of(&self, to: Remote) -> io::Result<SocketAddr> {
        if self.v6 {
            return Ok(to.v6(self.locals.get(to.local).scope).into());
        }
        let ip = to.ip.to_ipv4_mapped().ok_or(io::ErrorKind::NetworkUnreachable)?;
        Ok((ip, to.port).into())
    }

    #[cfg(target_os = "linux")]
    fn set_options(&mut self, purpose: SocketPurpose) -> io::Result<()> {
        use nix::sys::socket::{setsockopt, sockopt};
        if self.tells_local && self.v6 {
            setsockopt(&self.inner, sockopt::Ipv6RecvPacketInfo, &true)?;
        } else if self.tells_local {
            setsockopt(&self.inner, sockopt::Ipv4PacketInfo, &true)?;
        }
        if self.tells_local {
            // Otherwise each socket of the port would receive the datagrams of every group that any socket of this host has
            // joined.
            let socket = socket2::SockRef::from(&self.inner);
            socket.set_multicast_all_v4(false)?;
            if self.v6 {
                // Linux before 4.20 does not have this option.
                let _ = socket.set_multicast_all_v6(false);
            }
        }
        // A client learns of ICMP errors through the error queue, which also names the destination.
        if purpose == SocketPurpose::Ask {
            setsockopt(&self.inner, sockopt::Ipv4RecvErr, &true)?;
            if self.v6 {
                setsockopt(&self.inner, sockopt::Ipv6RecvErr, &true)?;
            }
        }
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn set_options(&mut self, _: SocketPurpose) -> io::Result<()> {
        self.tells_local = false;
        Ok(())
    }

    /// Joins a group on the interface with this name or index, or with `None` on an interface that the system chooses.
    #[cfg(target_os = "linux")]
    pub(crate) fn join(&self, group: IpAddr, interface: Option<&str>) -> io::Result<()> {
        let no_device = || io::Error::from(nix::errno::Errno::ENODEV);
        let index = interface.map_or(Ok(0), |zone| crate::interface::index(zone).ok_or_else(no_device))?;
        let socket = socket2::SockRef::from(&self.inner);
        match group {
            IpAddr::V4(group) => {
                socket.join_multicast_v4_n(&group, &socket2::InterfaceIndexOrAddress::Index(index))
            }
            IpAddr::V6(group) => socket.join_multicast_v6(&group, index),
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn join(&self, _: IpAddr, _: Option<&str>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sends one datagram, from the local address of `to`.
    pub(crate) fn send(&self, to: Remote, bytes: &[u8]) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        if to.local != 0 && self.tells_local {
            return self.send_from(to, bytes, None);
        }
        let address = self.address_of(to)?;
        match self.inner.send_to(bytes, address) {
            // This may be the ICMP error of an earlier datagram, perhaps to another destination. Then the present one was not
            // sent.
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                self.inner.send_to(bytes, address).map(drop)
            }
            sent => sent.map(drop),
        }
    }

    /// Sends a train with one system call. Returns whether the system has accepted it. Otherwise the caller must
    /// [`send`](Self::send) each datagram: perhaps the system cannot split the train, or the path MTU is too small.
    pub(crate) fn send_run(&self, run: &DatagramTrain<'_>) -> bool {
        #[cfg(target_os = "linux")]
        return self.address_of(run.to).is_ok()
            && self.send_from(run.to, run.bytes, Some(run.segment)).is_ok();
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Sends from the local address of `to`: one datagram, or one for every `segment` bytes.
    #[cfg(target_os = "linux")]
    fn send_from(&self, to: Remote, bytes: &[u8], segment: Option<u16>) -> io::Result<()> {
        use super::family::send_from;
        use nix::sys::socket::{SockaddrIn, SockaddrIn6};
        let (fd, local) = (self.as_raw_fd(), self.locals.get(to.local));
        if self.v6 {
            send_from::<SockaddrIn6>(fd, local, to, bytes, segment)
        } else {
            send_from::<SockaddrIn>(fd, local, to, bytes, segment)
        }
    }

    /// For each ICMP error that was received for a datagram of this socket, calls `each` with the datagram's
    /// destination and the error.
    #[cfg(target_os = "linux")]
    pub(crate) fn take_errors(&self, mut each: impl FnMut(Remote, io::Error)) {
        use nix::sys::socket::{ControlMessageOwned as Control, MsgFlags, SockaddrStorage, recvmsg};
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let mut control = nix::cmsg_space!(nix::libc::sock_extended_err, nix::libc::sockaddr_in6);
        // The queue also returns the datagram, which is not needed here.
        let mut bytes = [0; 4];
        loop {
            let mut slices = [io::IoSliceMut::new(&mut bytes)];
            let Ok(message) =
                recvmsg::<SockaddrStorage>(self.as_raw_fd(), &mut slices, Some(&mut control), flags)
            else {
                return;
            };
            let to = message.address.and_then(|to| {
                let v4 = to.as_sockaddr_in().map(|to| SocketAddr::V4((*to).into()));
                v4.or_else(|| to.as_sockaddr_in6().map(|to| SocketAddr::V6((*to).into())))
            });
            let errors = message.cmsgs().into_iter().flatten().filter_map(|control| match control {
                Control::Ipv4RecvErr(error, _) | Control::Ipv6RecvErr(error, _) => Some(error.ee_errno),
                _ => None,
            });
            for errno in errors {
                // An error without a destination cannot be matched to a request.
                if let Some(to) = to {
                    each(self.remote(to), io::Error::from_raw_os_error(errno.cast_signed()));
                }
            }
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn take_errors(&self, _: impl FnMut(Remote, io::Error)) {}
}
