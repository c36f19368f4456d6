//! The matrix for programs: a row for each mechanism with each other.

use super::{Encounter, Matrix};
use crate::results::sheet::Column;
use crate::results::{Sheet, Value};

/// The columns of every row: name, meaning and value. A mechanism alone is its own rival.
pub(crate) const COLUMNS: &[Column<fn(&&Encounter) -> Value>] = &[
    ("mechanism", "Whose figures these are.", |it| (&it.own.mechanism).into()),
    ("rival", "What the other clients have.", |it| (&it.rival).into()),
    ("clients", "The clients that have the mechanism.", |it| Value::Count(it.own.clients.into())),
    ("share", "Its share of the throughput, from 0 to 1.", |it| it.own.share.into()),
    ("relative_share", "That beside its share of the clients: 1 is fair.", |it| it.own.relative_share.into()),
    ("kept", "What a client of it completed, beside what it completes where all have the mechanism.", |it| {
        it.kept.into()
    }),
    ("throughput_per_client", "Exchanges that a client of it completed a second.", |it| {
        Value::Number(it.own.throughput_per_client)
    }),
    ("retransmissions_per_client", "Retransmissions of a client of it.", |it| {
        Value::Number(it.own.retransmissions_per_client)
    }),
    ("retransmission_share", "Retransmissions among its requests, from 0 to 1.", |it| {
        it.own.retransmission_share.into()
    }),
    ("exchange_time_s", "Mean time of its completed exchanges, in seconds.", |it| {
        it.own.exchange_time_s.into()
    }),
    ("jain", "Jain's index over its clients.", |it| it.own.jain.into()),
    ("pair_throughput", "Exchanges that all clients completed a second.", |it| {
        Value::Number(it.pair.throughput)
    }),
    ("pair_goodput_bps", "Payload that all clients received, in bit/s.", |it| {
        Value::Number(it.pair.goodput_bps)
    }),
    ("pair_retransmission_share", "Retransmissions among all requests, from 0 to 1.", |it| {
        it.retransmission_share.into()
    }),
    ("pair_jain", "Jain's index over all clients.", |it| it.pair.jain.into()),
    ("scenario", "The scenario's name.", |it| (&it.cell.scenario).into()),
    ("pair_clients", "All clients.", |it| Value::Count(it.cell.clients.into())),
    ("runs", "How many seeds were pooled.", |it| Value::Count(it.pair.runs)),
    ("seed_first", "The lowest of them.", |it| Value::Count(it.pair.seed_first)),
    ("seed_last", "The highest of them.", |it| Value::Count(it.pair.seed_last)),
    ("scenario_hash", "The hash of the scenario with every knob set.", |it| {
        Value::Text(it.cell.scenario_hash.to_string())
    }),
    ("trace_hash", "The hash of the runs, the same for both of a pair.", |it| {
        Value::Text(it.pair.trace_hash.to_string())
    }),
];

impl Matrix {
    /// Returns a row for each mechanism with each other, row by row of the matrix. `docs/results.md` has every column.
    pub fn rows(&self, commit: &str) -> Sheet {
        let all: Vec<&Encounter> = self.encounters().map(|(.., encounter)| encounter).collect();
        let rows: Vec<&Encounter> = all.iter().copied().filter(|it| it.pair.runs > 0).collect();
        let sheet = Sheet::of(COLUMNS, &rows).with_commit(commit);
        sheet.with_knobs(all.iter().map(|it| &it.cell), rows.iter().map(|it| &it.cell))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::matrix;
    use crate::results::Lines;

    #[test]
    fn csv_and_json_have_a_row_for_every_ordered_pair_and_the_same_names() {
        let matrix = matrix(&["default", "cocoa"], 2);
        let (mut csv, mut json) = (Vec::new(), Vec::new());
        matrix.rows("c0ffee").write(&mut csv, Lines::Csv).unwrap();
        matrix.rows("c0ffee").write(&mut json, Lines::Json).unwrap();
        let mut reader = csv::Reader::from_reader(csv.as_slice());
        let header = reader.headers().unwrap().clone();
        let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
        let pairs: Vec<_> = rows.iter().map(|row| (row[0].to_owned(), row[1].to_owned())).collect();
        let expected =
            [("default", "default"), ("default", "cocoa"), ("cocoa", "default"), ("cocoa", "cocoa")];
        assert_eq!(pairs, expected.map(|(one, other)| (one.to_owned(), other.to_owned())));
        for (line, row) in str::from_utf8(&json).unwrap().lines().zip(&rows) {
            let object: serde_json::Value = serde_json::from_str(line).unwrap();
            for (name, value) in header.iter().zip(row) {
                let same = match &object[name] {
                    serde_json::Value::String(text) => text == value,
                    serde_json::Value::Number(number) => number.as_f64() == Some(value.parse().unwrap()),
                    other => other.is_null() && value.is_empty(),
                };
                assert!(same, "{name}: {value} is not {}", object[name]);
            }
            assert_eq!(object["commit"], "c0ffee");
        }
    }
}
