//! A closed-loop client: the next request departs when the last is answered or lost.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use crate::Result;
use crate::message::{Answer, Exchange, MAX_DATAGRAM};

/// How many requests a port makes: every Message ID once, RFC 7252 §4.4. The lifetime of an exchange outlasts a measurement.
const REQUESTS_A_PORT: u32 = 1 << 16;

/// What became of the requests.
#[derive(Clone, Default)]
pub struct Tally {
    pub answered: u64,
    /// Without a response for the timeout.
    pub lost: u64,
    /// Answered by something else than the response.
    pub wrong: u64,
    /// Acknowledgements of other Message IDs: late ones and duplicates.
    pub stray: u64,
    /// The first wrong answer, in words.
    pub problem: Option<String>,
}

impl Tally {
    /// What was added since `before`.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            answered: self.answered - before.answered,
            lost: self.lost - before.lost,
            wrong: self.wrong - before.wrong,
            stray: self.stray - before.stray,
            problem: self.problem.clone(),
        }
    }

    /// As `name=value` pairs, the problem last for it has spaces.
    pub fn print(&self, prefix: &str) -> String {
        let Self { answered, lost, wrong, stray, problem } = self;
        let problem = problem.as_ref().map(|words| format!(" {prefix}problem={}", words.replace(' ', "_")));
        format!(
            "{prefix}answered={answered} {prefix}lost={lost} {prefix}wrong={wrong} {prefix}stray={stray}{}",
            problem.unwrap_or_default()
        )
    }
}

/// One client with a socket of its own.
pub struct Client {
    socket: UdpSocket,
    /// Ports that have used all their Message IDs. They stay bound, so that the system hands none of them out again.
    spent: Vec<UdpSocket>,
    server: SocketAddr,
    exchange: Exchange,
    request: Vec<u8>,
    requests: u32,
    sent: Option<Instant>,
}

impl Client {
    /// A client at a port of `address` that the system chooses.
    ///
    /// # Errors
    ///
    /// The socket cannot be had.
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

    /// The socket that requests are sent from now.
    pub fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    /// Has the port used all its Message IDs?
    pub fn is_spent(&self) -> bool {
        self.requests > 0 && self.requests.is_multiple_of(REQUESTS_A_PORT)
    }

    /// Moves to another port of the same address.
    ///
    /// # Errors
    ///
    /// The socket cannot be had.
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
        // What cannot be sent is not answered, and counted as lost.
        let _ = self.socket.send(&self.request);
    }

    /// Reads what has arrived. Has the request come to its end?
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

    /// Is the request without a response for longer than `timeout`? Then it is lost.
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

/// A datagram, past the notice that a port was unreachable when an earlier one was sent.
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

    /// What the server of the test receives, answered `times` times.
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
