//! The file format of captures, pcapng.

use std::io::{self, Write};

use crate::Time;

/// Writes a file of packets in the format pcapng (draft-ietf-opsawg-pcapng), which Wireshark reads: one section, interfaces,
/// and packets with times in nanoseconds. After the first error nothing more is written.
///
/// Packets may come from a simulation or from sockets. Writes are small: give it a buffered writer.
///
/// ```
/// use coapace_sim::{CaptureFile, Ecn, Time, udp_packet};
///
/// let mut file = CaptureFile::new(Vec::new());
/// let interface = file.add_interface(CaptureFile::RAW_IP, "sent", "CoAP on UDP port 5683");
/// let mut packet = Vec::new();
/// let (from, to) = ("10.0.0.1:40000".parse()?, "10.0.0.2:5683".parse()?);
/// udp_packet(from, to, 0, Ecn::NotCapable, b"@", &mut packet).expect("a short datagram");
/// file.add_packet(interface, Time::from_secs(1), &packet, None);
/// assert!(file.finish()?.len() > packet.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CaptureFile<W> {
    writer: W,
    interfaces: u32,
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

impl CaptureFile<()> {
    /// The link type of IP packets without a link-layer header (LINKTYPE_RAW).
    pub const RAW_IP: u32 = 101;
    /// The link type of IEEE 802.15.4 frames with their checksum (LINKTYPE_IEEE802_15_4_WITHFCS).
    pub const IEEE_802_15_4: u32 = 195;
}

impl<W: Write> CaptureFile<W> {
    /// Writes the header of a file, and returns the file.
    pub fn new(writer: W) -> Self {
        let mut file = Self { writer, interfaces: 0, block: Vec::new(), result: Ok(()) };
        let block = &mut file.block;
        block.extend_from_slice(&0x1a2b_3c4d_u32.to_le_bytes()); // shows the byte order
        block.extend_from_slice(&1u32.to_le_bytes()); // version 1.0
        block.extend_from_slice(&u64::MAX.to_le_bytes()); // length unknown
        add_option(block, SHB_USERAPPL, b"coapace");
        end_options(block);
        file.write(SECTION_HEADER);
        file
    }

    /// Adds an interface that packets were seen at, and returns its number. An empty description is left out.
    pub fn add_interface(&mut self, link_type: u32, name: &str, description: &str) -> u32 {
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
        self.interfaces += 1;
        self.interfaces - 1
    }

    /// Adds a packet that was seen at an interface. `time` counts from the start of a run, or from the Unix epoch.
    pub fn add_packet(&mut self, interface: u32, time: Time, packet: &[u8], comment: Option<&str>) {
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

    /// Returns whether writing has failed.
    pub fn has_failed(&self) -> bool {
        self.result.is_err()
    }

    /// Flushes the writer and returns it.
    ///
    /// # Errors
    /// The first error of the writer. Nothing was written after it.
    pub fn finish(mut self) -> io::Result<W> {
        self.result?;
        self.writer.flush()?;
        Ok(self.writer)
    }

    /// Writes the contents of `block` as a block of this type, and clears it.
    fn write(&mut self, kind: u32) {
        if self.result.is_ok() {
            // The length counts the type before the contents, and itself before and after them.
            let length = (12 + self.block.len() as u32).to_le_bytes();
            let parts = [&kind.to_le_bytes()[..], &length, &self.block, &length];
            self.result = parts.into_iter().try_for_each(|part| self.writer.write_all(part));
        }
        self.block.clear();
    }
}

fn add_option(block: &mut Vec<u8>, code: u16, value: &[u8]) {
    // The length has 16 bits, so a longer value is cut.
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
    block.extend_from_slice(&code.to_le_bytes());
    block.extend_from_slice(&length.to_le_bytes());
    block.extend_from_slice(&value[..usize::from(length)]);
    pad(block);
}

fn end_options(block: &mut Vec<u8>) {
    block.extend_from_slice(&[0; 4]);
}

/// Pads a block with zeros to a multiple of 32 bits, at which its next part must begin.
fn pad(block: &mut Vec<u8>) {
    block.resize(block.len().next_multiple_of(4), 0);
}
