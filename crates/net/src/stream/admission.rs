//! The limit of a server's connections, and the choice of the connection that is closed for a new one.

use std::collections::HashMap;
use std::net::Ipv6Addr;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::Notify;

use crate::address::network;
use crate::lock::lock;

/// The connections of all servers that share a [`Budget`](crate::Budget).
#[derive(Debug)]
pub(crate) struct Admission {
    since: Instant,
    open: Mutex<OpenConnections>,
}

#[derive(Debug, Default)]
struct OpenConnections {
    connections: HashMap<u64, Arc<Activity>>,
    begun: u64,
}

/// The activity of a connection, in the sequence in which connections are closed for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Doing {
    /// The handshake is incomplete, or the first message has not arrived.
    Opening,
    /// The connection waits for a request.
    Idle,
    /// A request waits for its answer, or the connection has observers.
    Busy,
}

/// The activity of an admitted connection, which decides whether it is closed for another.
#[derive(Debug)]
struct Activity {
    /// The [`network`] of the client.
    from: Ipv6Addr,
    doing: AtomicU8,
    /// The time of the last message, in milliseconds since the table was created.
    heard: AtomicU64,
    leave: Notify,
}

/// An admitted connection. Dropping it frees its slot.
#[derive(Debug)]
pub(crate) struct Admitted {
    table: Arc<Admission>,
    number: u64,
    state: Arc<Activity>,
}

impl Default for Admission {
    fn default() -> Self {
        Self { since: Instant::now(), open: Mutex::default() }
    }
}

impl Admission {
    /// Admits a connection from this address. Returns the connection, and whether another one is closed because there
    /// are already `bound` connections.
    ///
    /// The address with the most connections loses one: the connection with the least activity, and among equals the one that
    /// was silent for longest. So an address that opens many connections loses its own, and not those from other addresses.
    pub(crate) fn enter(self: &Arc<Self>, from: Ipv6Addr, bound: usize) -> (Admitted, bool) {
        let from = network(from);
        let mut open = lock(&self.open);
        let full = open.connections.len() >= bound.max(1);
        let leaving = if full { open.first_to_leave() } else { None };
        // Removed at once, although its task ends later, so that the next newcomer displaces another one.
        if let Some(state) = leaving.and_then(|number| open.connections.remove(&number)) {
            state.leave.notify_one();
        }
        open.begun += 1;
        let state = Arc::new(Activity {
            from,
            doing: AtomicU8::new(Doing::Opening as u8),
            heard: AtomicU64::new(self.now()),
            leave: Notify::new(),
        });
        let number = open.begun;
        open.connections.insert(number, state.clone());
        (Admitted { table: self.clone(), number, state }, full)
    }

    fn now(&self) -> u64 {
        self.since.elapsed().as_millis() as u64
    }
}

impl OpenConnections {
    fn first_to_leave(&self) -> Option<u64> {
        let mut counts: HashMap<Ipv6Addr, usize> = HashMap::new();
        for state in self.connections.values() {
            *counts.entry(state.from).or_default() += 1;
        }
        // Ties between addresses are broken by the connections below.
        let most = counts.values().copied().max()?;
        let of_these = self.connections.iter().filter(|(_, state)| counts[&state.from] == most);
        // Another thread may change these now. A slightly wrong choice does no harm.
        let worth =
            |state: &Activity| (state.doing.load(Ordering::Relaxed), state.heard.load(Ordering::Relaxed));
        of_these.min_by_key(|&(&number, state)| (worth(state), number)).map(|(&number, _)| number)
    }
}

impl Admitted {
    /// Records that a message has arrived.
    pub(crate) fn heard(&self) {
        self.state.heard.store(self.table.now(), Ordering::Relaxed);
    }

    pub(crate) fn set(&self, doing: Doing) {
        self.state.doing.store(doing as u8, Ordering::Relaxed);
    }

    /// Returns when the connection must be closed because another connection needs its slot.
    pub(crate) async fn left(&self) {
        // `notify_one` leaves a permit, so a call before this wait is not lost.
        self.state.leave.notified().await;
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        lock(&self.table.open).connections.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Ipv6Addr {
        crate::address::mapped(text.parse().unwrap())
    }

    /// Returns whether a connection must be closed because another needs its slot.
    fn leaves(place: &Admitted) -> bool {
        use std::future::Future;
        let mut left = std::pin::pin!(place.left());
        left.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_ready()
    }

    #[test]
    fn a_new_connection_replaces_one_of_the_address_with_the_most_connections() {
        let table = Arc::new(Admission::default());
        let many: Vec<Admitted> = (0..3).map(|_| table.enter(address("192.0.2.1"), 4).0).collect();
        let (other, full) = table.enter(address("192.0.2.2"), 4);
        assert!(!full);
        let (newcomer, full) = table.enter(address("192.0.2.3"), 4);
        assert!(full && leaves(&many[0]));
        assert!(![&many[1], &many[2], &other, &newcomer].into_iter().any(leaves));
    }

    #[test]
    fn connections_are_closed_in_the_sequence_opening_idle_busy() {
        let table = Arc::new(Admission::default());
        let connections: Vec<Admitted> = (0..3).map(|_| table.enter(address("192.0.2.1"), 3).0).collect();
        connections[0].set(Doing::Busy);
        connections[1].set(Doing::Idle);
        let order = [2, 1, 0];
        let mut newcomers = Vec::new();
        for (before, &next) in order.iter().enumerate() {
            assert!(!leaves(&connections[next]), "not before its turn");
            let (newcomer, _) = table.enter(address("192.0.2.1"), 3);
            newcomer.set(Doing::Busy);
            newcomers.push(newcomer);
            assert!(leaves(&connections[next]), "{before}");
        }
    }

    #[test]
    fn a_closed_connection_frees_its_slot() {
        let table = Arc::new(Admission::default());
        let (place, _) = table.enter(address("192.0.2.1"), 1);
        drop(place);
        assert!(!table.enter(address("192.0.2.1"), 1).1);
    }
}
