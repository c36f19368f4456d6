//! Published orders beside what was measured: held or not, and by how much.

use super::{CellResult, Estimate, Order, Relation, Summary};

/// A published order beside what was measured.
#[derive(Clone, Debug)]
pub struct Verdict<'a> {
    /// The mechanism that is said to be above.
    pub above: &'a CellResult,
    /// What is said.
    pub order: &'a Order,
    /// The pooled figures, above and below.
    pub figures: [Option<f64>; 2],
    /// One divided by the other.
    pub ratio: Option<Ratio>,
}

/// How many times one figure is another.
///
/// The geometric mean over the seeds that both ran. A seed gives both mechanisms the same losses and delays, so they are
/// compared seed by seed; the confidence interval (95 %, Student's t) is that of the mean logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The geometric mean.
    pub mean: f64,
    /// Both ends of the interval; `None` with one seed.
    pub interval: Option<(f64, f64)>,
}

impl Verdict<'_> {
    /// Whether the order holds. `>` holds where the whole interval is above 1; `≥` unless the whole interval is below 1:
    /// unless the opposite was shown. With one seed there is no interval, and the ratio decides. What cannot be measured
    /// does not hold.
    pub fn held(&self) -> bool {
        self.ratio.is_some_and(|Ratio { mean, interval }| {
            let (low, high) = interval.unwrap_or((mean, mean));
            match self.order.relation {
                Relation::Above => low > 1.0,
                Relation::NotBelow => high >= 1.0,
            }
        })
    }

    /// `held` or `not held`.
    pub fn word(&self) -> &'static str {
        if self.held() { "held" } else { "not held" }
    }

    /// The order, in words.
    pub fn claim(&self) -> String {
        format!("{} {} {}", self.above.cell.mechanism, self.order.relation, self.order.than)
    }
}

/// Every published order among `results`, in their order. One whose other mechanism was not run is left out.
pub fn verdicts(results: &[CellResult]) -> Vec<Verdict<'_>> {
    let claims = results.iter().flat_map(|above| {
        above.published.iter().flat_map(|published| &published.orders).map(move |order| (above, order))
    });
    claims.filter_map(|(above, order)| Verdict::of(above, order, results)).collect()
}

/// How many of these orders held, in a line: all of them, then each pair of mechanisms.
pub fn tally(verdicts: &[Verdict]) -> String {
    let held = |of: &dyn Fn(&Verdict) -> bool| {
        let of: Vec<_> = verdicts.iter().filter(|verdict| of(verdict)).collect();
        format!("{} of {} held", of.iter().filter(|verdict| verdict.held()).count(), of.len())
    };
    let mut claims: Vec<String> = Vec::new();
    for claim in verdicts.iter().map(Verdict::claim) {
        if !claims.contains(&claim) {
            claims.push(claim);
        }
    }
    let each =
        claims.iter().map(|claim| format!("; {claim}: {}", held(&|verdict| verdict.claim() == *claim)));
    [held(&|_| true)].into_iter().chain(each).collect()
}

impl<'a> Verdict<'a> {
    fn of(above: &'a CellResult, order: &'a Order, results: &[CellResult]) -> Option<Self> {
        let below = results
            .iter()
            .find(|below| below.cell.mechanism == order.than && below.cell.same_conditions(&above.cell))?;
        let figures = [above, below].map(|result| order.metric.of(&result.summary()));
        Some(Self { above, order, figures, ratio: Ratio::of(order, above, below) })
    }
}

