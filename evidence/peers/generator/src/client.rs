//! A closed-loop client: it sends the next request when the last is answered or lost.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use crate::Result;
use crate::message::{Answer, Exchange, MAX_DATAGRAM};

/// Requests from one port: every Message ID once, because EXCHANGE_LIFETIME is longer than a measurement (RFC 7252 §4.4).
const REQUESTS_A_PORT: u32 = 1 << 16;

/// The outcomes of requests.
#[derive(Clone, Default)]
pub struct Tally {
    pub answered: u64,
    /// Requests without a response within the timeout.
    pub lost: u64,
    /// Requests with a wrong response.
    pub wrong: u64,
    /// Acknowledgements with other Message IDs: late ones and duplicates.
    pub stray: u64,
    /// A description of the first wrong response.
    pub problem: Option<String>,
}

impl Tally {
    /// Returns the difference to an earlier state.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            answered: self.answered - before.answered,
            lost: self.lost - before.lost,
            wrong: self.wrong - before.wrong,
            stray: self.stray - before.stray,
            problem: self.problem.clone(),
        }
    }

    /// Returns `name=value` pairs. The problem comes last, because it has spaces.
    pub fn print(&self, prefix: &str) -> String {
        let Self { answered, lost, wrong, stray, problem } = self;
        let problem = problem.as_ref().map(|words| format!(" {prefix}problem={}", words.replace(' ', "_")));
        format!(
            "{prefix}answered={answered} {prefix}lost={lost} {prefix}wrong={wrong} {prefix}stray={stray}{}",
            problem.unwrap_or_default()
        )
    }
}

/// A client with its own socket.
pub struct Client {
    socket: UdpSocket,
    /// Sockets whose ports have used all their Message IDs. They stay bound, so that the system does not assign these ports
    /// again.
    spent: Vec<UdpSocket>,
    server: SocketAddr,
    exchange: Exchange,
    request: Vec<u8>,
    requests: u32,
    sent: Option<Instant>,
}

impl Client {
    /// Creates a client at `address`, at a port that the system chooses.
    ///
    /// # Errors
    ///
    /// The socket cannot be opened.
    pub fn new(address: Ipv4Addr, server: SocketAddr, exchange: &Exchange) -> Result<Self> {
        Ok(Self {
            socket: open(address, server)?,
            spent: Vec::new(),
            server,
            request: exchange.request(0, 0),
            exchange: exchange.clone(),
            requests: 0,
            sent: None,
        })
    }

    /// Returns the socket for requests from now on.
    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Returns whether the port has used all its Message IDs.
    pub fn is_spent(&self) -> bool {
        self.requests > 0 && self.requests.is_multiple_of(REQUESTS_A_PORT)
    }

    /// Moves to another port of the same address.
    ///
    /// # Errors
    ///
    /// The socket cannot be opened.
    pub fn renew(&mut self) -> Result<()> {
        let SocketAddr::V4(here) = self.socket.local_addr()? else { return Err("not IPv4".into()) };
        let next = open(*here.ip(), self.server)?;
        self.spent.push(std::mem::replace(&mut self.socket, next));
        Ok(())
    }

    /// Sends the next request.
    pub fn begin(&mut self, now: Instant) {
        let (message_id, token) = (self.requests as u16, self.requests);
        self.request[2..4].copy_from_slice(&message_id.to_be_bytes());
        self.request[4..8].copy_from_slice(&token.to_be_bytes());
        self.requests = self.requests.wrapping_add(1);
        self.sent = Some(now);
        // A request that cannot be sent gets no answer, and will count as lost.
        let _ = self.socket.send(&self.request);
    }

    /// Reads the datagrams that have arrived. Returns whether the request has ended.
    pub fn receive(&mut self, tally: &mut Tally) -> bool {
        let mut buffer = [0; MAX_DATAGRAM];
        while let Ok(length) = receive(&self.socket, &mut buffer) {
            match self.exchange.check(&self.request, &buffer[..length]) {
                Answer::Stray => tally.stray += 1,
                _ if self.sent.is_none() => tally.stray += 1,
                Answer::Right => {
                    tally.answered += 1;
                    self.sent = None;
                    return true;
                }
                Answer::Wrong(problem) => {
                    tally.wrong += 1;
                    tally.problem.get_or_insert(problem);
                    self.sent = None;
                    return true;
                }
            }
        }
        false
    }

    /// Ends the request as lost if it has had no response for longer than `timeout`. Returns whether it has.
    pub fn expire(&mut self, now: Instant, timeout: Duration, tally: &mut Tally) -> bool {
        let expired = self.sent.is_some_and(|sent| now.saturating_duration_since(sent) > timeout);
        if expired {
            tally.lost += 1;
            self.sent = None;
        }
        expired
    }
}

fn open(address: Ipv4Addr, server: SocketAddr) -> Result<UdpSocket> {
    let socket = UdpSocket::bind((address, 0))?;
    socket.connect(server)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Receives a datagram, and skips the error that reports an unreachable port for an earlier one.
fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<usize> {
    match socket.recv(buffer) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => socket.recv(buffer),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (UdpSocket, Client) {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let exchange = Exchange::new("bench", "sixty").unwrap();
        let client = Client::new(Ipv4Addr::LOCALHOST, server.local_addr().unwrap(), &exchange).unwrap();
        (server, client)
    }

    /// Answers the datagram that the test's server receives, `times` times.
    fn answer(server: &UdpSocket, times: usize) {
        let (mut request, mut response) = ([0; MAX_DATAGRAM], [0; MAX_DATAGRAM]);
        let (length, source) = server.recv_from(&mut request).unwrap();
        let exchange = Exchange::new("bench", "sixty").unwrap();
        let response = exchange.respond(&request[..length], &mut response).unwrap();
        for _ in 0..times {
            server.send_to(response, source).unwrap();
        }
    }

    #[test]
    fn a_duplicate_is_a_stray_and_no_answer_to_the_next_request() {
        let (server, mut client) = pair();
        let mut tally = Tally::default();
        client.begin(Instant::now());
        answer(&server, 2);
        assert!(client.receive(&mut tally));
        client.begin(Instant::now());
        assert!(!client.receive(&mut tally));
        answer(&server, 1);
        assert!(client.receive(&mut tally));
        assert_eq!((tally.answered, tally.stray, tally.lost, tally.wrong), (2, 1, 0, 0));
    }

    #[test]
    fn a_request_without_response_is_lost_once() {
        let (_server, mut client) = pair();
        let (mut tally, now, timeout) = (Tally::default(), Instant::now(), Duration::from_secs(1));
        client.begin(now);
        assert!(!client.expire(now + timeout, timeout, &mut tally));
        assert!(client.expire(now + timeout * 2, timeout, &mut tally));
        assert!(!client.expire(now + timeout * 3, timeout, &mut tally));
        assert_eq!(tally.lost, 1);
    }

    #[test]
    fn a_port_uses_every_message_id_once() {
        let (_server, mut client) = pair();
        let before = client.socket().local_addr().unwrap();
        client.requests = REQUESTS_A_PORT - 1;
        assert!(!client.is_spent());
        client.begin(Instant::now());
        assert!(client.is_spent());
        client.renew().unwrap();
        assert_ne!(client.socket().local_addr().unwrap(), before);
    }
}
