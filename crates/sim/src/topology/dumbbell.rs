//! Two bells and a bar between them.
//!
//! Betzler 2015 and Rathod 2022 have 21 nodes, and do not give the sizes of the parts. Chosen: a bar of 3 nodes with the
//! border router in its middle, which leaves bells of 3×3. If the number of nodes is even, the bar has 4. A bell is filled
//! column by column away from the bar, each column from its middle to both ends. The sinks are the last nodes of the middle
//! rows, so that packets from the other bell cross the bar.

use super::{Shape, Topology, TopologyError, at, sinks};
use crate::Layout;

pub(super) const TOPOLOGY: Topology = Topology {
    name: "dumbbell",
    summary: "two bells and a bar between; a sink at each end, the border router in the middle",
    columns: Some("columns of a bell; if it is not said, about as many as rows"),
    build,
};

fn build(shape: &Shape) -> Result<Layout, TopologyError> {
    let nodes = shape.nodes;
    // The bar takes the odd node, so that both bells have the same size.
    let bar = 4 - nodes % 2;
    if nodes < bar + 2 {
        return Err(TopologyError(format!("a dumbbell needs 5 nodes or more, not {nodes}")));
    }
    let bell = (nodes - bar) / 2;
    let height = match shape.columns {
        Some(columns) if columns > bell => {
            return Err(TopologyError(format!(
                "a dumbbell of {nodes} nodes has {bell} nodes in each bell, too few for {columns} columns"
            )));
        }
        Some(columns) => bell.div_ceil(columns),
        // The least odd height with which a bell is not longer than high.
        None => (1..).step_by(2).find(|height| height * height >= bell).unwrap_or(bell),
    };
    // The nodes of the bar have the lowest numbers, and the nodes of the two bells follow.
    let (bell_first, bar_end) = (bar, i64::from(bar) - 1);
    let mut places: Vec<_> = (0..i64::from(bar)).map(|x| at(shape.spacing_m, x, 0)).collect();
    for (bar_edge, away) in [(bar_end, 1), (0, -1)] {
        places.extend((0..bell).map(|i| {
            let column = bar_edge + away * (1 + i64::from(i / height));
            at(shape.spacing_m, column, middle_out(i % height))
        }));
    }
    // A column begins with its middle, so this is the first node of the last column.
    let last_middle = (bell - 1) / height * height;
    Ok(Layout {
        places,
        root: bar / 2,
        sinks: sinks(nodes, bell_first + last_middle, bell_first + bell + last_middle),
    })
}

/// Returns item `i` of 0, 1, −1, 2, −2 …
fn middle_out(i: u32) -> i64 {
    let step = i64::from(i.div_ceil(2));
    if i % 2 == 1 { step } else { -step }
}
