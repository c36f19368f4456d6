//! Work on several threads, which can be interrupted at any time.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// The longest time between two checks for an interruption.
const PATIENCE: Duration = Duration::from_millis(20);

/// Computes the pieces 0 to `count` - 1 on `jobs` threads (0: one for each core), and passes each result to `take` in
/// this thread. Ends when all pieces are made, when `stop` is true, or when `take` returns `Break`. Pieces that are
/// still running then are abandoned. If no thread can be started, this thread makes the pieces.
///
/// # Errors
/// Returns the panic of a piece.
pub fn make_all<T: Send + 'static>(
    count: usize,
    jobs: usize,
    stop: &AtomicBool,
    make: impl Fn(usize) -> T + Send + Sync + 'static,
    take: &mut dyn FnMut(T) -> ControlFlow<()>,
) -> thread::Result<()> {
    let taken = Arc::new(AtomicUsize::new(0));
    let next = {
        let taken = taken.clone();
        Arc::new(move || {
            // The counter alone decides who makes a piece, and nothing else is shared, so no ordering is needed.
            Some(taken.fetch_add(1, Ordering::Relaxed)).filter(|piece| *piece < count).map(&make)
        })
    };
    let (sender, pieces) = channel();
    let jobs = if jobs == 0 { thread::available_parallelism().map_or(1, usize::from) } else { jobs };
    let threads: Vec<_> = (0..jobs.min(count))
        .filter_map(|_| {
            let (next, sender) = (next.clone(), sender.clone());
            let work = move || {
                // The receiver is gone after an interruption.
                while let Some(piece) = next() {
                    if sender.send(piece).is_err() {
                        return;
                    }
                }
            };
            thread::Builder::new().spawn(work).ok()
        })
        .collect();
    // Only the threads keep senders now: the channel closes when the last thread ends.
    drop(sender);
    while !stop.load(Ordering::Relaxed) {
        // A wait of limited length, so that an interruption is seen even while all pieces take long.
        let piece = if threads.is_empty() {
            next().ok_or(RecvTimeoutError::Disconnected)
        } else {
            pieces.recv_timeout(PATIENCE)
        };
        match piece {
            Ok(piece) => {
                if take(piece).is_break() {
                    break;
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                // All pieces are made, or a thread has panicked. Joining shows which.
                return threads.into_iter().try_for_each(thread::JoinHandle::join);
            }
        }
    }
    // The threads are not joined here: each ends after its present piece, because no further piece is left.
    taken.store(count, Ordering::Relaxed);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the pieces that `take` got, in ascending order, and whether none panicked.
    fn taken(count: usize, jobs: usize, most: usize) -> (Vec<usize>, bool) {
        let mut all = Vec::new();
        let made = make_all(
            count,
            jobs,
            &AtomicBool::new(false),
            |piece| {
                assert_ne!(piece, 77, "a piece that panics");
                piece
            },
            &mut |piece| {
                all.push(piece);
                if all.len() == most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        );
        all.sort_unstable();
        (all, made.is_ok())
    }

    #[test]
    fn every_piece_of_work_is_done_once_on_any_number_of_threads() {
        for jobs in [0, 1, 2, 100] {
            assert_eq!(taken(50, jobs, usize::MAX), ((0..50).collect(), true));
        }
        assert_eq!(taken(0, 2, usize::MAX), (Vec::new(), true));
    }

    #[test]
    fn a_panic_in_one_piece_of_work_is_returned_and_does_not_stop_the_others() {
        let (pieces, is_fine) = taken(100, 2, usize::MAX);
        assert!(!is_fine);
        assert_eq!(pieces.len(), 99);
    }

    #[test]
    fn the_receiver_of_results_can_stop_the_work() {
        assert_eq!(taken(1_000_000, 2, 3).0.len(), 3);
    }

    #[test]
    fn no_piece_of_work_starts_after_an_interruption() {
        let made =
            make_all(3, 1, &AtomicBool::new(true), |piece| piece, &mut |_| panic!("no piece is taken"));
        assert!(made.is_ok());
    }
}
