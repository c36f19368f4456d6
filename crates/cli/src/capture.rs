//! Captures of what a command sends and receives.

use std::fs::File;
use std::io::{self, BufWriter};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use coapace_net::{Datagram, Direction, Interceptor};
use coapace_sim::{Accounting, Event, Mark, NodeId, Pcapng, Record, Tap as _, Time, Transport, udp_packet};

/// Writes the datagrams of a client or server as pcapng, in the IP and UDP headers that they have on their way.
#[derive(Debug)]
pub(crate) struct Capture {
    /// Write the ports of servers as those that CoAP has by default.
    as_coap: bool,
    writing: Mutex<Option<Writing>>,
}

/// A port of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CoapPort {
    pub(crate) port: u16,
    /// Whether DTLS is spoken there.
    pub(crate) dtls: bool,
}

impl CoapPort {
    /// Returns the port that Wireshark knows the protocol by (RFC 7252 §12.6, §12.7).
    fn known(self) -> u16 {
        if self.dtls { 5684 } else { 5683 }
    }

    /// Returns what tells tshark and Wireshark that CoAP is spoken there.
    fn decode_as(self) -> String {
        let Self { port, dtls } = self;
        if dtls {
            format!("-d udp.port=={port},dtls -d dtls.port=={port},coap")
        } else {
            format!("-d udp.port=={port},coap")
        }
    }
}

#[derive(Debug)]
struct Writing {
    /// The file before anything is in it.
    opened: Option<BufWriter<File>>,
    begun: Option<Pcapng<BufWriter<File>>>,
    as_coap: bool,
    ports: Vec<CoapPort>,
    /// A peer, and the own address that the system talks to it from.
    route: Option<(SocketAddr, IpAddr)>,
    packet: Vec<u8>,
}

impl Capture {
    pub(crate) fn new(file: BufWriter<File>, as_coap: bool) -> Self {
        let (opened, ports, packet) = (Some(file), Vec::new(), Vec::new());
        let writing = Writing { opened, begun: None, as_coap, ports, route: None, packet };
        Self { as_coap, writing: Mutex::new(Some(writing)) }
    }

    fn writing(&self) -> MutexGuard<'_, Option<Writing>> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says where servers are, before anything passes by. Returns what Wireshark has to be told to decode the capture,
    /// if it has to be told.
    pub(crate) fn name_ports(&self, ports: Vec<CoapPort>) -> Option<String> {
        let unknown = ports.iter().filter(|port| !self.as_coap && port.port != port.known());
        let decode: Vec<String> = unknown.map(|port| port.decode_as()).collect();
        if let Some(writing) = &mut *self.writing() {
            writing.ports = ports;
        }
        (!decode.is_empty()).then(|| decode.join(" "))
    }

    /// Ends the capture. What passes by later is not in it.
    ///
    /// # Errors
    /// The first that writing met.
    pub(crate) fn finish(&self) -> io::Result<()> {
        let writing = self.writing().take();
        writing.and_then(Writing::end).map_or(Ok(()), |file| file.finish().map(drop))
    }
}

impl Interceptor for Capture {
    fn pass(&self, datagram: &Datagram<'_>) -> bool {
        if let Some(writing) = &mut *self.writing() {
            writing.write(datagram);
        }
        true
    }
}

impl Writing {
    /// The file, with its header.
    fn file(&mut self) -> Option<&mut Pcapng<BufWriter<File>>> {
        if let Some(opened) = self.opened.take() {
            let described = Pcapng::described(opened, Accounting::Ipv4, 0..0, &[], &self.description());
            self.begun = Some(described);
        }
        self.begun.as_mut()
    }

    fn end(mut self) -> Option<Pcapng<BufWriter<File>>> {
        self.file();
        self.begun
    }

    /// Returns what is spoken on which port: no field of a capture makes Wireshark decode it so, but people read it there.
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

    /// Returns the port as the capture has it.
    fn shown(&self, address: SocketAddr) -> SocketAddr {
        let server = self.ports.iter().find(|port| self.as_coap && port.port == address.port());
        SocketAddr::new(address.ip(), server.map_or(address.port(), |port| port.known()))
    }

    fn write(&mut self, datagram: &Datagram<'_>) {
        let peer = datagram.peer;
        let ip = datagram.local.ip().to_canonical();
        let ip = if ip.is_unspecified() { self.own_address(peer) } else { ip };
        let local = SocketAddr::new(ip, datagram.local.port());
        let (from, to, event) = match datagram.direction {
            Direction::Sent => (local, peer, Event::Sent),
            Direction::Received => (peer, local, Event::Delivered),
        };
        self.packet.clear();
        let (from, to) = (self.shown(from), self.shown(to));
        if udp_packet(from, to, 0, datagram.bytes, &mut self.packet).is_none() {
            return;
        }
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let packet = std::mem::take(&mut self.packet);
        let Some(file) = self.file() else { return };
        file.record(&Record {
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
        self.packet = packet;
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
