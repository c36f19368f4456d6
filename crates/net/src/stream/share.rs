//! A connection's share of a server's memory, for queued responses and observers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes counted for a response until the handler returns it: the size of the largest message.
pub(super) const ANSWER: usize = super::MAX_MESSAGE as usize;

/// The bytes of responses that every connection may queue, whatever other connections use: 32 KiB, and the largest
/// response. So a connection whose client reads can continue.
const OWN: usize = ANSWER + (32 << 10);

/// A connection may use 1/`PART` of the free pool, so that some of the pool is always left.
const PART: usize = 8;

/// The memory that all connections share, beyond the [`OWN`] of each.
#[derive(Debug)]
pub(crate) struct Pool {
    bytes: usize,
    drawn: AtomicUsize,
}

impl Pool {
    pub(crate) fn new(bytes: usize) -> Self {
        Self { bytes, drawn: AtomicUsize::new(0) }
    }
}

/// The memory used by one connection.
#[derive(Debug)]
pub(super) struct MemoryShare {
    pool: Arc<Pool>,
    answers: usize,
    observers: usize,
}

impl MemoryShare {
    pub(super) fn new(pool: Arc<Pool>) -> Self {
        Self { pool, answers: 0, observers: 0 }
    }

    /// Sets the bytes of responses: the queued ones, and [`ANSWER`] for each handler that waits.
    pub(super) fn set_answers(&mut self, bytes: usize) {
        self.change(bytes, self.observers);
    }

    /// Returns whether one more response fits.
    pub(super) fn has_room(&self) -> bool {
        self.admits(beyond_own(self.answers + ANSWER) + self.observers)
    }

    /// Reserves memory for an observer in this connection's share. Returns whether it fits; if not, reserves
    /// nothing.
    pub(super) fn observe(&mut self, bytes: usize) -> bool {
        let admitted = self.admits(self.drawn() + bytes);
        if admitted {
            self.change(self.answers, self.observers + bytes);
        }
        admitted
    }

    /// Frees the bytes of an observer.
    pub(super) fn forget(&mut self, bytes: usize) {
        self.change(self.answers, self.observers.saturating_sub(bytes));
    }

    fn drawn(&self) -> usize {
        beyond_own(self.answers) + self.observers
    }

    fn admits(&self, drawn: usize) -> bool {
        let own = self.drawn();
        // Other threads may draw in the meantime. A connection that gets a little too much does no harm.
        let others = self.pool.drawn.load(Ordering::Relaxed).saturating_sub(own);
        // A connection that needs no more than it has is always admitted.
        drawn <= own || drawn <= self.pool.bytes.saturating_sub(others) / PART
    }

    fn change(&mut self, answers: usize, observers: usize) {
        let before = self.drawn();
        (self.answers, self.observers) = (answers, observers);
        let after = self.drawn();
        if after > before {
            self.pool.drawn.fetch_add(after - before, Ordering::Relaxed);
        } else if after < before {
            self.pool.drawn.fetch_sub(before - after, Ordering::Relaxed);
        }
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.change(0, 0);
    }
}

fn beyond_own(answers: usize) -> usize {
    answers.saturating_sub(OWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets a connection take as many responses as it may; returns how many.
    fn fill(share: &mut MemoryShare) -> usize {
        let mut count = 0;
        while share.has_room() {
            count += 1;
            share.set_answers(count * ANSWER);
        }
        count
    }

    #[test]
    fn a_connection_may_use_an_eighth_of_the_free_memory_and_at_least_one_response() {
        let pool = Arc::new(Pool::new(64 * ANSWER));
        let mut shares: Vec<MemoryShare> = (0..200).map(|_| MemoryShare::new(pool.clone())).collect();
        let counts: Vec<usize> = shares.iter_mut().map(fill).collect();
        assert!(counts[0] == 9 && counts[1] < 9, "{counts:?}");
        assert!(counts.iter().all(|&count| count >= 1));
        assert!(pool.drawn.load(Ordering::Relaxed) <= pool.bytes);
        drop(shares);
        assert_eq!(pool.drawn.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn observers_leave_room_for_the_responses_of_their_connection() {
        let mut share = MemoryShare::new(Arc::new(Pool::new(8 << 10)));
        assert!(share.observe(1 << 10) && !share.observe(1 << 10), "an eighth of the pool");
        assert!(share.has_room());
        share.forget(1 << 10);
        assert!(share.observe(1 << 10));
    }
}
