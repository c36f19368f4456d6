//! `coapace relay`.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use coapace_relay::{Handle, RelayConfig, Service, ServiceOptions};
use coapace_scenario::naming::parse_mechanism;
use tokio::signal::unix::{Signal, SignalKind};
use tracing::{error, info, warn};

use super::device::{bulk, capture, finish, runtime};
use crate::addresses::{cannot_bind, first};
use crate::arguments::{Arguments, RelayArguments};
use crate::capture::CoapPort;
use crate::credentials::Credentials;
use crate::exporter::{Exporter, MetricsSource};
use crate::interrupt::{arrivals, interrupted};
use crate::{COMMIT, Failure, logging, process, supervisor};

/// The number of file descriptors that are kept for other uses than clients' ports: standard streams, the capture,
/// connections of Prometheus.
const OTHER_DESCRIPTORS: u64 = 64;

pub(crate) fn relay(arguments: &Arguments, relay: &RelayArguments) -> Result<(), Failure> {
    logging::of_server(relay.log, relay.verbose, arguments.quiet);
    // Each client takes a port of its own towards the server, so the limit is raised first.
    process::raise_descriptor_limit();
    process::require_descriptors(descriptors(relay), "more clients need more")?;
    let config = config(relay)?;
    let (listen, to) = (first("--listen", &relay.listen)?, first("--to", &relay.to)?);
    // A relay that sends to itself would pass every request on without end.
    if listen == to {
        return Err(Failure::Usage(
            "--listen and --to are the same address; name another port with --listen".into(),
        ));
    }
    let credentials = Arc::new(Credentials::of_relay(relay)?);
    let capture = relay.pcap.as_deref().map(|path| capture(path, relay.pcap_as_coap)).transpose()?;
    let exporter = relay.metrics.as_deref().map(Exporter::bind).transpose()?;
    let runtime = runtime()?;
    // Sockets and signals of tokio need a runtime around them.
    let _inside = runtime.enter();
    let (client_keys, server_key) = (credentials.dtls(), credentials.dtls_to_server());
    // The service takes the keys, and the ports and the log need to know whether there were any.
    let is_dtls = [client_keys.is_some(), server_key.is_some()];
    let interceptor = capture.clone().map(|capture| capture as _);
    let options = ServiceOptions { listen, to, config: config.clone(), client_keys, server_key, interceptor };
    let service =
        Service::bind(options).map_err(|error| cannot_bind("--listen", &listen.to_string(), &error))?;
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
    // Other tasks may print. A lock that is kept would block them.
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
        // These tasks end with the runtime.
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

/// Reloads the keys at every SIGHUP.
async fn reload_at(mut hangup: Signal, credentials: Arc<Credentials>) {
    while hangup.recv().await.is_some() {
        match supervisor::reloading(|| credentials.reload(&[])) {
            Ok(()) => info!(identities = credentials.identities(), "reloaded keys"),
            // A mistake in a file must not end a relay that runs.
            Err(failure) => error!(why = failure.to_string(), "not reloaded; keys stay as they were"),
        }
    }
}

/// Returns how many file descriptors a relay with one client needs.
fn descriptors(relay: &RelayArguments) -> u64 {
    let count = |given: bool| u64::from(given);
    // The 2 are the port for clients and the port of one client towards the server.
    process::OWN_DESCRIPTORS
        + 2
        + count(relay.metrics.is_some()) * process::OF_METRICS
        + count(relay.pcap.is_some())
}

fn config(relay: &RelayArguments) -> Result<RelayConfig, Failure> {
    let mechanism = parse_mechanism(relay.cc.as_deref().unwrap_or("default")).map_err(Failure::Usage)?;
    let mut config = RelayConfig::new(mechanism);
    let asked = relay.max_clients.unwrap_or(config.max_sources);
    // With more clients than ports, new ones would be refused by the system and not by the rule of --max-clients.
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

/// Returns the number of ports that may be open at a time.
fn most_ports() -> u32 {
    let most = process::most_descriptors().saturating_sub(OTHER_DESCRIPTORS);
    u32::try_from(most).unwrap_or(u32::MAX).max(1)
}

impl MetricsSource for Handle {
    fn exposition(&self) -> String {
        self.report().exposition()
    }

    fn is_closing(&self) -> bool {
        false
    }
}

/// Logs each limit that is reached, at most once a second.
async fn watch(handle: Handle) {
    let mut before = handle.report();
    loop {
        tokio::time::sleep(Duration::from_secs(1)).await;
        // Counters only grow, so the difference is the last second's. A line for each event would let clients fill the log.
        let now = handle.report();
        for (what, count) in [
            (
                "clients whose port went to a newer client (--max-clients)",
                now.sources_closed - before.sources_closed,
            ),
            ("requests answered 5.03 because a table is full", now.relay.refused - before.relay.refused),
            (
                "requests and datagrams that came back from another relay",
                now.relay.loops - before.relay.loops,
            ),
            (
                "ports that the system refused (ulimit -n)",
                now.relay.ports_refused - before.relay.ports_refused,
            ),
            ("answers that no table had room for", now.relay.unanswerable - before.relay.unanswerable),
            ("datagrams of more than 2048 bytes", now.relay.too_long - before.relay.too_long),
            (
                "datagrams of DTLS that no table had room for",
                now.relay.unseen_dropped - before.relay.unseen_dropped,
            ),
            ("DTLS sessions whose place went to a newer one", now.dtls.evicted - before.dtls.evicted),
        ] {
            if count > 0 {
                warn!(count, "limit reached: {what}");
            }
        }
        // A failed handshake is a wrong key and not a limit, so it has a text of its own.
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
