//! The events that wake a driver.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;

use tokio::io::{Interest, Ready};
use tokio::net::UdpSocket;
use tokio::sync::{Notify, futures::Notified};
use tokio::time::{Instant, Sleep};

/// The event that has woken a driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wakeup {
    /// Datagrams may have arrived.
    Readable,
    /// The socket accepts datagrams again.
    Writable,
    /// The socket has an error.
    Error,
    /// The hub has requested attention.
    Attention,
    /// The timer has expired.
    Timer,
}

/// A driver's wait for three things at once: the socket, the hub's request for attention, and a timer. The futures are
/// kept from one datagram to the next, because creating them for every datagram would take a twentieth of a client's
/// instructions.
pub(crate) struct SocketWatch<'a> {
    socket: &'a UdpSocket,
    errors: Pin<Box<dyn Future<Output = io::Result<Ready>> + Send + 'a>>,
    attention: &'a Notify,
    called: Pin<Box<Notified<'a>>>,
    timer: Pin<Box<Sleep>>,
}

impl<'a> SocketWatch<'a> {
    pub(crate) fn of(socket: &'a UdpSocket, attention: &'a Notify) -> Self {
        Self {
            socket,
            errors: Box::pin(socket.ready(Interest::ERROR)),
            attention,
            called: Box::pin(attention.notified()),
            // Not polled before `set_timer`, so its first time does not matter.
            timer: Box::pin(tokio::time::sleep_until(Instant::now())),
        }
    }

    pub(crate) fn set_timer(&mut self, at: Instant) {
        self.timer.as_mut().reset(at);
    }

    /// Waits for an event. [`Wakeup::Writable`] is waited for only if the socket took no more datagrams (`blocked`), and
    /// [`Wakeup::Timer`] only if `timer` is set.
    pub(crate) async fn next(&mut self, blocked: bool, timer: bool) -> io::Result<Wakeup> {
        let Self { socket, errors, attention, called, timer: expired } = self;
        tokio::select! {
            // Datagrams come first, because handling them also handles deadlines.
            biased;
            ready = poll_fn(|context| socket.poll_recv_ready(context)) => ready.map(|()| Wakeup::Readable),
            ready = poll_fn(|context| socket.poll_send_ready(context)), if blocked => {
                ready.map(|()| Wakeup::Writable)
            }
            ready = errors.as_mut() => {
                // A future that is complete must not be polled again.
                *errors = Box::pin(socket.ready(Interest::ERROR));
                ready.map(|_| Wakeup::Error)
            }
            () = called.as_mut() => {
                called.set(attention.notified());
                Ok(Wakeup::Attention)
            }
            () = expired.as_mut(), if timer => Ok(Wakeup::Timer),
        }
    }
}
