//! Responses whose first blocks were sent.

use std::collections::VecDeque;

use coapace_control::{Duration, Instant};
use coapace_proto::block::Bounds;

use crate::Response;
use crate::address::Remote;

/// Large responses, the oldest first. They are stored so that all blocks come from one call of the handler, and a POST is
/// executed once. A notification is stored for all observers.
#[derive(Debug)]
pub(super) struct LargeResponses {
    bounds: Bounds,
    responses: VecDeque<LargeResponse>,
    bytes: usize,
}

#[derive(Debug)]
struct LargeResponse {
    /// The client, or `None` for all observers.
    to: Option<Remote>,
    operation: u64,
    /// The time of the last block, to within [`TOUCHED`].
    since: Instant,
    /// True if the response's last block was sent. A later notification then has precedence over it.
    done: bool,
    response: Response,
}

/// If a stored response is older than this, a request for one of its blocks makes it the youngest again.
const TOUCHED: Duration = Duration::from_secs(1);

impl LargeResponses {
    pub(super) const fn new(bounds: Bounds) -> Self {
        Self { bounds, responses: VecDeque::new(), bytes: 0 }
    }

    /// Stores a response, and replaces an earlier one to the same request. A [part](Response::part) of a representation is not
    /// stored, because its handler is called for every block.
    pub(super) fn put(&mut self, now: Instant, to: Option<Remote>, operation: u64, response: Response) {
        // Blocks of an earlier response and of this one must not be mixed.
        self.take(to, operation);
        if !response.representation().is_whole() {
            return;
        }
        let Bounds { max_bodies, max_bytes, patience, .. } = self.bounds;
        let bytes = response.payload.len();
        // Without a stored response, the handler of a GET is called for each block, and other methods get 4.08.
        if max_bodies == 0 || bytes > max_bytes {
            return;
        }
        // The front was used least recently, or its last block was sent.
        while let Some(oldest) = self.responses.front()
            && (now.since(oldest.since) > patience
                || self.responses.len() >= max_bodies
                || self.bytes + bytes > max_bytes)
        {
            self.bytes -= oldest.response.payload.len();
            self.responses.pop_front();
        }
        self.bytes += bytes;
        self.responses.push_back(LargeResponse { to, operation, since: now, done: false, response });
    }

    /// Returns the stored response to a request: one to this client, or a notification to all observers. Returns `None`
    /// if neither is stored, or if it is too old.
    pub(super) fn get(&mut self, now: Instant, to: Remote, operation: u64) -> Option<Response> {
        let own = self.place(Some(to), operation);
        let is_done = |place: &usize| self.responses.get(*place).is_some_and(|one| one.done);
        // A client that still lacks blocks of its own response asks for them, not for blocks of a notification.
        let published = own.is_none_or(|own| is_done(&own)).then(|| self.place(None, operation)).flatten();
        let place = published.or(own)?;
        let one = self.responses.get(place)?;
        let (age, response) = (now.since(one.since), one.response.clone());
        // Nothing is removed here: `put` removes whatever is too old.
        if age > self.bounds.patience {
            return None;
        }
        // Within a second the order does not change, so that a fast transfer moves nothing.
        if age > TOUCHED && !one.done {
            let one = self.responses.remove(place)?;
            self.responses.push_back(LargeResponse { since: now, ..one });
        }
        Some(response)
    }

    fn place(&self, to: Option<Remote>, operation: u64) -> Option<usize> {
        self.responses.iter().position(|one| one.to == to && one.operation == operation)
    }

    /// Removes the stored response to a request, if there is one.
    pub(super) fn take(&mut self, to: Option<Remote>, operation: u64) {
        if let Some(one) = self.place(to, operation).and_then(|place| self.responses.remove(place)) {
            self.bytes -= one.response.payload.len();
        }
    }

    /// Makes a response the first to be dropped, because its last block was sent. It is still stored, because a client that
    /// requests several blocks at once may lack earlier blocks.
    pub(super) fn let_go(&mut self, to: Option<Remote>, operation: u64) {
        if let Some(one) = self.place(to, operation).and_then(|place| self.responses.remove(place)) {
            self.responses.push_front(LargeResponse { done: true, ..one });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(port: u16) -> Remote {
        Remote::new(std::net::Ipv6Addr::LOCALHOST, port, 0)
    }

    #[test]
    fn a_large_response_is_stored_for_its_client_for_a_time_or_until_the_next() {
        let bounds = Bounds { patience: Duration::from_secs(10), ..Bounds::default() };
        let mut kept = LargeResponses::new(bounds);
        let at = Instant::from_secs;
        kept.put(at(0), Some(peer(1)), 7, Response::content("a"));
        kept.put(at(5), Some(peer(1)), 7, Response::content("bb"));
        assert_eq!(kept.get(at(15), peer(1), 7).unwrap().text(), "bb");
        assert_eq!(kept.get(at(25), peer(1), 7).unwrap().text(), "bb", "since its last block");
        assert!(kept.get(at(36), peer(1), 7).is_none(), "too old");
        assert!(kept.get(at(5), peer(2), 7).is_none() && kept.get(at(5), peer(1), 8).is_none());
        assert_eq!(kept.bytes, 2);
    }

    #[test]
    fn a_published_representation_serves_all_clients_without_blocks_of_an_older_one() {
        let mut kept = LargeResponses::new(Bounds::default());
        let text = |kept: &mut LargeResponses, port| {
            kept.get(Instant::ZERO, peer(port), 7).map(|it| it.text().into_owned())
        };
        kept.put(Instant::ZERO, Some(peer(1)), 7, Response::content("own"));
        kept.put(Instant::ZERO, None, 7, Response::content("all"));
        assert_eq!(text(&mut kept, 1).as_deref(), Some("own"));
        assert_eq!(text(&mut kept, 2).as_deref(), Some("all"));
        kept.let_go(Some(peer(1)), 7);
        assert_eq!(text(&mut kept, 1).as_deref(), Some("all"), "its own is over");
        kept.take(Some(peer(1)), 7);
        assert_eq!(text(&mut kept, 1).as_deref(), Some("all"));
    }

    #[test]
    fn the_oldest_stored_responses_are_dropped_for_new_ones_and_oversized_ones_are_not_stored() {
        let mut kept = LargeResponses::new(Bounds { max_bodies: 3, max_bytes: 10, ..Bounds::default() });
        let put = |kept: &mut LargeResponses, port, len| {
            kept.put(Instant::ZERO, Some(peer(port)), 0, Response::content(vec![0; len]));
        };
        let there = |kept: &mut LargeResponses, port| kept.get(Instant::ZERO, peer(port), 0).is_some();
        (1..=4).for_each(|port| put(&mut kept, port, 2));
        assert!(!there(&mut kept, 1) && there(&mut kept, 2));
        kept.let_go(Some(peer(4)), 0);
        put(&mut kept, 5, 5);
        assert!(!there(&mut kept, 4) && there(&mut kept, 2) && there(&mut kept, 3) && there(&mut kept, 5));
        put(&mut kept, 4, 8);
        assert!(!there(&mut kept, 3) && !there(&mut kept, 5) && there(&mut kept, 4));
        put(&mut kept, 6, 11);
        assert!(!there(&mut kept, 6) && there(&mut kept, 4), "it does not cost the others their places");
        assert_eq!(kept.bytes, kept.responses.iter().map(|one| one.response.payload.len()).sum());
    }
}
