//! Captures of the datagrams that a command sends and receives.

use std::fs::File;
use std::io::{self, BufWriter};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use coapace_net::{Datagram, Direction, Interceptor};
use coapace_sim::{CaptureFile, Ecn, Time, udp_packet};

/// Writes the datagrams of a client or server as pcapng, with the IP and UDP headers they have on the network.
#[derive(Debug)]
pub(crate) struct DatagramCapture {
    /// Whether ports of servers are written as 5683 and 5684, CoAP's default ports.
    as_coap: bool,
    writing: Mutex<Option<OpenCapture>>,
}

/// A port of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CoapPort {
    pub(crate) port: u16,
    /// Whether the port speaks DTLS.
    pub(crate) dtls: bool,
}

impl CoapPort {
    /// Returns the default port of CoAP, or of CoAP over DTLS, which Wireshark recognises (RFC 7252 §12.6, §12.7).
    fn known(self) -> u16 {
        if self.dtls { 5684 } else { 5683 }
    }

    /// Returns the arguments that make tshark decode CoAP at this port.
    fn decode_as(self) -> String {
        let Self { port, dtls } = self;
        // tshark finds CoAP inside DTLS only if both layers are named.
        if dtls {
            format!("-d udp.port=={port},dtls -d dtls.port=={port},coap")
        } else {
            format!("-d udp.port=={port},coap")
        }
    }
}

#[derive(Debug)]
struct OpenCapture {
    /// The output file before the header of the capture is written; `None` afterwards.
    opened: Option<BufWriter<File>>,
    begun: Option<CaptureFile<BufWriter<File>>>,
    as_coap: bool,
    ports: Vec<CoapPort>,
    /// The last peer, and the local address that the system uses towards it.
    route: Option<(SocketAddr, IpAddr)>,
    packet: Vec<u8>,
}

/// The interfaces of a pcapng capture, in the sequence of their numbers.
const INTERFACES: [&str; 2] = ["sent", "delivered"];
const SENT: u32 = 0;
const DELIVERED: u32 = 1;

impl DatagramCapture {
    pub(crate) fn new(file: BufWriter<File>, as_coap: bool) -> Self {
        let (opened, ports, packet) = (Some(file), Vec::new(), Vec::new());
        let writing = OpenCapture { opened, begun: None, as_coap, ports, route: None, packet };
        Self { as_coap, writing: Mutex::new(Some(writing)) }
    }

    fn writing(&self) -> MutexGuard<'_, Option<OpenCapture>> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the servers' ports; call it before the first datagram. Returns the arguments that tshark needs to decode the
    /// capture, if any.
    pub(crate) fn name_ports(&self, ports: Vec<CoapPort>) -> Option<String> {
        // Wireshark decodes the default ports without help.
        let unknown = ports.iter().filter(|port| !self.as_coap && port.port != port.known());
        let decode: Vec<String> = unknown.map(|port| port.decode_as()).collect();
        if let Some(writing) = &mut *self.writing() {
            writing.ports = ports;
        }
        (!decode.is_empty()).then(|| decode.join(" "))
    }

    /// Ends the capture: later datagrams are not written.
    ///
    /// # Errors
    /// The first error while the capture was written.
    pub(crate) fn finish(&self) -> io::Result<()> {
        let writing = self.writing().take();
        writing.and_then(OpenCapture::end).map_or(Ok(()), |file| file.finish().map(drop))
    }
}

impl Interceptor for DatagramCapture {
    fn pass(&self, datagram: &Datagram<'_>) -> bool {
        if let Some(writing) = &mut *self.writing() {
            writing.write(datagram);
        }
        // A capture drops no datagram.
        true
    }
}

impl OpenCapture {
    /// Returns the writer of the capture. The first call writes the header.
    fn file(&mut self) -> Option<&mut CaptureFile<BufWriter<File>>> {
        // The header names the servers' ports, which are known only once they are bound. So it waits for the first datagram.
        if let Some(opened) = self.opened.take() {
            let description = self.description();
            let mut file = CaptureFile::new(opened);
            for name in INTERFACES {
                file.add_interface(CaptureFile::RAW_IP, name, &description);
            }
            self.begun = Some(file);
        }
        self.begun.as_mut()
    }

    fn end(mut self) -> Option<CaptureFile<BufWriter<File>>> {
        // A capture without datagrams gets its header here. Without it Wireshark could not open the file.
        self.file();
        self.begun
    }

    /// Returns a text for the capture's header that says which port speaks which protocol. Wireshark displays it but does not
    /// decode by it.
    fn description(&self) -> String {
        let each = self.ports.iter().map(|port| {
            let protocol = if port.dtls { "CoAP over DTLS" } else { "CoAP" };
            match port.port == port.known() {
                true => format!("{protocol} on UDP port {}", port.port),
                false if self.as_coap => {
                    format!("{protocol} on UDP port {}, written as {}", port.port, port.known())
                }
                false => format!("{protocol} on UDP port {} ({})", port.port, port.decode_as()),
            }
        });
        each.collect::<Vec<_>>().join("; ")
    }

    /// Returns `address` as the capture shows it: with `as_coap`, a server's port becomes its default port.
    fn shown(&self, address: SocketAddr) -> SocketAddr {
        let server = self.ports.iter().find(|port| self.as_coap && port.port == address.port());
        SocketAddr::new(address.ip(), server.map_or(address.port(), |port| port.known()))
    }

    fn write(&mut self, datagram: &Datagram<'_>) {
        let peer = datagram.peer;
        // A socket for both versions of IP has IPv4 addresses as mapped ones. On the network they are IPv4.
        let ip = datagram.local.ip().to_canonical();
        let ip = if ip.is_unspecified() { self.own_address(peer) } else { ip };
        let local = SocketAddr::new(ip, datagram.local.port());
        let (from, to, interface) = match datagram.direction {
            Direction::Sent => (local, peer, SENT),
            Direction::Received => (peer, local, DELIVERED),
        };
        self.packet.clear();
        let (from, to) = (self.shown(from), self.shown(to));
        // A datagram that fits into no IP packet was not carried by the network either.
        if udp_packet(from, to, 0, Ecn::NotCapable, datagram.bytes, &mut self.packet).is_none() {
            return;
        }
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // The buffer is taken for the call, and given back to be used again.
        let packet = std::mem::take(&mut self.packet);
        let Some(file) = self.file() else { return };
        // 64 bits of nanoseconds last until the year 2554.
        file.add_packet(interface, Time::from_nanos(since.as_nanos() as u64), &packet, None);
        self.packet = packet;
    }

    /// Returns the local address that the system would use towards this peer.
    fn own_address(&mut self, peer: SocketAddr) -> IpAddr {
        if let Some((known, ip)) = self.route
            && known == peer
        {
            return ip;
        }
        // A socket connects only to peers of its own family.
        let any: IpAddr = if peer.is_ipv4() { [0u8; 4].into() } else { [0u16; 8].into() };
        // Connecting a UDP socket sends nothing.
        let asked = UdpSocket::bind((any, 0)).and_then(|socket| {
            socket.connect(peer)?;
            socket.local_addr()
        });
        let ip = asked.map_or(any, |address| address.ip());
        // Most commands have one peer, so one entry saves a socket for each datagram.
        self.route = Some((peer, ip));
        ip
    }
}
