//! The tables of the page. They are readable without a script and sortable with one.

use std::fmt::Write;

use coapace_lab::lists::{capitalised, joined, listed};
use coapace_lab::number::{count, half_interval, percent, significant, significant_or_dash};
use coapace_lab::output::Conclusion;
use coapace_lab::papers::{OrderOutcome, OrderVerdict};
use coapace_lab::results::{CellResult, Contest, Metric, Placing, bound_of};

use super::headline::MET;
use super::html::{escape, folded, headings, sorting_headings, table};
use super::measure::{DIGITS, PageMetric, measures};
use super::view::{ComparisonRow, Conditioned, View, metrics};

/// The number of rows of a comparison that are always shown.
pub(super) const WORST: usize = 12;

/// Returns the table of all cells, a table body for each group, with every metric and its interval. The best value of a
/// group is bold, and so is every value that the seeds do not show to be worse.
pub(super) fn results(view: &View) -> String {
    let measures = measures(view);
    let metrics = measures.iter().map(|measure| measure.metric);
    let head = sorting_headings([("Mechanism", "")])
        + &sorting_headings(metrics.map(|metric| (capitalised(metric.title()), metric.unit())))
        + &sorting_headings([("Drops", "per run")]);
    let mut html = String::new();
    for group in &view.groups {
        html.push_str("<tbody>");
        if !group.title.is_empty() {
            let (span, title) = (measures.len() + 2, escape(group.title));
            let _ = write!(
                html,
                "<tr class=\"group\"><th scope=\"rowgroup\" colspan=\"{span}\">{title}</th></tr>"
            );
        }
        // A contest for each measure of the group, because the best is the best under the same conditions.
        let contests: Vec<_> =
            measures.iter().map(|measure| Contest::of(measure.metric, group.results)).collect();
        for cell in &group.cells {
            let _ =
                write!(html, "<tr data-m=\"{}\">{}", cell.mechanism, mechanism(cell.mechanism, cell.name));
            for (measure, contest) in measures.iter().zip(&contests) {
                // Only a contest that the seeds decide has bold values. Otherwise all of them would be bold.
                let leads = contest.as_ref().is_some_and(|contest| {
                    contest.is_decided()
                        // Compared by address: another cell may have the same values.
                        && contest.leaders().any(|leader| std::ptr::eq(leader.result, cell.result))
                });
                let class = if leads { " class=\"best\"" } else { "" };
                let estimate = measure.estimate(cell);
                let half = estimate.and_then(|estimate| estimate.half_width);
                let half = estimate.zip(half).map_or_else(String::new, |(estimate, half)| {
                    let half = half_interval(half, estimate.mean, DIGITS);
                    format!("<small>\u{a0}±\u{a0}{}</small>", escape(&half))
                });
                let mean = estimate.map(|estimate| estimate.mean);
                number(&mut html, class, mean, &(significant_or_dash(mean, DIGITS) + &half));
            }
            let drops = cell.summary.count(Metric::Drops);
            number(&mut html, "", Some(drops), &count(drops));
            html.push_str("</tr>");
        }
        bounds(&mut html, group, &measures);
        html.push_str("</tbody>");
    }
    table("results", &head, &html)
}

/// Returns a table of the best mechanism and of how much the choice matters, with a row for each main metric under each
/// condition; `None` if no mechanisms can be compared. All but the first rows are folded.
pub(super) fn stakes(view: &View) -> Option<String> {
    let results: Vec<&CellResult> = view.cells().map(|(_, cell)| cell.result).collect();
    let leading: Vec<PageMetric> = measures(view).into_iter().filter(|measure| measure.leads).collect();
    let conclusions: Vec<_> = leading
        .iter()
        .filter_map(|measure| Some((measure, Conclusion::of(measure.metric, &results)?)))
        .collect();
    let row = |measure: &PageMetric, place: &str, contest: &Contest| {
        let (best, known) = (contest.placings.first()?, contest.known().count());
        // The first leader is the best mechanism itself.
        let ties: Vec<&str> = contest.leaders().skip(1).map(Placing::name).collect();
        let value = |placing: &Placing| placing.estimate.map_or_else(String::new, |it| measure.words(it));
        // A ratio to 0 is not finite, so the value itself is shown then.
        let (far, distance) = contest.farthest().map_or(("", "–".to_owned()), |(far, ratio)| {
            let ratio = far.ratio.filter(|_| ratio.is_finite() && ratio > 0.0);
            (far.name(), ratio.map_or_else(|| value(far), |ratio| ratio.words().0))
        });
        let cells = [place, &capitalised(measure.metric.title()), best.name()].map(escape);
        Some(format!(
            "<tr><td>{}</td><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{} of {known}</td><td>{}</td><td>{distance}</td></tr>",
            cells[0],
            cells[1],
            cells[2],
            value(best),
            escape(&listed(&ties, 3, "others")),
            contest.near(),
            escape(far)
        ))
    };
    let of_measure = |(measure, conclusion): &(&PageMetric, Conclusion)| -> Vec<String> {
        conclusion.contests().filter_map(|(place, contest)| row(measure, place, contest)).collect()
    };
    let rows: Vec<String> = conclusions.iter().flat_map(of_measure).collect();
    if rows.is_empty() {
        return None;
    }
    let head = headings(["Conditions", "Metric", "Best", "", "Ties", "Within 5\u{a0}%", "Farthest", "Times"]);
    let part = |rows: &[String]| table("comparison", &head, &format!("<tbody>{}</tbody>", rows.concat()));
    // Many conditions make many rows, which would fill the page.
    let (shown, others) = rows.split_at(rows.len().min(WORST));
    let more = if others.is_empty() {
        String::new()
    } else {
        folded(&format!("{} more", others.len()), &part(others))
    };
    Some(part(shown) + &more)
}

