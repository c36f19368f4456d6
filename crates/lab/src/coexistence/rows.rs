//! The matrix for programs: a row for each mechanism with each other.

use super::{Encounter, Matrix};
use crate::output::sheet::{Column, columns};
use crate::output::{Sheet, SheetValue};
use crate::results::Metric;

/// A function that returns the value of a column.
type Of = fn(&&Encounter) -> SheetValue;

/// The first columns of every row: name, meaning and value. A mechanism alone is its own rival.
pub(crate) const FIRST: &[Column<Of>] = columns! {
    /// The mechanism that has these figures.
    "mechanism" => |it| (&it.own.mechanism).into(),
    /// The mechanism of the other clients.
    "rival" => |it| (&it.rival).into(),
    /// The clients that have the mechanism.
    "clients" => |it| SheetValue::Count(it.own.clients.into()),
    /// Its share of the throughput, or of the goodput of transfers, from 0 to 1.
    "share" => |it| it.own.share.into(),
    /// Its share over its share of the clients: 1 is fair.
    "relative_share" => |it| it.own.relative_share.into(),
    /// The throughput of a client of it, or the goodput of its transfers, over the same where all have the mechanism.
    "kept" => |it| it.kept.into(),
};

/// The columns of the figures of exchanges.
pub(crate) const OF_EXCHANGES: &[Column<Of>] = columns! {
    /// Exchanges that a client of it completed a second.
    "throughput_per_client" => |it| SheetValue::Number(it.own.rate_per_client),
    /// Retransmissions of a client of it.
    "retransmissions_per_client" => |it| SheetValue::Number(it.own.again_per_client),
    /// Retransmissions among its requests, from 0 to 1.
    "retransmission_share" => |it| it.own.again_share.into(),
    /// Mean time of its completed exchanges, in seconds.
    "exchange_time_s" => |it| it.own.time_s.into(),
    /// Jain's index over its clients.
    "jain" => |it| it.own.jain.into(),
    /// Exchanges that all clients completed a second.
    "pair_throughput" => |it| it.pair.value(Metric::Throughput).into(),
    /// Payload that all clients received, in bit/s.
    "pair_goodput_bps" => |it| it.pair.value(Metric::Goodput).into(),
    /// Retransmissions among all requests, from 0 to 1.
    "pair_retransmission_share" => |it| it.again_share.into(),
    /// Jain's index over all clients.
    "pair_jain" => |it| it.pair.value(Metric::Jain).into(),
};

/// The columns of the figures of transfers, in place of the figures of exchanges.
pub(crate) const OF_TRANSFERS: &[Column<Of>] = columns! {
    /// Bits of bodies that a client of it moved a second, failed transfers left out, from the beginning of its first transfer to the end
    /// of its last.
    "goodput_per_client_bps" => |it| SheetValue::Number(it.own.rate_per_client),
    /// The share of the slowest hop that its bodies had while its transfers were under way, headers not counted, from 0 to 1.
    "link_share" => |it| it.own.transfers.and_then(|own| own.link_share).into(),
    /// Transfers that its clients completed, per run.
    "transfers_completed" => |it| SheetValue::Number(it.own.completed),
    /// Transfers of its clients that failed, per run.
    "transfers_failed" => |it| it.own.transfers.map(|own| own.failed).into(),
    /// Mean time of its completed transfers, in seconds.
    "transfer_time_s" => |it| it.own.time_s.into(),
    /// Blocks that a client of it asked for again, or sent again.
    "blocks_again_per_client" => |it| SheetValue::Number(it.own.again_per_client),
    /// The same among its requests for blocks or with blocks, from 0 to 1.
    "blocks_again_share" => |it| it.own.again_share.into(),
    /// Jain's index over its clients.
    "jain" => |it| it.own.jain.into(),
    /// The share of the slowest hop that all bodies had, from 0 to 1.
    "pair_link_share" => |it| it.pair.value(Metric::LinkShare).into(),
    /// Blocks again among all requests for blocks or with blocks, from 0 to 1.
    "pair_blocks_again_share" => |it| it.again_share.into(),
};

/// The last columns of every row.
pub(crate) const LAST: &[Column<Of>] = columns! {
    /// The scenario's name.
    "scenario" => |it| (&it.cell.scenario).into(),
    /// All clients.
    "pair_clients" => |it| SheetValue::Count(it.cell.clients.into()),
    /// How many seeds were pooled.
    "runs" => |it| SheetValue::Count(it.pair.runs),
    /// The lowest of them.
    "seed_first" => |it| SheetValue::Count(it.pair.seed_first),
    /// The highest of them.
    "seed_last" => |it| SheetValue::Count(it.pair.seed_last),
    /// The hash of the scenario with every knob set.
    "scenario_hash" => |it| SheetValue::Text(it.cell.scenario_hash.to_string()),
    /// The hash of the runs, the same for both of a pair.
    "trace_hash" => |it| SheetValue::Text(it.pair.trace_hash.to_string()),
};

impl Matrix {
    /// Returns a row for each mechanism with each other, row by row of the matrix. `docs/results.md` has every column.
    pub fn rows(&self, commit: &str) -> Sheet {
        let all: Vec<&Encounter> = self.encounters().map(|(.., encounter)| encounter).collect();
        let rows: Vec<&Encounter> = all.iter().copied().filter(|it| it.pair.runs > 0).collect();
        let figures = if self.is_of_transfers() { OF_TRANSFERS } else { OF_EXCHANGES };
        let sheet = Sheet::of(&[FIRST, figures, LAST].concat(), &rows).with_commit(commit);
        sheet.with_knobs(all.iter().map(|it| &it.cell), &rows.iter().map(|it| &it.cell))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::matrix;
    use crate::output::RowFormat;

    #[test]
    fn csv_and_json_have_a_row_for_every_ordered_pair_and_the_same_names() {
        let matrix = matrix(&["default", "cocoa"], 2);
        let (mut csv, mut json) = (Vec::new(), Vec::new());
        matrix.rows("c0ffee").write(&mut csv, RowFormat::Csv).unwrap();
        matrix.rows("c0ffee").write(&mut json, RowFormat::Json).unwrap();
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
