//! A film as JSON: whole numbers, and only where they change.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Film, FilmMoment, FilmNode, Journey};

/// A column for each quantity. It runs through the frames of the first node, then through those of the second, and so on,
/// and holds by how much each entry differs from that of the frame before (from 0 in a node's first frame). For a row of
/// entries that do not differ it holds a 0 and how many they are, or nothing if no other follows.
#[derive(Serialize, Deserialize)]
pub(super) struct Packed {
    step_s: f64,
    range_m: f64,
    interference_m: f64,
    queue_frames: u32,
    nodes: Vec<FilmNode>,
    frames: usize,
    columns: BTreeMap<String, Vec<i64>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    journeys: Vec<Journey>,
}

/// A quantity as a whole number, whose unit is in its name.
struct Quantity {
    name: &'static str,
    get: fn(&FilmMoment) -> i64,
    set: fn(&mut FilmMoment, i64),
}

/// What is not there is 0: a parent is its number and one, an RTO is at least 10 ms.
const QUANTITIES: [Quantity; 9] = [
    Quantity {
        name: "x_dm",
        get: |moment| whole(moment.position.x * 10.0),
        set: |moment, x| moment.position.x = x as f64 / 10.0,
    },
    Quantity {
        name: "y_dm",
        get: |moment| whole(moment.position.y * 10.0),
        set: |moment, y| moment.position.y = y as f64 / 10.0,
    },
    Quantity {
        name: "parent",
        get: |moment| moment.parent.map_or(0, |parent| i64::from(parent) + 1),
        set: |moment, parent| moment.parent = parent.checked_sub(1).and_then(|parent| parent.try_into().ok()),
    },
    Quantity {
        name: "queued",
        get: |moment| i64::from(moment.queued),
        set: |moment, queued| moment.queued = queued.try_into().unwrap_or(0),
    },
    Quantity {
        name: "sent",
        get: |moment| count(moment.sent),
        set: |moment, sent| moment.sent = sent.try_into().unwrap_or(0),
    },
    Quantity {
        name: "collided",
        get: |moment| count(moment.collided),
        set: |moment, collided| moment.collided = collided.try_into().unwrap_or(0),
    },
    Quantity {
        name: "dropped",
        get: |moment| count(moment.dropped),
        set: |moment, dropped| moment.dropped = dropped.try_into().unwrap_or(0),
    },
    Quantity {
        name: "rto_cs",
        get: |moment| moment.rto_s.map_or(0, |rto_s| whole(rto_s * 100.0).max(1)),
        set: |moment, rto| moment.rto_s = (rto > 0).then(|| rto as f64 / 100.0),
    },
    Quantity {
        name: "energy_mj",
        get: |moment| whole(moment.energy_mj),
        set: |moment, energy| moment.energy_mj = energy as f64,
    },
];

/// The nearest whole number that a script can hold.
fn whole(x: f64) -> i64 {
    x.round().clamp(-1e12, 1e12) as i64
}

fn count(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX).min(1_000_000_000_000)
}

/// A moment as it comes back from JSON.
pub(super) fn rounded(moment: FilmMoment) -> FilmMoment {
    let mut rounded = FilmMoment::default();
    for quantity in &QUANTITIES {
        (quantity.set)(&mut rounded, (quantity.get)(&moment));
    }
    rounded
}

impl From<Film> for Packed {
    fn from(film: Film) -> Self {
        let columns = (QUANTITIES.iter())
            .map(|quantity| (quantity.name.to_owned(), pack(&film, quantity.get)))
            .filter(|(_, column)| !column.is_empty())
            .collect();
        let Film { step_s, range_m, interference_m, queue_frames, nodes, frames, journeys } = film;
        Self { step_s, range_m, interference_m, queue_frames, nodes, frames: frames.len(), columns, journeys }
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
                column.extend([0, unchanged]);
            }
            column.push(value - before);
            (before, unchanged) = (value, 0);
        }
    }
    column
}

impl TryFrom<Packed> for Film {
    type Error = String;