/// Adds the row of a group's bounds, if any are known.
fn bounds(html: &mut String, group: &Conditioned, measures: &[PageMetric]) {
    let bound = |measure: &PageMetric| bound_of(group.bounds, measure.metric);
    if measures.iter().all(|measure| bound(measure).is_none()) {
        return;
    }
    html.push_str("<tr class=\"bound\"><th scope=\"row\">bound</th>");
    for measure in measures {
        match bound(measure) {
            Some(bound) => {
                let value = significant(bound.value, DIGITS);
                let _ = write!(html, "<td data-value=\"{}\">{value}</td>", bound.value);
            }
            None => number(html, "", None, ""),
        }
    }
    // Drops, the last column, have no bound.
    number(html, "", None, "");
    html.push_str("</tr>");
}

/// Returns a table of the mechanisms in mixes that make exchanges, followed by a table of the mechanisms that make
/// transfers; `None` without a mix.
pub(super) fn populations(view: &View) -> Option<String> {
    const OF_EXCHANGES: &[(&str, &str)] = &[
        ("Mix", ""),
        ("Of which", ""),
        ("Clients", ""),
        ("Share", "of the throughput"),
        ("Relative share", "1 is fair"),
        ("Retrans&shy;missions", "per client"),
        ("Exchange time", "mean, s"),
        ("Fairness", "Jain, its own"),
    ];
    const OF_TRANSFERS: &[(&str, &str)] = &[
        ("Mix", ""),
        ("Of which", ""),
        ("Clients", ""),
        ("Share", "of the goodput"),
        ("Relative share", "1 is fair"),
        ("Blocks again", "per client"),
        ("Transfer time", "mean, s"),
        ("Fairness", "Jain, its own"),
        ("Goodput", "of a client, kbit/s"),
        ("Share", "of the link"),
        ("Failed", "transfers per run"),
    ];
    let tables = [populations_by(view, OF_EXCHANGES, false), populations_by(view, OF_TRANSFERS, true)];
    tables.into_iter().flatten().reduce(|a, b| a + &b)
}

fn populations_by(view: &View, header: &[(&str, &str)], by_transfers: bool) -> Option<String> {
    let mut rows = String::new();
    for (title, cell) in view.cells().filter(|(_, cell)| cell.result.is_mix()) {
        let populations = cell.summary.populations.iter();
        for own in populations.filter(|own| own.transfers.is_some() == by_transfers) {
            let mix = mechanism(cell.mechanism, &joined(cell.name, title));
            let _ =
                write!(rows, "<tr data-m=\"{}\">{mix}<td>{}</td>", cell.mechanism, escape(&own.mechanism));
            own.values().iter().for_each(|(value, text)| number(&mut rows, "", *value, text));
            rows.push_str("</tr>");
        }
    }
    let bodies = format!("<tbody>{rows}</tbody>");
    (!rows.is_empty()).then(|| table("results", &sorting_headings(header.iter().copied()), &bodies))
}

/// Returns a table of published and measured values, the largest error first. All but the first rows are folded.
pub(super) fn comparison(compared: &[ComparisonRow]) -> String {
    // The axis of the bars reaches to twice the error that counts as met, or to the largest error, up to 50 %.
    let largest =
        compared.iter().filter_map(ComparisonRow::error).map(f64::abs).fold(2.0 * MET, f64::max).min(0.5);
    let metrics = metrics(compared);
    let (worst, others) = compared.split_at(compared.len().min(WORST));
    let html = comparison_rows(worst, &metrics, largest);
    let Some(farthest) = others.first() else { return html };
    // The error is rounded up, so that the sentence holds.
    let within = farthest.error().map_or(0.0, |error| (error.abs() * 1000.0).ceil() / 10.0);
    let line = format!("The other {} values, each within {within:.1} %", others.len());
    html + &folded(&line, &comparison_rows(others, &metrics, largest))
}

