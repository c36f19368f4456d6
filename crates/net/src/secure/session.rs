//! A DTLS session, or the handshake that is to become one.

use std::sync::Arc;
use std::time::Instant;

use dimpl::Output;
use tokio::sync::oneshot;

use crate::Refused;
use crate::address::Remote;
use crate::datagram::io::Outgoing;
use crate::identity::Identity;

/// Datagrams kept while the system takes none; beyond, they are lost as on any path.
pub(crate) const MAX_READY: usize = 1_024;

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) library: dimpl::Dtls,
    /// The destination of its datagrams.
    pub(crate) path: Remote,
    /// The name of its peer to the endpoint. A server's endpoint has another name for each session: what it remembers of one
    /// concerns no other (RFC 7252 §9.1.1).
    pub(crate) peer: Remote,
    /// The client's random.
    pub(crate) random: Vec<u8>,
    pub(crate) connected: bool,
    /// The identity that the peer of a server claims. The end of the handshake proves it.
    pub(crate) identity: Option<Arc<Identity>>,
    /// Set if that identity has no key here.
    pub(crate) is_unknown: bool,
    /// Its place in the order, beside `connected`.
    pub(crate) used: u64,
    pub(crate) used_at: Instant,
    pub(crate) timer: Option<Instant>,
    pub(crate) seen: ClientFlight,
    /// The tasks that wait for the end of the handshake.
    pub(crate) waiting: Vec<oneshot::Sender<Result<Remote, Refused>>>,
}

impl Session {
    /// Takes the library's output: records into `ready`, datagrams for the endpoint into `arrived`.
    pub(crate) fn take_output(
        &mut self,
        ready: &mut Outgoing,
        mut arrived: Option<&mut Outgoing>,
        buffer: &mut Vec<u8>,
    ) -> Progress {
        let mut next = Progress::Continues;
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
                Output::CloseNotify => next = Progress::Closed,
                Output::Timeout(at) => {
                    self.timer = Some(at);
                    return next;
                }
                _ => {}
            }
        }
    }
}

/// The future of a session.
pub(crate) enum Progress {
    Continues,
    /// The peer has closed it.
    Closed,
    Failed(Refused),
}

/// The messages of a client that end its part of a handshake. If all have come and the server cannot read them, the keys
/// differ.
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
