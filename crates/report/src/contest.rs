//! Mechanisms in the order of a figure, as far as the seeds show one.

use coapace_lab::results::{Estimate, Ratio};

use super::measure::{Better, Measure};
use super::view::{Conditioned, Measured};

/// The mechanisms of a group in the order of one figure.
///
/// A seed gives every mechanism the same losses and delays, so two of them are compared seed by seed: one is ahead where the
/// 95 % confidence interval of the ratio of their figures has everything on one side of 1.
pub(super) struct Contest<'a, 'b> {
    /// The best mean first; those that have no value in some seed last.
    pub(super) entries: Vec<Entry<'a, 'b>>,
    /// How many seeds the best was run with.
    pub(super) seeds: usize,
}

/// A mechanism in a contest.
pub(super) struct Entry<'a, 'b> {
    pub(super) cell: &'b Measured<'a>,
    pub(super) estimate: Option<Estimate>,
    /// How many times the figure of the best this one's is, the interval with it; `None` of the best itself, and where that is
    /// not known.
    pub(super) ratio: Option<Ratio>,
    /// The seeds show that it is behind the best.
    pub(super) is_behind: bool,
}

/// An interval has to leave 1 by this much: less is the rounding of numbers.
const ROUNDING: f64 = 1e-9;

impl<'a, 'b> Contest<'a, 'b> {
    /// The contest of a group; `None` where nobody has a value in every seed, or no way is better.
    pub(super) fn of(measure: &Measure, group: &'b Conditioned<'a>) -> Option<Self> {
        if measure.metric.better() == Better::Neither {
            return None;
        }
        let sign = if measure.metric.better() == Better::Lower { 1.0 } else { -1.0 };
        let mut all: Vec<_> = group.cells.iter().map(|cell| (measure.estimate(cell), cell)).collect();
        let rank = |estimate: &Option<Estimate>| estimate.map_or(f64::INFINITY, |it| it.mean * sign);
        all.sort_by(|a, b| rank(&a.0).total_cmp(&rank(&b.0)));
        let (Some(_), best) = *all.first()? else { return None };
        let entry = |(estimate, cell): (Option<Estimate>, &'b Measured<'a>)| {
            let ratio = (!std::ptr::eq(cell, best)).then(|| ratio(measure, cell, best)).flatten();
            let is_behind = ratio.and_then(|ratio| ratio.interval).is_some_and(|(low, high)| {
                if measure.metric.better() == Better::Lower {
                    low > 1.0 + ROUNDING
                } else {
                    high < 1.0 - ROUNDING
                }
            });
            Entry { cell, estimate, ratio, is_behind }
        };
        Some(Self { entries: all.into_iter().map(entry).collect(), seeds: best.result.runs.len() })
    }

    /// The best, and those that the seeds do not show to be behind it.
    pub(super) fn leaders(&self) -> impl Iterator<Item = &Entry<'a, 'b>> {
        self.entries.iter().filter(|entry| !entry.is_behind && entry.estimate.is_some())
    }

    /// Those behind, the farthest last.
    pub(super) fn behind(&self) -> impl DoubleEndedIterator<Item = &Entry<'a, 'b>> {
        self.entries.iter().filter(|entry| entry.is_behind)
    }

    /// Whether the seeds tell anything apart.
    pub(super) fn is_decided(&self) -> bool {
        self.behind().next().is_some()
    }
}

/// How many times the figure of `second` that of `first` is, over the seeds in which both have one.
fn ratio(measure: &Measure, first: &Measured, second: &Measured) -> Option<Ratio> {
    let others = measure.by_seed(second);
    let pairs: Vec<_> = (measure.by_seed(first).into_iter())
        .filter_map(|(seed, value)| {
            others.iter().find(|(other, _)| *other == seed).map(|(_, other)| (value, *other))
        })
        .collect();
    Ratio::of(&pairs)
}
