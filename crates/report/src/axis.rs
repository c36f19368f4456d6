//! Axes of charts: their ends, their scale and their ticks.

/// The ratio of the largest to the smallest value above which an axis is logarithmic.
const LOGARITHMIC_FROM: f64 = 6.0;

#[derive(Clone, Debug, Default)]
pub(super) struct Axis {
    /// The quantity, with its unit in words: `median FCT in seconds`.
    pub(super) title: String,
    /// The abbreviated unit; empty for a quantity without a unit, such as Jain's index.
    pub(super) unit: String,
    pub(super) log: bool,
    /// Whether the values are shares, shown in per cent.
    pub(super) percent: bool,
    /// The values at both ends.
    pub(super) range: [f64; 2],
    /// The values that have ticks.
    pub(super) ticks: Vec<f64>,
}

impl Axis {
    /// Returns an axis without values, for a chart with rows that have names instead.
    pub(super) fn names() -> Self {
        Self::default()
    }

    /// Returns a linear axis from `low` to `high`.
    pub(super) fn linear(title: impl Into<String>, unit: &str, [low, high]: [f64; 2]) -> Self {
        // An axis without length has no places between its ends.
        let high = if high > low { high } else { low + 1.0 };
        let ticks = linear_ticks(low, high);
        Self { title: title.into(), unit: unit.into(), log: false, percent: false, range: [low, high], ticks }
    }

    /// Returns a linear axis that begins at 0 and ends 5 % above the highest of `values`.
    pub(super) fn from_zero(title: impl Into<String>, unit: &str, values: &[f64]) -> Self {
        let [_, high] = extent(values);
        Self::linear(title, unit, [0.0, if high > 0.0 { high * 1.05 } else { 1.0 }])
    }

    /// Returns an axis for shares, with ticks from 0 to 100 %.
    pub(super) fn share(title: impl Into<String>) -> Self {
        // 2 % of room, so that a line at 100 % does not lie on the frame.
        Self { percent: true, ticks: vec![0.0, 0.25, 0.5, 0.75, 1.0], ..Self::linear(title, "", [0.0, 1.02]) }
    }

    /// Returns an axis that holds these values with a little room beside them. It is logarithmic if all values are
    /// above 0 and the ratio of the largest to the smallest is above `LOGARITHMIC_FROM`.
    pub(super) fn around(title: impl Into<String>, unit: &str, values: &[f64]) -> Self {
        let [low, high] = extent(values);
        if low > 0.0 && high / low > LOGARITHMIC_FROM {
            return Self::logarithmic(title, unit, [low, high]);
        }
        // Without values `extent` has an infinite lower end.
        let low = if low.is_finite() { low } else { 0.0 };
        // Equal values have no spread to take a share of; 1e-3 is for values of 0.
        let room = if high > low { (high - low) * 0.05 } else { (high * 0.1).max(1e-3) };
        Self::linear(title, unit, [(low - room).max(0.0), high + room])
    }

    /// Returns a logarithmic axis from a little below `low` to a little above `high`, both above 0.
    pub(super) fn logarithmic(title: impl Into<String>, unit: &str, [low, high]: [f64; 2]) -> Self {
        // Equal ratios are equal lengths on this axis, so the room beside the values is a ratio, too.
        let room = (high / low).powf(0.04).max(1.02);
        let range = [low / room, high * room];
        // The more decades, the fewer ticks in each, so that labels do not touch.
        let steps: &[f64] = match high / low {
            factor if factor > 300.0 => &[1.0],
            factor if factor > 30.0 => &[1.0, 3.0],
            factor if factor > 8.0 => &[1.0, 2.0, 5.0],
            _ => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
        };
        let decades = (range[0].log10().floor() as i32)..=(range[1].log10().ceil() as i32);
        let ticks = decades.flat_map(|e| steps.iter().map(move |step| decimal(*step, e)));
        let ticks = ticks.filter(|tick| (range[0]..=range[1]).contains(tick)).collect();
        let title = format!("{}, logarithmic", title.into());
        Self { title, unit: unit.into(), log: true, percent: false, range, ticks }
    }

