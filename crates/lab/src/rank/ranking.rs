//! The standing of every mechanism over all cells of a suite.

use std::cmp::Ordering;

use super::yardstick::mean;
use super::{Section, Suite, SuiteCell, Yardstick};
use crate::lists::{joined, repeated};
pub(super) use crate::results::NEAR;
use crate::results::conditions::Conditions;
use crate::results::{Bound, Cell, CellResult, Metric, PairedRatio, bound_of, bounds};
use coapace_run::contender::Contender;

/// The largest ratio that counts in means. Otherwise one cell without progress would dominate the mean.
pub(super) const MOST: f64 = 100.0;

/// The comparison of mechanisms over the cells of a suite.
#[derive(Clone, Debug, Default)]
pub struct Ranking {
    /// The heading of the suite.
    pub title: String,
    /// The purpose of the suite, in a sentence; may be empty.
    pub summary: String,
    /// The mechanisms, in the sequence in which they were named. Cells have their results and ratios in this sequence.
    pub mechanisms: Vec<String>,
    /// The cells in which mechanisms can be compared.
    pub cells: Vec<RankedCell>,
    /// The cells without a comparison, in words: no published mechanism with random timeouts has a value there.
    pub left_out: Vec<String>,
    /// The standings: mechanisms with random timeouts before the others, and among them the smallest worst ratio first.
    pub standings: Vec<Standing>,
}

/// A cell of a suite, with the ratios for every metric that counts.
#[derive(Clone, Debug)]
pub struct RankedCell {
    /// The conditions in words.
    pub name: String,
    /// The runs of each mechanism.
    pub results: Vec<CellResult>,
    /// The metrics that count, in the sequence of the suite.
    pub metrics: Vec<RankedMetric>,
}

/// The results of one metric in one cell.
#[derive(Clone, Debug)]
pub struct RankedMetric {
    /// The metric.
    pub metric: Metric,
    /// The number of the mechanism that is the baseline.
    pub best: usize,
    /// The mean of each mechanism over the seeds; `None` if some seed has no value.
    pub values: Vec<Option<f64>>,
    /// The bound that follows from the scenario, if one is known.
    pub bound: Option<Bound>,
    /// How many times worse each mechanism is than the baseline; infinite if some seed has no value.
    pub ratios: Vec<PairedRatio>,
}

/// The ratios of one mechanism over all cells.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The number of the mechanism.
    pub mechanism: usize,
    /// The section of the mechanism.
    pub section: Section,
    /// The greatest of the ratios that are significantly above 1; if there are none, the greatest of all ratios. A
    /// ratio is significantly above 1 if its 95 % interval is above 1, or if there is only one seed and so no interval.
    /// `None` without cells.
    pub worst: Option<Worst>,
    /// The geometric mean: over the metrics of each cell, then over the cells, with equal weights. A ratio above 100 counts as
    /// 100.
    pub geometric_mean: f64,
    /// The number of cells in which no metric is more than 5 % worse than the best.
    pub cells_near: usize,
    /// The number of all cells.
    pub cells: usize,
    /// The number of metrics, over all cells, in which the mechanism is at most 5 % worse than the best.
    pub metrics_near: usize,
    /// The number of all metrics, over all cells.
    pub metrics: usize,
}

/// The worst ratio of a mechanism, and where it occurs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worst {
    /// The ratio.
    pub ratio: PairedRatio,
    /// The number of the cell.
    pub cell: usize,
    /// The number of the metric in that cell.
    pub metric: usize,
}

impl Worst {
    /// Returns the greater of two ratios. If both are equal, returns the first, because it belongs to the more
    /// important metric.
    pub(super) fn greater(self, other: Self) -> Self {
        if other.ratio.mean > self.ratio.mean { other } else { self }
    }

    /// Returns whether the ratio is significantly above 1. The ratio of a single seed has no interval, and counts as
    /// significant.
    fn is_significant(&self) -> bool {
        self.ratio.interval.is_none_or(|(low, _)| low > 1.0)
    }
}