    fn try_from(packed: Packed) -> Result<Self, String> {
        let Packed { step_s, range_m, interference_m, queue_frames, nodes, frames, columns, journeys } =
            packed;
        if frames > Self::max_frames(nodes.len()) {
            return Err(format!("{frames} frames of {} nodes are too many", nodes.len()));
        }
        let mut film =
            Self { step_s, range_m, interference_m, queue_frames, nodes, frames: Vec::new(), journeys };
        film.frames = vec![vec![FilmMoment::default(); film.nodes.len()]; frames];
        for Quantity { name, set, .. } in &QUANTITIES {
            if let Some(column) = columns.get(*name) {
                unpack(&mut film, column, *set).ok_or_else(|| format!("{name} is not what a film holds"))?;
            }
        }
        let parents = film.frames.iter().flatten().filter_map(|moment| moment.parent);
        match parents.max() {
            Some(parent) if parent as usize >= film.nodes.len() => {
                Err(format!("a parent is {parent}, which is no node"))
            }
            _ => Ok(film),
        }
    }
}

/// `None` if the column does not fit.
fn unpack(film: &mut Film, column: &[i64], set: fn(&mut FilmMoment, i64)) -> Option<()> {
    let mut steps = vec![0_i64; film.nodes.len() * film.frames.len()];
    let mut place = 0_usize;
    let mut entries = column.iter();
    while let Some(&change) = entries.next() {
        if change == 0 {
            place = place.checked_add((*entries.next()?).try_into().ok()?)?;
        } else {
            *steps.get_mut(place)? = change;
            place += 1;
        }
    }
    let mut steps = steps.into_iter();
    for node in 0..film.nodes.len() {
        let mut value = 0_i64;
        for (frame, step) in film.frames.iter_mut().zip(&mut steps) {
            value = value.saturating_add(step);
            set(&mut frame[node], value);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::busy;
    use super::*;

    #[test]
    fn a_film_comes_back_from_json() {
        for frames in [0, 1, 2, 100, 1000] {
            let film = busy(frames);
            let json = serde_json::to_string(&film).unwrap();
            assert_eq!(serde_json::from_str::<Film>(&json).unwrap(), film, "{frames} frames");
        }
    }

    #[test]
    fn numbers_are_rounded_once() {
        let moment = FilmMoment { rto_s: Some(0.001), energy_mj: f64::NAN, ..FilmMoment::default() };
        let once = rounded(moment);
        assert_eq!((once.rto_s, once.energy_mj), (Some(0.01), 0.0));
        let film = busy(1);
        for &moment in &film.frames[0] {
            assert_eq!(rounded(moment), moment);
        }
    }

    #[test]
    fn what_does_not_change_takes_no_room() {
        let mut film = busy(1);
        film.frames = vec![film.frames.remove(0); 300];
        let once =
            serde_json::to_string(&Film { frames: film.frames[..1].to_vec(), ..film.clone() }).unwrap();
        let often = serde_json::to_string(&film).unwrap();
        assert!(often.len() < once.len() * 2, "{} bytes, and {}", often.len(), once.len());
    }

    #[test]
    fn json_that_is_no_film_is_an_error() {
        let film = |frames: u64, column: &str| {
            let json = format!(
                r#"{{"step_s": 1, "range_m": 10, "interference_m": 20, "queue_frames": 8, "frames": {frames},
                "nodes": [{{"role": "root", "name": "a"}}, {{"role": "sink", "name": "b"}}], "columns": {{{column}}}}}"#
            );
            serde_json::from_str::<Film>(&json)
        };
        let moments = film(2, r#""parent": [0, 2, 1], "sent": [7, -9, 0, 1, 3]"#).unwrap().frames;
        assert_eq!(moments[1][0].sent, 0, "a count is not negative");
        assert_eq!((moments[0][1].parent, moments[1][1].sent), (Some(0), 3));
        for column in [
            r#""sent": [0]"#,
            r#""sent": [0, 4, 1]"#,
            r#""sent": [0, -1, 1]"#,
            r#""sent": [0, 9223372036854775807, 1]"#,
            r#""parent": [3]"#,
        ] {
            assert!(film(2, column).is_err(), "{column}");
        }
        assert!(film(401, "").is_err() && film(400, "").is_ok());
    }
}
