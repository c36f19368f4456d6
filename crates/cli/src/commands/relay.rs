//! `coapace relay`.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use coapace_net::relay::{Handle, RelayConfig, Service, ServiceOptions};
use coapace_scenario::naming::parse_mechanism;
use tokio::signal::unix::{Signal, SignalKind};
use tracing::{error, info, warn};

use super::device::{bulk, capture, finish, runtime};
use crate::addresses::first;
use crate::arguments::{Arguments, RelayArguments};
use crate::capture::CoapPort;
use crate::credentials::Credentials;
use crate::exporter::{Exporter, MetricsSource};
use crate::interrupt::{arrivals, interrupted};
use crate::{COMMIT, Failure, logging, process, supervisor};

/// Descriptors for other purposes than the ports of clients: standard streams, the capture, connections of Prometheus.
const OTHER_DESCRIPTORS: u64 = 64;

pub(crate) fn relay(arguments: &Arguments, relay: &RelayArguments) -> Result<(), Failure> {
    logging::of_server(relay.log, relay.verbose, arguments.quiet);
    process::raise_descriptor_limit();
    process::require_descriptors(descriptors(relay), "more clients need more")?;
    let config = config(relay)?;
    let (listen, to) = (first("--listen", &relay.listen)?, first("--to", &relay.to)?);
    if listen == to {
        return Err(Failure::Usage(
            "--listen and --to are the same address; name another port with --listen".into(),
        ));
    }
    let credentials = Arc::new(Credentials::of_relay(relay)?);
    let capture = relay.pcap.as_deref().map(|path| capture(path, relay.pcap_as_coap)).transpose()?;
    let exporter = relay.metrics.as_deref().map(Exporter::bind).transpose()?;
    let runtime = runtime()?;
    let _inside = runtime.enter();
    let (client_keys, server_key) = (credentials.dtls(), credentials.dtls_to_server());
    let is_dtls = [client_keys.is_some(), server_key.is_some()];
    let interceptor = capture.clone().map(|capture| capture as _);
    let options = ServiceOptions { listen, to, config: config.clone(), client_keys, server_key, interceptor };
    let service = Service::bind(options).map_err(|error| cannot_bind(listen, &error))?;
    let local = service.local_addr();
    if let (Some(capture), Some(file)) = (&capture, &relay.pcap) {
        let ports = [local.port(), to.port()].into_iter().zip(is_dtls);
        let decode_as = capture.name_ports(ports.map(|(port, dtls)| CoapPort { port, dtls }).collect());
        info!(file = %file.display(), decode_as, "capturing");
    }
    let (interrupted, hangup) = (interrupted()?, arrivals(SignalKind::hangup())?);
    let mut out = io::stdout().lock();
    writeln!(out, "{}://{local}", if is_dtls[0] { "coaps" } else { "coap" })?;
    if let Some(exporter) = &exporter {
        writeln!(out, "{}", exporter.uri())?;
    }
    out.flush()?;
    drop(out);
    let handle = service.handle();
    info!(
        version = env!("CARGO_PKG_VERSION"),
        commit = COMMIT,
        listen = %local,
        %to,
        cc = %config.mechanism,
        bulk = relay.bulk,
        share = config.shares,
        sluice = config.sluice,
        max_clients = config.max_sources,
        dtls_to_clients = is_dtls[0],
        dtls_to_server = is_dtls[1],
        "relaying"
    );
    let watched = handle.clone();
    runtime.block_on(async {
        if let Some(exporter) = exporter {
            tokio::spawn(exporter.run(handle.clone()));
        }
        tokio::spawn(watch(handle.clone()));
        tokio::spawn(reload_at(hangup, credentials));
        // The report takes the lock of all that the relay does.
        tokio::spawn(supervisor::watch(move || {
            watched.report();
            std::future::ready(())
        }));
        supervisor::ready();
        tokio::select! {
            () = service.run() => {}
            () = interrupted => {}
        }
        supervisor::stopping();
    });
    info!("stopped: {}", handle.report());
    finish(capture.as_deref(), relay.pcap.as_deref(), Ok(()))
}

