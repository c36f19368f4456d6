//! The connections of a client, by destination.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use coap_numbers::option;
use coapace_proto::block::{MAX_SZX, Transfer};
use coapace_proto::stream::Signal;
use coapace_proto::{Options, Token};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::timeout;

use super::bytes::ByteWire;
use super::connection::{Connection, PeerLimits};
use super::unanswered::{StreamRequest, Unanswered};
use super::wire::{ByteStream, ConnectionEnd, Wire};
use super::{ConnectionFailure, MAX_OUTSTANDING, PATIENCE};
use crate::asker::Blocks;
use crate::candidates::{Candidates, race};
use crate::clock::Clock;
use crate::inbox::Inbox;
use crate::lock::lock;
use crate::secure::Connector;
use crate::uri::{Host, Scheme, Uri};
use crate::{Error, Response};

/// The time from one attempt to connect to the next, at another address (RFC 8305 §5, §8).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// The connections by destination. The first request to a destination opens its connection.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    open: Mutex<HashMap<ConnectionTarget, (Candidates, ConnectionHandle)>>,
    /// The connectors for `coaps+tcp` and `coaps+ws`. `None` if the client has no certificates.
    pub(crate) tls: Option<[Connector; 2]>,
}

/// The destination of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct ConnectionTarget {
    scheme: Scheme,
    host: Host,
    port: u16,
}

/// The server that a connection is opened to.
#[derive(Debug)]
struct RemoteServer {
    scheme: Scheme,
    candidates: Candidates,
    /// The host and port of the URI.
    authority: String,
    /// The name that the server's certificate must be valid for.
    name: String,
}

/// A connection, as seen by tasks that make requests.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionHandle {
    requests: mpsc::Sender<StreamRequest>,
    /// The limits of the server once they are known, or the reason why the connection is lost.
    server: watch::Receiver<Option<Result<PeerLimits, ConnectionFailure>>>,
    outstanding: Arc<Semaphore>,
    tokens: Arc<AtomicU32>,
    /// The clock for the freshness of representations.
    pub(crate) clock: Clock,
}

impl Connections {
    /// Returns the connection to the server of a URI, and opens one if there is none. `candidates` are the addresses of
    /// the server.
    pub(crate) fn to(&self, uri: &Uri, candidates: Candidates) -> Result<ConnectionHandle, Error> {
        let origin = ConnectionTarget { scheme: uri.scheme, host: uri.host.clone(), port: uri.port };
        let mut open = lock(&self.open);
        // A name may have other addresses than it had when the connection was opened.
        let still = |known: &Candidates| known.iter().any(|known| candidates.iter().any(|one| one == known));
        if let Some((known, stream)) = open.get(&origin)
            && !stream.requests.is_closed()
            && still(known)
        {
            return Ok(stream.clone());
        }
        // Connections that have ended are removed only when another is opened.
        open.retain(|_, (_, stream)| !stream.requests.is_closed());
        // This may fail, so it comes before the task is spawned.
        let security = self.security(uri.scheme)?;
        let (requests, receiver) = mpsc::channel(MAX_OUTSTANDING);
        let (tell, server) = watch::channel(None);
        let stream = ConnectionHandle {
            requests,
            server,
            outstanding: Semaphore::new(MAX_OUTSTANDING).into(),
            tokens: Arc::default(),
            clock: Clock::start(),
        };
        let server = RemoteServer {
            scheme: uri.scheme,
            candidates: candidates.clone(),
            authority: uri.authority(),
            name: uri.host.to_string(),
        };
        tokio::spawn(run(server, security, receiver, tell, stream.clock));
        open.insert(origin, (candidates, stream.clone()));
        Ok(stream)
    }

    fn security(&self, scheme: Scheme) -> Result<Option<Connector>, Error> {
        let place = match scheme {
            Scheme::CoapsTcp => 0,
            Scheme::CoapsWs => 1,
            _ => return Ok(None),
        };
        let connectors = self.tls.as_ref().ok_or(Error::Tls(crate::TlsError::NoRoots))?;
        Ok(Some(connectors[place].clone()))
    }
}

