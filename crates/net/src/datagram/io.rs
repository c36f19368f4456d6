//! The ways of datagrams between a socket and a driver.

use std::{io, time};

use super::socket::Socket;
use crate::Direction;
use crate::address::Remote;

/// The longest datagram that is received, in bytes. A longer one is counted and dropped. RFC 7252 §4.6 suggests messages
/// of at most 1152 bytes where nothing is known of the path.
pub(crate) const MAX_DATAGRAM: usize = 2048;

/// A way to move datagrams between a socket and a driver: one for each call of the system, or many.
pub(crate) trait DatagramIo {
    /// Receives what has arrived, and hands each datagram to `each`, with its sender and whether it came to a group.
    ///
    /// # Errors
    /// Those of the system, [`WouldBlock`](io::ErrorKind::WouldBlock) if nothing had arrived.
    fn receive(&mut self, socket: &Socket, each: impl FnMut(Remote, bool, &[u8])) -> io::Result<Reception>;

    /// Sends from the front of `outgoing` as far as the system takes it.
    fn send(&mut self, socket: &Socket, outgoing: &mut Outgoing);

    /// Returns when it wants [`timeout`](Self::timeout) to be called, if it has timers of its own.
    fn deadline(&self) -> Option<time::Instant> {
        None
    }

    /// Does what its timers ask for. It may be called too early.
    fn timeout(&mut self, _: &Socket) {}

    /// Takes leave of all peers.
    fn close(&mut self, _: &Socket) {}
}

/// The result of [`DatagramIo::receive`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reception {
    /// Set if more may have arrived.
    pub(crate) more: bool,
    /// Datagrams longer than [`MAX_DATAGRAM`], which were dropped.
    pub(crate) truncated: u64,
}

/// Datagrams on their way to the system.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    /// The destination of each, and where its bytes end.
    messages: Vec<(Remote, usize)>,
    /// Their bytes, one after the other.
    pub(crate) bytes: Vec<u8>,
    /// The number of those that are sent.
    sent: usize,
    /// The destinations of those that the system would not send, with its errors.
    pub(crate) failed: Vec<(Remote, io::Error)>,
}

impl Outgoing {
    /// Makes a datagram of the bytes appended to `bytes` since the last call.
    pub(crate) fn push(&mut self, to: Remote) {
        self.messages.push((to, self.bytes.len()));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.sent == self.messages.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.messages.len() - self.sent
    }

    /// Returns the `nth` of those that are to be sent.
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

    /// Removes the first, which the system would not send.
    pub(crate) fn fail(&mut self, error: io::Error) {
        if let Some((to, _)) = self.get(0) {
            self.failed.push((to, error));
            self.advance(1);
        }
    }
}

/// Moves one datagram with each call of the system.
#[derive(Debug)]
pub(crate) struct Single {
    buffer: Box<[u8]>,
}

impl Default for Single {
    fn default() -> Self {
        Self { buffer: vec![0; MAX_DATAGRAM + 1].into() }
    }
}

impl DatagramIo for Single {
    fn receive(
        &mut self,
        socket: &Socket,
        mut each: impl FnMut(Remote, bool, &[u8]),
    ) -> io::Result<Reception> {
        receive_singly(socket, &mut self.buffer, |from, bytes| each(from, false, bytes))
    }

    fn send(&mut self, socket: &Socket, outgoing: &mut Outgoing) {
        send_singly(socket, outgoing);
    }
}

/// Receives one datagram into a buffer that has a byte more than the longest that is taken.
pub(crate) fn receive_singly(
    socket: &Socket,
    buffer: &mut [u8],
    take: impl FnOnce(Remote, &[u8]),
) -> io::Result<Reception> {
    let (len, from) = socket.receive(buffer)?;
    let fits = len < buffer.len();
    if fits && socket.passes(Direction::Received, from, &buffer[..len]) {
        take(from, &buffer[..len]);
    }
    Ok(Reception { more: true, truncated: u64::from(!fits) })
}

/// Sends one datagram with each call of the system.
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
            outgoing.bytes.extend_from_slice(bytes.as_bytes());
            outgoing.push(Remote::new(Ipv6Addr::LOCALHOST, port, 0));
        }
        let left = |outgoing: &Outgoing| -> Vec<(u16, Vec<u8>)> {
            let each = (0..).map_while(|nth| outgoing.get(nth));
            each.map(|(to, bytes)| (to.port(), bytes.to_vec())).collect()
        };
        outgoing.advance(1);
        assert_eq!(left(&outgoing), [(2, b"bc".to_vec()), (3, Vec::new())]);
        outgoing.fail(io::ErrorKind::NetworkUnreachable.into());
        assert_eq!((left(&outgoing), outgoing.failed.len()), (vec![(3, Vec::new())], 1));
        outgoing.advance(1);
        assert!(outgoing.is_empty() && outgoing.bytes.is_empty());
    }
}
