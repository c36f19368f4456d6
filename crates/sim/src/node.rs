//! What a simulated host is to the network: four verbs.

use coapace_control::Duration;

use crate::Time;

/// A host, by its place in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// What a packet belongs to: it travels with the packet outside its bytes, and keys the random draws made for it, so
/// that two mechanisms meet the same luck at the same step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The exchange, counted by the client from 0.
    pub exchange: u32,
    /// The transmission within the exchange, 0 for the first.
    pub transmission: u8,
}

/// What the bytes of a packet are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// The payload of a UDP datagram: IP and UDP headers are added in the accounting.
    Udp,
    /// A whole IP packet.
    Ip,
}

/// A packet that a node hands to the network; its bytes are in the buffer that was passed.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    /// Where it goes.
    pub to: NodeId,
    /// What it belongs to.
    pub mark: Mark,
    /// What its bytes are.
    pub transport: Transport,
}

/// A simulated host.
pub trait Node {
    /// A packet arrived.
    fn handle_datagram(&mut self, now: Time, from: NodeId, mark: Mark, bytes: &[u8]);

    /// The moment that [`poll_timeout`](Self::poll_timeout) named has come.
    fn handle_timeout(&mut self, now: Time);

    /// The next packet to send, if any: its bytes are appended to `buffer`, which is empty.
    fn poll_transmit(&mut self, now: Time, buffer: &mut Vec<u8>) -> Option<Outgoing>;

    /// When [`handle_timeout`](Self::handle_timeout) wants to be called.
    fn poll_timeout(&self) -> Option<Time>;

    /// The RTO towards the host that it talks to, for those who watch; `None` where there is none.
    fn rto(&self) -> Option<Duration> {
        None
    }
}
