//! The page's tables: readable without a script, sortable with one.

use std::fmt::Write;

use super::headline::MET;
use super::html::escape;
use super::view::{Compared, View, metrics};
use crate::results::number::{count, percent, significant, significant_or_dash};
use crate::results::{Metric, Ratio, Summary, Verdict};

/// Rows of the comparison that are always shown.
pub(super) const WORST: usize = 12;

/// All cells, a body for each group.
pub(super) fn results(view: &View) -> String {
    const FCT: [(&str, &str); 3] = [("Median FCT", "s"), ("10 %", "s"), ("90 %", "s")];
    const THROUGHPUT: [(&str, &str); 1] = [("Throughput", "exchanges/s")];
    const REST: [(&str, &str); 5] = [
        ("Retrans&shy;missions", "per client"),
        ("Unneces&shy;sary", "per client"),
        ("Drops", "per run"),
        ("Goodput", "kbit/s"),
        ("Fairness", "Jain"),
    ];
    let by_fct = view.has_fct();
    let first = if by_fct { &FCT[..] } else { &THROUGHPUT };
    let header: Vec<_> = [("Mechanism", "")].iter().chain(first).chain(&REST).collect();
    let mut html = String::from("<div class=\"scroll\"><table class=\"results\"><thead><tr>");
    for (name, unit) in &header {
        let _ = write!(
            html,
            "<th scope=\"col\"><button type=\"button\">{name}<small>{unit}</small></button></th>"
        );
    }
    html.push_str("</tr></thead>");
    for group in &view.groups {
        html.push_str("<tbody>");
        if !group.title.is_empty() {
            let (span, title) = (header.len(), escape(group.title));
            let _ = write!(
                html,
                "<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"{span}\">{title}</th></tr>"
            );
        }
        // A cost: seconds, or seconds per exchange.
        let cost = |summary: &Summary| match summary.fct.median {
            _ if !by_fct => (summary.throughput > 0.0).then(|| 1.0 / summary.throughput),
            median => median,
        };
        let best = group.cells.iter().filter_map(|cell| cost(&cell.summary)).fold(f64::INFINITY, f64::min);
        for cell in &group.cells {
            let summary = &cell.summary;
            let _ =
                write!(html, "<tr data-m=\"{}\">{}", cell.mechanism, mechanism(cell.mechanism, cell.name));
            let best = if cost(summary).is_some_and(|cost| cost <= best) { " class=\"best\"" } else { "" };
            let fct = [summary.fct.median, summary.fct.p10, summary.fct.p90];
            let first = if by_fct { &fct[..] } else { &[Some(summary.throughput)] };
            for (place, value) in first.iter().enumerate() {
                let class = if place == 0 { best } else { "" };
                number(&mut html, class, *value, &significant_or_dash(*value, 4));
            }
            for value in [summary.retransmissions_per_client, summary.unnecessary_per_client, summary.drops] {
                number(&mut html, "", Some(value), &count(value));
            }
            let goodput = summary.goodput_bps / 1000.0;
            number(&mut html, "", Some(goodput), &significant(goodput, 3));
            number(
                &mut html,
                "",
                summary.jain,
                &summary.jain.map_or_else(|| "–".into(), |jain| format!("{jain:.3}")),
            );
            html.push_str("</tr>");
        }
        html.push_str("</tbody>");
    }
    html.push_str("</table></div>");
    html
}

