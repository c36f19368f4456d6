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

/// The maximum number of records that are queued while the socket accepts none. Further records are dropped.
pub(crate) const MAX_READY: usize = 1_024;

/// The maximum number of datagrams that are queued during a handshake. Further datagrams are dropped, and the endpoint
/// retransmits them.
pub(super) const MAX_HELD: usize = 64;

/// A DTLS session, or the handshake that may become one.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) library: dimpl::Dtls,
    /// The address that the session's records are sent to.
    pub(crate) path: Remote,
    /// The [`Remote`] by which the endpoint knows the peer. In a server each session has a different `Remote`, so that
    /// the state of one session does not affect another (RFC 7252 §9.1.1).
    pub(crate) peer: Remote,
    /// The random of the ClientHello, by which a server recognises copies of it.
    pub(crate) random: Vec<u8>,
    pub(crate) connected: bool,
    /// The identity that the peer of a server claims. A completed handshake proves it.
    pub(crate) identity: Option<Arc<Identity>>,
    /// Set if the server has no key for the claimed identity.
    pub(crate) is_unknown: bool,
    /// The total number of uses of all sessions, counted up to the last use of this session. Sessions are sorted by
    /// `connected`, and then by `used`.
    pub(crate) used: u64,
    pub(crate) used_at: Instant,
    pub(crate) timer: Option<Instant>,
    pub(crate) seen: ClientFlight,
    /// A client's record of unanswered messages in the session.
    pub(super) doubt: Doubt,
    /// The datagrams to be sent after the handshake.
    pub(super) held: Vec<Vec<u8>>,
    pub(super) first_answer: FirstAnswer,
    /// The tasks that wait for the end of the handshake.
    pub(crate) waiting: Vec<oneshot::Sender<Result<Remote, Refused>>>,
}

impl Session {
    /// Calls the library at a deadline. Also passes it the server's delayed first answer, if that is due.
    pub(crate) fn wake(&mut self, now: Instant) -> Result<(), dimpl::Error> {
        self.library.handle_timeout(now)?;
        if !matches!(self.first_answer, FirstAnswer::Kept { until, .. } if until <= now) {
            return Ok(());
        }
        // From now on the server may have forgotten the old session, so the handshake must go on.
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
            // The library has to be asked until it names its next timeout.
            match self.library.poll_output(buffer) {
                Output::Packet(record) if ready.len() < MAX_READY => {
                    ready.add(self.path, record);
                }
                Output::ApplicationData(bytes) => {
                    // A session that is being closed has nobody left to read its data.
                    if let Some(arrived) = &mut arrived {
                        arrived.add(self.peer, bytes);
                    }
                }
                Output::BufferTooSmall { needed } => buffer.resize(needed, 0),
                Output::Connected => self.connected = true,
                Output::CloseNotify => next = SessionProgress::Closed,
                Output::Timeout(at) => {
                    // An answer that is kept has a deadline of its own, which may be the earlier one.
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

/// The state of the server's first answer to a handshake that may replace a session. The answer is kept for a moment
/// before the library gets it: the library's next record makes the server forget the old session, in which a message of
/// the server may still be on its way.
#[derive(Debug, Default)]
pub(super) enum FirstAnswer {
    Awaited,
    Kept {
        until: Instant,
        datagram: Vec<u8>,
    },
    /// The library has the answer, or no old session requires the delay.
    #[default]
    Taken,
}

/// The result of an event for a session.
pub(crate) enum SessionProgress {
    Continues,
    /// The peer has closed the session.
    Closed,
    Failed(Refused),
}

/// Records which of a client's last messages in a handshake have arrived. If all have arrived and the server cannot
/// decrypt them, the keys differ.
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
                // Finished is the first encrypted message, in epoch 1.
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
