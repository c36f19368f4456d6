//! The ranks of mechanisms under the same conditions.

use std::ptr;

use crate::rank::Section;
use crate::results::{CellResult, Contest, Metric};

/// The rank of a mechanism among the mechanisms under the same conditions. Mechanisms that tie share a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The rank, from 1; it is one more than the number of better mechanisms.
    number: usize,
    /// Whether other mechanisms have the same rank.
    is_shared: bool,
    /// The number of different ranks before this one.
    pub(super) rank: usize,
}

impl Place {
    /// Returns the rank as text, with an equals sign if it is shared.
    pub(super) fn text(self) -> String {
        format!("{}{}", self.number, if self.is_shared { "=" } else { " " })
    }
}

/// Returns the rank of each of `cells`. The best mechanism and all that tie with it share the first rank. The best of
/// the remaining mechanisms and its ties have the next rank, and so on. With a single seed, no mechanism has a rank.
/// Mechanisms without random timeouts have no rank, because they win by lock-step. Mechanisms without a value in some
/// seed have no rank either.
pub(super) fn places(metric: Metric, cells: &[&CellResult]) -> Vec<Option<Place>> {
    let mut places = vec![None; cells.len()];
    // A single seed shows no spread, so no test could tell mechanisms apart.
    let Some(first) = cells.first().filter(|first| first.runs.len() > 1) else { return places };
    let competes = |cell: &&CellResult| {
        // Live runs and simulated runs are not compared by seed.
        cell.cell.mode == first.cell.mode && Section::of(&cell.cell.mechanism) != Section::Undithered
    };
    let mut others: Vec<&CellResult> = cells.iter().copied().filter(competes).collect();
    if others.len() < 2 {
        return places;
    }
    let (mut number, mut rank) = (1, 0);
    // Each round compares with the best mechanism that is left, so the tests of one place do not weigh on the next.
    while let Some(contest) = Contest::of(metric, others.iter().copied()) {
        let leaders: Vec<&CellResult> = contest.leaders().map(|leader| leader.result).collect();
        let leads = |cell: &CellResult| leaders.iter().any(|leader| ptr::eq(*leader, cell));
        for (place, cell) in places.iter_mut().zip(cells) {
            if leads(cell) {
                *place = Some(Place { number, is_shared: leaders.len() > 1, rank });
            }
        }
        // The best always leads, so this removes at least one, and the loop ends.
        others.retain(|cell| !leads(cell));
        // After three that share the first place comes the fourth, but the next colour.
        (number, rank) = (number + leaders.len(), rank + 1);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::contest::tests::result;

    #[test]
    fn tied_mechanisms_share_a_rank_and_mechanisms_without_random_timeouts_have_none() {
        let results = [
            result("default", 1, &[20.0, 21.0, 22.0]),
            result("linux-rto", 1, &[1.0, 2.0, 3.0]),
            result("cocoa", 1, &[10.0, 11.0, 12.0]),
            result("fasor", 1, &[10.1, 11.1, 12.3]),
        ];
        let cells: Vec<_> = results.iter().collect();
        let text = |place: Option<Place>| place.map(Place::text).unwrap_or_default();
        let texts: Vec<_> = places(Metric::MedianFct, &cells).into_iter().map(text).collect();
        assert_eq!(texts, ["3 ", "", "1=", "1="]);
        let one = [result("default", 1, &[20.0]), result("cocoa", 1, &[10.0])];
        assert_eq!(places(Metric::MedianFct, &one.iter().collect::<Vec<_>>()), [None, None]);
    }
}
