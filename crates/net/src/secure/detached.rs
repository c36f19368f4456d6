//! DTLS sessions for programs that manage their own sockets.

use std::io;
use std::net::{SocketAddr, SocketAddrV6};
use std::time::Instant;

use super::dtls::Dtls;
use super::table::Sessions;
use crate::DtlsCounters;
use crate::address::{Remote, mapped};
use crate::datagram::io::OutgoingDatagrams;

/// The DTLS sessions of a client or server, without a socket.
///
/// Pass it every arriving record, and every datagram to be sent. After each call, take the datagrams of
/// [`poll_datagram`](Self::poll_datagram), send the records of [`poll_record`](Self::poll_record), and ask
/// [`deadline`](Self::deadline) when to call [`handle_timeout`](Self::handle_timeout).
///
/// In a server, each session has a name, which `poll_datagram` returns and `send` takes. It is the client's address,
/// mapped into IPv6, with the number of the session instead of the flow information, and without the scope of a
/// link-local address. So the state of one session does not affect another session of the same address (RFC 7252
/// §9.1.1). A client opens a session with the first datagram to an address, and queues the datagram until the handshake
/// is complete. If the server leaves messages unanswered, the client opens another session, and sends the messages
/// again there.
#[derive(Debug)]
pub struct DtlsSessions {
    sessions: Sessions,
    is_server: bool,
    arrived: OutgoingDatagrams,
}

impl DtlsSessions {
    /// Returns an empty set of sessions.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the DTLS library refuses a timeout.
    pub fn new(setup: &Dtls) -> io::Result<Self> {
        Ok(Self {
            sessions: Sessions::new(setup)?,
            is_server: setup.is_server(),
            arrived: OutgoingDatagrams::default(),
        })
    }

    /// Handles a datagram that arrived from this address. A datagram that is not DTLS is counted as a stray.
    pub fn handle_record(&mut self, from: SocketAddr, record: &[u8]) {
        self.sessions.open(remote(from), record, &mut self.arrived);
    }

    /// Appends the next decrypted datagram to `buffer`. Returns the name of its session, or `None` if no datagram is
    /// left.
    pub fn poll_datagram(&mut self, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        let from = self.arrived.take(buffer)?;
        Some(if self.is_server { named(from) } else { from.address() })
    }

    /// Encrypts a datagram. A server drops it if the session has ended.
    pub fn send(&mut self, to: SocketAddr, datagram: &[u8]) {
        self.sessions.seal(Instant::now(), remote(to), datagram);
    }

    /// Appends the next record to `buffer`. Returns its destination, or `None` if no record is left.
    pub fn poll_record(&mut self, buffer: &mut Vec<u8>) -> Option<SocketAddr> {
        self.sessions.take_record(buffer).map(|to| to.address())
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout), or `None` without a session.
    pub fn deadline(&self) -> Option<Instant> {
        self.sessions.deadline()
    }

    /// Repeats the flights of handshakes whose timers have expired, and closes idle sessions. Calling it too early does
    /// no harm.
    pub fn handle_timeout(&mut self) {
        self.sessions.expire(|_| ());
    }

    /// Closes all sessions.
    pub fn close(&mut self) {
        self.sessions.close_each(|_| ());
    }

    /// Returns the number of sessions, handshakes included.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the counts so far.
    pub fn counters(&self) -> DtlsCounters {
        self.sessions.counters()
    }
}

/// Returns the name of a server's session.
fn named(peer: Remote) -> SocketAddr {
    SocketAddrV6::new(peer.ip, peer.port, peer.local.into(), 0).into()
}

