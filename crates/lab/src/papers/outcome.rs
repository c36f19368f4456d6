//! The outcome of a published ranking: whether the seeds confirm it, refute it, or neither.

use super::{Order, Relation};
use crate::results::PairedRatio;

/// The outcome of a published ranking. The worst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OrderOutcome {
    /// The seeds confirm the reverse of the claim, or a ratio far from the published one.
    NotHeld,
    /// The seeds confirm neither the claim nor its reverse: the interval is too wide, or nothing could be measured.
    Inconclusive,
    /// The seeds confirm the published claim.
    Held,
}

impl OrderOutcome {
    /// Every outcome, the best first.
    pub const ALL: [Self; 3] = [Self::Held, Self::Inconclusive, Self::NotHeld];

    /// Returns `held`, `inconclusive` or `not held`.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NotHeld => "not held",
            Self::Inconclusive => "inconclusive",
            Self::Held => "held",
        }
    }
}

/// The largest number of seeds that is reported as enough to decide a ranking.
const MOST_SEEDS: f64 = 1e4;

impl Order {
    /// Returns the outcome of the ranking for the measured `ratio`; inconclusive if it has no confidence interval.
    /// `printed` is the ratio of the values that the paper prints for both mechanisms, if it does.
    ///
    /// * `>` holds if the whole interval is above 1.
    /// * `≥` holds if the whole interval is above 1 less [the margin](super::RatioAllowance::margin).
    /// * `>` and `≥` do not hold if the interval confirms the reverse: `a > b` if `b ≥ a` holds, and `a ≥ b` if `b > a`
    ///   holds.
    /// * `=` does not hold if the interval misses the published ratio with its
    ///   [tolerance](super::RatioAllowance::tolerance), or if the interval confirms the reverse: all of it is on the
    ///   other side of 1, or on the published side by at most the margin. Otherwise `=` holds if the whole interval is
    ///   on the published side of 1, and not wider than the tolerance.
    ///
    /// With `>` and `≥`, a published factor replaces 1. If the values that the paper prints differ by less than the
    /// margin, the reverse is tested without a margin. If an interval confirms both the ranking and its reverse, the
    /// ranking holds.
    pub(super) fn outcome(&self, ratio: Option<PairedRatio>, printed: Option<f64>) -> OrderOutcome {
        let Some((low, high)) = ratio.and_then(|ratio| ratio.interval) else {
            return OrderOutcome::Inconclusive;
        };
        let limit = self.limit(printed);
        match self.relation {
            // First: an interval above the bound may still be below the limit, and the ranking then holds.
            Relation::Above | Relation::NotBelow if low > self.bound() => OrderOutcome::Held,
            Relation::Above | Relation::NotBelow if high <= limit => OrderOutcome::NotHeld,
            Relation::Above | Relation::NotBelow => OrderOutcome::Inconclusive,
            Relation::Times => {
                let (least, most) = self.band();
                let (same_side, contrary) =
                    if self.bound() < 1.0 { (high < 1.0, low >= limit) } else { (low > 1.0, high <= limit) };
                if contrary || high < least || low > most {
                    OrderOutcome::NotHeld
                } else if same_side && high / low <= most / least {
                    // Widths are compared as ratios, because the interval is one of logarithms.
                    OrderOutcome::Held
                } else {
                    OrderOutcome::Inconclusive
                }
            }
        }
    }

