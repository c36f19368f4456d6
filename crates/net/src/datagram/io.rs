//! The transfer of datagrams between a socket and a driver.

use std::{io, time};

use coapace_proto::{Code, Message};

use super::socket::Socket;
use crate::Direction;
use crate::address::Remote;

/// The longest datagram that a server accepts, and that a server or client sends, in bytes. RFC 7252 §4.6 suggests at
/// most 1152 bytes for unknown paths.
pub(crate) const MAX_DATAGRAM: usize = 2048;

/// The longest datagram that a client accepts, in bytes: the longest of UDP. A long response has already arrived, and requesting
/// it again in blocks could execute the request twice (decision 0071).
pub(crate) const ANY_DATAGRAM: usize = u16::MAX as usize;

/// Moves datagrams between a socket and a driver: one with each system call, or many.
pub(crate) trait DatagramIo {
    /// The maximum number of system calls that receive in a row, before the driver sends.
    const READS: u32 = 32;

    /// Receives the datagrams that have arrived, and passes each to `each`, with its sender and whether it came to a group.
    ///
    /// # Errors
    /// The errors of the system, among them [`WouldBlock`](io::ErrorKind::WouldBlock) if nothing has arrived.
    fn receive(&mut self, socket: &Socket, each: impl FnMut(Remote, bool, &[u8])) -> io::Result<Reception>;

    /// Sends from the front of `outgoing` as much as the system accepts.
    fn send(&mut self, socket: &Socket, outgoing: &mut OutgoingDatagrams);

    /// Returns the server with which the last [`receive`](Self::receive) has started a DTLS session, if there is one.
    fn begun(&mut self) -> Option<Remote> {
        None
    }

    /// Returns when to call [`timeout`](Self::timeout), if there are timers.
    fn deadline(&self) -> Option<time::Instant> {
        None
    }

    /// Handles timers that have expired. Calling it too early does no harm.
    fn timeout(&mut self, _: &Socket) {}

    /// Closes all sessions.
    fn close(&mut self, _: &Socket) {}
}

/// The result of [`DatagramIo::receive`].
#[derive(Debug, Default)]
pub(crate) struct Reception {
    /// Whether more datagrams may have arrived.
    pub(crate) more: bool,
    /// The number of datagrams that were too long.
    pub(crate) truncated: u64,
    /// For each truncated request, its sender, and its header and token.
    pub(crate) heads: Vec<(Remote, Vec<u8>)>,
}

impl Reception {
    /// Records a truncated datagram.
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

/// The maximum number of datagrams of a [`DatagramTrain`]: UDP_MAX_SEGMENTS of Linux before 6.9.
const MAX_SEGMENTS: usize = 64;
/// The maximum number of bytes of a [`DatagramTrain`]. Inside the system, the train is one IP datagram, whose length
/// includes the headers.
const MAX_RUN: usize = 64_000;

/// Consecutive datagrams to one destination, which one system call sends: the system gets their bytes as one datagram
/// and splits it (UDP_SEGMENT in udp(7)).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DatagramTrain<'a> {
    pub(crate) to: Remote,
    pub(crate) bytes: &'a [u8],
    /// The length of each datagram except the last, which may be shorter.
    pub(crate) segment: u16,
    pub(crate) count: usize,
}

/// Datagrams to be sent.
#[derive(Debug, Default)]
pub(crate) struct OutgoingDatagrams {
    /// The destination of each datagram, and the end of its bytes in `bytes`.
    messages: Vec<(Remote, usize)>,
    /// The bytes of all datagrams.
    pub(crate) bytes: Vec<u8>,
    /// The number of datagrams at the front that have been sent already.
    sent: usize,
    /// The destinations of datagrams that the system refused to send, each with the system's error.
    pub(crate) failed: Vec<(Remote, io::Error)>,
}

impl OutgoingDatagrams {
    /// Adds a datagram. It consists of the bytes appended to `bytes` since the last call.
    pub(crate) fn push(&mut self, to: Remote) {
        self.messages.push((to, self.bytes.len()));
    }

