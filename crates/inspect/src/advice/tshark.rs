//! Packets read by tshark: link types and tunnels that this crate cannot read.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Lines};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use super::capture::Point;
use super::datagram::CapturedDatagram;

/// The fields that tshark prints, in the sequence that [`TsharkDatagram::of`] expects. If a packet has a field several
/// times, as in a tunnel, the last one is printed.
const FIELDS: [&str; 11] = [
    "frame.number",
    "frame.protocols",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "udp.srcport",
    "udp.dstport",
    "udp.length",
    "ip.id",
    "udp.payload",
];

/// The display filter. An ICMP error message only quotes a packet, so it is left out.
const FILTER: &str = "coap && udp && !icmp && !icmpv6";

/// A tshark process that reads a capture and prints its CoAP datagrams.
#[derive(Debug)]
pub struct Tshark {
    child: Child,
    lines: Option<Lines<BufReader<ChildStdout>>>,
    next: Option<TsharkDatagram>,
}

/// A datagram read by tshark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TsharkDatagram {
    number: u64,
    from: SocketAddr,
    to: SocketAddr,
    identification: u16,
    ip_bytes: u32,
    payload: Vec<u8>,
}

impl Tshark {
    /// Starts tshark on a file. It also decodes datagrams at these ports as CoAP.
    ///
    /// # Errors
    /// Fails with [`io::ErrorKind::NotFound`] if tshark is not installed, and with the error of the system if it cannot be
    /// started.
    pub fn start(capture: &Path, ports: &[u16]) -> io::Result<Self> {
        let mut command = Command::new("tshark");
        // Without names of hosts, so that no name server is asked.
        command.args(["-n", "-T", "fields", "-E", "separator=/t", "-E", "occurrence=l", "-Y", FILTER]);
        command.args(FIELDS.iter().flat_map(|field| ["-e", field]));
        for port in ports {
            command.args(["-d", &format!("udp.port=={port},coap")]);
        }
        command.args([OsStr::new("-r"), capture.as_os_str()]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let lines = child.stdout.take().map(|out| BufReader::new(out).lines());
        Ok(Self { child, lines, next: None })
    }

    /// Returns the datagram of the packet with this number, from 1 on; `None` if the packet has no CoAP. The numbers of
    /// successive calls must ascend.
    pub(super) fn packet(&mut self, number: u64) -> Option<TsharkDatagram> {
        loop {
            match self.next.take() {
                // tshark prints only packets with CoAP, so its next line may be about a later packet.
                Some(read) if read.number > number => {
                    self.next = Some(read);
                    return None;
                }
                Some(read) if read.number == number => return Some(read),
                // A line that cannot be understood is passed over.
                _ => self.next = self.lines.as_mut()?.find_map(|line| TsharkDatagram::of(&line.ok()?)),
            }
            self.next.as_ref()?;
        }
    }
}

impl Drop for Tshark {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl TsharkDatagram {
    /// Parses a line of tshark with [`FIELDS`].
    fn of(line: &str) -> Option<Self> {
        let mut fields = line.split('\t');
        let fields: [&str; 11] = std::array::from_fn(|_| fields.next().unwrap_or_default());
        let [
            number,
            protocols,
            from4,
            to4,
            from6,
            to6,
            from_port,
            to_port,
            udp_bytes,
            identification,
            payload,
        ] = fields;
        // The datagram lies in the innermost IP packet.
        let is_six = protocols.split(':').rfind(|name| matches!(*name, "ip" | "ipv6"))? == "ipv6";
        // The fields do not show options of IPv4, so the header counts as 20 bytes.
        let (from, to, header_bytes) = if is_six { (from6, to6, 40) } else { (from4, to4, 20) };
        let end = |address: &str, port: &str| {
            Some(SocketAddr::new(address.parse::<IpAddr>().ok()?, port.parse().ok()?))
        };
        // IPv6 has the field only in fragments (RFC 8200 §4.5).
        let identification = identification.strip_prefix("0x").filter(|_| !is_six);
        Some(Self {
            number: number.parse().ok()?,
            from: end(from, from_port)?,
            to: end(to, to_port)?,
            identification: identification
                .and_then(|digits| u16::from_str_radix(digits, 16).ok())
                .unwrap_or(0),
            ip_bytes: header_bytes + u32::from(udp_bytes.parse::<u16>().ok()?),
            payload: bytes(payload)?,
        })
    }

    /// Returns the datagram. `is_whole` says whether the whole packet was captured.
    pub(super) fn datagram(&self, is_whole: bool) -> CapturedDatagram<'_> {
        CapturedDatagram {
            from: self.from,
            to: self.to,
            payload: &self.payload,
            identification: self.identification,
            ip_bytes: self.ip_bytes,
            is_whole,
            point: Point::Interface,
        }
    }
}

/// Returns the bytes that hexadecimal digits mean; `None` if the text has other characters or an odd length.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::super::capture::tests::pcap;
    use super::super::headers::tests::ip;
    use super::super::traffic::{self, Reading, Traffic};
    use super::*;

