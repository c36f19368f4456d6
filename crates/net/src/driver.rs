//! The loop that owns an endpoint's socket and timers: receive, handle, send, wait.

use std::io;
use std::sync::Arc;

use coapace_control::Instant;
use coapace_proto::{Event, Message, Responder};
use tokio::io::{Interest, Ready};
use tokio::net::UdpSocket;

use crate::address::Remote;
use crate::carrier::Carrier;
use crate::hub::Hub;

/// Batches received before other tasks of the thread get their turn.
const ROUNDS: u32 = 8;

/// Answers requests.
pub(crate) trait Service {
    fn request(&mut self, hub: &Arc<Hub>, now: Instant, responder: Responder<Remote>, message: &Message<'_>);
}

/// One endpoint's loop.
pub(crate) struct Driver<C, S> {
    pub(crate) hub: Arc<Hub>,
    pub(crate) carrier: C,
    pub(crate) service: S,
}

impl<C: Carrier, S: Service> Driver<C, S> {
    /// Runs until the hub is closing and nothing is under way any more.
    ///
    /// # Errors
    /// If the runtime cannot watch the socket.
    pub(crate) async fn run(mut self) -> io::Result<()> {
        let hub = self.hub.clone();
        let interest = Interest::READABLE | Interest::WRITABLE | Interest::ERROR;
        let watched = UdpSocket::from_std(hub.socket.duplicate()?)?;
        let mut timer = std::pin::pin!(tokio::time::sleep(std::time::Duration::ZERO));
        let mut timed_for = Instant::ZERO;
        loop {
            let (deadline, blocked) = {
                let mut state = hub.lock();
                state.armed = state.endpoint.poll_timeout().unwrap_or(Instant::MAX);
                (state.armed, !state.outgoing.is_empty())
            };
            if hub.is_closing() && hub.is_idle() {
                self.carrier.close(&hub.socket);
                return Ok(());
            }
            let carrier_at = self.carrier.deadline().map(tokio::time::Instant::from_std);
            let at = hub.clock.at(deadline);
            if let Some(at) = at
                && timed_for != deadline
            {
                timer.as_mut().reset(at);
                timed_for = deadline;
            }
            let wanted = if blocked { interest } else { Interest::READABLE | Interest::ERROR };
            tokio::select! {
                biased;
                ready = watched.ready(wanted) => {
                    let ready = ready?;
                    let drained = watched.try_io(wanted, || match self.rounds(ready) {
                        // The runtime is to wait for the next word of the system. That comes with the next datagram:
                        // to ask for one in vain first would be a call for nothing.
                        true => Err(io::ErrorKind::WouldBlock.into()),
                        false => Ok(()),
                    });
                    if drained.is_ok() {
                        tokio::task::yield_now().await;
                    }
                }
                () = hub.attention.notified() => {}
                () = timer.as_mut(), if at.is_some() => {
                    // Whatever the deadline was, it has passed; it may have been moved since.
                    timed_for = Instant::ZERO;
                    self.timeout();
                }
                () = tokio::time::sleep_until(carrier_at.unwrap_or_else(tokio::time::Instant::now)), if carrier_at.is_some() => {
                    self.carrier.timeout(&hub.socket);
                }
            }
        }
    }

    /// Receives, handles and sends until nothing is left, or for so many rounds. Returns whether nothing is left.
    fn rounds(&mut self, ready: Ready) -> bool {
        if ready.is_error() {
            self.take_errors();
        }
        if !ready.is_readable() {
            self.send(self.hub.clock.now());
            return true;
        }
        (0..ROUNDS).any(|_| !self.round())
    }

    /// Receives a batch, handles and answers it. Returns whether more may be there.
    fn round(&mut self) -> bool {
        let Self { hub, carrier, service } = self;
        let now = hub.clock.now();
        let received = carrier.receive(&hub.socket, |from, bytes| {
            let mut state = hub.lock();
            match state.endpoint.handle_datagram(now, from, bytes) {
                Some(Event::Request { responder, message }) => {
                    // A handler may use the hub.
                    drop(state);
                    service.request(hub, now, responder, &message);
                }
                Some(event) => state.tell(now, event),
                None => {}
            }
        });
        match received {
            Ok(received) => {
                if received.truncated > 0 {
                    hub.lock().counters.truncated += received.truncated;
                }
                self.send(now);
                received.more
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.send(now);
                false
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => true,
            Err(_) => {
                // What ICMP said of a datagram before; the next call receives again.
                self.take_errors();
                true
            }
        }
    }

    fn send(&mut self, now: Instant) {
        let Self { hub, carrier, .. } = self;
        hub.lock().send(now, |outgoing| carrier.send(&hub.socket, outgoing));
    }

    fn timeout(&mut self) {
        let now = self.hub.clock.now();
        self.hub.lock().endpoint.handle_timeout(now);
        self.send(now);
    }

    fn take_errors(&mut self) {
        let now = self.hub.clock.now();
        self.hub.socket.take_errors(|to, error| self.hub.unreachable(now, to, &error));
    }
}

/// However it ends, nobody waits for nothing.
impl<C, S> Drop for Driver<C, S> {
    fn drop(&mut self) {
        self.hub.close();
        self.hub.lock().give_up_all();
    }
}
