//! The blocks of a capture.

use std::io::{self, Write};

use crate::Time;

/// Writes pcapng (draft-ietf-opsawg-pcapng): one section, interfaces, and packets with times in nanoseconds. After the
/// first error nothing more is written.
#[derive(Debug)]
pub(super) struct Blocks<W> {
    writer: W,
    block: Vec<u8>,
    result: io::Result<()>,
}

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;

impl<W: Write> Blocks<W> {
    /// A file with the header of its section.
    pub(super) fn new(writer: W) -> Self {
        let mut blocks = Self { writer, block: Vec::new(), result: Ok(()) };
        let block = &mut blocks.block;
        block.extend_from_slice(&0x1a2b_3c4d_u32.to_le_bytes()); // tells the byte order
        block.extend_from_slice(&1u32.to_le_bytes()); // version 1.0
        block.extend_from_slice(&u64::MAX.to_le_bytes()); // length unknown
        add_option(block, SHB_USERAPPL, b"coapace");
        end_options(block);
        blocks.write(SECTION_HEADER);
        blocks
    }

    /// Adds an interface, with a description unless that is empty; the first has the number 0.
    pub(super) fn add_interface(&mut self, link_type: u32, name: &str, description: &str) {
        let block = &mut self.block;
        block.extend_from_slice(&link_type.to_le_bytes());
        block.extend_from_slice(&0u32.to_le_bytes()); // packets are kept whole
        add_option(block, IF_NAME, name.as_bytes());
        if !description.is_empty() {
            add_option(block, IF_DESCRIPTION, description.as_bytes());
        }
        add_option(block, IF_TSRESOL, &[9]); // 10⁻⁹ s
        end_options(block);
        self.write(INTERFACE_DESCRIPTION);
    }

    /// Adds a packet.
    pub(super) fn add_packet(&mut self, interface: u32, time: Time, packet: &[u8], comment: Option<&str>) {
        let ns = time.as_nanos();
        let length = packet.len() as u32;
        for word in [interface, (ns >> 32) as u32, ns as u32, length, length] {
            self.block.extend_from_slice(&word.to_le_bytes());
        }
        self.block.extend_from_slice(packet);
        pad(&mut self.block);
        if let Some(comment) = comment {
            add_option(&mut self.block, OPT_COMMENT, comment.as_bytes());
            end_options(&mut self.block);
        }
        self.write(ENHANCED_PACKET);
    }

    /// Whether writing has failed.
    pub(super) fn failed(&self) -> bool {
        self.result.is_err()
    }

    /// The writer, flushed, or the first error.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.result?;
        self.writer.flush()?;
        Ok(self.writer)
    }

    /// Writes what is in `block` as a block of this type, and empties it.
    fn write(&mut self, kind: u32) {
        if self.result.is_ok() {
            let length = (12 + self.block.len() as u32).to_le_bytes();
            let parts = [&kind.to_le_bytes()[..], &length, &self.block, &length];
            self.result = parts.into_iter().try_for_each(|part| self.writer.write_all(part));
        }
        self.block.clear();
    }
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
