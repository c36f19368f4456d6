//! `coapace serve`.

use std::io::{self, Write};
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};
use std::time::{Duration, SystemTime};

use coapace_lab::naming::parse_mechanism;
use coapace_net::{Profile, Resource, Server, ServerConfig, ServerHandle};

use super::device::runtime;
use super::output::remark;
use super::resources::Resources;
use crate::Failure;
use crate::arguments::{Arguments, Serve};
use crate::exporter::Exporter;

pub(crate) fn serve(arguments: &Arguments, serve: &Serve) -> Result<(), Failure> {
    let mechanism = parse_mechanism(&serve.cc).map_err(Failure::Usage)?;
    let mut resources = Resources::default();
    for (path, text) in &serve.resources {
        resources.fixed(path, text)?;
    }
    if serve.demo || serve.resources.is_empty() {
        resources.demo()?;
    }
    let (router, clock) = resources.finish();

    let mut config = ServerConfig { profile: Profile::from(mechanism), ..ServerConfig::default() };
    config.cores = serve.threads.map_or(config.cores, usize::from);
    let exporter = serve.metrics.as_deref().map(Exporter::bind).transpose()?;
    let server = bind(serve.bind.as_deref(), config)?;
    let address = server.local_addr().map_err(|error| Failure::Io("the socket".to_owned(), error))?;
    let handle = server.handle();
    let mut out = io::stdout();
    writeln!(out, "coap://{address}")?;
    if let Some(exporter) = &exporter {
        writeln!(out, "{}", exporter.uri())?;
    }
    out.flush()?;
    let ended = runtime()?.block_on(async {
        let stop = handle.clone();
        tokio::spawn(async move {
            if interrupted().await.is_ok() {
                stop.shutdown();
            }
        });
        if let Some(exporter) = exporter {
            tokio::spawn(exporter.run(vec![handle.clone()]));
        }
        if let Some(clock) = clock {
            tokio::spawn(tick(clock));
        }
        server.serve(router).await
    });
    remark(arguments, &summary(&handle));
    ended.map_err(|error| Failure::Io("cannot serve".to_owned(), error))
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

/// A server at the address named, or at the default port of all addresses.
fn bind(named: Option<&str>, config: ServerConfig) -> Result<Server, Failure> {
    let addresses: Vec<SocketAddr> = match named {
        Some(text) => text
            .to_socket_addrs()
            .map_err(|error| {
                Failure::Usage(format!("--bind takes ADDRESS:PORT, as [::]:5683, not {text:?} ({error})"))
            })?
            .collect(),
        None => vec![([0u16; 8], 5683).into(), ([0u8; 4], 5683).into()],
    };
    let shown = named.unwrap_or("[::]:5683");
    let alone = addresses.iter().map(UdpSocket::bind).reduce(Result::or);
    // Several threads share the port, and so they would with another server.
    let free = alone.unwrap_or_else(|| Err(io::ErrorKind::AddrNotAvailable.into())).map(drop);
    free.and_then(|()| Server::bind_with(&addresses[..], config)).map_err(|error| {
        Failure::Network(match error.kind() {
            io::ErrorKind::AddrInUse => {
                format!("{shown} is in use; name another port with --bind, 0 for any that is free")
            }
            io::ErrorKind::AddrNotAvailable => {
                format!("{shown} is not an address of this host; --bind [::]:PORT is all of them")
            }
            io::ErrorKind::PermissionDenied => {
                format!("{shown} is not for this user to bind to; name a port above 1023 with --bind")
            }
            _ => format!("cannot bind to {shown}: {error}"),
        })
    })
}

fn summary(handle: &ServerHandle) -> String {
    let stats = handle.stats();
    let (endpoint, net) = (stats.endpoint, stats.net);
    format!(
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
    )
}
