//! Position files: `node time x y` a line. BonnMotion writes them, and Cooja's Mobility plugin reads them.
//!
//! Nodes count from 0, time is in seconds, positions are in metres. Empty lines and lines that begin with `#` are skipped
//! (contiki-ng/cooja at b980125c, `plugins/Mobility.java`; sys-uos/BonnMotion at 80e85ec0, `apps/CSVFile.java`). Like in
//! Cooja, a node stays where it is until its next line: positions between two lines are not interpolated.

use coapace_sim::mobility::MAX_WAYPOINTS;
use coapace_sim::topology::MAX_NODES;
use coapace_sim::{Position, Time, Waypoint};

use super::{FARTHEST_M, bounded, in_line, number};

/// The latest moment of a position file, in seconds: 31 years.
const LATEST_S: f64 = 1e9;

/// Reads the text of a position file for a network of `nodes` nodes. The result is sorted by time, and then by node.
/// Two positions of one node at one time keep the sequence of the file.
///
/// # Errors
/// Returns one line of text, with the number of the line in the file, for a line without four values, an unknown node,
/// a time or a position that is not a valid number, and more than [`MAX_WAYPOINTS`] lines. It quotes nothing of the
/// file, because a scenario from somebody else may name any file.
pub(crate) fn parse(text: &str, nodes: u32) -> Result<Vec<Waypoint>, String> {
    bounded(text)?;
    let nodes = nodes.min(MAX_NODES);
    let mut waypoints = Vec::new();
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        // Refused before the line is read, so that a long file costs no more than a valid one.
        if waypoints.len() as u64 == MAX_WAYPOINTS {
            return Err(in_line(line, format!("there are more than {MAX_WAYPOINTS} positions")));
        }
        waypoints.push(waypoint(text, nodes).map_err(|problem| in_line(line, problem))?);
    }
    // The sort has to be stable: positions of one node at one time apply in the sequence of the file.
    waypoints.sort_by_key(|waypoint| (waypoint.time, waypoint.node));
    Ok(waypoints)
}

fn waypoint(text: &str, nodes: u32) -> Result<Waypoint, String> {
    let mut values = text.split_ascii_whitespace();
    let four = (values.next(), values.next(), values.next(), values.next(), values.next());
    let (Some(node), Some(time), Some(x), Some(y), None) = four else {
        return Err("a line must be `node time x y`".to_owned());
    };
    let node = node.parse().ok().filter(|node| *node < nodes);
    let node =
        node.ok_or_else(|| format!("a node must be a whole number below {nodes}, the number of nodes"))?;
    let seconds =
        number(time, 0.0, LATEST_S).ok_or_else(|| format!("a time must be from 0 to {LATEST_S} s"))?;
    let coordinate = |text: &str| {
        number(text, -FARTHEST_M, FARTHEST_M)
            .ok_or_else(|| format!("a coordinate must be a number from -{FARTHEST_M} to {FARTHEST_M}"))
    };
    // The time is not negative, and at most 10¹⁸ ns.
    #[allow(clippy::cast_sign_loss)]
    let time = Time::from_nanos((seconds * 1e9).round() as u64);
    Ok(Waypoint { time, node, position: Position { x: coordinate(x)?, y: coordinate(y)? } })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(text: &str) -> String {
        parse(text, 3).unwrap_err()
    }

    #[test]
    fn imported_positions_are_sorted_by_time_and_node_and_comments_skipped() {
        let text = "# three nodes\r\n\n1 0.25 2.5 0\r\n0 0.0 1 -4e-1\n \t2\t0.25   7 8\n0 0.25000000 1.5 0\n";
        let at = |ms: u64, node, x, y| Waypoint {
            time: Time::from_nanos(ms * 1_000_000),
            node,
            position: Position { x, y },
        };
        let expected =
            [at(0, 0, 1.0, -0.4), at(250, 0, 1.5, 0.0), at(250, 1, 2.5, 0.0), at(250, 2, 7.0, 8.0)];
        assert_eq!(parse(text, 3).unwrap(), expected);
        assert_eq!(parse("# nothing moves", 3).unwrap(), []);
    }

    #[test]
    fn an_error_in_a_file_of_positions_names_its_line_without_quoting_it() {
        let node = "a node must be a whole number below 3, the number of nodes";
        assert_eq!(refused("node time x y"), format!("line 1: {node}"));
        assert_eq!(refused("0 0 1 1\n3 0 1 1"), format!("line 2: {node}"));
        assert_eq!(refused("# a\n\n0 0 1"), "line 3: a line must be `node time x y`");
        assert_eq!(refused("0 0 1 1 1"), "line 1: a line must be `node time x y`");
        assert_eq!(refused("0 -1 1 1"), "line 1: a time must be from 0 to 1000000000 s");
        assert_eq!(refused("0 nan 1 1"), "line 1: a time must be from 0 to 1000000000 s");
        assert_eq!(refused("0 1 inf 1"), "line 1: a coordinate must be a number from -1000000 to 1000000");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_as_a_file_of_positions_is_read_or_refused_in_one_line(text in "([0-9 .#eE+-]|\n|\\PC){0,60}") {
            match parse(&text, 3) {
                Ok(waypoints) => prop_assert!(waypoints.is_sorted_by_key(|waypoint| (waypoint.time, waypoint.node))),
                Err(error) => prop_assert!(!error.chars().any(char::is_control), "{error}"),
            }
        }

        #[test]
        fn written_positions_parse_back(
            places in proptest::collection::vec((0..3u32, 0..1_000_000u32, -1e5..1e5f64, -1e5..1e5f64), 0..20),
        ) {
            let lines = places.iter().map(|(node, ms, x, y)| format!("{node} {} {x} {y}", f64::from(*ms) / 1e3));
            let text = lines.collect::<Vec<_>>().join("\n");
            let mut expected: Vec<_> = places
                .iter()
                .map(|&(node, ms, x, y)| Waypoint {
                    time: Time::from_nanos(u64::from(ms) * 1_000_000),
                    node,
                    position: Position { x, y },
                })
                .collect();
            expected.sort_by_key(|waypoint| (waypoint.time, waypoint.node));
            prop_assert_eq!(parse(&text, 3).unwrap(), expected);
        }
    }
}
