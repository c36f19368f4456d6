//! The connections of a client, by destination.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use coap_numbers::option;
use coapace_proto::block::{MAX_SZX, Transfer};
use coapace_proto::stream::Signal;
use coapace_proto::{Code, Kind, Message, Options, Token};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::time::timeout;

use super::bytes::Bytes as ByteWire;
use super::connection::{Connection, Received};
use super::wire::{ByteStream, Ended, Wire};
use super::{Lost, PATIENCE};
use crate::asker::{Asks, Blocks, is_whole};
use crate::inbox::Inbox;
use crate::progress::Progress;
use crate::uri::{Scheme, Uri};
use crate::{Error, Response};

/// Requests of one connection that may be under way, observations included; others wait.
const MAX_OUTSTANDING: usize = 256;

/// One connection for each destination, opened by the first request.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    open: Mutex<HashMap<Place, Stream>>,
    /// For `coaps+tcp` and `coaps+ws`.
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<[Connector; 2]>,
}

/// How TLS begins.
#[cfg(feature = "tls")]
pub(crate) struct Connector(pub(crate) tokio_rustls::TlsConnector);

#[cfg(feature = "tls")]
impl std::fmt::Debug for Connector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connector")
    }
}

/// Where a connection goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    scheme: Scheme,
    address: SocketAddr,
    /// The host as in the URI, and what of it certificates are for.
    authority: String,
    name: String,
}

/// A connection as those see it who ask.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    asks: mpsc::Sender<Ask>,
    /// What the server takes, once that is known; or why there is no connection.
    server: watch::Receiver<Option<Result<Takes, Lost>>>,
    outstanding: Arc<Semaphore>,
    tokens: Arc<AtomicU32>,
}

/// What a server takes.
#[derive(Clone, Copy, Debug)]
struct Takes {
    /// Bytes of options and payload in a message.
    room: usize,
    /// Whether parts of bodies, and if so in the form of BERT.
    blocks: Option<bool>,
}

/// A request on its way to its connection; a ping if the code is 0.00.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) code: Code,
    pub(super) token: Token,
    pub(super) tail: Vec<u8>,
    since: Instant,
    tell: Tell,
}

/// Who waits for answers.
#[derive(Debug)]
struct Tell {
    first: Option<oneshot::Sender<Result<Response, Error>>>,
    /// Where notifications go.
    inbox: Option<Arc<Inbox>>,
}

impl Tell {
    fn is_wanted(&self) -> bool {
        self.inbox.is_some() || self.first.as_ref().is_some_and(|first| !first.is_closed())
    }

    fn fail(self, error: Error) {
        match (self.first, self.inbox) {
            (Some(first), _) => drop(first.send(Err(error))),
            (None, Some(inbox)) => inbox.fail(error),
            (None, None) => {}
        }
    }
}

impl Connections {
    /// The connection to the server of a URI, begun if need be.
    pub(crate) fn to(&self, uri: &Uri, address: SocketAddr) -> Result<Stream, Error> {
        let place =
            Place { scheme: uri.scheme, address, authority: uri.authority(), name: uri.host.to_string() };
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stream) = open.get(&place).filter(|stream| !stream.asks.is_closed()) {
            return Ok(stream.clone());
        }
        open.retain(|_, stream| !stream.asks.is_closed());
        let security = self.security(uri.scheme)?;
        let (asks, asked) = mpsc::channel(MAX_OUTSTANDING);
        let (tell, server) = watch::channel(None);
        let stream = Stream {
            asks,
            server,
            outstanding: Semaphore::new(MAX_OUTSTANDING).into(),
            tokens: Arc::default(),
        };
        tokio::spawn(run(place.clone(), security, asked, tell));
        open.insert(place, stream.clone());
        Ok(stream)
    }

    #[cfg(feature = "tls")]
    fn security(&self, scheme: Scheme) -> Result<Security, Error> {
        let place = match scheme {
            Scheme::CoapsTcp => 0,
            Scheme::CoapsWs => 1,
            _ => return Ok(None),
        };
        let connectors = self.tls.as_ref().ok_or(Error::Tls(crate::TlsError::NoRoots))?;
        Ok(Some(connectors[place].0.clone()))
    }

    #[cfg(not(feature = "tls"))]
    #[allow(clippy::unused_self)] // with TLS it is
    fn security(&self, scheme: Scheme) -> Result<Security, Error> {
        match scheme {
            Scheme::CoapsTcp | Scheme::CoapsWs => Err(Error::Scheme(scheme)),
            _ => Ok(()),
        }
    }
}

