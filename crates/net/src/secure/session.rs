//! A DTLS session, or the handshake that may become one.

use std::sync::Arc;
use std::time::Instant;

use dimpl::Output;
use tokio::sync::oneshot;

use super::doubt::Doubt;
use crate::Refused;
use crate::address::Remote;
use crate::datagram::io::OutgoingDatagrams;
use crate::identity::Identity;

/// The number of records that are queued while the socket takes none. Further ones are dropped.
pub(crate) const MAX_READY: usize = 1_024;

/// The number of datagrams that wait for the end of a handshake. Further ones are dropped, and the endpoint repeats them.
pub(super) const MAX_HELD: usize = 64;

/// A session or handshake.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) library: dimpl::Dtls,
    /// The destination of its datagrams.
    pub(crate) path: Remote,
    /// The endpoint's name for its peer. A server's endpoint has a new name for each session, so that what it remembers of
    /// one session does not affect another (RFC 7252 §9.1.1).
    pub(crate) peer: Remote,
    /// The client's random.
    pub(crate) random: Vec<u8>,
    pub(crate) connected: bool,
    /// The identity that the peer of a server claims. Completing the handshake proves it.
    pub(crate) identity: Option<Arc<Identity>>,
    /// Set if the server has no key for that identity.
    pub(crate) is_unknown: bool,
    /// Its key in the order of the sessions, together with `connected`.
    pub(crate) used: u64,
    pub(crate) used_at: Instant,
    pub(crate) timer: Option<Instant>,
    pub(crate) seen: ClientFlight,
    /// A client's doubt whether the server still knows the session.
    pub(super) doubt: Doubt,
    /// The datagrams that are sent when the handshake is over.
    pub(super) held: Vec<Vec<u8>>,
    pub(super) first_answer: FirstAnswer,
    /// The tasks that wait for the end of the handshake.
    pub(crate) waiting: Vec<oneshot::Sender<Result<Remote, Refused>>>,
}

impl Session {
    /// Calls the library at a deadline, and hands it the answer whose time has come.
    pub(crate) fn wake(&mut self, now: Instant) -> Result<(), dimpl::Error> {
        self.library.handle_timeout(now)?;
        if !matches!(self.first_answer, FirstAnswer::Kept { until, .. } if until <= now) {
            return Ok(());
        }
        match std::mem::replace(&mut self.first_answer, FirstAnswer::Taken) {
            FirstAnswer::Kept { datagram, .. } => self.library.handle_packet(&datagram),
            _ => Ok(()),
        }
    }

    /// Takes the output of the library. Appends records to `ready`, and datagrams for the endpoint to `arrived`.
    pub(crate) fn take_output(
        &mut self,
        ready: &mut OutgoingDatagrams,
        mut arrived: Option<&mut OutgoingDatagrams>,
        buffer: &mut Vec<u8>,
    ) -> SessionProgress {
        let mut next = SessionProgress::Continues;
        loop {
            match self.library.poll_output(buffer) {
                Output::Packet(record) if ready.len() < MAX_READY => {
                    ready.add(self.path, record);
                }
                Output::ApplicationData(bytes) => {
                    if let Some(arrived) = &mut arrived {
                        arrived.add(self.peer, bytes);
                    }
                }
                Output::BufferTooSmall { needed } => buffer.resize(needed, 0),
                Output::Connected => self.connected = true,
                Output::CloseNotify => next = SessionProgress::Closed,
                Output::Timeout(at) => {
                    self.timer = Some(match self.first_answer {
                        FirstAnswer::Kept { until, .. } => at.min(until),
                        _ => at,
                    });
                    return next;
                }
                // A record beyond the bound is dropped, like one that the network loses.
                _ => {}
            }
        }
    }
}

/// The server's first answer to a handshake that may replace a session. The library gets it after a moment only. Its reaction
/// may make the server forget the old session, in which an answer may be on its way.
#[derive(Debug, Default)]
pub(super) enum FirstAnswer {
    Awaited,
    Kept {
        until: Instant,
        datagram: Vec<u8>,
    },
    /// The library has it, or no old session needs the wait.
    #[default]
    Taken,
}

/// The result of an event for a session.
pub(crate) enum SessionProgress {
    Continues,
    /// The peer has closed it.
    Closed,
    Failed(Refused),
}

/// The last messages of a client in a handshake that have arrived. If all have arrived and the server cannot decrypt them,
/// the keys differ.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientFlight {
    key_exchange: bool,
    change: bool,
    finished: bool,
}

impl ClientFlight {
    pub(crate) fn see(&mut self, mut datagram: &[u8]) {
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

    pub(crate) fn all(self) -> bool {
        self.key_exchange && self.change && self.finished
    }
}
