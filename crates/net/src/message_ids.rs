//! Message IDs that an endpoint has used towards each of its peers.

use std::collections::VecDeque;

use coapace_control::{Duration, Instant};
use foldhash::{HashMap, HashMapExt};

use crate::address::Remote;

/// A sixteenth of all Message IDs.
const BLOCK: u32 = 65_536 / 16;

/// Blocks that are used within one EXCHANGE_LIFETIME. The endpoint itself lets messages wait after seven eighths of the IDs;
/// before that, one block is left for retransmissions that take an ID of their own, and for requests that had chosen this
/// endpoint already.
const BLOCKS: usize = 13;

/// Counts the messages that an endpoint begins towards its peers.
///
/// A Message ID must not come back to a peer within EXCHANGE_LIFETIME (RFC 7252 §4.4): a server that remembers it would take
/// the message for a copy. Message IDs of a peer are given out one after the other, so it is enough to know when each block of
/// them was used.
#[derive(Debug)]
pub(crate) struct MessageIds {
    block: u32,
    exchange_lifetime: Duration,
    max_peers: usize,
    peers: HashMap<Place, Used>,
}

/// Address and port of a peer.
type Place = (std::net::Ipv6Addr, u16);

#[derive(Debug)]
struct Used {
    /// Messages of the block that is being used.
    begun: u32,
    last: Instant,
    /// When the last message of each block before it was begun, the oldest first.
    blocks: VecDeque<Instant>,
}

impl MessageIds {
    pub(crate) fn new(exchange_lifetime: Duration, max_peers: usize) -> Self {
        Self { block: BLOCK, exchange_lifetime, max_peers: max_peers.max(1), peers: HashMap::new() }
    }

    /// Sets the messages of a block, for tests that cannot send tens of thousands.
    #[cfg(test)]
    pub(crate) fn of_blocks(&mut self, block: u32) {
        self.block = block;
    }

    /// Returns whether a message to this peer gets an ID that the peer has forgotten or never seen.
    pub(crate) fn are_free(&self, now: Instant, to: Remote) -> bool {
        let Some(used) = self.peers.get(&place(to)) else { return true };
        let full = used.begun == 0 && used.blocks.len() == BLOCKS;
        let oldest = used.blocks.front().filter(|_| full);
        oldest.is_none_or(|&oldest| now.since(oldest) > self.exchange_lifetime)
    }

    /// Counts a message to a peer.
    pub(crate) fn take(&mut self, now: Instant, to: Remote) {
        let place = place(to);
        if self.peers.len() >= self.max_peers && !self.peers.contains_key(&place) {
            self.forget(now);
        }
        let new = || Used { begun: 0, last: now, blocks: VecDeque::new() };
        let used = self.peers.entry(place).or_insert_with(new);
        used.begun += 1;
        used.last = now;
        if used.begun >= self.block {
            used.begun = 0;
            if used.blocks.len() == BLOCKS {
                used.blocks.pop_front();
            }
            used.blocks.push_back(now);
        }
    }

    /// Forgets peers whose IDs are all free again, and those that had few messages: they are far from the last ID.
    fn forget(&mut self, now: Instant) {
        let lifetime = self.exchange_lifetime;
        self.peers.retain(|_, used| !used.blocks.is_empty() && now.since(used.last) <= lifetime);
    }
}

fn place(to: Remote) -> Place {
    (to.ip(), to.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(port: u16) -> Remote {
        Remote::new(std::net::Ipv6Addr::LOCALHOST, port, 0)
    }

    #[test]
    fn no_id_comes_back_before_the_peer_has_forgotten_it() {
        let lifetime = Duration::from_secs(247);
        let mut ids = MessageIds::new(lifetime, 8);
        let at = |message: u64| Instant::from_millis(message);
        // One a millisecond: the IDs last for a minute.
        let mut message = 0;
        while ids.are_free(at(message), peer(1)) {
            ids.take(at(message), peer(1));
            message += 1;
        }
        assert_eq!(message, 53_248);
        assert!(ids.are_free(at(message), peer(2)), "another peer has others");
        // The first block was used up after 4,096 ms.
        assert!(!ids.are_free(at(4_095) + lifetime, peer(1)));
        assert!(ids.are_free(at(4_096) + lifetime, peer(1)));
    }

    #[test]
    fn a_message_every_six_milliseconds_goes_on_for_ever() {
        let mut ids = MessageIds::new(Duration::from_secs(247), 8);
        for message in 0..200_000 {
            let now = Instant::from_millis(message * 6);
            assert!(ids.are_free(now, peer(1)), "{message}");
            ids.take(now, peer(1));
        }
    }

    #[test]
    fn peers_with_few_messages_are_forgotten_where_there_is_no_room() {
        let mut ids = MessageIds::new(Duration::from_secs(247), 8);
        ids.of_blocks(1);
        ids.take(Instant::ZERO, peer(0));
        ids.of_blocks(2);
        (1..1_000).for_each(|port| ids.take(Instant::ZERO, peer(port)));
        assert!(ids.peers.len() <= 8 && ids.peers.contains_key(&place(peer(0))));
    }
}