    #[test]
    fn a_line_of_tshark_gives_the_innermost_datagram_of_a_tunnel() {
        let line = "7\teth:ipv6:udp:vxlan:eth:ip:udp:coap\t10.0.0.1\t10.0.0.2\tfd00::1\tfd00::2\t40000\t5683\t15\t0x0102\t41010007";
        let read = TsharkDatagram::of(line).unwrap();
        assert_eq!((read.number, read.identification, read.ip_bytes), (7, 0x0102, 35));
        assert_eq!((read.from, &read.payload[..]), ("10.0.0.1:40000".parse().unwrap(), &[0x41, 1, 0, 7][..]));
        let inner = line.replace("eth:ipv6:udp:vxlan:eth:ip:udp", "eth:ip:gre:ipv6:udp");
        let read = TsharkDatagram::of(&inner).unwrap();
        assert_eq!((read.to, read.identification), ("[fd00::2]:5683".parse().unwrap(), 0));
        for line in ["", "7", "7\teth:ip:udp:coap\t\t\t\t\t1\t2\t15\t\t4101", &line[..line.len() - 1]] {
            assert_eq!(TsharkDatagram::of(line), None, "{line}");
        }
    }

    /// A function that wraps an IP packet in a tunnel.
    type Wrap<'a> = &'a dyn Fn(&[u8]) -> Vec<u8>;

    /// Returns the traffic of requests answered after 50 ms, each wrapped in this way; `None` without tshark.
    fn wrapped(link: u32, wrap: Wrap<'_>) -> Option<Traffic> {
        let (client, server) = ("10.0.0.1:40000", "10.0.0.2:5683");
        let packets: Vec<_> = (1..=5u8)
            .flat_map(|id| {
                let us = 1_700_000_000_000_000 + u64::from(id) * 1_000_000;
                let ask = wrap(&ip(client, server, &[0x41, 1, 0, id, 9, 0xb1, b'a']));
                let answer = wrap(&ip(server, client, &[0x61, 0x45, 0, id, 9, 0xff, b'x']));
                [(us, ask), (us + 50_000, answer)]
            })
            .collect();
        let packets: Vec<_> = packets.iter().map(|(us, bytes)| (*us, &bytes[..])).collect();
        let file = pcap(link, &packets);
        let path = std::env::temp_dir().join(format!("coapace-tshark-{}-{link}.pcap", std::process::id()));
        std::fs::write(&path, &file).unwrap();
        let read = |tshark| {
            traffic::read(&*file, &Reading::default(), tshark, &mut || ControlFlow::Continue(())).unwrap()
        };
        assert!(read(None).counts.needs_tshark() && read(None).exchanges.is_empty());
        let tshark = Tshark::start(&path, &[]);
        let traffic = match tshark {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            tshark => Some(read(Some(tshark.unwrap()))),
        };
        std::fs::remove_file(path).unwrap();
        traffic
    }

    #[test]
    fn tshark_reads_link_types_and_tunnels_that_our_reader_cannot() {
        let mac = [2u8; 12];
        let ethernet = |ether_type: [u8; 2], body: &[u8]| [&mac[..], &ether_type, body].concat();
        let outer = |protocol: u8, body: &[u8]| {
            let mut packet = ip("10.9.0.1:1", "10.9.0.2:2", body);
            // The tunnel's header replaces the UDP header.
            packet.drain(20..28);
            (packet[9], packet[3]) = (protocol, packet.len() as u8);
            ethernet([8, 0], &packet)
        };
        let cases: [(&str, u32, Wrap<'_>); 6] = [
            ("PPP", 9, &|packet| [&[0xff, 3, 0, 0x21], packet].concat()),
            ("802.11", 105, &|packet| {
                [&[8, 2, 0, 0][..], &[2; 18], &[0, 0, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0], packet].concat()
            }),
            ("radiotap", 127, &|packet| {
                [
                    &[0, 0, 8, 0, 0, 0, 0, 0, 8, 2, 0, 0][..],
                    &[2; 18],
                    &[0, 0, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0],
                    packet,
                ]
                .concat()
            }),
            ("GRE", 1, &|packet| outer(47, &[&[0, 0, 8, 0], packet].concat())),
            ("IP in IP", 1, &|packet| outer(4, packet)),
            ("VXLAN", 1, &|packet| {
                let frame = [&[8, 0, 0, 0, 0, 0, 1, 0][..], &ethernet([8, 0], packet)].concat();
                ethernet([8, 0], &ip("10.9.0.1:5555", "10.9.0.2:4789", &frame))
            }),
        ];
        for (name, link, wrap) in cases {
            let Some(traffic) = wrapped(link, wrap) else { return };
            assert_eq!(
                (traffic.exchanges.len(), traffic.counts.by_tshark),
                (5, 10),
                "{name}: {:?}",
                traffic.counts
            );
            assert!(traffic.exchanges.iter().all(|it| it.answers.len() == 1), "{name}");
        }
    }
}