    /// Returns the published direction, `more` or `less`, if an interval that refutes the ranking still allows a
    /// difference in this direction, by at most the margin. Returns `None` if it does not, and always for `≥`.
    pub(super) fn negligible(&self, ratio: PairedRatio) -> Option<&'static str> {
        let (low, high) = ratio.interval?;
        match self.relation {
            Relation::Above => (high > self.bound()).then_some("more"),
            Relation::NotBelow => None,
            Relation::Times if self.bound() < 1.0 => (self.limit(None)..1.0).contains(&low).then_some("less"),
            Relation::Times => (high > 1.0 && high <= self.limit(None)).then_some("more"),
        }
    }

    /// Returns the number of seeds that would decide a ranking that is inconclusive with `seeds` seeds, if the ratio stays and
    /// its interval shrinks with the square root of their number; `None` if unknown, or above ten thousand.
    pub(super) fn deciding_seeds(
        &self,
        ratio: PairedRatio,
        printed: Option<f64>,
        seeds: usize,
    ) -> Option<u64> {
        let (low, high) = ratio.interval?;
        // The logarithms by which the ratio is above a bound, and below one.
        let above = |bound: f64| (ratio.mean / bound).ln();
        let below = |bound: f64| -above(bound);
        let limit = self.limit(printed);
        // The half-widths that decide the order in one way or another.
        let ways = match self.relation {
            Relation::Above | Relation::NotBelow => vec![above(self.bound()), below(limit)],
            Relation::Times => {
                let (least, most) = self.band();
                let (same_side, contrary) =
                    if self.bound() < 1.0 { (below(1.0), above(limit)) } else { (above(1.0), below(limit)) };
                // A ratio holds only if both are met: the side of 1, and the width of the tolerance.
                vec![same_side.min((most / least).ln() / 2.0), contrary, below(least), above(most)]
            }
        };
        // 0 if the ratio points nowhere. The number is then infinite, and not reported.
        let allowed = ways.into_iter().fold(0.0, f64::max);
        // A half-width shrinks with the square root of the seeds, so seeds grow with its square.
        let needed = seeds as f64 * ((high / low).ln() / 2.0 / allowed).powi(2);
        #[allow(clippy::cast_sign_loss)]
        (needed <= MOST_SEEDS).then(|| needed.ceil() as u64)
    }

    /// Returns the ratio above which the whole interval must be to confirm a ranking with `>` or `≥`; with `=`, the
    /// published ratio.
    pub(super) fn bound(&self) -> f64 {
        let times = self.times.unwrap_or(1.0);
        if self.relation == Relation::NotBelow { times * (1.0 - self.allowance.margin) } else { times }
    }

    /// Returns the ratio that refutes the ranking. If the whole interval falls short of this ratio in the published
    /// direction, the seeds confirm the reverse of the ranking.
    fn limit(&self, printed: Option<f64>) -> f64 {
        // `a > b` is refuted by `b ≥ a`, whose margin turned over is 1/(1 − margin).
        let (times, widest) = (self.times.unwrap_or(1.0), 1.0 / (1.0 - self.allowance.margin));
        let margin = |difference: f64| if difference < widest { 1.0 } else { widest };
        match self.relation {
            Relation::Above => times * printed.map_or(widest, |printed| margin(printed / times)),
            Relation::NotBelow => times,
            Relation::Times if times < 1.0 => 1.0 / margin(1.0 / times),
            Relation::Times => margin(times),
        }
    }

    /// Returns the smallest and largest ratio within the tolerance of the published one.
    fn band(&self) -> (f64, f64) {
        let (times, factor) = (self.times.unwrap_or(1.0), 1.0 + self.allowance.tolerance);
        (times / factor, times * factor)
    }
}

#[cfg(test)]
mod tests {
    use super::super::order::tests::ALLOWANCE;
    use super::OrderOutcome::{Held, Inconclusive, NotHeld};
    use super::*;
    use crate::results::Metric;

    fn order(relation: Relation, times: Option<f64>) -> Order {
        let (than, why) = (String::new(), String::new());
        Order { metric: Metric::Throughput, relation, times, than, why, allowance: ALLOWANCE }
    }

    fn ratio(low: f64, high: f64) -> PairedRatio {
        PairedRatio { mean: (low * high).sqrt(), interval: Some((low, high)) }
    }

    #[track_caller]
    fn check(order: &Order, rows: &[(f64, f64, OrderOutcome)]) {
        for &(low, high, outcome) in rows {
            assert_eq!(order.outcome(Some(ratio(low, high)), None), outcome, "{low} to {high}");
        }
    }

    #[test]
    fn a_published_greater_than_holds_if_the_whole_interval_is_above_1() {
        let rows = [(1.01, 1.2, Held), (0.99, 1.2, Inconclusive), (0.8, 1.0, NotHeld), (1.0, 1.0, NotHeld)];
        check(&order(Relation::Above, None), &rows);
        let rows = [(2.6, 3.0, Held), (2.4, 3.0, Inconclusive), (1.5, 2.5, NotHeld)];
        check(&order(Relation::Above, Some(2.5)), &rows);
    }

    #[test]
    fn a_published_greater_than_is_refuted_if_the_interval_leaves_at_most_the_margin() {
        let above = order(Relation::Above, None);
        check(
            &above,
            &[(0.99, 1.04, NotHeld), (0.5, 1.05, NotHeld), (0.99, 1.06, Inconclusive), (1.01, 1.04, Held)],
        );
        check(&order(Relation::Above, Some(2.0)), &[(1.9, 2.1, NotHeld), (1.9, 2.2, Inconclusive)]);
        let printed = |printed| above.outcome(Some(ratio(0.99, 1.04)), Some(printed));
        assert_eq!(
            (printed(1.03), printed(1.2)),
            (Inconclusive, NotHeld),
            "a paper that prints 3 % is not refuted by 4 %"
        );
    }

    #[test]
    fn a_published_not_less_holds_within_the_margin_but_not_with_a_wide_interval() {
        let rows = [
            (0.96, 0.99, Held),
            (0.94, 1.5, Inconclusive),
            (0.5, 2.0, Inconclusive),
            (0.8, 0.94, NotHeld),
            (0.94, 0.98, NotHeld),
        ];
        check(&order(Relation::NotBelow, None), &rows);
        let rows = [(0.86, 1.0, Held), (0.85, 1.0, Inconclusive), (0.85, 0.89, NotHeld)];
        check(&order(Relation::NotBelow, Some(0.9)), &rows);
    }

