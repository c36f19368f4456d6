//! A relay on real sockets.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time;

use coapace_control::{Draw, Instant};
use coapace_net::{Datagram, Direction, Interceptor};
use socket2::SockRef;
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::{Face, Relay, RelayConfig, RelayReport};

/// The size of the receive buffer that is asked for at the face towards the clients, in bytes. The system may grant less.
const RECEIVE_BUFFER: usize = 4 << 20;

/// The longest datagram that is taken, in bytes. A longer one is dropped. RFC 7252 §4.6 suggests at most 1152 bytes for unknown
/// paths.
const MAX_DATAGRAM: usize = 2_048;

/// The pause of a socket that the system reports an error for, so that a lasting error does not keep a core busy.
const PAUSE: time::Duration = time::Duration::from_millis(20);

/// The addresses of a relay, and what runs on them.
#[derive(Debug)]
pub struct ServiceOptions {
    /// The address that clients send to. Port 0 is any that is free.
    pub listen: SocketAddr,
    /// The address of the server.
    pub to: SocketAddr,
    /// The mechanism and the bounds.
    pub config: RelayConfig,
    /// Sees every datagram at both faces, and may drop it.
    pub interceptor: Option<Arc<dyn Interceptor>>,
}

/// A relay that is bound to its address.
#[derive(Debug)]
pub struct Service {
    shared: Arc<Shared>,
}

/// A handle of a relay, for its counts.
#[derive(Clone, Debug)]
pub struct Handle {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// The socket towards the clients.
    listener: UdpSocket,
    to: SocketAddr,
    local: SocketAddr,
    interceptor: Option<Arc<dyn Interceptor>>,
    begun: time::Instant,
    /// Wakes the timer when the next deadline has changed.
    changed: Notify,
    locked: Mutex<Locked>,
}

/// The relay, and its ports towards the server.
#[derive(Debug)]
struct Locked {
    relay: Relay,
    ports: HashMap<SocketAddr, Port>,
    buffer: Vec<u8>,
    random: RandomState,
    drawn: u64,
    deadline: Option<Instant>,
    ports_refused: u64,
    unsent: u64,
}

/// A port towards the server. It is closed when it is dropped.
#[derive(Debug)]
struct Port {
    socket: Arc<UdpSocket>,
    local: SocketAddr,
    receiver: JoinHandle<()>,
}

impl Drop for Port {
    fn drop(&mut self) {
        self.receiver.abort();
    }
}

