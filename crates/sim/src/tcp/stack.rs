//! The IP layer of smoltcp, to which the caller passes one packet at a time.

use std::collections::VecDeque;
use std::fmt;

use smoltcp::iface::{Config, Interface, PollResult, SocketSet};
use smoltcp::phy::{self, Checksum, Device, DeviceCapabilities, Medium};
use smoltcp::socket::tcp::Socket;
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpCidr};

use crate::NodeId;

/// The least MTU in bytes: smoltcp accepts no MSS below 48.
const MIN_MTU: u16 = 88;

/// The largest number of unused packet buffers that are kept for reuse.
const MAX_SPARE: usize = 64;

/// The IP layer of a host. The caller passes the socket of one connection at a time, because smoltcp searches a set of sockets
/// from end to end for every packet. Nothing in here depends on time.
pub(super) struct IpStack {
    interface: Interface,
    packets: OutgoingPackets,
}

impl IpStack {
    /// Returns the stack of `node`. `seed` determines its initial sequence numbers.
    pub(super) fn new(node: NodeId, mtu: u16, seed: u64) -> Self {
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut packets =
            OutgoingPackets { queue: VecDeque::new(), spare: Vec::new(), mtu: mtu.max(MIN_MTU) };
        let mut wire = StackDevice { packets: &mut packets, incoming: None };
        let mut interface = Interface::new(config, &mut wire, Instant::ZERO);
        interface.update_ip_addrs(|addresses| {
            // All hosts are in 10.0.0.0/8, so no packet needs a gateway.
            let pushed = addresses.push(IpCidr::new(node.ipv4().into(), 8));
            debug_assert!(pushed.is_ok(), "an interface has room for one address");
        });
        Self { interface, packets }
    }

    /// Lets `socket` open a connection. Returns false if smoltcp refuses.
    pub(super) fn connect(
        &mut self,
        socket: &mut Socket<'_>,
        from: (NodeId, u16),
        to: (NodeId, u16),
    ) -> bool {
        let (from, to) = ((from.0.ipv4(), from.1), (to.0.ipv4(), to.1));
        socket.connect(self.interface.context(), to, from).is_ok()
    }

    /// Passes a packet to `sockets`. If no socket takes the packet, queues a RST as the answer.
    pub(super) fn receive(&mut self, now: Instant, packet: &[u8], sockets: &mut SocketSet<'_>) {
        let mut wire = StackDevice { packets: &mut self.packets, incoming: Some(packet) };
        self.interface.poll_ingress_single(now, &mut wire, sockets);
    }

    /// Makes `sockets` put the packets that they have to send into the queue from which
    /// [`next_packet`](Self::next_packet) takes them.
    pub(super) fn flush(&mut self, now: Instant, sockets: &mut SocketSet<'_>) {
        let mut wire = StackDevice { packets: &mut self.packets, incoming: None };
        // smoltcp sends one packet of a socket at each call.
        while self.interface.poll_egress(now, &mut wire, sockets) == PollResult::SocketStateChanged {}
    }

    /// Returns the moment at which to flush `sockets` again; `None` if they wait for packets only.
    pub(super) fn deadline(&mut self, now: Instant, sockets: &SocketSet<'_>) -> Option<Instant> {
        self.interface.poll_at(now, sockets)
    }

    /// Removes and returns the next packet to send, if there is one.
    pub(super) fn next_packet(&mut self) -> Option<Vec<u8>> {
        self.packets.queue.pop_front()
    }

    /// Takes back the memory of a packet, to reuse it.
    pub(super) fn recycle(&mut self, packet: Vec<u8>) {
        if self.packets.spare.len() < MAX_SPARE {
            self.packets.spare.push(packet);
        }
    }
}

impl fmt::Debug for IpStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IpStack").field("packets", &self.packets).finish_non_exhaustive()
    }
}

/// The packets to send.
#[derive(Debug)]
struct OutgoingPackets {
    queue: VecDeque<Vec<u8>>,
    spare: Vec<Vec<u8>>,
    mtu: u16,
}

/// The network device of smoltcp: one packet in, any number out.
struct StackDevice<'a> {
    packets: &'a mut OutgoingPackets,
    incoming: Option<&'a [u8]>,
}

impl Device for StackDevice<'_> {
    type RxToken<'b>
        = RxPacket<'b>
    where
        Self: 'b;
    type TxToken<'b>
        = TxPacket<'b>
    where
        Self: 'b;

    fn receive(&mut self, _now: Instant) -> Option<(RxPacket<'_>, TxPacket<'_>)> {
        let packet = self.incoming.take()?;
        Some((RxPacket(packet), TxPacket(self.packets)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<TxPacket<'_>> {
        Some(TxPacket(self.packets))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = usize::from(self.packets.mtu);
        // No packet is damaged on the way. Checksums are computed for the sake of traces.
        capabilities.checksum.ipv4 = Checksum::Tx;
        capabilities.checksum.tcp = Checksum::Tx;
        capabilities
    }
}

struct RxPacket<'a>(&'a [u8]);

impl phy::RxToken for RxPacket<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(self.0)
    }
}

struct TxPacket<'a>(&'a mut OutgoingPackets);

impl phy::TxToken for TxPacket<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let mut packet = self.0.spare.pop().unwrap_or_default();
        packet.clear();
        packet.resize(len, 0);
        let result = write(&mut packet);
        self.0.queue.push_back(packet);
        result
    }
}