    /// Adds a datagram.
    pub(crate) fn add(&mut self, to: Remote, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.push(to);
    }

    /// Removes the first datagram, and appends it to `buffer`. Returns its destination, or `None` if no datagram is
    /// left.
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

    /// Returns the `nth` datagram that is not sent yet, counted from 0, if there are so many.
    pub(crate) fn get(&self, nth: usize) -> Option<(Remote, &[u8])> {
        let place = self.sent + nth;
        let &(to, end) = self.messages.get(place)?;
        let start = place.checked_sub(1).map_or(0, |before| self.messages[before].1);
        Some((to, &self.bytes[start..end]))
    }

    /// Returns the longest train at the front: datagrams with one destination and one length, of which only the last
    /// may be shorter. Returns `None` if no datagram is left.
    pub(crate) fn run(&self) -> Option<DatagramTrain<'_>> {
        let (to, first) = self.get(0)?;
        let (segment, most) = (first.len(), MAX_RUN / first.len().max(1));
        let mut count = 1;
        let mut len = segment;
        while count < most.min(MAX_SEGMENTS) {
            let Some((_, bytes)) =
                self.get(count).filter(|(next, bytes)| *next == to && (1..=segment).contains(&bytes.len()))
            else {
                break;
            };
            count += 1;
            len += bytes.len();
            // Only the last datagram of a run may be shorter.
            if bytes.len() < segment {
                break;
            }
        }
        let start = self.sent.checked_sub(1).map_or(0, |before| self.messages[before].1);
        Some(DatagramTrain {
            to,
            bytes: &self.bytes[start..start + len],
            segment: u16::try_from(segment).ok()?,
            count,
        })
    }

    /// Removes the first `count` datagrams, which have been sent.
    pub(crate) fn advance(&mut self, count: usize) {
        self.sent += count;
        if self.is_empty() {
            // The memory is used again from its beginning, once all datagrams are sent.
            self.messages.clear();
            self.bytes.clear();
            self.sent = 0;
        }
    }

    /// Removes the first datagram, which the system refused to send, and adds its destination to `failed`.
    pub(crate) fn fail(&mut self, error: io::Error) {
        if let Some((to, _)) = self.get(0) {
            self.failed.push((to, error));
            self.advance(1);
        }
    }
}

/// Transfers one datagram with each system call.
#[derive(Debug)]
pub(crate) struct Single {
    buffer: Box<[u8]>,
}

