//! `coapace serve`.

use std::io::{self, Write};
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::{Duration, SystemTime};

use coapace_lab::naming::parse_mechanism;
use coapace_net::uri::Scheme;
use coapace_net::{
    Certificates, Membership, NotJoined, Profile, Resource, Router, Server, ServerConfig, ServerHandle,
};
use tokio::task::JoinSet;

use super::device::{capture, finish, runtime};
use super::directory::Directory;
use super::output::remark;
use super::resources::Resources;
use crate::arguments::{Arguments, Serve};
use crate::exporter::Exporter;
use crate::{Failure, certificates, keys};

pub(crate) fn serve(arguments: &Arguments, serve: &Serve) -> Result<(), Failure> {
    let mechanism = parse_mechanism(&serve.cc).map_err(Failure::Usage)?;
    let (router, clock) = routes(serve)?;
    let mut config = ServerConfig { profile: Profile::from(mechanism), ..ServerConfig::default() };
    config.cores = serve.threads.map_or(config.cores, usize::from);
    config.groups = groups(&serve.groups)?;
    if serve.directory.is_some() {
        config.bodies = Directory::bodies();
    }
    let capture = serve.pcap.as_deref().map(capture).transpose()?;
    config.tap = capture.clone().map(|capture| capture as _);

    let exporter = serve.metrics.as_deref().map(Exporter::bind).transpose()?;
    let listeners = listeners(serve, &config)?;
    let mut out = io::stdout().lock();
    listeners.iter().try_for_each(|listener| writeln!(out, "{}", listener.uri))?;
    if let Some(exporter) = &exporter {
        writeln!(out, "{}", exporter.uri())?;
    }
    out.flush()?;
    drop(out);
    let handle = |listener: &Listener| (listener.scheme, listener.uri.clone(), listener.server.handle());
    let handles: Vec<(Scheme, String, ServerHandle)> = listeners.iter().map(handle).collect();
    let stop = handles.clone();
    let ended = runtime()?.block_on(async {
        tokio::spawn(async move {
            if interrupted().await.is_ok() {
                for (_, _, handle) in &stop {
                    handle.shutdown();
                }
            }
        });
        if let Some(exporter) = exporter {
            tokio::spawn(exporter.run(handles.iter().map(|(_, _, handle)| handle.clone()).collect()));
        }
        if let Some(clock) = clock {
            tokio::spawn(tick(clock));
        }
        run(listeners, &router).await
    });
    for (scheme, uri, handle) in &handles {
        let told = summary(*scheme, handle);
        remark(arguments, &if handles.len() > 1 { format!("{uri}: {told}") } else { told });
    }
    let ended = ended.map_err(|error| Failure::Io("cannot serve".to_owned(), error));
    finish(capture.as_deref(), serve.pcap.as_deref(), ended)
}

/// The groups to join.
fn groups(texts: &[String]) -> Result<Vec<Membership>, Failure> {
    let mut groups = Vec::new();
    for text in texts {
        match text.as_str() {
            "all" => groups.extend(Membership::all_coap_nodes()),
            text => groups.push(
                text.parse().map_err(|bad| Failure::Usage(format!("--group {text:?}: {bad}, or all")))?,
            ),
        }
    }
    Ok(groups)
}

/// What is served, and what is to be said to have changed every second.
fn routes(serve: &Serve) -> Result<(Router, Option<Resource>), Failure> {
    let mut resources = Resources::default();
    for (path, text) in &serve.resources {
        resources.fixed(path, text)?;
    }
    if serve.demo || serve.resources.is_empty() && serve.directory.is_none() {
        resources.demo()?;
    }
    let (router, clock) = resources.finish();
    let Some(path) = &serve.directory else { return Ok((router, clock)) };
    Ok((Directory::open(path, serve.writable)?.behind(router), clock))
}

/// A server, how it is reached, and where.
struct Listener {
    scheme: Scheme,
    uri: String,
    server: Server,
}

impl Listener {
    fn new(scheme: Scheme, server: Server) -> Result<Self, Failure> {
        let address = server.local_addr().map_err(|error| Failure::Io("the socket".to_owned(), error))?;
        Ok(Self { scheme, uri: format!("{scheme}://{address}"), server })
    }
}

