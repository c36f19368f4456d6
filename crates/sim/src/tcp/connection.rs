//! One end of a TCP connection that carries CoAP.

use smoltcp::iface::{SocketHandle, SocketSet};
use smoltcp::socket::tcp::{CongestionControl, Socket, SocketBuffer, State};
use smoltcp::time::{Duration, Instant};

use super::TcpParameters;
use super::channel::Channel;
use super::ledger::SequenceLedger;
use super::stack::IpStack;
use super::wheel::Wheel;
use crate::{Span, Time};

/// The least wait before smoltcp is polled again. Time goes on even if smoltcp asks to be polled at once.
const LEAST_WAIT: Span = Span::from_millis(1);

/// The room of a send buffer for signals beside a message: a CSM and a Pong, in bytes.
const SIGNALS_BYTES: usize = 32;

/// The step of smoltcp's clock.
const STEP: Duration = Duration::from_micros(1);

/// A timer of smoltcp.
#[derive(Clone, Copy, Debug)]
struct SocketTimer {
    /// The moment for which smoltcp has set it.
    due: Instant,
    /// The time that it runs.
    timeout: Span,
    /// The moment at which it fires, not before `due`.
    fires: Time,
}

/// A socket and the messages over it.
#[derive(Debug)]
pub(super) struct TcpConnection {
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    /// The factor on the timeouts of the handshake, in per cent.
    handshake_timeout_percent: u64,
    wheel: Option<Wheel>,
    /// The timers that are known to be set, the first to expire last: a delayed ACK may stand before a retransmission.
    timers: Vec<SocketTimer>,
    pub(super) ledger: SequenceLedger,
    pub(super) channel: Channel,
}

impl TcpConnection {
    /// Returns a closed connection that can send messages of `message_bytes`.
    pub(super) fn new(parameters: TcpParameters, message_bytes: usize) -> Self {
        let buffer_bytes = parameters.buffer_bytes as usize;
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
            wheel: Wheel::new(parameters.timer_hz),
            timers: Vec::with_capacity(2),
            ledger: SequenceLedger::default(),
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
    pub(super) fn receive(&mut self, now: Time, stack: &mut IpStack, packet: &[u8]) {
        let before = self.progress();
        stack.receive(instant(now), packet, &mut self.sockets);
        if self.progress() != before {
            // smoltcp has stopped its timers or set them again.
            self.timers.clear();
        }
    }

    /// Returns values that change when the other end acknowledges something new.
    fn progress(&self) -> (State, usize) {
        let socket = self.sockets.get::<Socket<'_>>(self.handle);
        (socket.state(), socket.send_queue())
    }

    /// Sends the packets that are due.
    ///
    /// smoltcp looks at its timers only when it is polled. Until a timer fires, it is polled with a moment just before that for
    /// which it has set the timer.
    pub(super) fn flush(&mut self, now: Time, stack: &mut IpStack) {
        let waiting = self.timers.iter().rev().find(|timer| now < timer.fires);
        let polled = waiting.map_or(instant(now), |timer| instant(now).min(timer.due - STEP));
        stack.flush(polled, &mut self.sockets);
        let Some(due) = stack.deadline(polled, &self.sockets) else { return self.timers.clear() };
        while self.timers.pop_if(|timer| timer.due < due).is_some() {}
        if self.timers.last().is_none_or(|timer| timer.due != due) {
            let timeout = self.lengthened(due.max(polled) - polled);
            self.timers.push(SocketTimer { due, timeout, fires: fires(self.wheel, now, timeout) });
        }
    }

    /// Starts the timers again.
    pub(super) fn restart_timers(&mut self, now: Time) {
        for timer in &mut self.timers {
            timer.fires = fires(self.wheel, now, timer.timeout);
        }
    }

    /// Returns a timeout of smoltcp, lengthened if it is one of the handshake.
    fn lengthened(&self, timeout: Duration) -> Span {
        let timeout = Span::from_micros(timeout.total_micros());
        match self.state() {
            State::SynSent | State::SynReceived => timeout * self.handshake_timeout_percent / 100,
            _ => timeout,
        }
    }

    /// Returns the moment at which to call [`flush`](Self::flush) again.
    pub(super) fn deadline(&self, now: Time) -> Option<Time> {
        let fires = self.timers.iter().map(|timer| timer.fires).min();
        fires.map(|fires| fires.max(now + LEAST_WAIT))
    }
}

/// Returns the moment at which a timer fires that is set at `now`.
fn fires(wheel: Option<Wheel>, now: Time, timeout: Span) -> Time {
    match wheel {
        Some(wheel) if timeout > Span::ZERO => wheel.fires(now, timeout),
        _ => Time::from(now.instant()) + timeout,
    }
}

/// Converts a moment to a moment of smoltcp, in whole microseconds.
fn instant(time: Time) -> Instant {
    Instant::from_micros(i64::try_from(time.as_nanos() / 1_000).unwrap_or(i64::MAX))
}
