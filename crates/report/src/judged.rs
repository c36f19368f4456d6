//! Values from the tables of a paper beside the measured ones.

use std::fmt::Write;

use coapace_lab::number::{significant, significant_or_dash};
use coapace_lab::papers::{nearness, witnesses};

use super::html::{escape, folded, headings, table};
use super::tables::{WORST, mechanism};
use super::view::{Tabled, View};

/// Returns a summary of the papers' tables, followed by their values, the worst first. All but the first values are
/// folded. Returns `None` if no value is from a table.
pub(super) fn tables(view: &View) -> Option<String> {
    let tabled = view.tabled();
    if tabled.is_empty() {
        return None;
    }
    let (worst, others) = tabled.split_at(tabled.len().min(WORST));
    let html = summary(&tabled) + &rows(worst);
    if others.is_empty() {
        return Some(html);
    }
    let beyond = others.iter().filter(|one| !one.judged.within()).count();
    let line = format!("The other {} values, {beyond} of them beyond the factor", others.len());
    Some(html + &folded(&line, &rows(others)))
}

fn summary(tabled: &[Tabled]) -> String {
    let mut html = String::from("<tbody>");
    let judged: Vec<_> = tabled.iter().map(|one| one.judged).collect();
    for near in nearness(&judged) {
        let _ = write!(
            html,
            "<tr><td>{}</td><td>{} of {}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&near.table.title),
            near.within,
            near.values,
            near.table.factor,
            significant_or_dash(near.largest, 3),
            escape(&near.table.why)
        );
    }
    let head = headings(["Table", "Within", "Factor asked for", "Largest met", "What differs"]);
    let mut html = table("comparison", &head, &(html + "</tbody>"));
    for line in witnesses(&judged) {
        let _ = write!(html, "<p>{}</p>", escape(&line));
    }
    html
}

fn rows(tabled: &[Tabled]) -> String {
    let titled = tabled.iter().any(|one| !one.title.is_empty());
    let has_witness = tabled.iter().any(|one| one.judged.witness.is_some());
    let columns = ["Mechanism", "Metric", "Published", "Measured", "Factor", "Verdict"].into_iter();
    let columns = columns.chain(["Witness", "By witness"].into_iter().filter(|_| has_witness));
    let mut html = String::from("<tbody>");
    for Tabled { title, mechanism: number, judged } in tabled {
        let conditions = if titled { format!("<td>{}</td>", escape(title)) } else { String::new() };
        let value = judged.value;
        let word = if judged.within() { "within" } else { "<strong>beyond</strong>" };
        let witness = judged.witness_words().map(|words| format!("<td>{}</td>", escape(&words)));
        let witness = if has_witness { witness.concat() } else { String::new() };
        let _ = write!(
            html,
            "<tr>{conditions}{}<td>{}</td><td title=\"{}\">{}</td><td>{}</td><td>{}</td><td>{word}</td>{witness}</tr>",
            mechanism(*number, judged.result.cell.label()),
            escape(&value.metric.axis()),
            escape(&judged.table.title),
            significant(value.published, 4),
            significant_or_dash(value.measured, 4),
            significant_or_dash(value.factor(), 3)
        );
    }
    let head = headings(titled.then_some("Conditions").into_iter().chain(columns));
    table("comparison", &head, &(html + "</tbody>"))
}
