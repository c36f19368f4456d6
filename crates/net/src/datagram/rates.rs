//! The rate limit of each client's requests (RFC 7252 §4.7, RFC 8516).

use std::hash::{BuildHasher, RandomState};

use coapace_control::{Duration, Instant};

use crate::address::Remote;

/// The number of table slots that one client may use. The hash of its address selects them.
const WAYS: usize = 8;

/// The longest time for which a client accumulates unused requests. It may then send the requests of this time at once.
const BURST: Duration = Duration::from_secs(1);

/// The clients with recent requests, in a table of constant size. Each has a time from which its next request is
/// allowed (the generic cell rate algorithm). A client whose time has passed needs no entry, so its entry is replaced
/// first.
#[derive(Debug)]
pub(crate) struct Rates {
    paid: Vec<Option<(Remote, Instant)>>,
    sets: usize,
    keys: RandomState,
    /// The interval between requests at the allowed rate.
    interval: Duration,
}

impl Rates {
    /// Creates a table of `peers` clients that may each make `rate` requests a second. The table allocates its memory
    /// at the first request.
    pub(crate) fn new(rate: u32, peers: u32) -> Self {
        // With twice as many slots as clients, few sets are full.
        let sets = (2 * peers as usize).div_ceil(WAYS).max(1);
        let interval = Duration::from_micros(1_000_000 / u64::from(rate.max(1)));
        Self { paid: Vec::new(), sets, keys: RandomState::default(), interval }
    }

    /// Counts a request of a client. If the client is too fast, returns how many seconds it must wait, and does not
    /// count the request. Otherwise returns `None`.
    pub(crate) fn refuses(&mut self, now: Instant, from: Remote) -> Option<u32> {
        if self.paid.is_empty() {
            self.paid.resize(self.sets * WAYS, None);
        }
        let interval = self.interval;
        let paid = self.place_of(from)?;
        // A place of another client is taken over, because that client has paid the longest ago.
        let known = paid.filter(|(remote, _)| *remote == from).map_or(now, |(_, at)| at.max(now));
        let debt = known.since(now) + interval;
        // A client that asks less often than once in `BURST` saves up one request.
        let allowed = BURST.max(interval);
        if debt > allowed {
            let wait = Duration::from_micros(debt.as_micros() - allowed.as_micros());
            // Rounded up, so that a client that waits for this time is not refused again.
            return Some(u32::try_from(wait.as_micros().div_ceil(1_000_000)).unwrap_or(u32::MAX).max(1));
        }
        *paid = Some((from, known + interval));
        None
    }

    /// Returns the slot of a client. If it has none, returns a free slot, or else the slot of the client that may make
    /// its next request soonest.
    fn place_of(&mut self, from: Remote) -> Option<&mut Option<(Remote, Instant)>> {
        let set = (self.keys.hash_one(from) % self.sets as u64) as usize;
        let set = self.paid.get_mut(set * WAYS..)?.get_mut(..WAYS)?;
        let rank = |(remote, at)| if remote == from { (0, at) } else { (1, at) };
        // The client's own slot is first, then a free one, then the one whose client may make its next request soonest.
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
    fn a_client_may_send_at_its_allowed_rate_with_bursts_of_one_second() {
        let mut rates = Rates::new(10, 100);
        assert!((0..1_000).all(|turn| rates.refuses(at(100 * turn), client(1)).is_none()));
        let asked = (0..20).filter(|_| rates.refuses(at(200_000), client(1)).is_none()).count();
        assert_eq!(asked, 10);
        assert_eq!(rates.refuses(at(200_000), client(1)), Some(1));
        assert_eq!(rates.refuses(at(200_100), client(1)), None, "a refused request costs nothing");
    }

    #[test]
    fn the_rate_limit_of_one_client_does_not_slow_another() {
        let mut rates = Rates::new(1, 100);
        assert_eq!(rates.refuses(at(0), client(1)), None);
        assert_eq!(rates.refuses(at(0), client(1)), Some(1));
        assert_eq!(rates.refuses(at(0), client(2)), None);
    }

    #[test]
    fn rate_limits_of_a_flood_of_clients_take_bounded_memory() {
        let mut rates = Rates::new(5, 1_000);
        for port in 1..60_000 {
            assert_eq!(rates.refuses(at(0), client(port)), None);
        }
        assert_eq!(rates.paid.capacity(), 2_000);
    }
}
