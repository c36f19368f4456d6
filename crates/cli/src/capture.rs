//! Captures of what a command sends and receives.

use std::fs::File;
use std::io::{self, BufWriter};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use coapace_net::{Datagram, Direction, Tap};
use coapace_sim::{Accounting, Event, Mark, NodeId, Pcapng, Record, Tap as _, Time, Transport};

/// Writes the datagrams of a client as pcapng, in the IP and UDP headers that they have on their way.
#[derive(Debug)]
pub(crate) struct Capture(Mutex<Option<Writing>>);

#[derive(Debug)]
struct Writing {
    file: Pcapng<BufWriter<File>>,
    /// A peer, and the own address that the system talks to it from.
    route: Option<(SocketAddr, IpAddr)>,
}

impl Capture {
    pub(crate) fn new(file: BufWriter<File>) -> Self {
        let file = Pcapng::new(file, Accounting::Ipv4, 0..0, &[]);
        Self(Mutex::new(Some(Writing { file, route: None })))
    }

    /// Ends the capture. What passes by later is not in it.
    ///
    /// # Errors
    /// The first that writing met.
    pub(crate) fn finish(&self) -> io::Result<()> {
        let writing = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        writing.map_or(Ok(()), |writing| writing.file.finish().map(drop))
    }
}

impl Tap for Capture {
    fn pass(&self, datagram: &Datagram<'_>) -> bool {
        if let Some(writing) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            writing.write(datagram);
        }
        true
    }
}

impl Writing {
    fn write(&mut self, datagram: &Datagram<'_>) {
        let peer = datagram.peer;
        let ip = datagram.local.ip().to_canonical();
        let ip = if ip.is_unspecified() { self.own_address(peer) } else { ip };
        let local = SocketAddr::new(ip, datagram.local.port());
        let (from, to, event) = match datagram.direction {
            Direction::Sent => (local, peer, Event::Sent),
            Direction::Received => (peer, local, Event::Delivered),
        };
        let Some(packet) = packet(from, to, datagram.bytes) else { return };
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.file.record(&Record {
            time: Time::from_nanos(since.as_nanos() as u64),
            event,
            hop: None,
            from: NodeId(0),
            to: NodeId(0),
            mark: Mark::default(),
            transport: Transport::Ip,
            wire_bytes: packet.len() as u32,
            queue_bytes: 0,
            wait_ns: 0,
            bytes: &packet,
        });
    }

    /// The address that the system would talk to this peer from.
    fn own_address(&mut self, peer: SocketAddr) -> IpAddr {
        if let Some((known, ip)) = self.route
            && known == peer
        {
            return ip;
        }
        let any: IpAddr = if peer.is_ipv4() { [0u8; 4].into() } else { [0u16; 8].into() };
        // To connect a socket of UDP sends nothing.
        let asked = UdpSocket::bind((any, 0)).and_then(|socket| {
            socket.connect(peer)?;
            socket.local_addr()
        });
        let ip = asked.map_or(any, |address| address.ip());
        self.route = Some((peer, ip));
        ip
    }
}

const UDP: u8 = 17;

/// A datagram in its headers (RFC 791, RFC 8200 §3, RFC 768); nothing if it is too long for them, or if one end is of IPv4
/// and the other of IPv6.
fn packet(from: SocketAddr, to: SocketAddr, bytes: &[u8]) -> Option<Vec<u8>> {
    let length = u16::try_from(8 + bytes.len()).ok()?;
    let mut packet = Vec::with_capacity(48 + bytes.len());
    let addresses = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            packet.extend_from_slice(&[0x45, 0]);
            packet.extend_from_slice(&length.checked_add(20)?.to_be_bytes());
            packet.extend_from_slice(&[0, 0, 0x40, 0, 64, UDP, 0, 0]); // not to be fragmented; time to live 64
            packet.extend_from_slice(&from.octets());
            packet.extend_from_slice(&to.octets());
            let header = checksum(sum(&packet));
            packet[10..12].copy_from_slice(&header.to_be_bytes());
            12..20
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            packet.extend_from_slice(&[0x60, 0, 0, 0]);
            packet.extend_from_slice(&length.to_be_bytes());
            packet.extend_from_slice(&[UDP, 64]); // hop limit 64
            packet.extend_from_slice(&from.octets());
            packet.extend_from_slice(&to.octets());
            8..40
        }
        _ => return None,
    };
    let udp = packet.len();
    packet.extend([from.port(), to.port(), length, 0].iter().flat_map(|word| word.to_be_bytes()));
    packet.extend_from_slice(bytes);
    // The pseudo-header: addresses, protocol, length.
    let pseudo = sum(&packet[addresses]) + u64::from(UDP) + u64::from(length);
    // 0 would mean that there is no checksum.
    let whole = match checksum(sum(&packet[udp..]) + pseudo) {
        0 => 0xffff,
        whole => whole,
    };
    packet[udp + 6..udp + 8].copy_from_slice(&whole.to_be_bytes());
    Some(packet)
}

/// The sum of 16-bit words (RFC 1071).
fn sum(bytes: &[u8]) -> u64 {
    let (words, last) = bytes.as_chunks::<2>();
    let words: u64 = words.iter().map(|&word| u64::from(u16::from_be_bytes(word))).sum();
    words + last.first().map_or(0, |&byte| u64::from(byte) << 8)
}

fn checksum(sum: u64) -> u16 {
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}
