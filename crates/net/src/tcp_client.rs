//! The connections of a client over TCP, by destination.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use coapace_proto::stream::Signal;
use coapace_proto::{Code, Kind, Message, Token};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};

use crate::tcp::{Connection, Received};
use crate::{Error, Response};

/// How long a connection may take to be there, and then the server's first message.
const PATIENCE: Duration = Duration::from_secs(30);

/// Requests of one connection that may be under way; others wait.
const MAX_OUTSTANDING: usize = 256;

/// One connection for each destination, opened by the first request.
#[derive(Debug, Default)]
pub(crate) struct Connections(Mutex<HashMap<SocketAddr, mpsc::Sender<Ask>>>);

/// A request on its way to its connection; a ping if the code is 0.00.
#[derive(Debug)]
struct Ask {
    code: Code,
    tail: Vec<u8>,
    since: Instant,
    tell: Tell,
}

type Tell = oneshot::Sender<Result<Response, Error>>;

/// Who waits for an answer.
struct Waiting {
    since: Instant,
    ping: bool,
    tell: Tell,
}

impl Connections {
    /// Asks, and waits for the answer.
    pub(crate) async fn ask(&self, to: SocketAddr, code: Code, tail: Vec<u8>) -> Result<Response, Error> {
        let (tell, told) = oneshot::channel();
        let ended = || Error::Connection(io::ErrorKind::ConnectionAborted);
        let asks = self.connection(to);
        asks.send(Ask { code, tail, since: Instant::now(), tell }).await.map_err(|_| ended())?;
        told.await.unwrap_or_else(|_| Err(ended()))
    }

    fn connection(&self, to: SocketAddr) -> mpsc::Sender<Ask> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(asks) = open.get(&to).filter(|asks| !asks.is_closed()) {
            return asks.clone();
        }
        open.retain(|_, asks| !asks.is_closed());
        let (asks, asked) = mpsc::channel(MAX_OUTSTANDING);
        tokio::spawn(run(to, asked));
        open.insert(to, asks.clone());
        asks
    }
}

/// Opens a connection and serves those who ask, until nobody does any more.
async fn run(to: SocketAddr, mut asks: mpsc::Receiver<Ask>) {
    let mut waiting = HashMap::new();
    let Err(error) = converse(to, &mut asks, &mut waiting).await else { return };
    asks.close();
    let late = std::iter::from_fn(|| asks.try_recv().ok()).map(|ask| ask.tell);
    for tell in waiting.into_values().map(|waiting| waiting.tell).chain(late) {
        let _ = tell.send(Err(Error::Connection(error.kind())));
    }
}

async fn converse(
    to: SocketAddr,
    asks: &mut mpsc::Receiver<Ask>,
    waiting: &mut HashMap<Token, Waiting>,
) -> io::Result<()> {
    let mut connection = Connection::new(tokio::time::timeout(PATIENCE, TcpStream::connect(to)).await??);
    connection.flush().await?;
    // What the server takes is to be known before it is asked.
    while !connection.is_greeted() {
        tokio::time::timeout(PATIENCE, connection.receive(drop)).await??;
    }
    let (mut open, mut asked) = (true, 0_u32);
    while open || !waiting.is_empty() {
        connection.flush().await?;
        let mut arrived = Vec::new();
        tokio::select! {
                    ask = asks.recv(), if open && waiting.len() < MAX_OUTSTANDING => {
                        let Some(ask) = ask else {
                            // Nobody will ask any more.
                            connection.signal(Signal::Release, Token::EMPTY);
                            open = false;
                            continue;
                        };
                        asked = asked.wrapping_add(1);
                        // Those that gave up waiting make room.
                        waiting.retain(|_, waiting| !waiting.tell.is_closed());
                        let token = Token::new(&asked.to_be_bytes()).unwrap_or(Token::EMPTY);
                        send(&mut connection, token, ask, waiting);
                    }
                    received = connection.receive(|each| arrived.push(each)) => {
                        if let Err(error) = received {
                            // What was wrong with it is told if that is still possible.
                            let _ = connection.flush().await;
                            return Err(error);
                        }
                        for each in arrived {
                            match each {
                                Received::Message(code, token, tail) => answer(waiting, token, code, &tail),
                                Received::Pong(token) => {
                                    // libcoap's has no token.
                                    let other = waiting.iter().find(|(_, waiting)| waiting.ping).map(|(&token, _)| token);
                                    let token = if waiting.contains_key(&token) { Some(token) } else { other };
                                    if let Some(token) = token {
         answer(waiting, token, Code::EMPTY, &[]);
        }
                                }
                                // Who asks next opens another connection.
                                Received::Release => {
                                    open = false;
                                    asks.close();
                                }
                            }
                        }
                    }
                }
    }
    connection.flush().await?;
    // Asked before the end was known.
    if asks.is_empty() { Ok(()) } else { Err(io::ErrorKind::ConnectionAborted.into()) }
}

fn send(connection: &mut Connection, token: Token, ask: Ask, waiting: &mut HashMap<Token, Waiting>) {
    let Ask { code, tail, since, tell } = ask;
    if code == Code::EMPTY {
        connection.signal(Signal::Ping { custody: false }, token);
    } else if connection.takes(tail.len()) {
        connection.push(code, token, &tail);
    } else {
        let _ = tell.send(Err(Error::TooLarge { bytes: tail.len() }));
        return;
    }
    waiting.insert(token, Waiting { since, ping: code == Code::EMPTY, tell });
}

/// Hands an answer to whoever waits for it.
fn answer(waiting: &mut HashMap<Token, Waiting>, token: Token, code: Code, tail: &[u8]) {
    let Some(Waiting { since, tell, .. }) = waiting.remove(&token) else { return };
    let message = Message { code, tail, ..Message::empty(Kind::Acknowledgement, 0) };
    let foreign = message.first_unrecognised(&[]);
    let response = Response::received(&message, since.elapsed(), 1);
    let _ = tell.send(foreign.map_or(Ok(response), |number| Err(Error::BadOption(number))));
}