impl Single {
    /// Returns a transfer that accepts datagrams of at most `longest` bytes.
    pub(crate) fn taking(longest: usize) -> Self {
        // The additional byte shows that a datagram is longer than `longest`.
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

    fn send(&mut self, socket: &Socket, outgoing: &mut OutgoingDatagrams) {
        send_all(socket, outgoing);
    }
}

/// Receives one datagram. The buffer has one byte more than the longest accepted datagram. If the datagram is longer, returns
/// its sender and its start.
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

/// Sends from the front as much as the system accepts: each [`DatagramTrain`] with one system call, and each other
/// datagram with one. With an interceptor, which must see single datagrams, there are no trains.
pub(crate) fn send_all(socket: &Socket, outgoing: &mut OutgoingDatagrams) {
    loop {
        if socket.interceptor.is_none() && send_run(socket, outgoing) {
            continue;
        }
        let Some((to, bytes)) = outgoing.get(0) else { return };
        if !socket.passes(Direction::Sent, to, bytes) {
            outgoing.advance(1);
            continue;
        }
        match socket.send(to, bytes) {
            Ok(()) => outgoing.advance(1),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            // This datagram is not sent, but the next ones may have other destinations.
            Err(error) => outgoing.fail(error),
        }
    }
}

/// Sends the train at the front with one system call, if it has several datagrams. Returns whether they were sent.
pub(crate) fn send_run(socket: &Socket, outgoing: &mut OutgoingDatagrams) -> bool {
    if let Some(run) = outgoing.run().filter(|run| run.count > 1)
        && socket.send_run(&run)
    {
        outgoing.advance(run.count);
        return true;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    #[test]
    fn sending_removes_datagrams_from_the_front_of_the_buffer() {
        let mut outgoing = OutgoingDatagrams::default();
        for (port, bytes) in [(1, "a"), (2, "bc"), (3, "")] {
            outgoing.add(Remote::new(Ipv6Addr::LOCALHOST, port, 0), bytes.as_bytes());
        }
        let left = |outgoing: &OutgoingDatagrams| -> Vec<(u16, Vec<u8>)> {
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

    #[test]
    fn datagrams_sent_in_one_call_have_one_destination_and_one_length_except_a_shorter_last() {
        let to = |port| Remote::new(Ipv6Addr::LOCALHOST, port, 0);
        let mut outgoing = OutgoingDatagrams::default();
        for (port, bytes) in
            [(9, "-"), (1, "aa"), (1, "bb"), (1, "c"), (1, "dd"), (2, "ee"), (2, "fff"), (2, "")]
        {
            outgoing.add(to(port), bytes.as_bytes());
        }
        outgoing.advance(1);
        let mut runs = Vec::new();
        while let Some(run) = outgoing.run() {
            runs.push((run.to.port, run.bytes.to_vec(), run.segment, run.count));
            let count = run.count;
            outgoing.advance(count);
        }
        let expected: [(u16, &[u8], u16, usize); 5] =
            [(1, b"aabbc", 2, 3), (1, b"dd", 2, 1), (2, b"ee", 2, 1), (2, b"fff", 3, 1), (2, b"", 0, 1)];
        assert_eq!(
            runs,
            expected.map(|(port, bytes, segment, count)| (port, bytes.to_vec(), segment, count))
        );
        for _ in 0..100 {
            outgoing.add(to(1), &[0; 1000]);
        }
        assert_eq!(outgoing.run().map(|run| run.count), Some(64));
        outgoing.advance(100);
        for _ in 0..40 {
            outgoing.add(to(1), &[0; MAX_DATAGRAM]);
        }
        assert_eq!(outgoing.run().map(|run| (run.count, run.bytes.len())), Some((31, 31 * MAX_DATAGRAM)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn several_datagrams_sent_in_one_call_arrive_separately_over_ipv4_and_ipv6() {
        use super::super::socket::{Socket, SocketPurpose};
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let address = host.parse().expect("an address");
            let receiver = std::net::UdpSocket::bind(host).expect("a socket");
            receiver.set_read_timeout(Some(std::time::Duration::from_secs(10))).expect("an option");
            let sender = Socket::bind(address, SocketPurpose::Ask).expect("a socket");
            let to = sender.remote(receiver.local_addr().expect("an address"));
            let mut outgoing = OutgoingDatagrams::default();
            let sent = [vec![1; 1000], vec![2; 1000], vec![3; 7]];
            for bytes in &sent {
                outgoing.add(to, bytes);
            }
            assert!(send_run(&sender, &mut outgoing) && outgoing.is_empty(), "{host}");
            for bytes in sent {
                let mut buffer = [0; 2000];
                let len = receiver.recv(&mut buffer).expect("a datagram");
                assert_eq!(buffer[..len], bytes, "{host}");
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn datagrams_that_the_system_refuses_as_a_batch_fail_one_by_one() {
        use super::super::socket::{Socket, SocketPurpose};
        let sender =
            Socket::bind("127.0.0.1:0".parse().expect("an address"), SocketPurpose::Ask).expect("a socket");
        // A socket of IPv4 cannot send to an address of IPv6.
        let mut outgoing = OutgoingDatagrams::default();
        for _ in 0..2 {
            outgoing.add(Remote::new(Ipv6Addr::LOCALHOST, 9, 0), b"to IPv6");
        }
        assert!(!send_run(&sender, &mut outgoing));
        send_all(&sender, &mut outgoing);
        assert_eq!((outgoing.len(), outgoing.failed.len()), (0, 2));
    }
}
