//! A paper's published results beside the measured ones, as a summary of a few lines and as a page of Markdown.

use std::fmt::Write;

use coapace_scenario::naming::TCP;

use crate::number::{percent, significant_or_dash};
use crate::papers::{
    Compared, Judged, Nearness, OrderOutcome, OrderVerdict, Paper, PaperTable, References, count, judged,
    nearness, rules, tally, tally_by_claim, verdicts, witnesses,
};
use crate::results::CellResult;
use crate::results::conditions::Conditions;

impl Paper {
    /// Returns a few lines on how far measured values and rankings agree with the published ones.
    pub fn summary(&self, results: &[CellResult], references: &References) -> String {
        let compared: Vec<_> = results.iter().filter(|result| !references.plain(result).is_empty()).collect();
        let (judged, verdicts) = (judged(results, references), verdicts(results, references));
        let mut lines = Vec::new();
        // Papers may have values in tables and rankings alone, which have lines of their own.
        if !compared.is_empty() {
            lines.push(format!("{} published values: {}", self.key, near(&compared, references)));
        }
        lines.extend(
            nearness(&judged).iter().map(|table: &Nearness| format!("{} {}", self.key, table.words())),
        );
        if !verdicts.is_empty() {
            lines.extend(tally_by_claim(&verdicts).iter().map(|line| format!("{} {line}", self.key)));
            lines.push(format!("{} published orders: {}", self.key, tally(&verdicts)));
        }
        lines.join("\n")
    }

    /// Returns a page of Markdown: the counts of agreement in a table of one row, then every published value and every ranking
    /// beside the measured ones, in the sequence of the paper's files. `command` is the command that prints the page.
    ///
    /// # Errors
    /// Returns one line about the error in the paper's folder.
    pub fn markdown(
        &self,
        command: &str,
        results: &[CellResult],
        references: &References,
    ) -> Result<String, String> {
        let source = self.source()?;
        let mut page = format!(
            "# {}\n\n{}. This page is what\n\n    {command}\n\nwrites, with ",
            source.title, source.source
        );
        let _ = write!(page, "{}.\n\n{COUNTS}\n{}", repetitions(results), self.counts(results, references));
        page += &plain_values(results, references);
        page += &tables(results, references);
        page += &orders(results, references);
        Ok(page)
    }

