//! The matrix for programs: a row for each mechanism with each other.

use std::io;

use serde::Serialize;

use super::{Encounter, Matrix};
use crate::results::Hash64;

/// One mechanism in the company of another; a mechanism alone is its own rival. What is not known is empty.
#[derive(Clone, Debug, Serialize)]
pub struct Row<'a> {
    /// Whose figures these are.
    pub mechanism: &'a str,
    /// What the other clients have.
    pub rival: &'a str,
    /// The clients that have the mechanism.
    pub clients: u32,
    /// Its share of the throughput, from 0 to 1.
    pub share: Option<f64>,
    /// That beside its share of the clients: 1 is fair.
    pub relative_share: Option<f64>,
    /// What a client of it completed, beside what it completes where all have the mechanism.
    pub kept: Option<f64>,
    /// Exchanges that a client of it completed per second.
    pub throughput_per_client: f64,
    /// Retransmissions of a client of it.
    pub retransmissions_per_client: f64,
    /// Retransmissions among its requests, from 0 to 1.
    pub retransmission_share: Option<f64>,
    /// How long its completed exchanges took on average, in seconds.
    pub exchange_time_s: Option<f64>,
    /// Jain's index over its clients.
    pub jain: Option<f64>,
    /// Exchanges that all clients completed per second.
    pub pair_throughput: f64,
    /// Payload that all clients received, in bits per second.
    pub pair_goodput_bps: f64,
    /// Retransmissions among all requests, from 0 to 1.
    pub pair_retransmission_share: Option<f64>,
    /// Jain's index over all clients.
    pub pair_jain: Option<f64>,
    /// The scenario's name.
    pub scenario: &'a str,
    /// All clients.
    pub pair_clients: u32,
    /// The size of the bottleneck's queue, in bytes.
    pub buffer_bytes: Option<u64>,
    /// The error model of the links.
    pub link_errors: &'a str,
    /// Further knobs, `name=value` separated by semicolons.
    pub knobs: String,
    /// How many seeds were pooled.
    pub runs: u64,
    /// The lowest of them.
    pub seed_first: u64,
    /// The highest of them.
    pub seed_last: u64,
    /// The commit of the program.
    pub commit: &'a str,
    /// The hash of the scenario.
    pub scenario_hash: Hash64,
    /// The hash of the runs, the same for both of a pair.
    pub trace_hash: Hash64,
}

impl Matrix {
    /// A row for each mechanism with each other, row by row.
    pub fn rows<'a>(&'a self, commit: &'a str) -> impl Iterator<Item = Row<'a>> {
        self.encounters().map(move |(row, column, encounter)| {
            let Encounter { own, pair, cell, .. } = encounter;
            Row {
                mechanism: &self.mechanisms()[row],
                rival: &self.mechanisms()[column],
                clients: own.clients,
                share: own.share.map(rounded),
                relative_share: own.relative_share.map(rounded),
                kept: encounter.kept.map(rounded),
                throughput_per_client: rounded(own.throughput_per_client),
                retransmissions_per_client: rounded(own.retransmissions_per_client),
                retransmission_share: own.retransmission_share.map(rounded),
                exchange_time_s: own.exchange_time_s.map(rounded),
                jain: own.jain.map(rounded),
                pair_throughput: rounded(pair.throughput),
                pair_goodput_bps: rounded(pair.goodput_bps),
                pair_retransmission_share: encounter.retransmission_share.map(rounded),
                pair_jain: pair.jain.map(rounded),
                scenario: &cell.scenario,
                pair_clients: cell.clients,
                buffer_bytes: cell.buffer_bytes,
                link_errors: &cell.link_errors,
                knobs: cell.knobs_field(),
                runs: pair.runs,
                seed_first: pair.seed_first,
                seed_last: pair.seed_last,
                commit,
                scenario_hash: cell.scenario_hash,
                trace_hash: pair.trace_hash,
            }
        })
    }
}

/// Writes [`Matrix::rows`] as CSV with a header.
///
/// # Errors
/// Those of `out`.
pub fn write_csv(out: impl io::Write, commit: &str, matrix: &Matrix) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    for row in matrix.rows(commit) {
        csv.serialize(row)?;
    }
    csv.flush()
}

/// Writes [`Matrix::rows`] as JSON, one object a line.
///
/// # Errors
/// Those of `out`.
pub fn write_json_lines(mut out: impl io::Write, commit: &str, matrix: &Matrix) -> io::Result<()> {
    for row in matrix.rows(commit) {
        serde_json::to_writer(&mut out, &row)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Six decimals: more than anything here is exact to.
fn rounded(x: f64) -> f64 {
    (x * 1e6).round() / 1e6
}

#[cfg(test)]
mod tests {
    use super::super::tests::matrix;
    use super::*;

    #[test]
    fn csv_and_json_have_a_row_for_every_ordered_pair_and_the_same_names() {
        let matrix = matrix(&["default", "cocoa"], 2);
        let (mut csv, mut json) = (Vec::new(), Vec::new());
        write_csv(&mut csv, "c0ffee", &matrix).unwrap();
        write_json_lines(&mut json, "c0ffee", &matrix).unwrap();
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