    /// Makes the axis longer at its upper end, by this share of its length.
    pub(super) fn with_room(mut self, share: f64) -> Self {
        let [low, high] = self.range;
        self.range[1] = if self.log { high * (high / low).powf(share) } else { high + (high - low) * share };
        self
    }

    /// Returns the position of a value, from 0 at the lower end to 1 at the upper. A value beyond an end has the position of
    /// that end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let [low, high] = self.range;
        let place =
            if self.log { (value / low).ln() / (high / low).ln() } else { (value - low) / (high - low) };
        // The lower end of an interval may be negative, and has no logarithm.
        if place.is_nan() { 0.0 } else { place.clamp(0.0, 1.0) }
    }

    /// Returns the text at a tick.
    pub(super) fn label(&self, tick: f64) -> String {
        let (tick, sign) = if self.percent { (tick * 100.0, "\u{a0}%") } else { (tick, "") };
        // Ticks are round numbers. Digits after the tenth are rounding errors of sums.
        let tick: f64 = format!("{tick:.9e}").parse().unwrap_or(tick);
        if tick.abs() >= 1e6 {
            let (millions, unit) = if tick.abs() >= 1e9 { (tick / 1e9, "G") } else { (tick / 1e6, "M") };
            return format!("{millions}{unit}{sign}");
        }
        format!("{tick}{sign}").replace('-', "−")
    }
}

/// Returns the least and the greatest of the finite values. The greatest is at least 0. Without finite values, the
/// least is infinite.
pub(super) fn extent(values: &[f64]) -> [f64; 2] {
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    [finite().fold(f64::INFINITY, f64::min), finite().fold(0.0, f64::max)]
}

/// Returns the floating-point number nearest to `step` times ten to the power of `e`.
fn decimal(step: f64, e: i32) -> f64 {
    // Read from text, because 3.0 × 0.1 is 0.30000000000000004 in floating point.
    format!("{step}e{e}").parse().unwrap_or_else(|_| step * 10_f64.powi(e))
}

/// Returns two to six round values between `low` and `high`, for the ticks of a linear axis.
fn linear_ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 5.0;
    let e = rough.log10().floor() as i32;
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|step| decimal(step, e)).find(|step| *step >= rough);
    let step = step.unwrap_or(rough);
    // A tick at the lower end counts although its quotient may be a rounding error above a whole number.
    let first = (low / step - 1e-9).ceil();
    // A step is at least a fifth of the length, so there are at most six ticks; 12 only bounds the loop.
    (0..12).map(|i| (first + f64::from(i)) * step).take_while(|tick| *tick <= high + step * 1e-9).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_is_logarithmic_if_values_are_far_apart() {
        assert!(!Axis::around("", "s", &[10.0, 50.0]).log);
        let axis = Axis::around("FCT in seconds", "s", &[0.5, 50.0]);
        assert!(axis.log && axis.title == "FCT in seconds, logarithmic");
        assert_eq!(axis.ticks, [1.0, 3.0, 10.0, 30.0]);
        assert!(!Axis::around("", "", &[0.0, 50.0]).log, "0 has no logarithm");
    }

    #[test]
    fn the_ends_of_an_axis_enclose_all_values() {
        let axis = Axis::around("", "", &[0.5, 50.0]);
        assert!((axis.place(5.0) - 0.5).abs() < 1e-9);
        assert!((0.0..0.1).contains(&axis.place(0.5)) && (0.9..1.0).contains(&axis.place(50.0)));
        for (beyond, end) in [(0.0, 0.0), (1e9, 1.0), (f64::NAN, 0.0)] {
            assert!((axis.place(beyond) - end).abs() < 1e-12, "{beyond}");
        }
    }

    #[test]
    fn ticks_of_an_axis_are_round_numbers() {
        let axis = Axis::from_zero("", "", &[0.1, 0.33]);
        let labels: Vec<_> = axis.ticks.iter().map(|tick| axis.label(*tick)).collect();
        assert_eq!(labels, ["0", "0.1", "0.2", "0.3"]);
        assert_eq!(Axis::share("").label(0.25), "25\u{a0}%");
        assert_eq!(Axis::default().label(2_500_000.0), "2.5M");
        assert!(Axis::linear("", "", [3.0, 3.0]).ticks.len() > 2, "a single value");
    }
}
