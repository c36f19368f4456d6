//! Responses whose first blocks were sent.

use std::collections::VecDeque;

use coapace_control::Instant;
use coapace_proto::block::Bounds;

use crate::Response;
use crate::address::Remote;

/// Large responses, the oldest first. They are kept so that all blocks come from one call of the handler, and a POST is
/// carried out once. A notification is kept for all observers.
#[derive(Debug)]
pub(super) struct Kept {
    bounds: Bounds,
    responses: VecDeque<LargeResponse>,
    bytes: usize,
}

#[derive(Debug)]
struct LargeResponse {
    /// The client, or `None` for all observers.
    to: Option<Remote>,
    operation: u64,
    since: Instant,
    response: Response,
}

impl Kept {
    pub(super) const fn new(bounds: Bounds) -> Self {
        Self { bounds, responses: VecDeque::new(), bytes: 0 }
    }

    /// Keeps a response, in place of an earlier one to the same request. A [part](Response::part) of a representation is not
    /// kept, because its handler is called for every block.
    pub(super) fn put(&mut self, now: Instant, to: Option<Remote>, operation: u64, response: Response) {
        self.take(to, operation);
        if !response.representation().is_whole() {
            return;
        }
        let Bounds { max_bodies, max_bytes, patience, .. } = self.bounds;
        let bytes = response.payload.len();
        while let Some(oldest) = self.responses.front()
            && (now.since(oldest.since) > patience
                || self.responses.len() >= max_bodies
                || self.bytes + bytes > max_bytes)
        {
            self.bytes -= oldest.response.payload.len();
            self.responses.pop_front();
        }
        if max_bodies > 0 && bytes <= max_bytes {
            self.bytes += bytes;
            self.responses.push_back(LargeResponse { to, operation, since: now, response });
        }
    }

    /// Returns the kept response to a request: that of this client, or a notification to all observers.
    pub(super) fn get(&self, now: Instant, to: Remote, operation: u64) -> Option<Response> {
        let own = self.place(Some(to), operation).or_else(|| self.place(None, operation));
        let one = self.responses.get(own?)?;
        (now.since(one.since) <= self.bounds.patience).then(|| one.response.clone())
    }

    fn place(&self, to: Option<Remote>, operation: u64) -> Option<usize> {
        self.responses.iter().position(|one| one.to == to && one.operation == operation)
    }

    /// Removes a response, whose last block was sent.
    pub(super) fn take(&mut self, to: Option<Remote>, operation: u64) {
        if let Some(one) = self.place(to, operation).and_then(|place| self.responses.remove(place)) {
            self.bytes -= one.response.payload.len();
        }
    }

    /// Lets a response be the first to make room for others, because its last block was sent. A client that asks for
    /// several blocks at once may not have those before the last.
    pub(super) fn let_go(&mut self, to: Option<Remote>, operation: u64) {
        if let Some(one) = self.place(to, operation).and_then(|place| self.responses.remove(place)) {
            self.responses.push_front(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coapace_control::Duration;

    fn peer(port: u16) -> Remote {
        Remote::new(std::net::Ipv6Addr::LOCALHOST, port, 0)
    }

    #[test]
    fn a_response_is_kept_for_its_client_and_a_while_and_replaced_by_the_next() {
        let bounds = Bounds { patience: Duration::from_secs(10), ..Bounds::default() };
        let mut kept = Kept::new(bounds);
        let at = Instant::from_secs;
        kept.put(at(0), Some(peer(1)), 7, Response::content("a"));
        kept.put(at(5), Some(peer(1)), 7, Response::content("bb"));
        assert_eq!(kept.get(at(15), peer(1), 7).unwrap().text(), "bb");
        assert!(kept.get(at(16), peer(1), 7).is_none(), "too old");
        assert!(kept.get(at(5), peer(2), 7).is_none() && kept.get(at(5), peer(1), 8).is_none());
        assert_eq!(kept.bytes, 2);
    }

    #[test]
    fn what_was_published_is_for_all_who_have_no_blocks_of_another() {
        let mut kept = Kept::new(Bounds::default());
        let text =
            |kept: &Kept, port| kept.get(Instant::ZERO, peer(port), 7).map(|it| it.text().into_owned());
        kept.put(Instant::ZERO, Some(peer(1)), 7, Response::content("own"));
        kept.put(Instant::ZERO, None, 7, Response::content("all"));
        assert_eq!((text(&kept, 1).as_deref(), text(&kept, 2).as_deref()), (Some("own"), Some("all")));
        kept.take(Some(peer(1)), 7);
        assert_eq!(text(&kept, 1).as_deref(), Some("all"));
    }

    #[test]
    fn the_oldest_leave_for_what_has_no_room_and_what_never_had_is_not_kept() {
        let mut kept = Kept::new(Bounds { max_bodies: 3, max_bytes: 10, ..Bounds::default() });
        let put = |kept: &mut Kept, port, len| {
            kept.put(Instant::ZERO, Some(peer(port)), 0, Response::content(vec![0; len]));
        };
        let there = |kept: &Kept, port| kept.get(Instant::ZERO, peer(port), 0).is_some();
        (1..=4).for_each(|port| put(&mut kept, port, 2));
        assert!(!there(&kept, 1) && there(&kept, 2));
        kept.let_go(Some(peer(4)), 0);
        put(&mut kept, 5, 5);
        assert!(!there(&kept, 4) && there(&kept, 2) && there(&kept, 3) && there(&kept, 5));
        put(&mut kept, 4, 8);
        assert!(!there(&kept, 3) && !there(&kept, 5) && there(&kept, 4));
        put(&mut kept, 6, 11);
        assert!(!there(&kept, 6));
        assert_eq!(kept.bytes, kept.responses.iter().map(|one| one.response.payload.len()).sum());
    }
}
