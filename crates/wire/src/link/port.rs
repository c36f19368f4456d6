//! The node that represents a real host in the simulated world.

use coapace_sim::{Mark, Node, NodeId, Outgoing, Time};

/// A node without a program of its own, which represents a real host. It sends the packets that it
/// is given from outside. The tap [`Arrivals`](super::arrivals::Arrivals) collects the packets that
/// arrive at it.
#[derive(Debug, Default)]
pub(super) struct Port {
    outgoing: Option<(Outgoing, Vec<u8>)>,
}

impl Port {
    /// Stores a packet, which the world fetches when it wakes this node.
    pub(super) fn put(&mut self, outgoing: Outgoing, bytes: &[u8]) {
        self.outgoing = Some((outgoing, bytes.to_vec()));
    }
}

impl Node for Port {
    // The tap has this packet already.
    fn handle_datagram(&mut self, _: Time, _: NodeId, _: Mark, _: &[u8]) {}

    fn handle_timeout(&mut self, _: Time) {}

    fn poll_transmit(&mut self, _: Time, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        let (outgoing, bytes) = self.outgoing.take()?;
        buffer.extend_from_slice(&bytes);
        Some(outgoing)
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}
