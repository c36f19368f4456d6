//! The DTLS sessions of one endpoint, by the address of the peer.

mod acceptance;
mod renewal;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::cookie::Cookies;
use super::doubt::Doubt;
use super::dtls::{Dtls, take_resolved};
use super::session::{ClientFlight, FirstAnswer, Session, SessionProgress};
use crate::address::{Remote, network};
use crate::datagram::io::{MAX_DATAGRAM, OutgoingDatagrams, send_all};
use crate::datagram::socket::Socket;
use crate::identity::Identity;
use crate::{DtlsCounters, Refused, log};

/// The maximum number of bytes that a record adds to a datagram: header, explicit nonce, tag.
pub(crate) const OVERHEAD: usize = 13 + 8 + 16;

/// The alerts of a server whose handshake fails (RFC 5246 §7.2).
const HANDSHAKE_FAILURE: u8 = 40;
const DECRYPT_ERROR: u8 = 51;

/// The longest time to a [deadline](Sessions::deadline), because a timer of tokio that is set for years ahead expires at
/// once.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The sessions of one endpoint, handshakes included.
#[derive(Debug)]
pub(crate) struct Sessions {
    setup: Dtls,
    library: Arc<dimpl::Config>,
    /// The cookies of a server. `None` for a client.
    cookies: Option<Cookies>,
    by_peer: HashMap<Remote, Session>,
    /// The number of sessions that are handshakes.
    handshakes: usize,
    /// The sessions in the sequence in which they are dropped for others: handshakes first, then the least recently used.
    order: BTreeMap<(bool, u64), Remote>,
    /// The timers of sessions, for repeated flights and for giving up.
    timers: BTreeSet<(Instant, Remote)>,
    /// The number of uses so far, which orders sessions by their last use.
    uses: u64,
    /// The number of sessions that a server has accepted, modulo 65,536. The endpoint distinguishes their peers by it.
    accepted: u16,
    /// The server with which a client has just opened a session, until [`open`](Self::open) returns it.
    begun: Option<Remote>,
    /// Records to be sent.
    ready: OutgoingDatagrams,
    counters: DtlsCounters,
    /// The buffer for the output of the library.
    buffer: Vec<u8>,
}

/// Returns the key of the session with a peer, whatever local address the peer uses.
fn key(remote: Remote) -> Remote {
    Remote { local: 0, ..remote }
}

impl Sessions {
    pub(crate) fn new(setup: &Dtls) -> io::Result<Self> {
        let cookies = setup.is_server().then(|| Cookies::new(Instant::now()));
        Ok(Self {
            setup: setup.clone(),
            library: setup.build()?,
            cookies,
            by_peer: HashMap::new(),
            handshakes: 0,
            order: BTreeMap::new(),
            timers: BTreeSet::new(),
            uses: 0,
            accepted: 0,
            begun: None,
            ready: OutgoingDatagrams::default(),
            counters: DtlsCounters::default(),
            buffer: vec![0; MAX_DATAGRAM + OVERHEAD],
        })
    }

    /// Returns the number of sessions, handshakes included.
    pub(crate) fn len(&self) -> usize {
        self.by_peer.len()
    }

    pub(crate) fn is_server(&self) -> bool {
        self.cookies.is_some()
    }

    pub(crate) fn counters(&self) -> DtlsCounters {
        self.counters
    }

    /// Encrypts datagrams from the front of `outgoing`, and sends the records as far as the system accepts them. Returns
    /// whether the [deadline](Self::deadline) is now earlier, because a handshake has begun.
    pub(crate) fn send(&mut self, socket: &Socket, outgoing: &mut OutgoingDatagrams) -> bool {
        let now = Instant::now();
        let before = self.timers.first().map(|&(at, _)| at);
        self.flush(socket);
        // One datagram at a time, and only while the socket takes records: others wait unsealed.
        while let Some((to, bytes)) = outgoing.get(0)
            && self.ready.is_empty()
        {
            self.seal(now, to, bytes);
            outgoing.advance(1);
            self.flush(socket);
        }
        outgoing.failed.append(&mut self.ready.failed);
        self.timers.first().is_some_and(|&(at, _)| before.is_none_or(|before| at < before))
    }

    /// Returns the [`Remote`] by which the endpoint knows this server, if there is a session.
    pub(crate) fn peer(&self, to: Remote) -> Option<Remote> {
        self.by_peer.get(&key(to)).filter(|session| session.connected).map(|session| session.peer)
    }

