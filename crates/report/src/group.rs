//! Results that are compared with each other.

use coapace_lab::lists::grouped;
use coapace_lab::results::CellResult;
use coapace_lab::results::conditions::Conditions;

/// Cells that differ in their mechanism alone.
#[derive(Clone, Debug, Default)]
pub struct CellGroup {
    /// The conditions in which this group differs from the other groups; empty if there is only one group.
    pub title: String,
    /// A cell for each mechanism.
    pub cells: Vec<CellResult>,
}

impl CellGroup {
    /// Groups results by everything but the mechanism, in the sequence in which they first appear. The title of a group names
    /// the conditions in which it differs from the others.
    pub fn by_conditions(results: Vec<CellResult>) -> Vec<Self> {
        let conditions = Conditions::of(results.iter().map(|result| &result.cell));
        let groups = grouped(results, |a, b| a.cell.same_conditions(&b.cell));
        // No group is empty, and its cells share their conditions, so the first cell has them all.
        let titled = |cells: Vec<CellResult>| Self { title: conditions.describe(&cells[0].cell), cells };
        groups.into_iter().map(titled).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coapace_lab::results::Cell;

    #[test]
    fn results_under_the_same_conditions_form_one_group() {
        let result = |mechanism: &str, clients| CellResult {
            cell: Cell { mechanism: mechanism.into(), clients, workload: "random".into(), ..Cell::default() },
            ..CellResult::default()
        };
        let groups = CellGroup::by_conditions(vec![
            result("default", 1),
            result("default", 400),
            result("cocoa", 400),
            result("cocoa", 1),
        ]);
        let titles: Vec<_> = groups.iter().map(|group| (group.title.as_str(), group.cells.len())).collect();
        assert_eq!(titles, [("1 client", 2), ("400 clients", 2)]);
    }
}
