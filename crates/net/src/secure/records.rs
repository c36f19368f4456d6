//! The transfer of an endpoint's datagrams through DTLS sessions.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::table::{OVERHEAD, Sessions};
use crate::address::Remote;
use crate::datagram::io::{DatagramIo, MAX_DATAGRAM, Outgoing, Reception, receive_singly};
use crate::datagram::socket::Socket;
use crate::lock::lock;

/// Moves the datagrams of an endpoint in the records of DTLS sessions.
pub(crate) struct Sealed {
    sessions: Arc<Mutex<Sessions>>,
    buffer: Box<[u8]>,
    arrived: Outgoing,
}

impl Sealed {
    pub(crate) fn over(sessions: &Arc<Mutex<Sessions>>) -> Self {
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
            let mut sessions = lock(sessions);
            sessions.open(from, record, arrived);
            sessions.flush(socket);
            drop(sessions);
            while let Some((from, bytes)) = arrived.get(0) {
                each(from, false, bytes);
                arrived.advance(1);
            }
        })
    }

    fn send(&mut self, socket: &Socket, outgoing: &mut Outgoing) {
        lock(&self.sessions).send(socket, outgoing);
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
