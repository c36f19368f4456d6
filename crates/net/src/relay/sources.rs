//! The clients that have a port towards the server.

use std::collections::HashMap;
use std::net::SocketAddr;

use coapace_control::Instant;

/// A bounded table of sources. If it is full, the source that was idle for longest makes room.
#[derive(Debug)]
pub(super) struct RelaySources {
    known: HashMap<SocketAddr, RelaySource>,
    /// The number of sources that are strangers.
    strangers: usize,
    bound: usize,
    /// Sources that have left and whose ports are still open.
    leaving: Vec<SocketAddr>,
    /// The number of sources that were ever admitted.
    pub(super) met: u64,
    /// The number of sources that have left for others.
    pub(super) closed: u64,
}

/// A source.
#[derive(Clone, Copy, Debug)]
struct RelaySource {
    /// The number of its lines, in both directions.
    lines: u32,
    /// The moment at which it was last heard.
    heard: Instant,
    /// True while nobody has verified its address.
    stranger: bool,
}

impl RelaySources {
    pub(super) fn new(bound: u32) -> Self {
        let bound = bound.max(1) as usize;
        Self { known: HashMap::new(), strangers: 0, bound, leaving: Vec::new(), met: 0, closed: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    pub(super) fn has(&self, source: SocketAddr) -> bool {
        self.known.contains_key(&source)
    }

    pub(super) fn set_bound(&mut self, bound: u32) {
        self.bound = bound.max(1) as usize;
        while self.known.len() > self.bound && self.make_room(false) {}
    }

    /// Admits a source that was just heard. Returns false if the table has no room. Strangers may have three quarters of the table.
    pub(super) fn admit(&mut self, now: Instant, source: SocketAddr, stranger: bool) -> bool {
        if let Some(known) = self.known.get_mut(&source) {
            known.heard = now;
            self.strangers -= usize::from(known.stranger && !stranger);
            known.stranger &= stranger;
            return true;
        }
        let too_many = stranger && self.strangers >= self.bound - self.bound / 4;
        if (too_many || self.known.len() >= self.bound) && !self.make_room(too_many) {
            return false;
        }
        self.met += 1;
        self.strangers += usize::from(stranger);
        self.leaving.retain(|&leaving| leaving != source);
        self.known.insert(source, RelaySource { lines: 0, heard: now, stranger });
        true
    }

    /// Returns the number of lines of a source.
    pub(super) fn lines(&self, source: SocketAddr) -> u32 {
        self.known.get(&source).map_or(0, |known| known.lines)
    }

    /// Counts a line that begins. A source with lines stays.
    pub(super) fn begin(&mut self, source: SocketAddr) {
        if let Some(known) = self.known.get_mut(&source) {
            known.lines += 1;
        }
    }

    /// Counts a line that has ended.
    pub(super) fn end(&mut self, source: SocketAddr) {
        if let Some(known) = self.known.get_mut(&source) {
            known.lines = known.lines.saturating_sub(1);
        }
    }

    pub(super) fn poll_closed(&mut self) -> Option<SocketAddr> {
        self.leaving.pop()
    }

    /// Takes out the source that was idle for longest: a stranger first, and nothing but a stranger if `of_strangers`. Returns
    /// false if no such source is idle.
    fn make_room(&mut self, of_strangers: bool) -> bool {
        let idle =
            self.known.iter().filter(|(_, known)| known.lines == 0 && (known.stranger || !of_strangers));
        let oldest = idle.min_by_key(|(source, known)| (!known.stranger, known.heard, **source));
        let Some((&oldest, &RelaySource { stranger, .. })) = oldest else { return false };
        self.known.remove(&oldest);
        self.strangers -= usize::from(stranger);
        self.leaving.push(oldest);
        self.closed += 1;
        true
    }
}
