//! Published rankings and ratios beside the measured ones, and whether they hold.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt::Write;

use super::{Order, OrderOutcome, Published, References, Relation};
use crate::lists::distinct;
use crate::number::significant;
use crate::results::{CellResult, Metric, PairedRatio, compared_value};

/// A published ranking beside the measured values.
#[derive(Clone, Debug)]
pub struct OrderVerdict<'a> {
    /// The mechanism named first. Its value is claimed to be larger, except for a ratio below 1.
    pub above: &'a CellResult,
    /// The published ranking.
    pub order: &'a Order,
    /// The values of the first and the second mechanism over all runs together; `None` if a value is unknown.
    pub values: [Option<f64>; 2],
    /// The ratio of the first value to the second.
    pub ratio: Option<PairedRatio>,
    /// Where the ranking is printed.
    pub source: &'a str,
    /// The ratio of the values that the paper prints for both mechanisms, if it does.
    printed: Option<f64>,
}

impl OrderVerdict<'_> {
    /// Returns whether the seeds confirm the ranking.
    pub fn outcome(&self) -> OrderOutcome {
        self.order.outcome(self.ratio, self.printed)
    }

    /// Returns the number of seeds that would probably decide an inconclusive ranking; `None` if it is decided, or if the
    /// number is unknown.
    pub fn deciding_seeds(&self) -> Option<u64> {
        let ratio = self.ratio.filter(|_| self.outcome() == OrderOutcome::Inconclusive)?;
        self.order.deciding_seeds(ratio, self.printed, self.above.runs.len())
    }

    /// Returns how far the measured ratio exceeds the published one, as the difference of their natural logarithms: the
    /// lower, the worse. For a claim with `=`, returns the negative distance, because a ratio can be missed in both
    /// directions. Returns negative infinity without a measured ratio.
    fn margin(&self) -> f64 {
        let Some(PairedRatio { mean, .. }) = self.ratio else { return f64::NEG_INFINITY };
        let distance = (mean / self.order.bound()).ln();
        // A ratio can be missed in both directions.
        if self.order.relation == Relation::Times { -distance.abs() } else { distance }
    }

    /// Compares two rankings, so that a sort puts the worst first: rankings that do not hold, the farthest off first,
    /// then inconclusive ones, then the others.
    pub fn worst_first(&self, other: &Self) -> Ordering {
        self.outcome().cmp(&other.outcome()).then(self.margin().total_cmp(&other.margin()))
    }

    /// Returns the outcome as text: `inconclusive (120 seeds)` if 120 seeds would probably decide the ranking, and
    /// `not held (at most 5 % more)` if the interval allows a difference in the published direction, but by at most
    /// the margin.
    pub fn words(&self) -> String {
        let word = self.outcome().word();
        let Some(ratio) = self.ratio else { return format!("{word} (not measured in every seed)") };
        let how = match self.outcome() {
            OrderOutcome::Held => None,
            OrderOutcome::Inconclusive => self.deciding_seeds().map(|seeds| format!("{seeds} seeds")),
            OrderOutcome::NotHeld => {
                let direction = self.order.negligible(ratio);
                direction
                    .map(|direction| format!("at most {} {direction}", share(self.order.allowance.margin)))
            }
        };
        how.map_or_else(|| word.to_owned(), |how| format!("{word} ({how})"))
    }

    /// Returns as text the published ratio, or with `>` and `≥`, the least ratio that is claimed; a dash if the paper
    /// only ranks both mechanisms.
    pub fn published_times(&self) -> String {
        match (self.order.relation, self.order.times) {
            (_, None) => "–".to_owned(),
            (Relation::Times, Some(times)) => significant(times, 3),
            (relation, Some(times)) => format!("{relation} {}", significant(times, 3)),
        }
    }

    /// Returns the ratio and its interval as texts; dashes if it was not measured.
    pub fn ratio_words(&self) -> (String, String) {
        self.ratio.map_or_else(|| ("–".into(), "–".into()), PairedRatio::words)
    }

    /// Returns the likely reason for a ranking that did not hold or is inconclusive; empty if it held, or if none is known.
    pub fn reason(&self) -> &str {
        if self.outcome() == OrderOutcome::Held { "" } else { &self.order.why }
    }

    /// Returns the ranking as text.
    pub fn claim(&self) -> String {
        format!("{} {}", self.above.cell.label(), self.order.words())
    }
}

