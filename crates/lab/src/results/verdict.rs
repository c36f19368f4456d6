//! Published orders and ratios beside the measured ones, and whether they hold.

use std::cmp::Ordering;

use super::number::significant;
use super::{CellResult, Metric, Order, Ratio, Relation};

/// A published order beside what was measured.
#[derive(Clone, Debug)]
pub struct Verdict<'a> {
    /// The mechanism that is named first. Its figure is said to be larger, except for a ratio below 1.
    pub above: &'a CellResult,
    /// The published order.
    pub order: &'a Order,
    /// The pooled figures of the first mechanism and of the second.
    pub figures: [Option<f64>; 2],
    /// The ratio of the first figure to the second.
    pub ratio: Option<Ratio>,
}

impl Verdict<'_> {
    /// Returns whether the order holds. `>` holds if the whole interval of the ratio is above 1, or above the published
    /// factor. `≥` holds unless the whole interval is below, because then the opposite is shown. A ratio, `=`, holds if the
    /// whole interval is on the same side of 1 as the published ratio. With one seed there is no interval, and the ratio
    /// itself decides. An order without a measured ratio does not hold.
    pub fn held(&self) -> bool {
        self.ratio.is_some_and(|Ratio { mean, interval }| {
            let (low, high) = interval.unwrap_or((mean, mean));
            match (self.order.relation, self.order.times) {
                (Relation::Above, times) => low > times.unwrap_or(1.0),
                (Relation::NotBelow, times) => high >= times.unwrap_or(1.0),
                (Relation::Times, Some(times)) if times < 1.0 => high < 1.0,
                (Relation::Times, _) => low > 1.0,
            }
        })
    }

    /// Returns whether the pooled figures are in the published order, even if only by chance.
    pub fn in_order(&self) -> bool {
        let [Some(first), Some(second)] = self.figures else { return false };
        match (self.order.relation, self.order.times) {
            (Relation::Above, times) => first > second * times.unwrap_or(1.0),
            (Relation::NotBelow, times) => first >= second * times.unwrap_or(1.0),
            (Relation::Times, Some(times)) if times < 1.0 => first < second,
            (Relation::Times, _) => first > second,
        }
    }

    /// Returns the logarithm of the ratio over the bound that it must exceed; negative if the order is the other way round.
    /// Without a measured ratio it is negative infinity.
    fn margin(&self) -> f64 {
        let Some(Ratio { mean, .. }) = self.ratio else { return f64::NEG_INFINITY };
        match (self.order.relation, self.order.times) {
            (Relation::Times, Some(times)) if times < 1.0 => -mean.ln(),
            (Relation::Times, _) => mean.ln(),
            (_, times) => (mean / times.unwrap_or(1.0)).ln(),
        }
    }

    /// Orders the worst first: those that do not hold, the farthest off first, and then the others.
    pub fn worst_first(&self, other: &Self) -> Ordering {
        self.held().cmp(&other.held()).then(self.margin().total_cmp(&other.margin()))
    }

    /// Returns `held`, `not held`, or `not held, but in order`.
    pub fn word(&self) -> &'static str {
        match (self.held(), self.in_order()) {
            (true, _) => "held",
            (false, true) => "not held, but in order",
            (false, false) => "not held",
        }
    }

    /// Returns the published ratio or the least ratio; a dash if an order alone was published.
    pub fn published_times(&self) -> String {
        match (self.order.relation, self.order.times) {
            (_, None) => "–".to_owned(),
            (Relation::Times, Some(times)) => significant(times, 3),
            (relation, Some(times)) => format!("{relation} {}", significant(times, 3)),
        }
    }

    /// Returns the order in words.
    pub fn claim(&self) -> String {
        format!("{} {}", self.above.cell.mechanism, self.order.words())
    }
}

/// Returns every published order among `results`, the worst first. An order is left out if the other mechanism was not run.
pub fn verdicts(results: &[CellResult]) -> Vec<Verdict<'_>> {
    let claims = results.iter().flat_map(|above| {
        above.published.iter().flat_map(|published| &published.orders).map(move |order| (above, order))
    });
    let mut verdicts: Vec<_> =
        claims.filter_map(|(above, order)| Verdict::of(above, order, results)).collect();
    verdicts.sort_by(Verdict::worst_first);
    verdicts
}

