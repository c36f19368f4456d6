//! The servers of `coapace serve`, each bound to its address.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};

use coapace_net::uri::Scheme;
use coapace_net::{NotJoined, Server, ServerConfig};

use crate::Failure;
use crate::activation::Passed;
use crate::addresses::named;
use crate::arguments::Serve;
use crate::capture::CoapPort;
use crate::credentials::Credentials;
use crate::secure::Certificates;
#[cfg(not(feature = "tls"))]
use crate::secure::SecureServer;

/// A server with its scheme, URI and address.
pub(super) struct Listener {
    pub(super) scheme: Scheme,
    pub(super) uri: String,
    address: SocketAddr,
    pub(super) server: Server,
}

impl Listener {
    fn new(scheme: Scheme, server: Server) -> Result<Self, Failure> {
        let address = server.local_addr().map_err(|error| Failure::Io("the socket".to_owned(), error))?;
        Ok(Self { scheme, uri: format!("{scheme}://{address}"), address, server })
    }

    /// Returns the server's port, if it is over UDP or DTLS.
    pub(super) fn datagrams(&self) -> Option<CoapPort> {
        let dtls = self.scheme == Scheme::Coaps;
        (dtls || self.scheme == Scheme::Coap).then(|| CoapPort { port: self.address.port(), dtls })
    }
}

/// Binds to all addresses. No request is answered before all have succeeded.
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
            let to_stream = |to: &[SocketAddr]| bind_stream(scheme, to, config.clone(), &certificates);
            bind(flag, &named(flag, text)?, false, to_stream)?
        };
        listeners.push(Listener::new(scheme, server)?);
    }
    if listeners.is_empty() {
        return Err(Failure::Usage(
            "--no-udp leaves nothing to answer at; add --tcp, --ws, --tls or --wss, or -u and -k for DTLS"
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

/// Takes over a socket for a server over a reliable transport.
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
    Failure::Io(format!("cannot use the socket of {flag}"), error)
}

/// Returns the default address for DTLS: UDP's, one port higher, like 5684 after 5683 (RFC 7252 §6.2).
fn one_higher(udp: &Listener, asked: Option<&str>) -> Result<SocketAddr, Failure> {
    let mut address = udp.address;
    let any = asked.is_some_and(|asked| asked.ends_with(":0"));
    let port = if any { Some(0) } else { address.port().checked_add(1) };
    address.set_port(port.ok_or_else(|| Failure::Usage("give the port with --dtls".to_owned()))?);
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
    let free = alone.reduce(Result::or).unwrap_or_else(|| Err(io::ErrorKind::AddrNotAvailable.into()));
    free.and_then(|()| server(addresses)).map_err(|error| {
        Failure::Network(match error.kind() {
            _ if matches!(error.get_ref(), Some(inner) if inner.is::<NotJoined>()) => error.to_string(),
            io::ErrorKind::AddrInUse => {
                format!("{shown} is in use; name another port with {flag}, 0 for any that is free")
            }
            io::ErrorKind::AddrNotAvailable => {
                format!("{shown} is not an address of this host; {flag} [::]:PORT is all of them")
            }
            io::ErrorKind::PermissionDenied => {
                format!("{shown} is not for this user to bind to; name a port above 1023 with {flag}")
            }
            _ => format!("cannot bind to {shown} ({flag}): {error}"),
        })
    })
}
