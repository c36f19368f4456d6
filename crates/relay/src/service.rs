//! A relay on real sockets.

mod ports;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time;

use coapace_control::{Draw, Instant};
use coapace_net::{Datagram, Direction, Dtls, DtlsSessions, Interceptor, Verify};
use socket2::SockRef;
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use self::ports::ServerPort;
use crate::{Face, Relay, RelayConfig, RelayReport};

/// The requested size of the receive buffer at the face towards the clients, in bytes. The system may grant less.
const RECEIVE_BUFFER: usize = 4 << 20;

/// The longest accepted datagram, in bytes. RFC 7252 §4.6 suggests at most 1152 bytes for unknown paths, and a record of DTLS
/// adds 37.
const MAX_DATAGRAM: usize = 2_048;

/// The pause of a socket after an error of the system, so that a lasting error does not keep a core busy.
const PAUSE: time::Duration = time::Duration::from_millis(20);

/// The addresses and the settings of a relay.
#[derive(Debug)]
pub struct ServiceOptions {
    /// The address that clients send to. With port 0, the system chooses a free port.
    pub listen: SocketAddr,
    /// The address of the server.
    pub to: SocketAddr,
    /// The mechanism and the limits.
    pub config: RelayConfig,
    /// The keys of clients. With keys, only DTLS is accepted from clients.
    pub client_keys: Option<Dtls>,
    /// The identity and key for the server. With a key, the relay speaks DTLS to the server, in a session for each client.
    pub server_key: Option<Dtls>,
    /// The hook that sees every datagram on both sides, and may drop it. On a side with DTLS, it sees encrypted
    /// records.
    pub interceptor: Option<Arc<dyn Interceptor>>,
}

/// A relay that is bound to its address.
#[derive(Debug)]
pub struct Service {
    shared: Arc<SharedRelay>,
}

/// A handle of a relay, for its counters.
#[derive(Clone, Debug)]
pub struct Handle {
    shared: Arc<SharedRelay>,
}

#[derive(Debug)]
struct SharedRelay {
    /// The socket towards the clients.
    listener: UdpSocket,
    to: SocketAddr,
    local: SocketAddr,
    server_key: Option<Dtls>,
    interceptor: Option<Arc<dyn Interceptor>>,
    begun: time::Instant,
    /// Wakes the timer when the next deadline has changed.
    changed: Notify,
    locked: Mutex<LockedRelay>,
}

/// The relay, and its ports towards the server.
#[derive(Debug)]
struct LockedRelay {
    relay: Relay,
    /// The sessions of clients, if they speak DTLS.
    clients: Option<DtlsSessions>,
    ports: HashMap<SocketAddr, ServerPort>,
    buffer: Vec<u8>,
    /// A buffer for one DTLS record at a time.
    record: Vec<u8>,
    random: RandomState,
    drawn: u64,
    deadline: Option<Instant>,
    ports_refused: u64,
    unsent: u64,
    /// The number of failed handshakes with the server.
    handshakes_failed: u64,
}

