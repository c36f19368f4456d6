//! Pairs of mechanisms: the numbers behind the heat maps.

use coapace_lab::coexistence::{Encounter, Matrix};
use coapace_lab::number::{significant, significant_or_dash};
use coapace_lab::results::Metric;

use super::rounded::rounded;
use super::view::View;

/// The kind of value by which the squares of a heat map are coloured.
#[derive(Clone, Copy)]
pub(super) enum PairValue {
    /// The relative share of the throughput, or of the goodput of transfers: 1 is fair.
    Share,
    /// The throughput, or the goodput of transfers, as a fraction of its value if all clients have the row's mechanism.
    Kept,
}

/// The values of a heat map, whose squares are coloured by one [`PairValue`].
pub(super) struct Pairs {
    /// Whether the mechanisms are compared by transfers.
    pub(super) of_transfers: bool,
    pub(super) measure: PairValue,
    /// The numbers of the mechanisms in the rows, which are also the columns.
    pub(super) mechanisms: Vec<usize>,
    pub(super) cells: Vec<Vec<Square>>,
}

/// A square: the mechanism of a row sharing a network with the mechanism of a column. Shares are fractions; times are in seconds.
pub(super) struct Square {
    share: Option<f64>,
    kept: Option<f64>,
    pub(super) starved: bool,
    /// Exchanges a second of both mechanisms together, or the share of the link that all their transfers used.
    together: f64,
    /// The goodput of a client with the row's mechanism, in bit/s; `None` if the mechanisms are compared by exchanges.
    goodput: Option<f64>,
    jain: Option<f64>,
    /// The retransmissions or repeated blocks of the row's mechanism, as a fraction of its requests. The next field has
    /// the fraction of both mechanisms together.
    again: Option<f64>,
    again_together: Option<f64>,
    time: Option<f64>,
}

impl Pairs {
    /// Collects the pairs; `None` if the page has none.
    pub(super) fn of(view: &View, measure: PairValue) -> Option<Self> {
        let matrix = view.coexistence?;
        let size = matrix.mechanisms.len();
        let row = |row| (0..size).map(|column| Square::of(matrix.encounter(row, column))).collect();
        let (of_transfers, mechanisms) = (matrix.is_of_transfers(), numbers(view, matrix));
        Some(Self { of_transfers, measure, mechanisms, cells: (0..size).map(row).collect() })
    }

    /// Returns the name of the rate that the mechanisms share: throughput or goodput.
    pub(super) fn rate(&self) -> &'static str {
        rate(self.of_transfers)
    }

    /// Returns the height of the heat map in pixels: a square for each pair, and names above.
    pub(super) fn height(&self) -> usize {
        150 + 38 * self.mechanisms.len().max(6)
    }
}

impl Square {
    /// Returns the value that colours the square.
    pub(super) fn value(&self, measure: PairValue) -> Option<f64> {
        match measure {
            PairValue::Share => self.share,
            PairValue::Kept => self.kept,
        }
    }

    /// Returns the text in the square: the value in percent, with a star if the row's mechanism is starved, or `·`
    /// without a value. `alone` means that the row and the column have the same mechanism.
    pub(super) fn text(&self, measure: PairValue, alone: bool) -> String {
        // Among its own kind a mechanism has a fair share by definition, so the number would say nothing.
        match self.value(measure).filter(|_| !(alone && matches!(measure, PairValue::Share))) {
            Some(value) => format!("{:.0}{}", rounded(value * 100.0), if self.starved { "*" } else { "" }),
            None => "·".to_owned(),
        }
    }

    /// Returns lines of HTML about the square. `alone` means that the row and the column have the same mechanism, which
    /// then has no share to show.
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
        // Among its own kind the share is fair by definition.
        let beside = if alone { "" } else { &beside };
        // Only pairs that are compared by transfers have a goodput.
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

/// Returns the name of the rate that clients share: goodput if they are compared by transfers, otherwise throughput.
pub(super) fn rate(of_transfers: bool) -> &'static str {
    if of_transfers { "goodput" } else { "throughput" }
}

/// Returns the page's numbers of the mechanisms of a matrix.
pub(super) fn numbers(view: &View, matrix: &Matrix) -> Vec<usize> {
    // The groups of such a page are of the same mechanisms, so each is found.
    let number = |name: &String| view.mechanisms.iter().position(|other| other == name).unwrap_or(0);
    matrix.mechanisms.iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::super::axis::Axis;
    use super::super::chart::{Body, Chart};
    use super::super::drawing::svg;
    use super::super::panels::StyledMechanism;
    use super::super::plates::Plates;
    use super::super::style::styles;
    use super::*;

    fn square(share: f64) -> Square {
        let (share, kept) = (Some(share), Some(share));
        let (goodput, jain, again, again_together, time) = (None, None, None, None, None);
        Square { share, kept, starved: false, together: 1.0, goodput, jain, again, again_together, time }
    }

    #[test]
    fn a_drawn_map_of_shares_has_no_numbers_on_its_diagonal() {
        let drawn = |measure| {
            let cells = vec![vec![square(1.0), square(1.4)], vec![square(0.6), square(1.0)]];
            let pairs = Pairs { of_transfers: false, measure, mechanisms: vec![0, 1], cells };
            let [name, title, caption, conditions] = ["map"; 4].map(str::to_owned);
            let (x, y, body) = (Axis::names(), Axis::names(), Body::Squares(pairs));
            let names = ["default", "ebb"];
            let styled =
                names.iter().zip(styles(&names)).map(|(name, style)| StyledMechanism { name, style });
            let chart = Chart { name, title, caption, conditions, x, y, body };
            svg(&chart, &styled.collect::<Vec<_>>(), &Plates::default())
        };
        let counts = |svg: &str| [">·<", ">100<", ">140<", ">60<"].map(|text| svg.matches(text).count());
        assert_eq!(counts(&drawn(PairValue::Share)), [2, 0, 1, 1]);
        assert_eq!(counts(&drawn(PairValue::Kept)), [0, 2, 1, 1]);
    }
}
