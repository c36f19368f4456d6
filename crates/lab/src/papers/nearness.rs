//! How near published values of tables are to the measured ones: within a factor or beyond it.

use std::cmp::Ordering;

use coapace_sim::Luck;

use super::{Compared, PaperTable, References, Witness};
use crate::lists::{distinct, grouped};
use crate::number::significant_or_dash;
use crate::results::CellResult;

/// A published value of a table beside the measured one.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    /// The table with the value.
    pub table: &'a PaperTable,
    /// The results of the cell for which the value was published.
    pub result: &'a CellResult,
    /// The published and the measured value.
    pub value: Compared,
    /// The value of an independent witness, if there is one.
    pub witness: Option<Witness>,
}

/// A published table and how many of its values are near the measured ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nearness<'a> {
    /// The published table.
    pub table: &'a PaperTable,
    /// The number of values in the table.
    pub values: usize,
    /// The number of values within the factor of the table.
    pub within: usize,
    /// The largest factor between a published value and its measured one; `None` if any value was not measured.
    pub largest: Option<f64>,
}

impl Judged<'_> {
    /// Returns whether the published and the measured value are within the factor of the table; false if nothing was
    /// measured.
    pub fn within(&self) -> bool {
        self.is_within(self.value.published)
    }

    /// Returns whether the measured value is within the table's factor of `published`, which replaces the published
    /// value; false if nothing was measured.
    fn is_within(&self, published: f64) -> bool {
        Compared { published, ..self.value }.factor().is_some_and(|factor| factor <= self.table.factor)
    }

    /// Returns `within` if the value is within the factor of its table, otherwise `beyond`.
    pub fn word(&self) -> &'static str {
        if self.within() { "within" } else { "beyond" }
    }

    /// Returns this comparison with a value of the witness in place of the published value: of all values in the
    /// witness's range, the one nearest to the measured value. Returns `None` without a witness, or if nothing was
    /// measured.
    pub fn by_witness(&self) -> Option<Self> {
        let published = self.witness?.nearest(self.value.measured?);
        Some(Self { value: Compared { published, ..self.value }, ..*self })
    }

    /// Returns two texts: the value of the witness, and the factor and verdict by this value; dashes without a witness.
    pub fn witness_words(&self) -> [String; 2] {
        let dash = || "–".to_owned();
        let verdict = |own: Self| format!("{} {}", significant_or_dash(own.value.factor(), 3), own.word());
        [self.witness.map_or_else(dash, Witness::words), self.by_witness().map_or_else(dash, verdict)]
    }

    /// Returns whether the measured value and the witness agree against the paper: they are within the factor of each
    /// other, and both are beyond the factor of the published value.
    pub fn is_against_paper(&self) -> bool {
        let published = self.value.published;
        // If the witness is near the paper as well, it does not speak against it.
        let witness_is_within = |witness: Witness| {
            let measured = Some(witness.nearest(published));
            Self { value: Compared { measured, ..self.value }, ..*self }.within()
        };
        self.by_witness().is_some_and(|own| own.within())
            && !self.within()
            && !self.witness.is_some_and(witness_is_within)
    }

    /// Returns the quantile of the published value among random means of our runs, from 0 to 1. Each mean is over as
    /// many runs as the paper averaged. Returns `None` if the number of averaged runs is unknown, or if the metric has
    /// no value in any run.
    pub fn quantile(&self) -> Option<f64> {
        let published = self.value.published;
        self.share_of_means(|mean| {
            // A mean equal to the published value counts half, so that ties do not move the quantile.
            f64::from(u8::from(mean < published)).midpoint(u8::from(mean <= published).into())
        })
    }

    /// Returns the share of random means of our runs that are within the factor of our own value, from 0 to 1. Each
    /// mean is over as many runs as the paper averaged. A paper with results like ours would be within the factor with
    /// this probability. Returns `None` if the number of averaged runs is unknown, or if the metric has no value in any
    /// run.
    pub fn repeated(&self) -> Option<f64> {
        self.share_of_means(|mean| u8::from(self.is_within(mean)).into())
    }

    /// Draws [`DRAWS`] random means, and returns the average of `counts` over them. Each mean is over as many runs as
    /// the paper averaged, drawn with replacement from our runs with the metric. Returns `None` if there are no such
    /// runs, or if the number of averaged runs is unknown or 0.
    ///
    /// The random draws are the same for every call.
    fn share_of_means(&self, counts: impl Fn(f64) -> f64) -> Option<f64> {
        let few = self.table.runs.filter(|runs| *runs > 0)?;
        let values: Vec<f64> =
            self.result.runs.iter().filter_map(|run| self.value.metric.of_run(run)).collect();
        if values.is_empty() {
            return None;
        }
        let luck = Luck::new(1).stream("resampling");
        let mean = |draw: u32| {
            let one =
                // Keyed by draw and place, so that every call draws the same runs.
                |place: u32| values[luck.below(values.len() as u64, draw.into(), place.into(), 0) as usize];
            (0..few).map(one).sum::<f64>() / f64::from(few)
        };
        Some((0..DRAWS).map(mean).map(counts).sum::<f64>() / f64::from(DRAWS))
    }

    /// Compares two values, so that a sort puts the worst first: the value with the greatest factor between published
    /// and measured value, divided by the factor of the table.
    pub fn worst_first(&self, other: &Self) -> Ordering {
        other.badness().total_cmp(&self.badness())
    }

    /// Returns the factor between the published and the measured value, divided by the factor of the table; infinite if
    /// the value was not measured.
    fn badness(&self) -> f64 {
        self.value.factor().map_or(f64::INFINITY, |factor| factor / self.table.factor)
    }
}