/// Returns a table of these published and measured values. If they have several metrics, each row names its metric;
/// otherwise the header has the unit.
fn comparison_rows(compared: &[ComparisonRow], metrics: &[Metric], largest: f64) -> String {
    let titled = compared.iter().any(|c| !c.title.is_empty());
    // Several metrics have several units, so each row names its own.
    let (metric, unit) = match metrics {
        [metric] => (None, metric.unit()),
        _ => (Some("Metric"), ""),
    };
    // A column that is the same in all rows is left out.
    let columns = [titled.then_some("Conditions"), Some("Mechanism"), metric];
    let mut head = headings(columns.into_iter().flatten());
    let _ = write!(
        head,
        "<th scope=\"col\">Published<small>{unit}</small></th><th scope=\"col\">Measured<small>{unit}</small></th>\
         <th scope=\"col\">Error</th><th scope=\"col\" class=\"axis\">−{0:.0} %<i></i>+{0:.0} %</th>",
        largest * 100.0
    );
    let mut html = String::from("<tbody>");
    for c in compared {
        html.push_str("<tr>");
        if titled {
            let _ = write!(html, "<td>{}</td>", escape(c.title));
        }
        html.push_str(&mechanism(c.cell.mechanism, c.cell.name));
        if metrics.len() > 1 {
            let _ = write!(html, "<td>{}</td>", c.value.metric.axis());
        }
        let published = significant(c.value.published, 4);
        let _ = write!(html, "<td title=\"{}\">{published}</td>", escape(c.source()));
        let _ = write!(html, "<td>{}</td>", significant_or_dash(c.value.measured, 4));
        match c.error() {
            Some(error) => {
                let met = if error.abs() <= MET { "met" } else { "missed" };
                // In per cent of the cell's width. The middle means no error.
                let width = (error.abs() / largest).min(1.0) * 50.0;
                // A bar of a negative error ends in the middle, any other begins there.
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
            // The error of an unknown value is unknown, too.
            None => html.push_str("<td>–</td><td>not finished</td>"),
        }
        html.push_str("</tr>");
    }
    table("comparison", &head, &(html + "</tbody>"))
}

/// Returns a table of published rankings and ratios, the worst first. If there are many, the confirmed rankings are
/// folded.
pub(super) fn orders(verdicts: &[(&str, OrderVerdict)]) -> String {
    let (held, not_held): (Vec<_>, Vec<_>) =
        verdicts.iter().partition(|(_, verdict)| verdict.outcome() == OrderOutcome::Held);
    if not_held.len() + held.len() <= WORST {
        return order_rows(&[not_held, held].concat());
    }
    let not_held = if not_held.is_empty() { String::new() } else { order_rows(&not_held) };
    not_held + &folded(&format!("The {} that held", held.len()), &order_rows(&held))
}

fn order_rows(verdicts: &[&(&str, OrderVerdict)]) -> String {
    let titled = verdicts.iter().any(|(title, _)| !title.is_empty());
    let ratios = verdicts.iter().any(|(_, verdict)| verdict.order.times.is_some());
    let mut columns = vec!["Order", "First", "Second", "Times", "95 %", "Verdict"];
    if ratios {
        // Most papers order mechanisms without a ratio, and a column of dashes would say nothing.
        columns.insert(3, "Published");
    }
    let mut html = String::from("<tbody>");
    for (title, verdict) in verdicts {
        let conditions = if titled { format!("<td>{}</td>", escape(title)) } else { String::new() };
        let [first, second] = verdict.values.map(|value| significant_or_dash(value, 4));
        let (times, interval) = verdict.ratio_words();
        let published =
            if ratios { format!("<td>{}</td>", verdict.published_times()) } else { String::new() };
        let why = match verdict.reason() {
            "" => String::new(),
            why => format!("<small>{}</small>", escape(why)),
        };
        // An order that did not hold is the news of a reproduction.
        let word = match verdict.outcome() {
            OrderOutcome::Held | OrderOutcome::Inconclusive => verdict.words() + &why,
            OrderOutcome::NotHeld => format!("<strong>{}</strong>{why}", verdict.words()),
        };
        let _ = write!(
            html,
            "<tr>{conditions}<th scope=\"row\" title=\"{}\">{}</th><td>{first}</td><td>{second}</td>{published}<td>{times}</td>\
             <td>{interval}</td><td>{word}</td></tr>",
            escape(&verdict.order.metric.axis()),
            escape(&verdict.claim())
        );
    }
    let head = headings(titled.then_some("Conditions").into_iter().chain(columns));
    table("comparison", &head, &(html + "</tbody>"))
}

pub(super) fn mechanism(number: usize, name: &str) -> String {
    let name = escape(name);
    format!(
        "<th scope=\"row\"><span class=\"mechanism\"><i class=\"key\" data-m=\"{number}\"></i>{name}</span></th>"
    )
}

/// Adds a cell of a table that the page sorts by `value`. An unknown value sorts last.
pub(super) fn number(html: &mut String, class: &str, value: Option<f64>, text: &str) {
    let _ = write!(html, "<td{class} data-value=\"{}\">{text}</td>", value.unwrap_or(f64::MAX));
}
