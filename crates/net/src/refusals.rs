//! The destinations that the network reports as unreachable.

use std::io;
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use tokio::sync::Notify;

use crate::address::Remote;
use crate::log;

/// The most destinations that are noted. Beyond it, any one is forgotten, and noted again with its next error.
const MOST: usize = 256;

/// EACCES, of every Unix: no datagram may go there from here, for example to a broadcast address.
const NOT_ALLOWED: i32 = 13;

/// The destinations that sent ICMP errors, or that the system refused to send to, since they were last heard. Neither shows that a
/// later datagram will not arrive: a host that reboots reports for a while that nobody listens at its port. So neither ends a
/// request by itself, and requests go on as after silence (RFC 7252 §4.2).
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
    /// Notes the error of a datagram to a destination that is still asked. Logs the first since the destination was heard.
    pub(crate) fn note(&mut self, to: Remote, kind: io::ErrorKind) {
        if self.known.len() >= MOST
            && !self.known.contains_key(&to)
            && let Some(&other) = self.known.keys().next()
        {
            self.known.remove(&other);
        }
        if self.known.insert(to, kind).is_none() {
            log::unreachable(to.address(), kind);
        }
        self.news.notify_waiters();
    }

    /// Forgets the errors of a destination, because it was heard.
    pub(crate) fn forget(&mut self, from: Remote) {
        if !self.known.is_empty() {
            self.known.remove(&from);
        }
    }

    /// Returns the last error of a destination that was not heard since.
    pub(crate) fn of(&self, to: Remote) -> Option<io::ErrorKind> {
        self.known.get(&to).copied()
    }
}

/// Returns whether the system refuses every datagram like this one, so that it is useless to send another.
pub(crate) fn is_final(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::InvalidInput || error.raw_os_error() == Some(NOT_ALLOWED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_is_refused_until_it_is_heard_and_the_table_is_bounded() {
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
    fn only_what_no_other_datagram_can_change_is_final() {
        let of = |number| is_final(&io::Error::from_raw_os_error(number));
        // EINVAL and EACCES; EPERM, EMSGSIZE, ENETUNREACH, ECONNREFUSED and EHOSTUNREACH of Linux.
        assert_eq!([22, 13, 1, 90, 101, 111, 113].map(of), [true, true, false, false, false, false, false]);
    }
}
