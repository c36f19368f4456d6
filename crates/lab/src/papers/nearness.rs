//! The agreement of figures with a paper's tables: within a factor of the measured figures, or beyond it.

use std::cmp::Ordering;

use coapace_sim::Luck;

use super::{Compared, PaperTable, References};
use crate::lists::grouped;
use crate::number::significant_or_dash;
use crate::results::CellResult;

/// A figure of a table beside the measured one.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    /// The table that prints it.
    pub table: &'a PaperTable,
    /// The cell that it belongs to.
    pub result: &'a CellResult,
    /// Both figures.
    pub figure: Compared,
}

/// A table and the agreement of its figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nearness<'a> {
    /// The table.
    pub table: &'a PaperTable,
    /// The number of its figures.
    pub figures: usize,
    /// The number of its figures within the factor.
    pub within: usize,
    /// The largest factor between a published and a measured figure; `None` if one was not measured.
    pub largest: Option<f64>,
}

impl Judged<'_> {
    /// Returns whether the figure is within the factor of its table; false if it was not measured.
    pub fn within(&self) -> bool {
        self.is_within(self.figure.published)
    }

    /// Returns whether a value in place of the published one is within the factor; false if the figure was not measured.
    fn is_within(&self, published: f64) -> bool {
        Compared { published, ..self.figure }.factor().is_some_and(|factor| factor <= self.table.factor)
    }

    /// Returns `within` or `beyond`.
    pub fn word(&self) -> &'static str {
        if self.within() { "within" } else { "beyond" }
    }

    /// Returns the place of the published figure among means of as many of our runs as it is the mean of, from 0 to 1; `None` if
    /// that number is not known.
    pub fn quantile(&self) -> Option<f64> {
        let published = self.figure.published;
        self.share_of_means(|mean| {
            f64::from(u8::from(mean < published)).midpoint(u8::from(mean <= published).into())
        })
    }

    /// Returns the share of means of as many of our runs as the published figure is the mean of that are within the factor of our own
    /// figure, from 0 to 1; `None` if that number is not known. A paper that measured what we do would be within it that often.
    pub fn repeated(&self) -> Option<f64> {
        self.share_of_means(|mean| u8::from(self.is_within(mean)).into())
    }

    /// Returns the average of what means of as many of our runs as the published figure is the mean of count, drawn with replacement.
    /// Runs without the metric are left out. Returns `None` if no run has it, or if that number is not known or 0.
    ///
    /// The draws are the same for every call.
    fn share_of_means(&self, counts: impl Fn(f64) -> f64) -> Option<f64> {
        let few = self.table.runs.filter(|runs| *runs > 0)?;
        let values: Vec<f64> =
            self.result.runs.iter().filter_map(|run| self.figure.metric.of_run(run)).collect();
        if values.is_empty() {
            return None;
        }
        let luck = Luck::new(1).stream("resampling");
        let mean = |draw: u32| {
            let one =
                |place: u32| values[luck.below(values.len() as u64, draw.into(), place.into(), 0) as usize];
            (0..few).map(one).sum::<f64>() / f64::from(few)
        };
        Some((0..DRAWS).map(mean).map(counts).sum::<f64>() / f64::from(DRAWS))
    }

    /// Orders the worst first: by the factor of the figure as a multiple of that of its table.
    pub fn worst_first(&self, other: &Self) -> Ordering {
        other.badness().total_cmp(&self.badness())
    }

    /// Returns the factor as a multiple of that of the table; infinite if the figure was not measured.
    fn badness(&self) -> f64 {
        self.figure.factor().map_or(f64::INFINITY, |factor| factor / self.table.factor)
    }
}

impl Nearness<'_> {
    /// Returns a line: the number of figures within the factor, the largest factor, and the difference from the paper.
    pub fn words(&self) -> String {
        let Self { table, figures, within, largest } = self;
        let largest = largest.map_or_else(
            || "not all measured".to_owned(),
            |largest| format!("largest {}", significant_or_dash(Some(largest), 3)),
        );
        let why = if table.why.is_empty() { String::new() } else { format!("; {}", table.why) };
        format!("{}: {within} of {figures} within a factor of {}, {largest}{why}", table.title, table.factor)
    }
}

/// Returns every figure of a table among `results`, the worst first.
pub fn judged<'a>(results: &'a [CellResult], references: &'a References) -> Vec<Judged<'a>> {
    let figures = results
        .iter()
        .flat_map(|result| references.compared(result).into_iter().map(move |figure| (result, figure)));
    let mut all: Vec<_> = figures
        .filter_map(|(result, figure)| {
            let table = references.published(&result.cell)?.tables.get(&figure.metric)?;
            Some(Judged { table, result, figure })
        })
        .collect();
    all.sort_by(Judged::worst_first);
    all
}

/// Returns the tables of these figures, by title.
pub fn nearness<'a>(judged: &[Judged<'a>]) -> Vec<Nearness<'a>> {
    let larger = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a.max(b));
    let of = |own: Vec<&Judged<'a>>| Nearness {
        table: own[0].table,
        figures: own.len(),
        within: own.iter().filter(|one| one.within()).count(),
        largest: own.iter().map(|one| one.figure.factor()).reduce(larger).flatten(),
    };
    let groups = grouped(judged, |a, b| a.table.title == b.table.title);
    let mut tables: Vec<Nearness> = groups.into_iter().map(of).collect();
    tables.sort_by(|a, b| a.table.title.cmp(&b.table.title));
    tables
}

/// The number of means that are drawn.
const DRAWS: u32 = 10_000;

#[cfg(test)]
pub(crate) mod tests {
    use super::super::Published;
    use super::super::references::tests::{WithPublished, parted};
    use super::*;
    use crate::results::{Cell, Metric};
    use coapace_run::measured::RunResult;

