//! The servers of `coapace serve`, each bound to its address.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};

use coapace_net::uri::Scheme;
use coapace_net::{NotJoined, Server, ServerConfig};

use crate::Failure;
use crate::activation::Passed;
use crate::addresses::{cannot_bind, named};
use crate::arguments::Serve;
use crate::capture::CoapPort;
use crate::credentials::Credentials;
use crate::secure::Certificates;
#[cfg(not(feature = "tls"))]
use crate::secure::SecureServer;

/// A bound server with its scheme, URI and address.
pub(super) struct Listener {
    pub(super) scheme: Scheme,
    pub(super) uri: String,
    address: SocketAddr,
    pub(super) server: Server,
}

impl Listener {
    fn new(scheme: Scheme, server: Server) -> Result<Self, Failure> {
        let address =
            server.local_addr().map_err(|error| Failure::Io("a socket has no address".to_owned(), error))?;
        Ok(Self { scheme, uri: format!("{scheme}://{address}"), address, server })
    }

    /// Returns the server's port if it uses UDP or DTLS.
    pub(super) fn datagrams(&self) -> Option<CoapPort> {
        let dtls = self.scheme == Scheme::Coaps;
        (dtls || self.scheme == Scheme::Coap).then(|| CoapPort { port: self.address.port(), dtls })
    }
}

/// Binds a server for each transport of the arguments, or takes over sockets from systemd. No server
/// answers requests before all are bound.
pub(super) fn listeners(
    serve: &Serve,
    config: &ServerConfig,
    credentials: &Credentials,
    passed: &mut Passed,
) -> Result<Vec<Listener>, Failure> {
    let addresses = |port| match &serve.bind {
        Some(text) => named("--bind", text),
        // The IPv4 address is for systems without IPv6.
        None => Ok(vec![([0u16; 8], port).into(), ([0u8; 4], port).into()]),
    };
    let mut listeners: Vec<Listener> = Vec::new();
    // UDP comes first, because DTLS takes the port after its port unless another is named.
    if serve.plain_udp() {
        let server = match serve.bind.as_deref().and_then(Passed::name) {
            Some(name) => {
                let sockets = passed.datagrams("--bind", name)?;
                Server::adopt(sockets, config.clone()).map_err(|error| not_adopted("--bind", error))?
            }
            None => bind("--bind", &addresses(5683)?, true, |to| Server::bind_with(to, config.clone()))?,
        };
        listeners.push(Listener::new(Scheme::Coap, server)?);
    }
    if let Some(keys) = credentials.dtls() {
        let server = if let Some(name) = serve.dtls.as_deref().and_then(Passed::name) {
            let sockets = passed.datagrams("--dtls", name)?;
            Server::adopt_dtls(sockets, config.clone(), &keys)
                .map_err(|error| not_adopted("--dtls", error))?
        } else {
            let addresses = match (&serve.dtls, listeners.first()) {
                (Some(text), _) => named("--dtls", text)?,
                (None, Some(udp)) => vec![one_higher(udp, serve.bind.as_deref())?],
                (None, None) => addresses(5684)?,
            };
            bind("--dtls", &addresses, true, |to| Server::bind_dtls(to, config.clone(), &keys))?
        };
        listeners.push(Listener::new(Scheme::Coaps, server)?);
    }
    let certificates = credentials.certificates();
    for (flag, text, scheme) in [
        ("--tcp", &serve.tcp, Scheme::CoapTcp),
        ("--tls", &serve.tls, Scheme::CoapsTcp),
        ("--ws", &serve.ws, Scheme::CoapWs),
        ("--wss", &serve.wss, Scheme::CoapsWs),
    ] {
        let Some(text) = text else { continue };
        let server = if let Some(name) = Passed::name(text) {
            let listener = passed.listener(flag, name)?;
            adopt_stream(scheme, listener, config.clone(), &certificates)
                .map_err(|error| not_adopted(flag, error))?
        } else {
            // The system refuses a second listener at a port of TCP, so no trial bind is needed.
            let to_stream = |to: &[SocketAddr]| bind_stream(scheme, to, config.clone(), &certificates);
            bind(flag, &named(flag, text)?, false, to_stream)?
        };
        listeners.push(Listener::new(scheme, server)?);
    }
    if listeners.is_empty() {
        return Err(Failure::Usage(
            "--no-udp leaves no address to listen at; add --tcp, --ws, --tls or --wss, or -u and -k for DTLS"
                .to_owned(),
        ));
    }
    Ok(listeners)
}

/// Binds a server over a reliable transport.
fn bind_stream(
    scheme: Scheme,
    to: &[SocketAddr],
    config: ServerConfig,
    certificates: &Certificates,
) -> io::Result<Server> {
    match scheme {
        Scheme::CoapsTcp => Server::bind_tls(to, config, certificates),
        Scheme::CoapWs => Server::bind_ws(to, config),
        Scheme::CoapsWs => Server::bind_wss(to, config, certificates),
        _ => Server::bind_tcp(to, config),
    }
}

/// Makes a server over a reliable transport from a listening socket that systemd passed.
fn adopt_stream(
    scheme: Scheme,
    listener: TcpListener,
    config: ServerConfig,
    certificates: &Certificates,
) -> io::Result<Server> {
    match scheme {
        Scheme::CoapsTcp => Server::adopt_tls(listener, config, certificates),
        Scheme::CoapWs => Server::adopt_ws(listener, config),
        Scheme::CoapsWs => Server::adopt_wss(listener, config, certificates),
        _ => Server::adopt_tcp(listener, config),
    }
}

fn not_adopted(flag: &str, error: io::Error) -> Failure {
    Failure::Io(format!("cannot serve on the socket that systemd passed for {flag}"), error)
}

/// Returns the default address for DTLS: the address for UDP with the next port, as 5684 follows 5683
/// (RFC 7252 §6.2). The port is 0, for any free port, if it was 0 for UDP.
fn one_higher(udp: &Listener, asked: Option<&str>) -> Result<SocketAddr, Failure> {
    let mut address = udp.address;
    // The system chose UDP's port, and the one above it may be taken.
    let any = asked.is_some_and(|asked| asked.ends_with(":0"));
    let port = if any { Some(0) } else { address.port().checked_add(1) };
    address.set_port(port.ok_or_else(|| {
        Failure::Usage(
            "DTLS takes the port above the one for UDP, and there is none; give another with --dtls"
                .to_owned(),
        )
    })?);
    Ok(address)
}

/// Binds a server to the first of these addresses that is available.
fn bind(
    flag: &str,
    addresses: &[SocketAddr],
    datagrams: bool,
    server: impl Fn(&[SocketAddr]) -> io::Result<Server>,
) -> Result<Server, Failure> {
    let shown = addresses.first().map_or_else(String::new, SocketAddr::to_string);
    // Threads share a UDP port, so another server at the same port would not be noticed. A trial bind finds it.
    let alone =
        addresses.iter().map(|address| if datagrams { UdpSocket::bind(address).map(drop) } else { Ok(()) });
    // One address that can be bound is enough.
    let free = alone.reduce(Result::or).unwrap_or_else(|| Err(io::ErrorKind::AddrNotAvailable.into()));
    free.and_then(|()| server(addresses)).map_err(|error| match error.get_ref() {
        // The address is free, and a group cannot be joined there.
        Some(inner) if inner.is::<NotJoined>() => Failure::Network(error.to_string()),
        _ => cannot_bind(flag, &shown, &error),
    })
}
