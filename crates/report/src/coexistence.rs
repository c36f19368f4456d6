//! Pairs of mechanisms on the page: the heat maps, and a table of the throughput that each mechanism takes from the others.

use std::fmt::Write;

use coapace_lab::coexistence::Matrix;

use super::html::{SAVE, escape, plot, sorting_headings, table};
use super::pairs::numbers;
use super::panels::Numbered;
use super::tables::{mechanism, number};
use super::view::View;

/// Returns the HTML elements of the heat maps, as wide as their squares need.
pub(super) fn heat_map(charts: &[Numbered], matrix: &Matrix) -> String {
    let width = 230 + 46 * matrix.mechanisms.len().max(6);
    let figure = |(number, chart): &Numbered| {
        format!(
            "<figure style=\"flex:0 1 {width}px;max-width:{width}px\">\
             <figcaption>{SAVE}</figcaption>{}</figure>",
            plot(*number, chart.height())
        )
    };
    charts.iter().map(figure).collect()
}

/// Returns a table with a row for each mechanism: the shares that it takes from the other mechanisms. The greatest mean
/// share comes first.
pub(super) fn standings(view: &View, matrix: &Matrix) -> String {
    const HEADER: [(&str, &str); 5] = [
        ("Mechanism", ""),
        ("Takes", "mean, %"),
        ("Least", "% against"),
        ("Most", "% against"),
        ("Starves", "mechanisms"),
    ];
    let numbers = numbers(view, matrix);
    let mut html = String::from("<tbody>");
    for standing in matrix.standings() {
        // Places in the matrix are not the numbers of the page, which colours go by.
        let name = |place: usize| escape(&matrix.mechanisms[place]);
        let own = numbers[standing.mechanism];
        let _ =
            write!(html, "<tr data-m=\"{own}\">{}", mechanism(own, &matrix.mechanisms[standing.mechanism]));
        number(&mut html, "", Some(standing.mean), &format!("{:.0}", standing.mean * 100.0));
        for (share, rival) in [standing.least, standing.most] {
            let text = format!("{:.0}<small> {}</small>", share * 100.0, name(rival));
            number(&mut html, "", Some(share), &text);
        }
        let starved: Vec<_> = standing.starves.iter().map(|&place| name(place)).collect();
        // One name fits into the column. Several would make it wide, and appear when pointed at.
        let text = match starved.as_slice() {
            [] => "–".to_owned(),
            [one] => one.clone(),
            several => format!("<span title=\"{}\">{}</span>", several.join(", "), several.len()),
        };
        // Sorted by the number, also where the text is a name.
        number(&mut html, "", Some(starved.len() as f64), &text);
        html.push_str("</tr>");
    }
    table("results standings", &sorting_headings(HEADER), &(html + "</tbody>"))
}
