//! The share of a connection in a server's memory, for queued answers and observers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that are counted for an answer until the handler returns it: as many as the largest message has.
pub(super) const ANSWER: usize = super::MAX_MESSAGE as usize;

/// The bytes of answers that every connection may have queued, whatever others have. There is always room for one answer
/// beside some that are queued, so a connection whose client reads goes on.
const OWN: usize = ANSWER + (32 << 10);

/// A connection may have one of so many parts of the free pool. So some of the pool is always left.
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

/// The memory that one connection uses.
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

    /// Sets the bytes of answers: those that are queued, and [`ANSWER`] for each handler that waits.
    pub(super) fn set_answers(&mut self, bytes: usize) {
        self.change(bytes, self.observers);
    }

    /// Returns whether there is room for one more answer.
    pub(super) fn has_room(&self) -> bool {
        self.admits(beyond_own(self.answers + ANSWER) + self.observers)
    }

    /// Takes the bytes of an observer. Returns whether there was room.
    pub(super) fn observe(&mut self, bytes: usize) -> bool {
        let admitted = self.admits(self.drawn() + bytes);
        if admitted {
            self.change(self.answers, self.observers + bytes);
        }
        admitted
    }

    /// Gives back the bytes of an observer.
    pub(super) fn forget(&mut self, bytes: usize) {
        self.change(self.answers, self.observers.saturating_sub(bytes));
    }

    fn drawn(&self) -> usize {
        beyond_own(self.answers) + self.observers
    }

    fn admits(&self, drawn: usize) -> bool {
        let own = self.drawn();
        let others = self.pool.drawn.load(Ordering::Relaxed).saturating_sub(own);
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

    /// Lets a connection take as many answers as it may; returns how many.
    fn fill(share: &mut MemoryShare) -> usize {
        let mut count = 0;
        while share.has_room() {
            count += 1;
            share.set_answers(count * ANSWER);
        }
        count
    }

    #[test]
    fn a_connection_has_an_eighth_of_what_is_left_and_one_answer_always() {
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
    fn observers_leave_a_connection_the_room_for_its_answers() {
        let mut share = MemoryShare::new(Arc::new(Pool::new(8 << 10)));
        assert!(share.observe(1 << 10) && !share.observe(1 << 10), "an eighth of the pool");
        assert!(share.has_room());
        share.forget(1 << 10);
        assert!(share.observe(1 << 10));
    }
}
