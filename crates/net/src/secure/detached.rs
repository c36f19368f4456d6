//! DTLS sessions for programs that have sockets of their own.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, SocketAddrV6};
use std::time::Instant;

use super::dtls::Dtls;
use super::table::Sessions;
use crate::DtlsCounters;
use crate::address::{Remote, mapped};
use crate::datagram::io::Outgoing;

/// The most datagrams of a client that wait for the end of handshakes. Further ones are dropped.
const MAX_HELD: usize = 64;

/// The DTLS sessions of a client or server, without a socket.
///
/// Hand it every record that arrives, and every datagram that is to be sent. After each call, take what
/// [`poll_datagram`](Self::poll_datagram) has opened, send what [`poll_record`](Self::poll_record) returns, and ask
/// [`deadline`](Self::deadline) when to call [`handle_timeout`](Self::handle_timeout).
///
/// A server has a name for each session: the client's address, mapped into IPv6, with the number of the session in place of the flow
/// information. So what is remembered of one session does not affect another of the same address (RFC 7252 §9.1.1). The scope of
/// link-local addresses is not kept. A client begins a session with the first datagram to an address, which it holds until the
/// handshake is over.
#[derive(Debug)]
pub struct DtlsSessions {
    sessions: Sessions,
    is_server: bool,
    arrived: Outgoing,
    held: VecDeque<(Remote, Vec<u8>)>,
}

impl DtlsSessions {
    /// Returns no sessions yet.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the DTLS library refuses a timeout.
    pub fn new(setup: &Dtls) -> io::Result<Self> {
        Ok(Self {
            sessions: Sessions::new(setup)?,
            is_server: setup.is_server(),
            arrived: Outgoing::default(),
            held: VecDeque::new(),
        })
    }

    /// Takes a datagram that arrived from this address. Those that are no DTLS are counted as strays.
    pub fn handle_record(&mut self, from: SocketAddr, record: &[u8]) {
        self.sessions.open(remote(from), record, &mut self.arrived);
        self.release();
    }

    /// Appends the next datagram that was opened to `buffer`. Returns the name of its session.
    pub fn poll_datagram(&mut self, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        let from = self.arrived.take(buffer)?;
        Some(if self.is_server { named(from) } else { from.address() })
    }

    /// Seals a datagram. A server drops it if the session has ended.
    pub fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        let to = remote(to);
        if self.is_server || self.sessions.peer(to).is_some() {
            self.sessions.seal(Instant::now(), to, datagram);
        } else if self.held.len() < MAX_HELD && self.sessions.attempt(to).is_ok() {
            self.held.push_back((to, datagram.to_vec()));
        }
    }

    /// Appends the next record to `buffer`. Returns its destination.
    pub fn poll_record(&mut self, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        self.sessions.take_record(buffer).map(|to| to.address())
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub fn deadline(&self) -> Option<Instant> {
        self.sessions.deadline()
    }

    /// Repeats the flights of handshakes whose timers have expired, and closes idle sessions. It may be called too early.
    pub fn handle_timeout(&mut self) {
        self.sessions.expire(|_| ());
        self.release();
    }

    /// Closes all sessions.
    pub fn close(&mut self) {
        self.held.clear();
        self.sessions.close_each(|_| ());
    }

    /// Returns the number of sessions, handshakes included.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Returns whether there is no session.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the counts so far.
    pub fn counters(&self) -> DtlsCounters {
        self.sessions.counters()
    }

    /// Seals the datagrams whose handshake is over, and drops those whose handshake has failed.
    fn release(&mut self) {
        let Self { sessions, held, .. } = self;
        held.retain(|(to, datagram)| {
            if sessions.peer(*to).is_some() {
                sessions.seal(Instant::now(), *to, datagram);
                return false;
            }
            sessions.has(*to)
        });
    }
}

/// Returns the name of a server's session.
fn named(peer: Remote) -> SocketAddr {
    SocketAddrV6::new(peer.ip, peer.port, peer.local.into(), 0).into()
}

