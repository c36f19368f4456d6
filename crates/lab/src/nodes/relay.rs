//! A node without an application: it relays what the network has it relay.

use coapace_sim::{Mark, Node, NodeId, Outgoing, Time};

/// A node without an application. It ignores messages that are sent to it.
#[derive(Debug)]
pub(crate) struct Relay;

impl Node for Relay {
    fn handle_datagram(&mut self, _: Time, _: NodeId, _: Mark, _: &[u8]) {}

    fn handle_timeout(&mut self, _: Time) {}

    fn poll_transmit(&mut self, _: Time, _: &mut Vec<u8>) -> Option<Outgoing> {
        None
    }

    fn poll_timeout(&self) -> Option<Time> {
        None
    }
}
