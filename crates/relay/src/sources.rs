//! The clients that have a port towards the server.

use std::collections::HashMap;
use std::net::SocketAddr;

use coapace_control::Instant;

/// A bounded table of sources, which are the clients with a port towards the server. If it is full, the source that was
/// idle for longest is dropped.
#[derive(Debug)]
pub(crate) struct RelaySources {
    known: HashMap<SocketAddr, RelaySource>,
    /// The number of unverified sources.
    strangers: usize,
    bound: usize,
    /// Dropped sources whose ports are still open.
    leaving: Vec<SocketAddr>,
    /// The number of sources that were ever admitted.
    pub(crate) met: u64,
    /// The number of sources that were dropped so that another could take their port.
    pub(crate) closed: u64,
}

/// A client with a port towards the server.
#[derive(Clone, Copy, Debug)]
struct RelaySource {
    /// The number of its open requests (lines), in both directions.
    lines: u32,
    /// The time of its last datagram.
    heard: Instant,
    /// True while its address is unverified.
    stranger: bool,
}

impl RelaySources {
    pub(crate) fn new(bound: u32) -> Self {
        let bound = bound.max(1) as usize;
        Self { known: HashMap::new(), strangers: 0, bound, leaving: Vec::new(), met: 0, closed: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    pub(crate) fn has(&self, source: SocketAddr) -> bool {
        self.known.contains_key(&source)
    }

    pub(crate) fn set_bound(&mut self, bound: u32) {
        self.bound = bound.max(1) as usize;
        // Sources with lines stay until the last of these ends, so the table may be larger than its bound for a while.
        while self.known.len() > self.bound && self.make_room(false) {}
    }

    /// Admits a source from which a datagram arrived. Returns false if the table is full. Unverified sources may use three
    /// quarters of the table.
    pub(crate) fn admit(&mut self, now: Instant, source: SocketAddr, stranger: bool) -> bool {
        if let Some(known) = self.known.get_mut(&source) {
            known.heard = now;
            self.strangers -= usize::from(known.stranger && !stranger);
            // A source that was verified once keeps its place among the verified ones.
            known.stranger &= stranger;
            return true;
        }
        let too_many = stranger && self.strangers >= self.bound - self.bound / 4;
        if (too_many || self.known.len() >= self.bound) && !self.make_room(too_many) {
            return false;
        }
        self.met += 1;
        self.strangers += usize::from(stranger);
        // The source is back before its port was closed, and keeps the port.
        self.leaving.retain(|&leaving| leaving != source);
        self.known.insert(source, RelaySource { lines: 0, heard: now, stranger });
        true
    }

    /// Returns the number of lines of a source.
    pub(crate) fn lines(&self, source: SocketAddr) -> u32 {
        self.known.get(&source).map_or(0, |known| known.lines)
    }

    /// Counts a new line of a source. A source with lines is not dropped.
    pub(crate) fn begin(&mut self, source: SocketAddr) {
        if let Some(known) = self.known.get_mut(&source) {
            known.lines += 1;
        }
    }

    /// Subtracts a line of a source, because the line has ended.
    pub(crate) fn end(&mut self, source: SocketAddr) {
        if let Some(known) = self.known.get_mut(&source) {
            known.lines = known.lines.saturating_sub(1);
            if known.lines == 0 && self.known.len() > self.bound {
                self.make_room(false);
            }
        }
    }

    pub(crate) fn poll_closed(&mut self) -> Option<SocketAddr> {
        self.leaving.pop()
    }

    /// Removes the source that was idle for longest: an unverified one first, and only an unverified one if `of_strangers`.
    /// Returns false if no such source is idle.
    fn make_room(&mut self, of_strangers: bool) -> bool {
        let idle =
            self.known.iter().filter(|(_, known)| known.lines == 0 && (known.stranger || !of_strangers));
        // The address decides between equals, so that the choice does not depend on the order of the table.
        let oldest = idle.min_by_key(|(source, known)| (!known.stranger, known.heard, **source));
        let Some((&oldest, &RelaySource { stranger, .. })) = oldest else { return false };
        self.known.remove(&oldest);
        self.strangers -= usize::from(stranger);
        self.leaving.push(oldest);
        self.closed += 1;
        true
    }
}
