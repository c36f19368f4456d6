//! The columns that every row of a cell or of a run has.

use crate::output::SheetValue;
use crate::output::sheet::{Column, columns};
use crate::papers::Published;
use crate::results::{CellResult, CellSummary, FigureRatio, Metric};
use coapace_run::measured::RunResult;

/// A row: a cell, its published results, its runs, and their summary.
pub(in crate::output) struct ResultRow<'a> {
    pub(super) result: &'a CellResult,
    pub(super) published: Option<&'a Published>,
    pub(super) runs: &'a [RunResult],
    pub(super) summary: CellSummary,
    /// The headline metric, the first mechanism under the same conditions, and the ratio to it.
    pub(super) compared: Option<(Metric, &'a CellResult, Option<FigureRatio>)>,
    pub(super) commit: &'a str,
    /// Whether the row is about a single run.
    pub(super) is_run: bool,
}

/// A column of rows.
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
    /// The mechanism, exactly as it was asked for.
    "mechanism" => |row| (&row.result.cell.mechanism).into(),
};

/// The columns by which a row can be made again.
pub(in crate::output) const ORIGIN: &[RowColumn] = columns! {
    /// The scenario's name.
    "scenario" => |row| (&row.result.cell.scenario).into(),
    /// `simulated`; `live` for real sockets, with our server; `live with NAME` with the server of another stack.
    "mode" => |row| SheetValue::Text(row.result.cell.mode.to_string()),
    /// The commit of the program.
    "commit" => |row| row.commit.into(),
    /// The hash of the scenario with every knob set: results of equal hashes may be compared.
    "scenario_hash" => |row| SheetValue::Text(row.result.cell.scenario_hash.to_string()),
    /// The hash of all that happened; of a cell, of the seeds and trace hashes of its runs.
    "trace_hash" => |row| {
        let run = row.runs.first().filter(|_| row.is_run);
        SheetValue::Text(run.map_or(row.summary.trace_hash, |run| run.trace_hash).to_string())
    },
    /// How far the figure that was published is missed, as a fraction of it; of several, that of the one met worst.
    "relative_error" => |row| row.published.and_then(|it| it.relative_error(&row.summary)).into(),
};

/// The columns of rows that pool seeds.
pub(in crate::output) const POOLED: &[RowColumn] = columns! {
    /// How many seeds were pooled.
    "runs" => |row| SheetValue::Count(row.summary.runs),
    /// The lowest of them.
    "seed_first" => |row| SheetValue::Count(row.summary.seed_first),
    /// The highest of them.
    "seed_last" => |row| SheetValue::Count(row.summary.seed_last),
    /// The metric that `ratio` is about: the headline metric of the results.
    "compared_metric" => |row| row.compared.as_ref().map_or(SheetValue::Nothing, |(metric, ..)| metric.name().into()),
    /// The first mechanism under the same conditions; empty in its own row.
    "compared_with" => |row| row.compared.as_ref().map_or(SheetValue::Nothing, |(_, other, _)| other.cell.label().into()),
    /// The metric of this row by that of `compared_with`, compared seed by seed: the geometric mean.
    "ratio" => |row| row.ratio().map(|ratio| ratio.mean).into(),
    /// The lower end of its 95 % confidence interval: where it includes 1, the two tie.
    "ratio_low" => |row| row.ratio().and_then(|ratio| ratio.interval).map(|(low, _)| low).into(),
    /// The upper end.
    "ratio_high" => |row| row.ratio().and_then(|ratio| ratio.interval).map(|(_, high)| high).into(),
};

/// The columns of rows of a single run.
pub(in crate::output) const SEED: &[RowColumn] = columns! {
    /// The seed: with the commit and the scenario, it is the run.
    "seed" => |row| row.runs.first().map_or(SheetValue::Nothing, |run| SheetValue::Count(run.seed)),
};

/// The columns of rows of a single run in JSON alone.
pub(in crate::output) const NESTED: &[RowColumn] = columns! {
    /// The flow completion time of each client in seconds; `null` for a client that gave up.
    "fct_s" => |row| row.nested(|run| &run.fct_s),
    /// The exchanges that each client completed.
    "exchanges_of_clients" => |row| row.nested(|run| &run.exchanges),
    /// The clients by their mechanism: counts of exchanges, requests and retransmissions, `exchange_time_us` in all, `jain`
    /// among them; where they are compared by transfers, `transfers` with counts of these and of blocks, `time_us` in all,
    /// `goodput_bps` and `link_share`.
    "populations" => |row| row.nested(|run| &run.populations),
    /// Each flow: counts of messages, sizes in bytes, and `delays` with `count`, `sum_us`, `max_us` and `buckets`, pairs of a
    /// bucket and how many delays are in it.
    "flows" => |row| row.nested(|run| &run.flows),
    /// Each transfer: `completed_s`, the ends and lengths in seconds of those that were completed; counts of bytes and blocks; `active_s`,
    /// the time in which it was under way, and `capacity_bps`, the rate of the slowest hop.
    "transfers" => |row| row.nested(|run| &run.transfers),
    /// Timeouts armed for first transmissions: number and sum in microseconds with dither (`first`) and of the `rto` before it;
    /// `max_us`.
    "timeouts" => |row| row.nested(|run| &run.timeouts),
    /// `event_s`, the moment of the event in seconds, and `time_s`, the settling time; `null` without an event.
    "settling" => |row| row.nested(|run| &run.settling),
    /// The RTO over time: `name`, `points` of seconds and seconds, `step_s` within which points were merged; for the first seed
    /// alone.
    "rto" => |row| row.nested(|run| &run.rto),
    /// The bytes of bodies that clients have moved over time, like `rto`; for the first seed alone.
    "arrived" => |row| row.nested(|run| &run.arrived),
    /// The number of each block that clients sent or asked for, when it first departed, like `rto`; for the first seed alone.
    "departed" => |row| row.nested(|run| &run.departed),
    /// The number of each block that departed again, like `rto`; for the first seed alone.
    "departed_again" => |row| row.nested(|run| &run.departed_again),
    /// The blocks that clients may have under way over time, like `rto`; for the first seed alone.
    "windows" => |row| row.nested(|run| &run.windows),
    /// The length of each queue over time, in bytes, like `rto`; for the first seed alone.
    "queues" => |row| row.nested(|run| &run.queues),
};

impl ResultRow<'_> {
    fn ratio(&self) -> Option<&FigureRatio> {
        self.compared.as_ref()?.2.as_ref()
    }

    fn nested<T: serde::Serialize>(&self, of: fn(&RunResult) -> &T) -> SheetValue {
        self.runs.first().map_or(SheetValue::Nothing, |run| SheetValue::nested(of(run)))
    }
}