/// Returns every published ranking among `results`, the worst first. A ranking is left out if the other mechanism was not run.
pub fn verdicts<'a>(results: &'a [CellResult], references: &'a References) -> Vec<OrderVerdict<'a>> {
    let published = results.iter().filter_map(|above| Some((above, references.published(&above.cell)?)));
    let claims = published
        .flat_map(|(above, published)| published.orders.iter().map(move |it| (above, published, it)));
    let mut verdicts: Vec<_> = claims
        .filter_map(|(above, Published { source, .. }, order)| {
            OrderVerdict::of((above, order, source), results, references)
        })
        .collect();
    verdicts.sort_by(OrderVerdict::worst_first);
    verdicts
}

/// Returns the number of rankings with this outcome.
pub(crate) fn count(verdicts: &[OrderVerdict], outcome: OrderOutcome) -> usize {
    verdicts.iter().filter(|verdict| verdict.outcome() == outcome).count()
}

/// Returns a line with the number of rankings that held, that did not, and that are inconclusive.
pub fn tally(verdicts: &[OrderVerdict]) -> String {
    let count = |outcome| count(verdicts, outcome);
    let mut text = format!("{} of {} held", count(OrderOutcome::Held), verdicts.len());
    for outcome in
        [OrderOutcome::NotHeld, OrderOutcome::Inconclusive].into_iter().filter(|&outcome| count(outcome) > 0)
    {
        let _ = write!(text, ", {} {}", count(outcome), outcome.word());
    }
    text
}

/// Returns a line for each pair of mechanisms, and for each metric if there are several: how many rankings held.
pub(crate) fn tally_by_claim(verdicts: &[OrderVerdict]) -> Vec<String> {
    let one_metric = metrics(verdicts).len() == 1;
    let words = |verdict: &OrderVerdict| match verdict.order.metric {
        _ if one_metric => verdict.claim(),
        metric => format!("{} {}", metric.title(), verdict.claim()),
    };
    let line = |claim: String| {
        let own = || verdicts.iter().filter(|verdict| words(verdict) == claim);
        let held = own().filter(|verdict| verdict.outcome() == OrderOutcome::Held).count();
        format!("{claim}: {held} of {} held", own().count())
    };
    distinct(verdicts.iter().map(words)).into_iter().map(line).collect()
}

/// Returns the metrics of these rankings, each once.
pub(crate) fn metrics(verdicts: &[OrderVerdict]) -> BTreeSet<Metric> {
    verdicts.iter().map(|verdict| verdict.order.metric).collect()
}

/// Returns the rules by which these rankings are judged, a sentence each.
pub fn rules(verdicts: &[OrderVerdict]) -> Vec<String> {
    let rule = |order: &Order| match order.relation {
        Relation::Above => "a > b holds if the whole interval of a/b is above 1.".to_owned(),
        Relation::NotBelow => {
            format!("a ≥ b holds if the whole interval is above 1 less {}.", share(order.allowance.margin))
        }
        Relation::Times => format!(
            "a = x b holds if the interval is on the same side of 1 as x, overlaps the band from x/{0} to {0}·x, and is at most as wide. It \
             does not hold if the interval misses the band, or leaves at most {1} of a published difference that is larger.",
            significant(1.0 + order.allowance.tolerance, 3),
            share(order.allowance.margin)
        ),
    };
    // Only rules that some verdict used are printed: a reader checks them one by one.
    let mut rules = distinct(verdicts.iter().map(|verdict| rule(verdict.order)));
    if verdicts.iter().any(|it| it.order.times.is_some() && it.order.relation != Relation::Times) {
        rules.push("With a factor, as in a > 2 b, the factor takes the place of 1.".to_owned());
    }
    // The rule for a ratio says itself when it does not hold.
    let directed = |it: &&OrderVerdict| it.order.relation != Relation::Times;
    if let Some(order) = verdicts.iter().find(directed).map(|verdict| verdict.order) {
        let margin = share(order.allowance.margin);
        rules.push(format!(
            "An order does not hold if the opposite does: b ≥ a (a is at most {margin} more) for a > b, and b > a for a ≥ b. If an interval \
             shows both, the order holds."
        ));
    }
    if verdicts.iter().any(|verdict| verdict.order.metric == Metric::SettlingTime) {
        rules.push("A run that did not settle counts the whole time in which it could.".to_owned());
    }
    if verdicts.iter().any(|verdict| verdict.outcome() == OrderOutcome::Inconclusive) {
        rules.push("An order is inconclusive if the interval neither shows nor refutes it; the number is how many seeds would probably decide it.".to_owned());
    }
    rules
}

/// Returns the likely reasons for the rankings that did not hold or are inconclusive, a line each.
pub(crate) fn reasons(verdicts: &[OrderVerdict]) -> Vec<String> {
    distinct(verdicts.iter().filter(|verdict| !verdict.reason().is_empty()).map(|verdict| {
        let (outcome, title) = (verdict.outcome().word(), verdict.order.metric.title());
        format!("{outcome}, {title} {}: {}", verdict.claim(), verdict.reason())
    }))
}