    #[test]
    fn a_published_ranking_is_refuted_if_its_reverse_holds() {
        let (above, not_below) = (order(Relation::Above, None), order(Relation::NotBelow, None));
        for (low, high) in
            [(0.5, 0.7), (0.9, 0.98), (0.9, 1.03), (0.97, 1.2), (0.8, 1.3), (1.02, 1.04), (1.1, 1.3)]
        {
            let contrary = Some(ratio(1.0 / high, 1.0 / low));
            for (claim, other) in [(&above, &not_below), (&not_below, &above)] {
                let outcome = claim.outcome(Some(ratio(low, high)), None);
                let is_contrary = other.outcome(contrary, None) == Held;
                assert_eq!(outcome == NotHeld, is_contrary && outcome != Held, "{low} to {high}");
            }
        }
    }

    #[test]
    fn a_published_ratio_holds_if_side_size_and_width_of_the_interval_agree() {
        let rows = [
            (3.0, 3.2, Held),
            (2.7, 2.9, Held),
            (1.5, 1.9, NotHeld),
            (4.5, 5.0, NotHeld),
            (2.0, 6.0, Inconclusive),
            (0.9, 1.1, NotHeld),
        ];
        check(&order(Relation::Times, Some(3.5)), &rows);
        // Near 1 the side decides.
        let rows =
            [(0.996, 0.997, Held), (0.99, 1.01, Inconclusive), (1.0, 1.01, NotHeld), (0.7, 0.75, NotHeld)];
        check(&order(Relation::Times, Some(0.9958)), &rows);
    }

    #[test]
    fn a_published_ratio_is_refuted_if_the_interval_leaves_at_most_the_margin() {
        let rows =
            [(0.96, 1.03, NotHeld), (0.96, 0.99, NotHeld), (0.94, 1.03, Inconclusive), (0.9, 0.98, Held)];
        check(&order(Relation::Times, Some(0.85)), &rows);
        check(&order(Relation::Times, Some(1.2)), &[(0.97, 1.04, NotHeld), (0.97, 1.07, Inconclusive)]);
        let less = order(Relation::Times, Some(0.85)).negligible(ratio(0.96, 1.03));
        let more = order(Relation::Above, None).negligible(ratio(0.96, 1.03));
        assert_eq!((less, more), (Some("less"), Some("more")));
        let contrary = ratio(0.8, 0.9);
        assert_eq!(order(Relation::Above, None).negligible(contrary), None);
        assert_eq!(
            order(Relation::Times, Some(0.5)).negligible(contrary),
            None,
            "it is away from its tolerance"
        );
    }

    #[test]
    fn a_published_ranking_is_inconclusive_without_an_interval() {
        for relation in [Relation::Above, Relation::NotBelow, Relation::Times] {
            let order = order(relation, Some(2.0));
            assert_eq!(order.outcome(None, None), Inconclusive);
            assert_eq!(order.outcome(Some(PairedRatio { mean: 2.0, interval: None }), None), Inconclusive);
        }
    }

    /// Makes a ratio from the logarithms of its mean and of the half-width of its interval.
    fn around(mean: f64, half: f64) -> PairedRatio {
        PairedRatio { mean: mean.exp(), interval: Some(((mean - half).exp(), (mean + half).exp())) }
    }

    #[track_caller]
    fn check_seeds(order: &Order, ratio: PairedRatio, seeds: u64) {
        assert_eq!(order.outcome(Some(ratio), None), Inconclusive);
        let needed = order.deciding_seeds(ratio, None, 10).unwrap();
        assert!((seeds..=seeds + 1).contains(&needed), "{needed}");
    }

    #[test]
    fn the_estimate_of_seeds_assumes_that_four_times_as_many_halve_the_interval() {
        let above = order(Relation::Above, None);
        // The interval is twice as wide as the distance from 1.
        check_seeds(&above, around(0.1, 0.2), 40);
        // Twice as wide as the distance from the margin.
        let margin = -(0.95_f64.ln());
        check_seeds(&above, around(margin - 0.1, 0.2), 40);
        check_seeds(&order(Relation::NotBelow, None), around(0.1 - margin, 0.2), 40);
        let endless = PairedRatio { mean: 2.0, interval: Some((0.5, f64::INFINITY)) };
        assert_eq!(above.deciding_seeds(endless, None, 10), None);
        // A ratio within its tolerance must come off 1, and be narrow.
        check_seeds(&order(Relation::Times, Some(1.1)), around(0.1, 0.2), 40);
        // On the other side of the margin it is refuted there, however near to the published ratio.
        check_seeds(&order(Relation::Times, Some(1.1)), around(margin - 0.1, 0.2), 40);
    }

    #[test]
    fn an_interval_narrower_than_the_margin_decides_every_published_ranking() {
        for mean in -30..=30 {
            let narrow = Some(around(f64::from(mean) / 400.0, 0.025));
            for relation in [Relation::Above, Relation::NotBelow] {
                assert_ne!(order(relation, None).outcome(narrow, None), Inconclusive, "{mean}");
            }
        }
    }
}
