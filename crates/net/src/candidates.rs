//! The addresses of a server, and the sequence in which they are tried (RFC 8305).

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Mutex;
use std::task::Poll;

use crate::lock::lock;

/// The maximum number of addresses of one name that are tried.
const MOST: usize = 16;

/// The maximum number of names whose address is remembered. Beyond that an arbitrary name is forgotten, and all its
/// addresses are tried again.
const MOST_NAMES: usize = 1_024;

/// The addresses of a server: at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidates {
    pub(crate) first: SocketAddr,
    pub(crate) others: Vec<SocketAddr>,
}

impl From<SocketAddr> for Candidates {
    fn from(first: SocketAddr) -> Self {
        Self { first, others: Vec::new() }
    }
}

impl Candidates {
    /// Returns the addresses of a server in the sequence in which they are tried: as the resolver sorted them (RFC 6724
    /// §6), but alternating between the two families (RFC 8305 §4). Returns `None` without addresses.
    pub(crate) fn new(found: impl IntoIterator<Item = SocketAddr>) -> Option<Self> {
        let mut distinct: Vec<SocketAddr> = Vec::new();
        // A resolver may return an address twice, and the copy would only delay the next one.
        for address in found {
            if !distinct.contains(&address) {
                distinct.push(address);
            }
        }
        // The resolver's first choice keeps its place, and its family goes first.
        let v6_leads = distinct.first()?.is_ipv6();
        let (leading, other): (Vec<_>, Vec<_>) =
            distinct.into_iter().partition(|address| address.is_ipv6() == v6_leads);
        let pairs = (0..leading.len().max(other.len())).map(|nth| [leading.get(nth), other.get(nth)]);
        // The limit applies after the alternation, so that addresses of both families are left.
        let mut in_turn = pairs.flatten().flatten().copied().take(MOST);
        Some(Self { first: in_turn.next()?, others: in_turn.collect() })
    }

    /// Returns all addresses in sequence.
    pub(crate) fn iter(&self) -> impl Iterator<Item = SocketAddr> {
        std::iter::once(self.first).chain(self.others.iter().copied())
    }

    /// Returns the addresses in the form for one socket: if there are IPv6 addresses, IPv4 is mapped into IPv6 (RFC
    /// 4291 §2.5.5.2).
    pub(crate) fn in_one_family(&self) -> Self {
        let has_v6 = self.iter().any(|address| address.is_ipv6());
        let mapped = |address: SocketAddr| match address.ip() {
            IpAddr::V4(ip) if has_v6 => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
            _ => address,
        };
        Self { first: mapped(self.first), others: self.others.iter().copied().map(mapped).collect() }
    }

    /// Returns only the IPv4 addresses, or `None` if there are none.
    pub(crate) fn of_ipv4(&self) -> Option<Self> {
        Self::new(self.iter().filter(SocketAddr::is_ipv4))
    }
}

/// For each server with several addresses, by host and port: the address that has answered. Later requests go directly
/// to this address.
#[derive(Debug, Default)]
pub(crate) struct AnsweredAddresses(Mutex<HashMap<(String, u16), SocketAddr>>);

impl AnsweredAddresses {
    /// Records that a server has answered from this address.
    pub(crate) fn note(&self, host: &str, port: u16, address: SocketAddr) {
        let mut known = lock(&self.0);
        if known.len() >= MOST_NAMES
            && let Some(any) = known.keys().next().cloned()
        {
            known.remove(&any);
        }
        known.insert((host.to_owned(), port), address);
    }

    /// Forgets the address of a server, because a request to it has failed.
    pub(crate) fn forget(&self, host: &str, port: u16) {
        let mut known = lock(&self.0);
        // Most clients remember no name, and need no key for the search.
        if !known.is_empty() {
            known.remove(&(host.to_owned(), port));
        }
    }

    /// Returns only the address that has answered, if it is still in `found`. Otherwise returns all of `found`.
    pub(crate) fn prefer(&self, host: &str, port: u16, found: Candidates) -> Candidates {
        if found.others.is_empty() {
            return found;
        }
        // The remembered address may have IPv4 mapped into IPv6, as the socket took it.
        let canonical = |address: SocketAddr| (address.ip().to_canonical(), address.port());
        let known = lock(&self.0).get(&(host.to_owned(), port)).copied();
        let still = known.filter(|&known| found.iter().any(|address| canonical(address) == canonical(known)));
        still.map_or(found, Candidates::from)
    }
}