    /// Returns the paper's row in a table of all papers: its values, how many of them agree, and the verdicts on its rankings.
    fn counts(&self, results: &[CellResult], references: &References) -> String {
        let plain: Vec<_> = results.iter().filter(|result| !references.plain(result).is_empty()).collect();
        let (judged, verdicts) = (judged(results, references), verdicts(results, references));
        let values = plain.len() + judged.len();
        let mut met = Vec::new();
        if !plain.is_empty() {
            met.push(near(&plain, references));
        }
        if !judged.is_empty() {
            let within = judged.iter().filter(|one| one.within()).count();
            met.push(format!("{within} of {} within the factor of their table", judged.len()));
        }
        let orders = (OrderOutcome::ALL.into_iter())
            .map(|outcome| (count(&verdicts, outcome), outcome.word()))
            .filter(|&(count, _)| count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect::<Vec<_>>();
        let values = if values == 0 { "–".to_owned() } else { values.to_string() };
        row([format!("`{}`", self.key), values, listed(&met, "; "), listed(&orders, ", ")])
    }
}

/// Returns a text on how many of these results are near the published ones. UDP and TCP are counted separately if there
/// are both.
fn near(results: &[&CellResult], references: &References) -> String {
    // Apart, because the values of TCP depend on a stack that papers hardly describe.
    let (tcp, udp): (Vec<_>, Vec<_>) = results.iter().partition(|result| result.cell.label() == TCP);
    let share = |results: &[_], bound| share(results, references, bound);
    let all = share(results, Compared::MET);
    if tcp.is_empty() {
        return all;
    }
    // Wider than `Compared::MET`: docs/reproductions.md counts the values within these.
    format!("{all}; UDP: {}; TCP: {}", share(&udp, 0.12), share(&tcp, 0.15))
}

/// Returns a text on how many of these results are within `bound` of the published ones, such as `3 of 4 within 5 %`.
fn share(results: &[&CellResult], references: &References, bound: f64) -> String {
    let error =
        |result: &&&CellResult| references.relative_error(result).is_some_and(|error| error.abs() <= bound);
    let within = results.iter().filter(error).count();
    format!("{within} of {} within {:.0} %", results.len(), bound * 100.0)
}

/// The header of a table with one row for each paper.
const COUNTS: &str = "| paper | values | met | orders and ratios |\n|---|--:|---|---|";

/// Returns the parts joined in a line, or a dash if there are none.
fn listed(parts: &[String], separator: &str) -> String {
    if parts.is_empty() { "–".to_owned() } else { parts.join(separator) }
}

/// Returns the number of seeds as text: `20 seeds`, or `20 to 40 seeds`.
fn repetitions(results: &[CellResult]) -> String {
    let counts = || results.iter().map(|result| result.runs.len());
    match (counts().min().unwrap_or(0), counts().max().unwrap_or(0)) {
        (least, most) if least == most => format!("{least} seeds"),
        (least, most) => format!("{least} to {most} seeds"),
    }
}

fn row(cells: impl IntoIterator<Item = String>) -> String {
    // A bare `|` would end the cell of the table.
    let cells: Vec<_> = cells.into_iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |\n", cells.join(" | "))
}

/// Returns a Markdown table. Columns from number `numbers` on are aligned to the right.
fn table(header: &[&str], numbers: usize, rows: impl Iterator<Item = Vec<String>>) -> String {
    // A colon at the end aligns a column to the right.
    let rule = (0..header.len()).map(|place| if place < numbers { "---" } else { "--:" });
    let mut text = row(header.iter().map(|&name| name.to_owned()))
        + &format!("|{}|\n", rule.collect::<Vec<_>>().join("|"));
    text.extend(rows.map(row));
    text
}

/// Returns a table of the published values that are not judged by the factor of a paper's table, each with its relative
/// error.
fn plain_values(results: &[CellResult], references: &References) -> String {
    let own: Vec<_> = results.iter().filter(|result| !references.plain(result).is_empty()).collect();
    if own.is_empty() {
        return String::new();
    }
    let conditions = Conditions::of(own.iter().map(|result| &result.cell));
    let rows = own.iter().flat_map(|result| {
        references.plain(result).into_iter().map(|value| {
            let error = value.relative_error().map_or_else(|| "–".to_owned(), percent);
            let values = [Some(value.published), value.measured].map(|value| significant_or_dash(value, 4));
            let named = [result.cell.label().to_owned(), value.metric.axis()];
            conditions.values(&result.cell).into_iter().chain(named).chain(values).chain([error]).collect()
        })
    });
    let columns = conditions.header(["mechanism", "metric", "published", "measured", "error"]);
    format!("\n## Values\n\n{}", table(&columns, columns.len() - 3, rows))
}

/// Returns, for each table of a paper whose values are judged by a factor, a section of Markdown: how many values are
/// within the factor, and a table of the published and measured values.
fn tables(results: &[CellResult], references: &References) -> String {
    let mut judged = judged(results, references);
    let place = |one: &Judged| results.iter().position(|result| std::ptr::eq(result, one.result));
    // By table first, so that `chunk_by` below finds all values of a table together.
    judged.sort_by_key(|one| (one.table.title.clone(), place(one)));
    let mut text = String::new();
    for own in judged.chunk_by(|a, b| a.table.title == b.table.title) {
        // A chunk is never empty.
        let PaperTable { title, factor, runs, why, witness: _ } = own[0].table;
        let within = own.iter().filter(|one| one.within()).count();
        let why = if why.is_empty() { String::new() } else { format!(" Differences: {why}.") };
        let conditions = Conditions::of(own.iter().map(|one| &one.result.cell));
        let has_witness = own.iter().any(|one| one.witness.is_some());
        let rows = own.iter().map(|one| {
            let [witness, by_witness] = one.witness_words().map(|words| has_witness.then_some(words));
            let [published, measured] =
                [Some(one.value.published), one.value.measured].map(|value| significant_or_dash(value, 4));
            let values = [published].into_iter().chain(witness).chain([measured]);
            let factor = significant_or_dash(one.value.factor(), 3);
            let quantile = runs.map(|_| one.quantile().map_or_else(|| "–".to_owned(), quantile_words));
            let named = [one.result.cell.label().to_owned(), one.value.metric.axis()];
            let values = conditions.values(&one.result.cell).into_iter().chain(named).chain(values);
            values.chain([factor, one.word().to_owned()]).chain(by_witness).chain(quantile).collect()
        });
        let [witness, by_witness] = WITNESS.map(|name| has_witness.then_some(name));
        let columns = ["mechanism", "metric", "published"].into_iter().chain(witness);
        let columns =
            columns.chain(["measured", "factor", ""]).chain(by_witness).chain(runs.map(|_| "quantile"));
        let columns = conditions.header(columns);
        // All values are of one table, so there is one witness at most.
        let witness = witnesses(own).pop().map_or_else(String::new, |line| format!(" {line}"));
        let chance = runs.map_or_else(String::new, |runs| {
            let quantiles = own.iter().filter_map(Judged::quantile);
            // The middle 95 % holds 95 % of quantiles if the published runs are runs like ours.
            let inside = quantiles.filter(|quantile| (0.025..=0.975).contains(quantile)).count();
            let repeated: f64 = own.iter().filter_map(Judged::repeated).sum();
            format!(
                " A published value is the mean of {runs} runs. Quantile is its place among means of {runs} of ours, drawn at random: {inside} \
                 of {} are in the middle 95 %, where chance may be all that differs. On average {repeated:.1} of these means are within the \
                 factor of our own values.",
                own.len()
            )
        });
        let _ = write!(
            text,
            "\n## {title}\n\n{within} of {} within a factor of {factor}.{why}{witness}{chance}\n\n{}",
            own.len(),
            table(&columns, conditions.varying.len() + 2, rows)
        );
    }
    text
}

/// The headers of two columns: the value of an independent witness, such as another simulator, and the verdict if this
/// value replaces the published one.
pub(super) const WITNESS: [&str; 2] = ["witness", "by witness"];

/// Returns a quantile as text, to two decimals.
fn quantile_words(quantile: f64) -> String {
    // 10,000 draws leave a standard error of up to 0.005, so two decimals are enough.
    match quantile {
        ..0.01 => "< 0.01".to_owned(),
        0.99.. => "> 0.99".to_owned(),
        _ => format!("{quantile:.2}"),
    }
}

/// Returns every published ranking and ratio, the rules of judgement, and the reasons why some did not hold.
fn orders(results: &[CellResult], references: &References) -> String {
    let mut verdicts = verdicts(results, references);
    if verdicts.is_empty() {
        return String::new();
    }
    let rules = rules(&verdicts).join(" ");
    let place =
        |verdict: &OrderVerdict| results.iter().position(|result| std::ptr::eq(result, verdict.above));
    // The page follows the files of the paper. `verdicts` has the worst first.
    verdicts.sort_by_key(place);
    let conditions = Conditions::of(verdicts.iter().map(|verdict| &verdict.above.cell));
    let rows = verdicts.iter().map(|verdict| {
        let (times, interval) = verdict.ratio_words();
        let claim = format!("{} {}", verdict.order.metric.title(), verdict.claim());
        let values = verdict.values.map(|value| significant_or_dash(value, 4));
        let values = conditions.values(&verdict.above.cell).into_iter().chain([claim]).chain(values);
        values.chain([times, interval, verdict.words(), verdict.reason().to_owned()]).collect()
    });
    let columns = ["published order", "first", "second", "times", "95 %", "verdict", "likely reason"];
    let columns = conditions.header(columns);
    format!(
        "\n## Orders and ratios\n\nTimes is the first value over the second: the geometric mean over the seeds (the ratio of the means where one \
         of them is zero), with its 95 % interval. {rules}\n\n{}",
        table(&columns, columns.len(), rows)
    )
}

#[cfg(test)]
mod tests {
    use crate::experiment::conduct;
    use crate::papers::judged;
    use crate::papers::tests::paper;