impl ConnectionHandle {
    /// Returns a transfer that sends `body` to the server, and receives the body of the response.
    pub(crate) async fn transfer(
        &self,
        mut options: Options,
        body: Vec<u8>,
        blocks: Blocks,
    ) -> Result<Transfer, Error> {
        let takes = self.server().await?;
        let mut head = Vec::new();
        options.write(&[], &mut head);
        // Block1, Size1, Request-Tag and the payload marker take up to 24 bytes more.
        let room = takes.room().saturating_sub(head.len() + 24);
        let (in_one, bert) = match takes.blocks() {
            None => (body.len() < takes.room().saturating_sub(head.len()), false),
            Some(bert) => (body.len() <= if bert { room } else { room.min(blocks.size()) }, bert),
        };
        // A body in blocks needs a Request-Tag, like over datagrams (RFC 9175 §3.3).
        if !in_one && options.value(option::REQUEST_TAG).is_none() {
            options.push(option::REQUEST_TAG, &self.token());
        }
        Ok(match takes.blocks() {
            None if in_one => Transfer::reliable(options, body, usize::MAX, blocks.max_body),
            Some(_) if bert && blocks.szx == MAX_SZX => {
                Transfer::reliable(options, body, room, blocks.max_body)
            }
            // A server that did not announce block-wise transfers may support them nevertheless (RFC 8323 §5.3.2).
            _ => Transfer::new(options, body, blocks.szx, blocks.max_body),
        })
    }

    /// Returns the limits of the server, once its CSM has arrived.
    async fn server(&self) -> Result<PeerLimits, Error> {
        let mut server = self.server.clone();
        let limits = server.wait_for(Option::is_some).await.ok().and_then(|limits| limits.clone());
        Ok(limits.ok_or_else(ended)??)
    }

    /// Returns whether the connection takes no more requests.
    pub(crate) fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }

    /// Returns a token that no other request of the connection has.
    pub(crate) fn token(&self) -> Token {
        let next = self.tokens.fetch_add(1, Ordering::Relaxed);
        Token::new(&next.to_be_bytes()).unwrap_or(Token::EMPTY)
    }

    /// Sends one request, and returns the response.
    pub(crate) async fn ask(&self, request: StreamRequest) -> Result<Response, Error> {
        let _permit = self.outstanding.acquire().await.map_err(|_| ended())?;
        self.exchange(request).await
    }

    /// Waits until a slot among the outstanding requests is free, and takes it for an observation.
    pub(crate) async fn place(&self) -> Result<OwnedSemaphorePermit, Error> {
        self.outstanding.clone().acquire_owned().await.map_err(|_| ended())
    }

    /// Registers for notifications, which go into the inbox. Returns the first response.
    pub(crate) async fn register(
        &self,
        mut request: StreamRequest,
        inbox: &Arc<Inbox>,
    ) -> Result<Response, Error> {
        request.receivers.inbox = Some(inbox.clone());
        self.exchange(request).await
    }

    async fn exchange(&self, mut request: StreamRequest) -> Result<Response, Error> {
        let (first, response) = oneshot::channel();
        (request.since, request.receivers.first) = (Instant::now(), Some(first));
        let sent = self.requests.send(request);
        if sent.await.is_err() {
            // The reason is known if the connection was never open.
            self.server().await?;
            return Err(ended());
        }
        response.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Registers once more. The response goes into the inbox, like a notification.
    pub(crate) async fn register_again(
        &self,
        mut request: StreamRequest,
        inbox: &Arc<Inbox>,
    ) -> Result<(), Error> {
        // The future may be dropped here. After this it is certain that the registration is sent.
        let room = self.requests.reserve().await.map_err(|_| ended())?;
        inbox.register();
        request.receivers.inbox = Some(inbox.clone());
        room.send(request);
        Ok(())
    }

    /// Sends a request whose response is not awaited. Drops it if the queue of requests is full.
    pub(crate) fn send(&self, request: StreamRequest) {
        let _ = self.requests.try_send(request);
    }
}

fn ended() -> Error {
    Error::Connection(io::ErrorKind::ConnectionAborted)
}

/// Opens a connection and sends the requests of the client's tasks over it, until no more can come.
///
/// A server may close an idle connection just before a request arrives. Then requests that are still unanswered and
/// change nothing are sent once more, over a second connection.
async fn run(
    to: RemoteServer,
    security: Option<Connector>,
    mut requests: mpsc::Receiver<StreamRequest>,
    server: watch::Sender<Option<Result<PeerLimits, ConnectionFailure>>>,
    clock: Clock,
) {
    for is_second in [false, true] {
        let mut unanswered = Unanswered::new(clock);
        let lost = match timeout(PATIENCE, open(&to, security.clone())).await {
            Err(_) => ConnectionFailure::Io(io::ErrorKind::TimedOut),
            Ok(Err(error)) => ConnectionFailure::opening(&error, &to.name),
            Ok(Ok(mut connection)) => {
                let conversed = converse(&mut connection, &mut requests, &mut unanswered, &server).await;
                // An Abort or a Release is still queued. The server gets a second to take it.
                if matches!(conversed, Err(ConnectionEnd::Broken(_)) | Ok(())) {
                    let _ = timeout(Duration::from_secs(1), connection.close()).await;
                }
                match conversed {
                    Ok(()) => return,
                    Err(ended) => ConnectionFailure::open(&ended, &to.name),
                }
            }
        };
        requests.close();
        server
            .send_if_modified(|limits| limits.is_none().then(|| *limits = Some(Err(lost.clone()))).is_some());
        // Only a connection that has worked may have been closed as idle. After the second one the requests fail.
        let may_repeat = unanswered.has_answered && !is_second;
        let late = std::iter::from_fn(|| requests.try_recv().ok());
        let (again, over): (Vec<_>, Vec<_>) =
            unanswered.into_requests().chain(late).partition(|request| may_repeat && request.may_repeat());
        for mut request in over {
            request.receivers.end(Err(lost.clone().into()));
        }
        if again.is_empty() {
            return;
        }
        let (sender, receiver) = mpsc::channel(again.len());
        for request in again {
            // There is room for each.
            let _ = sender.try_send(request);
        }
        requests = receiver;
    }
}

