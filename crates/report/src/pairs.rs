//! Pairs of mechanisms: the numbers behind the heat maps.

use coapace_lab::coexistence::{Encounter, Matrix};
use coapace_lab::number::{significant, significant_or_dash};
use coapace_lab::results::Metric;

use super::rounded::rounded;
use super::view::View;

/// The figure that colours a heat map.
#[derive(Clone, Copy)]
pub(super) enum PairFigure {
    /// The relative share of the throughput, or of the goodput of transfers: 1 is fair.
    Share,
    /// The throughput, or the goodput of transfers, as a fraction of the same where all clients have the row's mechanism.
    Kept,
}

/// A heat map of one figure.
pub(super) struct Pairs {
    /// Whether the mechanisms are compared by transfers.
    pub(super) of_transfers: bool,
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
    /// Exchanges a second of both mechanisms together, or the share of the link that all their transfers had.
    together: f64,
    /// Bit/s of the transfers of a client of the row; `None` if the mechanisms are compared by exchanges.
    goodput: Option<f64>,
    jain: Option<f64>,
    /// Retransmissions, or blocks sent again, as a fraction of the requests, of the row's mechanism and of both together.
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
        let (of_transfers, mechanisms) = (matrix.is_of_transfers(), numbers(view, matrix));
        Some(Self { of_transfers, measure, mechanisms, cells: (0..size).map(row).collect() })
    }

    /// Returns the name of the rate that is shared.
    pub(super) fn rate(&self) -> &'static str {
        rate(self.of_transfers)
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
            "{} of a fair share<br>{} of its {} among its own kind<br>",
            percent(self.share),
            percent(self.kept),
            rate(self.goodput.is_some())
        );
        let beside = if alone { "" } else { &beside };
        if let Some(goodput) = self.goodput {
            return format!(
                "{beside}{} kbit/s for a client, a transfer takes {} s<br>{} of its blocks are sent again<br>together: {} of the link, {} again",
                significant(goodput / 1e3, 3),
                significant_or_dash(self.time, 3),
                percent(self.again),
                percent(Some(self.together)),
                percent(self.again_together)
            );
        }
        format!(
            "{beside}{} of its requests are retransmissions<br>an exchange takes {} s<br>together: {} exchanges/s, Jain {}, {} retransmissions",
            percent(self.again),
            significant_or_dash(self.time, 3),
            significant(self.together, 3),
            significant_or_dash(self.jain, 3),
            percent(self.again_together)
        )
    }

    fn of(encounter: &Encounter) -> Self {
        Self {
            share: encounter.own.relative_share.map(rounded),
            kept: encounter.kept.map(rounded),
            starved: encounter.is_starved(),
            together: rounded(encounter.together()),
            goodput: encounter.own.transfers.map(|_| rounded(encounter.own.rate_per_client)),
            jain: encounter.pair.value(Metric::Jain).map(rounded),
            again: encounter.own.again_share.map(rounded),
            again_together: encounter.again_share.map(rounded),
            time: encounter.own.time_s.map(rounded),
        }
    }
}

/// Returns the name of the rate that clients share.
pub(super) fn rate(of_transfers: bool) -> &'static str {
    if of_transfers { "goodput" } else { "throughput" }
}

/// Returns the page's numbers of the mechanisms of a matrix.
pub(super) fn numbers(view: &View, matrix: &Matrix) -> Vec<usize> {
    let number = |name: &String| view.mechanisms.iter().position(|other| other == name).unwrap_or(0);
    matrix.mechanisms.iter().map(number).collect()
}
