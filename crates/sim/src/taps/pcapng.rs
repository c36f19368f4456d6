//! Captures that Wireshark reads.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::ops::Range;

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
    writer: W,
    accounting: Accounting,
    servers: Range<u32>,
    hops: Vec<String>,
    /// Packets written: the identification of the next.
    packets: u16,
    packet: Vec<u8>,
    block: Vec<u8>,
    result: io::Result<()>,
}

const INTERFACES: [&str; 3] = ["sent", "delivered", "discarded"];

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;

const LINKTYPE_RAW: u32 = 101;
const COAP_PORT: u16 = 5683;

impl<W: Write> Pcapng<W> {
    /// A capture in which the nodes of `servers` are servers, and the hops bear the names that
    /// [`Network::hop_names`](crate::Network::hop_names) gives. Writes are small: give it a buffered writer.
    pub fn new(writer: W, accounting: Accounting, servers: Range<u32>, hops: &[String]) -> Self {
        let mut capture = Self {
            writer,
            accounting,
            servers,
            hops: hops.to_vec(),
            packets: 0,
            packet: Vec::new(),
            block: Vec::new(),
            result: Ok(()),
        };
        capture.write_header();
        capture
    }

    /// The writer, flushed.
    ///
    /// # Errors
    /// The first that writing met; nothing was written after it.
    pub fn finish(mut self) -> io::Result<W> {
        self.result?;
        self.writer.flush()?;
        Ok(self.writer)
    }

    fn write_header(&mut self) {
        let block = &mut self.block;
        block.extend_from_slice(&0x1a2b_3c4d_u32.to_le_bytes()); // tells the byte order
        block.extend_from_slice(&1u32.to_le_bytes()); // version 1.0
        block.extend_from_slice(&u64::MAX.to_le_bytes()); // length unknown
        add_option(block, SHB_USERAPPL, b"coapace");
        end_options(block);
        self.write_block(SECTION_HEADER);
        for name in INTERFACES {
            let block = &mut self.block;
            block.extend_from_slice(&LINKTYPE_RAW.to_le_bytes());
            block.extend_from_slice(&0u32.to_le_bytes()); // packets are kept whole
            add_option(block, IF_NAME, name.as_bytes());
            add_option(block, IF_TSRESOL, &[9]); // 10⁻⁹ s
            end_options(block);
            self.write_block(INTERFACE_DESCRIPTION);
        }
    }

    /// Writes what is in `block` as a block of this type, and empties it.
    fn write_block(&mut self, kind: u32) {
        if self.result.is_ok() {
            let length = (12 + self.block.len() as u32).to_le_bytes();
            let parts = [&kind.to_le_bytes()[..], &length, &self.block, &length];
            self.result = parts.into_iter().try_for_each(|part| self.writer.write_all(part));
        }
        self.block.clear();
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
        if self.result.is_err() || self.build(record).is_none() {
            return;
        }
        let comment = self.comment(record);
        let ns = record.time.as_nanos();
        let length = self.packet.len() as u32;
        for word in [interface, (ns >> 32) as u32, ns as u32, length, length] {
            self.block.extend_from_slice(&word.to_le_bytes());
        }
        self.block.extend_from_slice(&self.packet);
        pad(&mut self.block);
        if let Some(comment) = comment {
            add_option(&mut self.block, OPT_COMMENT, comment.as_bytes());
            end_options(&mut self.block);
        }
        self.write_block(ENHANCED_PACKET);
    }
}

fn ipv4(node: NodeId) -> [u8; 4] {
    let [_, x, y, z] = node.0.to_be_bytes();
    [10, x, y, z]
}

fn ipv6(node: NodeId) -> [u8; 16] {
    (0xfd00_u128 << 112 | u128::from(node.0)).to_be_bytes()
}

fn add_option(block: &mut Vec<u8>, code: u16, value: &[u8]) {
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
    block.extend_from_slice(&code.to_le_bytes());
    block.extend_from_slice(&length.to_le_bytes());
    block.extend_from_slice(&value[..usize::from(length)]);
    pad(block);
}

fn end_options(block: &mut Vec<u8>) {
    block.extend_from_slice(&[0; 4]);
}

/// Each part of a block ends at a multiple of 32 bits.
fn pad(block: &mut Vec<u8>) {
    block.resize(block.len().next_multiple_of(4), 0);
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
