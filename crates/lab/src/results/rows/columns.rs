//! The columns that every row of a cell or of a run has.

use crate::results::cell::relative_error;
use crate::results::sheet::Column;
use crate::results::{CellResult, Metric, Ratio, RunResult, Summary, Value};

/// A row: a cell, its runs, and their summary.
pub(in crate::results) struct Row<'a> {
    pub(super) result: &'a CellResult,
    pub(super) runs: &'a [RunResult],
    pub(super) summary: Summary,
    /// The headline metric, the first mechanism under the same conditions, and the ratio to it.
    pub(super) compared: Option<(Metric, &'a CellResult, Option<Ratio>)>,
    pub(super) commit: &'a str,
    /// Whether the row is about a single run.
    pub(super) is_run: bool,
}

/// A column of rows.
pub(super) type RowColumn = Column<fn(&Row<'_>) -> Value>;

/// The columns of the conditions, which come first.
pub(in crate::results) const CONDITIONS: &[RowColumn] = &[
    ("workload", "The kind of the workload: `continuous`, `random` or `flows`.", |row| {
        (&row.result.cell.workload).into()
    }),
    ("clients", "How many clients there are.", |row| Value::Count(row.result.cell.clients.into())),
    (
        "buffer_bytes",
        "The knob `buffer` of the scenario, if it has one: the size of the bottleneck's queue in bytes.",
        |row| row.result.cell.knob("buffer"),
    ),
    (
        "link_errors",
        "The knob `errors` of the scenario, if it has one: the error model of the links.",
        |row| row.result.cell.knob("errors"),
    ),
    ("mechanism", "The mechanism, exactly as it was asked for.", |row| (&row.result.cell.mechanism).into()),
];

/// The columns by which a row can be made again.
pub(in crate::results) const ORIGIN: &[RowColumn] = &[
    ("scenario", "The scenario's name.", |row| (&row.result.cell.scenario).into()),
    (
        "mode",
        "`simulated`; `live` for real sockets, with our server; `live with NAME` with the server of another stack.",
        |row| Value::Text(row.result.cell.mode.to_string()),
    ),
    ("commit", "The commit of the program.", |row| row.commit.into()),
    (
        "scenario_hash",
        "The hash of the scenario with every knob set: results of equal hashes may be compared.",
        |row| Value::Text(row.result.cell.scenario_hash.to_string()),
    ),
    (
        "trace_hash",
        "The hash of all that happened; of a cell, of the seeds and trace hashes of its runs.",
        |row| {
            let run = row.runs.first().filter(|_| row.is_run);
            Value::Text(run.map_or(row.summary.trace_hash, |run| run.trace_hash).to_string())
        },
    ),
    (
        "relative_error",
        "How far the figure that was published is missed, as a fraction of it; of several, that of the one met worst.",
        |row| relative_error(row.result.published.as_ref(), &row.summary).into(),
    ),
];

/// The columns of rows that pool seeds.
pub(in crate::results) const POOLED: &[RowColumn] = &[
    ("runs", "How many seeds were pooled.", |row| Value::Count(row.summary.runs)),
    ("seed_first", "The lowest of them.", |row| Value::Count(row.summary.seed_first)),
    ("seed_last", "The highest of them.", |row| Value::Count(row.summary.seed_last)),
    ("compared_metric", "The metric that `ratio` is about: the headline metric of the results.", |row| {
        row.compared.as_ref().map_or(Value::Nothing, |(metric, ..)| metric.name().into())
    }),
    ("compared_with", "The first mechanism under the same conditions; empty in its own row.", |row| {
        row.compared.as_ref().map_or(Value::Nothing, |(_, other, _)| other.cell.label().into())
    }),
    (
        "ratio",
        "The metric of this row by that of `compared_with`, compared seed by seed: the geometric mean.",
        |row| row.ratio().map(|ratio| ratio.mean).into(),
    ),
    (
        "ratio_low",
        "The lower end of its 95 % confidence interval: where it includes 1, the seeds do not tell the two apart.",
        |row| row.ratio().and_then(|ratio| ratio.interval).map(|(low, _)| low).into(),
    ),
    ("ratio_high", "The upper end.", |row| {
        row.ratio().and_then(|ratio| ratio.interval).map(|(_, high)| high).into()
    }),
];

/// The columns of rows of a single run.
pub(in crate::results) const SEED: &[RowColumn] =
    &[("seed", "The seed: with the commit and the scenario, it is the run.", |row| {
        row.runs.first().map_or(Value::Nothing, |run| Value::Count(run.seed))
    })];

/// The columns of rows of a single run in JSON alone.
pub(in crate::results) const NESTED: &[RowColumn] = &[
    (
        "fct_s",
        "The flow completion time of each client in seconds; `null` for a client that gave up.",
        |row| row.nested(|run| &run.fct_s),
    ),
    ("exchanges_of_clients", "The exchanges that each client completed.", |row| {
        row.nested(|run| &run.exchanges)
    }),
    (
        "populations",
        "The clients by their mechanism: counts of exchanges, requests and retransmissions, `exchange_time_us` in all, `jain` among them.",
        |row| row.nested(|run| &run.populations),
    ),
    (
        "flows",
        "Each flow: counts of messages, sizes in bytes, and `delays` with `count`, `sum_us`, `max_us` and `buckets`, pairs of a bucket and how many delays are in it.",
        |row| row.nested(|run| &run.flows),
    ),
    (
        "timeouts",
        "Timeouts armed for first transmissions: number and sum in microseconds with dither (`first`) and of the `rto` before it; `max_us`.",
        |row| row.nested(|run| &run.timeouts),
    ),
    (
        "settling",
        "`event_s`, the moment of the event in seconds, and `time_s`, the settling time; `null` without an event.",
        |row| row.nested(|run| &run.settling),
    ),
    (
        "rto",
        "The RTO over time: `name`, `points` of seconds and seconds, `step_s` within which points were merged; for the first seed alone.",
        |row| row.nested(|run| &run.rto),
    ),
    (
        "queues",
        "The length of each queue over time, in bytes, like `rto`; for the first seed alone.",
        |row| row.nested(|run| &run.queues),
    ),
];

impl Row<'_> {
    fn ratio(&self) -> Option<&Ratio> {
        self.compared.as_ref()?.2.as_ref()
    }

    fn nested<T: serde::Serialize>(&self, of: fn(&RunResult) -> &T) -> Value {
        self.runs.first().map_or(Value::Nothing, |run| Value::nested(of(run)))
    }
}
