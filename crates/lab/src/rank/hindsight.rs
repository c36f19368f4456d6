//! The best in hindsight: a mechanism for each cell, chosen with its ratios known.

use super::ranking::NEAR;
use super::{RankedCell, Ranking, Section, Worst};

/// The figures of an oracle that knows every network and chooses a mechanism for each cell. Each column is minimised by itself,
/// so no choice has less in any column.
///
/// The distance of a mechanism from it is the *regret*: the price of not knowing the network. Its own distance from 1 is how
/// much the figures of a cell ask for different mechanisms.
#[derive(Clone, Debug, PartialEq)]
pub struct Hindsight {
    /// Whether mechanisms of this project may be chosen beside the published ones.
    pub has_own: bool,
    /// The choice in each cell, in the order of the ranking: the mechanism whose worst ratio is the smallest there.
    pub choices: Vec<HindsightChoice>,
    /// The greatest ratio that is [significantly](super::Standing::worst) above 1, if each cell has the mechanism with the smallest
    /// such ratio. If none is, it is the greatest ratio of the choices.
    pub worst: Worst,
    /// The geometric mean, if each cell has the mechanism with the smallest mean. A ratio above 100 counts as 100.
    pub geometric_mean: f64,
    /// The cells in which no figure of the choice is more than 5 % worse than the best.
    pub cells_near: usize,
}

/// The best mechanism of a cell in hindsight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HindsightChoice {
    /// The number of the mechanism.
    pub mechanism: usize,
    /// Its worst ratio there, significantly above 1 or not.
    pub worst: Worst,
}

impl Ranking {
    /// Returns hindsight among the published mechanisms that dither. A second one may choose mechanisms of this project, too, if
    /// any is ranked. Without cells, both are left out. Among equal mechanisms, the one with the higher rank is chosen.
    pub fn hindsight(&self) -> Vec<Hindsight> {
        let among = |has_own: bool| {
            let may = |section: Section| section.is_yardstick() || has_own && section == Section::Coapace;
            let candidates = self.standings.iter().filter(|standing| may(standing.section));
            let candidates: Vec<usize> = candidates.map(|standing| standing.mechanism).collect();
            Hindsight::of(&self.cells, &candidates, has_own)
        };
        let has_own = self.standings.iter().any(|standing| standing.section == Section::Coapace);
        [Some(false), has_own.then_some(true)].into_iter().flatten().filter_map(among).collect()
    }

    /// Returns the rows of the oracle below the standings; none for a single cell, where the oracle is simply the best mechanism.
    pub fn hindsight_rows(&self) -> Vec<Hindsight> {
        if self.cells.len() > 1 { self.hindsight() } else { Vec::new() }
    }
}

impl Hindsight {
    fn of(cells: &[RankedCell], candidates: &[usize], has_own: bool) -> Option<Self> {
        let choose = |(place, cell): (usize, &RankedCell)| {
            let choices = candidates.iter().filter_map(|&mechanism| {
                Some(HindsightChoice { mechanism, worst: cell.worst(place, mechanism)? })
            });
            choices.min_by(|a, b| a.worst.ratio.mean.total_cmp(&b.worst.ratio.mean))
        };
        let choices = cells.iter().enumerate().map(choose).collect::<Option<Vec<_>>>()?;
        let least_told = |(place, cell): (usize, &RankedCell)| {
            let told = candidates.iter().map(|&mechanism| cell.worst_told(place, mechanism));
            // A mechanism without a ratio that is significantly above 1 is less than every other.
            let mean = |it: &Option<Worst>| it.map_or(f64::NEG_INFINITY, |worst| worst.ratio.mean);
            told.min_by(|a, b| mean(a).total_cmp(&mean(b))).flatten()
        };
        let told = cells.iter().enumerate().filter_map(least_told).reduce(Worst::greater);
        let least_mean = |cell: &RankedCell| {
            let means = candidates.iter().map(|&mechanism| cell.logarithm(mechanism));
            means.min_by(f64::total_cmp)
        };
        let means = cells.iter().filter_map(least_mean);
        Some(Self {
            has_own,
            worst: told.or_else(|| choices.iter().map(|choice| choice.worst).reduce(Worst::greater))?,
            geometric_mean: (means.sum::<f64>() / cells.len() as f64).exp(),
            cells_near: choices.iter().filter(|choice| choice.worst.ratio.mean <= NEAR).count(),
            choices,
        })
    }

    /// The line above its rows in tables.
    pub const HEADING: &str = "Best in hindsight, each cell with another mechanism";

