//! Work on many items by all cores.

use std::io;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

/// Calls `work` with each item, and returns the results in the sequence of the items. Each core takes neighbouring
/// items.
///
/// # Errors
/// Returns the error of the first item that has one.
pub(super) fn each<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> io::Result<R> + Sync,
) -> io::Result<Vec<R>> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let size = items.len().div_ceil(cores).max(1);
    let work = &work;
    thread::scope(|scope| {
        // Called by their paths, because the type of `piece` is not known here yet.
        let spawn = |piece| scope.spawn(move || Iterator::map(<[T]>::iter(piece), work).collect::<Vec<_>>());
        let threads: Vec<_> = items.chunks(size).map(spawn).collect();
        threads
            .into_iter()
            // Joined in the order of the items, so the first error is the error of the first item that has one.
            .flat_map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_work_returns_results_in_the_sequence_of_its_items() {
        let items: Vec<u32> = (0..1000).collect();
        let doubled = each(&items, |item| Ok(item * 2)).unwrap();
        assert_eq!(doubled, items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert!(each(&[] as &[u32], |item| Ok(*item)).unwrap().is_empty());
    }
}
