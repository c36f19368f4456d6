//! DTLS sessions, by the address of their peer, between the datagrams of an endpoint and those of its socket.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dimpl::Output;
use tokio::sync::oneshot;

use crate::address::Remote;
use crate::carrier::{Carrier, MAX_DATAGRAM, Outgoing, Received, send_singly};
use crate::cookie::{Cookies, Hello};
use crate::dtls::{Dtls, DtlsCounters, Keys, Refused, take_resolved, with_cookie};
use crate::hub::Hub;
use crate::identity::Identity;
use crate::socket::Socket;

/// What a record adds to a datagram at most, in bytes: header, explicit nonce, tag.
const OVERHEAD: usize = 13 + 8 + 16;

/// Datagrams kept while the system takes none; beyond, they are lost as on any path.
const MAX_READY: usize = 1_024;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// RFC 5246 §7.2: what a server says of a handshake that fails.
const HANDSHAKE_FAILURE: u8 = 40;
const DECRYPT_ERROR: u8 = 51;

/// The sessions of one endpoint.
#[derive(Debug)]
pub(crate) struct Sessions(Mutex<Table>);

#[derive(Debug)]
struct Table {
    setup: Dtls,
    library: Arc<dimpl::Config>,
    /// A server's alone.
    cookies: Option<Cookies>,
    sessions: HashMap<Remote, Session>,
    /// The sessions in the order in which they make room: handshakes first, then by their last use.
    order: BTreeMap<(bool, u64), Remote>,
    /// When sessions want to repeat something or give up.
    timers: BTreeSet<(Instant, Remote)>,
    /// Counts uses.
    uses: u64,
    /// Counts sessions.
    begun: u16,
    /// Records on their way to the system.
    ready: Outgoing,
    counters: DtlsCounters,
    /// Where the library puts its output.
    buffer: Vec<u8>,
}

#[derive(Debug)]
struct Session {
    library: dimpl::Dtls,
    /// Where its datagrams go.
    path: Remote,
    /// What the endpoint calls its peer. A server's endpoint has another name for each session: what it remembers of one
    /// concerns no other (RFC 7252 §9.1.1).
    peer: Remote,
    /// The client's random.
    random: Vec<u8>,
    connected: bool,
    /// What the peer of a server calls itself; it is so once the handshake has ended.
    identity: Option<Arc<Identity>>,
    /// Its place in the order, beside `connected`.
    used: u64,
    used_at: Instant,
    timer: Option<Instant>,
    seen: Seen,
    /// Who waits for the end of the handshake.
    waiting: Vec<oneshot::Sender<Result<Remote, Refused>>>,
}

/// Whether a client has sent all that ends its part of a handshake. If it has, and the server cannot read it, then the
/// keys differ.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    key_exchange: bool,
    change: bool,
    finished: bool,
}

impl Seen {
    fn see(&mut self, mut datagram: &[u8]) {
        while let Some((header, rest)) = datagram.split_at_checked(13) {
            let length = usize::from(u16::from_be_bytes([header[11], header[12]]));
            let Some((record, rest)) = rest.split_at_checked(length) else { return };
            let epoch = u16::from_be_bytes([header[3], header[4]]);
            match (header[0], epoch) {
                (20, 0) => self.change = true,
                (22, 0) => self.key_exchange |= record.first() == Some(&16),
                (22, 1) => self.finished = true,
                _ => {}
            }
            datagram = rest;
        }
    }

    fn all(self) -> bool {
        self.key_exchange && self.change && self.finished
    }
}

/// What is to become of a session.
enum Next {
    Stays,
    /// The peer has closed it.
    Closed,
    Fails(Refused),
}

