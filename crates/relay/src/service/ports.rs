//! The ports of a relay towards the server, one for each source, each with a DTLS session if the relay has a key.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time;

use coapace_net::{Direction, DtlsSessions};
use socket2::SockRef;
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::{Face, LockedRelay, MAX_DATAGRAM, PAUSE, SharedRelay};

/// A port towards the server. It is closed when it is dropped.
#[derive(Debug)]
pub(super) struct ServerPort {
    socket: Arc<UdpSocket>,
    local: SocketAddr,
    /// The session with the server, if the relay speaks DTLS to it.
    session: Option<DtlsSessions>,
    /// Wakes the receiver when the next timer of the session has changed.
    changed: Arc<Notify>,
    receiver: JoinHandle<()>,
}

impl Drop for ServerPort {
    fn drop(&mut self) {
        self.receiver.abort();
    }
}

/// Returns whether a port could not be opened because the network is down or unreachable, which may pass.
fn is_of_network(error: &io::Error) -> bool {
    use io::ErrorKind::{HostUnreachable, NetworkDown, NetworkUnreachable};
    matches!(error.kind(), HostUnreachable | NetworkDown | NetworkUnreachable)
}

impl SharedRelay {
    pub(super) fn send_to_server(self: &Arc<Self>, locked: &mut LockedRelay, source: SocketAddr) {
        if !locked.ports.contains_key(&source) {
            let opened = self.open(source).or_else(|error| {
                // A network that is away takes no port of any number, and comes back.
                if is_of_network(&error) {
                    return Err(error);
                }
                // Idle sources leave, so that their ports can be closed.
                locked.relay.set_max_sources(locked.ports.len() as u32);
                self.close_ports(locked);
                self.open(source)
            });
            match opened {
                Ok(port) => drop(locked.ports.insert(source, port)),
                // The endpoint sends this datagram again when its timeout passes.
                Err(_) => return locked.ports_refused += 1,
            }
        }
        let LockedRelay { ports, buffer, unsent, .. } = &mut *locked;
        let Some(port) = ports.get_mut(&source) else { return };
        if let Some(session) = &mut port.session {
            // The session keeps the datagram until its handshake is complete.
            session.send(self.to, buffer);
            self.send_records_to_server(locked, source);
        } else {
            *unsent += u64::from(!self.send_from(port, buffer));
        }
    }

    /// Sends the queued DTLS records of a source's port to the server.
    fn send_records_to_server(&self, locked: &mut LockedRelay, source: SocketAddr) {
        let LockedRelay { ports, record, unsent, .. } = locked;
        let Some(port) = ports.get_mut(&source) else { return };
        loop {
            record.clear();
            let sessions = port.session.as_mut();
            if sessions.and_then(|sessions| sessions.poll_record(record)).is_none() {
                break;
            }
            *unsent += u64::from(!self.send_from(port, record));
        }
        // Sending may have set a timer of the session, such as for a flight of a handshake.
        port.changed.notify_one();
    }

    /// Sends a datagram to the server, unless the interceptor drops it. Returns false if the system refused it.
    fn send_from(&self, port: &ServerPort, bytes: &[u8]) -> bool {
        if !self.passes(Direction::Sent, port.local, self.to, bytes) {
            return true;
        }
        let socket = SockRef::from(&*port.socket);
        match socket.send(bytes) {
            // This is the ICMP error of an earlier datagram. The present one was not sent.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => socket.send(bytes).is_ok(),
            sent => sent.is_ok(),
        }
    }

    /// Closes the ports of dropped sources.
    pub(super) fn close_ports(&self, locked: &mut LockedRelay) {
        while let Some(source) = locked.relay.poll_closed() {
            if let Some(mut port) = locked.ports.remove(&source) {
                self.close_session(&mut port);
            }
        }
    }

    /// Ends the DTLS session of a port, and notifies the server.
    pub(super) fn close_session(&self, port: &mut ServerPort) {
        let Some(mut session) = port.session.take() else { return };
        session.close();
        let mut record = Vec::new();
        while session.poll_record(&mut record).is_some() {
            self.send_from(port, &record);
            record.clear();
        }
    }

    /// Opens the port of a source.
    fn open(self: &Arc<Self>, source: SocketAddr) -> io::Result<ServerPort> {
        let any: SocketAddr = match self.to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = std::net::UdpSocket::bind(any)?;
        socket.set_nonblocking(true)?;
        // A connected socket receives from the server only, and learns of its ICMP errors.
        socket.connect(self.to)?;
        let local = socket.local_addr()?;
        let socket = Arc::new(UdpSocket::from_std(socket)?);
        let session = self.server_key.as_ref().map(DtlsSessions::new).transpose()?;
        let changed = Arc::new(Notify::new());
        let receiver = receive_from_server(self.clone(), socket.clone(), changed.clone(), source, local);
        Ok(ServerPort { socket, local, session, changed, receiver: tokio::spawn(receiver) })
    }

    /// Returns the next deadline of the session at the port of a source.
    fn session_deadline(&self, source: SocketAddr) -> Option<time::Instant> {
        self.lock().ports.get(&source)?.session.as_ref()?.deadline()
    }

    /// Handles the timers of the session at the port of a source.
    fn session_timeout(&self, source: SocketAddr) {
        let mut locked = self.lock();
        self.with_session(&mut locked, source, DtlsSessions::handle_timeout);
    }

    /// Handles a record that the server sent to the port of a source.
    pub(super) fn open_for_server(&self, locked: &mut LockedRelay, source: SocketAddr, record: &[u8]) {
        self.with_session(locked, source, |session| session.handle_record(self.to, record));
        let LockedRelay { relay, ports, buffer, .. } = locked;
        let Some(port) = ports.get_mut(&source) else { return };
        let Some(session) = &mut port.session else { return };
        loop {
            buffer.clear();
            if session.poll_datagram(buffer).is_none() {
                break;
            }
            relay.handle_datagram(self.now(), Face::Server, source, buffer);
        }
    }

    /// Calls `act` with the session at the port of a source, counts a handshake that fails, and sends the records.
    fn with_session(
        &self,
        locked: &mut LockedRelay,
        source: SocketAddr,
        act: impl FnOnce(&mut DtlsSessions),
    ) {
        let session = locked.ports.get_mut(&source).and_then(|port| port.session.as_mut());
        let Some(session) = session else { return };
        let before = session.counters().handshakes_failed;
        act(session);
        // Counted here, because the counters of the session are lost with its port.
        locked.handshakes_failed += session.counters().handshakes_failed - before;
        self.send_records_to_server(locked, source);
    }
}

/// Receives at the port of a source until the port is closed.
async fn receive_from_server(
    shared: Arc<SharedRelay>,
    socket: Arc<UdpSocket>,
    changed: Arc<Notify>,
    source: SocketAddr,
    local: SocketAddr,
) {
    let mut buffer = Vec::new();
    loop {
        let deadline = shared.session_deadline(source);
        // The buffer is there only while something is received: most ports are idle.
        tokio::select! {
            ready = socket.readable() => if ready.is_err() {
                tokio::time::sleep(PAUSE).await;
                continue;
            },
            () = changed.notified() => continue,
            () = passing(deadline) => {
                shared.session_timeout(source);
                continue;
            }
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

/// Waits until a deadline passes; forever if there is none.
async fn passing(deadline: Option<time::Instant>) {
    match deadline {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
