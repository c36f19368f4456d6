//! Figures of a paper's tables beside the measured ones.

use std::fmt::Write;

use coapace_lab::results::nearness;
use coapace_lab::results::number::{significant, significant_or_dash};

use super::html::escape;
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
    let mut html = summary(&tabled) + &rows(worst);
    if !others.is_empty() {
        let beyond = others.iter().filter(|one| !one.judged.within()).count();
        let (count, rows) = (others.len(), rows(others));
        let _ = write!(
            html,
            "<details><summary>The other {count}, {beyond} of them beyond</summary>{rows}</details>"
        );
    }
    Some(html)
}

fn summary(tabled: &[Tabled]) -> String {
    let mut html = String::from(
        "<div class=\"scroll\"><table class=\"comparison\"><thead><tr><th scope=\"col\">Table</th>\
         <th scope=\"col\">Within</th><th scope=\"col\">Factor asked for</th><th scope=\"col\">Largest met</th>\
         <th scope=\"col\">What differs</th></tr></thead><tbody>",
    );
    let judged: Vec<_> = tabled.iter().map(|one| one.judged).collect();
    for table in nearness(&judged) {
        let _ = write!(
            html,
            "<tr><td>{}</td><td>{} of {}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            escape(&table.table.title),
            table.within,
            table.figures,
            table.table.factor,
            significant_or_dash(table.largest, 3),
            escape(&table.table.why)
        );
    }
    html.push_str("</tbody></table></div>");
    html
}

fn rows(tabled: &[Tabled]) -> String {
    let titled = tabled.iter().any(|one| !one.title.is_empty());
    let mut html = String::from("<div class=\"scroll\"><table class=\"comparison\"><thead><tr>");
    html.push_str(if titled { "<th scope=\"col\">Conditions</th>" } else { "" });
    html.push_str(
        "<th scope=\"col\">Mechanism</th><th scope=\"col\">Figure</th><th scope=\"col\">Published</th>\
         <th scope=\"col\">Measured</th><th scope=\"col\">Factor</th><th scope=\"col\">Verdict</th></tr></thead><tbody>",
    );
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
    html.push_str("</tbody></table></div>");
    html
}
