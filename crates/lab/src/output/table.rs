//! Results as a table for the terminal.

mod block;
mod column;
mod live;
mod orders;
mod parts;
mod places;
mod sensitivity;
mod style;
mod values;

use std::collections::BTreeSet;
use std::fmt::Write;

use super::{Conclusion, gave_up};
use crate::lists::grouped;
use crate::papers::References;
use crate::results::conditions::Conditions;
use crate::results::{BOUNDS, CellResult, Metric, headline};
use block::TableBlock;
use column::{TableColumn, TableColumns};
pub(crate) use style::aligned;
pub use style::{Look, wrapped};

/// The header of the column of mechanisms.
const MECHANISM: &str = "mechanism";

/// Returns the conclusion in a few sentences, and an aligned table of `results`: a block for each condition, with a row for
/// each mechanism. Common conditions come first, and an explanation of the columns last.
///
/// A block lists published mechanisms first, then mechanisms of this project, others, and mechanisms without random timeouts,
/// each sorted from the best. If no condition has several mechanisms, there is one block, in the sequence of the results.
///
/// The table fits the width of its [`Look`]. A table that is too wide leaves out columns and lists them below. No word
/// is cut.
pub fn terminal_table(results: &[CellResult], references: &References, look: Look) -> String {
    if results.is_empty() {
        return "no results\n".into();
    }
    let conditions = Conditions::of(results.iter().map(|result| &result.cell));
    let groups = grouped(results, |a, b| a.cell.same_conditions(&b.cell));
    // Blocks of one row each would repeat the header for every row.
    let is_grouped = groups.iter().any(|group| group.len() > 1);
    let metric = headline(results);
    let blocks: Vec<TableBlock> = if is_grouped {
        groups.iter().map(|group| TableBlock::of(metric, &conditions, group)).collect()
    } else {
        vec![TableBlock::plain(results.iter().collect())]
    };
    let varying = if is_grouped { Conditions::default() } else { conditions.clone() };
    // The columns are the same in all blocks, so one block with places makes room for them in all.
    let has_places = blocks.iter().any(TableBlock::has_places);
    let columns = TableColumns::fitted(results, references, &varying, has_places, look);
    let tables: Vec<String> = blocks.iter().map(|block| block.text(metric, &columns, look)).collect();
    let sections = [
        live::table(results, references, look),
        parts::flows(results, look),
        parts::transfers(results, look),
        parts::populations(results, look),
        values::table(results, references, look),
        orders::table(results, references, look),
    ];
    let has_bounds = blocks.iter().any(|block| block.has_bounds(&columns));
    // The conclusion comes first, because many read no further.
    let above = [vec![conditions.describe_common()], vec![said(metric, results)]].concat();
    let above: String = above
        .into_iter()
        .filter(|text| !text.is_empty())
        .map(|text| wrapped(&text, look.width) + "\n\n")
        .collect();
    format!(
        "{above}{}\n{}\n{}",
        tables.join("\n"),
        wrapped(&legend(results, &columns, has_places, has_bounds, look), look.width),
        sections.concat()
    )
}

/// Returns sentences on the exchanges, clients or transfers that were given up, and on the best mechanism, a line for
/// each.
fn said(headline: Metric, results: &[CellResult]) -> String {
    // Only messages that arrived have a delay, so delivery comes first.
    let metrics = if headline == Metric::Delay { vec![Metric::Pdr, headline] } else { vec![headline] };
    let results: Vec<&CellResult> = results.iter().collect();
    let conclusions = metrics.into_iter().filter_map(|metric| Conclusion::of(metric, &results));
    let sentences = conclusions.flat_map(|conclusion| conclusion.sentences());
    gave_up(&results).into_iter().chain(sentences).collect::<Vec<_>>().join("\n")
}

