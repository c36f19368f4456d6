//! Responses to groups, which wait for a moment of their own (RFC 7252 §8.2): else all members would answer at once.

use std::collections::BTreeMap;

use coapace_control::{Draw, Duration, Instant};
use coapace_proto::{Code, Kind, Message, Responder, group};

use crate::address::Remote;
use crate::hub::State;

/// The responses that wait.
#[derive(Debug)]
pub(crate) struct Leisure {
    span: Duration,
    bound: usize,
    /// By when they leave, and in the order in which they came.
    waiting: BTreeMap<(Instant, u64), Delayed>,
    count: u64,
}

#[derive(Debug)]
struct Delayed {
    responder: Responder<Remote>,
    code: Code,
    /// Options and payload.
    tail: Vec<u8>,
}

impl Leisure {
    pub(crate) const fn new(span: Duration, bound: usize) -> Self {
        Self { span, bound, waiting: BTreeMap::new(), count: 0 }
    }

    /// Keeps a response for its moment. Returns whether there was room.
    fn put(&mut self, now: Instant, draw: Draw, delayed: Delayed) -> bool {
        if self.waiting.len() >= self.bound {
            return false;
        }
        self.count += 1;
        self.waiting.insert((now + group::leisure(self.span, draw), self.count), delayed);
        true
    }

    /// When the next leaves.
    fn next(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|(&(at, _), _)| at)
    }

    /// One whose moment has come.
    fn take(&mut self, now: Instant) -> Option<Delayed> {
        let first = self.waiting.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

impl State {
    /// When there is something to do, without a datagram.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        [self.endpoint.poll_timeout(), self.answers.leisure.next()].into_iter().flatten().min()
    }

    /// Keeps the answer to a group, whose options and payload are in `scratch`, if it is worth sending.
    pub(crate) fn respond_at_leisure(&mut self, now: Instant, responder: Responder<Remote>, code: Code) {
        let message = Message { code, tail: &self.scratch, ..Message::empty(Kind::NonConfirmable, 0) };
        if !group::is_worth_sending(code, message.payload()) {
            return self.answers.note_answer(&responder, None, 0);
        }
        let (draw, tail) = (self.draw(), self.scratch.clone());
        if !self.answers.leisure.put(now, draw, Delayed { responder, code, tail }) {
            self.counters.group_responses_dropped += 1;
            self.answers.note_answer(&responder, None, 0);
        }
    }

    /// Queues the answers to groups whose moment has come.
    pub(crate) fn respond_after_leisure(&mut self, now: Instant) {
        while let Some(Delayed { responder, code, tail }) = self.answers.leisure.take(now) {
            self.respond_with(now, responder, code, &tail);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coapace_proto::{Config, Endpoint, Event, Setup};

    fn delayed() -> Delayed {
        let mechanism: coapace_control::Mechanism = "default".parse().unwrap();
        let setup = std::sync::Arc::new(Setup { controller: mechanism, config: Config::default() });
        let from = Remote::new(std::net::Ipv6Addr::LOCALHOST, 1, 0);
        let event = Endpoint::new(setup, 1).handle_group_datagram(Instant::ZERO, from, &[0x50, 1, 0, 1]).map(
            |event| {
                let Event::Request { responder, .. } = event else { panic!("{event:?}") };
                responder
            },
        );
        Delayed { responder: event.expect("a request"), code: Code(0x45), tail: Vec::new() }
    }

    #[test]
    fn each_waits_for_its_moment_and_what_finds_no_room_is_told() {
        let mut leisure = Leisure::new(Duration::from_secs(4), 2);
        let at = Instant::from_secs;
        assert!(leisure.put(at(10), Draw::from_bits(3 << 30), delayed()));
        assert!(leisure.put(at(11), Draw::ZERO, delayed()));
        assert!(!leisure.put(at(11), Draw::ZERO, delayed()), "it is full");
        assert_eq!(leisure.next(), Some(at(11)));
        assert!(leisure.take(at(10)).is_none());
        assert!(leisure.take(at(11)).is_some() && leisure.take(at(12)).is_none());
        assert_eq!(leisure.next(), Some(at(13)));
        assert!(leisure.take(at(13)).is_some() && leisure.next().is_none());
        assert!(leisure.put(at(14), Draw::ZERO, delayed()), "there is room again");
    }
}
