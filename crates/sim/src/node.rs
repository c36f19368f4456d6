//! The interface of a simulated host: four methods that send, receive and wait.

use std::net::Ipv4Addr;

use coapace_control::Duration;

use crate::Time;

/// The number of a host. Hosts are numbered as they are added to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

impl NodeId {
    /// Returns the IPv4 address of the node: 10.0.0.1 for node 0 and upwards, modulo 2²⁴.
    pub(crate) fn ipv4(self) -> Ipv4Addr {
        Ipv4Addr::from(0x0a00_0000 | (self.0.wrapping_add(1) & 0x00ff_ffff))
    }
}

/// The exchange and transmission that a packet belongs to. A mark travels with the packet, outside its bytes. It is the key of
/// the random numbers drawn for the packet, so that two mechanisms have the same losses and delays at the same step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The exchange, counted by the client from 0.
    pub exchange: u32,
    /// The transmission within the exchange, 0 for the first.
    pub transmission: u8,
}

/// The layer that the bytes of a packet begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// The payload of a UDP datagram. [`Accounting`](crate::Accounting) adds the headers of IP and UDP.
    Udp,
    /// A whole IP packet.
    Ip,
}

/// The ECN field of a packet (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not-ECT: the sender does not react to congestion marks.
    #[default]
    NotCapable,
    /// ECT(0): a queue may mark the packet instead of dropping it.
    Capable,
    /// CE: a queue has marked the packet.
    Congested,
}

impl Ecn {
    /// Returns the field in the header of an IP packet, of either version. ECT(1) counts as [`Capable`](Self::Capable).
    pub fn of_ip(packet: &[u8]) -> Self {
        // IPv4 has the field in the low bits of byte 1. IPv6 has it in the traffic class, which is spread over bytes 0 and 1.
        let bits = match packet {
            [first, second, ..] if first >> 4 == 4 => second & 3,
            [first, second, ..] if first >> 4 == 6 => second >> 4 & 3,
            _ => 0,
        };
        [Self::NotCapable, Self::Capable, Self::Capable, Self::Congested][usize::from(bits)]
    }

    /// Returns the two bits of the ECN field.
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotCapable => 0b00,
            Self::Capable => 0b10,
            Self::Congested => 0b11,
        }
    }
}

/// A packet that a node sends. Its bytes are in the buffer of [`Node::poll_transmit`].
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    /// The receiver.
    pub to: NodeId,
    /// The exchange and transmission that the packet belongs to.
    pub mark: Mark,
    /// The layer that its bytes begin with.
    pub transport: Transport,
}

/// A simulated host.
pub trait Node {
    /// Handles a packet that arrived.
    fn handle_datagram(&mut self, now: Time, from: NodeId, mark: Mark, bytes: &[u8]);

    /// Announces that a queue has marked a packet CE. The next call of [`handle_datagram`](Self::handle_datagram)
    /// passes that packet in.
    fn congestion_experienced(&mut self, _from: NodeId, _mark: Mark) {}

    /// Handles the deadline that [`poll_timeout`](Self::poll_timeout) returned.
    fn handle_timeout(&mut self, now: Time);

    /// Returns the next packet to send, if any. Appends its bytes to `buffer`, which is empty.
    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Outgoing>;

    /// Returns the time at which to call [`handle_timeout`](Self::handle_timeout), if any.
    fn poll_timeout(&self) -> Option<Time>;

    /// Returns the RTO towards the peer, for taps, or `None` if the host has no RTO.
    fn rto(&self) -> Option<Duration> {
        None
    }
}
