//! Tables of the flows or transfers of each cell, and of the mechanisms of each mix.

use super::style::{Look, aligned, estimated, wrapped};
use crate::results::{CellResult, CellSummary, FlowSummary, Metric};

/// Returns a table of the flows of all `results`, with a column for each metric of flows that has a header, as many as fit;
/// empty if no cell has more than one flow.
pub(super) fn flows(results: &[CellResult], look: Look) -> String {
    parts(results, look, "flow", Metric::is_of_flows, |summary| summary.flows)
}

/// Returns a table of the transfers, with the columns of [`flows`].
pub(super) fn transfers(results: &[CellResult], look: Look) -> String {
    parts(results, look, "transfer", Metric::is_of_transfers, |summary| summary.transfers)
}

/// Returns the flows or the transfers of a summary.
type Parts = fn(CellSummary) -> Vec<FlowSummary>;

fn parts(results: &[CellResult], look: Look, kind: &str, has: fn(Metric) -> bool, of: Parts) -> String {
    let is_shown = |metric: &Metric| has(*metric) && !metric.header().is_empty();
    let mut metrics: Vec<Metric> = Metric::ALL.into_iter().filter(is_shown).collect();
    let mut text = parts_by(results, kind, &metrics, of);
    while text.lines().any(|line| line.chars().count() > look.width) && metrics.len() > 1 {
        // One after the other, because the width of the table depends on the values.
        metrics.pop();
        text = parts_by(results, kind, &metrics, of);
    }
    text
}

fn parts_by(results: &[CellResult], kind: &str, metrics: &[Metric], of: Parts) -> String {
    let header =
        ["mechanism", kind, "clients"].into_iter().chain(metrics.iter().map(|metric| metric.header()));
    let mut rows = Vec::new();
    for result in results {
        let flows = of(result.summary());
        // A single flow is the whole run, which the table above has.
        for flow in flows.iter().filter(|_| flows.len() > 1) {
            let own = [result.cell.label().to_owned(), flow.name.clone(), flow.clients.to_string()];
            let values = metrics.iter().map(|metric| estimated(*metric, flow.estimate(*metric)));
            rows.push(own.into_iter().chain(values).collect());
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    format!("\n{}\n", aligned(header, rows, |place| place >= 2))
}

/// Returns the tables of the mechanisms of all mixes among `results`, by exchanges and by transfers; empty without a mix.
pub(super) fn populations(results: &[CellResult], look: Look) -> String {
    const OF_EXCHANGES: &[&str] =
        &["mix", "of which", "clients", "share", "of a fair one", "retrans.", "exchange time", "Jain"];
    const OF_TRANSFERS: &[&str] = &[
        "mix",
        "of which",
        "clients",
        "share",
        "of a fair one",
        "again",
        "transfer",
        "Jain",
        "kbit/s",
        "of link",
        "failed",
    ];
    let exchanges = "share: of the throughput; of a fair one: over the share of the clients; exchange time: mean, in seconds; Jain: among \
                     its own clients.";
    let transfers = "share: of the goodput; of a fair one: over the share of the clients; again: blocks of a client that were sent again; \
                     transfer: mean time in seconds; Jain: among its own clients; kbit/s: goodput of a client; of link: share of the slowest \
                     hop; failed: transfers in a run.";
    populations_by(results, look, OF_EXCHANGES, exchanges, false)
        + &populations_by(results, look, OF_TRANSFERS, transfers, true)
}

fn populations_by(
    results: &[CellResult],
    look: Look,
    header: &[&str],
    legend: &str,
    by_transfers: bool,
) -> String {
    let mut rows = Vec::new();
    for result in results.iter().filter(|result| result.is_mix()) {
        let populations = result.summary().populations.into_iter();
        // A mix is compared by exchanges or by transfers, and these have different columns.
        for own in populations.filter(|own| own.transfers.is_some() == by_transfers) {
            let values = own.values().into_iter().map(|(_, text)| text);
            rows.push([result.cell.label().to_owned(), own.mechanism].into_iter().chain(values).collect());
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let table = aligned(header.iter().copied(), rows, |place| place >= 2);
    format!("\n{table}\n\n{}\n", wrapped(legend, look.width))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::terminal_table;
    use crate::papers::References;
    use crate::results::samples::flowing;

    #[test]
    fn several_flows_have_their_own_table_below_the_results() {
        let mut result = CellResult { runs: vec![flowing(1, 80), flowing(2, 60)], ..CellResult::default() };
        result.cell.mechanism = "cocoa".into();
        let text = terminal_table(std::slice::from_ref(&result), &References::default(), Look::PLAIN);
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let flow = |name| rows.iter().find(|row| row.get(1) == Some(&name)).cloned().unwrap_or_default();
        assert_eq!(flow("a")[..4], ["cocoa", "a", "4", "0.583"], "{text}");
        assert_eq!(flow("a").last(), Some(&"20.0"), "dropped by the application: {text}");
        for header in ["PDR", "settling", "µJ/B", "90 % delay", "dropped"] {
            assert!(text.contains(header), "{header}: {text}");
        }
        let narrow = flows(std::slice::from_ref(&result), Look { width: 80, colours: false });
        assert!(narrow.lines().all(|line| line.chars().count() <= 80) && narrow.contains("PDR"), "{narrow}");
        result.runs.iter_mut().for_each(|run| run.flows.truncate(1));
        assert_eq!(flows(&[result], Look::PLAIN), "");
    }
}