impl Ratio {
    fn of(order: &Order, above: &CellResult, below: &CellResult) -> Option<Self> {
        let value = |result: &CellResult, seed| {
            let run = result.runs.iter().find(|run| run.seed == seed)?;
            order.metric.of(&Summary::of(result.cell.clients, std::slice::from_ref(run)))
        };
        let both = above.runs.iter().filter(|run| below.runs.iter().any(|other| other.seed == run.seed));
        let logarithms = both.map(|run| {
            let ratio = value(above, run.seed)? / value(below, run.seed)?;
            (ratio > 0.0 && ratio.is_finite()).then(|| ratio.ln())
        });
        let Estimate { mean, half_width } = Estimate::of(&logarithms.collect::<Option<Vec<_>>>()?)?;
        let interval = half_width.map(|half| ((mean - half).exp(), (mean + half).exp()));
        Some(Self { mean: mean.exp(), interval })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{Cell, Metric, Published, RunResult};
    use super::*;

    fn result(mechanism: &str, throughput: &[f64]) -> CellResult {
        let runs = throughput.iter().zip(1..);
        CellResult {
            cell: Cell { mechanism: mechanism.into(), clients: 60, ..Cell::default() },
            runs: runs
                .map(|(&throughput, seed)| RunResult { seed, throughput, ..RunResult::default() })
                .collect(),
            published: None,
        }
    }

    /// `a`, said to be in this relation to `b`, and `b`.
    pub(in crate::results) fn claimed(a: &[f64], relation: Relation, b: &[f64]) -> [CellResult; 2] {
        let mut a = result("a", a);
        let order = Order { metric: Metric::Throughput, relation, than: "b".into() };
        a.published = Some(Published { orders: vec![order], ..Published::default() });
        [a, result("b", b)]
    }

    fn held(results: &[CellResult]) -> bool {
        let verdicts = verdicts(results);
        assert_eq!(verdicts.len(), 1);
        verdicts[0].held()
    }

    const MANY: [f64; 3] = [30.0, 33.0, 36.0];
    const FEW: [f64; 3] = [10.0, 11.0, 12.0];
    /// [`FEW`] again, now a little more, now a little less.
    const ALIKE: [f64; 3] = [10.5, 10.8, 12.1];

    #[test]
    fn an_order_holds_as_measured_and_not_the_other_way_round() {
        for relation in [Relation::Above, Relation::NotBelow] {
            assert!(held(&claimed(&MANY, relation, &FEW)));
            assert!(!held(&claimed(&FEW, relation, &MANY)));
        }
    }

    #[test]
    fn what_may_be_chance_is_not_above_but_not_below_either() {
        assert!(!held(&claimed(&ALIKE, Relation::Above, &FEW)));
        assert!(held(&claimed(&ALIKE, Relation::NotBelow, &FEW)));
        assert!(held(&claimed(&FEW, Relation::NotBelow, &ALIKE)));
    }

    #[test]
    fn seeds_are_compared_one_by_one_whatever_their_order() {
        let mut results = claimed(&MANY, Relation::Above, &FEW);
        results[1].runs.reverse();
        let verdicts = verdicts(&results);
        let ratio = verdicts[0].ratio.unwrap();
        assert!((ratio.mean - 3.0).abs() < 1e-12, "{ratio:?}");
        let (low, high) = ratio.interval.unwrap();
        assert!((low - 3.0).abs() < 1e-9 && (high - 3.0).abs() < 1e-9, "each seed has thrice as many");
        assert_eq!(verdicts[0].figures, [Some(33.0), Some(11.0)]);
        assert_eq!(verdicts[0].claim(), "a > b");
    }

    #[test]
    fn one_seed_has_a_ratio_and_no_interval() {
        let results = claimed(&[2.0], Relation::Above, &[1.0]);
        assert_eq!(verdicts(&results)[0].ratio, Some(Ratio { mean: 2.0, interval: None }));
        assert!(held(&results));
        assert!(!held(&claimed(&[1.0], Relation::Above, &[1.0])));
        assert!(held(&claimed(&[1.0], Relation::NotBelow, &[1.0])));
    }

    #[test]
    fn what_cannot_be_measured_is_not_held() {
        assert!(!held(&claimed(&[], Relation::NotBelow, &[])), "no runs");
        assert!(!held(&claimed(&MANY, Relation::Above, &[0.0; 3])), "nothing to divide by");
    }

    #[test]
    fn an_order_is_judged_only_where_both_ran_under_the_same_conditions() {
        let mut results = claimed(&MANY, Relation::Above, &FEW);
        assert_eq!(verdicts(&results[..1]).len(), 0);
        results[1].cell.clients = 61;
        assert_eq!(verdicts(&results).len(), 0);
    }

    #[test]
    fn verdicts_are_counted_in_all_and_by_claim() {
        let good = claimed(&MANY, Relation::Above, &FEW);
        let mut bad = claimed(&FEW, Relation::Above, &MANY);
        for result in &mut bad {
            result.cell.clients = 180;
        }
        let results: Vec<_> = good.into_iter().chain(bad).collect();
        assert_eq!(tally(&verdicts(&results)), "1 of 2 held; a > b: 1 of 2 held");
    }
}
