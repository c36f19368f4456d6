//! The transfer of datagrams between a socket and a driver.

use std::{io, time};

use coapace_proto::{Code, Message};

use super::socket::Socket;
use crate::Direction;
use crate::address::Remote;

/// The longest datagram that a server takes, and that anybody sends, in bytes. RFC 7252 §4.6 suggests at most 1152 bytes for
/// unknown paths.
pub(crate) const MAX_DATAGRAM: usize = 2048;

/// The longest datagram that a client takes, in bytes: any. The response is there, and to ask for it again in blocks could carry
/// the request out twice (decision 0075).
pub(crate) const ANY_DATAGRAM: usize = u16::MAX as usize;

/// Moves datagrams between a socket and a driver: one with each system call, or many.
pub(crate) trait DatagramIo {
    /// Receives what has arrived, and hands each datagram to `each`, with its sender and whether it came to a group.
    ///
    /// # Errors
    /// The errors of the system, among them [`WouldBlock`](io::ErrorKind::WouldBlock) if nothing has arrived.
    fn receive(&mut self, socket: &Socket, each: impl FnMut(Remote, bool, &[u8])) -> io::Result<Reception>;

    /// Sends from the front of `outgoing` as far as the system takes it.
    fn send(&mut self, socket: &Socket, outgoing: &mut Outgoing);

    /// Returns the server with which the last [`receive`](Self::receive) has begun a session.
    fn begun(&mut self) -> Option<Remote> {
        None
    }

    /// Returns when [`timeout`](Self::timeout) is to be called, if there are timers.
    fn deadline(&self) -> Option<time::Instant> {
        None
    }

    /// Handles timers that have expired. It may be called too early.
    fn timeout(&mut self, _: &Socket) {}

    /// Closes all sessions.
    fn close(&mut self, _: &Socket) {}
}

/// The result of [`DatagramIo::receive`].
#[derive(Debug, Default)]
pub(crate) struct Reception {
    /// Set if more may have arrived.
    pub(crate) more: bool,
    /// The number of datagrams longer than is taken.
    pub(crate) truncated: u64,
    /// The senders of requests among these, with header and token.
    pub(crate) heads: Vec<(Remote, Vec<u8>)>,
}

impl Reception {
    /// Notes a datagram whose end is missing.
    #[cold]
    pub(crate) fn note_truncated(&mut self, from: Remote, to_group: bool, bytes: &[u8]) {
        self.truncated += 1;
        // Nobody answers a group with an error (RFC 7252 §8.2).
        if let Some(head @ [_, code, ..]) = Message::head(bytes).filter(|_| !to_group)
            && Code(*code).is_request()
        {
            self.heads.push((from, head.to_vec()));
        }
    }
}

/// Datagrams that are to be sent.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// The destination of each datagram, and the end of its bytes in `bytes`.
    messages: Vec<(Remote, usize)>,
    /// The bytes of all datagrams.
    pub(crate) bytes: Vec<u8>,
    /// The number of datagrams at the front that are sent.
    sent: usize,
    /// The destinations of datagrams that the system refused to send, with its errors.
    pub(crate) failed: Vec<(Remote, io::Error)>,
}

impl Outgoing {
    /// Adds a datagram, of the bytes that were appended to `bytes` since the last call.
    pub(crate) fn push(&mut self, to: Remote) {
        self.messages.push((to, self.bytes.len()));
    }

    /// Adds a datagram.
    pub(crate) fn add(&mut self, to: Remote, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.push(to);
    }

    /// Removes the first datagram, and appends it to `buffer`. Returns its destination.
    pub(crate) fn take(&mut self, buffer: &mut Vec<u8>) -> Option<Remote> {
        let (to, bytes) = self.get(0)?;
        buffer.extend_from_slice(bytes);
        self.advance(1);
        Some(to)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sent == self.messages.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.messages.len() - self.sent
    }

