//! The loop that owns an endpoint's socket and timers: receive, handle, send, wait.

use std::io;
use std::sync::Arc;
use std::task::Poll;

use coapace_control::Instant;
use coapace_proto::{Event, Message, Responder};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::hub::{Hub, LockedHub};
use super::io::{DatagramIo, Reception};
use super::sets::BodyRequest;
use super::watch::{SocketWatch, Wakeup};
use crate::address::Remote;

/// The number of batches received before other tasks of the thread run.
const ROUNDS: u32 = 8;

/// The part of a driver that differs between clients and servers.
pub(crate) trait EndpointRole {
    fn request(&mut self, hub: &Arc<Hub>, now: Instant, responder: Responder<Remote>, message: &Message<'_>);

    /// Handles a request that is too long. `head` is the request without its options and payload.
    fn too_long(&mut self, hub: &Arc<Hub>, now: Instant, responder: Responder<Remote>, head: &Message<'_>) {
        self.request(hub, now, responder, head);
    }

    /// Sends the next set of blocks of a body, because half of the previous set has arrived.
    fn proceed(&mut self, _: &Arc<Hub>, _: Instant, _: &BodyRequest) {}

    /// Returns whether the endpoint expects datagrams. If not, receiving again would be a wasted system call.
    fn expects(&self, _: &LockedHub) -> bool {
        true
    }

    /// Notifies the observers of resources that have changed.
    fn resources_changed(&mut self, _: &Arc<Hub>) {}

    /// Sends all observers their last notification, because the hub starts to close.
    fn closing(&mut self, _: &Arc<Hub>) {}
}

/// The loop of one endpoint.
#[derive(Debug)]
pub(crate) struct Driver<C, S> {
    pub(crate) hub: Arc<Hub>,
    pub(crate) io: C,
    pub(crate) service: S,
    /// A duplicate of the hub's socket for the runtime to watch. If it is `None`, the driver makes one.
    watched: Option<std::net::UdpSocket>,
    /// Set if the last attempt to receive ended before the system reported that nothing is left.
    unasked: bool,
}

impl<C: DatagramIo, S: EndpointRole> Driver<C, S> {
    pub(crate) fn new(hub: Arc<Hub>, io: C, service: S) -> Self {
        Self { hub, io, service, watched: None, unasked: false }
    }

    /// Returns the driver with a given duplicate of the hub's socket, so that it need not make one.
    pub(crate) fn watching(mut self, duplicate: std::net::UdpSocket) -> Self {
        self.watched = Some(duplicate);
        self
    }

    /// Runs until the hub is closing and no exchange is left.
    pub(crate) async fn run(mut self) -> io::Result<()> {
        let hub = self.hub.clone();
        let watched = UdpSocket::from_std(match self.watched.take() {
            Some(duplicate) => duplicate,
            None => hub.socket.duplicate()?,
        })?;
        let mut watch = SocketWatch::of(&watched, &hub.attention);
        // The moment that the timer is set for. The timer is never moved to a later moment, and may fire once with nothing to do.
        // Moving it with every exchange would cost more.
        let mut armed = Instant::MAX;
        let mut farewell_said = false;
        loop {
            // The last notifications depart before the hub waits for its exchanges to end.
            if hub.closing.has_begun() && !std::mem::replace(&mut farewell_said, true) {
                self.service.closing(&hub);
                self.send(hub.clock.now());
            }
            if hub.has_changed() {
                self.service.resources_changed(&hub);
                self.send(hub.clock.now());
            }
            let carrier_at = self.io.deadline().map(|at| hub.clock.moment(at));
            let blocked = {
                let mut state = hub.lock();
                let deadline = [state.poll_timeout(), carrier_at].into_iter().flatten().min();
                if let Some(deadline) = deadline.filter(|&deadline| deadline < armed)
                    && let Some(at) = hub.clock.at(deadline)
                {
                    watch.set_timer(at);
                    armed = deadline;
                }
                // Other tasks compare their deadlines with this, and wake the driver only for earlier ones.
                state.armed = armed;
                !state.outgoing.is_empty()
            };
            if hub.closing.has_begun() && hub.is_idle() {
                self.io.close(&hub.socket);
                return Ok(());
            }
            match watch.next(blocked, armed != Instant::MAX).await? {
                Wakeup::Readable => {
                    if watched.try_io(Interest::READABLE, || self.rounds()).is_ok() {
                        // There may be more, but other tasks of this thread have their turn first.
                        tokio::task::yield_now().await;
                    }
                    // The task that got its response runs now. If it sends no further request, the rest is read here.
                    if std::mem::take(&mut self.unasked) {
                        requeue().await;
                        while !self.service.expects(&hub.lock()) && (0..ROUNDS).all(|_| self.round()) {
                            tokio::task::yield_now().await;
                        }
                    }
                }
                Wakeup::Writable => {
                    let _ = watched.try_io(Interest::WRITABLE, || {
                        self.send(hub.clock.now());
                        drained()
                    });
                }
                Wakeup::Error => {
                    let _ = watched.try_io(Interest::ERROR, || {
                        self.take_errors();
                        drained()
                    });
                }
                Wakeup::Attention => {}
                Wakeup::Timer => {
                    // The timer has fired, so any deadline may set it again.
                    armed = Instant::MAX;
                    self.send(hub.clock.now());
                }
            }
            // Timers of DTLS are looked at after every event, because they have no event of their own.
            if carrier_at.is_some_and(|at| at <= hub.clock.now()) {
                self.io.timeout(&hub.socket);
            }
        }
    }

