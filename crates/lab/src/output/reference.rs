//! The reference page of results, `docs/results.md`.

use std::fmt::Write;

use coapace_sim::mesh::FrameEvent;
use coapace_sim::{Event, NodeEvent, Trace};

use super::rows::{columns as rows, orders, sensitivity};
use super::sheet::Column;
use crate::coexistence;
use crate::rank;
use crate::results::{Better, Metric};
use coapace_run::measured::MeshResult;

const HEAD: &str = "# Columns, fields and events

<!-- Generated from the tables of columns in crates/lab. Rewrite with: BLESS=1 cargo test -p coapace-lab --test it results:: -->

CSV (`--format csv`) and JSON lines (`--format json`) have the same names and the same values, in the same units: seconds, bit/s, fractions of 1.
A value that is not known is empty in CSV and `null` in JSON. Numbers have six decimals at most. Rows come in the order of the runs, a row as soon as it and all before it are complete.

The table of the terminal has as many of the same metrics as fit, in the same units, and bars for the first. Above it are the mechanisms with clients that gave up, and the
best mechanism. Published mechanisms come first, the best before the others. `1=` is a tie, in one colour unless `NO_COLOR` is set: these
mechanisms do not differ significantly from the best of them (paired t tests at 5 % for all together, [Holm](decisions/0082-rankings-find-ties-by-holms-procedure.md)). If no run has any answer, the results
are printed and the exit code is 1; cells without an answer beside others are named on standard error
([decision 0083](decisions/0083-a-command-whose-runs-have-no-answer-fails.md)).

";

const METRICS: &str = "## Metrics

Every row of `coapace run` and `coapace reproduce` has these columns. With `--each` they are of one run; otherwise of all seeds: the mean
over the runs that have the value, unless it says how it is pooled. The column of the interval, which rows of `--each` do not have, is the
half-width of the 95 % confidence interval (Student's t) over the runs' own values, in the unit of the metric. It is empty with one
seed. Quantiles and other metrics of all runs together have an interval where every run has the value by itself.

Read the median FCT with the mean, the 90 % quantile and the last client beside it. The median alone rewards unfairness: half of the clients may be done early
because the others wait. A naive pacing reaches a lower median than every published mechanism, with the worst 90 % quantile. Timers without dither
(`linux-rto`, `basic-rto`) win medians by lock-step, because simulated clients begin together. The row `bound` of tables has what no mechanism can beat:
[rank.md](rank.md#bounds).

| column | 95 % interval | unit | better | what it is |
|---|---|---|---|---|
";

const OWN: &str = "## Columns of knobs, flows, transfers and mixes

| column | what it is |
|---|---|
| `knob.NAME` | The value of the scenario's knob NAME, or of any key NAME that was given several values, as by `--set server.sluice=false,true`. |
| `flow.NAME.COLUMN` | The metric COLUMN of the flow NAME alone, for those marked with * above. |
| `transfer.NAME.COLUMN` | The metric COLUMN of the transfer NAME alone, for those marked with † above. |
| `share.MECHANISM` | The share of the throughput of a mix that the clients of MECHANISM had, or of the goodput of its transfers, from 0 to 1. |
| `published_COLUMN` | The published value of the metric COLUMN, where one was published. |
| `witness_low_COLUMN`, `witness_high_COLUMN` | The lowest and the highest value of the metric COLUMN that a witness of the paper's table measured, such as Contiki in Cooja, where there is one. |
| `mesh_NAME` | A count of all nodes of a mesh (frames and datagrams, as `crates/sim/src/mesh/counters.rs` defines them), or the energy of a state of their radios in mJ: the mean over the runs. |

";

/// Returns the page: every column, every field, and every event of a trace.
pub fn reference() -> String {
    // Everything below comes from the tables that write the rows, so the page cannot miss a column.
    let mut page = String::from(HEAD) + METRICS;
    for metric in Metric::ALL {
        let interval = metric.interval_name().map_or_else(String::new, |name| format!("`{name}`"));
        // The text of the page explains both marks.
        let mark = match (metric.is_of_flows(), metric.is_of_transfers()) {
            (true, _) => " *",
            (_, true) => " †",
            _ => "",
        };
        let better = match metric.better() {
            Better::Lower => "lower",
            Better::Higher => "higher",
            Better::Neither => "",
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            page,
            "| `{metric}`{mark} | {interval} | {} | {better} | {} |",
            metric.unit(),
            metric.about()
        );
    }
    page += "\n## Conditions and origin of a row\n\n";
    columns(&mut page, rows::CONDITIONS.iter().chain(rows::ORIGIN));
    page += "\nA row of all seeds has these beside them:\n\n";
    columns(&mut page, rows::POOLED);
    page += "\nA row of `--each` has these instead, from the second on in JSON alone:\n\n";
    columns(&mut page, rows::SEED.iter().chain(rows::NESTED));
    page.push('\n');
    page += OWN;
    page += "The counts of `mesh_NAME` are ";
    // An empty result has all names.
    let names: Vec<_> =
        MeshResult::default().named().iter().map(|(name, _)| format!("`mesh_{name}`")).collect();
    page += &(names.join(", ")
        + ".\n\n## Published orders\n\nRows of `coapace reproduce --orders`, and `knob.NAME` and `commit`:\n\n");
    columns(&mut page, orders::COLUMNS);
    page += "\n## Pairs\n\nRows of `coapace run --pairs`, and `knob.NAME` and `commit`:\n\n";
    columns(&mut page, [coexistence::FIRST, coexistence::OF_EXCHANGES, coexistence::LAST].concat().iter());
    page += "\nWhere mechanisms are compared by their transfers, these are in the place of the columns from `throughput_per_client` to `pair_jain`:\n\n";
    columns(&mut page, coexistence::OF_TRANSFERS);
    page += "\n## Ratios\n\nRows of `coapace rank`, one for each metric of each mechanism in each cell, and `knob.NAME` and `commit`:\n\n";
    columns(&mut page, rank::COLUMNS);
    page += "\n## Open conditions\n\nRows of `coapace reproduce --sensitivity`, one for the chosen values, for each other value, and for each pair of these; and\n`commit`:\n\n";
    columns(&mut page, sensitivity::COLUMNS);
    page += "\n## Traces\n\nRows of `coapace run --trace FILE`, one an event:\n\n";
    table(&mut page, "column", Trace::<Vec<u8>>::COLUMNS.iter().copied());
    page += "\nEvents of packets:\n\n";
    table(&mut page, "event", Event::ALL.iter().map(|event| (event.name(), event.about())));
    page += "\nEvents of the frames of a mesh, `frame EVENT` or `ack EVENT`:\n\n";
    table(&mut page, "event", FrameEvent::ALL.iter().map(|event| (event.name(), event.about())));
    page += "\nEvents of what a node knows and says, where it changes:\n\n";
    table(&mut page, "event", NodeEvent::NAMES.iter().copied());
    page
}

fn columns<'a, F: 'a>(page: &mut String, columns: impl IntoIterator<Item = &'a Column<F>>) {
    table(page, "column", columns.into_iter().map(|(name, about, _)| (*name, *about)));
}

fn table<'a>(page: &mut String, first: &str, rows: impl Iterator<Item = (&'a str, &'a str)>) {
    let _ = writeln!(page, "| {first} | what it is |\n|---|---|");
    for (name, about) in rows {
        let _ = writeln!(page, "| `{name}` | {about} |");
    }
}
