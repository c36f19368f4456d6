//! Takes the place of `secure/` where the crate is built without the feature `tls`. Its types have no value, so no other module
//! has to know of the feature.

use std::io;
use std::sync::Arc;

use tokio::net::TcpStream;

use crate::address::Remote;
use crate::datagram::hub::Hub;
use crate::datagram::io::{DatagramIo, Outgoing, Reception};
use crate::datagram::socket::Socket;
use crate::identity::Identity;
use crate::stream::ByteStream;
use crate::{DtlsCounters, Refused, TlsError};

/// The crate is built without DTLS and TLS.
pub(crate) const IS_BUILT: bool = false;

#[derive(Clone, Debug)]
pub(crate) enum Dtls {}

#[derive(Debug)]
pub(crate) enum Sessions {}

pub(crate) enum Sealed {}

#[derive(Clone, Debug)]
pub(crate) enum Connector {}

#[derive(Clone, Debug)]
pub(crate) enum ServerTls {}

pub(crate) fn tls_error(_: &io::Error, _: &str) -> Option<TlsError> {
    None
}

impl Sessions {
    pub(crate) fn new(dtls: &Dtls) -> io::Result<Self> {
        match *dtls {}
    }

    pub(crate) fn len(&self) -> usize {
        match *self {}
    }

    pub(crate) fn counters(&self) -> DtlsCounters {
        match *self {}
    }

    pub(crate) fn send(&self, _: &Socket, _: &mut Outgoing) {
        match *self {}
    }

    pub(crate) async fn connect(&self, _: &Hub, _: Remote) -> Result<Remote, Refused> {
        match *self {}
    }

    pub(crate) fn identity(&self, _: Remote) -> Option<Arc<Identity>> {
        match *self {}
    }

    pub(crate) fn unreachable(&self, _: Remote, _: &io::Error) {
        match *self {}
    }
}

impl Sealed {
    pub(crate) fn new(sessions: &Sessions) -> Self {
        match *sessions {}
    }
}

impl DatagramIo for Sealed {
    fn receive(&mut self, _: &Socket, _: impl FnMut(Remote, bool, &[u8])) -> io::Result<Reception> {
        match *self {}
    }

    fn send(&mut self, _: &Socket, _: &mut Outgoing) {
        match *self {}
    }
}

impl Connector {
    pub(crate) async fn connect(&self, _: &str, _: TcpStream) -> io::Result<Box<dyn ByteStream>> {
        match *self {}
    }
}

impl ServerTls {
    pub(crate) async fn accept(
        &self,
        _: TcpStream,
    ) -> io::Result<(Box<dyn ByteStream>, Option<Arc<Identity>>)> {
        match *self {}
    }
}