impl Ranking {
    /// Ranks `results` of the [trials](Suite::trials) of a suite, cell by cell. Cells without runs, because an experiment was
    /// interrupted, are left out.
    pub fn of(suite: &Suite, results: Vec<CellResult>) -> Self {
        let mut groups: Vec<(Vec<CellResult>, &SuiteCell)> =
            suite.cells.iter().map(|cell| (Vec::new(), cell)).collect();
        // The name and the hash: scenarios of different names may run alike, and are cells of their own.
        let keys: Vec<_> =
            suite.cells.iter().map(|cell| (cell.scenario.name.clone(), cell.scenario.hash())).collect();
        let mut place = 0;
        for result in results {
            // Results come in the order of the cells, so the next place is near.
            let is_of = |key: &(String, String)| {
                key.0 == result.cell.scenario && key.1 == result.cell.scenario_hash.to_string()
            };
            // A result that belongs to no cell of the suite is left out.
            let Some(ahead) = keys.iter().skip(place).position(is_of) else { continue };
            place += ahead;
            groups[place].0.push(result);
        }
        // Every cell needs every mechanism with all seeds, or ratios of cells would mean different things.
        let most = groups.iter().map(|(results, _)| results.len()).max().unwrap_or(0);
        groups.retain(|(results, _)| {
            let is_whole = |result: &CellResult| result.runs.len() == results[0].runs.len();
            most > 0 && results.len() == most && results.iter().all(is_whole)
        });
        let mechanisms: Vec<String> = groups.first().map_or_else(Vec::new, |(results, _)| {
            results.iter().map(|result| result.cell.mechanism.clone()).collect()
        });
        let sections: Vec<Section> = mechanisms.iter().map(|label| Section::of(label)).collect();
        // Named together, because a name says how a cell differs from the others.
        let names = names(&groups.iter().map(|(results, _)| &results[0].cell).collect::<Vec<_>>());
        let (mut cells, mut left_out) = (Vec::new(), Vec::new());
        for ((results, cell), name) in groups.into_iter().zip(names) {
            let bounds = bounds(&cell.scenario);
            let ranked = |&metric: &Metric| RankedMetric::of(metric, &results, &sections, &bounds);
            let metrics: Vec<_> = cell.metrics.iter().filter_map(ranked).collect();
            if metrics.is_empty() {
                left_out.push(name);
            } else {
                cells.push(RankedCell { name, results, metrics });
            }
        }
        let mut standings: Vec<_> = (sections.iter().enumerate())
            .map(|(mechanism, section)| Standing::of(mechanism, *section, &cells))
            .collect();
        // The sort is stable: equal mechanisms keep the sequence in which they were named.
        standings.sort_by(Standing::order);
        let (title, summary) = (suite.title.clone(), suite.summary.clone());
        Self { title, summary, mechanisms, cells, left_out, standings }
    }

    /// Returns the named mechanisms, or every mechanism over UDP if none is named.
    ///
    /// # Errors
    /// Returns one line if a mechanism is unknown or named twice, or if none of them can be the baseline.
    pub fn contenders(labels: &[String]) -> Result<Vec<Contender>, String> {
        if let Some(label) = repeated(labels) {
            return Err(format!("{label:?} is named twice"));
        }
        let named = Contender::named(labels)?;
        if Self::has_yardstick(named.iter().map(|contender| contender.label.as_str())) {
            return Ok(named);
        }
        Err("mechanisms are compared with the best published one with random timeouts, and none is among these: name another, such as \
             cocoa, or none to rank all"
            .to_owned())
    }

    /// Returns whether any of these mechanisms can be the baseline.
    pub fn has_yardstick<'a>(labels: impl IntoIterator<Item = &'a str>) -> bool {
        labels.into_iter().any(|label| Section::of(label).is_yardstick())
    }

    /// Returns the worst ratio of a mechanism in one cell, and the number of its metric.
    ///
    /// # Panics
    /// Panics if the cell does not exist.
    pub fn worst_in(&self, cell: usize, mechanism: usize) -> Option<Worst> {
        self.cells[cell].worst(cell, mechanism)
    }

    /// Returns the number of runs in the ranking.
    pub fn runs(&self) -> usize {
        self.cells.iter().flat_map(|cell| &cell.results).map(|result| result.runs.len()).sum()
    }
}

impl RankedCell {
    /// Returns the worst ratio of a mechanism in this cell, whose number is `cell`; `None` without metrics.
    pub(super) fn worst(&self, cell: usize, mechanism: usize) -> Option<Worst> {
        self.all(cell, mechanism).reduce(Worst::greater)
    }

    /// Returns the greatest ratio of a mechanism (how many times worse than the best) that is significantly above 1; `None`
    /// if no ratio is.
    pub(super) fn worst_significant(&self, cell: usize, mechanism: usize) -> Option<Worst> {
        self.all(cell, mechanism).filter(Worst::is_significant).reduce(Worst::greater)
    }