#[cfg(feature = "tls")]
type Security = Option<tokio_rustls::TlsConnector>;
#[cfg(not(feature = "tls"))]
type Security = ();

impl Stream {
    /// Asks, with a body of any size, and waits for all of the answer.
    pub(crate) async fn transact(
        &self,
        code: Code,
        options: Options,
        payload: Bytes,
        blocks: Blocks,
        progress: Option<Progress>,
    ) -> Result<Response, Error> {
        if code == Code::EMPTY {
            return self.ask(code, self.token(), Vec::new()).await;
        }
        let transfer = self.transfer(options, payload.into(), blocks).await?;
        let asker = Asking { progress, ..Asking::new(self, code) };
        let response = asker.ask(&transfer).await?;
        asker.finish(transfer, response).await
    }

    /// The transfer of a body to come, and of another back.
    pub(super) async fn transfer(
        &self,
        mut options: Options,
        body: Vec<u8>,
        blocks: Blocks,
    ) -> Result<Transfer, Error> {
        let takes = self.server().await?;
        let mut head = Vec::new();
        options.write(&[], &mut head);
        // Beside these there may be Block1, Size1 and Request-Tag, and the payload marker.
        let room = takes.room.saturating_sub(head.len() + 24);
        let (in_one, bert) = match takes.blocks {
            None => (body.len() < takes.room.saturating_sub(head.len()), false),
            Some(bert) => (body.len() <= if bert { room } else { room.min(blocks.size()) }, bert),
        };
        if !in_one && options.value(option::REQUEST_TAG).is_none() {
            options.push(option::REQUEST_TAG, &self.token());
        }
        Ok(match takes.blocks {
            None if in_one => Transfer::reliable(options, body, usize::MAX, blocks.max_body),
            Some(_) if bert && blocks.szx == MAX_SZX => {
                Transfer::reliable(options, body, room, blocks.max_body)
            }
            // A server that did not speak of blocks may know them all the same (RFC 8323 §5.3.2).
            _ => Transfer::new(options, body, blocks.szx, blocks.max_body),
        })
    }

    /// What the server takes, once it has said so.
    async fn server(&self) -> Result<Takes, Error> {
        let mut server = self.server.clone();
        let said = server.wait_for(Option::is_some).await.map(|said| said.clone());
        match said {
            Ok(Some(Ok(takes))) => Ok(takes),
            Ok(Some(Err(lost))) => Err(lost.into()),
            _ => Err(ended()),
        }
    }

    /// A token that no other request of the connection has.
    pub(super) fn token(&self) -> Token {
        let next = self.tokens.fetch_add(1, Ordering::Relaxed);
        Token::new(&next.to_be_bytes()).unwrap_or(Token::EMPTY)
    }

    /// One request, one response.
    pub(super) async fn ask(&self, code: Code, token: Token, tail: Vec<u8>) -> Result<Response, Error> {
        let _permit = self.outstanding.acquire().await.map_err(|_| ended())?;
        self.send(code, token, tail, None).await
    }

    /// Registers for notifications; they go into the inbox, the first response comes back.
    pub(super) async fn register(
        &self,
        code: Code,
        token: Token,
        tail: Vec<u8>,
        inbox: Arc<Inbox>,
    ) -> Result<(Response, Outstanding), Error> {
        let permit = self.outstanding.clone().acquire_owned().await.map_err(|_| ended())?;
        let response = self.send(code, token, tail, Some(inbox)).await?;
        Ok((response, Outstanding(permit)))
    }

