//! Verdicts on published orders, written down: a table for the terminal, and rows for programs.

use std::io;

use comfy_table::{CellAlignment, ContentArrangement, Table};
use serde::Serialize;

use super::conditions::Conditions;
use super::number::{significant, significant_or_dash};
use super::table::STYLE;
use super::verdict::{metrics, reasons};
use super::{CellResult, Hash64, Metric, Ratio, Relation, Verdict, verdicts};

/// The published orders among `results`, one row each; nothing if there are none.
pub(super) fn table(results: &[CellResult]) -> String {
    let verdicts = verdicts(results);
    if verdicts.is_empty() {
        return String::new();
    }
    let conditions = Conditions::of(verdicts.iter().map(|verdict| &verdict.above.cell));
    let metrics = metrics(&verdicts);
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
    let ratios = verdicts.iter().any(|verdict| verdict.order.times.is_some());
    let published = if ratios { &["published"][..] } else { &[] };
    let (before, after) = (["published order", "first", "second"], ["times", "95 %", "verdict"]);
    let header = before.iter().chain(published).chain(&after).copied();
    table.set_header(conditions.varying.iter().map(String::as_str).chain(header));
    for verdict in &verdicts {
        let metric = if metrics.len() > 1 { verdict.order.metric.title() } else { "" };
        let [first, second] = verdict.figures.map(|figure| significant_or_dash(figure, 4));
        let published = if ratios { vec![verdict.published_times()] } else { Vec::new() };
        let (times, interval) = verdict.ratio.map_or_else(|| ("–".into(), "–".into()), Ratio::words);
        let claim = format!("{metric} {}", verdict.claim()).trim_start().to_owned();
        let cells = [vec![claim, first, second], published, vec![times, interval, verdict.word().to_owned()]];
        table.add_row(conditions.values(&verdict.above.cell).into_iter().chain(cells.concat()));
    }
    let numbers = conditions.varying.len() + 1..conditions.varying.len() + 4 + published.len();
    for (_, column) in table.column_iter_mut().enumerate().filter(|(place, _)| numbers.contains(place)) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let axes = metrics.iter().map(|metric| metric.axis()).collect::<Vec<_>>().join(", ");
    let numbered = if ratios {
        "With a number, it stands in the place of 1. = holds where the interval is on the published ratio’s side of 1.\n"
    } else {
        ""
    };
    let reasons: String =
        reasons(&verdicts).into_iter().map(|reason| "Not held, ".to_owned() + &reason + "\n").collect();
    format!(
        "\n{}\n\nFirst and second: {axes}. Times: first over second, the geometric mean over the seeds (the ratio of the means \
         where one of them is zero), with its 95 % interval.\n\
         > holds where the interval is above 1, ≥ where it is not below 1.\n{numbered}{reasons}",
        table.trim_fmt()
    )
}

impl Verdict<'_> {
    /// The published ratio, or the least one; a dash where an order alone was published.
    pub(crate) fn published_times(&self) -> String {
        match (self.order.relation, self.order.times) {
            (_, None) => "–".to_owned(),
            (Relation::Times, Some(times)) => significant(times, 3),
            (relation, Some(times)) => format!("{relation} {}", significant(times, 3)),
        }
    }
}

impl Ratio {
    /// The ratio and its interval; a dash for the interval of one seed.
    pub(crate) fn words(self) -> (String, String) {
        let number = |x: f64| if x == f64::INFINITY { "∞".to_owned() } else { significant(x, 3) };
        let interval = self
            .interval
            .map_or_else(|| "–".to_owned(), |(low, high)| format!("{}–{}", number(low), number(high)));
        (number(self.mean), interval)
    }
}

/// A verdict. What is not known is empty.
#[derive(Serialize)]
struct Row<'a> {
    scenario: &'a str,
    workload: &'a str,
    clients: u32,
    buffer_bytes: Option<u64>,
    link_errors: &'a str,
    knobs: String,
    metric: Metric,
    above: &'a str,
    relation: Relation,
    below: &'a str,
    above_value: Option<f64>,
    below_value: Option<f64>,
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
    held: bool,
    runs: usize,
    source: &'a str,
    commit: &'a str,
    scenario_hash: Hash64,
    times: Option<f64>,
    why: &'a str,
}

fn rows<'a>(commit: &'a str, verdicts: &'a [Verdict]) -> impl Iterator<Item = Row<'a>> {
    verdicts.iter().map(move |verdict| {
        let Verdict { above, order, figures, ratio } = verdict;
        let cell = &above.cell;
        let rounded = |x: f64| super::number::field(Some(x)).parse().ok();
        let interval = ratio.and_then(|ratio| ratio.interval);
        Row {
            scenario: &cell.scenario,
            workload: &cell.workload,
            clients: cell.clients,
            buffer_bytes: cell.buffer_bytes,
            link_errors: &cell.link_errors,
            knobs: cell.knobs_field(),
            metric: order.metric,
            above: &cell.mechanism,
            relation: order.relation,
            below: &order.than,
            above_value: figures[0].and_then(rounded),
            below_value: figures[1].and_then(rounded),
            ratio: ratio.and_then(|ratio| rounded(ratio.mean)),
            ratio_low: interval.and_then(|(low, _)| rounded(low)),
            ratio_high: interval.and_then(|(_, high)| rounded(high)),
            held: verdict.held(),
            runs: above.runs.len(),
            source: above.published.as_ref().map_or("", |published| &published.source),
            commit,
            scenario_hash: cell.scenario_hash,
            times: order.times,
            why: &order.why,
        }
    })
}

