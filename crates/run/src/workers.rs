//! Work on several threads, which an interruption ends at once.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// The longest time without a look at an interruption.
const PATIENCE: Duration = Duration::from_millis(20);

/// Makes the pieces 0 to `count` - 1 on `jobs` threads (0: one for each core) and hands each to `take` in this thread, until all
/// are made, `stop` is true, or `take` breaks. Pieces that are not over then are abandoned. If no thread can be started, this
/// thread makes the pieces.
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
    drop(sender);
    while !stop.load(Ordering::Relaxed) {
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
                return threads.into_iter().try_for_each(thread::JoinHandle::join);
            }
        }
    }
    taken.store(count, Ordering::Relaxed);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the pieces that were taken, in ascending order, and whether none panicked.
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
    fn every_piece_is_made_once_on_any_number_of_threads() {
        for jobs in [0, 1, 2, 100] {
            assert_eq!(taken(50, jobs, usize::MAX), ((0..50).collect(), true));
        }
        assert_eq!(taken(0, 2, usize::MAX), (Vec::new(), true));
    }

    #[test]
    fn a_panic_leaves_the_other_pieces_and_is_told() {
        let (pieces, is_fine) = taken(100, 2, usize::MAX);
        assert!(!is_fine);
        assert_eq!(pieces.len(), 99);
    }

    #[test]
    fn the_receiver_of_the_pieces_can_end_the_work() {
        assert_eq!(taken(1_000_000, 2, 3).0.len(), 3);
    }

    #[test]
    fn nothing_is_made_after_an_interruption() {
        let made =
            make_all(3, 1, &AtomicBool::new(true), |piece| piece, &mut |_| panic!("no piece is taken"));
        assert!(made.is_ok());
    }
}