    async fn send(
        &self,
        code: Code,
        token: Token,
        tail: Vec<u8>,
        inbox: Option<Arc<Inbox>>,
    ) -> Result<Response, Error> {
        let (first, told) = oneshot::channel();
        let tell = Tell { first: Some(first), inbox };
        let sent = self.asks.send(Ask { code, token, tail, since: Instant::now(), tell }).await;
        if sent.is_err() {
            // Why is known if it was never open.
            self.server().await?;
            return Err(ended());
        }
        told.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Registers once more. Its answer goes into the inbox, as notifications do. Without room nothing happens.
    pub(super) fn register_again(&self, code: Code, token: Token, tail: Vec<u8>, inbox: Arc<Inbox>) {
        let tell = Tell { first: None, inbox: Some(inbox) };
        let _ = self.asks.try_send(Ask { code, token, tail, since: Instant::now(), tell });
    }

    /// Sends what nobody waits for the answer of, if there is room.
    pub(super) fn send_off(&self, code: Code, token: Token, tail: Vec<u8>) {
        let tell = Tell { first: None, inbox: None };
        let _ = self.asks.try_send(Ask { code, token, tail, since: Instant::now(), tell });
    }
}

/// The place of an observation among what is under way.
#[derive(Debug)]
pub(crate) struct Outstanding(#[allow(dead_code)] tokio::sync::OwnedSemaphorePermit);

fn ended() -> Error {
    Error::Connection(io::ErrorKind::ConnectionAborted)
}

/// The requests of one call, one after the other and all with one token: go-coap's server puts blocks together by it.
pub(super) struct Asking<'a> {
    stream: &'a Stream,
    code: Code,
    token: Token,
    progress: Option<Progress>,
}

impl<'a> Asking<'a> {
    pub(super) fn new(stream: &'a Stream, code: Code) -> Self {
        Self { stream, code, token: stream.token(), progress: None }
    }
}

impl Asks for Asking<'_> {
    async fn ask(&self, transfer: &Transfer) -> Result<Response, Error> {
        let tail = transfer.request()?.into_bytes();
        self.stream.ask(self.code, self.token, tail).await
    }

    fn progress(&self) -> Option<&Progress> {
        self.progress.as_ref()
    }
}

/// Opens a connection and serves those who ask, until nobody does any more.
async fn run(
    place: Place,
    security: Security,
    mut asks: mpsc::Receiver<Ask>,
    server: watch::Sender<Option<Result<Takes, Lost>>>,
) {
    let mut waiting = HashMap::new();
    let lost = match timeout(PATIENCE, open(&place, security)).await {
        Err(_) => Lost::Io(io::ErrorKind::TimedOut),
        Ok(Err(error)) => Lost::opening(&error, &place.name),
        Ok(Ok(mut connection)) => {
            let conversed = converse(&mut connection, &mut asks, &mut waiting, &server).await;
            if matches!(conversed, Err(Ended::Broken(_)) | Ok(())) {
                let _ = timeout(Duration::from_secs(1), connection.close()).await;
            }
            match conversed {
                Ok(()) => return,
                Err(ended) => Lost::open(&ended, &place.name),
            }
        }
    };
    asks.close();
    server.send_if_modified(|said| said.is_none().then(|| *said = Some(Err(lost.clone()))).is_some());
    let late = std::iter::from_fn(|| asks.try_recv().ok()).map(|ask| ask.tell);
    for tell in waiting.into_values().map(|waiting: Waiting| waiting.tell).chain(late) {
        tell.fail(lost.clone().into());
    }
}

async fn open(place: &Place, security: Security) -> io::Result<Connection> {
    let stream = TcpStream::connect(place.address).await?;
    // Messages are whole; to wait for more of them helps nobody.
    let _ = stream.set_nodelay(true);
    #[cfg(feature = "tls")]
    let stream: Box<dyn ByteStream> = match security {
        None => Box::new(stream),
        Some(connector) => {
            use tokio_rustls::rustls::pki_types::ServerName;
            let name = ServerName::try_from(place.name.clone());
            let name = name.map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
            Box::new(connector.connect(name, stream).await?)
        }
    };
    #[cfg(not(feature = "tls"))]
    let (stream, ()): (Box<dyn ByteStream>, ()) = (Box::new(stream), security);
    let wire: Box<dyn Wire> = match place.scheme {
        #[cfg(feature = "ws")]
        Scheme::CoapWs | Scheme::CoapsWs => {
            Box::new(super::frames::Frames::open(stream, &place.authority).await?)
        }
        _ => Box::new(ByteWire::new(stream)),
    };
    Ok(Connection::new(wire))
}

/// Who waits for an answer.
struct Waiting {
    since: Instant,
    ping: bool,
    tell: Tell,
}

