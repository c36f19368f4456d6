//! Reads packets from a capture file, pcap or pcapng.

use std::fmt;
use std::io::{self, Read};
use std::ops::ControlFlow;

use coapace_sim::Time;
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{Block, InterfaceDescriptionBlock, PcapBlockOwned, PcapError, create_reader};

use super::datagram::Skipped;

/// The size of the read buffer in bytes. It grows to [`LARGEST_BLOCK`] if a block needs it.
const BUFFER: usize = 1 << 16;

/// The largest block that is read, in bytes. tcpdump writes packets of at most 256 KiB.
const LARGEST_BLOCK: usize = 1 << 22;

/// The maximum number of interfaces that are stored for a section. Packets of further interfaces are skipped.
const MOST_INTERFACES: usize = 10_000;

/// A packet of a capture.
#[derive(Clone, Copy, Debug)]
pub struct CapturedPacket<'a> {
    /// The number of the packet in the file, counted from 1 as in Wireshark.
    pub number: u64,
    /// The time of the packet since the Unix epoch, or since the start of a simulation.
    pub at: Time,
    /// The link type (<https://www.tcpdump.org/linktypes.html>).
    pub link: i32,
    /// The point of a simulated network where the packet was seen.
    pub point: Point,
    /// The captured bytes.
    pub bytes: &'a [u8],
    /// Whether all bytes of the packet were captured.
    pub is_whole: bool,
}

/// The point where a packet was seen. A simulation writes all points into one capture (`coapace run --pcap`), each as an
/// interface. A capture of a real network has only one point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Point {
    /// An interface of a real network.
    #[default]
    Interface,
    /// The sender of a simulated packet.
    Sender,
    /// The receiver of a simulated packet.
    Receiver,
    /// The place where a simulated packet was lost.
    Loss,
}

/// How a capture file ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The whole file was read.
    Complete,
    /// The last packet is truncated, because the file was copied while it was written, or because the disk was full.
    CutOff,
    /// The file is garbage after this many bytes.
    Garbage(usize),
    /// The caller stopped the reading.
    Stopped,
}

/// The reason why a file cannot be read as a capture. It prints as one line.
#[derive(Debug)]
pub enum CaptureError {
    /// The file is empty.
    Empty,
    /// The file does not begin like a pcap or pcapng file.
    NoCapture,
    /// The operating system could not read the file.
    Io(io::Error),
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the file is empty"),
            Self::NoCapture => f.write_str(
                "this is neither pcap nor pcapng; let tcpdump -w, dumpcap or coapace --pcap write the file, and unpack it first if it is compressed",
            ),
            Self::Io(error) => write!(f, "cannot read: {error}"),
        }
    }
}

impl std::error::Error for CaptureError {}

/// The interfaces in a capture that a simulation wrote: their names, and the point that each name means.
/// `coapace serve --pcap` writes only the first two, as seen from the server.
const SIMULATED: [(&str, Point); 3] =
    [("sent", Point::Sender), ("delivered", Point::Receiver), ("discarded", Point::Loss)];

/// An interface in a section of a capture.
struct Interface {
    link: i32,
    point: Point,
    /// The resolution of the interface's times in ticks per second; 0 if the file gives an invalid one.
    ticks: u64,
    /// The seconds to add to the times of the interface's packets.
    offset_s: i64,
}

