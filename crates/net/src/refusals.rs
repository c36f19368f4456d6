//! The destinations that the network reports as unreachable.

use std::io;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use tokio::sync::Notify;

use crate::address::Remote;
use crate::log;

/// The maximum number of destinations that are recorded. Beyond that an arbitrary one is dropped, and recorded again at
/// its next error.
const MOST: usize = 256;

/// The number of the error EACCES on every Unix: this host may not send to the address, such as a broadcast address.
const NOT_ALLOWED: i32 = 13;

/// The destinations that sent ICMP errors, or that the system refused to send to, since they last answered. A later
/// datagram may still arrive: a host that reboots reports closed ports for a while. So an error does not end a request
/// by itself: the request is retransmitted as if there were no error (RFC 7252 §4.2).
#[derive(Debug)]
pub(crate) struct Refusals {
    known: HashMap<Remote, io::ErrorKind>,
    /// Wakes the tasks that wait for a refusal.
    pub(crate) news: Arc<Notify>,
}

impl Default for Refusals {
    fn default() -> Self {
        Self { known: HashMap::new(), news: Arc::default() }
    }
}

impl Refusals {
    /// Records the error of a datagram to a destination with outstanding requests. Logs the error if it is the first
    /// since the destination last answered.
    pub(crate) fn note(&mut self, to: Remote, kind: io::ErrorKind) {
        if self.known.len() >= MOST
            && !self.known.contains_key(&to)
            && let Some(&other) = self.known.keys().next()
        {
            self.known.remove(&other);
        }
        // Each retransmission may cause another error, and these say nothing new.
        if self.known.insert(to, kind).is_none() {
            log::unreachable(to.address(), kind);
        }
        // A request that tries several addresses goes on to the next one now.
        self.news.notify_waiters();
    }

    /// Clears the errors of a destination, because it answered.
    pub(crate) fn forget(&mut self, from: Remote) {
        if !self.known.is_empty() {
            self.known.remove(&from);
        }
    }

    /// Returns the last error of a destination, or `None` if there was none since the destination last answered.
    pub(crate) fn of(&self, to: Remote) -> Option<io::ErrorKind> {
        self.known.get(&to).copied()
    }
}

/// Returns whether the system would refuse a retransmission with the same error, so that retransmitting is useless.
pub(crate) fn is_final(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidInput || error.raw_os_error() == Some(NOT_ALLOWED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_icmp_refusal_is_remembered_until_the_destination_answers_in_a_bounded_table() {
        let mut refusals = Refusals::default();
        let remote = |port| Remote::new(std::net::Ipv6Addr::LOCALHOST, port, 0);
        refusals.note(remote(1), io::ErrorKind::ConnectionRefused);
        refusals.note(remote(1), io::ErrorKind::HostUnreachable);
        assert_eq!(refusals.of(remote(1)), Some(io::ErrorKind::HostUnreachable));
        refusals.forget(remote(1));
        assert_eq!(refusals.of(remote(1)), None);
        for port in 0..2 * MOST as u16 {
            refusals.note(remote(port), io::ErrorKind::ConnectionRefused);
        }
        assert_eq!(refusals.known.len(), MOST);
    }

    #[test]
    fn only_errors_that_no_further_datagram_can_cure_end_a_request() {
        let of = |number| is_final(&io::Error::from_raw_os_error(number));
        // EINVAL and EACCES; EPERM, EMSGSIZE, ENETUNREACH, ECONNREFUSED and EHOSTUNREACH of Linux.
        assert_eq!([22, 13, 1, 90, 101, 111, 113].map(of), [true, true, false, false, false, false, false]);
    }
}
