//! Captures of a mesh.

use std::io::{self, Write};

use smoltcp::wire::Icmpv6Packet;

use super::capture_file::CaptureFile;
use crate::mesh::address::{ALL_RPL_NODES, PREFIX, link_local};
use crate::mesh::bytes::{write_ack, write_frame};
use crate::mesh::{Content, Frame, FrameEvent, FrameKind, FrameRecord, Ipv6Packet, Leg, LowpanConfig};
use crate::{NodeId, Record, Tap, Time};

/// Writes a [`CaptureFile`] of a mesh, like a sniffer that hears all nodes: every frame that is sent, with its checksum and the
/// time of its first bit. The capture does not show whether a frame was received.
///
/// Node n has the EUI-64 02:12:74:00 and n, and the addresses fd00::12:7400:0:n and fe80::12:7400:0:n (n in two words
/// of 16 bits). fd00::/64 is context 0 of header compression, which a reader of the capture needs to know. tshark takes
/// `-o 6lowpan.context0:fd00::/64`, or learns the context from a Router Advertisement (RFC 6775 §4.2). The first packet
/// of the capture is therefore a Router Advertisement. No node sends this packet, and it has an interface of its own:
/// `frame.interface_name == "air"` finds all frames that were sent.
///
/// All frames are on one interface, because Wireshark looks there for the frame that an acknowledgement belongs to
/// (`-o wpan.802154_ack_tracking:TRUE`).
#[derive(Debug)]
pub struct MeshPcapng<W> {
    file: CaptureFile<W>,
    max_frame_bytes: u16,
    frame: Vec<u8>,
}

const AIR: u32 = 0;
const CONTEXT: u32 = 1;
const INTERFACES: [&str; 2] = ["air", "context"];

impl<W: Write> MeshPcapng<W> {
    /// Writes the header of a capture of a mesh with this configuration, and returns the capture. Writes are small: give it a
    /// buffered writer.
    pub fn new(writer: W, config: &LowpanConfig) -> Self {
        let mut file = CaptureFile::new(writer);
        for name in INTERFACES {
            file.add_interface(CaptureFile::IEEE_802_15_4, name, "");
        }
        let comment = "not on the air: gives context 0 of header compression";
        file.add_packet(CONTEXT, Time::ZERO, &context_advertisement(), Some(comment));
        Self { file, max_frame_bytes: config.max_frame_bytes, frame: Vec::new() }
    }

    /// Flushes the writer and returns it.
    ///
    /// # Errors
    /// The first error of the writer. Nothing was written after it.
    pub fn finish(self) -> io::Result<W> {
        self.file.finish()
    }

    /// Builds the bytes of a record's frame in `frame`. Returns `None` if the datagram has no such frame.
    fn build(&mut self, record: &FrameRecord<'_>) -> Option<()> {
        self.frame.clear();
        match (record.frame.kind, &record.datagram) {
            (FrameKind::Ack, _) => {
                write_ack(record.frame.sequence, &mut self.frame);
                Some(())
            }
            (FrameKind::Data, Some(datagram)) => {
                write_frame(record.frame, datagram, self.max_frame_bytes, &mut self.frame)
            }
            (FrameKind::Data, None) => None,
        }
    }
}

