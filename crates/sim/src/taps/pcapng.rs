//! Captures of a network.

use std::io::{self, Write};
use std::net::{Ipv6Addr, SocketAddr};
use std::ops::Range;

use super::capture_file::CaptureFile;
use super::udp_packet;
use crate::{Accounting, Event, NodeId, Record, Tap, Transport};

/// Writes a [`CaptureFile`] of the IP packets of a run. It has three interfaces: `sent` by nodes, `delivered` to nodes, and
/// `discarded` by the network, with a comment that says where and why.
///
/// A datagram gets IP and UDP headers with correct checksums. Node n has the address 10.0.0.1 + n, as in packets of
/// TCP, or fd00::1 + n. A server has port 5683, and the other nodes have ports from 40000 on. A packet too long for the
/// length field of its header is left out.
#[derive(Debug)]
pub struct Pcapng<W> {
    file: CaptureFile<W>,
    accounting: Accounting,
    servers: Range<u32>,
    hops: Vec<String>,
    /// The number of packets written, which is the identification of the next packet.
    packets: u16,
    packet: Vec<u8>,
}

const INTERFACES: [&str; 3] = ["sent", "delivered", "discarded"];

const COAP_PORT: u16 = 5683;

impl<W: Write> Pcapng<W> {
    /// Writes the header of a capture, and returns the capture. The nodes of `servers` are servers. `hops` are the names of
    /// [`Network::hop_names`](crate::Network::hop_names). Writes are small: give it a buffered writer.
    pub fn new(writer: W, accounting: Accounting, servers: Range<u32>, hops: &[String]) -> Self {
        let mut file = CaptureFile::new(writer);
        for name in INTERFACES {
            file.add_interface(CaptureFile::RAW_IP, name, "");
        }
        Self { file, accounting, servers, hops: hops.to_vec(), packets: 0, packet: Vec::new() }
    }

    /// Flushes the writer and returns it.
    ///
    /// # Errors
    /// The first error of the writer. Nothing was written after it.
    pub fn finish(self) -> io::Result<W> {
        self.file.finish()
    }

    /// Builds the IP packet of a record in `packet`. Returns `None` if it is too long.
    fn build(&mut self, record: &Record<'_>) -> Option<()> {
        self.packet.clear();
        if record.transport == Transport::Ip {
            self.packet.extend_from_slice(record.bytes);
            return Some(());
        }
        let [from, to] = [record.from, record.to].map(|node| self.address(node));
        udp_packet(from, to, self.packets, record.ecn, record.bytes, &mut self.packet)?;
        self.packets = self.packets.wrapping_add(1);
        Some(())
    }

    fn address(&self, node: NodeId) -> SocketAddr {
        let port = self.port(node);
        match self.accounting {
            Accounting::Ipv4 => (node.ipv4(), port).into(),
            Accounting::Ipv6 => (ipv6(node), port).into(),
        }
    }

    fn port(&self, node: NodeId) -> u16 {
        // 59,999 at most, which is below the last port. Clients that share a port have different addresses.
        if self.servers.contains(&node.0) { COAP_PORT } else { 40_000 + (node.0 % 20_000) as u16 }
    }

    /// Returns the reason why a packet was discarded, if it was discarded.
    fn comment(&self, record: &Record<'_>) -> Option<String> {
        let hop = record.hop.and_then(|hop| self.hops.get(usize::from(hop.0)));
        match (record.event, hop) {
            (Event::Dropped, Some(hop)) => Some(format!(
                "dropped: {} bytes wait for {hop}, which has no room for this packet",
                record.queue_bytes
            )),
            (Event::Discarded, Some(hop)) => {
                Some(format!("dropped: queue management of {hop}, where {} bytes wait", record.queue_bytes))
            }
            (Event::Dropped, None) => Some("dropped: no path".into()),
            (Event::Lost, Some(hop)) => Some(format!("lost on {hop}")),
            _ => None,
        }
    }
}

impl<W: Write> Tap for Pcapng<W> {
    fn record(&mut self, record: &Record<'_>) {
        // The numbers are the places in `INTERFACES`.
        let interface = match record.event {
            Event::Sent => 0u32,
            Event::Delivered => 1,
            Event::Dropped | Event::Discarded | Event::Lost => 2,
            Event::Queued | Event::Marked | Event::Begun => return,
        };
        if self.file.has_failed() || self.build(record).is_none() {
            return;
        }
        let comment = self.comment(record);
        self.file.add_packet(interface, record.time, &self.packet, comment.as_deref());
    }
}

fn ipv6(node: NodeId) -> Ipv6Addr {
    Ipv6Addr::from((0xfd00_u128 << 112) + 1 + u128::from(node.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_a_capture_derive_from_the_node_number() {
        assert_eq!(NodeId(0).ipv4().to_string(), "10.0.0.1");
        assert_eq!(NodeId(0x01_02_03).ipv4().to_string(), "10.1.2.4");
        assert_eq!(ipv6(NodeId(0)).to_string(), "fd00::1");
        assert_eq!(ipv6(NodeId(0x0a0b_0c0d)).to_string(), "fd00::a0b:c0e");
    }
}
