//! Pairs of mechanisms: the numbers behind the heat maps.

use coapace_lab::coexistence::{Encounter, Matrix};
use coapace_lab::results::Metric;
use coapace_lab::results::number::{significant, significant_or_dash};

use super::rounded::rounded;
use super::view::View;

/// The figure that colours a heat map.
#[derive(Clone, Copy)]
pub(super) enum PairFigure {
    /// The relative share of the throughput: 1 is fair.
    Share,
    /// The throughput as a fraction of what it is where all clients have the row's mechanism.
    Kept,
}

/// A heat map of one figure.
pub(super) struct Pairs {
    pub(super) measure: PairFigure,
    /// The numbers of the mechanisms, in the order of rows and of columns.
    pub(super) mechanisms: Vec<usize>,
    pub(super) cells: Vec<Vec<Square>>,
}

/// A square: the mechanism of a row sharing a network with that of a column. Shares are fractions; times are in seconds.
pub(super) struct Square {
    share: Option<f64>,
    kept: Option<f64>,
    pub(super) starved: bool,
    /// Exchanges a second of both mechanisms together.
    throughput: f64,
    jain: Option<f64>,
    /// Retransmissions as a fraction of the requests, of the row's mechanism and of both together.
    again: Option<f64>,
    again_together: Option<f64>,
    time: Option<f64>,
}

impl Pairs {
    /// Collects the pairs; `None` if the page has none.
    pub(super) fn of(view: &View, measure: PairFigure) -> Option<Self> {
        let matrix = view.coexistence?;
        let size = matrix.mechanisms.len();
        let row = |row| (0..size).map(|column| Square::of(matrix.encounter(row, column))).collect();
        Some(Self { measure, mechanisms: numbers(view, matrix), cells: (0..size).map(row).collect() })
    }

    /// Returns the height of the heat map in pixels: a square for each pair, and names above.
    pub(super) fn height(&self) -> usize {
        150 + 38 * self.mechanisms.len().max(6)
    }
}

impl Square {
    /// Returns the figure that colours the square.
    pub(super) fn value(&self, measure: PairFigure) -> Option<f64> {
        match measure {
            PairFigure::Share => self.share,
            PairFigure::Kept => self.kept,
        }
    }

    /// Returns lines of HTML about the square. A mechanism among its own kind has no share.
    pub(super) fn words(&self, alone: bool) -> String {
        let percent = |share: Option<f64>| {
            share.map_or_else(|| "–".to_owned(), |share| format!("{:.0} %", share * 100.0))
        };
        let beside = format!(
            "{} of a fair share<br>{} of its throughput among its own kind<br>",
            percent(self.share),
            percent(self.kept)
        );
        format!(
            "{}{} of its requests are retransmissions<br>an exchange takes {} s<br>together: {} exchanges/s, Jain {}, {} retransmissions",
            if alone { "" } else { &beside },
            percent(self.again),
            significant_or_dash(self.time, 3),
            significant(self.throughput, 3),
            significant_or_dash(self.jain, 3),
            percent(self.again_together)
        )
    }

    fn of(encounter: &Encounter) -> Self {
        Self {
            share: encounter.own.relative_share.map(rounded),
            kept: encounter.kept.map(rounded),
            starved: encounter.is_starved(),
            throughput: rounded(encounter.throughput()),
            jain: encounter.pair.value(Metric::Jain).map(rounded),
            again: encounter.own.retransmission_share.map(rounded),
            again_together: encounter.retransmission_share.map(rounded),
            time: encounter.own.exchange_time_s.map(rounded),
        }
    }
}

/// Returns the page's numbers of the mechanisms of a matrix.
pub(super) fn numbers(view: &View, matrix: &Matrix) -> Vec<usize> {
    let number = |name: &String| view.mechanisms.iter().position(|other| other == name).unwrap_or(0);
    matrix.mechanisms.iter().map(number).collect()
}
