//! A quantity over time, in bounded memory.

use serde::{Deserialize, Serialize};

/// A quantity over simulated time, in at most [`Series::MAX_POINTS`] points.
///
/// If more points are recorded than fit, points that are closer together than a step are merged into the largest of
/// them, because readers look for peaks. The step doubles whenever the series is full.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What the series is about: `mean of the clients`, `client 3`, or the name of a hop.
    pub name: String,
    /// The times in seconds since the start of the run, and the values at them.
    pub points: Vec<(f64, f64)>,
    /// Points within this time of each other are merged, in seconds; 0 while all points fit.
    pub step_s: f64,
}

impl Series {
    /// The maximum number of points of a series: more than a chart on a wide screen can show apart.
    pub const MAX_POINTS: usize = 1000;

    /// Makes an empty series.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Records `value` at the time `t_s`, in seconds. Times never go back from one call to the next.
    pub fn push(&mut self, t_s: f64, value: f64) {
        if self.points.len() >= Self::MAX_POINTS {
            self.thin();
        }
        merge(&mut self.points, (t_s, value), self.step_s);
    }

    /// Doubles the step, and merges points, until a quarter of the series is free.
    fn thin(&mut self) {
        let span_s = match (self.points.first(), self.points.last()) {
            (Some(first), Some(last)) => last.0 - first.0,
            _ => return,
        };
        // Half of the mean distance of the points, as the loop doubles it first. Equal times need a step above 0 to be merged at all.
        self.step_s = self.step_s.max(span_s / Self::MAX_POINTS as f64 / 2.0).max(1e-9);
        while self.points.len() > Self::MAX_POINTS / 4 * 3 {
            self.step_s *= 2.0;
            let mut kept = Vec::with_capacity(Self::MAX_POINTS);
            for &point in &self.points {
                merge(&mut kept, point, self.step_s);
            }
            self.points = kept;
        }
    }
}

fn merge(points: &mut Vec<(f64, f64)>, (t_s, value): (f64, f64), step_s: f64) {
    match points.last_mut() {
        Some(last) if t_s - last.0 < step_s => last.1 = last.1.max(value),
        _ => points.push((t_s, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_time_series_keeps_every_point() {
        let mut series = Series::new("queue");
        for i in 0..Series::MAX_POINTS {
            series.push(i as f64, 1.0);
        }
        assert_eq!(series.points.len(), Series::MAX_POINTS);
        assert!(series.step_s.abs() < f64::EPSILON);
    }

    #[test]
    fn a_long_time_series_stays_bounded_and_keeps_its_peak() {
        let mut series = Series::new("queue");
        for i in 0..1_000_000 {
            series.push(f64::from(i) * 1e-3, if i == 765_432 { 99.0 } else { f64::from(i % 7) });
        }
        assert!(series.points.len() <= Series::MAX_POINTS);
        assert!(series.points.len() >= Series::MAX_POINTS / 4);
        let peak = series.points.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        assert!((peak.1 - 99.0).abs() < 1e-9);
        assert!((peak.0 - 765.432).abs() <= series.step_s);
        assert!(series.points.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[test]
    fn points_of_a_time_series_at_one_moment_stay_bounded() {
        let mut series = Series::new("rto");
        for _ in 0..5000 {
            series.push(1.0, 2.0);
        }
        assert!(series.points.len() <= Series::MAX_POINTS);
    }
}
