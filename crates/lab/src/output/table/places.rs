//! The places of mechanisms under the same conditions.

use std::ptr;

use crate::rank::Section;
use crate::results::{CellResult, Contest, Metric};

/// The place of a mechanism: the first, or the first three together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The number of the place, from 1; as many are before it.
    number: usize,
    /// Whether other mechanisms have the same place.
    is_shared: bool,
    /// The number of places before it.
    pub(super) rank: usize,
}

impl Place {
    /// Returns the number, with an equals sign if it is shared.
    pub(super) fn text(self) -> String {
        format!("{}{}", self.number, if self.is_shared { "=" } else { " " })
    }
}

/// Returns the place of each of `cells`. The best and all that tie with it share the first place; the
/// next one that of the best of the others, and so on. One seed tells nothing. Mechanisms without dither have no place, for they
/// win by lock-step, nor have those without a figure in some seed.
pub(super) fn places(metric: Metric, cells: &[&CellResult]) -> Vec<Option<Place>> {
    let mut places = vec![None; cells.len()];
    let Some(first) = cells.first().filter(|first| first.runs.len() > 1) else { return places };
    let competes = |cell: &&CellResult| {
        cell.cell.mode == first.cell.mode && Section::of(&cell.cell.mechanism) != Section::Undithered
    };
    let mut others: Vec<&CellResult> = cells.iter().copied().filter(competes).collect();
    if others.len() < 2 {
        return places;
    }
    let (mut number, mut rank) = (1, 0);
    while let Some(contest) = Contest::of(metric, others.iter().copied()) {
        let leaders: Vec<&CellResult> = contest.leaders().map(|leader| leader.result).collect();
        let leads = |cell: &CellResult| leaders.iter().any(|leader| ptr::eq(*leader, cell));
        for (place, cell) in places.iter_mut().zip(cells) {
            if leads(cell) {
                *place = Some(Place { number, is_shared: leaders.len() > 1, rank });
            }
        }
        others.retain(|cell| !leads(cell));
        (number, rank) = (number + leaders.len(), rank + 1);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::contest::tests::result;

    #[test]
    fn what_the_seeds_do_not_tell_apart_shares_a_place_and_lock_step_has_none() {
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