/// Writes one row a published order among `results`, with a header, the worst first: the conditions, the figures of the
/// two mechanisms in the metric's unit (`above` is the one named first, also where a ratio below 1 is said of it), the ratio
/// with both ends of its 95 % interval, and whether the order held; `times` is the published ratio, with `>` or `>=` the
/// least one, and `why` why it is thought not to hold here.
///
/// # Errors
/// Those of `out`.
pub fn write_verdicts_csv(out: impl io::Write, commit: &str, results: &[CellResult]) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    for row in rows(commit, &verdicts(results)) {
        csv.serialize(row)?;
    }
    csv.flush()
}

/// Writes one object a published order among `results`. The names are those of the CSV's columns.
///
/// # Errors
/// Those of `out`.
pub fn write_verdicts_json_lines(
    mut out: impl io::Write,
    commit: &str,
    results: &[CellResult],
) -> io::Result<()> {
    for row in rows(commit, &verdicts(results)) {
        serde_json::to_writer(&mut out, &row)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::super::terminal_table;
    use super::super::verdict::tests::{claimed, claimed_times};
    use super::*;

    fn results() -> Vec<CellResult> {
        let held = claimed(&[30.0, 33.0, 36.0], Relation::Above, &[10.0, 11.0, 12.5]);
        let mut not_held = claimed(&[1.0, 1.1, 1.2], Relation::NotBelow, &[2.0, 2.0, 2.0]);
        for result in &mut not_held {
            result.cell.clients = 180;
        }
        held.into_iter().chain(not_held).collect()
    }

    #[test]
    fn orders_stand_below_the_table_of_results_with_what_became_of_them() {
        let text = terminal_table(&results(), Some(200));
        let (_, orders) = text.split_once("published order").unwrap();
        let rows: Vec<Vec<&str>> = orders.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[2][..7], ["180", "a", "≥", "b", "1.100", "2.000", "0.548"]);
        assert_eq!(rows[2][8..], ["not", "held"]);
        assert_eq!(rows[3], ["60", "a", ">", "b", "33.00", "11.17", "2.96", "2.79–3.14", "held"]);
        assert!(text.contains("\nNot held, throughput a ≥ b: other timers\n"), "{text}");
        assert!(!text.contains("a > b: other timers"), "it held");
        assert!(text.contains("throughput in exchanges/s. Times:"), "{text}");
        let mut unclaimed = results();
        for result in &mut unclaimed {
            result.published = None;
        }
        assert!(!terminal_table(&unclaimed, Some(200)).contains("order"), "there is none");
    }

    #[test]
    fn a_published_ratio_stands_beside_the_measured_one() {
        let results = claimed_times(&[10.0, 11.0, 12.5], Relation::Times, 0.6875, &[30.0, 33.0, 36.0]);
        let text = terminal_table(&results, Some(200));
        let row = text.lines().find(|line| line.contains("a = 0.6875 b")).unwrap();
        let row: Vec<_> = row.split_whitespace().collect();
        assert_eq!(row[4..], ["11.17", "33.00", "0.688", "0.338", "0.319–0.358", "held"], "{text}");
        let mut csv = Vec::new();
        write_verdicts_csv(&mut csv, "", &results).unwrap();
        assert!(String::from_utf8(csv).unwrap().trim_end().ends_with(",0.6875,other timers"));
    }

    #[test]
    fn rows_for_programs_say_what_was_compared_and_whether_it_held() {
        let (mut csv, mut json) = (Vec::new(), Vec::new());
        write_verdicts_csv(&mut csv, "c0ffee", &results()).unwrap();
        write_verdicts_json_lines(&mut json, "c0ffee", &results()).unwrap();
        let lines: Vec<serde_json::Value> =
            str::from_utf8(&json).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut csv = csv::Reader::from_reader(csv.as_slice());
        let header = csv.headers().unwrap().clone();
        let rows: Vec<_> = csv.records().map(Result::unwrap).collect();
        assert_eq!((rows.len(), lines.len()), (2, 2));
        let field = |row: usize, name| &rows[row][header.iter().position(|column| column == name).unwrap()];
        assert_eq!((field(1, "relation"), field(0, "relation")), (">", ">="));
        assert_eq!((field(1, "held"), field(0, "held")), ("true", "false"));
        assert_eq!((field(1, "metric"), field(1, "above_value")), ("throughput", "33.0"));
        assert_eq!((field(0, "clients"), field(0, "below_value")), ("180", "2.0"));
        for (row, line) in lines.iter().enumerate() {
            assert_eq!(line["ratio"].to_string(), field(row, "ratio"));
            assert!(line["ratio_low"].as_f64() < line["ratio"].as_f64());
            assert!(line["ratio"].as_f64() < line["ratio_high"].as_f64());
        }
    }
}
