//! The rate of each client's requests, which a server may limit (RFC 7252 §4.7, RFC 8516).

use std::hash::{BuildHasher, RandomState};

use coapace_control::{Duration, Instant};

use crate::address::Remote;

/// The number of places among which the hash of an address chooses.
const WAYS: usize = 8;

/// The time over which a client may save up requests.
const BURST: Duration = Duration::from_secs(1);

/// The clients that have asked lately, in a table whose size never changes. Each has a moment at which it will have paid for its
/// requests (the generic cell rate algorithm). A client whose moment has passed is as good as unknown, so it leaves first.
#[derive(Debug)]
pub(crate) struct Rates {
    paid: Vec<Option<(Remote, Instant)>>,
    sets: usize,
    keys: RandomState,
    /// The time that pays for one request.
    interval: Duration,
}

impl Rates {
    /// Creates a table of `peers` clients that may make `rate` requests a second each. It takes its memory with the first
    /// request.
    pub(crate) fn new(rate: u32, peers: u32) -> Self {
        let sets = (2 * peers as usize).div_ceil(WAYS).max(1);
        let interval = Duration::from_micros(1_000_000 / u64::from(rate.max(1)));
        Self { paid: Vec::new(), sets, keys: RandomState::default(), interval }
    }

    /// Takes a request. If the client asks too fast, returns how many seconds it has to wait. A refused request costs nothing.
    pub(crate) fn refuses(&mut self, now: Instant, from: Remote) -> Option<u32> {
        if self.paid.is_empty() {
            self.paid.resize(self.sets * WAYS, None);
        }
        let interval = self.interval;
        let paid = self.place_of(from)?;
        let known = paid.filter(|(remote, _)| *remote == from).map_or(now, |(_, at)| at.max(now));
        let debt = known.since(now) + interval;
        // A client that asks less often than once in `BURST` saves up one request.
        let allowed = BURST.max(interval);
        if debt > allowed {
            let wait = Duration::from_micros(debt.as_micros() - allowed.as_micros());
            return Some(u32::try_from(wait.as_micros().div_ceil(1_000_000)).unwrap_or(u32::MAX).max(1));
        }
        *paid = Some((from, known + interval));
        None
    }

    /// Returns the place of a client, or the one that it may take.
    fn place_of(&mut self, from: Remote) -> Option<&mut Option<(Remote, Instant)>> {
        let set = (self.keys.hash_one(from) % self.sets as u64) as usize;
        let set = self.paid.get_mut(set * WAYS..)?.get_mut(..WAYS)?;
        let rank = |(remote, at)| if remote == from { (0, at) } else { (1, at) };
        set.iter_mut().min_by_key(|place| place.map_or((1, Instant::ZERO), rank))
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn client(port: u16) -> Remote {
        Remote::new(Ipv4Addr::LOCALHOST.to_ipv6_mapped(), port, 0)
    }

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    #[test]
    fn a_client_may_ask_at_its_rate_for_ever_and_a_second_worth_of_it_at_once() {
        let mut rates = Rates::new(10, 100);
        assert!((0..1_000).all(|turn| rates.refuses(at(100 * turn), client(1)).is_none()));
        let asked = (0..20).filter(|_| rates.refuses(at(200_000), client(1)).is_none()).count();
        assert_eq!(asked, 10);
        assert_eq!(rates.refuses(at(200_000), client(1)), Some(1));
        assert_eq!(rates.refuses(at(200_100), client(1)), None, "what is refused costs nothing");
    }

    #[test]
    fn one_client_does_not_slow_another() {
        let mut rates = Rates::new(1, 100);
        assert_eq!(rates.refuses(at(0), client(1)), None);
        assert_eq!(rates.refuses(at(0), client(1)), Some(1));
        assert_eq!(rates.refuses(at(0), client(2)), None);
    }

    #[test]
    fn a_flood_of_clients_takes_no_more_memory() {
        let mut rates = Rates::new(5, 1_000);
        for port in 1..60_000 {
            assert_eq!(rates.refuses(at(0), client(port)), None);
        }
        assert_eq!(rates.paid.capacity(), 2_000);
    }
}