    /// Starts a client's handshake with this server, unless one is in progress. The returned receiver gets the
    /// [`Remote`] by which the endpoint knows the server, or the reason why the handshake failed. Call it only if
    /// [`peer`](Self::peer) found no session.
    ///
    /// # Errors
    /// The reason why no handshake can begin.
    pub(crate) fn handshake(
        &mut self,
        socket: &Socket,
        to: Remote,
    ) -> Result<oneshot::Receiver<Result<Remote, Refused>>, Refused> {
        // One handshake serves all tasks that wait for this server.
        if !self.by_peer.contains_key(&key(to)) {
            self.begin(Instant::now(), key(to), to)?;
        }
        let (tell, connected) = oneshot::channel();
        if let Some(session) = self.by_peer.get_mut(&key(to)) {
            session.waiting.push(tell);
        }
        self.flush(socket);
        Ok(connected)
    }

    /// Appends the next record to be sent to `buffer`. Returns its destination, or `None` if no record is left.
    pub(super) fn take_record(&mut self, buffer: &mut Vec<u8>) -> Option<Remote> {
        self.ready.take(buffer)
    }

    /// Returns the identity that a server's peer has proved, or `None` if the peer's session has ended.
    pub(crate) fn identity(&self, peer: Remote) -> Option<Arc<Identity>> {
        let session = self.by_peer.get(&key(peer))?;
        // The name of an ended session must not get the identity of a later session from the same address.
        session.identity.clone().filter(|_| session.connected && session.peer == peer)
    }

    /// Ends the handshake with a peer that cannot be reached. A session whose handshake is complete continues.
    pub(crate) fn unreachable(&mut self, to: Remote, error: &io::Error) {
        if self.by_peer.get(&key(to)).is_some_and(|session| !session.connected) {
            self.counters.handshakes_failed += 1;
            self.remove(key(to), &Refused::Unreachable(error.kind()));
        }
    }

