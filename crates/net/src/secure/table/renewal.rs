//! The handshake of a client that may replace a session which its server no longer answers in.
//!
//! It runs beside the session, which works until the other one is complete. So neither loss nor a forged datagram costs a
//! session. The server's first answer to it is kept for [`GRACE`], because what a client sends next makes the server forget the
//! old session (RFC 6347 §4.2.8). If the server is heard in the old session by then, the handshake is dropped.

use std::time::{Duration, Instant};

use super::{Remote, Sessions, key};
use crate::Refused;
use crate::secure::doubt::is_confirmable;
use crate::secure::session::{FirstAnswer, MAX_HELD};

/// The time that a server which answers a handshake has to answer in the old session. Servers of this crate acknowledge within
/// 0.2 s.
const GRACE: Duration = Duration::from_millis(500);

/// Returns the place of the handshake that may replace the session at this one.
pub(super) fn beside(place: Remote) -> Remote {
    Remote { local: 1, ..place }
}

/// Returns whether a datagram from a server belongs to a handshake, if one is under way beside a session: it begins with a
/// record of a handshake, or with an alert in the clear.
fn is_of_handshake(datagram: &[u8]) -> bool {
    matches!(datagram, [20 | 22, ..] | [21, _, _, 0, 0, ..])
}

impl Sessions {
    /// Seals a client's datagram. Without a session it waits for the handshake. Where the server leaves copies unanswered, another
    /// handshake begins.
    pub(super) fn seal_for_server(&mut self, now: Instant, to: Remote, bytes: &[u8]) {
        let (place, trial) = (key(to), beside(key(to)));
        if !self.by_peer.contains_key(&place) {
            // If the handshake ends at once, the datagram is counted as unsent.
            let _ = self.begin(now, place, to);
        }
        let in_doubt = match self.by_peer.get_mut(&place) {
            Some(session) if session.connected => session.doubt.note_sent(bytes),
            _ => return self.hold(place, bytes),
        };
        self.put_in_record(now, place, bytes);
        if in_doubt && !self.by_peer.contains_key(&trial) {
            let session = self.by_peer.get_mut(&place);
            if session.is_some_and(|session| session.doubt.begin(now)) {
                let _ = self.begin(now, trial, to);
                match self.by_peer.get_mut(&trial) {
                    Some(session) => session.first_answer = FirstAnswer::Awaited,
                    None => return,
                }
                if !self.by_peer.contains_key(&place) {
                    // The session has left for its own successor.
                    self.promote(place);
                }
            }
        }
        if bytes.first().is_some_and(|&first| is_confirmable(first)) && self.by_peer.contains_key(&trial) {
            self.hold(trial, bytes);
        }
    }

    /// Keeps a datagram until a handshake is over.
    fn hold(&mut self, place: Remote, bytes: &[u8]) {
        match self.by_peer.get_mut(&place).map(|session| &mut session.held) {
            Some(held) if held.iter().any(|other| other == bytes) => {}
            Some(held) if held.len() < MAX_HELD => held.push(bytes.to_vec()),
            _ => self.counters.unsent += 1,
        }
    }

    /// Returns the place of the session or handshake that a datagram from a server belongs to.
    pub(super) fn place_of(&self, place: Remote, datagram: &[u8]) -> Remote {
        let trial = beside(place);
        if is_of_handshake(datagram) && self.by_peer.contains_key(&trial) { trial } else { place }
    }

    /// Keeps a server's first answer to a handshake beside a session, and drops further ones meanwhile, which the server will repeat.
    /// Returns whether this is one.
    pub(super) fn keep_first_answer(&mut self, now: Instant, place: Remote, datagram: &[u8]) -> bool {
        let Some(session) = self.by_peer.get_mut(&place) else { return false };
        match session.first_answer {
            FirstAnswer::Taken => return false,
            FirstAnswer::Kept { .. } => return true,
            FirstAnswer::Awaited => {}
        }
        session.first_answer = FirstAnswer::Kept { until: now + GRACE, datagram: datagram.to_vec() };
        self.drive(now, place, None, |session| session.library.handle_timeout(now));
        true
    }

    /// Notes that a server was heard in a session. A handshake beside it is dropped, unless it has gone so far that the server may
    /// have forgotten the session. Then only the datagrams that wait for it are dropped.
    pub(super) fn note_heard(&mut self, place: Remote) {
        if !self.by_peer.get_mut(&place).is_some_and(|session| session.doubt.note_heard()) {
            return;
        }
        let trial = beside(place);
        match self.by_peer.get_mut(&trial) {
            Some(session) if matches!(session.first_answer, FirstAnswer::Taken) => session.held.clear(),
            _ => self.remove(trial, &Refused::GivenUp),
        }
    }

    /// Sends the datagrams that have waited for a client's session, which has begun. If the session began beside another, it takes
    /// the other's place.
    pub(super) fn established(&mut self, now: Instant, place: Remote) {
        let Some(session) = self.by_peer.get_mut(&place) else { return };
        let (held, peer) = (std::mem::take(&mut session.held), session.peer);
        if place != key(peer) {
            self.counters.lost += 1;
            let doubt = self.by_peer.get_mut(&key(peer)).map(|old| old.doubt.handed_on());
            self.remove(key(peer), &Refused::GivenUp);
            if let (Some(session), Some(doubt)) = (self.by_peer.get_mut(&key(peer)), doubt) {
                session.doubt = doubt;
            }
        }
        self.begun = Some(peer);
        for datagram in held {
            self.seal(now, peer, &datagram);
        }
    }

    /// Puts the session or handshake beside this place into it.
    pub(super) fn promote(&mut self, place: Remote) {
        let trial = beside(place);
        let Some(session) = self.by_peer.remove(&trial) else { return };
        self.order.insert((session.connected, session.used), place);
        if let Some(at) = session.timer {
            self.timers.remove(&(at, trial));
            self.timers.insert((at, place));
        }
        self.by_peer.insert(place, session);
    }
}
