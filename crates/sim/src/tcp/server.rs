//! A server over TCP that sends the same response to every request, at once or after a service time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use coapace_proto::stream::StreamMessage;
use coapace_proto::{Code, Token};
use smoltcp::iface::SocketSet;
use smoltcp::socket::tcp::State;
use smoltcp::time::Instant;

use super::connection::TcpConnection;
use super::ledger::{SequenceLedger, TcpSegment};
use super::stack::IpStack;
use super::{MAX_HEAD, PORT, TcpParameters};
use crate::{Mark, Node, NodeId, Outgoing, Span, Time, Transport};

/// The response to every request. It has the token of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpResponse {
    /// The code.
    pub code: Code,
    /// The encoded options and payload.
    pub tail: Vec<u8>,
}

/// The counters of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpServerCounters {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections refused because there were too many.
    pub refused: u64,
    /// Connections aborted because their bytes were not CoAP.
    pub broken: u64,
    /// Requests answered.
    pub requests: u64,
    /// Segments sent that repeat sequence numbers of data, SYN or FIN.
    pub retransmitted_segments: u64,
    /// Segments received whose sequence numbers had all arrived before.
    pub duplicate_segments: u64,
    /// Packets that were not TCP segments.
    pub malformed: u64,
    /// Bytes of messages that were read, heads and signals included.
    pub received_bytes: u64,
}

/// The client's end of a connection (node and port), by which the server finds the connection.
type ConnectionKey = (NodeId, u16);

/// A function that returns the time from a request to its response. Its arguments are the client, and a mark with the
/// number of the client's exchange.
type ServiceTimeFunction = Box<dyn Fn(NodeId, Mark) -> Span + Send>;

struct ServerConnection {
    connection: TcpConnection,
    /// The time and the token of each response that is not ready yet, the earliest first.
    working: VecDeque<(Time, Token)>,
    deadline: Option<Time>,
    /// The packet that answered the SYN, until the handshake is done.
    syn_ack: Vec<u8>,
}

/// A host that sends the same response to every request over TCP.
pub struct TcpServer {
    response: TcpResponse,
    /// The service time of each request; `None` if requests are answered at once.
    service_time: Option<ServiceTimeFunction>,
    /// The largest length of an encoded response, in bytes.
    response_bytes: usize,
    parameters: TcpParameters,
    max_connections: usize,
    stack: IpStack,
    connections: BTreeMap<ConnectionKey, ServerConnection>,
    deadlines: BTreeSet<(Time, ConnectionKey)>,
    /// The mark of the next packet to each client: the client's exchange, and the count of the server's packets in it.
    marks: BTreeMap<NodeId, Mark>,
    outgoing: VecDeque<(NodeId, Mark, Vec<u8>)>,
    counters: TcpServerCounters,
}

impl TcpServer {
    /// Returns the server on `node` with at most `max_connections` connections, closing ones included. `seed` determines its
    /// initial sequence numbers.
    pub fn new(
        node: NodeId,
        response: TcpResponse,
        max_connections: usize,
        parameters: TcpParameters,
        seed: u64,
    ) -> Self {
        Self {
            response_bytes: response.tail.len() + MAX_HEAD,
            response,
            service_time: None,
            parameters,
            max_connections,
            stack: IpStack::new(node, parameters.mtu, seed),
            connections: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            marks: BTreeMap::new(),
            outgoing: VecDeque::new(),
            counters: TcpServerCounters::default(),
        }
    }

    /// Delays the response to every request by the span that `time` returns. Requests do not wait for each other.
    #[must_use]
    pub fn serving_in(self, time: impl Fn(NodeId, Mark) -> Span + Send + 'static) -> Self {
        Self { service_time: Some(Box::new(time)), ..self }
    }

    /// Returns the counters.
    pub fn counters(&self) -> TcpServerCounters {
        self.counters
    }

    /// Returns the number of connections.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Returns a new connection that listens for a SYN; `None` if smoltcp refuses.
    fn listen(&self) -> Option<ServerConnection> {
        let mut connection = TcpConnection::new(self.parameters, self.response_bytes);
        connection.parts().0.listen(PORT).ok()?;
        Some(ServerConnection { connection, working: VecDeque::new(), deadline: None, syn_ack: Vec::new() })
    }

    /// Runs the application: sends the CSM, answers requests, and closes a connection that the client has closed.
    fn run(&mut self, now: Time, from: NodeId, link: &mut ServerConnection) {
        let ServerConnection { connection, working, .. } = link;
        let (socket, channel) = connection.parts();
        channel.greet(socket);
        let Self { response, service_time, counters, marks, .. } = self;
        let mark = marks.get(&from).copied().unwrap_or_default();
        let answer = |token| StreamMessage { code: response.code, token, tail: &response.tail };
        let read = channel.read(socket, self.response_bytes, |message, outbox| {
            if !message.code.is_request() {
                return;
            }
            // The time depends on client and exchange alone, so that runs with other mechanisms have the same.
            let time = service_time.as_ref().map_or(Span::ZERO, |time| time(from, mark));
            if time == Span::ZERO {
                counters.requests += 1;
                let written = answer(message.token).write(outbox);
                debug_assert!(written.is_ok(), "the send buffer would not hold it either");
            } else {
                // Responses are ordered by the moment at which they are ready, not by their requests.
                let place = working.partition_point(|(at, _)| *at <= now + time);
                working.insert(place, (now + time, message.token));
            }
        });
        counters.broken += u64::from(read.is_err());
        counters.received_bytes += std::mem::take(&mut channel.read_bytes);
        // A response that finds no room is tried again when the client has acknowledged something.
        while let Some(&(at, token)) = working.front()
            && at <= now
            && channel.send(socket, &answer(token))
        {
            counters.requests += 1;
            working.pop_front();
        }
        // A client that has closed its side still gets the answers to its requests.
        let is_answered = !socket.can_recv() && working.is_empty();
        if channel.over || socket.state() == State::CloseWait && is_answered {
            socket.close();
        }
    }