/// Reads a capture and calls `each` with every packet, or the reason why it is skipped. Memory is bounded for a file of any size.
///
/// # Errors
/// Returns a [`CaptureError`] if the file is not a capture. A file that is damaged later is read up to the damage: see
/// [`Ending`].
pub fn read(
    reader: impl Read + Send,
    each: &mut dyn FnMut(Result<&CapturedPacket<'_>, Skipped>) -> ControlFlow<()>,
) -> Result<Ending, CaptureError> {
    let mut failed = None;
    let reader = Noting { reader, failed: &mut failed };
    let ending = read_blocks(reader, each);
    // The parser hides the error of the system, so the stored one comes first.
    match failed {
        Some(error) => Err(CaptureError::Io(error)),
        None => ending,
    }
}

fn read_blocks(
    reader: impl Read + Send,
    each: &mut dyn FnMut(Result<&CapturedPacket<'_>, Skipped>) -> ControlFlow<()>,
) -> Result<Ending, CaptureError> {
    let mut reader = create_reader(BUFFER, reader).map_err(|error| match error {
        PcapError::Eof => CaptureError::Empty,
        _ => CaptureError::NoCapture,
    })?;
    let mut section = CaptureSection::default();
    let mut capacity = BUFFER;
    loop {
        let refill = match reader.next() {
            Ok((length, block)) => {
                if let Some(packet) = section.packet(&block)
                    && each(packet.as_ref().map_err(|skipped| *skipped)).is_break()
                {
                    return Ok(Ending::Stopped);
                }
                reader.consume(length);
                continue;
            }
            Err(PcapError::Eof) => return Ok(Ending::Complete),
            Err(PcapError::UnexpectedEof) => return Ok(Ending::CutOff),
            // More bytes of the file complete the block. If they cannot fit, the buffer has to grow first.
            Err(PcapError::Incomplete(_)) => true,
            Err(PcapError::BufferTooSmall) => false,
            Err(_) => return Ok(Ending::Garbage(reader.consumed())),
        };
        // A buffer with less than 1 KiB of free room grows, too: it would take in little more of the block.
        if !refill || reader.data().len() + 1024 >= capacity {
            // A damaged length may ask for any buffer, so it grows by doubling, and only up to a bound.
            if capacity >= LARGEST_BLOCK {
                return Ok(Ending::Garbage(reader.consumed()));
            }
            capacity *= 2;
            reader.grow(capacity);
        }
        if reader.refill().is_err() {
            return Ok(Ending::CutOff);
        }
    }
}

/// The current section of a pcapng file, or the header of a pcap file, without which the packets after it cannot be
/// read.
#[derive(Default)]
struct CaptureSection {
    interfaces: Vec<Interface>,
    /// The number of packets so far, in this section and earlier ones.
    packets: u64,
    is_ours: bool,
}

impl CaptureSection {
    /// Returns the packet of a block, or why it is skipped; `None` if the block has no packet. Such a block may change
    /// the section.
    fn packet<'a>(&mut self, block: &'a PcapBlockOwned<'_>) -> Option<Result<CapturedPacket<'a>, Skipped>> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let ticks = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
                // The upper bits may say that frames end with a checksum.
                let link = header.network.0 & 0x0fff_ffff;
                self.interfaces = vec![Interface { link, point: Point::Interface, ticks, offset_s: 0 }];
                None
            }
            PcapBlockOwned::Legacy(packet) => {
                // Counted although it may be left out below, so that the numbers agree with Wireshark's.
                self.packets += 1;
                let Some(interface) = self.interfaces.first() else { return Some(Err(Skipped::Interface)) };
                // The field may hold any 32 bits, although only fractions of a second are valid.
                let ns = u64::from(packet.ts_usec).saturating_mul(1_000_000_000 / interface.ticks.max(1));
                let at = u64::from(packet.ts_sec).saturating_mul(1_000_000_000).saturating_add(ns);
                Some(Ok(interface.packet(self.packets, at, packet.data, packet.caplen >= packet.origlen)))
            }
            PcapBlockOwned::NG(Block::SectionHeader(header)) => {
                // Each section numbers its interfaces from 0.
                self.interfaces.clear();
                self.is_ours = matches!(header.shb_userappl(), Some(Ok("coapace")));
                None
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(described)) => {
                self.describe(described);
                None
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                self.packets += 1;
                // A damaged block may name an interface that was never described.
                let Some(interface) = self.interfaces.get(packet.if_id as usize) else {
                    return Some(Err(Skipped::Interface));
                };
                let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                Some(Ok(interface.packet(
                    self.packets,
                    interface.nanoseconds(ticks),
                    packet.packet_data(),
                    !packet.truncated(),
                )))
            }
            // A simple packet has no time, so nothing can be said about it.
            PcapBlockOwned::NG(Block::SimplePacket(_)) => {
                self.packets += 1;
                Some(Err(Skipped::Timeless))
            }
            PcapBlockOwned::NG(_) => None,
        }
    }

    fn describe(&mut self, described: &InterfaceDescriptionBlock<'_>) {
        if self.interfaces.len() >= MOST_INTERFACES {
            return;
        }
        self.interfaces.push(Interface {
            link: described.linktype.0,
            point: Point::Interface,
            ticks: described.ts_resolution().unwrap_or(0),
            offset_s: described.ts_offset(),
        });
        // The points are known only when all three interfaces are described. Another program may use one of the names.
        let is_last = matches!(described.if_name(), Some(Ok(name)) if name == SIMULATED[2].0);
        if self.is_ours && is_last && self.interfaces.len() == SIMULATED.len() {
            for (interface, (_, point)) in self.interfaces.iter_mut().zip(SIMULATED) {
                interface.point = point;
            }
        }
    }
}

impl Interface {
    fn nanoseconds(&self, ticks: u64) -> u64 {
        // 64 bits of ticks times 10⁹ need 94 bits.
        let ns = u128::from(ticks) * 1_000_000_000 / u128::from(self.ticks.max(1));
        let ns = u64::try_from(ns).unwrap_or(u64::MAX);
        ns.saturating_add_signed(self.offset_s.saturating_mul(1_000_000_000))
    }

    fn packet<'a>(&self, number: u64, at: u64, bytes: &'a [u8], is_whole: bool) -> CapturedPacket<'a> {
        CapturedPacket {
            number,
            at: Time::from_nanos(at),
            link: self.link,
            point: self.point,
            bytes,
            is_whole,
        }
    }
}

/// A reader that stores the error of the operating system, because the parser does not return it.
struct Noting<'a, R> {
    reader: R,
    failed: &'a mut Option<io::Error>,
}

