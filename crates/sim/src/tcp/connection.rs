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

/// The least wait before smoltcp is polled again. It makes time pass even if smoltcp asks to be polled at once.
const LEAST_WAIT: Span = Span::from_millis(1);

/// The bytes that a send buffer needs in addition to a message, for two signals: a CSM and a Pong.
const SIGNALS_BYTES: usize = 32;

/// The step of smoltcp's clock.
const STEP: Duration = Duration::from_micros(1);

/// A timer of smoltcp, and the later time at which the simulator lets it fire.
#[derive(Clone, Copy, Debug)]
struct SocketTimer {
    /// The time for which smoltcp has set the timer.
    due: Instant,
    /// The duration of the timer.
    timeout: Span,
    /// The time at which the timer fires, not before `due`.
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
    /// The timers that are known to be set, sorted so that the last element expires first: a delayed ACK may come before a
    /// retransmission.
    timers: Vec<SocketTimer>,
    pub(super) ledger: SequenceLedger,
    pub(super) channel: Channel,
}

impl TcpConnection {
    /// Returns a closed connection that can send messages of up to `message_bytes` bytes.
    pub(super) fn new(parameters: TcpParameters, message_bytes: usize) -> Self {
        let buffer_bytes = parameters.buffer_bytes as usize;
        let buffer = |bytes| SocketBuffer::new(vec![0; bytes]);
        // A message is written as a whole or not at all, so the buffer has to hold the longest, whatever is configured.
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

    /// Returns whether the connection is over: nothing is left to send or to wait for. A socket that was reset during
    /// the handshake listens again, which also counts as over.
    pub(super) fn is_over(&self) -> bool {
        let socket = self.sockets.get::<Socket<'_>>(self.handle);
        socket.remote_endpoint().is_none() || socket.state() == State::Listen
    }

    /// Passes a packet that has arrived to smoltcp.
    pub(super) fn receive(&mut self, now: Time, stack: &mut IpStack, packet: &[u8]) {
        let before = self.progress();
        stack.receive(instant(now), packet, &mut self.sockets);
        if self.progress() != before {
            // smoltcp has stopped its timers or set them again.
            self.timers.clear();
        }
    }

    /// Returns the state and the length of the send queue. They change when the other end acknowledges something new.
    fn progress(&self) -> (State, usize) {
        let socket = self.sockets.get::<Socket<'_>>(self.handle);
        (socket.state(), socket.send_queue())
    }

    /// Sends the packets that are due.
    ///
    /// smoltcp checks its timers only when it is polled. Until a delayed timer fires, smoltcp is polled with a time
    /// just before the one at which it would act by itself.
    pub(super) fn flush(&mut self, now: Time, stack: &mut IpStack) {
        let waiting = self.timers.iter().rev().find(|timer| now < timer.fires);
        let polled = waiting.map_or(instant(now), |timer| instant(now).min(timer.due - STEP));
        stack.flush(polled, &mut self.sockets);
        let Some(due) = stack.deadline(polled, &self.sockets) else { return self.timers.clear() };
        // smoltcp has moved on past these timers.
        while self.timers.pop_if(|timer| timer.due < due).is_some() {}
        if self.timers.last().is_none_or(|timer| timer.due != due) {
            let timeout = self.lengthened(due.max(polled) - polled);
            self.timers.push(SocketTimer { due, timeout, fires: fires(self.wheel, now, timeout) });
        }
    }

    /// Restarts all timers at `now`, each with its full timeout.
    pub(super) fn restart_timers(&mut self, now: Time) {
        for timer in &mut self.timers {
            timer.fires = fires(self.wheel, now, timer.timeout);
        }
    }

    /// Returns a timeout of smoltcp, which is lengthened by a factor during the handshake.
    fn lengthened(&self, timeout: Duration) -> Span {
        let timeout = Span::from_micros(timeout.total_micros());
        match self.state() {
            State::SynSent | State::SynReceived => timeout * self.handshake_timeout_percent / 100,
            _ => timeout,
        }
    }

    /// Returns the time at which to call [`flush`](Self::flush) again; `None` if no timer is set.
    pub(super) fn deadline(&self, now: Time) -> Option<Time> {
        let fires = self.timers.iter().map(|timer| timer.fires).min();
        fires.map(|fires| fires.max(now + LEAST_WAIT))
    }
}

/// Returns the time at which a timer fires that is set at `now` for `timeout`: on the grid of the wheel, if there is a
/// wheel.
fn fires(wheel: Option<Wheel>, now: Time, timeout: Span) -> Time {
    match wheel {
        Some(wheel) if timeout > Span::ZERO => wheel.fires(now, timeout),
        // smoltcp's clock counts whole microseconds, so its timers start at the last one.
        _ => Time::from(now.instant()) + timeout,
    }
}

/// Converts a time to a time of smoltcp, in whole microseconds.
fn instant(time: Time) -> Instant {
    Instant::from_micros(i64::try_from(time.as_nanos() / 1_000).unwrap_or(i64::MAX))
}
