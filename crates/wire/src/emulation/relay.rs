//! The emulation between UDP sockets: each source has a port of its own towards the server.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use coapace_sim::{Accounting, Span, Tap, Time, Transport};
use nix::sys::resource::{Resource, getrlimit};

use super::EmulationError;
use super::datagrams::{Datagrams, ReceivedDatagram, prepare};
use super::passage::Passage;
use super::running::{EmulationResult, SharedEmulation};
use super::sources::SourcePlace;
use super::steps::{EmulationDirection, PacketRole};
use super::waiting::EventWaiter;

/// The emulation between a socket to which clients send, and sockets that send to the server.
pub(super) struct EmulationRelay<T> {
    ports: Ports,
    passage: Passage<SocketAddr, T>,
    accounting: Accounting,
}

/// The sockets of the relay, and the address of the server.
struct Ports {
    waiting: EventWaiter,
    listener: CountedSocket,
    to: SocketAddr,
    /// The socket of each source towards the server, by the slot of the source. A slot may have none.
    upstream: Vec<Option<CountedSocket>>,
}

/// A socket, and the number of datagrams that it has lost because its buffer was full.
struct CountedSocket {
    socket: UdpSocket,
    lost: u32,
}

/// The number by which epoll reports the listening socket. A source's socket is reported by the number of the source's
/// slot.
const LISTENER: u64 = u64::MAX - 1;

/// The number of file descriptors that are kept free of sources' sockets: for files, connections of Prometheus, and
/// sockets of other threads.
const OTHER_DESCRIPTORS: u64 = 64;

impl<T: Tap> EmulationRelay<T> {
    /// Binds a socket to the address `listen`, to which clients send. Their datagrams are forwarded to the server at
    /// `to`.
    pub(super) fn bind(
        listen: SocketAddr,
        to: SocketAddr,
        accounting: Accounting,
        passage: Passage<SocketAddr, T>,
    ) -> Result<Self, EmulationError> {
        // Every datagram would come back as a new one of the relay's own port, without end.
        if listen == to {
            return Err(EmulationError::Circle(to));
        }
        let refused = |error| EmulationError::Listen(listen, error);
        let socket = UdpSocket::bind(listen).map_err(refused)?;
        prepare(&socket).map_err(refused)?;
        let waiting = EventWaiter::new().map_err(|error| EmulationError::System("timer", error))?;
        waiting.add(&socket, LISTENER).map_err(refused)?;
        let listener = CountedSocket { socket, lost: 0 };
        let ports = Ports { waiting, listener, to, upstream: Vec::new() };
        Ok(Self { ports, passage, accounting })
    }

    /// Returns the address to which clients send.
    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.ports.listener.socket.local_addr()
    }

    /// Forwards datagrams until the emulation is stopped.
    pub(super) fn run(mut self, shared: &SharedEmulation) -> EmulationResult<T> {
        let mut ready = Vec::new();
        let mut datagrams = Datagrams::new();
        while !shared.stops() {
            let Self { ports, passage, .. } = &mut self;
            let mut unreachable = 0;
            // Due packets leave before new ones are read, so that a burst of arrivals does not delay them.
            passage.depart(|way, place, key, bytes| match way {
                EmulationDirection::Up => ports.send_up(place, bytes, &mut unreachable),
                EmulationDirection::Down => ports.listener.socket.send_to(bytes, key).map(drop),
            });
            passage.counts.unreachable += unreachable;
            passage.publish(shared);
            let waited = ports.waiting.wait(passage.idle(), &mut ready);
            waited.map_err(|error| EmulationError::System("timer", error))?;
            for &number in &ready {
                if number == LISTENER {
                    self.receive_from_clients(&mut datagrams);
                } else {
                    self.receive_from_server(number as usize, &mut datagrams);
                }
            }
        }
        Ok(self.passage.finish())
    }

    fn receive_from_clients(&mut self, datagrams: &mut Datagrams) {
        let Self { ports, passage, accounting } = self;
        let now = passage.now();
        let Ports { waiting, listener, to, upstream } = ports;
        let CountedSocket { socket, lost } = listener;
        // An error here is about an earlier datagram to a client that is gone, and needs no action.
        let _ = datagrams.receive(socket, |datagram| {
            passage.counts.overflowed += newly_lost(lost, &datagram);
            let Some(from) = datagram.from else { return };
            let at = received_at(now, &datagram);
            // A datagram of a source that gets no slot is dropped, and `admit` counts the reason.
            let place = passage.sources.find(from, at).or_else(|| {
                let place = admit(passage, from, at, |place| open(upstream, place, *to, waiting))?;
                Some(place.number())
            });
            if let Some(place) = place {
                let wire_bytes = accounting.wire_bytes(Transport::Udp, datagram.bytes.len());
                passage.enter(at, EmulationDirection::Up, place, datagram.bytes, wire_bytes);
            }
        });
    }

    fn receive_from_server(&mut self, place: usize, datagrams: &mut Datagrams) {
        let Self { ports, passage, accounting } = self;
        // The socket may have been closed for a newer source after its event was reported.
        let Some(Some(CountedSocket { socket, lost })) = ports.upstream.get_mut(place) else { return };
        let now = passage.now();
        let received = datagrams.receive(socket, |datagram| {
            passage.counts.overflowed += newly_lost(lost, &datagram);
            let at = received_at(now, &datagram);
            passage.sources.touch(place, at);
            let wire_bytes = accounting.wire_bytes(Transport::Udp, datagram.bytes.len());
            passage.enter(at, EmulationDirection::Down, place, datagram.bytes, wire_bytes);
        });
        // ICMP reports a port where nobody listens as an error of the next receive.
        passage.counts.unreachable += u64::from(received.is_err());
    }
}