/// Returns the peer of an address, or that of a session's name.
fn remote(name: SocketAddr) -> Remote {
    let session = match name {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(name) => name.flowinfo() as u16,
    };
    Remote::new(mapped(name.ip()), name.port(), session)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hands the records of one side to the other. Returns whether there were any.
    fn carry(sender: &mut DtlsSessions, receiver: &mut DtlsSessions, [from, to]: [SocketAddr; 2]) -> bool {
        let (mut record, mut any) = (Vec::new(), false);
        while let Some(told) = sender.poll_record(&mut record) {
            assert_eq!(told, to);
            receiver.handle_record(from, &record);
            record.clear();
            any = true;
        }
        any
    }

    /// Moves records between a client at this port and a server until there are none. Returns the datagrams that each has opened,
    /// with their names.
    fn settle(
        client: &mut DtlsSessions,
        server: &mut DtlsSessions,
        port: u16,
    ) -> [Vec<(SocketAddr, Vec<u8>)>; 2] {
        let (from, to) = (SocketAddr::from(([192, 0, 2, 1], port)), SocketAddr::from(SERVER));
        while carry(client, server, [from, to]) | carry(server, client, [to, from]) {}
        [client, server].map(|sessions| {
            let mut buffer = Vec::new();
            let next = || {
                buffer.clear();
                sessions.poll_datagram(&mut buffer).map(|name| (name, buffer.clone()))
            };
            std::iter::from_fn(next).collect()
        })
    }

    fn pair(key: &str) -> [DtlsSessions; 2] {
        let server = Dtls::server(|identity| (identity == b"lamp-7").then(|| b"a long secret".to_vec()));
        [Dtls::client("lamp-7", key), server].map(|setup| DtlsSessions::new(&setup).unwrap())
    }

    const SERVER: ([u8; 4], u16) = ([192, 0, 2, 2], 5684);

    #[test]
    fn datagrams_that_begin_a_session_arrive_after_its_handshake_and_answers_come_back() {
        let [mut client, mut server] = pair("a long secret");
        client.send(SERVER.into(), b"one");
        client.send(SERVER.into(), b"two");
        let [none, arrived] = settle(&mut client, &mut server, 7);
        assert!(none.is_empty());
        assert_eq!(arrived.iter().map(|(_, bytes)| &bytes[..]).collect::<Vec<_>>(), [b"one", b"two"]);
        server.send(arrived[0].0, b"answer");
        let [answers, _] = settle(&mut client, &mut server, 7);
        assert_eq!(answers, [(SERVER.into(), b"answer".to_vec())]);
        assert_eq!((client.len(), server.len(), server.counters().handshakes), (1, 1, 1));
        client.close();
        settle(&mut client, &mut server, 7);
        assert!(client.is_empty() && server.is_empty());
    }

    #[test]
    fn another_session_from_the_same_address_has_another_name() {
        let [mut client, mut server] = pair("a long secret");
        let [mut other, _] = pair("a long secret");
        let mut names = Vec::new();
        for client in [&mut client, &mut other] {
            client.send(SERVER.into(), b"one");
            let [_, arrived] = settle(client, &mut server, 7);
            names.push(arrived[0].0);
        }
        assert_ne!(names[0], names[1]);
        assert_eq!(names[0].port(), names[1].port());
        server.send(names[0], b"for the first");
        let [answers, _] = settle(&mut other, &mut server, 7);
        assert_eq!(answers, [], "what belongs to the first session does not reach the second");
    }

    /// A confirmable and an acknowledgement, both empty.
    const CON: &[u8] = b"\x40\x00\x00\x01";
    const ACK: &[u8] = b"\x60\x00\x00\x01";

    #[test]
    fn a_client_whose_confirmable_messages_stay_unanswered_begins_another_session() {
        let [_, mut server] = pair("a long secret");
        let setup = Dtls::client("lamp-7", "a long secret").lost_after(std::time::Duration::ZERO);
        let mut client = DtlsSessions::new(&setup).unwrap();
        client.send(SERVER.into(), CON);
        let [_, arrived] = settle(&mut client, &mut server, 7);
        for _ in 0..5 {
            server.send(arrived[0].0, CON);
            settle(&mut client, &mut server, 7);
            client.send(SERVER.into(), ACK);
            client.send(SERVER.into(), ACK);
            assert_eq!(
                settle(&mut client, &mut server, 7)[1].len(),
                2,
                "who only acknowledges needs no answer"
            );
        }
        assert_eq!(client.counters().lost, 0);

        let [_, mut restarted] = pair("a long secret");
        let arrived = [(); 4].map(|()| {
            client.send(SERVER.into(), CON);
            settle(&mut client, &mut restarted, 7)[1].len()
        });
        assert_eq!(arrived, [0, 0, 0, 1]);
        assert_eq!((client.counters().lost, client.counters().handshakes, restarted.len()), (1, 2, 1));
    }

    #[test]
    fn what_waits_for_a_handshake_that_fails_is_dropped() {
        let [mut client, mut server] = pair("a wrong key");
        for _ in 0..2 * MAX_HELD {
            client.send(SERVER.into(), b"one");
        }
        assert_eq!(client.held.len(), MAX_HELD);
        let [_, arrived] = settle(&mut client, &mut server, 7);
        assert!(arrived.is_empty() && client.held.is_empty() && client.is_empty());
        assert_eq!((client.counters().handshakes_failed, server.counters().handshakes_failed), (1, 1));
    }

    #[test]
    fn what_is_no_dtls_is_a_stray() {
        let [_, mut server] = pair("a long secret");
        server.handle_record(([192, 0, 2, 1], 7).into(), b"\x40\x01\x00\x01");
        assert_eq!(server.counters().strays, 1);
        assert!(server.is_empty() && server.poll_record(&mut Vec::new()).is_none());
    }
}
