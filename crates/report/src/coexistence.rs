//! Pairs of mechanisms: the numbers behind the heat maps, and the table of standings.

use std::fmt::Write;

use coapace_lab::coexistence::{Encounter, Matrix};
use serde::Serialize;

use super::chart::rounded;
use super::charts::Section;
use super::html::escape;
use super::page::{SAVE, plot};
use super::tables::{mechanism, number};
use super::view::View;

/// Which figure colours a heat map.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Measure {
    /// The relative share.
    Share,
    /// What is kept of the throughput among one's own kind.
    Kept,
}

/// A heat map.
#[derive(Serialize)]
pub(super) struct Pairs {
    pub(super) measure: Measure,
    /// The numbers of the mechanisms, in the order of rows and of columns.
    pub(super) mechanisms: Vec<usize>,
    pub(super) cells: Vec<Vec<Square>>,
}

/// The mechanism of a row in the company of that of a column; each is a fraction, times are in seconds.
#[derive(Serialize)]
pub(super) struct Square {
    share: Option<f64>,
    kept: Option<f64>,
    pub(super) starved: bool,
    /// Exchanges a second, of both together.
    throughput: f64,
    jain: Option<f64>,
    /// Retransmissions among the requests, of the row and of both together.
    again: Option<f64>,
    again_together: Option<f64>,
    time: Option<f64>,
}

impl Pairs {
    /// Of a page that has pairs.
    pub(super) fn of(view: &View, measure: Measure) -> Option<Self> {
        let matrix = view.coexistence?;
        let size = matrix.mechanisms().len();
        let row = |row| (0..size).map(|column| Square::of(matrix.encounter(row, column))).collect();
        Some(Self { measure, mechanisms: numbers(view, matrix), cells: (0..size).map(row).collect() })
    }

    /// What the heat map needs, in pixels: a square for each pair, and names above.
    pub(super) fn height(&self) -> usize {
        150 + 38 * self.mechanisms.len().max(6)
    }
}

impl Square {
    /// The figure that colours it.
    pub(super) fn value(&self, measure: Measure) -> Option<f64> {
        match measure {
            Measure::Share => self.share,
            Measure::Kept => self.kept,
        }
    }

    fn of(encounter: &Encounter) -> Self {
        Self {
            share: encounter.relative_share().map(rounded),
            kept: encounter.kept.map(rounded),
            starved: encounter.is_starved(),
            throughput: rounded(encounter.pair.throughput),
            jain: encounter.pair.jain.map(rounded),
            again: encounter.own.retransmission_share.map(rounded),
            again_together: encounter.retransmission_share.map(rounded),
            time: encounter.own.exchange_time_s.map(rounded),
        }
    }
}

/// The numbers by which the page knows the mechanisms of a matrix.
fn numbers(view: &View, matrix: &Matrix) -> Vec<usize> {
    let number = |name: &String| view.mechanisms.iter().position(|other| other == name).unwrap_or(0);
    matrix.mechanisms().iter().map(number).collect()
}

/// A heat map as wide as its squares need.
pub(super) fn heat_map(section: &Section, matrix: &Matrix) -> String {
    let width = 230 + 46 * matrix.mechanisms().len().max(6);
    let figure = |(number, _, height): &(usize, String, usize)| {
        format!(
            "<figure style=\"flex:0 1 {width}px;max-width:{width}px\">\
             <figcaption>{SAVE}</figcaption>{}</figure>",
            plot(*number, *height)
        )
    };
    section.panels.iter().map(figure).collect()
}

/// Every mechanism against all others, who takes most first.
pub(super) fn standings(view: &View, matrix: &Matrix) -> String {
    const HEADER: [(&str, &str); 5] = [
        ("Mechanism", ""),
        ("Takes", "mean, %"),
        ("Least", "% against"),
        ("Most", "% against"),
        ("Starves", "mechanisms"),
    ];
    let numbers = numbers(view, matrix);
    let mut html = String::from("<div class=\"scroll\"><table class=\"results standings\"><thead><tr>");
    for (name, unit) in HEADER {
        let _ = write!(
            html,
            "<th scope=\"col\"><button type=\"button\">{name}<small>{unit}</small></button></th>"
        );
    }
    html.push_str("</tr></thead><tbody>");
    for standing in matrix.standings() {
        let name = |place: usize| escape(&matrix.mechanisms()[place]);
        let own = numbers[standing.mechanism];
        let _ =
            write!(html, "<tr data-m=\"{own}\">{}", mechanism(own, &matrix.mechanisms()[standing.mechanism]));
        number(&mut html, "", Some(standing.mean), &format!("{:.0}", standing.mean * 100.0));
        for (share, rival) in [standing.least, standing.most] {
            let text = format!("{:.0}<small> {}</small>", share * 100.0, name(rival));
            number(&mut html, "", Some(share), &text);
        }
        let starved: Vec<_> = standing.starves.iter().map(|&place| name(place)).collect();
        let text = match starved.as_slice() {
            [] => "–".to_owned(),
            [one] => one.clone(),
            several => format!("<span title=\"{}\">{}</span>", several.join(", "), several.len()),
        };
        number(&mut html, "", Some(starved.len() as f64), &text);
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
    html
}