    /// Returns the `nth` datagram that is not sent yet.
    pub(crate) fn get(&self, nth: usize) -> Option<(Remote, &[u8])> {
        let place = self.sent + nth;
        let &(to, end) = self.messages.get(place)?;
        let start = place.checked_sub(1).map_or(0, |before| self.messages[before].1);
        Some((to, &self.bytes[start..end]))
    }

    /// Removes the first `count`, which are sent.
    pub(crate) fn advance(&mut self, count: usize) {
        self.sent += count;
        if self.is_empty() {
            self.messages.clear();
            self.bytes.clear();
            self.sent = 0;
        }
    }

    /// Removes the first, which the system refused to send.
    pub(crate) fn fail(&mut self, error: io::Error) {
        if let Some((to, _)) = self.get(0) {
            self.failed.push((to, error));
            self.advance(1);
        }
    }
}

/// Moves one datagram with each system call.
#[derive(Debug)]
pub(crate) struct Single {
    buffer: Box<[u8]>,
}

impl Single {
    /// Takes datagrams of at most `longest` bytes.
    pub(crate) fn taking(longest: usize) -> Self {
        Self { buffer: vec![0; longest + 1].into() }
    }
}

impl DatagramIo for Single {
    fn receive(
        &mut self,
        socket: &Socket,
        mut each: impl FnMut(Remote, bool, &[u8]),
    ) -> io::Result<Reception> {
        let mut received = Reception { more: true, ..Reception::default() };
        match receive_singly(socket, &mut self.buffer, |from, bytes| each(from, false, bytes))? {
            None => {}
            Some((from, bytes)) => received.note_truncated(from, false, bytes),
        }
        Ok(received)
    }

    fn send(&mut self, socket: &Socket, outgoing: &mut Outgoing) {
        send_singly(socket, outgoing);
    }
}

/// Receives one datagram. The buffer has one byte more than the longest accepted datagram. Returns the sender and the beginning of
/// one that is longer.
pub(crate) fn receive_singly<'a>(
    socket: &Socket,
    buffer: &'a mut [u8],
    take: impl FnOnce(Remote, &[u8]),
) -> io::Result<Option<(Remote, &'a [u8])>> {
    let (len, from) = socket.receive(buffer)?;
    if len >= buffer.len() {
        return Ok(Some((from, buffer)));
    }
    if socket.passes(Direction::Received, from, &buffer[..len]) {
        take(from, &buffer[..len]);
    }
    Ok(None)
}

/// Sends one datagram with each system call.
pub(crate) fn send_singly(socket: &Socket, outgoing: &mut Outgoing) {
    while let Some((to, bytes)) = outgoing.get(0) {
        if !socket.passes(Direction::Sent, to, bytes) {
            outgoing.advance(1);
            continue;
        }
        match socket.send(to, bytes) {
            Ok(()) => outgoing.advance(1),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Err(error) => outgoing.fail(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    #[test]
    fn datagrams_leave_from_the_front_and_the_rest_keeps_its_bytes() {
        let mut outgoing = Outgoing::default();
        for (port, bytes) in [(1, "a"), (2, "bc"), (3, "")] {
            outgoing.add(Remote::new(Ipv6Addr::LOCALHOST, port, 0), bytes.as_bytes());
        }
        let left = |outgoing: &Outgoing| -> Vec<(u16, Vec<u8>)> {
            let each = (0..).map_while(|nth| outgoing.get(nth));
            each.map(|(to, bytes)| (to.port, bytes.to_vec())).collect()
        };
        outgoing.advance(1);
        assert_eq!(left(&outgoing), [(2, b"bc".to_vec()), (3, Vec::new())]);
        outgoing.fail(io::ErrorKind::NetworkUnreachable.into());
        assert_eq!((left(&outgoing), outgoing.failed.len()), (vec![(3, Vec::new())], 1));
        outgoing.advance(1);
        assert!(outgoing.is_empty() && outgoing.bytes.is_empty());
    }
}
