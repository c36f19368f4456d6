//! Results of live runs beside simulated ones, in the terminal.

use super::MECHANISM;
use super::style::{Look, aligned, wrapped};
use crate::lists::{distinct, grouped};
use crate::number::significant_or_dash;
use crate::papers::References;
use crate::results::conditions::Conditions;
use crate::results::{CellResult, Metric, Mode, headline};

/// Returns a table with the main metric of every mechanism in every mode (simulated or live), and with the ratios of
/// live to simulated values; empty without live results.
pub(super) fn table(results: &[CellResult], references: &References, look: Look) -> String {
    // In the order of their first results, so that tables of the same command look alike.
    let modes = distinct(results.iter().map(|result| &result.cell.mode));
    let live: Vec<&Mode> = modes.iter().copied().filter(|mode| **mode != Mode::Simulated).collect();
    if live.is_empty() {
        return String::new();
    }
    let metric = headline(results);
    let conditions = Conditions::of(results.iter().map(|result| &result.cell));
    let has_published = results.iter().any(|result| references.value(&result.cell, metric).is_some());
    let header = conditions.varying.iter().cloned().chain([MECHANISM.to_owned()]);
    let header = header.chain(has_published.then(|| "published".to_owned()));
    let header = header.chain(modes.iter().map(ToString::to_string));
    let header = header.chain(live.iter().map(|mode| format!("{mode}/simulated")));
    let mut rows = Vec::new();
    let alike = |a: &&CellResult, b: &&CellResult| {
        a.cell.mechanism == b.cell.mechanism && a.cell.same_conditions(&b.cell)
    };
    for alike in grouped(results, alike) {
        // A group is never empty.
        let result = alike[0];
        let value = |mode: &Mode| {
            // A mode that lacks this mechanism has a dash.
            let cell = alike.iter().find(|other| other.cell.mode == *mode)?;
            Some(metric.estimate_in_all(&cell.runs)?.mean)
        };
        // A simulated value of 0 gives no finite ratio, which is shown as a dash.
        let ratio = |mode: &&Mode| {
            let ratio = value(mode).zip(value(&Mode::Simulated)).map(|(live, simulated)| live / simulated);
            significant_or_dash(ratio, 3)
        };
        let cells = conditions.values(&result.cell).into_iter().chain([result.cell.mechanism.clone()]);
        let cells = cells
            .chain(has_published.then(|| significant_or_dash(references.value(&result.cell, metric), 4)));
        let cells = cells.chain(modes.iter().map(|mode| significant_or_dash(value(mode), metric.digits())));
        rows.push(cells.chain(live.iter().map(ratio)).collect());
    }
    let words = conditions.varying.len() + 1;
    let legend = format!("{}{}.", metric.title(), unit(metric));
    format!("\n{}\n\n{}\n", aligned(header, rows, |place| place >= words), wrapped(&legend, look.width))
}

/// Returns the unit of a metric, preceded by a preposition.
fn unit(metric: Metric) -> String {
    if metric.unit().is_empty() { String::new() } else { format!(" in {}", metric.unit()) }
}

#[cfg(test)]
mod tests {
    use super::super::terminal_table;
    use super::*;
    use crate::papers::references::tests::sample_references;
    use crate::results::cell::tests::sample;

    #[test]
    fn the_table_of_live_runs_has_simulated_and_live_values_of_each_mechanism_and_their_ratios() {
        let mut simulated = sample();
        simulated.runs.iter_mut().flat_map(|run| &mut run.fct_s).for_each(|fct| *fct = Some(40.0));
        let mut live = simulated.clone();
        live.cell = live.cell.in_mode(Mode::LiveWith("libcoap".into()));
        live.runs.iter_mut().flat_map(|run| run.fct_s.iter_mut().flatten()).for_each(|fct| *fct *= 1.05);
        let mut text = table(&[simulated.clone(), live], &sample_references(), Look::PLAIN);
        text.retain(|c| c != '─');
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let header = ["mechanism", "published", "simulated", "live", "with", "libcoap", "live", "with"];
        assert_eq!(rows[1][..8], header, "{text}");
        assert_eq!(rows[3][1..], ["40.00", "40.00", "42.00", "1.05"], "{text}");
        assert!(!terminal_table(&[simulated], &sample_references(), Look::PLAIN).contains("simulated"));
    }
}