impl Nearness<'_> {
    /// Returns a line: the number of values within the factor, the largest factor, and how the experiment differs from the
    /// paper.
    pub fn words(&self) -> String {
        let Self { table, values, within, largest } = self;
        let largest = largest.map_or_else(
            || "not all measured".to_owned(),
            |largest| format!("largest {}", significant_or_dash(Some(largest), 3)),
        );
        let why = if table.why.is_empty() { String::new() } else { format!("; {}", table.why) };
        format!("{}: {within} of {values} within a factor of {}, {largest}{why}", table.title, table.factor)
    }
}

/// Returns a sentence or two for each table with an independent witness: its source, how many of its values are within the
/// factor of the measured ones, and for how many of them witness and measurement agree against the paper.
pub fn witnesses(judged: &[Judged]) -> Vec<String> {
    let known: Vec<Judged> = judged.iter().filter(|one| one.witness.is_some()).copied().collect();
    let of = |table: &PaperTable| {
        let own = || known.iter().filter(|one| one.table.title == table.title);
        let within = own().filter(|one| one.by_witness().is_some_and(|one| one.within())).count();
        let against = own().filter(|one| one.is_against_paper()).count();
        let against = match against {
            0 => String::new(),
            1 => " For one value the witness agrees with us and not with the paper.".to_owned(),
            count => format!(" For {count} values the witness agrees with us and not with the paper."),
        };
        let (source, count) = (&table.witness, own().count());
        format!("Witness: {source}. {within} of its {count} values are within the factor of ours.{against}")
    };
    let mut tables = distinct(known.iter().map(|one| one.table));
    // By title, because `judged` has the worst first.
    tables.sort_by(|a, b| a.title.cmp(&b.title));
    tables.into_iter().map(of).collect()
}

/// Returns every published value of a table among `results`, the worst first.
pub fn judged<'a>(results: &'a [CellResult], references: &'a References) -> Vec<Judged<'a>> {
    let values = results
        .iter()
        .flat_map(|result| references.compared(result).into_iter().map(move |value| (result, value)));
    let mut all: Vec<_> = values
        .filter_map(|(result, value)| {
            let published = references.published(&result.cell)?;
            let table = published.tables.get(&value.metric)?;
            let witness = published.witnesses.get(&value.metric).copied();
            Some(Judged { table, result, value, witness })
        })
        .collect();
    all.sort_by(Judged::worst_first);
    all
}

/// Returns the tables of these values, sorted by title.
pub fn nearness<'a>(judged: &[Judged<'a>]) -> Vec<Nearness<'a>> {
    let larger = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a.max(b));
    let of = |own: Vec<&Judged<'a>>| Nearness {
        table: own[0].table,
        values: own.len(),
        within: own.iter().filter(|one| one.within()).count(),
        // One unmeasured value makes the largest unknown, because it may be the farthest.
        largest: own.iter().map(|one| one.value.factor()).reduce(larger).flatten(),
    };
    let groups = grouped(judged, |a, b| a.table.title == b.table.title);
    let mut tables: Vec<Nearness> = groups.into_iter().map(of).collect();
    tables.sort_by(|a, b| a.table.title.cmp(&b.table.title));
    tables
}

