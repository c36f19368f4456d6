//! The connections of a server over TCP.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use coapace_proto::stream::Signal;
use coapace_proto::{Code, Kind, Message, Token};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::address::{Remote, mapped};
use crate::handler::{Called, panicked};
use crate::tcp::{Connection, Received};
use crate::{Rejection, Response, Router, ServerConfig};

/// What the tasks of a server and its handles share.
#[derive(Debug)]
pub(crate) struct Shared {
    closing: watch::Sender<bool>,
    counters: Mutex<TcpCounters>,
}

/// Counts of what happens to connections over TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TcpCounters {
    /// Connections that were accepted.
    pub connections: u64,
    /// Requests that arrived.
    pub requests: u64,
    /// Connections ended because the peer did not keep to the protocol (RFC 8323 §5.6).
    pub aborted: u64,
    /// Connections closed because nothing came for [`ServerConfig::idle_timeout`].
    pub idle: u64,
    /// Requests answered 5.03, because too many handlers were waiting.
    pub refused: u64,
    /// Handlers that panicked.
    pub panics: u64,
    /// Responses larger than the client takes, replaced by 5.00.
    pub too_large: u64,
}

impl Shared {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { closing: watch::Sender::new(false), counters: Mutex::default() })
    }

    pub(crate) fn close(&self) {
        self.closing.send_replace(true);
    }

    pub(crate) fn counters(&self) -> MutexGuard<'_, TcpCounters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Accepts connections until the server is closed; those that are there may then end, for a while.
///
/// # Errors
/// If the runtime cannot watch the socket.
pub(crate) async fn serve(
    listener: std::net::TcpListener,
    router: Router,
    config: ServerConfig,
    shared: Arc<Shared>,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    let mut closing = shared.closing.subscribe();
    loop {
        tokio::select! {
            // With so many, others wait in the system's queue.
            accepted = listener.accept(), if connections.len() < config.max_connections => match accepted {
                Ok((stream, from)) => {
                    shared.counters().connections += 1;
                    let router = router.clone();
                    let (connection, config) = (Connection::new(stream), config.clone());
                    let talk = Talk { connection, from, router, config, shared: shared.clone() };
                    connections.spawn(talk.run());
                }
                // Out of descriptors, perhaps: not to be asked again at once.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            () = closed(&mut closing) => break,
        }
    }
    drop(listener);
    let rest = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(config.shutdown_timeout, rest).await;
    Ok(())
}

/// Ends when the server is to.
async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

/// One connection.
struct Talk {
    connection: Connection,
    from: SocketAddr,
    router: Router,
    config: ServerConfig,
    shared: Arc<Shared>,
}

/// Handlers that wait.
type Handlers = JoinSet<(Token, Option<Response>)>;

impl Talk {
    /// Answers until the client goes, or is asked to.
    async fn run(mut self) {
        let mut closing = self.shared.closing.subscribe();
        let mut handlers = Handlers::new();
        let mut open = true;
        while self.connection.flush().await.is_ok() && (open || !handlers.is_empty()) {
            let mut arrived = Vec::new();
            let Self { connection, config, .. } = &mut self;
            let received = async {
                tokio::time::timeout(config.idle_timeout, connection.receive(|each| arrived.push(each))).await
            };
            tokio::select! {
                Some(done) = handlers.join_next(), if !handlers.is_empty() => {
                    if let Ok((token, response)) = done {
                        self.answer_late(token, response);
                    }
                }
                received = received, if open => match received {
                    Ok(Ok(())) => open = self.take(arrived, &mut handlers).await,
                    Ok(Err(error)) => {
                        if error.kind() == io::ErrorKind::InvalidData {
                            self.shared.counters().aborted += 1;
                            let _ = self.connection.flush().await;
                        }
                        return;
                    }
                    // Whoever waits for an answer is not idle.
                    Err(_) if !handlers.is_empty() => {}
                    Err(_) => {
                        self.shared.counters().idle += 1;
                        self.connection.signal(Signal::Release, Token::EMPTY);
                        open = false;
                    }
                },
                () = closed(&mut closing), if open => {
                    self.connection.signal(Signal::Release, Token::EMPTY);
                    open = false;
                }
            }
        }
    }

    /// Takes what has arrived. Returns whether more may come.
    async fn take(&mut self, arrived: Vec<Received>, handlers: &mut Handlers) -> bool {
        let mut open = true;
        for each in arrived {
            match each {
                Received::Message(code, token, tail) if matches!(code.0, 1..32) => {
                    self.request(code, token, &tail, handlers);
                }
                Received::Release => open = false,
                // An empty message says that somebody is there (RFC 8323 §3.4); no request of ours waits for others.
                Received::Message(..) | Received::Pong(_) => {}
            }
            if self.connection.is_full() && self.connection.flush().await.is_err() {
                return false;
            }
        }
        open
    }

    fn request(&mut self, code: Code, token: Token, tail: &[u8], handlers: &mut Handlers) {
        self.shared.counters().requests += 1;
        let from = Remote::new(mapped(self.from.ip()), self.from.port(), 0);
        // Over a connection every request is confirmed.
        let message = Message { code, tail, ..Message::empty(Kind::Confirmable, 0) };
        match self.router.call(from, &message) {
            Called::Ready(response) => self.answer(token, &response),
            Called::Panicked => self.answer_late(token, None),
            Called::Pending(_) if handlers.len() >= self.config.max_pending as usize => {
                self.shared.counters().refused += 1;
                let seconds = u32::try_from(self.config.retry_after.as_secs()).unwrap_or(u32::MAX);
                self.answer(token, &Rejection::unavailable(seconds).into());
            }
            Called::Pending(rest) => {
                handlers.spawn(async move { (token, rest.await) });
            }
        }
    }

    fn answer_late(&mut self, token: Token, response: Option<Response>) {
        let response = response.unwrap_or_else(|| {
            self.shared.counters().panics += 1;
            panicked()
        });
        self.answer(token, &response);
    }

    fn answer(&mut self, token: Token, response: &Response) {
        let mut tail = Vec::new();
        response.options.write(&response.payload, &mut tail);
        if self.connection.takes(tail.len()) {
            self.connection.push(response.code, token, &tail);
        } else {
            self.shared.counters().too_large += 1;
            self.connection.push(panicked().code, token, &[]);
        }
    }
}

/// A socket that listens.
///
/// # Errors
/// Those of the system.
pub(crate) fn listen(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let domain = socket2::Domain::for_address(address);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // A server that starts again need not wait for connections of the last one.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(1_024)?;
    Ok(socket.into())
}
