//! The transfer of an endpoint's datagrams through DTLS sessions.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::table::{OVERHEAD, Sessions};
use crate::address::Remote;
use crate::datagram::io::{DatagramIo, MAX_DATAGRAM, OutgoingDatagrams, Reception, receive_singly};
use crate::datagram::socket::Socket;
use crate::lock::lock;

/// The longest datagram that a client accepts over DTLS, in bytes: the content of the largest record (RFC 6347 §4.1). A server
/// accepts no more than over UDP, because the library reserves the longest record for every session (decision 0071).
const ANY_RECORD: usize = 1 << 14;

/// Transfers the datagrams of an endpoint in the records of DTLS sessions.
pub(crate) struct Sealed {
    sessions: Arc<Mutex<Sessions>>,
    buffer: Box<[u8]>,
    arrived: OutgoingDatagrams,
    begun: Option<Remote>,
}

impl Sealed {
    /// Returns a transport that sends and receives datagrams as DTLS records of these sessions. Records that are too long
    /// are counted and dropped, because a truncated record cannot be decrypted.
    pub(crate) fn over(sessions: &Arc<Mutex<Sessions>>) -> Self {
        let longest = if lock(sessions).is_server() { MAX_DATAGRAM } else { ANY_RECORD };
        Self {
            sessions: sessions.clone(),
            // The additional byte shows that a record is too long.
            buffer: vec![0; longest + OVERHEAD + 1].into(),
            arrived: OutgoingDatagrams::default(),
            begun: None,
        }
    }
}

impl DatagramIo for Sealed {
    fn receive(
        &mut self,
        socket: &Socket,
        mut each: impl FnMut(Remote, bool, &[u8]),
    ) -> io::Result<Reception> {
        let Self { sessions, buffer, arrived, begun } = self;
        let longer = receive_singly(socket, buffer, |from, record| {
            let mut sessions = lock(sessions);
            *begun = sessions.open(from, record, arrived);
            sessions.flush(socket);
            // `each` locks the hub, and the lock of a hub is taken before the lock of its sessions.
            drop(sessions);
            while let Some((from, bytes)) = arrived.get(0) {
                each(from, false, bytes);
                arrived.advance(1);
            }
        })?;
        Ok(Reception { more: true, truncated: longer.is_some().into(), ..Reception::default() })
    }

    fn send(&mut self, socket: &Socket, outgoing: &mut OutgoingDatagrams) {
        lock(&self.sessions).send(socket, outgoing);
    }

    fn begun(&mut self) -> Option<Remote> {
        self.begun.take()
    }

    fn deadline(&self) -> Option<Instant> {
        lock(&self.sessions).deadline()
    }

    fn timeout(&mut self, socket: &Socket) {
        lock(&self.sessions).expire(|sessions| sessions.flush(socket));
    }

    fn close(&mut self, socket: &Socket) {
        lock(&self.sessions).close_each(|sessions| sessions.flush(socket));
    }
}