/// Binds to all addresses, before anything is answered at one of them.
fn listeners(serve: &Serve, config: &ServerConfig) -> Result<Vec<Listener>, Failure> {
    let addresses = match &serve.bind {
        Some(text) => named("--bind", text)?,
        None => vec![([0u16; 8], 5683).into(), ([0u8; 4], 5683).into()],
    };
    let server = bind("--bind", &addresses, true, |to| Server::bind_with(to, config.clone()))?;
    let udp = Listener::new(Scheme::Coap, server)?;
    let mut listeners = Vec::new();
    if let Some(keys) = keys::of_clients(&serve.identities, &serve.keys)? {
        let addresses = match &serve.dtls {
            Some(text) => named("--dtls", text)?,
            None => vec![one_higher(&udp, &addresses)?],
        };
        let server = bind("--dtls", &addresses, true, |to| Server::bind_dtls(to, config.clone(), &keys))?;
        listeners.push(Listener::new(Scheme::Coaps, server)?);
    }
    let own = serve.cert.as_deref().zip(serve.private_key.as_deref());
    let certificates = certificates::read(serve.ca.as_deref(), own)?;
    for (flag, text, scheme) in [
        ("--tcp", &serve.tcp, Scheme::CoapTcp),
        ("--tls", &serve.tls, Scheme::CoapsTcp),
        ("--ws", &serve.ws, Scheme::CoapWs),
        ("--wss", &serve.wss, Scheme::CoapsWs),
    ] {
        let Some(text) = text else { continue };
        let to_stream = |to: &[SocketAddr]| bind_stream(scheme, to, config.clone(), &certificates);
        let server = bind(flag, &named(flag, text)?, false, to_stream)?;
        listeners.push(Listener::new(scheme, server)?);
    }
    listeners.insert(0, udp);
    Ok(listeners)
}

/// A server over a reliable transport.
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

/// Where DTLS is, if nothing is said of it: beside UDP, as 5684 is beside 5683 (RFC 7252 §6.2).
fn one_higher(udp: &Listener, asked: &[SocketAddr]) -> Result<SocketAddr, Failure> {
    let mut address = udp.server.local_addr().map_err(|error| Failure::Io("the socket".to_owned(), error))?;
    let any = asked.iter().all(|asked| asked.port() == 0);
    let port = if any { Some(0) } else { address.port().checked_add(1) };
    address.set_port(port.ok_or_else(|| Failure::Usage("--dtls has to say which port it is".to_owned()))?);
    Ok(address)
}

/// The addresses of an argument.
fn named(flag: &str, text: &str) -> Result<Vec<SocketAddr>, Failure> {
    let addresses = text.to_socket_addrs().map_err(|error| {
        Failure::Usage(format!("{flag} takes ADDRESS:PORT, as [::]:5683, not {text:?} ({error})"))
    })?;
    Ok(addresses.collect())
}

/// A server at the first of these addresses that can be had.
fn bind(
    flag: &str,
    addresses: &[SocketAddr],
    datagrams: bool,
    server: impl Fn(&[SocketAddr]) -> io::Result<Server>,
) -> Result<Server, Failure> {
    let shown = addresses.first().map_or_else(String::new, SocketAddr::to_string);
    // Several threads share a port of datagrams, and so they would with another server.
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

/// Serves until all have ended, or one cannot go on.
async fn run(listeners: Vec<Listener>, router: &Router) -> io::Result<()> {
    let mut serving = JoinSet::new();
    for listener in listeners {
        serving.spawn(listener.server.serve(router.clone()));
    }
    while let Some(ended) = serving.join_next().await {
        ended.map_err(io::Error::other)??;
    }
    Ok(())
}

/// Tells whoever observes a clock, at every full second.
async fn tick(clock: Resource) {
    loop {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        tokio::time::sleep(Duration::from_nanos(1_000_000_000 - u64::from(since.subsec_nanos()))).await;
        clock.changed();
    }
}

/// Ends with Ctrl-C, or when the system asks for the end.
async fn interrupted() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted,
        _ = terminate.recv() => Ok(()),
    }
}

/// What a server did.
fn summary(scheme: Scheme, handle: &ServerHandle) -> String {
    let stats = handle.stats();
    if !matches!(scheme, Scheme::Coap | Scheme::Coaps) {
        let tcp = stats.tcp;
        return format!(
            "{} connections with {} requests, {} of them refused, and {} notifications; {} handshakes failed; \
             {} connections aborted; {} responses larger than the client takes",
            tcp.connections,
            tcp.requests,
            tcp.refused,
            tcp.notifications,
            tcp.handshakes_failed,
            tcp.aborted,
            tcp.too_large
        );
    }
    let (endpoint, net, dtls) = (stats.endpoint, stats.net, stats.dtls);
    let told = format!(
        "{} datagrams received, {} of them copies and {} malformed; {} separate responses with {} retransmissions, \
         {} given up; {} requests refused, {} responses dropped",
        endpoint.received,
        endpoint.duplicates,
        endpoint.malformed,
        endpoint.started,
        endpoint.retransmissions,
        endpoint.given_up,
        net.refused,
        net.responses_dropped,
    );
    if scheme != Scheme::Coaps {
        return told;
    }
    format!("{told}; {} sessions, {} handshakes failed", dtls.handshakes, dtls.handshakes_failed)
}
