//! Responses to group requests, which are delayed at random so that the members do not answer all at once (RFC 7252 §8.2).

use std::collections::BTreeMap;

use coapace_control::{Draw, Duration, Instant};
use coapace_proto::{Code, Responder, group};

use crate::address::Remote;

/// The delayed responses of a server to requests that came to a group.
#[derive(Debug)]
pub(crate) struct Leisure {
    span: Duration,
    bound: usize,
    /// The responses, sorted by sending time and then by arrival.
    waiting: BTreeMap<(Instant, u64), Delayed>,
    count: u64,
}

/// A delayed response.
#[derive(Debug)]
pub(crate) struct Delayed {
    pub(crate) responder: Responder<Remote>,
    pub(crate) code: Code,
    /// Options and payload of the response.
    pub(crate) tail: Vec<u8>,
}

impl Leisure {
    pub(crate) const fn new(span: Duration, bound: usize) -> Self {
        Self { span, bound, waiting: BTreeMap::new(), count: 0 }
    }

    /// Delays a response, or returns it if too many are delayed.
    pub(crate) fn put(&mut self, now: Instant, draw: Draw, delayed: Delayed) -> Result<(), Delayed> {
        if self.waiting.len() >= self.bound {
            return Err(delayed);
        }
        self.count += 1;
        // The number distinguishes responses of the same moment, which would replace each other otherwise.
        self.waiting.insert((now + group::leisure(self.span, draw), self.count), delayed);
        Ok(())
    }

    /// Returns when the next response is to be sent, or `None` if no response is delayed.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|(&(at, _), _)| at)
    }

    /// Takes a response whose delay has passed, if there is one.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Delayed> {
        let first = self.waiting.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coapace_proto::{Config, Endpoint, Event, Setup};

    fn delayed() -> Delayed {
        let mechanism: coapace_control::Mechanism = "default".parse().unwrap();
        let setup =
            std::sync::Arc::new(Setup { controller: mechanism, config: Config::default(), bulk: None });
        let from = Remote::new(std::net::Ipv6Addr::LOCALHOST, 1, 0);
        let event = Endpoint::new(setup, 1).handle_group_datagram(Instant::ZERO, from, &[0x50, 1, 0, 1]).map(
            |event| {
                let Event::Request { responder, .. } = event else { panic!("{event:?}") };
                responder
            },
        );
        Delayed { responder: event.expect("a request"), code: Code::CONTENT, tail: Vec::new() }
    }

    #[test]
    fn answers_to_a_group_wait_for_their_random_time_and_are_returned_if_the_queue_is_full() {
        let mut leisure = Leisure::new(Duration::from_secs(4), 2);
        let at = Instant::from_secs;
        leisure.put(at(10), Draw::from_bits(3 << 30), delayed()).expect("room");
        leisure.put(at(11), Draw::ZERO, delayed()).expect("room");
        leisure.put(at(11), Draw::ZERO, delayed()).expect_err("it is full");
        assert_eq!(leisure.next(), Some(at(11)));
        assert!(leisure.take(at(10)).is_none());
        assert!(leisure.take(at(11)).is_some() && leisure.take(at(12)).is_none());
        assert_eq!(leisure.next(), Some(at(13)));
        assert!(leisure.take(at(13)).is_some() && leisure.next().is_none());
        leisure.put(at(14), Draw::ZERO, delayed()).expect("room again");
    }
}