/// Returns a share as a percentage.
fn share(share: f64) -> String {
    format!("{} %", significant(share * 100.0, 2))
}

impl<'a> OrderVerdict<'a> {
    fn of(
        (above, order, source): (&'a CellResult, &'a Order, &'a str),
        results: &[CellResult],
        references: &References,
    ) -> Option<Self> {
        let below = results
            .iter()
            .find(|below| below.cell.label() == order.than && below.cell.same_conditions(&above.cell))?;
        let values = [above, below].map(|result| compared_value(order.metric, &result.runs));
        let ratio = PairedRatio::by_seed(order.metric, above, below);
        let printed = [above, below].map(|result| references.value(&result.cell, order.metric));
        let printed = printed[0].zip(printed[1]).map(|(first, second)| first / second);
        Some(Self { above, order, values, ratio, source, printed })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::order::tests::ALLOWANCE;
    use super::super::references::tests::{WithPublished, parted};
    use super::*;
    use crate::results::Cell;
    use coapace_run::measured::RunResult;

    fn result(mechanism: &str, throughput: &[f64]) -> CellResult {
        let runs = throughput.iter().zip(1..);
        CellResult {
            cell: Cell { mechanism: mechanism.into(), clients: 60, ..Cell::default() },
            runs: runs
                .map(|(&throughput, seed)| RunResult { seed, throughput, ..RunResult::default() })
                .collect(),
        }
    }

    /// Makes results of `a` and `b`, with a published relation of `a` to `b`.
    pub(crate) fn claimed(a: &[f64], relation: Relation, b: &[f64]) -> [WithPublished; 2] {
        let order = Order {
            metric: Metric::Throughput,
            relation,
            times: None,
            than: "b".into(),
            why: "other timers".into(),
            allowance: ALLOWANCE,
        };
        let published = Published { orders: vec![order], ..Published::default() };
        [(result("a", a), Some(published)), (result("b", b), None)]
    }

    /// Makes results with a ranking that holds with 60 clients, and does not with 180.
    pub(crate) fn held_and_not_held() -> (Vec<CellResult>, References) {
        let held = claimed(&[30.0, 33.0, 36.0], Relation::Above, &[10.0, 11.0, 12.5]);
        let mut not_held = claimed(&[1.0, 1.1, 1.2], Relation::NotBelow, &[2.0, 2.0, 2.0]);
        for (result, _) in &mut not_held {
            result.cell.clients = 180;
        }
        parted(held.into_iter().chain(not_held))
    }

    fn outcome(results: [WithPublished; 2]) -> OrderOutcome {
        let (results, references) = parted(results);
        let verdicts = verdicts(&results, &references);
        assert_eq!(verdicts.len(), 1);
        verdicts[0].outcome()
    }

    const MANY: [f64; 3] = [30.0, 33.0, 36.0];
    const FEW: [f64; 3] = [10.0, 11.0, 12.0];
    /// Values about as large as [`FEW`]: larger with some seeds, smaller with others.
    const ALIKE: [f64; 3] = [10.5, 10.8, 12.1];

    #[test]
    fn a_measured_ranking_holds_and_its_reverse_does_not() {
        for relation in [Relation::Above, Relation::NotBelow] {
            assert_eq!(outcome(claimed(&MANY, relation, &FEW)), OrderOutcome::Held);
            assert_eq!(outcome(claimed(&FEW, relation, &MANY)), OrderOutcome::NotHeld);
        }
    }

    #[test]
    fn an_inconclusive_ranking_names_the_number_of_seeds_that_would_decide_it() {
        let (results, references) = parted(claimed(&ALIKE, Relation::Above, &FEW));
        let verdict = &verdicts(&results, &references)[0];
        assert_eq!(verdict.outcome(), OrderOutcome::Inconclusive);
        let seeds = verdict.deciding_seeds().unwrap();
        assert!(seeds > 3);
        assert_eq!(verdict.words(), format!("inconclusive ({seeds} seeds)"));
        assert_eq!(outcome(claimed(&FEW, Relation::NotBelow, &ALIKE)), OrderOutcome::Inconclusive);
    }

    /// Makes [`claimed`] results whose ranking has a number.
    pub(crate) fn claimed_times(a: &[f64], relation: Relation, times: f64, b: &[f64]) -> [WithPublished; 2] {
        let mut results = claimed(a, relation, b);
        for order in results[0].1.iter_mut().flat_map(|published| &mut published.orders) {
            order.times = Some(times);
        }
        results
    }

    #[test]
    fn rankings_that_did_not_hold_are_listed_first_with_the_farthest_off_on_top() {
        let rows = [
            (claimed(&MANY, Relation::Above, &FEW), 1),
            (claimed(&FEW, Relation::Above, &ALIKE), 2),
            (claimed_times(&MANY, Relation::Times, 0.5, &FEW), 3),
            (claimed(&[], Relation::Above, &FEW), 4),
        ];
        let (results, references) = parted(rows.into_iter().flat_map(|(pair, clients)| {
            pair.map(|(mut result, published)| {
                result.cell.clients = clients;
                (result, published)
            })
        }));
        let verdicts = verdicts(&results, &references);
        let order: Vec<_> = verdicts.iter().map(|verdict| verdict.above.cell.clients).collect();
        assert_eq!(order, [3, 4, 2, 1]);
        let reasons = reasons(&verdicts);
        let outcomes = ["not held, throughput a = 0.5 b", "inconclusive, throughput a > b"];
        assert_eq!(reasons, outcomes.map(|outcome| format!("{outcome}: other timers")));
    }

    #[test]
    fn two_mechanisms_are_compared_seed_by_seed_in_any_order_of_runs() {
        let (mut results, references) = parted(claimed(&MANY, Relation::Above, &FEW));
        results[1].runs.reverse();
        let verdicts = verdicts(&results, &references);
        let ratio = verdicts[0].ratio.unwrap();
        assert!((ratio.mean - 3.0).abs() < 1e-12, "{ratio:?}");
        let (low, high) = ratio.interval.unwrap();
        assert!((low - 3.0).abs() < 1e-9 && (high - 3.0).abs() < 1e-9, "the ratio is 3 with each seed");
        assert_eq!(verdicts[0].values, [Some(33.0), Some(11.0)]);
        assert_eq!(verdicts[0].claim(), "a > b");
    }

    #[test]
    fn a_single_seed_gives_a_ratio_without_an_interval() {
        let one = claimed(&[2.0], Relation::Above, &[1.0]);
        let (results, references) = parted(one.clone());
        let verdict = &verdicts(&results, &references)[0];
        assert_eq!(verdict.ratio, Some(PairedRatio { mean: 2.0, interval: None }));
        assert_eq!(outcome(one), OrderOutcome::Inconclusive);
        assert_eq!(verdict.words(), "inconclusive");
    }

    #[test]
    fn a_published_ranking_without_results_is_inconclusive() {
        assert_eq!(outcome(claimed(&[], Relation::NotBelow, &[])), OrderOutcome::Inconclusive, "no runs");
        let nothing = claimed(&[0.0; 3], Relation::NotBelow, &[0.0; 3]);
        assert_eq!(outcome(nothing), OrderOutcome::Inconclusive, "nothing in either");
    }

    #[test]
    fn a_positive_value_exceeds_zero_at_any_claimed_ratio() {
        assert_eq!(outcome(claimed_times(&MANY, Relation::Above, 2.0, &[0.0; 3])), OrderOutcome::Held);
        let nearly = claimed(&[0.0, 0.1, 0.0], Relation::Above, &[0.0, 0.0, 0.1]);
        assert_eq!(outcome(nearly), OrderOutcome::Inconclusive);
    }

    #[test]
    fn a_published_ranking_is_judged_only_where_both_mechanisms_ran_under_the_same_conditions() {
        let (mut results, references) = parted(claimed(&MANY, Relation::Above, &FEW));
        assert_eq!(verdicts(&results[..1], &references).len(), 0);
        results[1].cell.clients = 61;
        assert_eq!(verdicts(&results, &references).len(), 0);
    }

    #[test]
    fn verdicts_are_counted_in_total_and_for_each_claim() {
        let good = claimed(&MANY, Relation::Above, &FEW);
        let mut bad = claimed(&FEW, Relation::Above, &MANY);
        for (result, _) in &mut bad {
            result.cell.clients = 180;
        }
        let mut both: Vec<_> = good.into_iter().chain(bad).collect();
        let (results, references) = parted(both.clone());
        let of_throughput = verdicts(&results, &references);
        assert_eq!(tally(&of_throughput), "1 of 2 held, 1 not held");
        assert_eq!(tally_by_claim(&of_throughput), ["a > b: 1 of 2 held"]);
        for order in both[0].1.iter_mut().flat_map(|published| &mut published.orders) {
            order.metric = Metric::Jain;
        }
        let (results, references) = parted(both);
        let of_both = verdicts(&results, &references);
        assert_eq!(tally(&of_both), "0 of 2 held, 1 not held, 1 inconclusive");
        let claims = ["throughput a > b: 0 of 1 held", "Jain’s index a > b: 0 of 1 held"];
        assert_eq!(tally_by_claim(&of_both), claims);
    }
}
