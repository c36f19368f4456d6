//! A client that works through a plan of requests over TCP.

use std::collections::VecDeque;

use coapace_proto::stream::StreamMessage;
use coapace_proto::{Code, Token};
use smoltcp::iface::SocketSet;
use smoltcp::socket::tcp::State;
use smoltcp::time::Instant;

use super::connection::TcpConnection;
use super::ledger::TcpSegment;
use super::stack::IpStack;
use super::{MAX_HEAD, PORT, TcpParameters};
use crate::{Mark, Node, NodeId, Outgoing, Span, Time, Transport};

/// The largest number of connections that a client keeps while they close. If there are more, the client forgets the
/// oldest one, and answers its packets with RST.
const MAX_CLOSING: usize = 8;

/// The number of connections that may fail in a row.
const MAX_FAILURES: u32 = 8;

/// The first ephemeral port (RFC 6335 §6).
const FIRST_PORT: u16 = 49_152;

/// The plan of a client: batches of exchanges, each batch over a connection of its own. There is one exchange at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpPlan {
    /// The server.
    pub server: NodeId,
    /// The number of exchanges of each connection, in the order of the connections.
    pub batches: Vec<u32>,
    /// The time to open the first connection.
    pub connect_at: Time,
    /// The time of the first request, which leaves later if the connection is not ready.
    pub request_at: Time,
    /// The time from a response to the next request.
    pub pause: Span,
    /// The method of the requests.
    pub method: Code,
    /// The token of the requests.
    pub token: Token,
    /// The encoded options and payload of the requests.
    pub tail: Vec<u8>,
}

/// The results of a client: times and counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpReport {
    /// The time at which the first connection was established.
    pub connected: Option<Time>,
    /// The time at which the first request was handed to TCP.
    pub first_request: Option<Time>,
    /// The times at which the responses were complete, the first response first.
    pub completions: Vec<Time>,
    /// The time at which the plan was finished.
    pub finished: Option<Time>,
    /// Connections opened.
    pub connections: u32,
    /// Connections that ended before their batch was finished. A new connection takes the rest of the batch.
    pub failed_connections: u32,
    /// The time at which the plan was given up because several connections in a row failed without a response.
    pub abandoned: Option<Time>,
    /// Segments sent that repeat sequence numbers of data, SYN or FIN.
    pub retransmitted_segments: u64,
    /// Segments received whose sequence numbers had all arrived before.
    pub duplicate_segments: u64,
    /// Bytes of messages that were read, heads and signals included.
    pub received_bytes: u64,
}

#[derive(Debug)]
struct ClientConnection {
    connection: TcpConnection,
    port: u16,
    /// True if a request has been sent on this connection and its response has not come.
    outstanding: bool,
}

/// A host that runs a [`TcpPlan`].
#[derive(Debug)]
pub struct TcpClient {
    node: NodeId,
    plan: TcpPlan,
    parameters: TcpParameters,
    stack: IpStack,
    current: Option<ClientConnection>,
    /// The connections whose batch is done.
    closing: VecDeque<ClientConnection>,
    /// The index of the present batch in [`TcpPlan::batches`].
    batch: usize,
    /// The number of finished exchanges of the present batch.
    done_in_batch: u32,
    /// The number of connections that have failed since the last response.
    failures: u32,
    /// The time at which the pause after the last response ends.
    rested: Time,
    /// The mark of the next packet.
    mark: Mark,
    deadline: Option<Time>,
    report: TcpReport,
}

impl TcpClient {
    /// Returns the client on `node`. `seed` determines its initial sequence numbers.
    pub fn new(node: NodeId, plan: TcpPlan, parameters: TcpParameters, seed: u64) -> Self {
        let mut client = Self {
            node,
            parameters,
            stack: IpStack::new(node, parameters.mtu, seed),
            current: None,
            closing: VecDeque::new(),
            batch: 0,
            done_in_batch: 0,
            failures: 0,
            rested: Time::ZERO,
            mark: Mark::default(),
            deadline: Some(plan.connect_at),
            report: TcpReport::default(),
            plan,
        };
        client.skip_finished_batches();
        client
    }

    /// Returns the results so far.
    pub fn report(&self) -> &TcpReport {
        &self.report
    }

    /// Returns the plan.
    pub fn plan(&self) -> &TcpPlan {
        &self.plan
    }

    /// Runs the application: executes every step that is possible at `now`.
    fn run(&mut self, now: Time) {
        while self.report.finished.is_none() && self.report.abandoned.is_none() && now >= self.plan.connect_at
        {
            if self.batch >= self.plan.batches.len() {
                self.report.finished = Some(now);
                return;
            }
            // A connection that failed is replaced, and the rest of its batch goes over the new one.
            let Some(mut link) = self.current.take().or_else(|| self.connect()) else { return };
            let alive = self.converse(now, &mut link);
            // The batch goes on when something arrives or the pause is over.
            if alive && self.done_in_batch < self.batch_size() {
                self.current = Some(link);
                return;
            }
            link.connection.parts().0.close();
            self.closing.push_back(link);
            if alive {
                self.batch += 1;
                self.done_in_batch = 0;
                self.skip_finished_batches();
            } else {
                self.report.failed_connections += 1;
                self.failures += 1;
                // A server that is gone must not keep the run from ending.
                if self.failures >= MAX_FAILURES {
                    self.report.abandoned = Some(now);
                }
            }
        }
    }

