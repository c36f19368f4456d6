//! The outcome of a published order: whether the seeds show it, refute it, or do neither.

use super::{Order, Ratio, Relation};

/// The outcome of a published order. The worst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The seeds show the contrary, or a ratio far from the published one.
    NotHeld,
    /// The seeds show neither: the interval is too wide, or nothing could be measured.
    Inconclusive,
    /// The seeds show what was published.
    Held,
}

impl Outcome {
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

/// The largest number of seeds that is told. More are as good as endless.
const MOST_SEEDS: f64 = 1e4;

impl Order {
    /// Returns the outcome of the order, whose measured ratio is `ratio`. Without a confidence interval it is inconclusive.
    ///
    /// * `>` holds if the whole interval is above 1, and does not if nothing of it is.
    /// * `≥` holds if the whole interval is above 1 less [the margin](super::Allowance::margin), and does not if nothing of it is.
    /// * `=` does not hold if the interval misses the published ratio with its [tolerance](super::Allowance::tolerance), or
    ///   lies on the other side of 1. It holds if the interval is on the same side of 1, and no wider than the tolerance.
    ///
    /// With `>` and `≥` a published factor stands in the place of 1.
    pub(super) fn outcome(&self, ratio: Option<Ratio>) -> Outcome {
        let Some((low, high)) = ratio.and_then(|ratio| ratio.interval) else { return Outcome::Inconclusive };
        let (shown, refuted) = match self.relation {
            Relation::Above | Relation::NotBelow => (low > self.bound(), high <= self.bound()),
            Relation::Times => {
                let (least, most) = self.band();
                let (same_side, other_side) =
                    if self.bound() < 1.0 { (high < 1.0, low >= 1.0) } else { (low > 1.0, high <= 1.0) };
                let narrow = high / low <= most / least;
                (same_side && narrow, other_side || high < least || low > most)
            }
        };
        match (refuted, shown) {
            (true, _) => Outcome::NotHeld,
            (false, true) => Outcome::Held,
            (false, false) => Outcome::Inconclusive,
        }
    }

    /// Returns the number of seeds that would decide an order which `seeds` seeds do not, if the ratio stays and its interval
    /// shrinks with the root of the number; `None` if that cannot be told, or is beyond ten thousand.
    pub(super) fn deciding_seeds(&self, ratio: Ratio, seeds: usize) -> Option<u64> {
        let (low, high) = ratio.interval?;
        let distance = |bound: f64| (ratio.mean / bound).ln().abs();
        let allowed = match self.relation {
            Relation::Above | Relation::NotBelow => distance(self.bound()),
            Relation::Times => {
                let (least, most) = self.band();
                let is_same_side = (ratio.mean < 1.0) == (self.bound() < 1.0);
                let beyond = if ratio.mean < least { distance(least) } else { distance(most) };
                match ((least..=most).contains(&ratio.mean), is_same_side) {
                    (true, true) => distance(1.0).min((most / least).ln() / 2.0),
                    (true, false) => distance(1.0),
                    (false, true) => beyond,
                    // To refute it, one of both is enough: the other side of 1, or beyond the tolerance.
                    (false, false) => beyond.max(distance(1.0)),
                }
            }
        };
        let needed = seeds as f64 * ((high / low).ln() / 2.0 / allowed).powi(2);
        #[allow(clippy::cast_sign_loss)]
        (needed <= MOST_SEEDS).then(|| needed.ceil() as u64)
    }

    /// Returns the ratio that was published, or that the measured one must exceed.
    pub(super) fn bound(&self) -> f64 {
        let times = self.times.unwrap_or(1.0);
        if self.relation == Relation::NotBelow { times * (1.0 - self.allowance.margin) } else { times }
    }

    /// Returns the least and the largest ratio within the tolerance of the published one.
    fn band(&self) -> (f64, f64) {
        let (times, factor) = (self.times.unwrap_or(1.0), 1.0 + self.allowance.tolerance);
        (times / factor, times * factor)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Metric;
    use super::super::order::tests::ALLOWANCE;
    use super::Outcome::{Held, Inconclusive, NotHeld};
    use super::*;

    fn order(relation: Relation, times: Option<f64>) -> Order {
        let (than, why) = (String::new(), String::new());
        Order { metric: Metric::Throughput, relation, times, than, why, allowance: ALLOWANCE }
    }

    fn ratio(low: f64, high: f64) -> Ratio {
        Ratio { mean: (low * high).sqrt(), interval: Some((low, high)) }
    }

    #[track_caller]
    fn check(order: &Order, rows: &[(f64, f64, Outcome)]) {
        for &(low, high, outcome) in rows {
            assert_eq!(order.outcome(Some(ratio(low, high))), outcome, "{low} to {high}");
        }
    }

    #[test]
    fn above_needs_the_whole_interval_on_its_side() {
        let rows = [(1.01, 1.2, Held), (0.99, 1.2, Inconclusive), (0.8, 1.0, NotHeld), (1.0, 1.0, NotHeld)];
        check(&order(Relation::Above, None), &rows);
        let rows = [(2.6, 3.0, Held), (2.4, 3.0, Inconclusive), (1.5, 2.5, NotHeld)];
        check(&order(Relation::Above, Some(2.5)), &rows);
    }

    #[test]
    fn not_below_holds_within_the_margin_and_not_for_lack_of_power() {
        let rows =
            [(0.96, 0.99, Held), (0.94, 1.5, Inconclusive), (0.5, 2.0, Inconclusive), (0.8, 0.94, NotHeld)];
        check(&order(Relation::NotBelow, None), &rows);
        check(&order(Relation::NotBelow, Some(0.9)), &[(0.86, 1.0, Held), (0.85, 1.0, Inconclusive)]);
    }

    #[test]
    fn a_ratio_needs_its_side_of_1_its_size_and_an_interval_that_says_something() {
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
    fn without_an_interval_nothing_is_decided() {
        for relation in [Relation::Above, Relation::NotBelow, Relation::Times] {
            let order = order(relation, Some(2.0));
            assert_eq!(order.outcome(None), Inconclusive);
            assert_eq!(order.outcome(Some(Ratio { mean: 2.0, interval: None })), Inconclusive);
        }
    }

    #[test]
    fn four_times_the_seeds_halve_an_interval() {
        let above = order(Relation::Above, None);
        let (half, mean) = (0.2_f64, 0.1_f64);
        let wide = Ratio { mean: mean.exp(), interval: Some(((mean - half).exp(), (mean + half).exp())) };
        // The interval is twice as wide as the distance from 1.
        assert!((40..=41).contains(&above.deciding_seeds(wide, 10).unwrap()));
        let lost = Ratio { mean: 1.0, interval: Some((0.9, 1.1)) };
        assert_eq!(above.deciding_seeds(lost, 10), None, "on the bound no number decides");
        let endless = Ratio { mean: 2.0, interval: Some((0.5, f64::INFINITY)) };
        assert_eq!(above.deciding_seeds(endless, 10), None);
        // A ratio within its tolerance must come off 1, and be narrow.
        let times = order(Relation::Times, Some(1.1));
        assert!((40..=41).contains(&times.deciding_seeds(wide, 10).unwrap()));
        // On the other side of 1 it is refuted there, however near to the published ratio.
        let other_side =
            Ratio { mean: (-mean).exp(), interval: Some(((-mean - half).exp(), (half - mean).exp())) };
        assert!((40..=41).contains(&times.deciding_seeds(other_side, 10).unwrap()));
    }
}
