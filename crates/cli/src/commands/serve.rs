//! `coapace serve`.

mod listeners;

use std::io::{self, Write};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use coapace_net::uri::Scheme;
use coapace_net::{
    Budget, Mechanism, Membership, Metrics, Profile, Resource, Router, ServerConfig, ServerHandle, Started,
    link_format,
};
use coapace_scenario::naming::parse_mechanism;
use tokio::signal::unix::{Signal, SignalKind};
use tokio::task::JoinSet;
use tracing::{error, info, warn};

use self::listeners::{Listener, listeners};
use super::device::{capture, finish, no_runtime, runtime};
use super::directory::{Directory, WriteRules};
use super::resources::Resources;
use crate::activation::Passed;
use crate::arguments::{Arguments, Serve};
use crate::credentials::Credentials;
use crate::expiry::{self, Expiry};
use crate::exporter::{Exporter, MetricsSource};
use crate::interrupt::{arrivals, interrupted};
use crate::{COMMIT, Failure, logging, process, supervisor};

/// The number of file descriptors of a server thread: its socket, a duplicate of the socket, and the
/// descriptors of its runtime.
const OF_EACH_CORE: u64 = 6;

/// The number of connections that are always allowed, whatever the limit on file descriptors.
const LEAST_CONNECTIONS: u64 = 16;

/// The number of file descriptors for the served directory, and for the files that are read or written
/// at a time.
const OF_DIRECTORY: u64 = 16;

pub(crate) fn serve(arguments: &Arguments, serve: &Serve) -> Result<(), Failure> {
    logging::of_server(serve.log, serve.verbose, arguments.quiet);
    // The environment is read before any thread starts, because the variables are removed.
    let mut passed = Passed::new();
    let mechanism = parse_mechanism(&serve.cc).map_err(Failure::Usage)?;
    let mut config = bounded(serve, mechanism);
    config.cores = serve.threads.map_or(config.cores, usize::from);
    config.groups = groups(&serve.groups)?;
    if serve.directory.is_some() {
        config.bodies = Directory::bodies();
    }
    // Keys and files are read before any socket is bound, so that a mistake in them shows first.
    let credentials = Arc::new(Credentials::of_server(serve)?);
    // Too few descriptors would otherwise show only under load.
    process::require_descriptors(descriptors(serve, &config, &credentials), "fewer --threads need fewer")?;
    let (resources, clock) = resources(serve)?;
    let directory = directory(serve, &credentials)?.map(Arc::new);
    let as_coap = serve.pcap_as_coap;
    let capture = serve.pcap.as_deref().map(|path| capture(path, as_coap)).transpose()?;
    config.interceptor = capture.clone().map(|capture| capture as _);

    let exporter = serve.metrics.as_deref().map(Exporter::bind).transpose()?;
    let listeners = listeners(serve, &config, &credentials, &mut passed)?;
    warn_of_writers(serve, &listeners);
    if let (Some(capture), Some(file)) = (&capture, &serve.pcap) {
        let decode_as = capture.name_ports(listeners.iter().filter_map(Listener::datagrams).collect());
        info!(file = %file.display(), decode_as, "capturing");
    }
    // Each transport has a router of its own, because the log of writes names the transport.
    let router = |scheme: Scheme| match &directory {
        Some(directory) => directory.behind(resources.clone(), scheme.name()),
        None => resources.clone(),
    };
    let links = link_format::parse(&router(Scheme::Coap).links()).count();
    // A program that reads a URI knows that the server runs, and may send it a signal. So all that the system may refuse comes first.
    let runtime = runtime()?;
    let (interrupted, hangup) = {
        let _inside = runtime.enter();
        (interrupted()?, arrivals(SignalKind::hangup())?)
    };
    // `start` takes the listeners, so the handles for metrics and signals are kept before.
    let known = |listener: &Listener| (listener.scheme, listener.uri.clone(), listener.server.handle());
    let handles: Vec<(Scheme, String, ServerHandle)> = listeners.iter().map(known).collect();
    let start = |listener: Listener| listener.server.start(&router(listener.scheme)).map_err(no_runtime);
    let started = listeners.into_iter().map(start).collect::<Result<Vec<_>, _>>()?;
    let mut out = io::stdout().lock();
    handles.iter().try_for_each(|(_, uri, _)| writeln!(out, "{uri}"))?;
    if let Some(exporter) = &exporter {
        writeln!(out, "{}", exporter.uri())?;
    }
    out.flush()?;
    // Other threads may print. A lock that is kept would block them.
    drop(out);
    let servers: Vec<ServerHandle> = handles.iter().map(|(_, _, handle)| handle.clone()).collect();
    let stop = servers.clone();
    let ended = runtime.block_on(async {
        say_start(serve, &config, &handles, &credentials, links);
        tokio::spawn(tend(hangup, credentials.clone(), servers.clone()));
        tokio::spawn(async move {
            interrupted.await;
            // systemd learns this first: answers under way may take as long as the shutdown timeout.
            info!("stopping");
            supervisor::stopping();
            stop.iter().for_each(ServerHandle::shutdown);
        });
        let watched = servers.clone();
        tokio::spawn(supervisor::watch(move || pulse(watched.clone())));
        if let Some(exporter) = exporter {
            tokio::spawn(exporter.run(Served { servers, directory, credentials }));
        }
        if let Some(clock) = clock {
            tokio::spawn(tick(clock));
        }
        supervisor::ready();
        run(started).await
    });
    for (scheme, uri, handle) in &handles {
        info!(uri, "stopped: {}", summary(*scheme, handle));
    }
    // The counters are logged even if a server failed.
    let ended = ended.map_err(|error| Failure::Io("cannot serve".to_owned(), error));
    finish(capture.as_deref(), serve.pcap.as_deref(), ended)
}

