//! One end of a TCP connection that carries CoAP.

use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};

use super::TcpParameters;
use super::channel::Channel;
use super::ledger::Ledger;
use super::stack::Stack;
use crate::{Span, Time};

/// The least wait before smoltcp is polled again. Time goes on even if smoltcp asks to be polled at once.
const LEAST_WAIT: Span = Span::from_millis(1);

/// The room of a send buffer for signals beside a message: a CSM and a Pong, in bytes.
const SIGNALS_BYTES: usize = 32;

/// A socket and the messages over it.
#[derive(Debug)]
pub(super) struct Connection {
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    /// The factor on the timeouts of the handshake, in per cent.
    handshake_timeout_percent: u64,
    /// The moment up to which smoltcp is not polled in a handshake.
    handshake_timer: Option<Time>,
    pub(super) ledger: Ledger,
    pub(super) channel: Channel,
}

impl Connection {
    /// Returns a closed connection that can send messages of `message_bytes`.
    pub(super) fn new(parameters: TcpParameters, message_bytes: usize) -> Self {
        let buffer_bytes = usize::from(parameters.buffer_bytes);
        let buffer = |bytes| SocketBuffer::new(vec![0; bytes]);
        let send_bytes = buffer_bytes.max(message_bytes + SIGNALS_BYTES);
        let mut socket = Socket::new(buffer(buffer_bytes.max(1)), buffer(send_bytes));
        socket.set_nagle_enabled(parameters.nagle);
        socket.set_congestion_control(CongestionControl::Reno);
        let ack_delay = Duration::from_micros(parameters.ack_delay.as_micros());
        socket.set_ack_delay((ack_delay > Duration::ZERO).then_some(ack_delay));
        let mut sockets = SocketSet::new(Vec::with_capacity(1));
        Self {
            handle: sockets.add(socket),
            sockets,
            handshake_timeout_percent: u64::from(parameters.handshake_timeout_percent.max(100)),
            handshake_timer: None,
            ledger: Ledger::default(),
            channel: Channel::new(parameters.max_message_bytes),
        }
    }

    /// Returns the socket and the messages over it.
    pub(super) fn parts(&mut self) -> (&mut Socket<'static>, &mut Channel) {
        (self.sockets.get_mut(self.handle), &mut self.channel)
    }

    pub(super) fn state(&self) -> State {
        self.sockets.get::<Socket<'_>>(self.handle).state()
    }

    /// Returns whether nothing is left to send or to wait for. A socket that was reset before it was connected listens again.
    pub(super) fn is_over(&self) -> bool {
        let socket = self.sockets.get::<Socket<'_>>(self.handle);
        socket.remote_endpoint().is_none() || socket.state() == State::Listen
    }

    /// Handles a packet.
    pub(super) fn receive(&mut self, now: Time, stack: &mut Stack, packet: &[u8]) {
        stack.receive(instant(now), packet, &mut self.sockets);
        if !matches!(self.state(), State::SynSent | State::SynReceived) {
            self.handshake_timer = None;
        }
    }

    /// Sends the packets that are due.
    ///
    /// smoltcp looks at its timers only when it is polled. In a handshake it is not polled until the longer timeout is over.
    /// The times of transmissions and arrivals stay true, and so does the RTT sample of the handshake.
    pub(super) fn flush(&mut self, now: Time, stack: &mut Stack) {
        if self.handshake_timer.is_some_and(|end| now < end) {
            return;
        }
        stack.flush(instant(now), &mut self.sockets);
        if matches!(self.state(), State::SynSent | State::SynReceived) {
            let timer = stack.deadline(instant(now), &self.sockets).map(|end| end - instant(now));
            self.handshake_timer = timer.map(|timeout| {
                let percent = Span::from_micros(timeout.total_micros()) / 100;
                now + (percent * self.handshake_timeout_percent).max(LEAST_WAIT)
            });
        }
    }

    /// Returns the moment at which to call [`flush`](Self::flush) again.
    pub(super) fn deadline(&self, now: Time, stack: &mut Stack) -> Option<Time> {
        if self.handshake_timer.is_some() {
            return self.handshake_timer;
        }
        let at = stack.deadline(instant(now), &self.sockets)?;
        let at = u64::try_from(at.total_micros()).unwrap_or(0).saturating_mul(1_000);
        Some(Time::from_nanos(at).max(now + LEAST_WAIT))
    }
}

/// Converts a moment to that of smoltcp, in whole microseconds.
fn instant(time: Time) -> Instant {
    Instant::from_micros(i64::try_from(time.as_nanos() / 1_000).unwrap_or(i64::MAX))
}
