//! `coaps` with DTLS and pre-shared keys; `coaps+tcp` and `coaps+ws` with TLS and certificates.
//!
//! `dtls.rs` has the keys and bounds of DTLS, `session.rs` one session, `table.rs` all sessions of an endpoint and who makes
//! room, `cookie.rs` the cookies before a session begins, and `records.rs` the way of an endpoint's datagrams through them.
//! `certificates.rs` has TLS. Without the feature `tls`, `insecure.rs` is in place of this module.
mod certificates;
mod cookie;
mod dtls;
mod records;
mod session;
mod table;

use std::io;
use std::net::ToSocketAddrs;

pub use certificates::{BadCertificate, Certificates};
pub(crate) use certificates::{Connector, ServerTls, tls_error};
pub use dtls::Dtls;
pub(crate) use records::Sealed;
pub(crate) use table::Sessions;

use crate::stream::Acceptor;
use crate::{ClientBuilder, Server, ServerConfig, ServerHandle};

/// The bytes of a DTLS session or handshake.
const SESSION: usize = 8_192;

/// The crate is built with DTLS and TLS.
pub(crate) const IS_BUILT: bool = true;

impl Server {
    /// Binds to the first of the addresses that can be had, to serve `coaps` there. The port is 5684 by default (RFC
    /// 7252 §6.2). Where the host has several addresses, bind to one: at `[::]` the system chooses which of them a
    /// record leaves from.
    ///
    /// # Errors
    /// Those of the system for the last of them, or [`InvalidInput`](io::ErrorKind::InvalidInput) if `dtls` is a
    /// client's.
    pub fn bind_dtls(address: impl ToSocketAddrs, config: ServerConfig, dtls: &Dtls) -> io::Result<Self> {
        if !dtls.is_server() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the keys of a client cannot serve"));
        }
        let sessions = config.budget.count(SESSION) as usize;
        let dtls = dtls.clone().at_most(sessions.div_ceil(config.cores.max(1)));
        Self::bind_hubs(address, config, &[], Some(&dtls))
    }

    /// Binds to the first of the addresses that can be had, to serve `coaps+tcp` there (RFC 8323 §8.2). The port is 5684
    /// by default.
    ///
    /// # Errors
    /// Those of the system for the last of them, or [`InvalidInput`](io::ErrorKind::InvalidInput) if the certificates do
    /// not make a server.
    pub fn bind_tls(
        address: impl ToSocketAddrs,
        config: ServerConfig,
        certificates: &Certificates,
    ) -> io::Result<Self> {
        let tls = Some(ServerTls::new(certificates, false)?);
        Self::bind_stream(address, config, Acceptor { tls, ws: false })
    }

    /// Binds to the first of the addresses that can be had, to serve `coaps+ws` there (RFC 8323 §8.4). The port is 443
    /// by default.
    ///
    /// # Errors
    /// Those of [`bind_tls`](Self::bind_tls).
    pub fn bind_wss(
        address: impl ToSocketAddrs,
        config: ServerConfig,
        certificates: &Certificates,
    ) -> io::Result<Self> {
        let tls = Some(ServerTls::new(certificates, true)?);
        Self::bind_stream(address, config, Acceptor { tls, ws: true })
    }
}

impl ServerHandle {
    /// Lets connections over TLS begin with other certificates from now on. Those that are there go on. A server without
    /// TLS ignores them.
    ///
    /// # Errors
    /// [`BadCertificate`] if they do not make a server. It then keeps those that it has.
    pub fn set_certificates(&self, certificates: &Certificates) -> Result<(), BadCertificate> {
        self.tls.as_ref().map_or(Ok(()), |tls| tls.replace(certificates))
    }
}

impl ClientBuilder {
    /// Sets the identity and key of `coaps`. Without it there are no such requests. A client is one identity: whoever has
    /// several needs a client for each.
    #[must_use]
    pub fn dtls(mut self, dtls: Dtls) -> Self {
        self.0.dtls = Some(dtls);
        self
    }

    /// Sets which roots `coaps+tcp` and `coaps+ws` trust, and the certificate that is shown there. Without it there are no
    /// such requests.
    ///
    /// # Errors
    /// If the library of TLS does not take them.
    pub fn certificates(mut self, certificates: &Certificates) -> Result<Self, BadCertificate> {
        self.0.connections.tls = Some(certificates.connectors()?);
        Ok(self)
    }
}
