//! A film as JSON: only whole numbers, and only their changes from frame to frame.

use std::collections::BTreeMap;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::{Film, FilmMoment};

/// A quantity of a moment: its name with the unit, and a function that returns its value as a whole number.
type PackedQuantity = (&'static str, fn(&FilmMoment) -> i64);

/// The packed quantities. An unknown parent or RTO is 0: a parent is stored as its number plus 1, and an RTO is at least 10 ms.
const QUANTITIES: [PackedQuantity; 9] = [
    ("x_dm", |moment| whole(moment.position.x * 10.0)),
    ("y_dm", |moment| whole(moment.position.y * 10.0)),
    ("parent", |moment| moment.parent.map_or(0, |parent| i64::from(parent) + 1)),
    ("queued", |moment| i64::from(moment.queued)),
    ("sent", |moment| count(moment.sent)),
    ("collided", |moment| count(moment.collided)),
    ("dropped", |moment| count(moment.dropped)),
    ("rto_cs", |moment| moment.rto_s.map_or(0, |rto_s| whole(rto_s * 100.0).max(1))),
    ("energy_mj", |moment| whole(moment.energy_mj)),
];

/// Returns the nearest whole number that JavaScript can hold exactly.
fn whole(x: f64) -> i64 {
    // JavaScript's numbers are exact up to 2⁵³. 10¹² leaves room for differences.
    x.round().clamp(-1e12, 1e12) as i64
}

fn count(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX).min(1_000_000_000_000)
}

/// Rounds the numbers of a moment of a film to the precision of the film's JSON, so that a film in memory looks the
/// same as a film from JSON.
pub(super) fn rounded(moment: FilmMoment) -> FilmMoment {
    let mut rounded = moment;
    for place in [&mut rounded.position.x, &mut rounded.position.y] {
        *place = whole(*place * 10.0) as f64 / 10.0;
    }
    rounded.rto_s = moment.rto_s.map(|rto_s| whole(rto_s * 100.0).max(1) as f64 / 100.0);
    rounded.energy_mj = whole(moment.energy_mj) as f64;
    rounded
}

/// The JSON of a film. Each quantity has a column with the frames of the first node, then of the second, and so on. An
/// entry is the difference from the frame before, or from 0 in a node's first frame. Several differences of 0 in a row
/// are written as a 0 and their number. Differences of 0 at the end of a column are left out.
impl Serialize for Film {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let columns = QUANTITIES.into_iter().map(|(name, get)| (name, pack(self, get)));
        let columns: BTreeMap<_, _> = columns.filter(|(_, column)| !column.is_empty()).collect();
        let mut film = serializer.serialize_struct("Film", 8)?;
        film.serialize_field("step_s", &self.step_s)?;
        film.serialize_field("range_m", &self.range_m)?;
        film.serialize_field("interference_m", &self.interference_m)?;
        film.serialize_field("queue_frames", &self.queue_frames)?;
        film.serialize_field("nodes", &self.nodes)?;
        film.serialize_field("frames", &self.frames.len())?;
        film.serialize_field("columns", &columns)?;
        if !self.journeys.is_empty() {
            film.serialize_field("journeys", &self.journeys)?;
        }
        film.end()
    }
}

fn pack(film: &Film, get: fn(&FilmMoment) -> i64) -> Vec<i64> {
    let mut column = Vec::new();
    let mut unchanged = 0;
    for node in 0..film.nodes.len() {
        let mut before = 0;
        for frame in &film.frames {
            let value = frame.get(node).map_or(0, get);
            if value == before {
                unchanged += 1;
                continue;
            }
            if unchanged > 0 {
                // The zeros may have begun at the node before: a reader knows the number of frames, and so where a node ends.
                column.extend([0, unchanged]);
            }
            column.push(value - before);
            (before, unchanged) = (value, 0);
        }
    }
    column
}

#[cfg(test)]
mod tests {
    use super::super::tests::busy;
    use super::super::{FilmNode, FilmRole, Position};
    use super::*;

    #[test]
    fn a_column_of_a_film_stores_changes_for_each_node() {
        let node = |role| FilmNode { role, name: "n".to_owned() };
        let moment = |sent, parent| FilmMoment { parent, sent, ..FilmMoment::default() };
        let film = Film {
            step_s: 2.0,
            nodes: vec![node(FilmRole::Root), node(FilmRole::Client)],
            frames: vec![
                vec![moment(7, None), moment(9, Some(0))],
                vec![moment(7, None), moment(12, Some(0))],
            ],
            ..Film::default()
        };
        assert_eq!(
            serde_json::to_value(&film).unwrap(),
            serde_json::json!({
                "step_s": 2.0, "range_m": 0.0, "interference_m": 0.0, "queue_frames": 0, "frames": 2,
                "nodes": [{"role": "root", "name": "n"}, {"role": "client", "name": "n"}],
                "columns": {"parent": [0, 2, 1], "sent": [7, 0, 1, 9, 3]},
            })
        );
    }

    #[test]
    fn numbers_of_a_film_are_rounded_once_when_packed() {
        let position = Position { x: 1.26, ..Position::default() };
        let moment =
            FilmMoment { position, rto_s: Some(0.001), energy_mj: f64::NAN, ..FilmMoment::default() };
        let once = rounded(moment);
        assert_eq!((once.position.x, once.rto_s, once.energy_mj), (1.3, Some(0.01), 0.0));
        for (name, get) in QUANTITIES {
            assert_eq!(get(&once), get(&moment), "{name}");
        }
        for &moment in &busy(1).frames[0] {
            assert_eq!(rounded(moment), moment);
        }
    }

    #[test]
    fn constant_values_of_a_film_take_no_space() {
        let mut film = busy(1);
        film.frames = vec![film.frames.remove(0); 300];
        let once =
            serde_json::to_string(&Film { frames: film.frames[..1].to_vec(), ..film.clone() }).unwrap();
        let often = serde_json::to_string(&film).unwrap();
        assert!(often.len() < once.len() * 2, "{} bytes, and {}", often.len(), once.len());
    }
}