/// What each mechanism of the mixes had; nothing if there are none.
pub(super) fn populations(view: &View) -> Option<String> {
    const HEADER: [(&str, &str); 8] = [
        ("Mix", ""),
        ("Of which", ""),
        ("Clients", ""),
        ("Share", "of the throughput"),
        ("Relative share", "1 is fair"),
        ("Retrans&shy;missions", "per client"),
        ("Exchange time", "mean, s"),
        ("Fairness", "Jain, its own"),
    ];
    let mut html = String::from("<div class=\"scroll\"><table class=\"results\"><thead><tr>");
    for (name, unit) in HEADER {
        let _ = write!(
            html,
            "<th scope=\"col\"><button type=\"button\">{name}<small>{unit}</small></button></th>"
        );
    }
    html.push_str("</tr></thead><tbody>");
    let mut rows = 0;
    for (title, cell) in view.cells().filter(|(_, cell)| cell.result.is_mix()) {
        for own in &cell.summary.populations {
            rows += 1;
            let gap = if title.is_empty() { "" } else { " · " };
            let mix = mechanism(cell.mechanism, &format!("{}{gap}{title}", cell.name));
            let _ =
                write!(html, "<tr data-m=\"{}\">{mix}<td>{}</td>", cell.mechanism, escape(&own.mechanism));
            number(&mut html, "", Some(f64::from(own.clients)), &own.clients.to_string());
            let dash = || "–".to_owned();
            let share = own.share.map_or_else(dash, |share| format!("{:.1}\u{a0}%", share * 100.0));
            number(&mut html, "", own.share, &share);
            let relative = own.relative_share.map_or_else(dash, |share| format!("{share:.2}"));
            number(&mut html, "", own.relative_share, &relative);
            let retransmissions = own.retransmissions_per_client;
            number(&mut html, "", Some(retransmissions), &count(retransmissions));
            number(&mut html, "", own.exchange_time_s, &significant_or_dash(own.exchange_time_s, 3));
            number(&mut html, "", own.jain, &own.jain.map_or_else(dash, |jain| format!("{jain:.3}")));
            html.push_str("</tr>");
        }
    }
    html.push_str("</tbody></table></div>");
    (rows > 0).then_some(html)
}

/// Published figures beside measured ones, the worst met first; the well met can be unfolded.
pub(super) fn comparison(compared: &[Compared]) -> String {
    // The axis of the bars: at least twice what counts as met, and no wider than one outlier should make it.
    let largest =
        compared.iter().filter_map(Compared::error).map(f64::abs).fold(2.0 * MET, f64::max).min(0.5);
    let metrics = metrics(compared);
    let (worst, others) = compared.split_at(compared.len().min(WORST));
    let mut html = comparison_rows(worst, &metrics, largest);
    if !others.is_empty() {
        // The first of them is off by most: rounded up, so that the sentence holds.
        let within = others[0].error().map_or(0.0, |error| (error.abs() * 1000.0).ceil() / 10.0);
        let (count, rows) = (others.len(), comparison_rows(others, &metrics, largest));
        let _ = write!(
            html,
            "<details><summary>The other {count}, each within {within:.1} %</summary>{rows}</details>"
        );
    }
    html
}

