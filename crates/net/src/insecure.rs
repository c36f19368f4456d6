//! Replaces `secure/` if the crate is built without the feature `tls`. All types here are one type without values. So
//! no other module depends on the feature.

use std::future::Ready;
use std::io;
use std::sync::{Arc, Mutex};

use tokio::net::TcpStream;
use tokio::sync::oneshot;

use crate::address::Remote;
use crate::datagram::io::{DatagramIo, OutgoingDatagrams, Reception};
use crate::datagram::socket::Socket;
use crate::identity::Identity;
use crate::lock::lock;
use crate::stream::ByteStream;
use crate::{DtlsCounters, Refused, TlsError};

/// Whether the crate is built with DTLS and TLS.
pub(crate) const IS_BUILT: bool = false;

/// A type without values, for everything that needs DTLS or TLS.
#[derive(Clone, Debug)]
pub(crate) enum Absent {}

pub(crate) use Absent as Connector;
pub(crate) use Absent as Dtls;
pub(crate) use Absent as Sealed;
pub(crate) use Absent as ServerTls;
pub(crate) use Absent as Sessions;

/// The decrypted stream of a connection, and the client's certificate.
type Accepted = (Box<dyn ByteStream>, Option<Arc<Identity>>);

pub(crate) fn tls_error(_: &io::Error, _: &str) -> Option<TlsError> {
    None
}

impl Absent {
    pub(crate) fn new(dtls: &Dtls) -> io::Result<Self> {
        match *dtls {}
    }

    pub(crate) fn over(sessions: &Arc<Mutex<Sessions>>) -> Self {
        match *lock(sessions) {}
    }

    pub(crate) fn len(&self) -> usize {
        match *self {}
    }

    pub(crate) fn counters(&self) -> DtlsCounters {
        match *self {}
    }

    pub(crate) fn send(&self, _: &Socket, _: &mut OutgoingDatagrams) -> bool {
        match *self {}
    }

    pub(crate) fn peer(&self, _: Remote) -> Option<Remote> {
        match *self {}
    }

    pub(crate) fn handshake(
        &mut self,
        _: &Socket,
        _: Remote,
    ) -> Result<oneshot::Receiver<Result<Remote, Refused>>, Refused> {
        match *self {}
    }

    pub(crate) fn identity(&self, _: Remote) -> Option<Arc<Identity>> {
        match *self {}
    }

    pub(crate) fn unreachable(&self, _: Remote, _: &io::Error) {
        match *self {}
    }

    pub(crate) fn connect(&self, _: &str, _: TcpStream) -> Ready<io::Result<Box<dyn ByteStream>>> {
        match *self {}
    }

    pub(crate) fn accept(&self, _: TcpStream) -> Ready<io::Result<Accepted>> {
        match *self {}
    }
}

impl DatagramIo for Sealed {
    fn receive(&mut self, _: &Socket, _: impl FnMut(Remote, bool, &[u8])) -> io::Result<Reception> {
        match *self {}
    }

    fn send(&mut self, _: &Socket, _: &mut OutgoingDatagrams) {
        match *self {}
    }
}
