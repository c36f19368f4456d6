//! One end of a TCP connection that carries CoAP.

use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};

use super::TcpParameters;
use super::channel::Channel;
use super::clock::Clock;
use super::ledger::Ledger;
use super::stack::Stack;
use crate::Time;

/// The least wait before smoltcp is called again, ns: should it want to be called at once, time still goes on.
const LEAST_WAIT: u64 = 1_000_000;

/// What a send buffer must hold besides a message: a CSM and a Pong.
const SIGNALS_BYTES: usize = 32;

/// A socket, its time, and what goes through it.
#[derive(Debug)]
pub(super) struct Connection {
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    parameters: TcpParameters,
    clock: Clock,
    handshake: bool,
    pub(super) ledger: Ledger,
    pub(super) channel: Channel,
}

impl Connection {
    /// A closed connection that can send messages of `message_bytes`.
    pub(super) fn new(parameters: TcpParameters, message_bytes: usize) -> Self {
        let buffer_bytes = usize::from(parameters.buffer_bytes);
        let buffer = |bytes| SocketBuffer::new(vec![0; bytes]);
        let send_bytes = buffer_bytes.max(message_bytes + SIGNALS_BYTES);
        let mut socket = Socket::new(buffer(buffer_bytes.max(1)), buffer(send_bytes));
        socket.set_nagle_enabled(parameters.nagle);
        socket.set_congestion_control(CongestionControl::Reno);
        let mut sockets = SocketSet::new(Vec::with_capacity(1));
        Self {
            handle: sockets.add(socket),
            sockets,
            parameters,
            clock: Clock::new(parameters.handshake_clock_percent),
            handshake: true,
            ledger: Ledger::default(),
            channel: Channel::new(parameters.max_message_bytes),
        }
    }

    /// The socket and the messages over it.
    pub(super) fn parts(&mut self) -> (&mut Socket<'static>, &mut Channel) {
        (self.sockets.get_mut(self.handle), &mut self.channel)
    }

    pub(super) fn state(&self) -> State {
        self.sockets.get::<Socket<'_>>(self.handle).state()
    }

    /// Nothing is left to send or to wait for. A socket that was reset before it was connected listens again.
    pub(super) fn is_over(&self) -> bool {
        let socket = self.sockets.get::<Socket<'_>>(self.handle);
        socket.remote_endpoint().is_none() || socket.state() == State::Listen
    }

    /// A packet came.
    pub(super) fn receive(&mut self, now: Time, stack: &mut Stack, packet: &[u8]) {
        stack.receive(self.clock.instant(now), packet, &mut self.sockets);
        if self.handshake && !matches!(self.state(), State::Listen | State::SynSent | State::SynReceived) {
            // All that was sent is acknowledged, so no timer runs that the change of pace would shift.
            self.handshake = false;
            self.clock.set_percent(now, self.parameters.clock_percent);
            let delay = self.parameters.ack_delay_us;
            let delay = (delay > 0).then(|| self.clock.duration(delay));
            self.sockets.get_mut::<Socket<'_>>(self.handle).set_ack_delay(delay);
        }
    }

    /// Sends what there is to send.
    pub(super) fn flush(&mut self, now: Time, stack: &mut Stack) {
        stack.flush(self.clock.instant(now), &mut self.sockets);
    }

    /// When to call [`flush`](Self::flush) again.
    pub(super) fn deadline(&self, now: Time, stack: &mut Stack) -> Option<Time> {
        let at = stack.deadline(self.clock.instant(now), &self.sockets)?;
        Some(self.clock.time(at).max(now + LEAST_WAIT))
    }
}