    /// Returns when [`expire`](Self::expire) is to be called, or `None` without a session.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let timer = self.timers.first().map(|&(at, _)| at);
        let idle = self.longest_unused().and_then(|(_, at)| at.checked_add(self.setup.idle_timeout));
        Some(timer.into_iter().chain(idle).min()?.min(Instant::now() + DAY))
    }

    /// Repeats the flights of handshakes whose timers have expired, and closes idle sessions. Calls `flush` after each.
    pub(super) fn expire(&mut self, flush: impl Fn(&mut Self)) {
        let now = Instant::now();
        while let Some(&(at, place)) = self.timers.first()
            && at <= now
        {
            self.drive(now, place, None, |session| session.wake(now));
            flush(self);
        }
        while let Some((place, at)) = self.longest_unused()
            && now.saturating_duration_since(at) >= self.setup.idle_timeout
        {
            self.counters.idle += 1;
            self.close(now, place);
            flush(self);
        }
    }

    /// Closes all sessions, and calls `flush` after each.
    pub(super) fn close_each(&mut self, flush: impl Fn(&mut Self)) {
        let now = Instant::now();
        let mut places: Vec<Remote> = self.by_peer.keys().copied().collect();
        // Handshakes beside sessions come first, because they take the place of a session that is closed.
        places.sort_unstable_by_key(|place| place.local == 0);
        for place in places {
            self.close(now, place);
            flush(self);
        }
    }

    /// Handles a received datagram of DTLS records. Decrypted datagrams are appended to `arrived`, and the records that
    /// answer it are queued. Returns the server, if the datagram has completed a client's handshake with it.
    pub(super) fn open(
        &mut self,
        from: Remote,
        datagram: &[u8],
        arrived: &mut OutgoingDatagrams,
    ) -> Option<Remote> {
        if self.cookies.is_some() {
            self.open_of_client(from, datagram, arrived);
            return None;
        }
        let now = Instant::now();
        let place = self.place_of(key(from), datagram);
        if !self.keep_first_answer(now, place, datagram) {
            self.open_in(now, place, datagram, arrived);
        }
        self.begun.take()
    }

    /// Decrypts the records of a datagram in the session or handshake in this slot.
    fn open_in(&mut self, now: Instant, place: Remote, datagram: &[u8], arrived: &mut OutgoingDatagrams) {
        if !self.by_peer.contains_key(&place) {
            self.counters.strays += 1;
            return;
        }
        let before = arrived.len();
        self.drive(now, place, Some(arrived), |session| {
            // The library reads no clock, so it takes its time from this call.
            session.library.handle_timeout(now)?;
            session.library.handle_packet(datagram)
        });
        // Only data that could be opened shows that the peer is there. Anybody can send other records.
        if arrived.len() > before {
            self.touch(now, place);
            self.note_heard(place);
        }
    }

    /// Records that a session was used.
    fn touch(&mut self, now: Instant, place: Remote) {
        let Some(session) = self.by_peer.get_mut(&place) else { return };
        self.uses += 1;
        self.order.remove(&(session.connected, session.used));
        (session.used, session.used_at) = (self.uses, now);
        self.order.insert((session.connected, session.used), place);
    }

    /// Starts a client's handshake with this server, in a free slot.
    fn begin(&mut self, now: Instant, place: Remote, to: Remote) -> Result<(), Refused> {
        if self.cookies.is_some() {
            return Err(Refused::NoKeys);
        }
        let mut library = dimpl::Dtls::new_12_psk(self.library.clone(), now);
        library.set_active(true);
        self.insert(now, place, to, to, library, Vec::new());
        self.drive(now, place, None, |session| session.library.handle_timeout(now));
        Ok(())
    }

    fn insert(
        &mut self,
        now: Instant,
        place: Remote,
        path: Remote,
        peer: Remote,
        library: dimpl::Dtls,
        random: Vec<u8>,
    ) {
        // Others leave before the newcomer is in the tables, so that it cannot be the one that leaves.
        while self.by_peer.len() >= self.setup.sessions() || self.handshakes >= self.setup.handshakes() {
            let Some(leaving) = self.first_to_leave(path) else { break };
            self.counters.evicted += 1;
            self.close(now, leaving);
        }
        // Every session begins as a handshake. `drive` counts it out when it is connected.
        self.handshakes += 1;
        self.uses += 1;
        self.order.insert((false, self.uses), place);
        let session = Session {
            library,
            path,
            peer,
            random,
            connected: false,
            identity: None,
            is_unknown: false,
            used: self.uses,
            used_at: now,
            timer: None,
            seen: ClientFlight::default(),
            doubt: Doubt::default(),
            held: Vec::new(),
            first_answer: FirstAnswer::default(),
            waiting: Vec::new(),
        };
        self.by_peer.insert(place, session);
    }

    /// Chooses the session to drop for a session with `newcomer`. If the newcomer's network has an eighth of the
    /// handshakes, the oldest handshake of this network is dropped, so that one network cannot displace others.
    /// Otherwise the oldest handshake is dropped, or without handshakes the least recently used session.
    fn first_to_leave(&self, newcomer: Remote) -> Option<Remote> {
        let source = network(newcomer.ip);
        let handshakes = self.order.range(..(true, 0)).map(|(_, &place)| place);
        let mut own = handshakes.filter(|place| network(place.ip) == source);
        let oldest = own.next();
        let has_its_share = own.count() >= self.setup.handshakes() / 8;
        let first = self.order.first_key_value().map(|(_, &place)| place);
        oldest.filter(|_| has_its_share).or(first)
    }

    /// Encrypts a datagram. A server drops it if the session has ended.
    pub(super) fn seal(&mut self, now: Instant, to: Remote, bytes: &[u8]) {
        if self.cookies.is_none() {
            return self.seal_for_server(now, to, bytes);
        }
        let session = self.by_peer.get(&key(to));
        if session.is_some_and(|session| session.connected && session.peer == to) {
            self.put_in_record(now, key(to), bytes);
        } else {
            self.counters.unsent += 1;
        }
    }

    /// Encrypts a datagram in the session in this slot.
    fn put_in_record(&mut self, now: Instant, place: Remote, bytes: &[u8]) {
        self.touch(now, place);
        self.drive(now, place, None, |session| {
            session.library.handle_timeout(now)?;
            session.library.send_application_data(bytes).map(drop)
        });
    }

    /// Calls `act` with a session, and handles the output of the library.
    fn drive(
        &mut self,
        now: Instant,
        place: Remote,
        arrived: Option<&mut OutgoingDatagrams>,
        act: impl FnOnce(&mut Session) -> Result<(), dimpl::Error>,
    ) {
        let Self { by_peer, handshakes, order, timers, ready, counters, buffer, cookies, .. } = self;
        let Some(session) = by_peer.get_mut(&place) else { return };
        let (was_connected, timer) = (session.connected, session.timer);
        // The library may have looked a key up for another session since the last call.
        take_resolved();
        // If a peer makes the library panic, only its session ends.
        let next = catch_unwind(AssertUnwindSafe(|| {
            let done = act(session);
            let next = session.take_output(ready, arrived, buffer);
            done.map_or_else(|error| SessionProgress::Failed(error.into()), |()| next)
        }));
        let next = next
            .unwrap_or_else(|_| SessionProgress::Failed(Refused::Protocol("the library panicked".into())));
        if let Some((identity, known)) = take_resolved() {
            session.is_unknown = !known;
            session.identity = Some(Arc::new(Identity::Psk(identity)));
        }
        // The table of timers follows the session, so that the next deadline is found without a search.
        if session.timer != timer {
            timer.map(|at| timers.remove(&(at, place)));
            session.timer.map(|at| timers.insert((at, place)));
        }
        let is_new = session.connected && !was_connected;
        // A session that has become connected leaves after all handshakes.
        if is_new {
            order.remove(&(false, session.used));
            order.insert((true, session.used), place);
            *handshakes -= 1;
            counters.handshakes += 1;
            log::handshake("coaps", session.path.address(), session.identity.as_deref());
            for tell in session.waiting.drain(..) {
                // The task may have stopped waiting.
                let _ = tell.send(Ok(session.peer));
            }
        }
        // All messages of the client have come, and the library could not open the last one.
        let keys_differ = cookies.is_some() && !session.connected && session.seen.all();
        match next {
            SessionProgress::Continues | SessionProgress::Failed(_) if keys_differ => {
                self.fail(place, DECRYPT_ERROR, &Refused::Alert(DECRYPT_ERROR));
            }
            SessionProgress::Continues => {}
            SessionProgress::Closed => {
                self.counters.closed_by_peer += 1;
                self.close(now, place);
            }
            SessionProgress::Failed(why) => self.fail(place, HANDSHAKE_FAILURE, &why),
        }
        // Last, because the datagrams that waited are sent in this session, by another call of this function.
        if is_new && self.cookies.is_none() {
            self.established(now, place);
        }
    }

    /// Ends a failed session. If it was still a handshake, a server sends the client this alert.
    fn fail(&mut self, place: Remote, alert: u8, why: &Refused) {
        let Some(session) = self.by_peer.get(&place) else { return };
        if !session.connected {
            self.counters.handshakes_failed += 1;
            // A client's requests return the failure, so only a server logs it.
            if self.cookies.is_some() {
                let reason: &dyn std::fmt::Display = match why {
                    _ if session.is_unknown => &"unknown identity",
                    Refused::Alert(DECRYPT_ERROR) => &"wrong key",
                    why => why,
                };
                log::handshake_failed("coaps", session.path.address(), session.identity.as_deref(), reason);
            }
            // A client that did not answer in time is not there to read an alert.
            if self.cookies.is_some() && !matches!(why, Refused::TimedOut) {
                self.counters.alerts_sent += 1;
                // The alert is fatal, and its record is not encrypted, because there are no keys yet. Its sequence number is
                // beyond the flights' numbers.
                let record = [21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 2, 2, alert];
                self.ready.add(session.path, &record);
            }
        }
        self.remove(place, why);
    }

    /// Closes a session, and sends its peer a close_notify alert.
    fn close(&mut self, now: Instant, place: Remote) {
        let Self { by_peer, ready, buffer, .. } = self;
        if let Some(session) = by_peer.get_mut(&place)
            && session.connected
        {
            // Closing runs the library, too, and a panic there must not end the thread.
            let _ = catch_unwind(AssertUnwindSafe(|| {
                let closed = session.library.handle_timeout(now).and_then(|()| session.library.close());
                session.take_output(ready, None, buffer);
                closed
            }));
        }
        self.remove(place, &Refused::GivenUp);
    }

    fn remove(&mut self, place: Remote, why: &Refused) {
        let Some(session) = self.by_peer.remove(&place) else { return };
        self.order.remove(&(session.connected, session.used));
        self.handshakes -= usize::from(!session.connected);
        // The memory of a table that was large once is given back.
        if self.by_peer.capacity() > 1_024 + 4 * self.by_peer.len() {
            self.by_peer.shrink_to(2 * self.by_peer.len());
        }
        if let Some(at) = session.timer {
            self.timers.remove(&(at, place));
        }
        for tell in session.waiting {
            let _ = tell.send(Err(why.clone()));
        }
        if place.local == 0 {
            self.counters.unsent += session.held.len() as u64;
            self.promote(place);
        }
    }

    /// Returns the least recently used session, and when it was last used. Handshakes do not count.
    fn longest_unused(&self) -> Option<(Remote, Instant)> {
        let (_, place) = self.order.range((true, 0)..).next()?;
        self.by_peer.get(place).map(|session| (*place, session.used_at))
    }

    /// Sends the queued records as far as the system accepts them.
    pub(super) fn flush(&mut self, socket: &Socket) {
        send_all(socket, &mut self.ready);
    }
}
