//! The matrix of pairs as CSV or JSON: a row for each mechanism beside each other one.

use super::{Encounter, Matrix};
use crate::output::sheet::{Column, columns};
use crate::output::{Sheet, SheetValue};
use crate::results::Metric;

/// A function that returns the value of a column.
type Of = fn(&&Encounter) -> SheetValue;

/// The first columns of every row: name, meaning and value. If all clients have the same mechanism, it is also its own
/// rival.
pub(crate) const FIRST: &[Column<Of>] = columns! {
    /// The mechanism that the row is about.
    "mechanism" => |it| (&it.own.mechanism).into(),
    /// The mechanism of the other clients.
    "rival" => |it| (&it.rival).into(),
    /// How many clients have the mechanism.
    "clients" => |it| SheetValue::Count(it.own.clients.into()),
    /// The mechanism's share of the throughput of all clients, or of the goodput of all transfers, from 0 to 1.
    "share" => |it| it.own.share.into(),
    /// `share` divided by the mechanism's share of the clients: 1 is fair.
    "relative_share" => |it| it.own.relative_share.into(),
    /// The rate of a client with the mechanism, divided by its rate if all clients have the mechanism; empty if the
    /// latter is 0. The rate is the throughput, or the goodput of transfers.
    "kept" => |it| it.kept.into(),
};

/// The columns with results of exchanges.
pub(crate) const OF_EXCHANGES: &[Column<Of>] = columns! {
    /// Exchanges per second that a client with the mechanism completed.
    "throughput_per_client" => |it| SheetValue::Number(it.own.rate_per_client),
    /// Mean number of retransmissions of a client with the mechanism.
    "retransmissions_per_client" => |it| SheetValue::Number(it.own.again_per_client),
    /// Retransmissions as a share of the client's requests, from 0 to 1.
    "retransmission_share" => |it| it.own.again_share.into(),
    /// Mean time of the mechanism's completed exchanges, in seconds.
    "exchange_time_s" => |it| it.own.time_s.into(),
    /// Jain's index over the clients with the mechanism.
    "jain" => |it| it.own.jain.into(),
    /// Exchanges that all clients together completed per second.
    "pair_throughput" => |it| it.pair.value(Metric::Throughput).into(),
    /// Payload that all clients received, in bit/s.
    "pair_goodput_bps" => |it| it.pair.value(Metric::Goodput).into(),
    /// Retransmissions of all clients, divided by all their requests, from 0 to 1.
    "pair_retransmission_share" => |it| it.again_share.into(),
    /// Jain's index over all clients.
    "pair_jain" => |it| it.pair.value(Metric::Jain).into(),
};

/// The columns with results of transfers, instead of those with results of exchanges.
pub(crate) const OF_TRANSFERS: &[Column<Of>] = columns! {
    /// Goodput of the transfers of a client with the mechanism, in bit/s: the bits of bodies, failed transfers left
    /// out, divided by the time from the beginning of its first transfer to the end of its last.
    "goodput_per_client_bps" => |it| SheetValue::Number(it.own.rate_per_client),
    /// The share of the capacity of the slowest hop that the mechanism's bodies used while its transfers were running,
    /// headers not counted, from 0 to 1.
    "link_share" => |it| it.own.transfers.and_then(|own| own.link_share).into(),
    /// Transfers that clients with the mechanism completed, per run.
    "transfers_completed" => |it| SheetValue::Number(it.own.completed),
    /// Failed transfers of clients with the mechanism, per run.
    "transfers_failed" => |it| it.own.transfers.map(|own| own.failed).into(),
    /// Mean time of the mechanism's completed transfers, in seconds.
    "transfer_time_s" => |it| it.own.time_s.into(),
    /// Mean number of blocks that a client with the mechanism requested again or sent again.
    "blocks_again_per_client" => |it| SheetValue::Number(it.own.again_per_client),
    /// Blocks that clients with the mechanism requested or sent again, divided by their requests that fetch or upload a
    /// block, from 0 to 1.
    "blocks_again_share" => |it| it.own.again_share.into(),
    /// Jain's index over the clients with the mechanism.
    "jain" => |it| it.own.jain.into(),
    /// The share of the capacity of the slowest hop that all bodies used while transfers were running, from 0 to 1.
    "pair_link_share" => |it| it.pair.value(Metric::LinkShare).into(),
    /// Blocks that any client requested or sent again, divided by all requests that fetch or upload a block, from 0 to
    /// 1.
    "pair_blocks_again_share" => |it| it.again_share.into(),
};

/// The last columns of every row.
pub(crate) const LAST: &[Column<Of>] = columns! {
    /// The scenario's name.
    "scenario" => |it| (&it.cell.scenario).into(),
    /// The number of all clients.
    "pair_clients" => |it| SheetValue::Count(it.cell.clients.into()),
    /// How many seeds were pooled.
    "runs" => |it| SheetValue::Count(it.pair.runs),
    /// The lowest seed.
    "seed_first" => |it| SheetValue::Count(it.pair.seed_first),
    /// The highest seed.
    "seed_last" => |it| SheetValue::Count(it.pair.seed_last),
    /// The hash of the scenario, including the values of its knobs.
    "scenario_hash" => |it| SheetValue::Text(it.cell.scenario_hash.to_string()),
    /// The hash of the runs, the same in both rows of a pair of mechanisms.
    "trace_hash" => |it| SheetValue::Text(it.pair.trace_hash.to_string()),
};

impl Matrix {
    /// Returns a row for each mechanism beside each other one, in the sequence of the matrix. `docs/results.md`
    /// describes every column.
    pub fn rows(&self, commit: &str) -> Sheet {
        let all: Vec<&Encounter> = self.encounters().map(|(.., encounter)| encounter).collect();
        // Pairs that were not run before an interruption have no row, but their knobs still have columns.
        let rows: Vec<&Encounter> = all.iter().copied().filter(|it| it.pair.runs > 0).collect();
        let values = if self.is_of_transfers() { OF_TRANSFERS } else { OF_EXCHANGES };
        let sheet = Sheet::of(&[FIRST, values, LAST].concat(), &rows).with_commit(commit);
        sheet.with_knobs(all.iter().map(|it| &it.cell), &rows.iter().map(|it| &it.cell))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::matrix;
    use crate::output::RowFormat;

    #[test]
    fn csv_and_json_have_equal_columns_and_a_row_for_every_ordered_pair_of_mechanisms() {
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
