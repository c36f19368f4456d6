//! The loop that owns an endpoint's socket and timers: receive, handle, send, wait.

use std::io;
use std::sync::Arc;

use coapace_control::Instant;
use coapace_proto::{Event, Message, Responder};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::address::Remote;
use crate::carrier::Carrier;
use crate::hub::Hub;

/// Batches received before other tasks of the thread get their turn.
const ROUNDS: u32 = 8;

/// Answers requests.
pub(crate) trait Service {
    fn request(&mut self, hub: &Arc<Hub>, now: Instant, responder: Responder<Remote>, message: &Message<'_>);

    /// A resource has changed: who observes it is to be told.
    fn resources_changed(&mut self, _: &Arc<Hub>) {}
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
        // What the timer is set for. One that is set for too early fires in vain once; to move it with every exchange
        // would cost more.
        let mut armed = Instant::MAX;
        loop {
            if hub.has_changed() {
                self.service.resources_changed(&hub);
                self.send(hub.clock.now());
            }
            let blocked = {
                let mut state = hub.lock();
                let deadline = state.endpoint.poll_timeout().unwrap_or(Instant::MAX);
                if deadline < armed
                    && let Some(at) = hub.clock.at(deadline)
                {
                    timer.as_mut().reset(at);
                    armed = deadline;
                }
                state.armed = armed;
                !state.outgoing.is_empty()
            };
            if hub.is_closing() && hub.is_idle() {
                self.carrier.close(&hub.socket);
                return Ok(());
            }
            let carrier_at = self.carrier.deadline();
            let wanted = if blocked { interest } else { Interest::READABLE | Interest::ERROR };
            tokio::select! {
                biased;
                () = at(carrier_at), if carrier_at.is_some() => self.carrier.timeout(&hub.socket),
                ready = watched.ready(wanted) => {
                    let ready = ready?;
                    if ready.is_error() {
                        let _ = watched.try_io(Interest::ERROR, || {
                            self.take_errors();
                            drained()
                        });
                    }
                    if ready.is_writable() {
                        let _ = watched.try_io(Interest::WRITABLE, || {
                            self.send(hub.clock.now());
                            drained()
                        });
                    }
                    if ready.is_readable() && watched.try_io(Interest::READABLE, || self.rounds()).is_ok() {
                        // There is more, but other tasks of this thread have their turn first.
                        tokio::task::yield_now().await;
                    }
                }
                () = hub.attention.notified() => {}
                () = timer.as_mut(), if armed != Instant::MAX => {
                    armed = Instant::MAX;
                    self.send(hub.clock.now());
                }
            }
        }
    }

    /// Receives, handles and sends for so many rounds.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) as soon as nothing is left. What comes now, the system will tell: to
    /// ask it in vain first would be a call for nothing.
    fn rounds(&mut self) -> io::Result<()> {
        if (0..ROUNDS).all(|_| self.round()) { Ok(()) } else { drained() }
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
                Some(event) => state.tell(now, Some(from), event),
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

    /// Sends what there is to send, and what a deadline that has passed asks for: timers have no turn of their own as
    /// long as datagrams keep coming.
    fn send(&mut self, now: Instant) {
        let Self { hub, carrier, .. } = self;
        let mut state = hub.lock();
        if state.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            state.endpoint.handle_timeout(now);
        }
        state.send(now, |outgoing| carrier.send(&hub.socket, outgoing));
    }

    fn take_errors(&mut self) {
        let now = self.hub.clock.now();
        self.hub.socket.take_errors(|to, error| self.hub.unreachable(now, to, &error));
    }
}

/// Ends at this moment, if it is one.
async fn at(moment: Option<std::time::Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment.into()).await,
        None => std::future::pending().await,
    }
}

/// What the runtime takes as a sign that it has to wait for the system.
fn drained() -> io::Result<()> {
    Err(io::ErrorKind::WouldBlock.into())
}

/// However it ends, nobody waits for nothing.
impl<C, S> Drop for Driver<C, S> {
    fn drop(&mut self) {
        self.hub.close();
        self.hub.lock().give_up_all();
    }
}
