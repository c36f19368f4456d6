//! Published rankings beside the measured values.

use super::style::{Look, aligned, wrapped};
use crate::number::significant_or_dash;
use crate::papers::verdict::{metrics, reasons, rules};
use crate::papers::{OrderVerdict, References, verdicts};
use crate::results::CellResult;
use crate::results::conditions::Conditions;

/// Returns the published rankings among `results`, a row for each; empty if there are none.
pub(super) fn table(results: &[CellResult], references: &References, look: Look) -> String {
    let verdicts = verdicts(results, references);
    if verdicts.is_empty() {
        return String::new();
    }
    let conditions = Conditions::of(verdicts.iter().map(|verdict| &verdict.above.cell));
    let metrics = metrics(&verdicts);
    // Most papers order mechanisms without a ratio, and have no such column.
    let ratios = verdicts.iter().any(|verdict| verdict.order.times.is_some());
    let published = if ratios { &["published"][..] } else { &[] };
    let (before, after) = (["published order", "first", "second"], ["times", "95 %", "verdict"]);
    let header = before.iter().chain(published).chain(&after).copied();
    let row = |verdict: &OrderVerdict| {
        // With one metric the legend names it once.
        let metric = if metrics.len() > 1 { verdict.order.metric.title() } else { "" };
        let [first, second] = verdict.values.map(|value| significant_or_dash(value, 4));
        let published = if ratios { vec![verdict.published_times()] } else { Vec::new() };
        let (times, interval) = verdict.ratio_words();
        let claim = format!("{metric} {}", verdict.claim()).trim_start().to_owned();
        let cells = [vec![claim, first, second], published, vec![times, interval, verdict.words()]];
        conditions.values(&verdict.above.cell).into_iter().chain(cells.concat()).collect()
    };
    let rows = verdicts.iter().map(row).collect();
    // First, second, the published ratio if there is one, and times are aligned to the right.
    let numbers = conditions.varying.len() + 1..conditions.varying.len() + 4 + published.len();
    let axes = metrics.iter().map(|metric| metric.axis()).collect::<Vec<_>>().join(", ");
    let legend = format!(
        "First and second: {axes}. Times: first over second, the geometric mean over the seeds (the ratio of the means where one of \
         them is zero), with its 95 % interval."
    );
    let lines = [vec![legend], rules(&verdicts), reasons(&verdicts)].concat();
    let lines: String = lines.iter().map(|line| wrapped(line, look.width) + "\n").collect();
    format!("\n{}\n\n{lines}", aligned(conditions.header(header), rows, |place| numbers.contains(&place)))
}

#[cfg(test)]
mod tests {
    use crate::output::{Look, RowFormat, order_rows, terminal_table};
    use crate::papers::references::tests::parted;
    use crate::papers::verdict::tests::{claimed_times, held_and_not_held};
    use crate::papers::{References, Relation};

    #[test]
    fn published_rankings_are_printed_below_the_results_with_their_verdicts() {
        let (results, references) = held_and_not_held();
        let text = terminal_table(&results, &references, Look::PLAIN);
        let (_, orders) = text.split_once("published order").unwrap();
        let rows: Vec<Vec<&str>> = orders.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[2][..7], ["180", "a", "≥", "b", "1.100", "2.000", "0.548"]);
        assert_eq!(rows[2][8..], ["not", "held"]);
        assert_eq!(rows[3], ["60", "a", ">", "b", "33.00", "11.17", "2.96", "2.79–3.14", "held"]);
        assert!(text.contains("\nnot held, throughput a ≥ b: other timers\n"), "{text}");
        assert!(!text.contains("a > b: other timers"), "an order that held has no reason");
        assert!(text.contains("throughput in exchanges/s. Times:"), "{text}");
        let unclaimed = terminal_table(&results, &References::default(), Look::PLAIN);
        assert!(!unclaimed.contains("order"), "there is none");
    }

    #[test]
    fn a_published_ratio_is_printed_beside_the_measured_one() {
        let claimed = claimed_times(&[10.0, 11.0, 12.5], Relation::Times, 0.6875, &[30.0, 33.0, 36.0]);
        let (results, references) = parted(claimed);
        let text = terminal_table(&results, &references, Look::PLAIN);
        let row = text.lines().find(|line| line.contains("a = 0.6875 b")).unwrap();
        let row: Vec<_> = row.split_whitespace().collect();
        assert_eq!(row[4..], ["11.17", "33.00", "0.688", "0.338", "0.319–0.358", "not", "held"], "{text}");
        let mut csv = Vec::new();
        order_rows("", &results, &references).write(&mut csv, RowFormat::Csv).unwrap();
        assert!(String::from_utf8(csv).unwrap().contains(",=,b,0.6875,"));
    }
}