impl Sessions {
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the library does not take the setup.
    pub(crate) fn new(setup: &Dtls) -> io::Result<Self> {
        let cookies = match setup.keys {
            Keys::Client { .. } => None,
            Keys::Server { .. } => Some(Cookies::new(Instant::now())),
        };
        Ok(Self(Mutex::new(Table {
            setup: setup.clone(),
            library: setup.build()?,
            cookies,
            sessions: HashMap::new(),
            order: BTreeMap::new(),
            timers: BTreeSet::new(),
            uses: 0,
            begun: 0,
            ready: Outgoing::default(),
            counters: DtlsCounters::default(),
            buffer: vec![0; MAX_DATAGRAM + OVERHEAD],
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// A client's session with this server, begun if need be; returns what the endpoint calls it.
    ///
    /// # Errors
    /// Why there is none.
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

    /// Who a server's peer has shown to be.
    pub(crate) fn identity(&self, peer: Remote) -> Option<Arc<Identity>> {
        let table = self.lock();
        let session = table.sessions.get(&key(peer))?;
        session.identity.clone().filter(|_| session.connected && session.peer == peer)
    }

    /// The network says that a peer cannot be reached: no handshake there will come to an end.
    pub(crate) fn unreachable(&self, to: Remote, error: &io::Error) {
        let mut table = self.lock();
        let place = key(to);
        if table.sessions.get(&place).is_some_and(|session| !session.connected) {
            table.counters.handshakes_failed += 1;
            table.remove(place, &Refused::Unreachable(error.kind()));
        }
    }

    /// When [`Carrier::timeout`] is to be called.
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

    /// Says goodbye to all.
    fn close(&self, socket: &Socket) {
        let mut table = self.lock();
        let now = Instant::now();
        let places: Vec<Remote> = table.sessions.keys().copied().collect();
        for place in places {
            table.close(now, place);
            table.flush(socket);
        }
    }

    /// Takes a datagram from the socket; those for the endpoint are left in `arrived`.
    fn open(&self, socket: &Socket, from: Remote, datagram: &[u8], arrived: &mut Outgoing) {
        let mut table = self.lock();
        table.open(Instant::now(), from, datagram, arrived);
        table.flush(socket);
    }
}

/// Where a session is kept: which of our own addresses it came to does not matter.
fn key(remote: Remote) -> Remote {
    Remote::new(remote.ip(), remote.port(), 0)
}

impl Table {
    fn open(&mut self, now: Instant, from: Remote, datagram: &[u8], arrived: &mut Outgoing) {
        let place = key(from);
        if let Some(cookies) = &self.cookies
            && let Some(hello) = Hello::read(datagram)
        {
            if hello.message == 0 {
                if self.ready.len() < MAX_READY {
                    self.counters.cookies_asked += 1;
                    cookies.request(now, from, &hello, &mut self.ready.bytes);
                    self.ready.push(from);
                }
                return;
            }
            let again = self.sessions.get(&place).is_some_and(|session| session.random == hello.random());
            if !again {
                if hello.message == 1 && cookies.verify(now, from, &hello) {
                    self.accept(now, from, &hello, datagram);
                } else {
                    self.counters.strays += 1;
                }
                return;
            }
        }
        let server = self.cookies.is_some();
        let Some(session) = self.sessions.get_mut(&place) else {
            self.counters.strays += 1;
            return;
        };
        if server && !session.connected {
            session.seen.see(datagram);
        }
        let before = arrived.len();
        self.drive(now, place, Some(arrived), |session| {
            session.library.handle_timeout(now)?;
            session.library.handle_packet(datagram)
        });
        if arrived.len() > before {
            self.touch(now, place);
        }
    }

    /// A session was used.
    fn touch(&mut self, now: Instant, place: Remote) {
        let Some(session) = self.sessions.get_mut(&place) else { return };
        self.uses += 1;
        self.order.remove(&(session.connected, session.used));
        (session.used, session.used_at) = (self.uses, now);
        self.order.insert((session.connected, session.used), place);
    }

    /// Begins a server's session with the ClientHello that has a cookie.
    fn accept(&mut self, now: Instant, from: Remote, hello: &Hello<'_>, datagram: &[u8]) {
        let Some(cookie) = hello.cookie() else { return };
        let place = key(from);
        // The client has lost what was before (RFC 6347 §4.2.8), as whoever is at its address can tell.
        self.remove(place, &Refused::GivenUp);
        self.begun = self.begun.wrapping_add(1);
        let peer = Remote::new(from.ip(), from.port(), self.begun);
        let library = dimpl::Dtls::new_12_psk(self.library.clone(), now);
        self.insert(now, from, peer, library, hello.random().to_vec());
        let first = hello.first();
        self.drive(now, place, None, |session| {
            session.library.handle_timeout(now)?;
            with_cookie(cookie, || session.library.handle_packet(&first))?;
            // That the library asks for the cookie is long past.
            let mut unused = [0; 128];
            while let Output::Packet(_) = session.library.poll_output(&mut unused) {}
            with_cookie(cookie, || session.library.handle_packet(datagram))
        });
    }

    /// Begins a client's session.
    fn begin(&mut self, now: Instant, to: Remote) -> Result<(), Refused> {
        if self.cookies.is_some() {
            return Err(Refused::NoKeys);
        }
        let mut library = dimpl::Dtls::new_12_psk(self.library.clone(), now);
        library.set_active(true);
        self.insert(now, to, to, library, Vec::new());
        self.drive(now, key(to), None, |session| session.library.handle_timeout(now));
        Ok(())
    }

    fn insert(&mut self, now: Instant, path: Remote, peer: Remote, library: dimpl::Dtls, random: Vec<u8>) {
        while self.sessions.len() >= self.setup.max_sessions
            && let Some((_, &last)) = self.order.first_key_value()
        {
            self.counters.evicted += 1;
            self.close(now, last);
        }
        self.uses += 1;
        self.order.insert((false, self.uses), key(path));
        let session = Session {
            library,
            path,
            peer,
            random,
            connected: false,
            identity: None,
            used: self.uses,
            used_at: now,
            timer: None,
            seen: Seen::default(),
            waiting: Vec::new(),
        };
        self.sessions.insert(key(path), session);
    }

    /// Seals a datagram. A client's session that has ended begins anew; what is not sent meanwhile is retransmitted.
    fn seal(&mut self, now: Instant, to: Remote, bytes: &[u8]) {
        let place = key(to);
        let Some(session) = self.sessions.get(&place) else {
            self.counters.unsent += 1;
            let _ = self.begin(now, to);
            return;
        };
        if !session.connected || session.peer != to {
            self.counters.unsent += 1;
            return;
        }
        self.touch(now, place);
        self.drive(now, place, None, |session| {
            session.library.handle_timeout(now)?;
            session.library.send_application_data(bytes).map(drop)
        });
    }

    /// Lets the library do something with a session, and takes what comes of it.
    fn drive(
        &mut self,
        now: Instant,
        place: Remote,
        arrived: Option<&mut Outgoing>,
        act: impl FnOnce(&mut Session) -> Result<(), dimpl::Error>,
    ) {
        let Self { sessions, order, timers, ready, counters, buffer, cookies, .. } = self;
        let Some(session) = sessions.get_mut(&place) else { return };
        let (was_connected, timer) = (session.connected, session.timer);
        // Whatever strangers make of the library, it is the end of one session and no more.
        take_resolved();
        let next = catch_unwind(AssertUnwindSafe(|| {
            let done = act(session);
            let next = session.take_output(ready, arrived, buffer);
            done.map_or_else(|error| Next::Fails(error.into()), |()| next)
        }));
        let next = next.unwrap_or_else(|_| Next::Fails(Refused::Protocol("the library panicked".into())));
        if let Some(identity) = take_resolved() {
            session.identity = Some(Arc::new(Identity::Psk(identity)));
        }
        if session.timer != timer {
            timer.map(|at| timers.remove(&(at, place)));
            session.timer.map(|at| timers.insert((at, place)));
        }
        if session.connected && !was_connected {
            order.remove(&(false, session.used));
            order.insert((true, session.used), place);
            counters.handshakes += 1;
            for tell in session.waiting.drain(..) {
                let _ = tell.send(Ok(session.peer));
            }
        }
        let keys_differ = cookies.is_some() && !session.connected && session.seen.all();
        match next {
            Next::Stays | Next::Fails(_) if keys_differ => {
                self.fail(place, DECRYPT_ERROR, &Refused::Alert(DECRYPT_ERROR));
            }
            Next::Stays => {}
            Next::Closed => {
                self.counters.closed_by_peer += 1;
                self.close(now, place);
            }
            Next::Fails(why) => self.fail(place, HANDSHAKE_FAILURE, &why),
        }
    }

    /// A session has come to a bad end.
    fn fail(&mut self, place: Remote, alert: u8, why: &Refused) {
        let Some(session) = self.sessions.get(&place) else { return };
        if !session.connected {
            self.counters.handshakes_failed += 1;
            if self.cookies.is_some() && !matches!(why, Refused::TimedOut) {
                self.counters.alerts_sent += 1;
                // Fatal, in a record that is not sealed: there are no keys. Its number is one that no flight reaches.
                let record = [21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 2, 2, alert];
                self.ready.bytes.extend_from_slice(&record);
                self.ready.push(session.path);
            }
        }
        self.remove(place, why);
    }

    /// Closes a session, and says so to its peer.
    fn close(&mut self, now: Instant, place: Remote) {
        let Self { sessions, ready, buffer, .. } = self;
        if let Some(session) = sessions.get_mut(&place)
            && session.connected
        {
            let _ = catch_unwind(AssertUnwindSafe(|| {
                let closed = session.library.handle_timeout(now).and_then(|()| session.library.close());
                session.take_output(ready, None, buffer);
                closed
            }));
        }
        self.remove(place, &Refused::GivenUp);
    }

    fn remove(&mut self, place: Remote, why: &Refused) {
        let Some(session) = self.sessions.remove(&place) else { return };
        self.order.remove(&(session.connected, session.used));
        if let Some(at) = session.timer {
            self.timers.remove(&(at, place));
        }
        for tell in session.waiting {
            let _ = tell.send(Err(why.clone()));
        }
    }

    /// The session that was not used for longest, and when it was.
    fn longest_unused(&self) -> Option<(Remote, Instant)> {
        let (_, place) = self.order.range((true, 0)..).next()?;
        self.sessions.get(place).map(|session| (*place, session.used_at))
    }

    fn flush(&mut self, socket: &Socket) {
        send_singly(socket, &mut self.ready);
    }
}

impl Session {
    /// Takes the library's output: records into `ready`, datagrams for the endpoint into `arrived`.
    fn take_output(
        &mut self,
        ready: &mut Outgoing,
        mut arrived: Option<&mut Outgoing>,
        buffer: &mut Vec<u8>,
    ) -> Next {
        let mut next = Next::Stays;
        loop {
            match self.library.poll_output(buffer) {
                Output::Packet(record) if ready.len() < MAX_READY => {
                    ready.bytes.extend_from_slice(record);
                    ready.push(self.path);
                }
                Output::ApplicationData(bytes) => {
                    if let Some(arrived) = &mut arrived {
                        arrived.bytes.extend_from_slice(bytes);
                        arrived.push(self.peer);
                    }
                }
                Output::BufferTooSmall { needed } => buffer.resize(needed, 0),
                Output::Connected => self.connected = true,
                Output::CloseNotify => next = Next::Closed,
                Output::Timeout(at) => {
                    self.timer = Some(at);
                    return next;
                }
                _ => {}
            }
        }
    }
}

/// The carrier of an endpoint whose datagrams are the plaintext of records.
pub(crate) struct Sealed {
    sessions: Arc<Sessions>,
    buffer: Box<[u8]>,
    arrived: Outgoing,
}

impl Sealed {
    pub(crate) fn new(sessions: Arc<Sessions>) -> Self {
        Self { sessions, buffer: vec![0; MAX_DATAGRAM + OVERHEAD + 1].into(), arrived: Outgoing::default() }
    }
}

impl Carrier for Sealed {
    fn receive(&mut self, socket: &Socket, mut each: impl FnMut(Remote, &[u8])) -> io::Result<Received> {
        let (len, from) = socket.receive(&mut self.buffer)?;
        let fits = len < self.buffer.len();
        if fits {
            self.sessions.open(socket, from, &self.buffer[..len], &mut self.arrived);
            while let Some((from, bytes)) = self.arrived.get(0) {
                each(from, bytes);
                self.arrived.advance(1);
            }
        }
        Ok(Received { more: true, truncated: u64::from(!fits) })
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