    /// Sends the packets of a connection. Stores the connection with its next deadline, unless it is over.
    fn update(&mut self, now: Time, key: ConnectionKey, mut link: ServerConnection) {
        let ServerConnection { connection, working, syn_ack, deadline } = &mut link;
        connection.flush(now, &mut self.stack);
        // The handshake is over, so the answer to its SYN is not needed again.
        if connection.state() != State::SynReceived {
            *syn_ack = Vec::new();
        }
        self.collect(key.0, &mut connection.ledger, syn_ack);
        if connection.is_over() {
            return;
        }
        // A response that is ready and found no room waits for an acknowledgement, not for a time.
        let response = working.front().map(|&(at, _)| at).filter(|&at| at > now);
        *deadline = [connection.deadline(now), response].into_iter().flatten().min();
        self.deadlines.extend(deadline.map(|deadline| (deadline, key)));
        self.connections.insert(key, link);
    }

    /// Moves packets from the stack to the queue of packets for `to`, and counts retransmissions. Keeps a copy of the
    /// answer to a SYN in `syn_ack`.
    fn collect(&mut self, to: NodeId, ledger: &mut SequenceLedger, syn_ack: &mut Vec<u8>) {
        while let Some(packet) = self.stack.next_packet() {
            if let Some(segment) = TcpSegment::read(&packet) {
                self.counters.retransmitted_segments += u64::from(ledger.sends(&segment));
                if segment.synchronises {
                    syn_ack.clone_from(&packet);
                }
            }
            self.send(to, packet);
        }
    }

    fn send(&mut self, to: NodeId, packet: Vec<u8>) {
        let mark = self.marks.entry(to).or_default();
        self.outgoing.push_back((to, *mark, packet));
        *mark = self.parameters.next(*mark);
    }
}

impl Node for TcpServer {
    fn handle_datagram(&mut self, now: Time, from: NodeId, mark: Mark, bytes: &[u8]) {
        let Some(segment) = TcpSegment::read(bytes) else {
            self.counters.malformed += 1;
            return;
        };
        let last = self.marks.entry(from).or_insert(Mark { transmission: 0, ..mark });
        // The client is at a later exchange. The packets of the server begin to count from 0 there.
        if self.parameters.exchange(*last) < self.parameters.exchange(mark) {
            *last = Mark { transmission: 0, ..mark };
        }
        let key = (from, segment.source);
        let known = self.connections.remove(&key);
        // Only a SYN opens a connection. Other segments of unknown connections get RST from the stack.
        let new = known.is_none() && segment.opens() && segment.destination == PORT;
        if new && self.connections.len() >= self.max_connections {
            // The SYN gets no answer, so the client's timer sends it again.
            self.counters.refused += 1;
            return;
        }
        let Some(mut link) = known.or_else(|| new.then(|| self.listen()).flatten()) else {
            // Without a socket, smoltcp answers with RST, whatever the time.
            self.stack.receive(Instant::ZERO, bytes, &mut SocketSet::new(Vec::new()));
            self.collect(from, &mut SequenceLedger::default(), &mut Vec::new());
            return;
        };
        self.counters.accepted += u64::from(new);
        // `update` sets the deadline again. Until then the old one must not fire.
        if let Some(deadline) = link.deadline.take() {
            self.deadlines.remove(&(deadline, key));
        }
        self.counters.duplicate_segments += u64::from(link.connection.ledger.arrives(&segment));
        if segment.opens() && !link.syn_ack.is_empty() {
            // A SYN comes again: Linux answers again at once and restarts the timer of the answer (`tcp_check_req` in
            // `net/ipv4/tcp_minisocks.c`), smoltcp waits for its timer.
            self.counters.retransmitted_segments += 1;
            self.send(from, link.syn_ack.clone());
            link.connection.restart_timers(now);
        }
        link.connection.receive(now, &mut self.stack, bytes);
        self.run(now, from, &mut link);
        self.update(now, key, link);
    }

    fn handle_timeout(&mut self, now: Time) {
        while let Some(&(deadline, key)) = self.deadlines.first()
            && deadline <= now
        {
            self.deadlines.pop_first();
            if let Some(mut link) = self.connections.remove(&key) {
                link.deadline = None;
                if link.working.front().is_some_and(|&(at, _)| at <= now) {
                    self.run(now, key.0, &mut link);
                }
                self.update(now, key, link);
            }
        }
    }

    fn poll_transmit(&mut self, _now: Time, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        let (to, mark, packet) = self.outgoing.pop_front()?;
        buffer.extend_from_slice(&packet);
        self.stack.recycle(packet);
        Some(Outgoing { to, mark, transport: Transport::Ip })
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.deadlines.first().map(|&(deadline, _)| deadline)
    }
}

impl std::fmt::Debug for TcpServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { stack, response, counters, .. } = self;
        f.debug_struct("TcpServer")
            .field("stack", stack)
            .field("response", response)
            .field("connections", &self.connections.len())
            .field("counters", counters)
            .finish_non_exhaustive()
    }
}