impl Service {
    /// Binds to the address for clients. Call it in a runtime of tokio.
    ///
    /// # Errors
    /// The errors of the system.
    pub fn bind(options: ServiceOptions) -> io::Result<Self> {
        let ServiceOptions { listen, to, config, interceptor } = options;
        let socket = socket2::Socket::new(socket2::Domain::for_address(listen), socket2::Type::DGRAM, None)?;
        if listen.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        // A smaller buffer is no error.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        socket.set_nonblocking(true)?;
        socket.bind(&listen.into())?;
        let listener = UdpSocket::from_std(socket.into())?;
        let random = RandomState::new();
        let mut relay = Relay::new(config, random.hash_one(0));
        relay.measure();
        let locked = Locked {
            relay,
            ports: HashMap::new(),
            buffer: Vec::with_capacity(MAX_DATAGRAM),
            random,
            drawn: 0,
            deadline: None,
            ports_refused: 0,
            unsent: 0,
        };
        let shared = Shared {
            local: listener.local_addr()?,
            listener,
            to,
            interceptor,
            begun: time::Instant::now(),
            changed: Notify::new(),
            locked: Mutex::new(locked),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Returns the address that clients send to.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared.local
    }

    /// Returns a handle.
    pub fn handle(&self) -> Handle {
        Handle { shared: self.shared.clone() }
    }

    /// Relays until the future is dropped.
    pub async fn run(self) {
        let timer = tokio::spawn(keep_time(self.shared.clone()));
        let _ends_with_this = AbortOnDrop(timer);
        let mut buffer = vec![0; MAX_DATAGRAM + 1];
        loop {
            match self.shared.listener.recv_from(&mut buffer).await {
                Ok((len, from)) => {
                    self.shared.receive(Face::Clients, from, &buffer[..len], self.shared.local, from);
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}

struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Handle {
    /// Returns the counts so far, and what is kept now.
    pub fn report(&self) -> RelayReport {
        let locked = self.shared.lock();
        let mut report = locked.relay.report();
        (report.relay.ports_refused, report.relay.unsent) = (locked.ports_refused, locked.unsent);
        report
    }
}

impl Locked {
    /// Closes the ports of sources that made room for others.
    fn close_ports(&mut self) {
        while let Some(source) = self.relay.poll_closed() {
            self.ports.remove(&source);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Locked> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Instant {
        Instant::from_micros(self.begun.elapsed().as_micros() as u64)
    }

    /// Returns whether the interceptor passes a datagram.
    fn passes(&self, direction: Direction, local: SocketAddr, peer: SocketAddr, bytes: &[u8]) -> bool {
        let datagram = Datagram::new(direction, local, peer, bytes);
        self.interceptor.as_ref().is_none_or(|interceptor| interceptor.pass(&datagram))
    }

    /// Takes a datagram that arrived from `peer`, and sends what follows from it.
    fn receive(
        self: &Arc<Self>,
        face: Face,
        source: SocketAddr,
        bytes: &[u8],
        local: SocketAddr,
        peer: SocketAddr,
    ) {
        if bytes.len() > MAX_DATAGRAM || !self.passes(Direction::Received, local, peer, bytes) {
            return;
        }
        let mut locked = self.lock();
        locked.relay.handle_datagram(self.now(), face, source, bytes);
        self.flush(&mut locked);
    }

    /// Sends what the relay has to send, closes ports, and sets the timer.
    fn flush(self: &Arc<Self>, locked: &mut Locked) {
        loop {
            let Locked { relay, buffer, random, drawn, .. } = locked;
            buffer.clear();
            let draw = || {
                *drawn += 1;
                Draw::from_bits(random.hash_one(*drawn) as u32)
            };
            match relay.poll_transmit(self.now(), draw, buffer) {
                Some((Face::Clients, to)) => self.send_to_client(locked, to),
                Some((Face::Server, source)) => self.send_to_server(locked, source),
                None => break,
            }
        }
        locked.close_ports();
        let deadline = locked.relay.poll_timeout();
        if deadline != locked.deadline {
            locked.deadline = deadline;
            self.changed.notify_one();
        }
    }

    fn send_to_client(&self, locked: &mut Locked, to: SocketAddr) {
        // The runtime's own methods would first wait to hear that the socket takes datagrams.
        let listener = SockRef::from(&self.listener);
        if self.passes(Direction::Sent, self.local, to, &locked.buffer)
            && listener.send_to(&locked.buffer, &to.into()).is_err()
        {
            locked.unsent += 1;
        }
    }

    fn send_to_server(self: &Arc<Self>, locked: &mut Locked, source: SocketAddr) {
        if !locked.ports.contains_key(&source) {
            let opened = self.open(source).or_else(|_| {
                // Idle sources make room.
                locked.relay.set_max_sources(locked.ports.len() as u32);
                locked.close_ports();
                self.open(source)
            });
            match opened {
                Ok(port) => drop(locked.ports.insert(source, port)),
                // The endpoint sends this datagram again when its timeout passes.
                Err(_) => return locked.ports_refused += 1,
            }
        }
        let Some(Port { socket, local, .. }) = locked.ports.get(&source) else { return };
        if !self.passes(Direction::Sent, *local, self.to, &locked.buffer) {
            return;
        }
        let socket = SockRef::from(&**socket);
        let sent = match socket.send(&locked.buffer) {
            // This is the ICMP error of an earlier datagram. The present one was not sent.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => socket.send(&locked.buffer),
            sent => sent,
        };
        locked.unsent += u64::from(sent.is_err());
    }

    /// Opens the port of a source.
    fn open(self: &Arc<Self>, source: SocketAddr) -> io::Result<Port> {
        let any: SocketAddr = match self.to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = std::net::UdpSocket::bind(any)?;
        socket.set_nonblocking(true)?;
        socket.connect(self.to)?;
        let local = socket.local_addr()?;
        let socket = Arc::new(UdpSocket::from_std(socket)?);
        let receiver = tokio::spawn(receive_from_server(self.clone(), socket.clone(), source, local));
        Ok(Port { socket, local, receiver })
    }
}

/// Receives at the port of a source until the port is closed.
async fn receive_from_server(
    shared: Arc<Shared>,
    socket: Arc<UdpSocket>,
    source: SocketAddr,
    local: SocketAddr,
) {
    let mut buffer = Vec::new();
    loop {
        // The buffer is there only while something is received: most ports are idle.
        if socket.readable().await.is_err() {
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        buffer.resize(MAX_DATAGRAM + 1, 0);
        match socket.try_recv(&mut buffer) {
            Ok(len) => shared.receive(Face::Server, source, &buffer[..len], local, shared.to),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => buffer = Vec::new(),
            // An ICMP error: nobody listens at the server's port now. Timeouts go on as if nothing had come.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Calls the relay at its deadlines.
async fn keep_time(shared: Arc<Shared>) {
    loop {
        let deadline = shared.lock().deadline;
        let wait = deadline.map(|at| time::Duration::from_micros(at.since(shared.now()).as_micros()));
        match wait {
            Some(time::Duration::ZERO) => {
                let mut locked = shared.lock();
                locked.relay.handle_timeout(shared.now());
                locked.deadline = None;
                shared.flush(&mut locked);
            }
            Some(wait) => {
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = shared.changed.notified() => {}
                }
            }
            None => shared.changed.notified().await,
        }
    }
}