/// Returns a line with the number of orders that held: of all of them, with those that are in order by chance, then of each
/// pair of mechanisms, by metric if there are several.
pub fn tally(verdicts: &[Verdict]) -> String {
    let held = |of: &dyn Fn(&Verdict) -> bool| {
        let of: Vec<_> = verdicts.iter().filter(|verdict| of(verdict)).collect();
        format!("{} of {} held", of.iter().filter(|verdict| verdict.held()).count(), of.len())
    };
    let one_metric = metrics(verdicts).len() == 1;
    let words = |verdict: &Verdict| match verdict.order.metric {
        _ if one_metric => verdict.claim(),
        metric => format!("{} {}", metric.title(), verdict.claim()),
    };
    let mut claims: Vec<String> = Vec::new();
    for claim in verdicts.iter().map(words) {
        if !claims.contains(&claim) {
            claims.push(claim);
        }
    }
    let each = claims.iter().map(|claim| format!("; {claim}: {}", held(&|verdict| words(verdict) == *claim)));
    let in_order = verdicts.iter().filter(|verdict| !verdict.held() && verdict.in_order()).count();
    let others = if in_order == 0 { String::new() } else { format!(", {in_order} more in order") };
    [held(&|_| true), others].into_iter().chain(each).collect()
}

/// Returns the metrics of these orders, each once.
pub(crate) fn metrics(verdicts: &[Verdict]) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = verdicts.iter().map(|verdict| verdict.order.metric).collect();
    metrics.sort_unstable();
    metrics.dedup();
    metrics
}

/// Returns the likely reasons for the orders that did not hold, a line each.
pub(crate) fn reasons(verdicts: &[Verdict]) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    let said = |verdict: &&Verdict| !verdict.held() && !verdict.order.why.is_empty();
    for verdict in verdicts.iter().filter(said) {
        let reason = format!("{} {}: {}", verdict.order.metric.title(), verdict.claim(), verdict.order.why);
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons
}