    /// Returns the mean logarithm of a mechanism's ratios in this cell.
    pub(super) fn logarithm(&self, mechanism: usize) -> f64 {
        // An infinite ratio counts as `MOST`, and one of 0 as its inverse, so that the sum stays finite.
        let logarithms = self.metrics.iter().map(|it| it.ratios[mechanism].mean.clamp(1.0 / MOST, MOST).ln());
        logarithms.sum::<f64>() / self.metrics.len().max(1) as f64
    }

    /// Returns the ratio of a mechanism for each metric of this cell, whose number is `cell`.
    fn all(&self, cell: usize, mechanism: usize) -> impl Iterator<Item = Worst> {
        let ratios = self.metrics.iter().enumerate();
        ratios.map(move |(metric, it)| Worst { ratio: it.ratios[mechanism], cell, metric })
    }
}

impl RankedMetric {
    fn of(metric: Metric, results: &[CellResult], sections: &[Section], bounds: &[Bound]) -> Option<Self> {
        let published = results.iter().zip(sections).filter(|(_, section)| section.is_yardstick());
        let yardstick = Yardstick::of(metric, published.map(|(result, _)| result))?;
        Some(Self {
            metric,
            best: results.iter().position(|result| std::ptr::eq(result, yardstick.best))?,
            values: results.iter().map(|result| mean(metric, result)).collect(),
            bound: bound_of(bounds, metric),
            ratios: results.iter().map(|result| yardstick.ratio(result)).collect(),
        })
    }
}

impl Standing {
    fn of(mechanism: usize, section: Section, cells: &[RankedCell]) -> Self {
        let ratios = |cell: &RankedCell| -> Vec<f64> {
            cell.metrics.iter().map(|ranked| ranked.ratios[mechanism].mean).collect()
        };
        let all: Vec<Vec<f64>> = cells.iter().map(ratios).collect();
        let near = |ratio: &&f64| **ratio <= NEAR;
        let significant =
            cells.iter().enumerate().filter_map(|(place, cell)| cell.worst_significant(place, mechanism));
        let every = cells.iter().enumerate().filter_map(|(place, cell)| cell.worst(place, mechanism));
        // The mean has all ratios, and the worst only significant ones: a mean averages chance out, and a maximum picks it.
        let logarithms: f64 = cells.iter().map(|cell| cell.logarithm(mechanism)).sum();
        Self {
            mechanism,
            section,
            worst: significant.reduce(Worst::greater).or_else(|| every.reduce(Worst::greater)),
            geometric_mean: (logarithms / all.len().max(1) as f64).exp(),
            cells_near: all.iter().filter(|ratios| ratios.iter().all(|ratio| *ratio <= NEAR)).count(),
            cells: all.len(),
            metrics_near: all.iter().flatten().filter(near).count(),
            metrics: all.iter().map(Vec::len).sum(),
        }
    }

    fn order(&self, other: &Self) -> Ordering {
        // Mechanisms without dither come last whatever their ratios, because they cannot be advised.
        let undithered = |it: &Self| it.section == Section::Undithered;
        let worst = |it: &Self| it.worst.map_or(f64::INFINITY, |worst| worst.ratio.mean);
        (undithered(self).cmp(&undithered(other)))
            .then(worst(self).total_cmp(&worst(other)))
            .then(self.geometric_mean.total_cmp(&other.geometric_mean))
    }
}

