//! DTLS sessions between the datagrams of an endpoint and those of its socket.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::dtls::Dtls;
use super::table::{OVERHEAD, Table, key};
use crate::address::Remote;
use crate::datagram::hub::Hub;
use crate::datagram::io::{DatagramIo, MAX_DATAGRAM, Outgoing, Reception, receive_singly};
use crate::datagram::socket::Socket;
use crate::identity::Identity;
use crate::{DtlsCounters, Refused};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The sessions of one endpoint.
#[derive(Debug)]
pub(crate) struct Sessions(Mutex<Table>);

impl Sessions {
    pub(crate) fn new(setup: &Dtls) -> io::Result<Self> {
        Ok(Self(Mutex::new(Table::new(setup)?)))
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of sessions, handshakes included.
    pub(crate) fn len(&self) -> usize {
        self.lock().sessions.len()
    }

    pub(crate) fn counters(&self) -> DtlsCounters {
        self.lock().counters
    }

    /// Seals datagrams from the front of `outgoing`, and sends the records as far as the system takes them.
    pub(crate) fn send(&self, socket: &Socket, outgoing: &mut Outgoing) {
        let mut table = self.lock();
        let now = Instant::now();
        table.flush(socket);
        while let Some((to, bytes)) = outgoing.get(0) {
            if !table.ready.is_empty() {
                // The system takes no more.
                return;
            }
            table.seal(now, to, bytes);
            outgoing.advance(1);
            table.flush(socket);
        }
        outgoing.failed.append(&mut table.ready.failed);
    }

    /// Begins a client's session with this server, unless there is one. Returns what the endpoint calls the server.
    pub(crate) async fn connect(&self, hub: &Hub, to: Remote) -> Result<Remote, Refused> {
        let told = {
            let mut table = self.lock();
            let place = key(to);
            match table.sessions.get(&place) {
                Some(session) if session.connected => return Ok(session.peer),
                Some(_) => {}
                None => table.begin(Instant::now(), to)?,
            }
            let (tell, told) = oneshot::channel();
            if let Some(session) = table.sessions.get_mut(&place) {
                session.waiting.push(tell);
            }
            table.flush(&hub.socket);
            told
        };
        // There is a timer to keep.
        hub.attention.notify_one();
        told.await.unwrap_or(Err(Refused::GivenUp))
    }

    /// Returns the identity that a server's peer has shown.
    pub(crate) fn identity(&self, peer: Remote) -> Option<Arc<Identity>> {
        let table = self.lock();
        let session = table.sessions.get(&key(peer))?;
        session.identity.clone().filter(|_| session.connected && session.peer == peer)
    }

    /// Ends a handshake with a peer that cannot be reached.
    pub(crate) fn unreachable(&self, to: Remote, error: &io::Error) {
        let mut table = self.lock();
        let place = key(to);
        if table.sessions.get(&place).is_some_and(|session| !session.connected) {
            table.counters.handshakes_failed += 1;
            table.remove(place, &Refused::Unreachable(error.kind()));
        }
    }

    /// Returns when [`DatagramIo::timeout`] is to be called.
    fn deadline(&self) -> Option<Instant> {
        let table = self.lock();
        let timer = table.timers.first().map(|&(at, _)| at);
        let idle = table.longest_unused().and_then(|(_, at)| at.checked_add(table.setup.idle_timeout));
        // A runtime takes a moment in the distant future for one that has passed.
        Some(timer.into_iter().chain(idle).min()?.min(Instant::now() + DAY))
    }

    fn timeout(&self, socket: &Socket) {
        let mut table = self.lock();
        let now = Instant::now();
        while let Some(&(at, place)) = table.timers.first()
            && at <= now
        {
            table.drive(now, place, None, |session| session.library.handle_timeout(now));
            table.flush(socket);
        }
        while let Some((place, at)) = table.longest_unused()
            && now.saturating_duration_since(at) >= table.setup.idle_timeout
        {
            table.counters.idle += 1;
            table.close(now, place);
            table.flush(socket);
        }
    }

    /// Closes all sessions.
    fn close(&self, socket: &Socket) {
        let mut table = self.lock();
        let now = Instant::now();
        let places: Vec<Remote> = table.sessions.keys().copied().collect();
        for place in places {
            table.close(now, place);
            table.flush(socket);
        }
    }

    /// Takes a datagram from the socket. Datagrams for the endpoint are left in `arrived`.
    fn open(&self, socket: &Socket, from: Remote, datagram: &[u8], arrived: &mut Outgoing) {
        let mut table = self.lock();
        table.open(Instant::now(), from, datagram, arrived);
        table.flush(socket);
    }
}

/// The datagrams of an endpoint as the plaintext of records.
pub(crate) struct Sealed {
    sessions: Arc<Sessions>,
    buffer: Box<[u8]>,
    arrived: Outgoing,
}

impl Sealed {
    pub(crate) fn new(sessions: &Arc<Sessions>) -> Self {
        Self {
            sessions: sessions.clone(),
            buffer: vec![0; MAX_DATAGRAM + OVERHEAD + 1].into(),
            arrived: Outgoing::default(),
        }
    }
}

impl DatagramIo for Sealed {
    fn receive(
        &mut self,
        socket: &Socket,
        mut each: impl FnMut(Remote, bool, &[u8]),
    ) -> io::Result<Reception> {
        let Self { sessions, buffer, arrived } = self;
        receive_singly(socket, buffer, |from, record| {
            sessions.open(socket, from, record, arrived);
            while let Some((from, bytes)) = arrived.get(0) {
                each(from, false, bytes);
                arrived.advance(1);
            }
        })
    }

    fn send(&mut self, socket: &Socket, outgoing: &mut Outgoing) {
        self.sessions.send(socket, outgoing);
    }

    fn deadline(&self) -> Option<Instant> {
        self.sessions.deadline()
    }

    fn timeout(&mut self, socket: &Socket) {
        self.sessions.timeout(socket);
    }

    fn close(&mut self, socket: &Socket) {
        self.sessions.close(socket);
    }
}