impl Service {
    /// Binds to the address for clients. Call it in a runtime of tokio.
    ///
    /// # Errors
    /// The errors of the system.
    pub fn bind(options: ServiceOptions) -> io::Result<Self> {
        let ServiceOptions { listen, to, mut config, client_keys, server_key, interceptor } = options;
        if client_keys.is_some() {
            // The handshakes of DTLS sessions have verified the addresses of their clients.
            config.verify = Verify::Nobody;
        }
        // Each session is a source, so more sessions than sources would be useless.
        let clients = client_keys.map(|keys| keys.max_sessions(config.max_sources as usize));
        let socket = socket2::Socket::new(socket2::Domain::for_address(listen), socket2::Type::DGRAM, None)?;
        if listen.is_ipv6() {
            socket.set_only_v6(false)?;
        }
        // A smaller buffer is not an error.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        socket.set_nonblocking(true)?;
        socket.bind(&listen.into())?;
        let listener = UdpSocket::from_std(socket.into())?;
        let random = RandomState::new();
        // Later draws are the hashes of 1, 2 and so on, so none of them equals the seed.
        let mut relay = Relay::new(config, random.hash_one(0));
        relay.measure();
        let locked = LockedRelay {
            relay,
            clients: clients.as_ref().map(DtlsSessions::new).transpose()?,
            ports: HashMap::new(),
            buffer: Vec::with_capacity(MAX_DATAGRAM),
            record: Vec::new(),
            random,
            drawn: 0,
            deadline: None,
            ports_refused: 0,
            unsent: 0,
            handshakes_failed: 0,
        };
        let shared = SharedRelay {
            local: listener.local_addr()?,
            listener,
            to,
            server_key,
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

    /// Returns a handle for the counters of the relay.
    pub fn handle(&self) -> Handle {
        Handle { shared: self.shared.clone() }
    }

    /// Relays until the future is dropped, which closes all sessions.
    pub async fn run(self) {
        let timer = tokio::spawn(keep_time(self.shared.clone()));
        let _ends_with_this = ServiceGuard { timer, shared: self.shared.clone() };
        // The additional byte shows that a datagram is too long.
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

/// A guard that stops the timer, and closes all sessions and ports, when it is dropped.
struct ServiceGuard {
    timer: JoinHandle<()>,
    shared: Arc<SharedRelay>,
}

impl Drop for ServiceGuard {
    fn drop(&mut self) {
        self.timer.abort();
        let mut locked = self.shared.lock();
        locked.clients.iter_mut().for_each(DtlsSessions::close);
        self.shared.send_records_to_clients(&mut locked);
        for port in locked.ports.values_mut() {
            self.shared.close_session(port);
        }
        // The receiver of a port has a reference to all this, so it would keep the port open.
        locked.ports.clear();
    }
}

impl Handle {
    /// Returns the counters so far, and the current sizes of the relay's tables.
    pub fn report(&self) -> RelayReport {
        let locked = self.shared.lock();
        let mut report = locked.relay.report();
        // The relay itself knows no sockets, so these are counted here.
        (report.relay.ports_refused, report.relay.unsent) = (locked.ports_refused, locked.unsent);
        report.relay.handshakes_failed = locked.handshakes_failed;
        if let Some(sessions) = &locked.clients {
            (report.dtls, report.sessions) = (sessions.counters(), sessions.len() as u64);
        }
        report
    }
}

impl SharedRelay {
    fn lock(&self) -> MutexGuard<'_, LockedRelay> {
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

    /// Handles a datagram that arrived at `face` from `peer`, and sends the datagrams that result. `source` is the
    /// client that the datagram belongs to.
    fn receive(
        self: &Arc<Self>,
        face: Face,
        source: SocketAddr,
        bytes: &[u8],
        local: SocketAddr,
        peer: SocketAddr,
    ) {
        let is_too_long = bytes.len() > MAX_DATAGRAM;
        // The buffer has only the beginning of a datagram that is too long. A capture would show what nobody sent.
        if !is_too_long && !self.passes(Direction::Received, local, peer, bytes) {
            return;
        }
        let mut locked = self.lock();
        match face {
            _ if is_too_long => {
                let is_sealed = match face {
                    Face::Clients => locked.clients.is_some(),
                    Face::Server => self.server_key.is_some(),
                };
                // Without its end a record cannot be opened.
                let readable = if is_sealed { &[] } else { bytes };
                locked.relay.handle_too_long(self.now(), face, source, readable);
            }
            Face::Clients if locked.clients.is_some() => self.open_for_clients(&mut locked, peer, bytes),
            Face::Server if self.server_key.is_some() => self.open_for_server(&mut locked, source, bytes),
            _ => locked.relay.handle_datagram(self.now(), face, source, bytes),
        }
        self.flush(&mut locked);
    }

    /// Sends the relay's datagrams, closes ports, and sets the timer.
    fn flush(self: &Arc<Self>, locked: &mut LockedRelay) {
        loop {
            let LockedRelay { relay, buffer, random, drawn, .. } = locked;
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
        // The loop has put datagrams into the clients' sessions. Their records are sent now.
        self.send_records_to_clients(locked);
        self.close_ports(locked);
        let of_sessions = locked
            .clients
            .as_ref()
            .and_then(DtlsSessions::deadline)
            .map(|at| Instant::from_micros(at.saturating_duration_since(self.begun).as_micros() as u64));
        let deadline = locked.relay.poll_timeout().into_iter().chain(of_sessions).min();
        // Most datagrams leave the next deadline as it is. The timer's task sleeps on.
        if deadline != locked.deadline {
            locked.deadline = deadline;
            self.changed.notify_one();
        }
    }

    /// Handles a record of a client. Each session is a separate source.
    fn open_for_clients(&self, locked: &mut LockedRelay, from: SocketAddr, record: &[u8]) {
        let LockedRelay { relay, clients: Some(sessions), buffer, .. } = locked else { return };
        sessions.handle_record(from, record);
        loop {
            buffer.clear();
            let Some(session) = sessions.poll_datagram(buffer) else { break };
            relay.handle_datagram(self.now(), Face::Clients, session, buffer);
        }
    }

    fn send_to_client(&self, locked: &mut LockedRelay, to: SocketAddr) {
        let LockedRelay { clients, buffer, unsent, .. } = locked;
        match clients {
            Some(sessions) => sessions.send(to, buffer),
            None => *unsent += u64::from(!self.send_from_listener(to, buffer)),
        }
    }

    fn send_records_to_clients(&self, locked: &mut LockedRelay) {
        let LockedRelay { clients: Some(sessions), record, unsent, .. } = locked else { return };
        loop {
            record.clear();
            let Some(to) = sessions.poll_record(record) else { break };
            *unsent += u64::from(!self.send_from_listener(to, record));
        }
    }

    /// Sends a datagram to a client, unless the interceptor drops it. Returns false if the system refused it.
    fn send_from_listener(&self, to: SocketAddr, bytes: &[u8]) -> bool {
        let to = match (self.local, to) {
            // The address of a record is not mapped into IPv6, and the socket takes no other.
            (SocketAddr::V6(_), SocketAddr::V4(v4)) => (v4.ip().to_ipv6_mapped(), v4.port()).into(),
            _ => to,
        };
        if !self.passes(Direction::Sent, self.local, to, bytes) {
            return true;
        }
        // The runtime's own methods would first wait to hear that the socket takes datagrams.
        SockRef::from(&self.listener).send_to(bytes, &to.into()).is_ok()
    }
}

/// Calls the relay at its deadlines.
async fn keep_time(shared: Arc<SharedRelay>) {
    loop {
        let deadline = shared.lock().deadline;
        let wait = deadline.map(|at| time::Duration::from_micros(at.since(shared.now()).as_micros()));
        match wait {
            Some(time::Duration::ZERO) => {
                let mut locked = shared.lock();
                locked.relay.handle_timeout(shared.now());
                locked.clients.iter_mut().for_each(DtlsSessions::handle_timeout);
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
