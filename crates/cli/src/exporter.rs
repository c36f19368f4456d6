//! The metrics of a server or relay over HTTP, for Prometheus.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::addresses::named_as;
use crate::shown::complain;
use crate::{Failure, process};

/// The most connections at a time. One more closes the oldest.
const MAX_CONNECTIONS: usize = 32;

/// The longest wait for the head of a request. Programs send it at once.
const HEAD_PATIENCE: Duration = Duration::from_secs(2);

/// The longest duration of a connection. Prometheus gives up after 10 s.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest head of a request in bytes, and the most header fields.
const MAX_HEAD: usize = 8 << 10;
const MAX_FIELDS: usize = 64;

/// A source of metrics.
pub(crate) trait MetricsSource: Send + Sync + 'static {
    /// Returns the metrics in the text format of Prometheus.
    fn exposition(&self) -> String;

    /// Returns whether requests are refused because the end is near.
    fn is_closing(&self) -> bool;
}

/// A listening socket.
#[derive(Debug)]
pub(crate) struct Exporter {
    listener: TcpListener,
    address: SocketAddr,
}

impl Exporter {
    /// Binds to an address in the syntax of `--metrics`.
    pub(crate) fn bind(text: &str) -> Result<Self, Failure> {
        let addresses = named_as("--metrics", "127.0.0.1:9683 or [::1]:9683", text)?;
        let bound = TcpListener::bind(&addresses[..]).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(Self { address: listener.local_addr()?, listener })
        });
        bound.map_err(|error| {
            Failure::Network(match error.kind() {
                io::ErrorKind::AddrInUse => format!("{text} is in use; name another port with --metrics"),
                _ => format!("cannot bind to {text}: {error}"),
            })
        })
    }

    /// Returns the URI of the metrics.
    pub(crate) fn uri(&self) -> String {
        format!("http://{}/metrics", self.address)
    }

    /// Answers requests for as long as the runtime lives. It runs in tasks of its own, and locks a server or relay
    /// only to copy its counters.
    pub(crate) async fn run(self, measured: impl MetricsSource) {
        let listener = match tokio::net::TcpListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(error) => return complain(&format!("no metrics: {error}")),
        };
        let measured = Arc::new(measured);
        let mut talks: VecDeque<JoinHandle<()>> = VecDeque::new();
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                // The process may have no descriptors left; trying again at once would keep a core busy.
                sleep(Duration::from_millis(50)).await;
                continue;
            };
            talks.retain(|talk| !talk.is_finished());
            if talks.len() >= MAX_CONNECTIONS
                && let Some(oldest) = talks.pop_front()
            {
                oldest.abort();
            }
            let measured = measured.clone();
            talks.push_back(tokio::spawn(async move {
                // A client that is too slow or gone gets no answer.
                let _ = timeout(PATIENCE, talk(stream, &*measured)).await;
            }));
        }
    }
}

/// Answers one request and closes the connection.
async fn talk(mut stream: TcpStream, measured: &impl MetricsSource) -> io::Result<()> {
    let mut head = Vec::new();
    let until = Instant::now() + HEAD_PATIENCE;
    let answer = loop {
        if let Some(answer) = respond(&head, measured) {
            break answer;
        }
        let Ok(read) = timeout_at(until, stream.read_buf(&mut head)).await else { return Ok(()) };
        if read? == 0 {
            return Ok(());
        }
    };
    stream.write_all(&answer).await?;
    stream.shutdown().await?;
    // Closing a connection with unread data resets it, and the answer might be lost.
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

/// Returns the answer to the head of a request; `None` while the head is incomplete.
fn respond(head: &[u8], measured: &impl MetricsSource) -> Option<Vec<u8>> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let plain = "text/plain; charset=utf-8";
    let only = "Allow: GET, HEAD\r\n";
    let failed = |status, more, body: &str| Some(answer(status, plain, more, body, true));
    match request.parse(head) {
        Ok(httparse::Status::Partial) if head.len() < MAX_HEAD => return None,
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => {
            return failed("431 Request Header Fields Too Large", "", "too long\n");
        }
        Err(_) => return failed("400 Bad Request", "", "not HTTP/1\n"),
    }
    let method = request.method.unwrap_or_default();
    if !matches!(method, "GET" | "HEAD") {
        return failed("405 Method Not Allowed", only, "GET or HEAD\n");
    }
    let path = request.path.unwrap_or_default().split('?').next();
    let whole = method == "GET";
    match path {
        Some("/metrics") => {}
        Some("/healthz") if measured.is_closing() => {
            return Some(answer("503 Service Unavailable", plain, "", "stopping\n", whole));
        }
        Some("/healthz") => return Some(answer("200 OK", plain, "", "ok\n", whole)),
        _ => return failed("404 Not Found", "", "the metrics are at /metrics, and /healthz says ok\n"),
    }
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    Some(answer("200 OK", kind, "", &(measured.exposition() + &process::exposition()), whole))
}

/// Returns a response; a HEAD request gets it without its body.
fn answer(status: &str, kind: &str, more: &str, body: &str, whole: bool) -> Vec<u8> {
    let length = body.len();
    let body = if whole { body } else { "" };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{more}Connection: close\r\n\r\n{body}"
    )
    .into_bytes()
}
