//! `coaps` with DTLS and pre-shared keys; `coaps+tcp` and `coaps+ws` with TLS and certificates.
//!
//! `dtls.rs` has the keys and limits of DTLS, `session.rs` one session, `table.rs` all sessions of an endpoint,
//! `doubt.rs` the decision when a client starts another handshake, `cookie.rs` the cookies before a session begins,
//! `records.rs` the transfer of an endpoint's datagrams through sessions, and `detached.rs` sessions without a socket.
//! `certificates.rs` has TLS. Without the feature `tls`, `insecure.rs` replaces this module.
mod certificates;
mod cookie;
mod detached;
mod doubt;
mod dtls;
mod records;
mod session;
mod table;

use std::io;
use std::net::{TcpListener, ToSocketAddrs, UdpSocket};

pub use certificates::{BadCertificate, Certificates};
pub(crate) use certificates::{Connector, ServerTls, tls_error};
pub use detached::DtlsSessions;
pub use dtls::Dtls;
pub(crate) use records::Sealed;
pub(crate) use table::Sessions;

use crate::stream::Acceptor;
use crate::{ClientBuilder, Server, ServerConfig, ServerHandle};

/// The memory of a DTLS session or handshake, in bytes.
const SESSION: usize = 8_192;

/// Whether the crate is built with DTLS and TLS.
pub(crate) const IS_BUILT: bool = true;

impl Server {
    /// Binds to the first of the addresses that is available, to serve `coaps`. The default port of the scheme is 5684 (RFC
    /// 7252 §6.2). A host with several addresses should bind to one of them, because the system chooses the source address
    /// of records that leave from `[::]`.
    ///
    /// # Errors
    /// The error of the system for the last address, or [`InvalidInput`](io::ErrorKind::InvalidInput) if `dtls` is a
    /// client's.
    pub fn bind_dtls(address: impl ToSocketAddrs, config: ServerConfig, dtls: &Dtls) -> io::Result<Self> {
        let dtls = of_each_core(dtls, &config, config.cores)?;
        Self::bind_hubs(address, config, Some(&dtls))
    }

    /// Takes over sockets that are bound already, like [`adopt`](Self::adopt), to serve `coaps`.
    ///
    /// # Errors
    /// The error of the system, or [`InvalidInput`](io::ErrorKind::InvalidInput) if `dtls` is a client's.
    pub fn adopt_dtls(sockets: Vec<UdpSocket>, config: ServerConfig, dtls: &Dtls) -> io::Result<Self> {
        let dtls = of_each_core(dtls, &config, sockets.len())?;
        Self::adopt_hubs(sockets, config, Some(&dtls))
    }

    /// Binds to the first of the addresses that is available, to serve `coaps+tcp` (RFC 8323 §8.2). The default port of the
    /// scheme is 5684.
    ///
    /// # Errors
    /// The error of the system for the last address, or [`InvalidInput`](io::ErrorKind::InvalidInput) if the certificates
    /// are not a server's.
    pub fn bind_tls(
        address: impl ToSocketAddrs,
        config: ServerConfig,
        certificates: &Certificates,
    ) -> io::Result<Self> {
        let tls = Some(ServerTls::new(certificates, false)?);
        Self::bind_stream(address, config, Acceptor { tls, ws: false })
    }

    /// Binds to the first of the addresses that is available, to serve `coaps+ws` (RFC 8323 §8.4). The default port of the
    /// scheme is 443.
    ///
    /// # Errors
    /// The errors of [`bind_tls`](Self::bind_tls).
    pub fn bind_wss(
        address: impl ToSocketAddrs,
        config: ServerConfig,
        certificates: &Certificates,
    ) -> io::Result<Self> {
        let tls = Some(ServerTls::new(certificates, true)?);
        Self::bind_stream(address, config, Acceptor { tls, ws: true })
    }

    /// Takes over a socket that listens already, to serve `coaps+tcp`.
    ///
    /// # Errors
    /// The errors of [`bind_tls`](Self::bind_tls).
    pub fn adopt_tls(
        listener: TcpListener,
        config: ServerConfig,
        certificates: &Certificates,
    ) -> io::Result<Self> {
        let tls = Some(ServerTls::new(certificates, false)?);
        Self::adopt_stream(listener, config, Acceptor { tls, ws: false })
    }

    /// Takes over a socket that listens already, to serve `coaps+ws`.
    ///
    /// # Errors
    /// The errors of [`bind_tls`](Self::bind_tls).
    pub fn adopt_wss(
        listener: TcpListener,
        config: ServerConfig,
        certificates: &Certificates,
    ) -> io::Result<Self> {
        let tls = Some(ServerTls::new(certificates, true)?);
        Self::adopt_stream(listener, config, Acceptor { tls, ws: true })
    }
}

/// Returns the settings for each of a server's endpoints.
fn of_each_core(dtls: &Dtls, config: &ServerConfig, cores: usize) -> io::Result<Dtls> {
    if !dtls.is_server() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "these are the keys of a client; a server needs keys of Dtls::server",
        ));
    }
    let sessions = config.budget.count(SESSION) as usize;
    // Rounded up, so that each endpoint may have a session.
    Ok(dtls.clone().at_most(sessions.div_ceil(cores.max(1))))
}

impl ServerHandle {
    /// Replaces the certificates for new connections over TLS. Open connections continue. A server without TLS ignores the
    /// call.
    ///
    /// # Errors
    /// [`BadCertificate`] if they are not a server's. The server then keeps the old ones.
    pub fn set_certificates(&self, certificates: &Certificates) -> Result<(), BadCertificate> {
        let tls = self.tcp.as_ref().and_then(|shared| shared.acceptor.tls.as_ref());
        tls.map_or(Ok(()), |tls| tls.replace(certificates))
    }
}

impl ClientBuilder {
    /// Sets the identity and key for `coaps`. Without this call, requests with this scheme fail. A client has one
    /// identity.
    #[must_use]
    pub fn dtls(mut self, dtls: Dtls) -> Self {
        self.0.dtls = Some(dtls);
        self
    }

    /// Sets the trusted roots for `coaps+tcp` and `coaps+ws`, and the certificate that the client presents. Without
    /// this call, requests with these schemes fail.
    ///
    /// # Errors
    /// [`BadCertificate`] if the TLS library refuses them.
    pub fn certificates(mut self, certificates: &Certificates) -> Result<Self, BadCertificate> {
        self.0.connections.tls = Some(certificates.connectors()?);
        Ok(self)
    }
}