impl<R: Read> Read for Noting<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.reader.read(buffer) {
                // A signal came before any byte was read.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // An error cannot be cloned, so the parser gets another one of the same kind.
                    let kind = error.kind();
                    *self.failed = Some(error);
                    return Err(kind.into());
                }
                read => return read,
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::super::traffic::{self, Reading};
    use super::*;

    /// Returns a pcap file. Each packet is a time in microseconds and the captured bytes.
    pub(in crate::advice) fn pcap(link: u32, packets: &[(u64, &[u8])]) -> Vec<u8> {
        let mut file = Vec::new();
        for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, link] {
            file.extend_from_slice(&u32::to_le_bytes(word));
        }
        for (us, bytes) in packets {
            let length = bytes.len() as u32;
            for word in [(us / 1_000_000) as u32, (us % 1_000_000) as u32, length, length] {
                file.extend_from_slice(&word.to_le_bytes());
            }
            file.extend_from_slice(bytes);
        }
        file
    }

    fn times(file: &[u8]) -> (Vec<(u64, usize)>, Ending) {
        let mut seen = Vec::new();
        let ending = read(file, &mut |packet| {
            let packet = packet.unwrap();
            seen.push((packet.at.as_nanos() / 1_000, packet.bytes.len()));
            ControlFlow::Continue(())
        });
        (seen, ending.unwrap())
    }

    #[test]
    fn packets_of_pcap_have_times_in_microseconds() {
        let file = pcap(101, &[(1_500_000, b"abc"), (2_000_001, b"")]);
        assert_eq!(times(&file), (vec![(1_500_000, 3), (2_000_001, 0)], Ending::Complete));
    }

    #[test]
    fn packets_of_simulated_pcapng_captures_have_their_place_in_the_network() {
        let mut file = coapace_sim::CaptureFile::new(Vec::new());
        for name in ["sent", "delivered", "discarded"] {
            file.add_interface(101, name, "");
        }
        for interface in 0..3 {
            file.add_packet(interface, Time::from_nanos(5), b"x", None);
        }
        let file = file.finish().unwrap();
        let mut points = Vec::new();
        let ending = read(&*file, &mut |packet| {
            let packet = packet.unwrap();
            points.push((packet.point, packet.at.as_nanos()));
            ControlFlow::Continue(())
        });
        assert_eq!(ending.unwrap(), Ending::Complete);
        assert_eq!(points, [(Point::Sender, 5), (Point::Receiver, 5), (Point::Loss, 5)]);
    }

    #[test]
    fn a_truncated_capture_is_read_up_to_its_end() {
        let file = pcap(1, &[(1, b"abc"), (2, b"def")]);
        assert_eq!(times(&file[..file.len() - 1]), (vec![(1, 3)], Ending::CutOff));
    }

    #[test]
    fn a_file_of_another_kind_is_refused_as_a_capture_in_one_line() {
        for (file, problem) in
            [(&b""[..], "empty"), (b"hello, world; this is text", "neither pcap nor pcapng")]
        {
            let error = read(file, &mut |_| ControlFlow::Continue(())).unwrap_err().to_string();
            assert!(error.contains(problem) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_captured_packet_larger_than_the_read_buffer_is_read() {
        let large = vec![7; 200_000];
        let file = pcap(101, &[(1, b"a"), (2, &large), (3, b"b")]);
        assert_eq!(times(&file).0, [(1, 1), (2, 200_000), (3, 1)]);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_as_a_capture_do_not_cause_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), place in 0..200usize) {
            let _ = read(&*bytes, &mut |_| ControlFlow::Continue(()));
            let mut file = pcap(101, &[(1, b"abcdefgh"), (2, b"ijklmnop")]);
            file.splice(place.min(file.len()).., bytes.iter().copied());
            let _ = read(&*file, &mut |_| ControlFlow::Continue(()));
            let mut written = coapace_sim::CaptureFile::new(Vec::new());
            written.add_interface(101, "sent", "");
            written.add_packet(0, Time::ZERO, &bytes, None);
            let mut file = written.finish().unwrap();
            let end = file.len();
            for (at, byte) in bytes.iter().enumerate().take(8) {
                file[(place + at * 17) % end] ^= byte;
            }
            let _ = read(&*file, &mut |_| ControlFlow::Continue(()));
        }
    }

    #[test]
    fn packets_of_unknown_interfaces_and_packets_without_a_time_are_counted_as_skipped() {
        let mut file = coapace_sim::CaptureFile::new(Vec::new());
        file.add_interface(101, "eth0", "");
        for interface in [0, 1] {
            file.add_packet(interface, Time::from_nanos(5), b"x", None);
        }
        let mut file = file.finish().unwrap();
        // A simple packet: its type, the length of the block, the length of the packet, the packet, the length again.
        for word in [3u32, 20, 4, 0, 20] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        let go_on = &mut || ControlFlow::Continue(());
        let traffic = traffic::read(&*file, &Reading::default(), None, go_on).unwrap();
        assert_eq!((traffic.counts.packets, traffic.counts.skipped.values().sum::<u64>()), (3, 3));
    }
}
