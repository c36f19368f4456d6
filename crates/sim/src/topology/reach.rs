//! The check that all nodes are connected.

use std::collections::BTreeMap;

use crate::Position;

/// Returns whether every node reaches every other over hops of at most `range_m` metres. The nodes are sorted into squares, so
/// a node is compared only with those near it.
pub fn connected(places: &[Position], range_m: f64) -> bool {
    if places.len() < 2 {
        return true;
    }
    // The squares are a little wider than the range, so that rounding puts no two nodes in reach two squares apart.
    let width = range_m * 1.001;
    let square = |place: Position| [(place.x / width).floor() as i64, (place.y / width).floor() as i64];
    let mut waiting: BTreeMap<[i64; 2], Vec<Position>> = BTreeMap::new();
    for &place in &places[1..] {
        waiting.entry(square(place)).or_default().push(place);
    }
    // A search from the first node: if it finds all, every node reaches every other.
    let (mut reached, mut left) = (vec![places[0]], places.len() - 1);
    while let Some(from) = reached.pop() {
        let [x, y] = square(from);
        for (dx, dy) in (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| (dx, dy))) {
            let Some(near) = waiting.get_mut(&[x.saturating_add(dx), y.saturating_add(dy)]) else { continue };
            near.retain(|&place| {
                let far = from.distance(place) > range_m;
                if !far {
                    reached.push(place);
                    left -= 1;
                }
                far
            });
        }
    }
    left == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Luck;

    /// Returns the result of [`connected`] by comparing every node with every other.
    fn slowly_connected(places: &[Position], range_m: f64) -> bool {
        let mut group: Vec<usize> = (0..places.len()).collect();
        for a in 0..places.len() {
            for b in 0..a {
                if places[a].distance(places[b]) <= range_m {
                    let (from, to) = (group[a], group[b]);
                    group.iter_mut().filter(|group| **group == from).for_each(|group| *group = to);
                }
            }
        }
        group.iter().all(|&other| other == group[0])
    }

    #[test]
    fn the_grid_search_for_connections_equals_comparing_all_pairs() {
        let (mut connected_ones, cases) = (0, 300);
        for case in 0..cases {
            let stream = Luck::new(case).stream("reach");
            let places: Vec<_> = (0..40)
                .map(|node| Position {
                    x: stream.unit(node, 0, 0) * 100.0 - 50.0,
                    y: stream.unit(node, 1, 0) * 100.0 - 50.0,
                })
                .collect();
            let range = 20.0 + stream.unit(0, 0, 1) * 10.0;
            let expected = slowly_connected(&places, range);
            assert_eq!(connected(&places, range), expected, "case {case}");
            connected_ones += u64::from(expected);
        }
        assert!(
            (cases / 10..cases * 9 / 10).contains(&connected_ones),
            "{connected_ones} of both kinds are seen"
        );
    }

    #[test]
    fn a_row_of_nodes_exactly_at_range_is_connected_despite_rounding() {
        for spacing in [0.1, 0.3, 1.0 / 3.0, 7.7, 10.0] {
            // The range is the longest hop as rounded: whatever the mesh calls in range is in range here.
            let places: Vec<_> =
                (-500..500).map(|i| Position { x: f64::from(i) * spacing, y: 0.0 }).collect();
            let longest = places.windows(2).map(|pair| pair[0].distance(pair[1])).fold(0.0, f64::max);
            assert!(connected(&places, longest));
            assert!(!connected(&places, longest * 0.999));
        }
    }

    #[test]
    fn a_single_node_counts_as_connected_and_two_distant_nodes_do_not() {
        let far = Position { x: 1e300, y: -1e300 };
        assert!(connected(&[], 10.0));
        assert!(connected(&[far], 10.0));
        assert!(!connected(&[Position::default(), far], 10.0));
        assert!(!connected(&[Position::default(), Position { x: 1.0, y: 0.0 }], 0.0));
    }

    #[test]
    fn the_connections_of_ten_thousand_nodes_are_found_without_comparing_all_pairs() {
        // 10,000 nodes in a row of 100 km, one of them missing: comparing all pairs would take minutes in a debug build.
        let mut places: Vec<_> = (0..10_000).map(|i| Position { x: f64::from(i) * 10.0, y: 0.0 }).collect();
        assert!(connected(&places, 10.0));
        places.remove(5_000);
        assert!(!connected(&places, 10.0));
    }
}