/// The servers whose metrics are exported.
struct Served {
    servers: Vec<ServerHandle>,
    directory: Option<Arc<Directory>>,
    credentials: Arc<Credentials>,
}

impl MetricsSource for Served {
    fn exposition(&self) -> String {
        let mut sum = Metrics::default();
        for server in &self.servers {
            sum.merge(&server.metrics());
        }
        let files = self.directory.as_ref().map_or(String::new(), |directory| directory.exposition());
        sum.to_string() + &files + &expiry::exposition(self.credentials.validity().as_ref())
    }

    fn is_closing(&self) -> bool {
        self.servers.iter().any(ServerHandle::is_closing)
    }
}

/// Waits until every server thread has responded, which shows that no thread hangs.
async fn pulse(servers: Vec<ServerHandle>) {
    // One after the other: the slowest thread decides in any case.
    for server in servers {
        server.pulse().await;
    }
}

/// Returns the configuration of a server from `--memory` and the other limits.
fn bounded(serve: &Serve, mechanism: Mechanism) -> ServerConfig {
    process::raise_descriptor_limit();
    // The limit on files is raised before this, because the most connections of a budget depend on it.
    let budget = Budget::new(serve.memory);
    let mut profile = Profile::from(mechanism);
    profile.config = budget.bound(profile.config);
    profile.config.max_peers = serve.max_peers.unwrap_or(profile.config.max_peers);
    // A sluice remembers the last exchange of each peer.
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
            text => groups.push(text.parse().map_err(|bad| {
                Failure::Usage(format!("--group {text:?}: {bad}; --group all joins all groups of CoAP"))
            })?),
        }
    }
    Ok(groups)
}

/// Returns the routes, and `/clock` if it is served.
fn resources(serve: &Serve) -> Result<(Router, Option<Resource>), Failure> {
    let mut resources = Resources::default();
    for (path, text) in &serve.resources {
        resources.fixed(path, text)?;
    }
    if serve.demo || serve.resources.is_empty() && serve.directory.is_none() {
        resources.demo()?;
    }
    Ok(resources.finish())
}

/// Returns the directory to serve, if one is given.
fn directory(serve: &Serve, credentials: &Credentials) -> Result<Option<Directory>, Failure> {
    let rights = credentials.rights.clone();
    let terms = serve.writable.then_some(move |top: &_| WriteRules::new(serve, rights, top));
    serve.directory.as_deref().map(|path| Directory::open(path, terms)).transpose()
}

/// Logs the URIs and limits at the start.
fn say_start(
    serve: &Serve,
    config: &ServerConfig,
    handles: &[(Scheme, String, ServerHandle)],
    credentials: &Credentials,
    links: usize,
) {
    // The URIs have the ports that the system chose, which the arguments may not name.
    let uris: Vec<&str> = handles.iter().map(|(_, uri, _)| uri.as_str()).collect();
    let directory = serve.directory.as_ref().map(|path| path.display().to_string());
    info!(
        version = env!("CARGO_PKG_VERSION"),
        commit = COMMIT,
        uris = uris.join(" "),
        resources = links,
        directory,
        writable = serve.writable,
        identities = credentials.identities(),
        rights = credentials.rights(),
        cc = serve.cc,
        threads = config.cores,
        "serving"
    );
    // One line with all fields would be too long to read.
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
    if serve.writable {
        info!(
            max_stored_bytes = serve.max_stored.total,
            max_stored_bytes_of_client = serve.max_stored.client,
            max_files = serve.max_files.total,
            max_files_of_client = serve.max_files.client,
            max_writes_per_s = serve.max_writes.total,
            max_writes_per_s_of_client = serve.max_writes.client,
            "limits of writing"
        );
    }
}

