//! Verdicts on published orders, written down: a table for the terminal, and rows for programs.

use std::collections::BTreeSet;
use std::io;

use comfy_table::{CellAlignment, ContentArrangement, Table};

use super::conditions::Conditions;
use super::number::{significant, significant_or_dash};
use super::sheet::{Always, Sheet, Value};
use super::table::STYLE;
use super::verdict::{metrics, reasons};
use super::{CellResult, Lines, Ratio, Relation, Verdict, verdicts};

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
    pub fn published_times(&self) -> String {
        match (self.order.relation, self.order.times) {
            (_, None) => "–".to_owned(),
            (Relation::Times, Some(times)) => significant(times, 3),
            (relation, Some(times)) => format!("{relation} {}", significant(times, 3)),
        }
    }
}

impl Ratio {
    /// The ratio and its interval; a dash for the interval of one seed.
    pub fn words(self) -> (String, String) {
        let number = |x: f64| if x == f64::INFINITY { "∞".to_owned() } else { significant(x, 3) };
        let interval = self
            .interval
            .map_or_else(|| "–".to_owned(), |(low, high)| format!("{}–{}", number(low), number(high)));
        (number(self.mean), interval)
    }
}

/// How a value is found in a verdict.
type Of = fn(&Verdict<'_>) -> Value;

/// The columns of verdicts.
pub(super) const COLUMNS: &[Always<Of>] = &[
    ("scenario", "The scenario's name.", |it| (&it.above.cell.scenario).into()),
    ("workload", "The kind of the workload.", |it| (&it.above.cell.workload).into()),
    ("clients", "How many clients there are.", |it| Value::Count(it.above.cell.clients.into())),
    ("metric", "What is compared.", |it| it.order.metric.name().into()),
    ("above", "The mechanism that is named first.", |it| (&it.above.cell.mechanism).into()),
    ("relation", "`>`, `>=`, or `=` of a ratio.", |it| it.order.relation.sign().into()),
    ("below", "The other mechanism.", |it| (&it.order.than).into()),
    ("times", "The published ratio; with `>` or `>=`, the least one.", |it| it.order.times.into()),
    ("above_value", "The figure of the first, in the metric's unit.", |it| it.figures[0].into()),
    ("below_value", "The figure of the second.", |it| it.figures[1].into()),
    ("ratio", "The first by the second, seed by seed: the geometric mean.", |it| {
        it.ratio.map(|it| it.mean).into()
    }),
    ("ratio_low", "The lower end of its 95 % confidence interval.", |it| {
        it.ratio.and_then(|it| it.interval).map(|it| it.0).into()
    }),
    ("ratio_high", "The upper end.", |it| it.ratio.and_then(|it| it.interval).map(|it| it.1).into()),
    ("held", "Whether the order held.", |it| Value::Flag(it.held())),
    ("runs", "How many seeds were run.", |it| Value::Count(it.above.runs.len() as u64)),
    ("source", "Where it is printed.", |it| {
        it.above.published.as_ref().map_or(Value::Nothing, |it| (&it.source).into())
    }),
    ("why", "Why it is thought not to hold here.", |it| (&it.order.why).into()),
    ("scenario_hash", "The hash of the scenario with every knob set.", |it| {
        Value::Text(it.above.cell.scenario_hash.to_string())
    }),
];

/// Writes one row a published order among `results`, the worst first: the conditions, the figures of the two mechanisms,
/// the ratio with its 95 % interval, and whether the order held. `docs/results.md` has every column.
///
/// # Errors
/// Those of `out`.
pub fn write_verdicts(
    mut out: impl io::Write,
    lines: Lines,
    commit: &str,
    results: &[CellResult],
) -> io::Result<()> {
    enum Key<'a> {
        Fixed(Of),
        Knob(&'a str),
        Commit,
    }
    let knobs: BTreeSet<&str> =
        results.iter().flat_map(|result| result.cell.knobs.keys()).map(String::as_str).collect();
    let fixed = COLUMNS.iter().map(|(name, _, of)| ((*name).to_owned(), Key::Fixed(*of)));
    let knobs = knobs.into_iter().map(|name| (format!("knob.{name}"), Key::Knob(name)));
    let sheet = Sheet::new(fixed.chain([("commit".to_owned(), Key::Commit)]).chain(knobs));
    if lines == Lines::Csv {
        out.write_all(sheet.header(|_| false).as_bytes())?;
    }
    for verdict in verdicts(results) {
        let value = |key: &Key| match key {
            Key::Fixed(of) => of(&verdict),
            Key::Knob(name) => {
                verdict.above.cell.knobs.get(*name).map_or(Value::Nothing, |text| Value::number_or_text(text))
            }
            Key::Commit => commit.into(),
        };
        let row = if lines == Lines::Csv { sheet.csv(value, |_| false) } else { sheet.json(value) };
        out.write_all(row.as_bytes())?;
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
        write_verdicts(&mut csv, Lines::Csv, "", &results).unwrap();
        assert!(String::from_utf8(csv).unwrap().contains(",=,b,0.6875,"));
    }

    #[test]
    fn rows_for_programs_say_what_was_compared_and_whether_it_held() {
        let (mut csv, mut json) = (Vec::new(), Vec::new());
        write_verdicts(&mut csv, Lines::Csv, "c0ffee", &results()).unwrap();
        write_verdicts(&mut json, Lines::Json, "c0ffee", &results()).unwrap();
        let lines: Vec<serde_json::Value> =
            str::from_utf8(&json).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut csv = csv::Reader::from_reader(csv.as_slice());
        let header = csv.headers().unwrap().clone();
        let rows: Vec<_> = csv.records().map(Result::unwrap).collect();
        assert_eq!((rows.len(), lines.len()), (2, 2));
        let field = |row: usize, name| &rows[row][header.iter().position(|column| column == name).unwrap()];
        assert_eq!((field(1, "relation"), field(0, "relation")), (">", ">="));
        assert_eq!((field(1, "held"), field(0, "held")), ("true", "false"));
        assert_eq!((field(1, "metric"), field(1, "above_value")), ("throughput", "33"));
        assert_eq!((field(0, "clients"), field(0, "below_value")), ("180", "2"));
        for (row, line) in lines.iter().enumerate() {
            assert_eq!(line["ratio"].to_string(), field(row, "ratio"));
            assert!(line["ratio_low"].as_f64() < line["ratio"].as_f64());
            assert!(line["ratio"].as_f64() < line["ratio_high"].as_f64());
        }
    }
}