/// Reads the keys again at every SIGHUP.
async fn reload_at(mut hangup: Signal, credentials: Arc<Credentials>) {
    while hangup.recv().await.is_some() {
        match supervisor::reloading(|| credentials.reload(&[])) {
            Ok(()) => info!(identities = credentials.identities(), "reloaded keys"),
            Err(failure) => error!(why = failure.to_string(), "not reloaded; keys stay as they were"),
        }
    }
}

/// Returns the descriptors that a relay needs at least: with one client.
fn descriptors(relay: &RelayArguments) -> u64 {
    let count = |given: bool| u64::from(given);
    process::OWN_DESCRIPTORS
        + 2
        + count(relay.metrics.is_some()) * process::OF_METRICS
        + count(relay.pcap.is_some())
}

fn config(relay: &RelayArguments) -> Result<RelayConfig, Failure> {
    let mechanism = parse_mechanism(relay.cc.as_deref().unwrap_or("default")).map_err(Failure::Usage)?;
    let mut config = RelayConfig::new(mechanism);
    let asked = relay.max_clients.unwrap_or(config.max_sources);
    config.max_sources = asked.min(most_ports());
    if config.max_sources < asked {
        warn!("only {} clients at a time: no more files may be open (ulimit -n)", config.max_sources);
    }
    config.max_retransmit = relay.max_retransmit.unwrap_or(config.max_retransmit);
    config.bulk = bulk(&relay.bulk)?;
    config.nstart = relay.nstart;
    (config.shares, config.sluice) = (relay.share, relay.sluice);
    config.verify = relay.trust.verify();
    Ok(config)
}

/// Returns how many ports may be open at a time.
fn most_ports() -> u32 {
    use nix::sys::resource::{Resource, getrlimit};
    let most = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
    u32::try_from(most.saturating_sub(OTHER_DESCRIPTORS)).unwrap_or(u32::MAX).max(1)
}

fn cannot_bind(listen: SocketAddr, error: &io::Error) -> Failure {
    Failure::Network(match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!("{listen} is in use; name another port with --listen, 0 for any that is free")
        }
        io::ErrorKind::AddrNotAvailable => {
            format!("{listen} is not an address of this host; name one with --listen")
        }
        io::ErrorKind::PermissionDenied => {
            format!("{listen} is not for this user to bind to; name a port above 1023 with --listen")
        }
        _ => format!("cannot bind to {listen}: {error}"),
    })
}

impl MetricsSource for Handle {
    fn exposition(&self) -> String {
        self.report().exposition()
    }

    fn is_closing(&self) -> bool {
        false
    }
}

/// Logs the limits that are reached, once a second at most.
async fn watch(handle: Handle) {
    let mut before = handle.report();
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = handle.report();
        for (what, count) in [
            ("clients that made room for others (--max-clients)", now.sources_closed - before.sources_closed),
            ("requests answered 5.03 because a table is full", now.relay.refused - before.relay.refused),
            (
                "requests and datagrams that came back from another relay",
                now.relay.loops - before.relay.loops,
            ),
            (
                "ports that the system had no room for (ulimit -n)",
                now.relay.ports_refused - before.relay.ports_refused,
            ),
            ("answers without room", now.relay.unanswerable - before.relay.unanswerable),
            ("datagrams of more than 2048 bytes", now.relay.too_long - before.relay.too_long),
            ("datagrams of DTLS without room", now.relay.unseen_dropped - before.relay.unseen_dropped),
            ("DTLS sessions that made room for others", now.dtls.evicted - before.dtls.evicted),
        ] {
            if count > 0 {
                warn!(count, "limit reached: {what}");
            }
        }
        let failed = now.relay.handshakes_failed - before.relay.handshakes_failed;
        if failed > 0 {
            warn!(
                count = failed,
                "handshakes with the server failed; check --server-identity and --server-key"
            );
        }
        before = now;
    }
}
