//! Rows and columns.
//!
//! Betzler 2015 has grids of 6×6 and 7×7, Rathod 2022 of 6×6 and 3×3. Rathod says of the 3×3 grid that the border
//! router is in the centre, the server in a corner, and that the other 7 nodes are clients. Chosen: larger grids have
//! the same roles at the same places, and the secondary sink in the opposite corner. If no node is in the centre, the
//! router is south-east of it.

use super::{Shape, Topology, TopologyError, at, sinks};
use crate::Layout;

pub(super) const TOPOLOGY: Topology = Topology {
    name: "grid",
    summary: "rows and columns; sinks in opposite corners, the border router in the centre",
    columns: Some("columns of the grid; as many as rows if it is not said"),
    build,
};

fn build(shape: &Shape) -> Result<Layout, TopologyError> {
    let (nodes, root) = (shape.nodes, shape.nodes.isqrt());
    let columns = match shape.columns {
        Some(columns) if columns >= 2 && nodes.is_multiple_of(columns) && nodes / columns >= 2 => columns,
        None if root * root == nodes => root,
        Some(columns) => {
            return Err(TopologyError(format!(
                "a grid needs 2 rows or more in each of 2 columns or more, not {nodes} nodes in {columns} columns"
            )));
        }
        None => {
            return Err(TopologyError(format!(
                "a grid needs a number of columns, or a square number of nodes, not {nodes}"
            )));
        }
    };
    let rows = nodes / columns;
    Ok(Layout {
        places: (0..nodes)
            .map(|i| at(shape.spacing_m, i64::from(i % columns), i64::from(i / columns)))
            .collect(),
        // Rounded down from 0: without a node in the centre, the one south-east of it.
        root: rows / 2 * columns + columns / 2,
        sinks: sinks(nodes, 0, nodes - 1),
    })
}