async fn open(server: &RemoteServer, security: Option<Connector>) -> io::Result<Connection> {
    let stream = connect(&server.candidates).await?;
    // Each message is written at once, so Nagle's algorithm would only delay it.
    let _ = stream.set_nodelay(true);
    let stream: Box<dyn ByteStream> = match security {
        None => Box::new(stream),
        Some(connector) => connector.connect(&server.name, stream).await?,
    };
    let wire: Box<dyn Wire> = match server.scheme {
        Scheme::CoapWs | Scheme::CoapsWs => {
            Box::new(super::websocket::WebSocketWire::open(stream, &server.authority).await?)
        }
        _ => Box::new(ByteWire::new(stream)),
    };
    Ok(Connection::new(wire))
}

/// Connects to the first address that accepts a connection. The next is tried when the last has refused, or after 250 ms.
async fn connect(candidates: &Candidates) -> io::Result<TcpStream> {
    let addresses: Vec<SocketAddr> = candidates.iter().collect();
    let attempt =
        |number: usize| TcpStream::connect(addresses.get(number).copied().unwrap_or(candidates.first));
    let (_, stream) = race(addresses.len(), attempt, |_| tokio::time::sleep(ATTEMPT_DELAY)).await?;
    Ok(stream)
}

/// Sends requests and handles responses, until no more requests can come or the connection ends.
async fn converse(
    connection: &mut Connection,
    requests: &mut mpsc::Receiver<StreamRequest>,
    unanswered: &mut Unanswered,
    server: &watch::Sender<Option<Result<PeerLimits, ConnectionFailure>>>,
) -> Result<(), ConnectionEnd> {
    // The limits of the server have to be known before the first request. Other messages may have come with them.
    let mut arrived = Vec::new();
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !connection.greeted {
        let turn = connection.turn(true, |each| arrived.push(each));
        let turned = tokio::time::timeout_at(deadline, turn).await;
        turned.map_err(|_| ConnectionEnd::Io(io::ErrorKind::TimedOut.into()))??;
    }
    server.send_replace(Some(Ok(connection.limits)));
    let (mut open, mut ended) = (true, None);
    let (mut heard, mut pinged) = (tokio::time::Instant::now(), false);
    loop {
        for each in arrived.drain(..) {
            if !unanswered.take(connection, each) {
                // The next request opens another connection.
                open = false;
                requests.close();
            }
        }
        if let Some(ended) = ended {
            return Err(ended);
        }
        if !open && unanswered.is_empty() && connection.is_written() {
            break;
        }
        let full = connection.is_full();
        let turn = connection.turn(true, |each| arrived.push(each));
        // A server that owes a response and is silent is pinged.
        let silent = tokio::time::sleep_until(heard + PATIENCE);
        tokio::select! {
            turned = turn => match turned {
                Ok(true) => (heard, pinged) = (tokio::time::Instant::now(), false),
                Ok(false) => {}
                // Responses may have come in the same read as the end of the connection.
                Err(cause) => ended = Some(cause),
            },
            () = silent, if !unanswered.is_empty() => {
                // The server has answered neither the request nor a Ping.
                if std::mem::replace(&mut pinged, true) {
                    return Err(ConnectionEnd::Io(io::ErrorKind::TimedOut.into()));
                }
                heard = tokio::time::Instant::now();
                connection.signal(Signal::Ping { custody: false }, Token::EMPTY);
            }
            request = requests.recv(), if open && !full => {
                let Some(request) = request else {
                    // All senders are dropped: there will be no more requests.
                    connection.signal(Signal::Release, Token::EMPTY);
                    open = false;
                    continue;
                };
                if unanswered.is_empty() {
                    heard = tokio::time::Instant::now();
                }
                unanswered.send(connection, request);
            }
        }
    }
    // Requests that are left were made before the server's Release was known.
    if requests.is_empty() { Ok(()) } else { Err(ConnectionEnd::Aborted) }
}