impl<'a> Verdict<'a> {
    fn of(above: &'a CellResult, order: &'a Order, results: &[CellResult]) -> Option<Self> {
        let below = results
            .iter()
            .find(|below| below.cell.mechanism == order.than && below.cell.same_conditions(&above.cell))?;
        let figures =
            [above, below].map(|result| order.metric.estimate(&result.runs).map(|figure| figure.mean));
        let ratio = Ratio::by_seed(order.metric, above, below);
        Some(Self { above, order, figures, ratio })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{Cell, Published, RunResult};
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

    /// Makes `a`, with a published order of this relation to `b`, and `b`.
    pub(in crate::results) fn claimed(a: &[f64], relation: Relation, b: &[f64]) -> [CellResult; 2] {
        let mut a = result("a", a);
        let order = Order {
            metric: Metric::Throughput,
            relation,
            times: None,
            than: "b".into(),
            why: "other timers".into(),
        };
        a.published = Some(Published { orders: vec![order], ..Published::default() });
        [a, result("b", b)]
    }

    /// Makes results with an order that holds with 60 clients, and does not with 180.
    pub(in crate::results) fn held_and_not_held() -> Vec<CellResult> {
        let held = claimed(&[30.0, 33.0, 36.0], Relation::Above, &[10.0, 11.0, 12.5]);
        let mut not_held = claimed(&[1.0, 1.1, 1.2], Relation::NotBelow, &[2.0, 2.0, 2.0]);
        for result in &mut not_held {
            result.cell.clients = 180;
        }
        held.into_iter().chain(not_held).collect()
    }

    fn held(results: &[CellResult]) -> bool {
        let verdicts = verdicts(results);
        assert_eq!(verdicts.len(), 1);
        verdicts[0].held()
    }

    const MANY: [f64; 3] = [30.0, 33.0, 36.0];
    const FEW: [f64; 3] = [10.0, 11.0, 12.0];
    /// About as much as [`FEW`]: more with some seeds, less with others.
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

    /// Makes [`claimed`] results whose order has a number.
    pub(in crate::results) fn claimed_times(
        a: &[f64],
        relation: Relation,
        times: f64,
        b: &[f64],
    ) -> [CellResult; 2] {
        let mut results = claimed(a, relation, b);
        for order in results[0].published.iter_mut().flat_map(|published| &mut published.orders) {
            order.times = Some(times);
        }
        results
    }

    #[test]
    fn a_number_moves_what_an_order_is_judged_by() {
        for (relation, times, expected) in [
            (Relation::Above, 2.5, true),
            (Relation::Above, 3.5, false),
            (Relation::NotBelow, 2.9, true),
            (Relation::NotBelow, 3.1, false),
        ] {
            assert_eq!(held(&claimed_times(&MANY, relation, times, &FEW)), expected, "{relation} {times}");
        }
        assert!(
            held(&claimed_times(&FEW, Relation::NotBelow, 0.3, &MANY)),
            "the figure is less, but more than 0.3 of the other"
        );
    }

    #[test]
    fn a_ratio_holds_on_its_side_of_1_whatever_its_size() {
        assert!(held(&claimed_times(&MANY, Relation::Times, 1.1, &FEW)));
        assert!(!held(&claimed_times(&MANY, Relation::Times, 0.9, &FEW)));
        assert!(held(&claimed_times(&FEW, Relation::Times, 0.9, &MANY)));
        assert!(!held(&claimed_times(&ALIKE, Relation::Times, 1.1, &FEW)), "the difference may be chance");
        assert!(!held(&claimed_times(&ALIKE, Relation::Times, 0.9, &FEW)), "the difference may be chance");
    }

    #[test]
    fn what_did_not_hold_comes_first_and_the_farthest_off_before_the_others() {
        let rows = [
            (claimed(&MANY, Relation::Above, &FEW), 1),
            (claimed(&FEW, Relation::Above, &ALIKE), 2),
            (claimed_times(&MANY, Relation::Times, 0.5, &FEW), 3),
            (claimed(&[], Relation::Above, &FEW), 4),
        ];
        let results: Vec<CellResult> = (rows.into_iter())
            .flat_map(|(pair, clients)| {
                pair.map(|mut result| {
                    result.cell.clients = clients;
                    result
                })
            })
            .collect();
        let order: Vec<_> = verdicts(&results).iter().map(|verdict| verdict.above.cell.clients).collect();
        assert_eq!(order, [4, 3, 2, 1]);
        let reasons = reasons(&verdicts(&results));
        assert_eq!(reasons, ["throughput a > b: other timers", "throughput a = 0.5 b: other timers"]);
    }

    #[test]
    fn seeds_are_compared_one_by_one_whatever_their_order() {
        let mut results = claimed(&MANY, Relation::Above, &FEW);
        results[1].runs.reverse();
        let verdicts = verdicts(&results);
        let ratio = verdicts[0].ratio.unwrap();
        assert!((ratio.mean - 3.0).abs() < 1e-12, "{ratio:?}");
        let (low, high) = ratio.interval.unwrap();
        assert!((low - 3.0).abs() < 1e-9 && (high - 3.0).abs() < 1e-9, "the ratio is 3 with each seed");
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
        assert!(!held(&claimed(&[0.0; 3], Relation::NotBelow, &[0.0; 3])), "nothing in either");
    }

    #[test]
    fn something_is_above_nothing() {
        assert!(held(&claimed_times(&MANY, Relation::Above, 2.0, &[0.0; 3])));
        assert!(!held(&claimed(&[0.0, 0.1, 0.0], Relation::Above, &[0.0, 0.0, 0.1])));
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
        let mut results = results;
        for order in results[0].published.iter_mut().flat_map(|published| &mut published.orders) {
            order.metric = Metric::Jain;
        }
        assert_eq!(
            tally(&verdicts(&results)),
            "0 of 2 held; Jain’s index a > b: 0 of 1 held; throughput a > b: 0 of 1 held"
        );
    }
}
