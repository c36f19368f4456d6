//! The best in hindsight: a mechanism for each cell, chosen with its ratios known.

use super::ranking::NEAR;
use super::{RankedCell, Ranking, Section, Worst};

/// The results of an oracle that knows every network and chooses a mechanism for each cell. Each column of a table is
/// minimised separately, so any other choice of mechanisms has as much or more in every column.
///
/// The distance of a mechanism from the oracle is its *regret*: the price of not knowing the network. The oracle's own distance
/// from 1 shows how far the metrics of a cell favour different mechanisms.
#[derive(Clone, Debug, PartialEq)]
pub struct Hindsight {
    /// Whether the oracle may choose mechanisms of this project as well as published ones.
    pub has_own: bool,
    /// The choice in each cell, in the sequence of the ranking: the mechanism with the smallest worst ratio there.
    pub choices: Vec<HindsightChoice>,
    /// The greatest ratio over all cells that is [significantly](super::Standing::worst) above 1. Each cell has the
    /// mechanism whose greatest such ratio there is the smallest. If no ratio is significantly above 1, the greatest
    /// ratio of the `choices`.
    pub worst: Worst,
    /// The geometric mean of the ratios, if the mechanism with the smallest mean is chosen in each cell. A ratio above
    /// 100 counts as 100.
    pub geometric_mean: f64,
    /// The number of cells in which no metric of the choice is more than 5 % worse than the best.
    pub cells_near: usize,
}

/// The best mechanism of a cell in hindsight.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HindsightChoice {
    /// The number of the mechanism.
    pub mechanism: usize,
    /// The worst ratio of the mechanism in this cell, significantly above 1 or not.
    pub worst: Worst,
}

impl Ranking {
    /// Returns the results of up to two oracles. The first chooses among the published mechanisms with random timeouts.
    /// If a mechanism of this project is ranked, a second oracle also chooses among this project's mechanisms. Without
    /// cells, both are absent. Among equal mechanisms, an oracle chooses the one with the higher rank.
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

    /// Returns the oracles that tables list below the standings; none for a single cell, where the oracle is simply the
    /// best mechanism.
    pub fn hindsight_rows(&self) -> Vec<Hindsight> {
        if self.cells.len() > 1 { self.hindsight() } else { Vec::new() }
    }
}

impl Hindsight {
    fn of(cells: &[RankedCell], candidates: &[usize], has_own: bool) -> Option<Self> {
        // By the worst ratio, as standings are ordered. The first of equal mechanisms has the higher rank.
        let choose = |(place, cell): (usize, &RankedCell)| {
            let choices = candidates.iter().filter_map(|&mechanism| {
                Some(HindsightChoice { mechanism, worst: cell.worst(place, mechanism)? })
            });
            choices.min_by(|a, b| a.worst.ratio.mean.total_cmp(&b.worst.ratio.mean))
        };
        // A cell without a candidate leaves no oracle: it would be compared over fewer cells than the mechanisms.
        let choices = cells.iter().enumerate().map(choose).collect::<Option<Vec<_>>>()?;
        let least_significant = |(place, cell): (usize, &RankedCell)| {
            let worst = candidates.iter().map(|&mechanism| cell.worst_significant(place, mechanism));
            // A mechanism without a ratio that is significantly above 1 is less than every other.
            let mean = |it: &Option<Worst>| it.map_or(f64::NEG_INFINITY, |worst| worst.ratio.mean);
            worst.min_by(|a, b| mean(a).total_cmp(&mean(b))).flatten()
        };
        let significant = cells.iter().enumerate().filter_map(least_significant).reduce(Worst::greater);
        // Of all mechanisms and not of the choice: every column is minimised by itself.
        let least_mean = |cell: &RankedCell| {
            let means = candidates.iter().map(|&mechanism| cell.logarithm(mechanism));
            means.min_by(f64::total_cmp)
        };
        let means = cells.iter().filter_map(least_mean);
        Some(Self {
            has_own,
            worst: significant
                .or_else(|| choices.iter().map(|choice| choice.worst).reduce(Worst::greater))?,
            geometric_mean: (means.sum::<f64>() / cells.len() as f64).exp(),
            cells_near: choices.iter().filter(|choice| choice.worst.ratio.mean <= NEAR).count(),
            choices,
        })
    }

    /// The heading above the rows of the oracle in tables.
    pub const HEADING: &str = "Best in hindsight, each cell with another mechanism";

    /// Returns the name of the oracle in tables. A star marks the oracle that may choose mechanisms of this project.
    pub const fn name(&self) -> &'static str {
        if self.has_own { "hindsight*" } else { "hindsight" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::RankedMetric;
    use crate::results::{Metric, PairedRatio};

    /// Makes a cell with a row of ratios for each metric, and a column for each mechanism. All ratios are significant except
    /// those at `uncertain`.
    fn cell(ratios: &[[f64; 3]], uncertain: &[(usize, usize)]) -> RankedCell {
        let ranked = |(number, row): (usize, &[f64; 3])| {
            let ratio = |(mechanism, &mean): (usize, &f64)| {
                let low = if uncertain.contains(&(number, mechanism)) { 0.1 } else { mean * 0.999 };
                PairedRatio { mean, interval: Some((low, mean * 9.0)) }
            };
            RankedMetric {
                metric: Metric::MeanFct,
                best: 0,
                values: vec![None; 3],
                bound: None,
                ratios: row.iter().enumerate().map(ratio).collect(),
            }
        };
        let metrics = ratios.iter().enumerate().map(ranked).collect();
        RankedCell { name: String::new(), results: Vec::new(), metrics }
    }

    #[test]
    fn the_oracle_row_takes_the_mechanism_with_the_smallest_worst_ratio_in_each_cell() {
        // The quick one, the sparing one, and one between them, which is nowhere the best and chosen where it is never bad.
        let cells =
            [cell(&[[1.0, 3.0, 1.3], [2.0, 1.0, 1.2]], &[]), cell(&[[1.04, 1.0, 1.5], [1.0, 1.5, 1.5]], &[])];
        let hindsight = Hindsight::of(&cells, &[0, 1, 2], false).unwrap();
        let chosen = |it: &Hindsight| {
            it.choices.iter().map(|it| (it.mechanism, it.worst.ratio.mean)).collect::<Vec<_>>()
        };
        assert_eq!(chosen(&hindsight), [(2, 1.3), (0, 1.04)]);
        assert_eq!((hindsight.worst.ratio.mean, hindsight.worst.cell, hindsight.worst.metric), (1.3, 0, 0));
        assert_eq!(hindsight.cells_near, 1);
        let mean = ((1.3_f64 * 1.2).sqrt() * 1.04_f64.sqrt()).sqrt();
        assert!((hindsight.geometric_mean - mean).abs() < 1e-12);
        let without = Hindsight::of(&cells, &[0, 1], false).unwrap();
        assert_eq!((chosen(&without), without.worst.metric), (vec![(0, 2.0), (0, 1.04)], 1));
        assert_eq!(Hindsight::of(&cells, &[], false), None);
    }

    #[test]
    fn the_oracle_row_minimises_each_metric_separately() {
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
    fn mechanisms_of_this_project_have_their_own_oracle_row() {
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