/// Makes attempts until one succeeds. The next attempt begins when the newest has failed, or when the `delay` of the
/// newest has passed. Earlier attempts continue. Returns the number and the result of the first attempt that succeeds,
/// or else the error of the last that fails.
///
/// `count` is the number of attempts, at least 1.
pub(crate) async fn race<T, E, A, D>(
    count: usize,
    attempt: impl Fn(usize) -> A,
    delay: impl Fn(usize) -> D,
) -> Result<(usize, T), E>
where
    A: Future<Output = Result<T, E>>,
    D: Future<Output = ()>,
{
    // An attempt that is overtaken goes on: a slow address may still be the only one that works.
    let mut running: Vec<(usize, Pin<Box<A>>)> = vec![(0, Box::pin(attempt(0)))];
    let mut begun = 1;
    let mut pause = Some(Box::pin(delay(0)));
    poll_fn(|context| {
        loop {
            let mut place = 0;
            while let Some((number, running_one)) = running.get_mut(place) {
                match running_one.as_mut().poll(context) {
                    Poll::Ready(Ok(result)) => return Poll::Ready(Ok((*number, result))),
                    Poll::Ready(Err(error)) => {
                        // The newest attempt has failed, so the next one begins at once.
                        if *number + 1 == begun {
                            pause = None;
                        }
                        running.swap_remove(place);
                        // No address is left, so the error of this one is the result.
                        if running.is_empty() && begun >= count {
                            return Poll::Ready(Err(error));
                        }
                    }
                    Poll::Pending => place += 1,
                }
            }
            // Nothing begins after the last attempt. Its pause is not polled, because a future that is over must not be polled again.
            if begun >= count {
                return Poll::Pending;
            }
            // The pause is polled last, so that an attempt that has just succeeded begins no other one.
            let is_due = pause.as_mut().is_none_or(|pause| pause.as_mut().poll(context).is_ready());
            // Wakers of the attempts and of the pause are set, so this is polled again when one of them moves.
            if !is_due {
                return Poll::Pending;
            }
            running.push((begun, Box::pin(attempt(begun))));
            pause = Some(Box::pin(delay(begun)));
            begun += 1;
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::task::{Context, Waker};

    use super::*;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn addresses_of_ipv6_and_ipv4_alternate_in_the_sequence_of_the_resolver() {
        let found = addresses(&["[::1]:1", "[::2]:1", "[::1]:1", "[::3]:1", "1.1.1.1:1", "2.2.2.2:1"]);
        let tried = Candidates::new(found).unwrap();
        let order = addresses(&["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"]);
        assert_eq!(tried.iter().collect::<Vec<_>>(), order);
        let reversed = Candidates::new(order[1..].iter().copied()).unwrap();
        assert_eq!(reversed.first, order[1]);
        assert_eq!(Candidates::new([]), None);
        let many = (1..100).map(|port| SocketAddr::new([127, 0, 0, 1].into(), port));
        assert_eq!(Candidates::new(many).unwrap().iter().count(), MOST);
    }

    #[test]
    fn a_client_sends_only_to_the_address_that_answered_whether_ipv6_or_ipv4() {
        let both = Candidates::new(addresses(&["[::1]:1", "1.1.1.1:1"])).unwrap();
        let one_family = both.in_one_family();
        assert_eq!(one_family.others, addresses(&["[::ffff:1.1.1.1]:1"]));
        assert_eq!(both.of_ipv4(), Some(Candidates::from(both.others[0])));
        let answered = AnsweredAddresses::default();
        answered.note("h", 1, one_family.others[0]);
        assert_eq!(answered.prefer("h", 1, both.clone()), Candidates::from(one_family.others[0]));
        assert_eq!(answered.prefer("h", 2, both.clone()), both);
        let moved = Candidates::new(addresses(&["[::1]:1", "[::2]:1"])).unwrap();
        assert_eq!(answered.prefer("h", 1, moved.clone()), moved, "the name has other addresses now");
        answered.forget("h", 1);
        assert_eq!(answered.prefer("h", 1, both.clone()), both);
    }

    #[test]
    fn a_connection_attempt_begins_when_the_previous_one_fails_or_takes_too_long() {
        let started = RefCell::new(Vec::new());
        let ended: [Cell<Option<Result<char, usize>>>; 4] = Default::default();
        let waited: [Cell<bool>; 4] = Default::default();
        let begin = |number: usize| {
            started.borrow_mut().push(number);
            let ended = &ended[number];
            poll_fn(move |_| ended.get().map_or(Poll::Pending, Poll::Ready))
        };
        let delay = |number: usize| {
            let waited = &waited[number];
            poll_fn(move |_| if waited.get() { Poll::Ready(()) } else { Poll::Pending })
        };
        let mut race = std::pin::pin!(race(4, begin, delay));
        let mut poll = || race.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(poll().is_pending() && *started.borrow() == [0]);
        waited[0].set(true);
        assert!(poll().is_pending() && *started.borrow() == [0, 1], "it waits too long");
        ended[0].set(Some(Err(0)));
        assert!(poll().is_pending() && *started.borrow() == [0, 1], "the second has its time");
        ended[1].set(Some(Err(1)));
        ended[2].set(Some(Err(2)));
        assert!(poll().is_pending() && *started.borrow() == [0, 1, 2, 3], "both have failed");
        ended[3].set(Some(Ok('x')));
        assert_eq!(poll(), Poll::Ready(Ok((3, 'x'))));
    }

    #[test]
    fn the_error_of_a_connection_is_that_of_the_last_attempt() {
        let ended: [Cell<Option<Result<(), usize>>>; 2] = Default::default();
        let begin = |number: usize| {
            let ended = &ended[number];
            poll_fn(move |_| ended.get().map_or(Poll::Pending, Poll::Ready))
        };
        // Like a wait for a timeout, this panics if it is polled after its end.
        let mut race = std::pin::pin!(race(2, begin, |_| async {}));
        let mut poll = || race.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(poll().is_pending());
        assert!(poll().is_pending(), "the time of the last attempt is over");
        ended[1].set(Some(Err(1)));
        assert!(poll().is_pending());
        ended[0].set(Some(Err(0)));
        assert_eq!(poll(), Poll::Ready(Err(0)));
    }
}