/// Returns the peer with this address, or with this name of a session.
fn remote(name: SocketAddr) -> Remote {
    let session = match name {
        // Servers name sessions by IPv6 addresses only, so this is the address of a peer.
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(name) => name.flowinfo() as u16,
    };
    Remote::new(mapped(name.ip()), name.port(), session)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secure::session::MAX_HELD;

    /// Passes the records of one side to the other. Returns whether there were any.
    fn carry(sender: &mut DtlsSessions, receiver: &mut DtlsSessions, [from, to]: [SocketAddr; 2]) -> bool {
        let (mut record, mut any) = (Vec::new(), false);
        while let Some(destination) = sender.poll_record(&mut record) {
            assert_eq!(destination, to);
            receiver.handle_record(from, &record);
            record.clear();
            any = true;
        }
        any
    }

    /// Moves records between a client at this port and a server until there are none. Returns the datagrams that each has
    /// decrypted, with their names.
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
    fn requests_that_start_a_dtls_session_are_sent_after_the_handshake_and_answered() {
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
    fn a_new_dtls_session_from_the_same_address_has_a_new_name() {
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

    /// Two confirmable messages and an acknowledgement, all empty.
    const CON: &[u8] = b"\x40\x00\x00\x01";
    const NEXT: &[u8] = b"\x40\x00\x00\x02";
    const ACK: &[u8] = b"\x60\x00\x00\x01";

    /// Waits until the client's first answer may be used, and moves records.
    fn settle_late(client: &mut DtlsSessions, server: &mut DtlsSessions) -> Vec<Vec<u8>> {
        let at = client.deadline().unwrap();
        std::thread::sleep(at.saturating_duration_since(Instant::now()));
        client.handle_timeout();
        settle(client, server, 7)[1].iter().map(|(_, datagram)| datagram.clone()).collect()
    }

    #[test]
    fn requests_unanswered_in_a_dtls_session_are_repeated_in_a_new_one() {
        let [mut client, mut server] = pair("a long secret");
        client.send(SERVER.into(), CON);
        let [_, arrived] = settle(&mut client, &mut server, 7);
        for _ in 0..5 {
            server.send(arrived[0].0, CON);
            settle(&mut client, &mut server, 7);
            client.send(SERVER.into(), ACK);
            client.send(SERVER.into(), ACK);
            let [_, acknowledgements] = settle(&mut client, &mut server, 7);
            assert_eq!(acknowledgements.len(), 2, "an acknowledgement needs no answer");
        }
        assert_eq!(client.len(), 1);

        let [_, mut restarted] = pair("a long secret");
        for (message, sessions) in [(CON, 1), (CON, 2), (NEXT, 2)] {
            client.send(SERVER.into(), message);
            assert_eq!(client.len(), sessions, "the second copy begins a handshake");
        }
        assert_eq!(settle(&mut client, &mut restarted, 7)[1], [], "the old session may still be answered in");
        assert_eq!(settle_late(&mut client, &mut restarted), [CON, NEXT]);
        assert_eq!((client.counters().lost, client.counters().handshakes), (1, 2));
        assert_eq!((client.len(), restarted.len()), (1, 1));
        client.send(SERVER.into(), CON);
        client.send(SERVER.into(), CON);
        assert_eq!(client.len(), 1, "the next handshake begins later");
        client.close();
        assert!(client.is_empty());
    }

    #[test]
    fn a_dtls_session_in_which_a_late_answer_arrives_is_kept() {
        let [mut client, mut server] = pair("a long secret");
        client.send(SERVER.into(), CON);
        let [_, arrived] = settle(&mut client, &mut server, 7);
        client.send(SERVER.into(), CON);
        assert_eq!(client.len(), 2);
        settle(&mut client, &mut server, 7);
        assert_eq!(server.counters().cookies_asked, 2, "the handshake has begun");
        server.send(arrived[0].0, ACK);
        let [answers, _] = settle(&mut client, &mut server, 7);
        assert_eq!(answers, [(SERVER.into(), ACK.to_vec())]);
        assert_eq!((client.len(), client.counters().lost, server.counters().handshakes), (1, 0, 1));
        client.send(SERVER.into(), NEXT);
        assert_eq!(settle(&mut client, &mut server, 7)[1].len(), 1, "in the same session");
        client.send(SERVER.into(), NEXT);
        assert_eq!(client.len(), 1, "the next handshake begins later");
    }

    #[test]
    fn forged_records_of_a_second_handshake_do_not_end_the_dtls_session() {
        let [mut client, mut server] = pair("a long secret");
        client.send(SERVER.into(), CON);
        let [_, arrived] = settle(&mut client, &mut server, 7);
        client.send(SERVER.into(), CON);
        assert_eq!(client.len(), 2);
        // The fatal alert handshake_failure, in the clear.
        client.handle_record(SERVER.into(), &[21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 2, 40]);
        let at = client.deadline().unwrap();
        std::thread::sleep(at.saturating_duration_since(Instant::now()));
        client.handle_timeout();
        assert_eq!((client.len(), client.counters().handshakes_failed), (1, 1));
        server.send(arrived[0].0, ACK);
        assert_eq!(settle(&mut client, &mut server, 7)[0].len(), 1);
    }

    #[test]
    fn a_dtls_session_closed_by_its_server_is_replaced_by_the_pending_handshake() {
        let [mut client, mut server] = pair("a long secret");
        client.send(SERVER.into(), CON);
        settle(&mut client, &mut server, 7);
        client.send(SERVER.into(), CON);
        server.close();
        settle(&mut client, &mut server, 7);
        assert_eq!((client.len(), client.counters().closed_by_peer), (1, 1));
        assert_eq!(settle_late(&mut client, &mut server), [CON]);
        assert_eq!((client.len(), client.counters().handshakes), (1, 2));
    }

    #[test]
    fn messages_queued_for_a_failed_dtls_handshake_are_dropped() {
        let [mut client, mut server] = pair("a wrong key");
        for number in 0..2 * MAX_HELD as u8 {
            client.send(SERVER.into(), &[number]);
            client.send(SERVER.into(), &[number]);
        }
        assert_eq!(client.counters().unsent, 2 * MAX_HELD as u64, "both copies of those beyond the bound");
        let [_, arrived] = settle(&mut client, &mut server, 7);
        assert!(arrived.is_empty() && client.is_empty());
        assert_eq!(client.counters().unsent, 3 * MAX_HELD as u64);
        assert_eq!((client.counters().handshakes_failed, server.counters().handshakes_failed), (1, 1));
    }

    #[test]
    fn datagrams_that_are_not_dtls_are_counted_as_strays() {
        let [_, mut server] = pair("a long secret");
        server.handle_record(([192, 0, 2, 1], 7).into(), b"\x40\x01\x00\x01");
        assert_eq!(server.counters().strays, 1);
        assert!(server.is_empty() && server.poll_record(&mut Vec::new()).is_none());
    }
}