impl<W: Write> Tap for MeshPcapng<W> {
    fn record(&mut self, _: &Record<'_>) {}

    fn frame(&mut self, record: &FrameRecord<'_>) {
        if record.event == FrameEvent::Sent && !self.file.has_failed() && self.build(record).is_some() {
            self.file.add_packet(AIR, record.time, &self.frame, None);
        }
    }
}

/// Returns a frame with a Router Advertisement (RFC 4861 §4.2) that advertises context 0 (RFC 6775 §4.2) and nothing else.
fn context_advertisement() -> Vec<u8> {
    // No mesh has so many nodes that one has this number.
    const NOBODY: NodeId = NodeId(u32::MAX);
    let mut message = [0; 32];
    // The type of a Router Advertisement.
    message[0] = 134;
    // Option 34 of 2 · 8 bytes: a prefix of 64 bits, for compression, context 0, valid for the longest time there is.
    message[16..20].copy_from_slice(&[34, 2, 64, 0x10]);
    message[22..24].copy_from_slice(&u16::MAX.to_be_bytes());
    message[24..].copy_from_slice(&PREFIX);
    Icmpv6Packet::new_unchecked(&mut message).fill_checksum(&link_local(NOBODY), &ALL_RPL_NODES);
    let frame = Frame {
        kind: FrameKind::Data,
        from: NOBODY,
        to: None,
        sequence: 0,
        bytes: 0, // `write_frame` does not read it
        fragment: 0,
        fragments: 1,
        tag: 0,
        leg: Leg { hop_limit: 255, option: None },
    };
    let datagram = Ipv6Packet { source: NOBODY, dest: None, content: Content::Icmpv6(&message) };
    let mut bytes = Vec::new();
    // The message fits one frame of 127 bytes.
    let _ = write_frame(&frame, &datagram, 127, &mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use super::*;
    use crate::Span;
    use crate::mesh::RplOption;
    use crate::mesh::address::global;
    use crate::mesh::lowpan::{ACK_BYTES, Fragments, header_bytes};

    const CONFIG: LowpanConfig = LowpanConfig {
        max_frame_bytes: 127,
        hop_limit: 64,
        reassembly_contexts: 2,
        reassembly_timeout: Span::from_millis(1_250),
        prefer_new: false,
    };
    const ONE_HOP: Leg = Leg { hop_limit: 64, option: None };

    /// A mesh without random losses, and the frames that were sent in it.
    struct TestMesh {
        capture: MeshPcapng<Vec<u8>>,
        now: Time,
        sequence: u8,
        sent: Vec<(Time, u16)>,
    }

    impl TestMesh {
        fn new() -> Self {
            let capture = MeshPcapng::new(Vec::new(), &CONFIG);
            Self { capture, now: Time::from_secs(1), sequence: 0, sent: Vec::new() }
        }

        fn handle_event(&mut self, event: FrameEvent, frame: &Frame, datagram: Option<Ipv6Packet<'_>>) {
            if event == FrameEvent::Sent {
                self.sent.push((self.now, frame.bytes));
            }
            let (time, node, mark) = (self.now, frame.from, crate::Mark::default());
            self.capture.frame(&FrameRecord { time, event, node, frame, datagram, mark });
            self.now = self.now + Span::from_nanos(u64::from(frame.bytes) * 32_000 + 192_001);
        }

        /// Returns the frames of a datagram on a hop.
        fn frames(&mut self, datagram: Ipv6Packet<'_>, from: u32, to: Option<u32>, leg: Leg) -> Vec<Frame> {
            let (from, to) = (NodeId(from), to.map(NodeId));
            let (length, is_icmpv6) = match datagram.content {
                Content::Udp(payload) => (payload.len(), false),
                Content::Icmpv6(message) => (message.len(), true),
            };
            let header = header_bytes(datagram.source, datagram.dest, from, to, leg, is_icmpv6);
            let plan = Fragments::new(CONFIG.max_frame_bytes, to, header, length).expect("what fits");
            let (kind, fragments, tag) = (FrameKind::Data, plan.count(), 0x100 + u16::from(self.sequence));
            let mut frame = |fragment| {
                self.sequence += 1;
                let (sequence, bytes) = (self.sequence, plan.frame_bytes(fragment));
                Frame { kind, from, to, sequence, bytes, fragment, fragments, tag, leg }
            };
            (0..fragments).map(&mut frame).collect()
        }

        /// Sends a datagram over a hop. Frames to one node are acknowledged, and the first is sent twice.
        fn hop(&mut self, datagram: Ipv6Packet<'_>, from: u32, to: Option<u32>, leg: Leg) {
            for frame in self.frames(datagram, from, to, leg) {
                self.handle_event(FrameEvent::Sent, &frame, Some(datagram));
                let Some(to) = frame.to else { continue };
                if frame.fragment == 0 {
                    self.handle_event(FrameEvent::Collided, &frame, Some(datagram));
                    self.handle_event(FrameEvent::Sent, &frame, Some(datagram));
                }
                self.handle_event(FrameEvent::Received, &frame, Some(datagram));
                let (kind, bytes) = (FrameKind::Ack, ACK_BYTES);
                let ack = Frame { kind, from: to, to: Some(frame.from), bytes, ..frame };
                self.handle_event(FrameEvent::Sent, &ack, None);
            }
        }

        /// Gives a datagram up after its first frame.
        fn give_up(&mut self, datagram: Ipv6Packet<'_>, from: u32, to: Option<u32>, leg: Leg) {
            let frame = self.frames(datagram, from, to, leg)[0];
            self.handle_event(FrameEvent::Sent, &frame, Some(datagram));
            self.handle_event(FrameEvent::Missed, &frame, Some(datagram));
            self.handle_event(FrameEvent::NotAcknowledged, &frame, Some(datagram));
        }

        /// Sends a message from node 3 over 2 and 1 to node 0, the root.
        fn up(&mut self, message: &[u8]) {
            let datagram =
                Ipv6Packet { source: NodeId(3), dest: Some(NodeId(0)), content: Content::Udp(message) };
            for from in (1..=3u8).rev() {
                let sender_rank = 256 * (1 + u16::from(from));
                let option = Some(RplOption { sender_rank, ..RplOption::default() });
                self.hop(
                    datagram,
                    from.into(),
                    Some(u32::from(from) - 1),
                    Leg { hop_limit: 61 + from, option },
                );
            }
        }
    }

    /// Returns an ICMPv6 message of RPL (RFC 6550 §6).
    fn rpl(source: u32, dest: Option<u32>, code: u8, body: &[u8]) -> Vec<u8> {
        let mut message = [&[155, code, 0, 0], body].concat();
        let dest = dest.map_or(ALL_RPL_NODES, |node| link_local(NodeId(node)));
        Icmpv6Packet::new_unchecked(&mut message[..]).fill_checksum(&link_local(NodeId(source)), &dest);
        message
    }

    /// Returns a non-confirmable 2.05 with a payload of `length` bytes.
    fn content(message_id: u16, length: usize) -> Vec<u8> {
        let mut message = vec![0x50, 0x45];
        message.extend_from_slice(&message_id.to_be_bytes());
        message.push(0xff);
        message.resize(5 + length, b'a');
        message
    }

    /// Forms a DODAG of four nodes in a line and sends messages up it: short ones, one in fragments, and one that is given up
    /// and sent again.
    fn line() -> TestMesh {
        let mut air = TestMesh::new();
        let root = global(NodeId(0)).octets();
        let dis = rpl(3, None, 0, &[0, 0]);
        let dio = rpl(0, None, 1, &[&[0, 240, 1, 0, 0x10, 1, 0, 0], &root[..]].concat());
        let target = [&[5, 18, 0, 128], &global(NodeId(3)).octets()[..]].concat();
        let dao = rpl(1, Some(0), 2, &[&[0, 0, 0, 1], &target[..]].concat());
        for (source, dest, message) in [(3, None, &dis), (0, None, &dio), (1, Some(0), &dao)] {
            let datagram = Ipv6Packet {
                source: NodeId(source),
                dest: dest.map(NodeId),
                content: Content::Icmpv6(message),
            };
            air.hop(datagram, source, dest, ONE_HOP);
        }
        air.up(&content(1, 20));
        air.up(&content(2, 300));
        let (empty, long) = (content(3, 0), content(4, 200));
        let down = |content| Ipv6Packet { source: NodeId(0), dest: Some(NodeId(1)), content };
        air.hop(down(Content::Udp(&empty)), 0, Some(1), ONE_HOP);
        air.give_up(down(Content::Udp(&long)), 0, Some(1), ONE_HOP);
        air.hop(down(Content::Udp(&long)), 0, Some(1), ONE_HOP);
        air
    }

    /// Returns the interface, time and length of each packet of a capture.
    fn packets(bytes: &[u8]) -> Vec<(u32, Time, u16)> {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("a word"));
        let (mut at, mut packets) = (0, Vec::new());
        while at < bytes.len() {
            if word(at) == 6 {
                let time = u64::from(word(at + 12)) << 32 | u64::from(word(at + 16));
                packets.push((word(at + 8), Time::from_nanos(time), word(at + 20) as u16));
            }
            at += word(at + 4) as usize;
        }
        packets
    }

    #[test]
    fn the_capture_of_a_mesh_has_every_sent_frame_and_the_6lowpan_context() {
        let TestMesh { capture, sent, .. } = line();
        let packets = packets(&capture.finish().expect("a capture"));
        assert_eq!(packets[0], (CONTEXT, Time::ZERO, 15 + 4 + 32 + 2));
        let sent: Vec<_> = sent.into_iter().map(|(time, bytes)| (AIR, time, bytes)).collect();
        assert_eq!(packets[1..], sent);
    }

    #[test]
    fn the_capture_leaves_out_a_frame_of_an_unknown_datagram() {
        let mut air = TestMesh::new();
        let frame = Frame {
            kind: FrameKind::Data,
            from: NodeId(0),
            to: None,
            sequence: 0,
            bytes: 20,
            fragment: 0,
            fragments: 1,
            tag: 0,
            leg: ONE_HOP,
        };
        air.handle_event(FrameEvent::Sent, &frame, None);
        assert_eq!(packets(&air.capture.finish().expect("a capture")).len(), 1);
    }

    /// A file that is removed when it is dropped.
    struct TestFile(PathBuf);

    impl Drop for TestFile {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn tshark(path: &Path, options: &[&str], filter: &str) -> usize {
        let output = Command::new("tshark")
            .arg("-r")
            .arg(path)
            .args(options)
            .args(["-Y", filter])
            .output()
            .expect("tshark");
        assert!(output.status.success(), "{filter}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).lines().count()
    }

    #[test]
    #[ignore = "needs tshark"]
    fn wireshark_decodes_rpl_and_coap_on_every_hop_without_errors() {
        let TestMesh { capture, sent, .. } = line();
        let name = format!("coapace-mesh-{}.pcapng", std::process::id());
        let file = TestFile(std::env::temp_dir().join(name));
        std::fs::write(&file.0, capture.finish().expect("a capture")).expect("a file");

        let check = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/check-mesh-pcap");
        let output = Command::new(check).arg(&file.0).output().expect("the check");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));

        let count = |filter: &str| tshark(&file.0, &["-o", "wpan.802154_ack_tracking:TRUE"], filter);
        assert_eq!(count("frame.interface_name == \"air\""), sent.len());
        let acks = sent.iter().filter(|&&(_, bytes)| bytes == ACK_BYTES).count();
        assert_eq!(count("wpan.frame_type == 2 && wpan.src64"), acks);
        assert_eq!(count("icmpv6.code == 1 && icmpv6.rpl.dio.rank == 256"), 1);
        // Each hop of each message, and its first frame twice where that is all of it.
        assert_eq!(
            count("coap.mid == 1 && ipv6.src == fd00::12:7400:0:3 && ipv6.dst == fd00::12:7400:0:0"),
            6
        );
        assert_eq!(count("coap.mid == 1 && ipv6.hlim == 63"), 2);
        assert_eq!(count("coap.mid == 1 && ipv6.opt.rpl.sender_rank == 768"), 2);
        assert_eq!(count("coap.mid == 2 && 6lowpan.fragment.count >= 4 && data.len == 300"), 3);
        assert_eq!(count("coap.mid == 3 && coap.code == 69 && ipv6.hlim == 64"), 2);
        assert_eq!(count("coap.mid == 4 && data.len == 200"), 1);
    }
}