/// The metric stands in the header if there is one, in each row if there are several.
fn comparison_rows(compared: &[Compared], metrics: &[Metric], largest: f64) -> String {
    let titled = compared.iter().any(|c| !c.title.is_empty());
    let mut html = String::from("<div class=\"scroll\"><table class=\"comparison\"><thead><tr>");
    html.push_str(if titled { "<th scope=\"col\">Conditions</th>" } else { "" });
    let (metric, unit) = match metrics {
        [metric] => ("", metric.unit()),
        _ => ("<th scope=\"col\">Metric</th>", ""),
    };
    let _ = write!(
        html,
        "<th scope=\"col\">Mechanism</th>{metric}<th scope=\"col\">Published<small>{unit}</small></th>\
         <th scope=\"col\">Measured<small>{unit}</small></th><th scope=\"col\">Error</th>\
         <th scope=\"col\" class=\"axis\">−{0:.0} %<i></i>+{0:.0} %</th></tr></thead><tbody>",
        largest * 100.0
    );
    for c in compared {
        html.push_str("<tr>");
        if titled {
            let _ = write!(html, "<td>{}</td>", escape(c.title));
        }
        html.push_str(&mechanism(c.mechanism, c.name));
        if metrics.len() > 1 {
            let _ = write!(html, "<td>{}</td>", c.figure.metric.axis());
        }
        let published = significant(c.figure.published, 4);
        let _ = write!(html, "<td title=\"{}\">{published}</td>", escape(c.source));
        let _ = write!(html, "<td>{}</td>", significant_or_dash(c.figure.measured, 4));
        match c.error() {
            Some(error) => {
                let met = if error.abs() <= MET { "met" } else { "missed" };
                // In percent of the cell's width; the middle is no error.
                let width = (error.abs() / largest).min(1.0) * 50.0;
                let left = if error < 0.0 { 50.0 - width } else { 50.0 };
                let band = MET / largest * 50.0;
                let _ = write!(
                    html,
                    "<td>{}</td><td class=\"bar\"><span class=\"band\" style=\"left:{:.2}%;width:{:.2}%\"></span>\
                     <span class=\"{met}\" style=\"left:{left:.2}%;width:{width:.2}%\"></span></td>",
                    percent(error),
                    50.0 - band,
                    2.0 * band
                );
            }
            None => html.push_str("<td>–</td><td>not finished</td>"),
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
    html
}

/// Published orders and ratios, the worst first; when there are many, those that held can be unfolded.
pub(super) fn orders(verdicts: &[(&str, Verdict)]) -> String {
    let (held, not_held): (Vec<_>, Vec<_>) = verdicts.iter().partition(|(_, verdict)| verdict.held());
    if not_held.len() + held.len() <= WORST {
        return order_rows(&[not_held, held].concat());
    }
    let not_held = if not_held.is_empty() { String::new() } else { order_rows(&not_held) };
    let (count, held) = (held.len(), order_rows(&held));
    format!("{not_held}<details><summary>The {count} that held</summary>{held}</details>")
}

fn order_rows(verdicts: &[&(&str, Verdict)]) -> String {
    let titled = verdicts.iter().any(|(title, _)| !title.is_empty());
    let mut html = String::from("<div class=\"scroll\"><table class=\"comparison\"><thead><tr>");
    html.push_str(if titled { "<th scope=\"col\">Conditions</th>" } else { "" });
    let ratios = verdicts.iter().any(|(_, verdict)| verdict.order.times.is_some());
    let published = if ratios { "<th scope=\"col\">Published</th>" } else { "" };
    let _ = write!(
        html,
        "<th scope=\"col\">Order</th><th scope=\"col\">First</th><th scope=\"col\">Second</th>{published}\
         <th scope=\"col\">Times</th><th scope=\"col\">95 %</th><th scope=\"col\">Verdict</th></tr></thead><tbody>"
    );
    for (title, verdict) in verdicts {
        let conditions = if titled { format!("<td>{}</td>", escape(title)) } else { String::new() };
        let [first, second] = verdict.figures.map(|figure| significant_or_dash(figure, 4));
        let (times, interval) = verdict.ratio.map_or_else(|| ("–".into(), "–".into()), Ratio::words);
        let published =
            if ratios { format!("<td>{}</td>", verdict.published_times()) } else { String::new() };
        let why = match verdict.order.why.as_str() {
            "" => String::new(),
            why => format!("<small>{}</small>", escape(why)),
        };
        let word = match verdict.word() {
            "held" => "held".to_owned(),
            word => format!("<strong>{word}</strong>{why}"),
        };
        let _ = write!(
            html,
            "<tr>{conditions}<th scope=\"row\" title=\"{}\">{}</th><td>{first}</td><td>{second}</td>{published}<td>{times}</td>\
             <td>{interval}</td><td>{word}</td></tr>",
            escape(&verdict.order.metric.axis()),
            escape(&verdict.claim())
        );
    }
    html.push_str("</tbody></table></div>");
    html
}

pub(super) fn mechanism(number: usize, name: &str) -> String {
    let name = escape(name);
    format!(
        "<th scope=\"row\"><span class=\"mechanism\"><i class=\"key\" data-m=\"{number}\"></i>{name}</span></th>"
    )
}

/// A cell that sorts by its value; what is not known sorts last.
pub(super) fn number(html: &mut String, class: &str, value: Option<f64>, text: &str) {
    let _ = write!(html, "<td{class} data-value=\"{}\">{text}</td>", value.unwrap_or(f64::MAX));
}
