//! The columns common to every row of a cell or of a run.

use crate::output::SheetValue;
use crate::output::sheet::{Column, columns};
use crate::papers::Published;
use crate::results::{CellResult, CellSummary, Metric, PairedRatio};
use coapace_run::measured::RunResult;

/// A row of results: a cell, its published results, its runs, and their summary.
pub(in crate::output) struct ResultRow<'a> {
    pub(super) result: &'a CellResult,
    pub(super) published: Option<&'a Published>,
    pub(super) runs: &'a [RunResult],
    pub(super) summary: CellSummary,
    /// The comparison with the first mechanism under the same conditions: the main metric, the results of that
    /// mechanism, and the ratio of this row's value to their value, if the ratio is known.
    pub(super) compared: Option<(Metric, &'a CellResult, Option<PairedRatio>)>,
    pub(super) commit: &'a str,
    /// Whether the row is about a single run: false if its runs are pooled.
    pub(super) is_run: bool,
}

/// One column of a table: a value for each row.
pub(super) type RowColumn = Column<fn(&ResultRow<'_>) -> SheetValue>;

/// The columns of the conditions, which come first.
pub(in crate::output) const CONDITIONS: &[RowColumn] = columns! {
    /// The kind of the workload: `continuous`, `random`, `flows` or `transfer`.
    "workload" => |row| (&row.result.cell.workload).into(),
    /// How many clients there are.
    "clients" => |row| SheetValue::Count(row.result.cell.clients.into()),
    /// The knob `buffer` of the scenario, if it has one: the size of the bottleneck's queue in bytes.
    "buffer_bytes" => |row| SheetValue::knob(&row.result.cell, "buffer"),
    /// The knob `errors` of the scenario, if it has one: the error model of the links.
    "link_errors" => |row| SheetValue::knob(&row.result.cell, "errors"),
    /// The mechanism, exactly as it was named.
    "mechanism" => |row| (&row.result.cell.mechanism).into(),
};

/// The columns with which the runs of a row can be reproduced.
pub(in crate::output) const ORIGIN: &[RowColumn] = columns! {
    /// The scenario's name.
    "scenario" => |row| (&row.result.cell.scenario).into(),
    /// `simulated`; `live` for real sockets, with our server; `live with NAME` with the server of another stack.
    "mode" => |row| SheetValue::Text(row.result.cell.mode.to_string()),
    /// The commit of the program.
    "commit" => |row| row.commit.into(),
    /// The hash of the scenario, including the values of its knobs: results of equal hashes may be compared.
    "scenario_hash" => |row| SheetValue::Text(row.result.cell.scenario_hash.to_string()),
    /// The hash of all events of the run. In a row of a cell, the hash of the seeds and trace hashes of its runs.
    "trace_hash" => |row| {
        let run = row.runs.first().filter(|_| row.is_run);
        SheetValue::Text(run.map_or(row.summary.trace_hash, |run| run.trace_hash).to_string())
    },
    /// The distance from the published value, as a fraction of this value; with several values, the largest distance.
    "relative_error" => |row| row.published.and_then(|it| it.relative_error(&row.summary)).into(),
};

/// The columns of rows that pool seeds.
pub(in crate::output) const POOLED: &[RowColumn] = columns! {
    /// How many seeds were pooled.
    "runs" => |row| SheetValue::Count(row.summary.runs),
    /// The lowest seed.
    "seed_first" => |row| SheetValue::Count(row.summary.seed_first),
    /// The highest seed.
    "seed_last" => |row| SheetValue::Count(row.summary.seed_last),
    /// The metric that `ratio` is about: the headline metric of the results.
    "compared_metric" => |row| row.compared.as_ref().map_or(SheetValue::Nothing, |(metric, ..)| metric.name().into()),
    /// The first mechanism under the same conditions; empty in its own row.
    "compared_with" => |row| row.compared.as_ref().map_or(SheetValue::Nothing, |(_, other, _)| other.cell.label().into()),
    /// The value of this row divided by the value of `compared_with`, seed by seed: the geometric mean.
    "ratio" => |row| row.ratio().map(|ratio| ratio.mean).into(),
    /// The lower end of the ratio's 95 % confidence interval: where it includes 1, both mechanisms tie.
    "ratio_low" => |row| row.ratio().and_then(|ratio| ratio.interval).map(|(low, _)| low).into(),
    /// The upper end of the ratio's interval.
    "ratio_high" => |row| row.ratio().and_then(|ratio| ratio.interval).map(|(_, high)| high).into(),
};

/// The columns of rows of a single run.
pub(in crate::output) const SEED: &[RowColumn] = columns! {
    /// The seed of the run. Together with commit, scenario and mechanism it determines the run.
    "seed" => |row| row.runs.first().map_or(SheetValue::Nothing, |run| SheetValue::Count(run.seed)),
};

/// The columns of rows of a single run that only JSON has.
pub(in crate::output) const NESTED: &[RowColumn] = columns! {
    /// The flow completion time of each client in seconds; `null` for a client that gave up.
    "fct_s" => |row| row.nested(|run| &run.fct_s),
    /// The exchanges that each client completed.
    "exchanges_of_clients" => |row| row.nested(|run| &run.exchanges),
    /// The results of the clients with each mechanism: counts of exchanges, requests and retransmissions;
    /// `exchange_time_us`, the sum of the times of exchanges; and `jain`, Jain's index over these clients. If
    /// mechanisms are compared by transfers, `transfers` has counts of transfers and blocks, `time_us` (the sum of the
    /// times of transfers), `goodput_bps` and `link_share`.
    "populations" => |row| row.nested(|run| &run.populations),
    /// Each flow: counts of messages, sizes in bytes, and `delays` with `count`, `sum_us`, `max_us` and `buckets`, pairs of a
    /// bucket and how many delays are in it.
    "flows" => |row| row.nested(|run| &run.flows),
    /// Each transfer: `completed_s`, the end and the duration of each completed one in seconds; counts of bytes and
    /// blocks; `active_s`, the time in seconds in which it was under way, and `capacity_bps`, the rate of the slowest
    /// hop.
    "transfers" => |row| row.nested(|run| &run.transfers),
    /// Timeouts in microseconds: `first`, the number and the sum of timeouts of first transmissions, dither included;
    /// `rto`, the same before dither; `max_us`, the longest of them; `expired` and `expired_max_us`, timeouts that
    /// expired before a retransmission.
    "timeouts" => |row| row.nested(|run| &run.timeouts),
    /// `event_s`, the time of the event that all clients report, and `time_s`, the settling time after it, both in
    /// seconds; `null` without an event.
    "settling" => |row| row.nested(|run| &run.settling),
    /// The RTO over time, for the first seed only: `name`, `points` (pairs of time and RTO, both in seconds), and
    /// `step_s`, the span in seconds within which points were merged.
    "rto" => |row| row.nested(|run| &run.rto),
    /// The bytes of bodies that clients have moved over time, in the form of `rto`, for the first seed only.
    "arrived" => |row| row.nested(|run| &run.arrived),
    /// The number of each block at the time when a client sent or requested it first, in the form of `rto`, for the
    /// first seed only.
    "departed" => |row| row.nested(|run| &run.departed),
    /// The number of each block at the times when a client sent or requested it again, in the form of `rto`, for the
    /// first seed only.
    "departed_again" => |row| row.nested(|run| &run.departed_again),
    /// The window over time: how many blocks a client may have outstanding, in the form of `rto`, for the first seed
    /// only.
    "windows" => |row| row.nested(|run| &run.windows),
    /// The length of each queue over time in bytes, in the form of `rto`, for the first seed only.
    "queues" => |row| row.nested(|run| &run.queues),
};

impl ResultRow<'_> {
    fn ratio(&self) -> Option<&PairedRatio> {
        self.compared.as_ref()?.2.as_ref()
    }

    fn nested<T: serde::Serialize>(&self, of: fn(&RunResult) -> &T) -> SheetValue {
        self.runs.first().map_or(SheetValue::Nothing, |run| SheetValue::nested(of(run)))
    }
}