/// The number of random means from which a share or a quantile is estimated.
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
        let why = "other radios".to_owned();
        let table =
            PaperTable { title: title.into(), factor, runs: None, why, witness: "another simulator".into() };
        let runs = measured.iter().zip(1..);
        let result = CellResult {
            cell: Cell { mechanism: "a".into(), clients: 60, ..Cell::default() },
            runs: runs
                .map(|(&throughput, seed)| RunResult { seed, throughput, ..RunResult::default() })
                .collect(),
        };
        let published = Published {
            tables: [(Metric::Throughput, table)].into(),
            ..Published::value(Metric::Throughput, published, "p")
        };
        (result, Some(published))
    }

    /// Returns the result of a function for the only published value.
    fn of_only<T>(result: WithPublished, of: impl Fn(Judged) -> T) -> T {
        let (results, references) = parted([result]);
        of(judged(&results, &references)[0])
    }

    #[test]
    fn a_measured_value_is_near_a_published_one_within_a_factor_in_both_directions() {
        for (measured, within) in [(15.0, true), (15.1, false), (6.7, true), (6.6, false), (0.0, false)] {
            let result = printed("Table 1", 1.5, 10.0, &[measured]);
            assert_eq!(of_only(result, |it| it.within()), within, "{measured}");
        }
        assert!(!of_only(printed("Table 1", 1.5, 10.0, &[]), |it| it.within()), "nothing was measured");
    }

    #[test]
    fn near_values_are_counted_for_each_published_table_and_the_farthest_is_listed_first() {
        let (results, references) = parted([
            printed("Table 2", 1.2, 10.0, &[11.0]),
            printed("Table 1", 3.0, 10.0, &[20.0]),
            printed("Table 2", 1.2, 10.0, &[5.0]),
        ]);
        let judged = judged(&results, &references);
        let factors: Vec<_> = judged.iter().map(|one| one.value.factor().unwrap()).collect();
        assert!((factors[0] - 2.0).abs() < 1e-12 && (factors[1] - 1.1).abs() < 1e-12, "{factors:?}");
        let tables = nearness(&judged);
        let counts: Vec<_> =
            tables.iter().map(|it| (it.table.title.as_str(), it.within, it.values)).collect();
        assert_eq!(counts, [("Table 1", 1, 1), ("Table 2", 1, 2)]);
        assert_eq!(tables[1].largest, Some(2.0));
    }

    #[test]
    fn a_published_table_with_an_unmeasured_value_has_no_largest_factor() {
        let (results, references) =
            parted([printed("Table 1", 2.0, 10.0, &[10.0]), printed("Table 1", 2.0, 10.0, &[])]);
        let judged = judged(&results, &references);
        let Nearness { within, values, largest, .. } = nearness(&judged)[0];
        assert_eq!((within, values, largest), (1, 2, None));
    }

    #[test]
    fn published_values_are_also_compared_with_a_witness_that_may_contradict_the_paper() {
        let witnessed = |measured: f64, low, high| {
            let mut result = printed("Table 1", 2.0, 10.0, &[measured]);
            let witness = Witness { low, high };
            result.1.as_mut().expect("published").witnesses.insert(Metric::Throughput, witness);
            result
        };
        let words = |result| of_only(result, |it| (it.witness_words(), it.within(), it.is_against_paper()));
        let pair = |value: &str, verdict: &str| [value.to_owned(), verdict.to_owned()];
        assert_eq!(words(witnessed(30.0, 40.0, 50.0)), (pair("40.0–50.0", "1.33 within"), false, true));
        assert!(!words(witnessed(30.0, 15.0, 50.0)).2, "the witness is near the paper");
        assert_eq!(words(witnessed(15.0, 40.0, 50.0)), (pair("40.0–50.0", "2.67 beyond"), true, false));
        assert_eq!(words(printed("Table 1", 2.0, 10.0, &[30.0])), (pair("–", "–"), false, false));

        let all =
            [witnessed(30.0, 40.0, 50.0), witnessed(15.0, 40.0, 50.0), printed("Table 1", 2.0, 10.0, &[9.0])];
        let (results, references) = parted(all);
        assert_eq!(
            witnesses(&judged(&results, &references)),
            [
                "Witness: another simulator. 1 of its 2 values are within the factor of ours. For one value the witness agrees with us \
              and not with the paper."
            ]
        );
    }

    #[test]
    fn published_values_outside_a_table_are_not_judged() {
        let (result, _) = printed("Table 1", 2.0, 10.0, &[10.0]);
        let published = Published::value(Metric::Throughput, 10.0, "p");
        let (results, references) = parted([(result, Some(published))]);
        assert!(judged(&results, &references).is_empty());
    }

    /// Makes a published value that is the mean of two runs, measured as 0 and 1: means of two are 0, 1/2 and 1 with the
    /// probabilities 1/4, 1/2 and 1/4.
    fn mean_of_two(published: f64, factor: f64) -> WithPublished {
        of_two(published, factor, &[0.0, 1.0])
    }

    /// Makes a published value that is the mean of two runs, with measured throughputs.
    fn of_two(published: f64, factor: f64, measured: &[f64]) -> WithPublished {
        let mut result = printed("Table 1", factor, published, measured);
        let tables = &mut result.1.as_mut().expect("published").tables;
        tables.get_mut(&Metric::Throughput).expect("a table").runs = Some(2);
        result
    }

    /// Four standard deviations of a share among 10,000 random draws.
    const CHANCE: f64 = 0.02;

    #[test]
    fn a_published_mean_of_few_runs_has_its_quantile_among_our_means_of_as_many_runs() {
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
        let table = PaperTable {
            title: "Table 1".into(),
            factor: 1.5,
            runs: Some(2),
            why: String::new(),
            witness: String::new(),
        };
        unmeasured.1 = Some(Published {
            tables: [(Metric::SettlingTime, table)].into(),
            ..Published::value(Metric::SettlingTime, 1.0, "p")
        });
        assert_eq!(of_only(unmeasured, |it| it.quantile()), None, "no run has the metric");
    }

    #[test]
    fn our_own_means_of_few_runs_show_how_often_chance_stays_within_the_factor() {
        for (factor, expected) in [(1.5, 0.5), (2.0, 0.75)] {
            let repeated = of_only(mean_of_two(9.0, factor), |it| it.repeated()).unwrap();
            assert!((repeated - expected).abs() < CHANCE, "{factor}: {repeated}");
        }
    }
}
