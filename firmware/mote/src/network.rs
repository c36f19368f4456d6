//! The network: UDP over IPv4 over Ethernet, by smoltcp, with one socket.

use alloc::vec;
use core::net::{Ipv4Addr, SocketAddrV4};

use coapace_control::Instant;
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::udp::{self, PacketBuffer, PacketMetadata, Socket};
use smoltcp::time;
use smoltcp::wire::{IpAddress, IpCidr, Ipv4Cidr};

use crate::ethernet::Ethernet;

/// The longest CoAP message that is received or sent: RFC 7252 §4.6.
const MESSAGE: usize = 1152;

/// Datagrams that may wait in either direction. More are lost, as anywhere on the way.
const DATAGRAMS: usize = 4;

/// The place of a mote in its network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The address and the length of the prefix.
    pub(crate) address: Ipv4Cidr,
    /// The next hop to all other networks.
    pub(crate) gateway: Ipv4Addr,
}

/// A UDP socket and everything below it.
pub(crate) struct Network {
    ethernet: Ethernet,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
}

impl Network {
    /// Brings up the network and opens the socket at this port.
    ///
    /// # Errors
    /// A text says what smoltcp does not take.
    pub(crate) fn open(
        mut ethernet: Ethernet,
        place: Place,
        port: u16,
        now: Instant,
    ) -> Result<Self, &'static str> {
        let config = Config::new(ethernet.address().into());
        let mut interface = Interface::new(config, &mut ethernet, moment(now));
        let mut added = Ok(());
        interface.update_ip_addrs(|all| added = all.push(IpCidr::Ipv4(place.address)));
        added.map_err(|_| "smoltcp has no room for an address")?;
        let routes = interface.routes_mut();
        routes.add_default_ipv4_route(place.gateway).map_err(|_| "smoltcp has no room for a route")?;

        let buffer = || PacketBuffer::new(vec![PacketMetadata::EMPTY; DATAGRAMS], vec![0; 2 * MESSAGE]);
        let mut socket = Socket::new(buffer(), buffer());
        socket.bind(port).map_err(|_| "the port must not be 0")?;
        let mut sockets = SocketSet::new(vec![]);
        let socket = sockets.add(socket);
        Ok(Self { ethernet, interface, sockets, socket })
    }

    /// Moves frames between the Ethernet controller and the socket, both ways.
    pub(crate) fn poll(&mut self, now: Instant) {
        self.ethernet.acknowledge_interrupt();
        self.interface.poll(moment(now), &mut self.ethernet, &mut self.sockets);
    }

    /// Moves what the socket has to send to the Ethernet controller. A frame that has arrived since the last
    /// [`poll`](Self::poll) stays there, and ends the next sleep at once.
    pub(crate) fn flush(&mut self, now: Instant) {
        self.interface.poll_egress(moment(now), &mut self.ethernet, &mut self.sockets);
    }

    /// Returns how many frames arrived damaged, or longer than any should be.
    pub(crate) fn damaged(&self) -> u32 {
        self.ethernet.damaged()
    }

    /// Returns when to call [`poll`](Self::poll) even if no frame arrives.
    pub(crate) fn poll_timeout(&mut self, now: Instant) -> Option<Instant> {
        let at = self.interface.poll_at(moment(now), &self.sockets)?;
        Some(Instant::from_micros(u64::try_from(at.total_micros()).unwrap_or(0)))
    }

    /// Returns the oldest datagram that waits, and where it came from.
    pub(crate) fn receive(&mut self) -> Option<(SocketAddrV4, &[u8])> {
        let (datagram, udp::UdpMetadata { endpoint, .. }) = self.socket().recv().ok()?;
        let IpAddress::Ipv4(address) = endpoint.addr;
        Some((SocketAddrV4::new(address, endpoint.port), datagram))
    }

    /// Returns whether another datagram may be [sent](Self::send).
    pub(crate) fn can_send(&mut self) -> bool {
        self.socket().can_send()
    }

    /// Queues a datagram. One that does not fit is lost, as on any other hop: CoAP sends it again.
    pub(crate) fn send(&mut self, to: SocketAddrV4, datagram: &[u8]) {
        _ = self.socket().send_slice(datagram, (*to.ip(), to.port()));
    }

    fn socket(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.socket)
    }
}

/// Converts a moment of the clock into one of smoltcp.
fn moment(now: Instant) -> time::Instant {
    time::Instant::from_micros(i64::try_from(now.as_micros()).unwrap_or(i64::MAX))
}