    /// Makes a cell with a published throughput of a table with this factor, and with measured throughputs.
    pub(crate) fn printed(title: &str, factor: f64, published: f64, measured: &[f64]) -> WithPublished {
        let table = PaperTable { title: title.into(), factor, runs: None, why: "other radios".into() };
        let runs = measured.iter().zip(1..);
        let result = CellResult {
            cell: Cell { mechanism: "a".into(), clients: 60, ..Cell::default() },
            runs: runs
                .map(|(&throughput, seed)| RunResult { seed, throughput, ..RunResult::default() })
                .collect(),
        };
        let published = Published {
            tables: [(Metric::Throughput, table)].into(),
            ..Published::figure(Metric::Throughput, published, "p")
        };
        (result, Some(published))
    }

    /// Returns something of the only figure.
    fn of_only<T>(result: WithPublished, of: impl Fn(Judged) -> T) -> T {
        let (results, references) = parted([result]);
        of(judged(&results, &references)[0])
    }

    #[test]
    fn a_figure_is_within_a_factor_either_way_and_no_further() {
        for (measured, within) in [(15.0, true), (15.1, false), (6.7, true), (6.6, false), (0.0, false)] {
            let result = printed("Table 1", 1.5, 10.0, &[measured]);
            assert_eq!(of_only(result, |it| it.within()), within, "{measured}");
        }
        assert!(!of_only(printed("Table 1", 1.5, 10.0, &[]), |it| it.within()), "nothing was measured");
    }

    #[test]
    fn tables_are_counted_by_title_and_the_worst_figure_comes_first() {
        let (results, references) = parted([
            printed("Table 2", 1.2, 10.0, &[11.0]),
            printed("Table 1", 3.0, 10.0, &[20.0]),
            printed("Table 2", 1.2, 10.0, &[5.0]),
        ]);
        let judged = judged(&results, &references);
        let factors: Vec<_> = judged.iter().map(|one| one.figure.factor().unwrap()).collect();
        assert!((factors[0] - 2.0).abs() < 1e-12 && (factors[1] - 1.1).abs() < 1e-12, "{factors:?}");
        let tables = nearness(&judged);
        let counts: Vec<_> =
            tables.iter().map(|it| (it.table.title.as_str(), it.within, it.figures)).collect();
        assert_eq!(counts, [("Table 1", 1, 1), ("Table 2", 1, 2)]);
        assert_eq!(tables[1].largest, Some(2.0));
    }

    #[test]
    fn a_table_with_a_figure_that_was_not_measured_has_no_largest_factor() {
        let (results, references) =
            parted([printed("Table 1", 2.0, 10.0, &[10.0]), printed("Table 1", 2.0, 10.0, &[])]);
        let judged = judged(&results, &references);
        let Nearness { within, figures, largest, .. } = nearness(&judged)[0];
        assert_eq!((within, figures, largest), (1, 2, None));
    }

    #[test]
    fn figures_without_a_table_are_not_judged() {
        let (result, _) = printed("Table 1", 2.0, 10.0, &[10.0]);
        let published = Published::figure(Metric::Throughput, 10.0, "p");
        let (results, references) = parted([(result, Some(published))]);
        assert!(judged(&results, &references).is_empty());
    }

    /// Makes a figure that is the mean of two runs, measured as 0 and 1: means of two are 0, 1/2 and 1 with the probabilities 1/4,
    /// 1/2 and 1/4.
    fn mean_of_two(published: f64, factor: f64) -> WithPublished {
        of_two(published, factor, &[0.0, 1.0])
    }

    /// Makes a figure that is the mean of two runs, with measured throughputs.
    fn of_two(published: f64, factor: f64, measured: &[f64]) -> WithPublished {
        let mut result = printed("Table 1", factor, published, measured);
        let tables = &mut result.1.as_mut().expect("published").tables;
        tables.get_mut(&Metric::Throughput).expect("a table").runs = Some(2);
        result
    }

    /// Four standard deviations of the share of 10,000 draws.
    const CHANCE: f64 = 0.02;

    #[test]
    fn a_figure_has_the_quantile_that_means_of_as_few_runs_have() {
        for (published, expected) in
            [(-1.0, 0.0), (0.0, 0.125), (0.4, 0.25), (0.5, 0.5), (0.6, 0.75), (2.0, 1.0)]
        {
            let quantile = of_only(mean_of_two(published, 1.5), |it| it.quantile()).unwrap();
            assert!((quantile - expected).abs() < CHANCE, "{published}: {quantile}");
        }
        assert_eq!(
            of_only(printed("Table 1", 1.5, 1.0, &[1.0]), |it| it.quantile()),
            None,
            "runs are not known"
        );
        assert_eq!(of_only(of_two(1.0, 1.5, &[]), |it| it.quantile()), None, "nothing was measured");
        let mut unmeasured = mean_of_two(1.0, 1.5);
        let table = PaperTable { title: "Table 1".into(), factor: 1.5, runs: Some(2), why: String::new() };
        unmeasured.1 = Some(Published {
            tables: [(Metric::SettlingTime, table)].into(),
            ..Published::figure(Metric::SettlingTime, 1.0, "p")
        });
        assert_eq!(of_only(unmeasured, |it| it.quantile()), None, "no run has the metric");
    }

    #[test]
    fn means_of_as_few_runs_are_within_the_factor_as_often_as_chance_has_it() {
        for (factor, expected) in [(1.5, 0.5), (2.0, 0.75)] {
            let repeated = of_only(mean_of_two(9.0, factor), |it| it.repeated()).unwrap();
            assert!((repeated - expected).abs() < CHANCE, "{factor}: {repeated}");
        }
    }
}