/// Returns the legend of the table: the units of its metrics, and the meaning of its symbols.
fn legend(
    results: &[CellResult],
    columns: &TableColumns,
    has_places: bool,
    has_bounds: bool,
    look: Look,
) -> String {
    let phrase = |metrics: Vec<&Metric>| {
        let headers = metrics.iter().map(|metric| metric.header()).collect::<Vec<_>>().join(", ");
        match metrics[0].unit() {
            "" => format!("{headers} from 0 to 1"),
            "clients" => format!("{headers}: numbers of clients, summed over all seeds"),
            unit if unit.starts_with("per ") => format!("{headers} {unit}"),
            unit => format!("{headers} in {unit}"),
        }
    };
    // The legend explains only columns that are there.
    let shown: Vec<Metric> = columns.all.iter().filter_map(TableColumn::metric).collect();
    let units = grouped(&shown, |a, b| a.unit() == b.unit());
    let mut text = units.into_iter().map(phrase).collect::<Vec<_>>().join("; ") + ".";
    if results.iter().any(|result| result.runs.len() > 1) {
        text += " ±: half of the 95 % confidence interval over the seeds.";
    }
    if columns.has_bars() {
        let _ = write!(text, " Bars: the {}, from 0.", headline(results).title());
    }
    if has_places {
        let colour = if look.colours { ", in one colour" } else { "" };
        let _ = write!(
            text,
            "\n=: a tie{colour}. These mechanisms do not differ significantly from the best of them (paired t tests at 5 % for all \
             together, Holm 1979)."
        );
    }
    if has_bounds {
        let _ = write!(text, "\n{BOUNDS}");
    }
    if !columns.left_out.is_empty() {
        // Sorted, so that the list does not depend on the order in which columns were left out.
        let headers: BTreeSet<&str> = columns.left_out.iter().map(String::as_str).collect();
        let headers = headers.into_iter().collect::<Vec<_>>().join(", ");
        let _ = write!(text, "\nNot shown here: {headers}. A wider terminal has them, and --format csv.");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::slice;
    use std::sync::Arc;

    use super::*;
    use crate::experiment::Trial;
    use crate::papers::references::tests::sample_references;
    use crate::results::cell::tests::sample;
    use crate::results::contest::tests::result;
    use crate::results::summary::tests::{mixed, moving};
    use coapace_run::contender::Contender;
    use coapace_scenario::Scenario;

    /// Returns the table of results with the references of [`sample`].
    fn terminal_table(results: &[CellResult], look: Look) -> String {
        super::terminal_table(results, &sample_references(), look)
    }

    fn look(width: usize) -> Look {
        Look { width, colours: false }
    }

    fn two() -> [CellResult; 2] {
        let mut other = sample();
        other.cell.mechanism = "default".into();
        [sample(), other]
    }

    /// Makes results of mechanisms of all sections under two conditions.
    fn many() -> Vec<CellResult> {
        let names =
            ["default", "linux-rto", "ebb", "cocoa", "fasor-token:preset=libcoap-2019", "tcp", "peak-hopper"];
        let of = |clients: u32| {
            names.iter().zip(1_u32..).map(move |(name, slowness)| {
                let fct =
                    |seed: u32| f64::from(slowness * clients) + f64::from(seed * (slowness % 3 + 7)) / 10.0;
                result(name, clients, &[fct(1), fct(2), fct(5)])
            })
        };
        [100, 400].into_iter().flat_map(of).collect()
    }

    #[test]
    fn conditions_that_all_cells_share_are_above_the_table() {
        let text = terminal_table(&two(), look(200));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "bottleneck · continuous workload · 2 clients · buffer 2500 · delay_ms 200 · errors none"
        );
        assert!(lines[2].starts_with("2 of 8 clients gave up: "), "who gave up comes first: {text}");
        let row = |name: &str| lines.iter().find(|line| line.contains(name) && line.contains(" ±")).unwrap();
        assert!(row("cocoa:preset=draft-3,weak=1/4").contains("−5.6\u{a0}%"), "{text}");
        assert!(
            row("default").ends_with('–') && text.contains("Jain") && !text.contains("Not shown"),
            "{text}"
        );
    }

    #[test]
    fn at_every_width_no_line_of_the_table_is_too_long_and_no_word_is_cut() {
        let whole = |text: &str| -> BTreeSet<String> {
            let ends = |c: char| c.is_whitespace() || "█▏▎▍▌▋▊▉─.,;:".contains(c);
            text.split(ends).map(str::to_owned).collect()
        };
        let results = many();
        let words = whole(&terminal_table(&results, Look::PLAIN));
        for width in [80, 100, 120, 200] {
            let text = terminal_table(&results, look(width));
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= width, "{widest} at {width}:\n{text}");
            // The sentence on the hidden columns has words of its own.
            let (explained, _) = text.split_once("\nNot shown").unwrap_or((&text, ""));
            let cut: Vec<_> = whole(explained).into_iter().filter(|word| !words.contains(word)).collect();
            assert_eq!(cut, Vec::<String>::new(), "at {width}:\n{text}");
            let bars = text.lines().filter(|line| line.contains('█')).count();
            assert_eq!(bars, results.len(), "a bar a row: {text}");
        }
        let narrow = terminal_table(&results, look(80));
        let header =
            narrow.lines().find(|line| line.contains("median FCT") && line.contains(MECHANISM)).unwrap();
        let columns = header.split("  ").filter(|name| !name.trim().is_empty()).count();
        assert!(columns < 6, "beside the bar: {header}");
    }

    #[test]
    fn the_table_lists_published_mechanisms_first_with_the_best_on_top() {
        let text = terminal_table(&many(), look(100));
        let first = text.split("400 clients\n").next().unwrap();
        let place = |word: &str| first.rfind(word).unwrap_or_else(|| panic!("{word}: {text}"));
        let order = [
            "with dither",
            "default",
            "cocoa",
            "fasor-token",
            "peak-hopper",
            "Made here",
            "ebb",
            "Others",
            "tcp",
        ];
        assert!(order.map(place).is_sorted(), "{text}");
        assert!(
            place("tcp") < place("Without dither") && place("Without dither") < place("linux-rto"),
            "{text}"
        );
        assert!(
            text.contains("The safest choice is default: "),
            "a mechanism that wins by lock-step is not a choice: {text}"
        );
    }

    #[test]
    fn tied_mechanisms_have_the_same_rank_and_colour() {
        let results = [
            result("default", 1, &[20.0, 21.0, 22.0]),
            result("cocoa", 1, &[10.0, 11.0, 12.0]),
            result("fasor", 1, &[10.1, 11.1, 12.3]),
        ];
        let plain = terminal_table(&results, Look::PLAIN);
        assert!(!plain.contains('\u{1b}'), "{plain}");
        let coloured = terminal_table(&results, Look { colours: true, ..Look::PLAIN });
        let row =
            |name: &str| coloured.lines().find(|line| line.contains('█') && line.contains(name)).unwrap();
        let colour = |name| row(name).split('m').next().unwrap().to_owned();
        assert!(row("cocoa").contains(" 1= cocoa") && row("fasor").contains(" 1= fasor"), "{coloured}");
        assert!(row("default").contains(" 3  default"), "{coloured}");
        assert_eq!(colour("cocoa"), colour("fasor"));
        assert_ne!(colour("cocoa"), colour("default"));
        let mut bare = coloured;
        while let Some(start) = bare.find('\u{1b}') {
            let end = start + bare[start..].find('m').unwrap();
            bare.replace_range(start..=end, "");
        }
        assert_eq!(bare.replace(", in one colour", ""), plain, "colours change nothing else");
    }

    #[test]
    fn the_lower_bound_has_its_own_row_in_the_table() {
        let scenario = Arc::new(Scenario::load("nb-iot", &[]).unwrap());
        let trial = Trial::new(&scenario, Contender::parse("cocoa").unwrap(), 1);
        let mut results = two();
        let has_row = |results: &[CellResult]| {
            let text = super::terminal_table(results, &References::of(slice::from_ref(&trial)), look(100));
            text.lines().any(|line| line.trim_start().starts_with("bound  "))
        };
        assert!(!has_row(&results));
        for result in &mut results {
            result.cell = trial.cell();
        }
        assert!(has_row(&results));
    }

    #[test]
    fn a_narrow_terminal_hides_columns_with_a_remark_but_cuts_no_name() {
        let text = terminal_table(&two(), look(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("cocoa:preset=draft-3,weak=1/4") && text.contains("published"), "{text}");
        assert!(text.contains("Not shown here: ") && text.contains("goodput"), "{text}");
        let text = terminal_table(&two(), look(10));
        assert!(text.contains("cocoa:preset=draft-3,weak=1/4") && text.contains("median FCT"), "{text}");
    }

    #[test]
    fn workloads_without_an_end_show_throughput_instead_of_the_flow_completion_time() {
        let mut endless = two();
        for run in endless.iter_mut().flat_map(|result| &mut result.runs) {
            run.fct_s.clear();
        }
        let text = terminal_table(&endless, look(80));
        assert!(text.contains("throughput") && text.contains("2.000"), "{text}");
        assert!(!text.contains("FCT"), "{text}");
    }

    #[test]
    fn the_populations_of_a_mix_are_listed_below_the_table() {
        let mut mix = sample();
        mix.cell.mechanism = "a+b".into();
        mix.runs = vec![mixed(1), mixed(2)];
        let text = terminal_table(&[mix, sample()], look(80));
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(
            rows.contains(&vec!["a+b", "a", "2", "75.0", "%", "1.12", "10.0", "0.500", "1.000"]),
            "{text}"
        );
        assert!(rows.contains(&vec!["a+b", "b", "1", "25.0", "%", "0.75", "0", "0.500", "1.000"]), "{text}");
        assert!(
            !terminal_table(&two(), look(80)).contains("share: "),
            "results without a mix have no such table"
        );
    }

    #[test]
    fn populations_with_transfers_have_their_own_table() {
        let mut mix = sample();
        mix.cell.mechanism = "a+b".into();
        mix.runs = vec![moving(1), moving(2)];
        let text = terminal_table(&[mix], Look::PLAIN);
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        let expected =
            ["a+b", "b", "1", "33.3", "%", "0.67", "10.0", "20.0", "–", "80.0", "26.7", "%", "1.00"];
        assert!(rows.contains(&expected.to_vec()), "{text}");
        assert!(text.contains("kbit/s: goodput of a client") && !text.contains("exchange time"), "{text}");
    }

    #[test]
    fn an_empty_table_says_that_there_are_no_results() {
        assert_eq!(terminal_table(&[], look(80)), "no results\n");
    }
}