    /// Receives, handles and sends up to [`ROUNDS`] batches.
    ///
    /// # Errors
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) as soon as nothing is left, or nothing is expected any more.
    ///
    /// When an awaited response has come, its task probably sends the next request, and the system will announce the next
    /// response. Receiving again at once would be a wasted system call for every request of a client.
    fn rounds(&mut self) -> io::Result<()> {
        for _ in 0..ROUNDS {
            let (mut now, mut more, mut expects) = (Instant::ZERO, true, true);
            // Messages that several received datagrams let depart are sent together.
            for _ in 0..C::READS {
                (now, more) = self.receive();
                expects = self.service.expects(&self.hub.lock());
                if !more || !expects {
                    break;
                }
            }
            self.send(now);
            if !more {
                return drained();
            }
            if !expects {
                self.unasked = true;
                return drained();
            }
        }
        Ok(())
    }

    /// Receives a batch, handles and answers it. Returns whether more may be available.
    pub(crate) fn round(&mut self) -> bool {
        let (now, more) = self.receive();
        self.send(now);
        more
    }

    /// Receives and handles a batch. Returns the time, and whether more may be available.
    fn receive(&mut self) -> (Instant, bool) {
        let Self { hub, io, service, .. } = self;
        // The clock is read with the first datagram, because the system may have waited for it.
        let mut now = None;
        let received = io.receive(&hub.socket, |from, to_group, bytes| {
            let now = *now.get_or_insert_with(|| hub.clock.now());
            let mut state = hub.lock();
            let event = if to_group {
                state.endpoint.handle_group_datagram(now, from, bytes)
            } else {
                state.endpoint.handle_datagram(now, from, bytes)
            };
            match event {
                Some(Event::Request { responder, message }) => {
                    // A handler may use the hub.
                    drop(state);
                    service.request(hub, now, responder, &message);
                }
                Some(event) => {
                    let open = match event {
                        Event::Acknowledged { exchange } => state.answers.sets.take(exchange),
                        _ => None,
                    };
                    state.deliver(now, Some(from), event);
                    if let Some(open) = open {
                        drop(state);
                        service.proceed(hub, now, &open);
                    }
                }
                None => {}
            }
        });
        // Nothing has arrived, but timers and waiting datagrams still need the time.
        let now = now.unwrap_or_else(|| hub.clock.now());
        // Not inside of `receive`: the lock of a hub is taken before the lock of its sessions.
        if let Some(server) = io.begun() {
            hub.lock().register_again(server);
        }
        match received {
            Ok(received) => {
                if received.truncated > 0 {
                    self.answer_truncated(now, &received);
                }
                (now, received.more)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => (now, false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (now, true),
            Err(_) => {
                // This is an ICMP error for an earlier datagram. The next call receives again.
                self.take_errors();
                (now, true)
            }
        }
    }

    /// Counts the datagrams that are too long, and lets the driver's `EndpointRole` answer the requests among them.
    #[cold]
    fn answer_truncated(&mut self, now: Instant, received: &Reception) {
        let Self { hub, service, .. } = self;
        let mut state = hub.lock();
        state.counters.truncated += received.truncated;
        for (from, head) in &received.heads {
            if let Some(Event::Request { responder, message }) =
                state.endpoint.handle_datagram(now, *from, head)
            {
                // The service takes this lock itself.
                drop(state);
                service.too_long(hub, now, responder, &message);
                state = hub.lock();
            }
        }
    }

    /// Handles timeouts, and sends the endpoint's datagrams. It is called after each batch, because the driver does not
    /// wait for timers while datagrams keep arriving.
    pub(crate) fn send(&mut self, now: Instant) {
        let Self { hub, io, .. } = self;
        let mut state = hub.lock();
        if state.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            state.endpoint.handle_timeout(now);
        }
        state.send_delayed(now);
        state.send(now, |outgoing| io.send(&hub.socket, outgoing));
    }

    fn take_errors(&mut self) {
        let now = self.hub.clock.now();
        self.hub.socket.take_errors(|to, error| self.hub.unreachable(now, to, &error));
    }
}

/// Lets the ready tasks run. [`yield_now`](tokio::task::yield_now) would also let the runtime poll the system.
async fn requeue() {
    let mut first = true;
    std::future::poll_fn(|cx| {
        if std::mem::take(&mut first) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
}

/// Returns the error `WouldBlock`, which makes the runtime wait for the socket.
fn drained() -> io::Result<()> {
    Err(io::ErrorKind::WouldBlock.into())
}

/// Closes the hub and ends all its exchanges and observations, however the loop has ended: no task waits forever.
impl<C, S> Drop for Driver<C, S> {
    fn drop(&mut self) {
        self.hub.close();
        self.hub.lock().give_up_all();
    }
}
