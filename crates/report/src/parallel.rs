//! Work on many items by all cores.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::thread;

/// Calls `work` with each item and returns the results in the order of the items. Each core takes neighbouring items.
pub(super) fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let size = items.len().div_ceil(cores).max(1);
    let work = &work;
    thread::scope(|scope| {
        let spawn = |piece| scope.spawn(move || Iterator::map(<[T]>::iter(piece), work).collect::<Vec<R>>());
        let threads: Vec<_> = items.chunks(size).map(spawn).collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u32> = (0..1000).collect();
        assert_eq!(each(&items, |item| item * 2), items.iter().map(|item| item * 2).collect::<Vec<_>>());
        assert!(each(&[] as &[u32], |item| *item).is_empty());
    }
}