    fn connect(&mut self) -> Option<ClientConnection> {
        // A connection in TIME-WAIT costs memory. The oldest one is forgotten.
        while self.closing.len() >= MAX_CLOSING {
            self.closing.pop_front();
        }
        let port = FIRST_PORT + (self.report.connections % u32::from(u16::MAX - FIRST_PORT)) as u16;
        let mut connection = TcpConnection::new(self.parameters, self.plan.tail.len() + MAX_HEAD);
        let socket = connection.parts().0;
        if !self.stack.connect(socket, (self.node, port), (self.plan.server, PORT)) {
            return None;
        }
        self.report.connections += 1;
        Some(ClientConnection { connection, port, outstanding: false })
    }

    /// Reads responses and sends the next request. Returns false if the connection has ended.
    fn converse(&mut self, now: Time, link: &mut ClientConnection) -> bool {
        let ClientConnection { connection, outstanding, .. } = link;
        let (socket, channel) = connection.parts();
        if socket.may_send() && self.report.connected.is_none() {
            self.report.connected = Some(now);
        }
        // The CSM is the first message of each side (RFC 8323 §5.3).
        channel.greet(socket);

        let token = self.plan.token;
        let mut answered = false;
        let read = channel.read(socket, 0, |message, _| {
            answered |= *outstanding && message.code.is_response() && message.token == token;
        });
        self.report.received_bytes += std::mem::take(&mut channel.read_bytes);
        // This comes before the state of the connection is looked at: the last response may arrive with the FIN.
        if answered {
            *outstanding = false;
            self.rested = now + self.plan.pause;
            self.failures = 0;
            self.report.completions.push(now);
            self.done_in_batch += 1;
            self.mark = Mark { exchange: self.parameters.exchange(self.mark) + 1, transmission: 0 };
        }
        // The batch is done, whether or not the connection has just ended.
        if self.done_in_batch == self.batch_size() {
            return true;
        }
        if read.is_err() || channel.over || !matches!(socket.state(), State::SynSent | State::Established) {
            return false;
        }
        // libcoap waits for the CSM of the peer before it sends a request, so this client does, too.
        if !*outstanding && channel.csm_received && now >= self.plan.request_at.max(self.rested) {
            let request = StreamMessage { code: self.plan.method, token, tail: &self.plan.tail };
            if channel.send(socket, &request) {
                *outstanding = true;
                self.report.first_request.get_or_insert(now);
            }
        }
        true
    }

    fn batch_size(&self) -> u32 {
        self.plan.batches.get(self.batch).copied().unwrap_or(0)
    }

    fn skip_finished_batches(&mut self) {
        while self.plan.batches.get(self.batch) == Some(&0) {
            self.batch += 1;
        }
    }

    /// Runs the application and TCP, and sets the client's next deadline. Call it after every event.
    fn update(&mut self, now: Time) {
        // The ACK of a SYN leaves before the application knows of the connection, like from a kernel.
        self.flush(now);
        self.run(now);
        self.flush(now);
        self.closing.retain(|link| !link.connection.is_over());
        let Self { current, closing, plan, rested, .. } = self;
        let links = current.iter().chain(&*closing).filter_map(|link| link.connection.deadline(now));
        let plans = [plan.connect_at, plan.request_at, *rested].into_iter().filter(|&due| due > now);
        self.deadline = links.chain(plans).min();
    }

    fn flush(&mut self, now: Time) {
        for link in self.current.iter_mut().chain(&mut self.closing) {
            link.connection.flush(now, &mut self.stack);
        }
    }

    fn connection(&mut self, port: u16) -> Option<&mut TcpConnection> {
        let mut links = self.current.iter_mut().chain(&mut self.closing);
        links.find(|link| link.port == port).map(|link| &mut link.connection)
    }
}

impl Node for TcpClient {
    fn handle_datagram(&mut self, now: Time, _from: NodeId, _mark: Mark, bytes: &[u8]) {
        let Some(segment) = TcpSegment::read(bytes) else { return };
        let Self { current, closing, stack, report, .. } = self;
        let mut links = current.iter_mut().chain(closing);
        if let Some(ClientConnection { connection, .. }) = links.find(|link| link.port == segment.destination)
        {
            report.duplicate_segments += u64::from(connection.ledger.arrives(&segment));
            connection.receive(now, stack, bytes);
        } else {
            // Without a socket, smoltcp answers with RST, whatever the time.
            stack.receive(Instant::ZERO, bytes, &mut SocketSet::new(Vec::new()));
        }
        self.update(now);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.update(now);
    }

    fn poll_transmit(&mut self, _now: Time, buffer: &mut Vec<u8>) -> Option<Outgoing> {
        let packet = self.stack.next_packet()?;
        if let Some(segment) = TcpSegment::read(&packet)
            && let Some(connection) = self.connection(segment.source)
            && connection.ledger.sends(&segment)
        {
            self.report.retransmitted_segments += 1;
        }
        buffer.extend_from_slice(&packet);
        self.stack.recycle(packet);
        let mark = self.mark;
        self.mark = self.parameters.next(mark);
        Some(Outgoing { to: self.plan.server, mark, transport: Transport::Ip })
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.deadline
    }
}
