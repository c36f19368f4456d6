//! A small HTTP/1 server for GET and HEAD: one request for each connection.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::Failure;
use crate::addresses::{cannot_bind, named_as};
use crate::shown::complain;

/// The maximum number of connections at a time. A connection beyond that closes the oldest one.
const MAX_CONNECTIONS: usize = 32;

/// The longest wait for the head of an HTTP request. Programs send it at once.
const HEAD_PATIENCE: Duration = Duration::from_secs(2);

/// The longest duration of a connection. Prometheus gives up after 10 s.
const PATIENCE: Duration = Duration::from_secs(10);

/// The longest head of an HTTP request in bytes. The next constant is the most header fields.
const MAX_HEAD: usize = 8 << 10;
const MAX_FIELDS: usize = 64;

/// The media type of plain text.
pub(crate) const PLAIN: &str = "text/plain; charset=utf-8";

/// An HTTP response.
pub(crate) struct HttpResponse<'a> {
    /// The status code with its phrase.
    pub(crate) status: &'static str,
    /// The media type of the body.
    pub(crate) kind: &'static str,
    /// Additional header fields, each with CRLF at its end.
    pub(crate) more: &'static str,
    pub(crate) body: Cow<'a, [u8]>,
}

/// The resources of an HTTP server.
pub(crate) trait Site: Send + Sync + 'static {
    /// Returns the response to a GET of this path, which has no query.
    fn get(&self, path: &str) -> HttpResponse<'_>;
}

/// The listening socket of an HTTP server.
#[derive(Debug)]
pub(crate) struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
}

impl HttpServer {
    /// Binds to the address that the option `flag` names.
    pub(crate) fn bind(flag: &str, example: &str, text: &str) -> Result<Self, Failure> {
        let addresses = named_as(flag, example, text)?;
        let bound = TcpListener::bind(&addresses[..]).and_then(|listener| {
            // tokio requires this of sockets that it takes over.
            listener.set_nonblocking(true)?;
            Ok(Self { address: listener.local_addr()?, listener })
        });
        bound.map_err(|error| cannot_bind(flag, text, &error))
    }

    /// Returns the URI of a path.
    pub(crate) fn uri(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Answers HTTP requests until the runtime ends, each connection in a task of its own. One descriptor is kept for
    /// connections, so that metrics can be read while the rest of the process has taken all others.
    pub(crate) async fn run(self, site: impl Site) {
        let listener = match tokio::net::TcpListener::from_std(self.listener) {
            Ok(listener) => listener,
            Err(error) => return complain(&format!("cannot serve HTTP: {error}")),
        };
        let site = Arc::new(site);
        let spare = Arc::new(SpareDescriptor::default());
        let mut talks: VecDeque<JoinHandle<()>> = VecDeque::new();
        let copy = || listener.as_fd().try_clone_to_owned();
        spare.fill(copy);
        loop {
            let Ok((mut stream, _)) = listener.accept().await else {
                if !spare.release() {
                    // The process has no descriptors left; trying again at once would keep a core busy.
                    sleep(Duration::from_millis(50)).await;
                }
                continue;
            };
            spare.fill(copy);
            // Ended connections leave the queue first, so that they do not push out one that is still served.
            talks.retain(|talk| !talk.is_finished());
            if talks.len() >= MAX_CONNECTIONS
                && let Some(oldest) = talks.pop_front()
            {
                // Clients that connect and send nothing must not keep Prometheus out.
                oldest.abort();
            }
            let (site, spare) = (site.clone(), spare.clone());
            talks.push_back(tokio::spawn(async move {
                // A client that is too slow or gone gets no answer.
                if let Ok(Ok(())) = timeout(PATIENCE, talk(&mut stream, &*site)).await {
                    // Closing the descriptor would leave it to another part of the process. Both sides have ended the
                    // connection, so keeping it costs nothing else.
                    spare.fill(|| stream.into_std().map(OwnedFd::from));
                }
            }));
        }
    }
}

/// A file descriptor in reserve. If a connection cannot be accepted because the process has no free descriptor, the
/// reserve is closed, so that the next attempt succeeds.
#[derive(Default)]
struct SpareDescriptor(Mutex<Option<OwnedFd>>);

impl SpareDescriptor {
    /// Keeps the descriptor that `open` returns, unless one is already in reserve.
    fn fill(&self, open: impl FnOnce() -> io::Result<OwnedFd>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_none() {
            *kept = open().ok();
        }
    }

    /// Closes the descriptor. Returns false if no descriptor is in reserve.
    fn release(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take().is_some()
    }
}

/// Answers one request and ends the connection in both directions.
///
/// # Errors
/// The errors of the connection, and a request that does not arrive whole in time.
async fn talk(stream: &mut TcpStream, site: &impl Site) -> io::Result<()> {
    let mut head = Vec::new();
    // One deadline for the whole head: a client that sends a byte a second does not extend it.
    let until = Instant::now() + HEAD_PATIENCE;
    let answer = loop {
        if let Some(answer) = respond(&head, site) {
            break answer;
        }
        if timeout_at(until, stream.read_buf(&mut head)).await?? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    stream.write_all(&answer).await?;
    // The client sees the end of the answer and closes its side, which ends the loop below.
    stream.shutdown().await?;
    // Closing a connection with unread data resets it, and the answer might be lost.
    let mut rest = [0; 1024];
    // PATIENCE ends this loop if the client never closes its side.
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

/// Returns the answer to the head of a request; `None` while the head is incomplete.
fn respond(head: &[u8], site: &impl Site) -> Option<Vec<u8>> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let failed = |status, more, body: &'static str| {
        Some(HttpResponse { more, ..HttpResponse::plain(status, body) }.bytes(true))
    };
    match request.parse(head) {
        // A request may come in several segments.
        Ok(httparse::Status::Partial) if head.len() < MAX_HEAD => return None,
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) => {
            return failed("431 Request Header Fields Too Large", "", "too long\n");
        }
        Err(_) => return failed("400 Bad Request", "", "not HTTP/1\n"),
    }
    let method = request.method.unwrap_or_default();
    // RFC 9110 §15.5.6 requires Allow in a 405.
    if !matches!(method, "GET" | "HEAD") {
        return failed("405 Method Not Allowed", "Allow: GET, HEAD\r\n", "GET or HEAD\n");
    }
    // A query changes nothing, and some programs add one.
    let path = request.path.unwrap_or_default().split('?').next().unwrap_or_default();
    Some(site.get(path).bytes(method == "GET"))
}

impl<'a> HttpResponse<'a> {
    /// Returns a response with one line of text.
    pub(crate) fn plain(status: &'static str, body: &'a str) -> Self {
        Self { status, kind: PLAIN, more: "", body: body.as_bytes().into() }
    }

    /// Returns the bytes of the response; without the body if `whole` is false, for a HEAD request.
    fn bytes(&self, whole: bool) -> Vec<u8> {
        let Self { status, kind, more, body } = self;
        let length = body.len();
        let mut bytes = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n{more}Connection: close\r\n\r\n"
        )
        .into_bytes();
        if whole {
            bytes.extend_from_slice(body);
        }
        bytes
    }
}
