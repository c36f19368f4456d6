//! Captures of the air.

use std::io::{self, Write};

use super::blocks::Blocks;
use crate::mesh::{FrameEvent, FrameKind, FrameRecord, LowpanConfig, write_ack, write_frame};
use crate::{Record, Tap};

/// Writes pcapng of a mesh: every frame that is on the air.
#[derive(Debug)]
pub struct MeshPcapng<W> {
    blocks: Blocks<W>,
    max_frame_bytes: u16,
    frame: Vec<u8>,
}

/// IEEE 802.15.4 with the checksum.
const LINKTYPE_IEEE802_15_4_WITHFCS: u32 = 195;

impl<W: Write> MeshPcapng<W> {
    /// A capture of a mesh of this configuration. Writes are small: give it a buffered writer.
    pub fn new(writer: W, config: &LowpanConfig) -> Self {
        let mut blocks = Blocks::new(writer);
        blocks.add_interface(LINKTYPE_IEEE802_15_4_WITHFCS, "air");
        Self { blocks, max_frame_bytes: config.max_frame_bytes, frame: Vec::new() }
    }

    /// The writer, flushed.
    ///
    /// # Errors
    /// The first that writing met; nothing was written after it.
    pub fn finish(self) -> io::Result<W> {
        self.blocks.finish()
    }

    fn build(&mut self, record: &FrameRecord<'_>) -> Option<()> {
        self.frame.clear();
        match (record.frame.kind, &record.datagram) {
            (FrameKind::Ack, _) => write_ack(record.frame.sequence, &mut self.frame),
            (FrameKind::Data, Some(datagram)) => {
                write_frame(record.frame, datagram, self.max_frame_bytes, &mut self.frame)?;
            }
            (FrameKind::Data, None) => return None,
        }
        Some(())
    }
}

impl<W: Write> Tap for MeshPcapng<W> {
    fn record(&mut self, _: &Record<'_>) {}

    fn frame(&mut self, record: &FrameRecord<'_>) {
        if record.event == FrameEvent::Sent && !self.blocks.failed() && self.build(record).is_some() {
            self.blocks.add_packet(0, record.time, &self.frame, None);
        }
    }
}