/// Gives a new source a slot, and opens its socket with `open`. If the system has no more sockets, the present number
/// of sources becomes the limit, and the new source gets the slot of the source that was idle for longest. Returns
/// `None` if the new source gets no slot or no socket.
fn admit<T: Tap>(
    passage: &mut Passage<SocketAddr, T>,
    from: SocketAddr,
    at: Time,
    mut open: impl FnMut(usize) -> io::Result<()>,
) -> Option<SourcePlace> {
    let place = passage.admit(from, at)?;
    let Err(error) = open(place.number()) else {
        // Only now, because a slot that is withdrawn must leave no node: slots and nodes would no longer match.
        passage.settle(place);
        return Some(place);
    };
    passage.counts.refuse_socket(&error);
    match place {
        SourcePlace::New(_) => {
            // A slot without a socket would take the place of a source that works.
            passage.sources.withdraw();
            if passage.sources.len() == 0 {
                return None;
            }
            // The new limit makes `admit` choose the place of the idlest source, whose socket `open` closes first.
            passage.sources.close();
            let place = passage.admit(from, at)?;
            open(place.number()).ok().map(|()| place)
        }
        // The source keeps its place without a socket, until it leaves.
        SourcePlace::Taken(_) => None,
    }
}

/// Opens a socket towards the server for the source in slot `place`, and first closes the socket of the slot's previous
/// source.
fn open(
    upstream: &mut Vec<Option<CountedSocket>>,
    place: usize,
    to: SocketAddr,
    waiting: &EventWaiter,
) -> io::Result<()> {
    if place >= upstream.len() {
        upstream.resize_with(place + 1, || None);
    }
    // The old socket closes first: both together might exceed the limit on open files.
    upstream[place] = None;
    let any: SocketAddr =
        if to.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let socket = UdpSocket::bind(any)?;
    prepare(&socket)?;
    // A connected socket takes datagrams from the server only, and gets the ICMP errors about it.
    socket.connect(to)?;
    waiting.add(&socket, place as u64)?;
    upstream[place] = Some(CountedSocket { socket, lost: 0 });
    Ok(())
}

impl Ports {
    /// Sends a datagram to the server from the socket of a slot. If the system reports an ICMP error about an earlier
    /// datagram instead, counts the error in `unreachable` and sends again.
    fn send_up(&self, place: usize, bytes: &[u8], unreachable: &mut u64) -> io::Result<()> {
        let Some(Some(CountedSocket { socket, .. })) = self.upstream.get(place) else { return Ok(()) };
        match socket.send(bytes) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                *unreachable += 1;
                socket.send(bytes).map(drop)
            }
            sent => sent.map(drop),
        }
    }
}

/// Returns the number of sources that may have a socket: the limit on open files less [`OTHER_DESCRIPTORS`], but at
/// least a quarter of this limit.
pub(super) fn most_sources() -> usize {
    let most = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
    // The quarter is larger only below a limit of 85 files.
    usize::try_from(most.saturating_sub(OTHER_DESCRIPTORS).max(most / 4)).unwrap_or(usize::MAX)
}

fn received_at(now: Time, datagram: &ReceivedDatagram<'_>) -> Time {
    // The age is below a second, so it fits.
    now - Span::from_nanos(datagram.age.as_nanos() as u64)
}

/// Returns the number of datagrams that a socket has lost since the last call. `lost` is the count at that call, and is
/// updated.
fn newly_lost(lost: &mut u32, datagram: &ReceivedDatagram<'_>) -> u64 {
    let Some(so_far) = datagram.lost else { return 0 };
    // The system's counter has 32 bits and wraps.
    let newly = so_far.wrapping_sub(*lost);
    *lost = so_far;
    u64::from(newly)
}

/// Returns the role of a datagram in an exchange.
pub(super) fn content(datagram: &[u8]) -> PacketRole {
    PacketRole::read(datagram, 0)
}
