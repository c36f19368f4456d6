//! `coapace serve`.

use std::io::{self, Write};
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroU32;
use std::time::{Duration, SystemTime};

use coapace_net::uri::Scheme;
use coapace_net::{
    Budget, Certificates, Mechanism, Membership, NotJoined, Profile, Resource, Router, Server, ServerConfig,
    ServerHandle, link_format,
};
use coapace_scenario::naming::parse_mechanism;
use tokio::signal::unix::{Signal, SignalKind};
use tokio::task::JoinSet;
use tracing::{error, info, warn};

use super::device::{capture, finish, runtime};
use super::directory::Directory;
use super::output::COMMIT;
use super::resources::Resources;
use crate::addresses::named;
use crate::arguments::{Arguments, Serve};
use crate::capture::CoapPort;
use crate::credentials::Credentials;
use crate::exporter::Exporter;
use crate::interrupt::{arrivals, interrupted};
use crate::{Failure, logging};

pub(crate) fn serve(arguments: &Arguments, serve: &Serve) -> Result<(), Failure> {
    logging::of_server(serve.log, serve.verbose, arguments.quiet);
    let mechanism = parse_mechanism(&serve.cc).map_err(Failure::Usage)?;
    let (router, clock) = routes(serve)?;
    let mut config = bounded(serve, mechanism);
    config.cores = serve.threads.map_or(config.cores, usize::from);
    config.groups = groups(&serve.groups)?;
    if serve.directory.is_some() {
        config.bodies = Directory::bodies();
    }
    let credentials = Credentials::read(serve)?;
    let as_coap = serve.pcap_as_coap;
    let capture = serve.pcap.as_deref().map(|path| capture(path, as_coap)).transpose()?;
    config.interceptor = capture.clone().map(|capture| capture as _);

    let exporter = serve.metrics.as_deref().map(Exporter::bind).transpose()?;
    let listeners = listeners(serve, &config, &credentials)?;
    warn_of_writers(serve, &listeners);
    if let (Some(capture), Some(file)) = (&capture, &serve.pcap) {
        let decode_as = capture.name_ports(listeners.iter().filter_map(Listener::datagrams).collect());
        info!(file = %file.display(), decode_as, "capturing");
    }
    // Whoever reads a URI knows that the server runs, and may send it a signal.
    let runtime = runtime()?;
    let (interrupted, hangup) = {
        let _inside = runtime.enter();
        (interrupted()?, arrivals(SignalKind::hangup())?)
    };
    let mut out = io::stdout().lock();
    listeners.iter().try_for_each(|listener| writeln!(out, "{}", listener.uri))?;
    if let Some(exporter) = &exporter {
        writeln!(out, "{}", exporter.uri())?;
    }
    out.flush()?;
    drop(out);
    let known = |listener: &Listener| (listener.scheme, listener.uri.clone(), listener.server.handle());
    let handles: Vec<(Scheme, String, ServerHandle)> = listeners.iter().map(known).collect();
    let stop = handles.clone();
    let ended = runtime.block_on(async {
        let servers: Vec<ServerHandle> = handles.iter().map(|(_, _, handle)| handle.clone()).collect();
        let identities = credentials.identities();
        tokio::spawn(reload_at(hangup, credentials, servers.clone()));
        tokio::spawn(async move {
            interrupted.await;
            info!("stopping");
            for (_, _, handle) in &stop {
                handle.shutdown();
            }
        });
        if let Some(exporter) = exporter {
            tokio::spawn(exporter.run(servers));
        }
        if let Some(clock) = clock {
            tokio::spawn(tick(clock));
        }
        say_start(serve, &config, &listeners, identities, &router);
        run(listeners, &router).await
    });
    for (scheme, uri, handle) in &handles {
        info!(uri, "stopped: {}", summary(*scheme, handle));
    }
    let ended = ended.map_err(|error| Failure::Io("cannot serve".to_owned(), error));
    finish(capture.as_deref(), serve.pcap.as_deref(), ended)
}

/// Returns the configuration that follows from `--memory` and the other limits.
fn bounded(serve: &Serve, mechanism: Mechanism) -> ServerConfig {
    crate::process::raise_descriptor_limit();
    let budget = Budget::new(serve.memory);
    let mut profile = Profile::from(mechanism);
    profile.config = budget.bound(profile.config);
    profile.config.max_peers = serve.max_peers.unwrap_or(profile.config.max_peers);
    profile.config.max_sluiced = if serve.sluice { profile.config.max_peers } else { 0 };
    profile.config.max_observers = serve.max_observers.unwrap_or(profile.config.max_observers);
    let max_rate = serve.max_rate.and_then(NonZeroU32::new);
    ServerConfig { budget, profile, max_rate, verify: serve.trust.verify(), ..ServerConfig::default() }
}

/// Returns the groups to join.
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

/// Returns the routes, and the resource that changes every second.
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

/// A server with its scheme, URI and address.
struct Listener {
    scheme: Scheme,
    uri: String,
    address: SocketAddr,
    server: Server,
}

impl Listener {
    fn new(scheme: Scheme, server: Server) -> Result<Self, Failure> {
        let address = server.local_addr().map_err(|error| Failure::Io("the socket".to_owned(), error))?;
        Ok(Self { scheme, uri: format!("{scheme}://{address}"), address, server })
    }

    /// Returns the server's port, if it is over UDP or DTLS.
    fn datagrams(&self) -> Option<CoapPort> {
        let dtls = self.scheme == Scheme::Coaps;
        (dtls || self.scheme == Scheme::Coap).then(|| CoapPort { port: self.address.port(), dtls })
    }
}

