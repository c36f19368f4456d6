//! Captures that Wireshark reads.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::ops::Range;

use super::blocks::Blocks;
use super::udp_packet;
use crate::{Accounting, Event, NodeId, Record, Tap, Transport};

/// Writes pcapng (draft-ietf-opsawg-pcapng): raw IP packets with times in nanoseconds, seen by three interfaces: `sent`
/// by nodes, `delivered` to nodes, and `discarded` by the network, with a comment that says where and why.
///
/// A datagram gets IP and UDP headers with correct checksums. Node n has the address 10.x.y.z, from the last 24 bits of
/// n, or fd00::x:y. The port of a server is 5683, that of others 40000 and more. A packet too long for the length field
/// of its header is left out.
#[derive(Debug)]
pub struct Pcapng<W> {
    blocks: Blocks<W>,
    accounting: Accounting,
    servers: Range<u32>,
    hops: Vec<String>,
    /// Packets written: the identification of the next.
    packets: u16,
    packet: Vec<u8>,
}

const INTERFACES: [&str; 3] = ["sent", "delivered", "discarded"];

const LINKTYPE_RAW: u32 = 101;
const COAP_PORT: u16 = 5683;

impl<W: Write> Pcapng<W> {
    /// A capture in which the nodes of `servers` are servers, and the hops bear the names that
    /// [`Network::hop_names`](crate::Network::hop_names) gives. Writes are small: give it a buffered writer.
    pub fn new(writer: W, accounting: Accounting, servers: Range<u32>, hops: &[String]) -> Self {
        Self::described(writer, accounting, servers, hops, "")
    }

    /// The same with a text that describes each interface, such as what protocol is on which port.
    pub fn described(
        writer: W,
        accounting: Accounting,
        servers: Range<u32>,
        hops: &[String],
        description: &str,
    ) -> Self {
        let mut blocks = Blocks::new(writer);
        for name in INTERFACES {
            blocks.add_interface(LINKTYPE_RAW, name, description);
        }
        let hops = hops.to_vec();
        Self { blocks, accounting, servers, hops, packets: 0, packet: Vec::new() }
    }

    /// The writer, flushed.
    ///
    /// # Errors
    /// The first that writing met; nothing was written after it.
    pub fn finish(self) -> io::Result<W> {
        self.blocks.finish()
    }

    /// Builds the IP packet of a record in `packet`. `None` if it cannot be.
    fn build(&mut self, record: &Record<'_>) -> Option<()> {
        self.packet.clear();
        if record.transport == Transport::Ip {
            self.packet.extend_from_slice(record.bytes);
            return Some(());
        }
        let [from, to] = [record.from, record.to].map(|node| self.address(node));
        udp_packet(from, to, self.packets, record.bytes, &mut self.packet)?;
        self.packets = self.packets.wrapping_add(1);
        Some(())
    }

    fn address(&self, node: NodeId) -> SocketAddr {
        let port = self.port(node);
        match self.accounting {
            Accounting::Ipv4 => (ipv4(node), port).into(),
            Accounting::Ipv6 => (ipv6(node), port).into(),
        }
    }

    fn port(&self, node: NodeId) -> u16 {
        if self.servers.contains(&node.0) { COAP_PORT } else { 40_000 + (node.0 % 20_000) as u16 }
    }

    /// Why a packet was discarded.
    fn comment(&self, record: &Record<'_>) -> Option<String> {
        let hop = record.hop.and_then(|hop| self.hops.get(usize::from(hop.0)));
        match (record.event, hop) {
            (Event::Dropped, Some(hop)) => Some(format!(
                "dropped: {} bytes wait for {hop}, which has room for no more",
                record.queue_bytes
            )),
            (Event::Dropped, None) => Some("dropped: no path".into()),
            (Event::Lost, Some(hop)) => Some(format!("lost on {hop}")),
            _ => None,
        }
    }
}

impl<W: Write> Tap for Pcapng<W> {
    fn record(&mut self, record: &Record<'_>) {
        let interface = match record.event {
            Event::Sent => 0u32,
            Event::Delivered => 1,
            Event::Dropped | Event::Lost => 2,
            Event::Queued => return,
        };
        if self.blocks.failed() || self.build(record).is_none() {
            return;
        }
        let comment = self.comment(record);
        self.blocks.add_packet(interface, record.time, &self.packet, comment.as_deref());
    }
}

fn ipv4(node: NodeId) -> [u8; 4] {
    let [_, x, y, z] = node.0.to_be_bytes();
    [10, x, y, z]
}

fn ipv6(node: NodeId) -> [u8; 16] {
    (0xfd00_u128 << 112 | u128::from(node.0)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_derive_from_the_node() {
        assert_eq!(ipv4(NodeId(0x01_02_03)), [10, 1, 2, 3]);
        assert_eq!(
            ipv6(NodeId(0x0a0b_0c0d)),
            [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0a, 0x0b, 0x0c, 0x0d]
        );
    }
}