    /// Returns its name in tables. A star marks the oracle that may choose mechanisms of this project.
    pub const fn name(&self) -> &'static str {
        if self.has_own { "hindsight*" } else { "hindsight" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::RankedFigure;
    use crate::results::{FigureRatio, Metric};

    /// Returns a cell with a row of ratios for each figure, and a column for each mechanism. Ratios are significant except in the
    /// places of `untold`.
    fn cell(ratios: &[[f64; 3]], untold: &[(usize, usize)]) -> RankedCell {
        let figure = |(number, row): (usize, &[f64; 3])| {
            let ratio = |(mechanism, &mean): (usize, &f64)| {
                let low = if untold.contains(&(number, mechanism)) { 0.1 } else { mean * 0.999 };
                FigureRatio { mean, interval: Some((low, mean * 9.0)) }
            };
            RankedFigure {
                metric: Metric::MeanFct,
                best: 0,
                values: vec![None; 3],
                bound: None,
                ratios: row.iter().enumerate().map(ratio).collect(),
            }
        };
        let figures = ratios.iter().enumerate().map(figure).collect();
        RankedCell { name: String::new(), results: Vec::new(), figures }
    }

    #[test]
    fn each_cell_has_the_mechanism_whose_worst_ratio_is_the_smallest() {
        // The quick one, the sparing one, and one between them, which is nowhere the best and chosen where it is never bad.
        let cells =
            [cell(&[[1.0, 3.0, 1.3], [2.0, 1.0, 1.2]], &[]), cell(&[[1.04, 1.0, 1.5], [1.0, 1.5, 1.5]], &[])];
        let hindsight = Hindsight::of(&cells, &[0, 1, 2], false).unwrap();
        let chosen = |it: &Hindsight| {
            it.choices.iter().map(|it| (it.mechanism, it.worst.ratio.mean)).collect::<Vec<_>>()
        };
        assert_eq!(chosen(&hindsight), [(2, 1.3), (0, 1.04)]);
        assert_eq!((hindsight.worst.ratio.mean, hindsight.worst.cell, hindsight.worst.figure), (1.3, 0, 0));
        assert_eq!(hindsight.cells_near, 1);
        let mean = ((1.3_f64 * 1.2).sqrt() * 1.04_f64.sqrt()).sqrt();
        assert!((hindsight.geometric_mean - mean).abs() < 1e-12);
        let without = Hindsight::of(&cells, &[0, 1], false).unwrap();
        assert_eq!((chosen(&without), without.worst.figure), (vec![(0, 2.0), (0, 1.04)], 1));
        assert_eq!(Hindsight::of(&cells, &[], false), None);
    }

    #[test]
    fn each_column_is_minimised_by_itself() {
        // By the mean the first is better, by its worst ratio the second.
        let cells = [cell(&[[1.0, 1.4, 9.0], [1.0, 1.4, 9.0], [1.5, 1.4, 9.0]], &[])];
        let hindsight = Hindsight::of(&cells, &[0, 1, 2], false).unwrap();
        assert_eq!((hindsight.choices[0].mechanism, hindsight.worst.ratio.mean), (1, 1.4));
        assert!((hindsight.geometric_mean - 1.5_f64.cbrt()).abs() < 1e-12);
        // The only ratio of the first mechanism above 1 is not significant.
        let cells = [cell(&[[1.0, 1.1, 9.0], [1.5, 1.2, 9.0]], &[(0, 0), (1, 0)]), cells[0].clone()];
        let hindsight = Hindsight::of(&cells[..1], &[0, 1, 2], false).unwrap();
        assert_eq!((hindsight.choices[0].mechanism, hindsight.worst.ratio.mean), (1, 1.2));
        let hindsight = Hindsight::of(&cells, &[0, 1, 2], false).unwrap();
        assert_eq!((hindsight.worst.ratio.mean, hindsight.worst.cell), (1.4, 1));
    }

    #[test]
    fn mechanisms_made_here_have_a_hindsight_of_their_own() {
        let ranked = |names: &[&str]| super::super::ranking::tests::ranking(names, 2);
        let [published] = ranked(&["default", "cocoa", "linux-rto"]).hindsight().try_into().unwrap();
        assert!(!published.has_own && published.choices.iter().all(|it| it.mechanism < 2), "{published:?}");
        let both: [Hindsight; 2] = ranked(&["default", "ebb"]).hindsight().try_into().unwrap();
        assert_eq!(both.each_ref().map(Hindsight::name), ["hindsight", "hindsight*"]);
        assert!((both[0].geometric_mean - 1.0).abs() < 1e-12, "default alone is its own yardstick");
        assert!(
            both[1].geometric_mean < 1.0 && both[1].worst.ratio.mean <= both[0].worst.ratio.mean,
            "{both:?}"
        );
        assert_eq!(Ranking::default().hindsight(), []);
    }
}
