//! Figures of a paper's tables beside the measured ones.

use std::fmt::Write;

use coapace_lab::number::{significant, significant_or_dash};
use coapace_lab::papers::nearness;

use super::html::{escape, folded, headings, table};
use super::tables::{WORST, mechanism};
use super::view::{Tabled, View};

/// Returns a summary of each table and then its figures, the worst first, most of them folded; `None` if no figure is of a
/// table.
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
    let line = format!("The other {}, {beyond} of them beyond", others.len());
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
            near.figures,
            near.table.factor,
            significant_or_dash(near.largest, 3),
            escape(&near.table.why)
        );
    }
    let head = headings(["Table", "Within", "Factor asked for", "Largest met", "What differs"]);
    table("comparison", &head, &(html + "</tbody>"))
}

fn rows(tabled: &[Tabled]) -> String {
    let titled = tabled.iter().any(|one| !one.title.is_empty());
    let columns = ["Mechanism", "Figure", "Published", "Measured", "Factor", "Verdict"];
    let mut html = String::from("<tbody>");
    for Tabled { title, mechanism: number, judged } in tabled {
        let conditions = if titled { format!("<td>{}</td>", escape(title)) } else { String::new() };
        let figure = judged.figure;
        let word = if judged.within() { "within" } else { "<strong>beyond</strong>" };
        let _ = write!(
            html,
            "<tr>{conditions}{}<td>{}</td><td title=\"{}\">{}</td><td>{}</td><td>{}</td><td>{word}</td></tr>",
            mechanism(*number, judged.result.cell.label()),
            escape(&figure.metric.axis()),
            escape(&judged.table.title),
            significant(figure.published, 4),
            significant_or_dash(figure.measured, 4),
            significant_or_dash(figure.factor(), 3)
        );
    }
    let head = headings(titled.then_some("Conditions").into_iter().chain(columns));
    table("comparison", &head, &(html + "</tbody>"))
}