    #[test]
    fn the_page_of_a_reproduction_has_all_counts_published_values_and_rankings() {
        let text = "[tables.3]\ntitle = 'Table 3'\nfactor = 1.5\nruns = 8\nwhy = 'other radios'\nwitness = 'another simulator'\n\
                    [[experiments]]\nset = { loss = '4 %' }\nclaims = [\n\
                    { metric = 'throughput', says = 'plain > ours', why = 'a reason' }]";
        let paper = paper(
            text,
            "table,loss,mechanism,throughput,witness\n3,4 %,ours,650,640 to 660\n,4 %,plain,1,\n",
        );
        let (trials, references) = paper.trials(true, &[]).unwrap();
        let results = conduct(&trials, 1, &|| ());
        let page = paper.markdown("coapace reproduce k", &results, &references).unwrap();
        let lines: Vec<_> = page.lines().collect();
        assert_eq!(lines[..5], ["# t", "", "s. This page is what", "", "    coapace reproduce k"]);
        assert!(
            lines.contains(
                &"| `k` | 2 | 0 of 1 within 5 %; 1 of 1 within the factor of their table | 1 not held |"
            ),
            "{page}"
        );
        let row = |start: &str| {
            lines.iter().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{page}"))
        };
        assert!(row("| default |").starts_with("| default | throughput in exchanges/s | 1.000 | "), "{page}");
        assert!(row("| cocoa-i |").contains(" | 650.0 | 640–660 | "), "{page}");
        assert!(row("| cocoa-i |").contains(" | within | 1."), "{page}");
        assert!(
            page.contains(
                "1 of 1 within a factor of 1.5. Differences: other radios. Witness: another simulator. 1 of its 1 values are within the \
                 factor of ours. A published"
            ),
            "{page}"
        );
        assert!(row("| throughput default > cocoa-i |").ends_with(" | not held | a reason |"), "{page}");
        assert!(page.contains("a > b holds if the whole interval of a/b is above 1."), "{page}");
    }

    #[test]
    fn the_summary_of_a_reproduction_has_a_line_for_each_published_table() {
        let tables = "[tables.3]\ntitle = 'Table 3'\nfactor = 1.5\nwhy = 'other radios'\n";
        let paper = paper(tables, "table,loss,mechanism,throughput\n3,4 %,ours,650\n");
        let (trials, references) = paper.trials(true, &[]).unwrap();
        let results = conduct(&trials, 1, &|| ());
        let factor = judged(&results, &references)[0].value.factor().unwrap();
        assert!(factor < 1.5, "{factor}");
        let summary = paper.summary(&results, &references);
        assert!(summary.starts_with("k Table 3: 1 of 1 within a factor of 1.5, largest 1.0"), "{summary}");
        assert!(summary.ends_with("; other radios"), "{summary}");
    }
}
