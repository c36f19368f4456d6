//! Captures of what a command sends and receives.

use std::fs::File;
use std::io::{self, BufWriter};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use coapace_net::{Datagram, Direction, Tap};
use coapace_sim::{Accounting, Event, Mark, NodeId, Pcapng, Record, Tap as _, Time, Transport, udp_packet};

/// Writes the datagrams of a client or server as pcapng, in the IP and UDP headers that they have on their way.
#[derive(Debug)]
pub(crate) struct Capture(Mutex<Option<Writing>>);

#[derive(Debug)]
struct Writing {
    file: Pcapng<BufWriter<File>>,
    /// A peer, and the own address that the system talks to it from.
    route: Option<(SocketAddr, IpAddr)>,
    packet: Vec<u8>,
}

impl Capture {
    pub(crate) fn new(file: BufWriter<File>) -> Self {
        let file = Pcapng::new(file, Accounting::Ipv4, 0..0, &[]);
        Self(Mutex::new(Some(Writing { file, route: None, packet: Vec::new() })))
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
        self.packet.clear();
        if udp_packet(from, to, 0, datagram.bytes, &mut self.packet).is_none() {
            return;
        }
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.file.record(&Record {
            time: Time::from_nanos(since.as_nanos() as u64),
            event,
            hop: None,
            from: NodeId(0),
            to: NodeId(0),
            mark: Mark::default(),
            transport: Transport::Ip,
            wire_bytes: self.packet.len() as u32,
            queue_bytes: 0,
            wait_ns: 0,
            bytes: &self.packet,
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