/// Returns each cell's name: its scenario, and its differences from other cells of that scenario.
fn names(cells: &[&Cell]) -> Vec<String> {
    let several = cells.windows(2).any(|pair| pair[0].scenario != pair[1].scenario);
    let name = |own: &&Cell| {
        let alike = cells.iter().copied().filter(|other| other.scenario == own.scenario);
        let mut own_known = Cell::clone(own);
        // A knob is `custom` if none of its choices is in force. That says nothing.
        own_known.knobs.retain(|_, value| value != "custom");
        let differing = Conditions::of(alike).describe(&own_known);
        // With one scenario for all cells, the title names it.
        let scenario = if several || differing.is_empty() { own.scenario.as_str() } else { "" };
        joined(scenario, &differing)
    };
    cells.iter().map(name).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::experiment::conduct;

    /// Ranks these mechanisms over two short cells on `jobs` threads.
    pub(in crate::rank) fn ranking(names: &[&str], jobs: usize) -> Ranking {
        let set = [("clients", "3,12"), ("workload.exchanges", "5"), ("errors", "high")];
        let set = set.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let mut suite = Suite::load(&["nb-iot".to_owned()], &set).unwrap();
        suite.cells.iter_mut().for_each(|cell| cell.seeds = 3);
        let contenders: Vec<_> = names.iter().map(|name| Contender::parse(name).unwrap()).collect();
        Ranking::of(&suite, conduct(&suite.trials(&contenders).unwrap(), jobs, &|| {}))
    }

    #[test]
    fn the_best_published_mechanism_has_the_smallest_published_ratio_which_is_1() {
        let names = ["default", "linux-rto", "cocoa", "fasor"];
        let ranking = ranking(&names, 2);
        assert_eq!((ranking.mechanisms.as_slice(), ranking.runs()), (&names.map(str::to_owned)[..], 24));
        assert_eq!(
            ranking.cells.iter().map(|cell| cell.name.as_str()).collect::<Vec<_>>(),
            ["3 clients", "12 clients"]
        );
        for (cell, ranked) in
            ranking.cells.iter().flat_map(|cell| cell.metrics.iter().map(move |it| (cell, it)))
        {
            assert_ne!(ranked.best, 1, "linux-rto does not dither");
            assert!((ranked.ratios[ranked.best].mean - 1.0).abs() < 1e-12);
            assert!([0, 2, 3].iter().all(|&place| ranked.ratios[place].mean >= 1.0 - 1e-12));
            let seeds = cell.results[0].runs.iter().zip(&cell.results[ranked.best].runs);
            let of_seed = |(own, best)| {
                super::super::of_run(ranked.metric, own).unwrap()
                    / super::super::of_run(ranked.metric, best).unwrap()
            };
            let product: f64 = seeds.map(of_seed).product();
            assert!((ranked.ratios[0].mean - product.cbrt()).abs() < 1e-9);
        }
    }

    #[test]
    fn a_ranking_sorts_by_worst_ratio_and_lists_mechanisms_without_dither_separately() {
        let ranking = ranking(&["linux-rto", "default", "cocoa", "fasor"], 2);
        let (last, dithered) = ranking.standings.split_last().unwrap();
        assert_eq!((last.mechanism, last.section), (0, Section::Undithered));
        let worst = |standing: &Standing| standing.worst.unwrap().ratio.mean;
        assert!(dithered.is_sorted_by(|a, b| worst(a) <= worst(b)));
        for standing in &ranking.standings {
            let ratios: Vec<Vec<f64>> = (ranking.cells.iter())
                .map(|cell| cell.metrics.iter().map(|it| it.ratios[standing.mechanism].mean).collect())
                .collect();
            let all = ranking.cells.iter().flat_map(|cell| &cell.metrics);
            let all = all.map(|it| it.ratios[standing.mechanism]);
            let significant = all.filter(|ratio| ratio.interval.unwrap().0 > 1.0).map(|ratio| ratio.mean);
            let most = ratios.iter().flatten().copied().fold(0.0, f64::max);
            // Without a significant ratio, the greatest of all is the worst.
            let expected = Some(significant.fold(0.0, f64::max)).filter(|it| *it > 0.0).unwrap_or(most);
            assert!((worst(standing) - expected).abs() < 1e-12);
            let product = |ratios: &Vec<f64>| ratios.iter().product::<f64>().powf(1.0 / ratios.len() as f64);
            let mean = ratios.iter().map(product).product::<f64>().sqrt();
            assert!((standing.geometric_mean - mean).abs() < 1e-9);
            assert_eq!((standing.cells, standing.metrics), (2, 10));
            assert_eq!(standing.metrics_near, ratios.iter().flatten().filter(|it| **it <= 1.05).count());
            let Worst { ratio, cell, metric } = standing.worst.unwrap();
            assert_eq!(ratio, ranking.cells[cell].metrics[metric].ratios[standing.mechanism]);
        }
    }

    #[test]
    fn a_ranking_leaves_out_cells_in_which_a_mechanism_did_not_run() {
        let suite = Suite::load(
            &["nb-iot".to_owned()],
            &[("clients".to_owned(), "2,3".to_owned()), ("workload.exchanges".to_owned(), "2".to_owned())],
        )
        .unwrap();
        let contenders = ["default", "cocoa"].map(|name| Contender::parse(name).unwrap());
        let mut trials = suite.trials(&contenders).unwrap();
        for trial in &mut trials {
            trial.seeds = 2;
        }
        let mut results = conduct(&trials, 1, &|| {});
        results.pop();
        let ranking = Ranking::of(&suite, results);
        assert_eq!((ranking.cells.len(), ranking.standings[0].cells), (1, 1));
        assert_eq!(Ranking::of(&suite, Vec::new()).standings.len(), 0);
    }
}
