//! The handshake of a client that may replace a session in which the server no longer answers.
//!
//! The handshake runs beside the session, which stays in use until the handshake is complete. So neither loss nor a
//! forged datagram ends a session. The server's first answer to the handshake is delayed by [`GRACE`], because the next
//! record of a client makes the server forget the old session (RFC 6347 §4.2.8). If the server sends something in the
//! old session by then, the handshake is dropped.

use std::time::{Duration, Instant};

use super::{Remote, Sessions, key};
use crate::Refused;
use crate::secure::doubt::is_confirmable;
use crate::secure::session::{FirstAnswer, MAX_HELD};

/// The time in which a server that answers a handshake may still answer in the old session. Servers of this crate acknowledge
/// within 0.2 s.
const GRACE: Duration = Duration::from_millis(500);

/// Returns the slot of the handshake that may replace the session in this slot.
pub(super) fn beside(place: Remote) -> Remote {
    Remote { local: 1, ..place }
}

/// Returns whether a datagram from a server belongs to a handshake in progress beside a session: it begins with a handshake
/// record, or with an unencrypted alert.
fn is_of_handshake(datagram: &[u8]) -> bool {
    matches!(datagram, [20 | 22, ..] | [21, _, _, 0, 0, ..])
}

impl Sessions {
    /// Encrypts a client's datagram. Without a session, the datagram waits for the handshake. If the server leaves
    /// copies of a message unanswered, another handshake begins.
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
        // If the server has lost the session, messages that it has to answer are sent again in the new one.
        if bytes.first().is_some_and(|&first| is_confirmable(first)) && self.by_peer.contains_key(&trial) {
            self.hold(trial, bytes);
        }
    }

    /// Queues a datagram until a handshake is complete.
    fn hold(&mut self, place: Remote, bytes: &[u8]) {
        match self.by_peer.get_mut(&place).map(|session| &mut session.held) {
            // The copies of a message are equal, and the server needs one of them.
            Some(held) if held.iter().any(|other| other == bytes) => {}
            Some(held) if held.len() < MAX_HELD => held.push(bytes.to_vec()),
            _ => self.counters.unsent += 1,
        }
    }

    /// Returns the slot of the session or handshake that a datagram from a server belongs to.
    pub(super) fn place_of(&self, place: Remote, datagram: &[u8]) -> Remote {
        let trial = beside(place);
        if is_of_handshake(datagram) && self.by_peer.contains_key(&trial) { trial } else { place }
    }

    /// Keeps a server's first answer to a handshake beside a session, until the answer's delay has passed. Drops
    /// further answers meanwhile, because the server will repeat them. Returns whether the datagram was kept or
    /// dropped.
    pub(super) fn keep_first_answer(&mut self, now: Instant, place: Remote, datagram: &[u8]) -> bool {
        let Some(session) = self.by_peer.get_mut(&place) else { return false };
        match session.first_answer {
            FirstAnswer::Taken => return false,
            FirstAnswer::Kept { .. } => return true,
            FirstAnswer::Awaited => {}
        }
        session.first_answer = FirstAnswer::Kept { until: now + GRACE, datagram: datagram.to_vec() };
        // The library is not shown the answer yet. This only sets the timer for the moment at which it will be.
        self.drive(now, place, None, |session| session.library.handle_timeout(now));
        true
    }

    /// Records that a server sent something in a session. A handshake beside it is dropped, unless the handshake has
    /// advanced so far that the server may have forgotten the session. Then only the datagrams queued for the handshake
    /// are dropped.
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

    /// Sends the datagrams queued for a client's session, which is now open. If the session was opened beside another, it
    /// replaces the other.
    pub(super) fn established(&mut self, now: Instant, place: Remote) {
        let Some(session) = self.by_peer.get_mut(&place) else { return };
        let (held, peer) = (std::mem::take(&mut session.held), session.peer);
        if place != key(peer) {
            self.counters.lost += 1;
            // Read before the removal, which moves the new session into the slot of the old one.
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

    /// Moves the session or handshake beside this slot into this slot, if there is one.
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