/// Logs the URIs and limits at the start.
fn say_start(
    serve: &Serve,
    config: &ServerConfig,
    listeners: &[Listener],
    identities: usize,
    router: &Router,
) {
    let uris: Vec<&str> = listeners.iter().map(|listener| &*listener.uri).collect();
    let directory = serve.directory.as_ref().map(|path| path.display().to_string());
    info!(
        version = env!("CARGO_PKG_VERSION"),
        commit = COMMIT,
        uris = uris.join(" "),
        resources = link_format::parse(&router.links()).count(),
        directory,
        writable = serve.writable,
        identities,
        cc = serve.cc,
        threads = config.cores,
        "serving"
    );
    let (transmission, bodies) = (&config.profile.config, &config.bodies);
    info!(
        memory_bytes = config.budget.memory(),
        max_peers = transmission.max_peers,
        max_observers = transmission.max_observers,
        max_exchanges = transmission.max_exchanges,
        max_connections = config.max_connections.min(config.budget.max_connections()),
        max_pending = config.max_pending,
        max_body_bytes = bodies.max_body,
        max_bodies_bytes = bodies.max_bytes,
        idle_timeout_s = config.idle_timeout.as_secs(),
        shutdown_timeout_s = config.shutdown_timeout.as_secs(),
        "limits"
    );
}

/// Reads keys and certificates again at every SIGHUP.
async fn reload_at(mut hangup: Signal, credentials: Credentials, servers: Vec<ServerHandle>) {
    while hangup.recv().await.is_some() {
        match credentials.reload(&servers) {
            Ok(()) => info!(identities = credentials.identities(), "reloaded keys and certificates"),
            Err(failure) => {
                error!(why = failure.to_string(), "not reloaded; keys and certificates stay as they were");
            }
        }
    }
}

/// Binds to all addresses. No request is answered before all have succeeded.
fn listeners(
    serve: &Serve,
    config: &ServerConfig,
    credentials: &Credentials,
) -> Result<Vec<Listener>, Failure> {
    let addresses = |port| match &serve.bind {
        Some(text) => named("--bind", text),
        None => Ok(vec![([0u16; 8], port).into(), ([0u8; 4], port).into()]),
    };
    let mut listeners = Vec::new();
    if serve.plain_udp() {
        let server = bind("--bind", &addresses(5683)?, true, |to| Server::bind_with(to, config.clone()))?;
        listeners.push(Listener::new(Scheme::Coap, server)?);
    }
    if let Some(keys) = credentials.dtls() {
        let addresses = match (&serve.dtls, listeners.first()) {
            (Some(text), _) => named("--dtls", text)?,
            (None, Some(udp)) => vec![one_higher(udp, &addresses(5683)?)?],
            (None, None) => addresses(5684)?,
        };
        let server = bind("--dtls", &addresses, true, |to| Server::bind_dtls(to, config.clone(), &keys))?;
        listeners.push(Listener::new(Scheme::Coaps, server)?);
    }
    let certificates = &credentials.certificates;
    for (flag, text, scheme) in [
        ("--tcp", &serve.tcp, Scheme::CoapTcp),
        ("--tls", &serve.tls, Scheme::CoapsTcp),
        ("--ws", &serve.ws, Scheme::CoapWs),
        ("--wss", &serve.wss, Scheme::CoapsWs),
    ] {
        let Some(text) = text else { continue };
        let to_stream = |to: &[SocketAddr]| bind_stream(scheme, to, config.clone(), certificates);
        let server = bind(flag, &named(flag, text)?, false, to_stream)?;
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

/// Warns if clients that do not identify themselves may write files.
fn warn_of_writers(serve: &Serve, listeners: &[Listener]) {
    let open = |listener: &&Listener| match listener.scheme {
        Scheme::Coap | Scheme::CoapTcp | Scheme::CoapWs => true,
        Scheme::CoapsTcp | Scheme::CoapsWs => serve.ca.is_none(),
        Scheme::Coaps => false,
    };
    let open: Vec<&str> = listeners.iter().filter(open).map(|listener| &*listener.uri).collect();
    if serve.writable && !open.is_empty() {
        warn!(
            "anybody may write and remove files at {}; -u and -k (DTLS) or --ca (TLS) let in whom you know",
            open.join(", ")
        );
    }
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

/// Returns the default address for DTLS: UDP's, one port higher, like 5684 after 5683 (RFC 7252 §6.2).
fn one_higher(udp: &Listener, asked: &[SocketAddr]) -> Result<SocketAddr, Failure> {
    let mut address = udp.server.local_addr().map_err(|error| Failure::Io("the socket".to_owned(), error))?;
    let any = asked.iter().all(|asked| asked.port() == 0);
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

/// Serves until all servers have ended or one fails.
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

/// Notifies the observers of the clock at every full second.
async fn tick(clock: Resource) {
    loop {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        tokio::time::sleep(Duration::from_nanos(1_000_000_000 - u64::from(since.subsec_nanos()))).await;
        clock.changed();
    }
}

/// Returns a summary of a server's counters.
fn summary(scheme: Scheme, handle: &ServerHandle) -> String {
    let stats = handle.stats();
    if !matches!(scheme, Scheme::Coap | Scheme::Coaps) {
        let tcp = stats.tcp;
        return format!(
            "{} connections with {} requests and {} notifications; {} observers refused; {} handshakes failed; \
             {} connections aborted, {} made room for others; {} responses larger than the client takes",
            tcp.connections,
            tcp.requests,
            tcp.notifications,
            tcp.observers_refused,
            tcp.handshakes_failed,
            tcp.aborted,
            tcp.evicted,
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