/// Reloads keys, certificates and permissions at every SIGHUP, and warns of a certificate that expires.
async fn tend(mut hangup: Signal, credentials: Arc<Credentials>, servers: Vec<ServerHandle>) {
    let mut expiry = Expiry::default();
    let mut hours = tokio::time::interval(Duration::from_hours(1));
    loop {
        tokio::select! {
            // The first tick comes at once, so a certificate that expires soon is reported at the start.
            _ = hours.tick() => {}
            hung_up = hangup.recv() => {
                if hung_up.is_none() {
                    return;
                }
                match supervisor::reloading(|| credentials.reload(&servers)) {
                    Ok(()) => info!(
                        identities = credentials.identities(),
                        rights = credentials.rights(),
                        "reloaded keys and certificates"
                    ),
                    Err(failure) => {
                        error!(why = failure.to_string(), "not reloaded; keys and certificates stay as they were");
                    }
                }
            }
        }
        // After a reload, too, because it may have brought another certificate.
        expiry.look(credentials.validity());
    }
}

/// Returns the number of file descriptors that a server needs at least.
fn descriptors(serve: &Serve, config: &ServerConfig, credentials: &Credentials) -> u64 {
    let count = |given: bool| u64::from(given);
    let cores = config.cores.max(1) as u64;
    let over_datagrams = count(serve.plain_udp()) + count(credentials.dtls().is_some());
    let streams = [&serve.tcp, &serve.tls, &serve.ws, &serve.wss].into_iter().flatten().count() as u64;
    let connections = if streams > 0 { LEAST_CONNECTIONS } else { 0 };
    process::OWN_DESCRIPTORS
        + (over_datagrams + streams) * cores * OF_EACH_CORE
        + streams
        + connections
        + count(serve.directory.is_some()) * OF_DIRECTORY
        + count(serve.metrics.is_some()) * process::OF_METRICS
        + count(serve.pcap.is_some())
}

/// Serves until all servers have ended or one fails.
async fn run(started: Vec<Started>) -> io::Result<()> {
    let mut serving = JoinSet::new();
    for server in started {
        serving.spawn(server.run());
    }
    while let Some(ended) = serving.join_next().await {
        // The first error is a task that panicked, the second one is the server's.
        ended.map_err(io::Error::other)??;
    }
    Ok(())
}

/// Warns if clients without an identity may write files, or if no client may.
fn warn_of_writers(serve: &Serve, listeners: &[Listener]) {
    let open = |listener: &&Listener| match listener.scheme {
        Scheme::Coap | Scheme::CoapTcp | Scheme::CoapWs => true,
        Scheme::CoapsTcp | Scheme::CoapsWs => serve.ca.is_none(),
        // DTLS has only pre-shared keys here, so each of its clients has an identity.
        Scheme::Coaps => false,
    };
    let open: Vec<&str> = listeners.iter().filter(open).map(|listener| &*listener.uri).collect();
    if serve.rights.is_some() && serve.ca.is_none() && !serve.client_keys.are_given() {
        warn!("no client can write: --rights names clients with an identity; give -u and -k, --keys or --ca");
    }
    if serve.writable && serve.rights.is_none() && !open.is_empty() {
        warn!(
            "anybody may write and remove files at {}; -u and -k (DTLS) or --ca (TLS) admit known clients only",
            open.join(", ")
        );
    }
}

/// Notifies the observers of the clock at every full second.
async fn tick(clock: Resource) {
    loop {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // The nanoseconds are below a second, so the difference is above 0.
        tokio::time::sleep(Duration::from_nanos(1_000_000_000 - u64::from(since.subsec_nanos()))).await;
        clock.changed();
    }
}

/// Returns a summary of a server's counters for the end of the log.
fn summary(scheme: Scheme, handle: &ServerHandle) -> String {
    let stats = handle.stats();
    // Over TCP the transport retransmits, so other counters say how it went.
    if !matches!(scheme, Scheme::Coap | Scheme::Coaps) {
        let tcp = stats.tcp;
        return format!(
            "{} connections with {} requests and {} notifications; {} observers refused; {} handshakes failed; \
             {} connections aborted, {} closed for newer ones; {} responses larger than the client accepts",
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
    let counts = format!(
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
    // Handshakes of CoAP over TLS are among the counters of TCP above.
    if scheme != Scheme::Coaps {
        return counts;
    }
    format!(
        "{counts}; {} DTLS sessions established; {} handshakes failed",
        dtls.handshakes, dtls.handshakes_failed
    )
}