async fn converse(
    connection: &mut Connection,
    asks: &mut mpsc::Receiver<Ask>,
    waiting: &mut HashMap<Token, Waiting>,
    server: &watch::Sender<Option<Result<Takes, Lost>>>,
) -> Result<(), Ended> {
    // What the server takes is to be known before it is asked.
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !connection.is_greeted() {
        let turn = tokio::time::timeout_at(deadline, connection.turn(true, drop)).await;
        turn.map_err(|_| Ended::Io(io::ErrorKind::TimedOut.into()))??;
    }
    server.send_replace(Some(Ok(Takes { room: connection.room(), blocks: connection.blocks() })));
    let mut open = true;
    let (mut heard, mut pinged) = (tokio::time::Instant::now(), false);
    while open || !waiting.is_empty() || !connection.is_written() {
        let mut arrived = Vec::new();
        let turn = connection.turn(true, |each| arrived.push(each));
        // Who is waited for has to be there.
        let silent = tokio::time::sleep_until(heard + PATIENCE);
        tokio::select! {
            ended = turn => {
                if ended? {
                    (heard, pinged) = (tokio::time::Instant::now(), false);
                }
                for each in arrived {
                    match each {
                        Received::Message(code, token, tail) => answer(waiting, token, code, &tail),
                        Received::Pong(token) => pong(waiting, token),
                        // Who asks next opens another connection.
                        Received::Release => {
                            open = false;
                            asks.close();
                        }
                    }
                }
            }
            () = silent, if !waiting.is_empty() => {
                if std::mem::replace(&mut pinged, true) {
                    return Err(Ended::Io(io::ErrorKind::TimedOut.into()));
                }
                heard = tokio::time::Instant::now();
                connection.signal(Signal::Ping { custody: false }, Token::EMPTY);
            }
            ask = asks.recv(), if open => {
                let Some(ask) = ask else {
                    // Nobody will ask any more.
                    connection.signal(Signal::Release, Token::EMPTY);
                    open = false;
                    continue;
                };
                if waiting.is_empty() {
                    heard = tokio::time::Instant::now();
                }
                // Those that gave up waiting make room.
                if waiting.len() >= MAX_OUTSTANDING {
                    waiting.retain(|_, waiting| waiting.tell.is_wanted());
                }
                send(connection, ask, waiting);
                while connection.is_full() {
                    let mut arrived = Vec::new();
                    connection.turn(true, |each| arrived.push(each)).await?;
                    for each in arrived {
                        if let Received::Message(code, token, tail) = each {
                            answer(waiting, token, code, &tail);
                        }
                    }
                }
            }
        }
    }
    // Asked before the end was known.
    if asks.is_empty() { Ok(()) } else { Err(Ended::Aborted) }
}

fn send(connection: &mut Connection, ask: Ask, waiting: &mut HashMap<Token, Waiting>) {
    let Ask { code, token, tail, since, tell } = ask;
    if code == Code::EMPTY {
        connection.signal(Signal::Ping { custody: false }, token);
    } else if tail.len() <= connection.room() {
        connection.push(code, token, &tail);
    } else {
        return tell.fail(Error::TooLarge { bytes: tail.len() });
    }
    if tell.is_wanted() {
        waiting.insert(token, Waiting { since, ping: code == Code::EMPTY, tell });
    } else {
        waiting.remove(&token);
    }
}

fn pong(waiting: &mut HashMap<Token, Waiting>, token: Token) {
    // libcoap's has no token.
    let other = || waiting.iter().find(|(_, waiting)| waiting.ping).map(|(&token, _)| token);
    if let Some(token) = if waiting.contains_key(&token) { Some(token) } else { other() } {
        answer(waiting, token, Code::EMPTY, &[]);
    }
}

/// Hands an answer to whoever waits for it.
fn answer(waiting: &mut HashMap<Token, Waiting>, token: Token, code: Code, tail: &[u8]) {
    let Some(found) = waiting.get_mut(&token) else { return };
    let message = Message { code, tail, ..Message::empty(Kind::Acknowledgement, 0) };
    let first = found.tell.first.take();
    let elapsed = if first.is_some() { found.since.elapsed() } else { Duration::ZERO };
    let response = match message.first_unrecognised(&[option::BLOCK1, option::BLOCK2]) {
        Some(number) => Err(Error::BadOption(number)),
        None => Ok(Response::received(&message, elapsed, 1)),
    };
    let goes_on = response.as_ref().is_ok_and(Response::is_success) && message.observe().is_some();
    let inbox = found.tell.inbox.clone().filter(|_| goes_on || first.is_none());
    if !goes_on || found.tell.inbox.is_none() {
        waiting.remove(&token);
    }
    match (first, inbox) {
        // It goes its own way; the inbox learns that there is more to come.
        (Some(first), inbox) => {
            if first.send(response).is_err() && inbox.is_some() {
                waiting.remove(&token);
            }
        }
        (None, Some(inbox)) => match response {
            Ok(response) => inbox.deliver(response, goes_on),
            Err(error) => inbox.fail(error),
        },
        (None, None) => {}
    }
}

/// Whether a notification is all there is, or another is on its way in parts.
pub(super) fn is_all(response: &Response) -> bool {
    is_whole(response) || !response.is_success()
}
