//! Charts as numbers. The page and notebooks (with plotly) and the files are drawn from them.

use super::axis::Axis;
use super::measure::stem_of;
use super::pairs::Pairs;

/// The maximum number of mechanisms with lines in one plot. More are drawn as small multiples: a plot for each
/// mechanism, with the others in grey behind it.
pub(super) const MOST_LINES: usize = 8;

pub(super) struct Chart {
    /// The name of its files, without an ending: `fct-median-over-clients`.
    pub(super) name: String,
    pub(super) title: String,
    /// The words above the chart on the page.
    pub(super) caption: String,
    /// The conditions of the chart's results in words; empty where the page has only one group.
    pub(super) conditions: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) body: Body,
}

/// The content of a chart, between its axes.
pub(super) enum Body {
    /// Lines of mechanisms, with intervals around them where there are any.
    Lines { lines: Vec<Curve> },
    /// A strip for each mechanism, one below the other, all to the same scale.
    Strips { lines: Vec<Curve> },
    /// Quantiles of a distribution, a row for each mechanism.
    Boxes {
        rows: Vec<Quartiles>,
        /// A bound of the values that follows from the scenario, drawn as a line; `None` if it is unknown or far away.
        bound: Option<f64>,
    },
    /// A mean with its confidence interval, a row for each mechanism.
    Intervals {
        rows: Vec<Interval>,
        /// A bound of the values that follows from the scenario, drawn as a line; `None` if it is unknown or far away.
        bound: Option<f64>,
    },
    /// Two amounts in one bar, a row for each mechanism.
    Bars { parts: [&'static str; 2], rows: Vec<Bar> },
    /// A point for each published value: the measured value over the published one.
    Points { points: Vec<PublishedPoint> },
    /// A square for every pair of mechanisms.
    Squares(Pairs),
}

/// A line. The field `m` of this and of the next types is the mechanism's number.
#[derive(Default)]
pub(super) struct Curve {
    pub(super) m: usize,
    /// The part of the mechanism that the line is about, such as `client 3`; empty for the whole mechanism.
    pub(super) of: String,
    pub(super) x: Vec<f64>,
    pub(super) y: Vec<f64>,
    /// The lower end of the 95 % confidence interval at each point; empty without intervals. The next field has the
    /// upper ends.
    pub(super) low: Vec<f64>,
    pub(super) high: Vec<f64>,
    /// Whether a value lasts until the next point, so that the line is drawn in steps.
    pub(super) steps: bool,
    /// Whether points are drawn, and no line between them.
    pub(super) dots: bool,
    /// Whether each point is marked, because nothing was measured between the points.
    pub(super) marks: bool,
}

/// The quantiles 10, 25, 50, 75 and 90 % of a distribution, as far as they are known.
pub(super) struct Quartiles {
    pub(super) m: usize,
    pub(super) q: [Option<f64>; 5],
    pub(super) mean: Option<f64>,
    pub(super) published: Option<f64>,
    /// The number of values. The next field is the number of clients that have no value because they gave up.
    pub(super) count: u64,
    pub(super) gave_up: u64,
}

/// A mean over the seeds, and the published value beside it.
pub(super) struct Interval {
    pub(super) m: usize,
    /// The lower end of the 95 % confidence interval, the mean, and the upper end. With one seed all three are the
    /// mean. `None` if some seed has no value.
    pub(super) measured: Option<[f64; 3]>,
    pub(super) published: Option<f64>,
}

/// A bar of two amounts. The `parts` of [`Body::Bars`] are their names.
pub(super) struct Bar {
    pub(super) m: usize,
    pub(super) amounts: [f64; 2],
}

/// A published value and the measured one.
pub(super) struct PublishedPoint {
    pub(super) m: usize,
    pub(super) conditions: String,
    pub(super) published: f64,
    pub(super) measured: f64,
}

impl Body {
    /// Returns the name of this kind of chart in the page's script.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Lines { .. } => "lines",
            Self::Strips { .. } => "strips",
            Self::Boxes { .. } => "boxes",
            Self::Intervals { .. } => "intervals",
            Self::Bars { .. } => "bars",
            Self::Points { .. } => "points",
            Self::Squares(_) => "squares",
        }
    }
}

impl Chart {
    /// Returns whether the chart has this name, or shows the column of results with this name, such as `median_fct_s`.
    pub(super) fn is_named(&self, name: &str) -> bool {
        // Charts of one measure share the begin of their names.
        let stem = stem_of(name).unwrap_or(name);
        let rest = self.name.strip_prefix(stem);
        self.name == name
            || rest
                .is_some_and(|rest| rest.is_empty() || rest.starts_with("-over-") || rest.starts_with("--"))
    }

    /// Returns whether the chart shows only one of several conditions, and so does not compare conditions.
    pub(super) fn is_of_one_condition(&self) -> bool {
        // `Charts::section` appends conditions behind two hyphens.
        self.name.contains("--")
    }

    /// Returns the numbers of the mechanisms in the chart, each once, in ascending order.
    pub(super) fn mechanisms(&self) -> Vec<usize> {
        let mut all: Vec<usize> = match &self.body {
            Body::Lines { lines } | Body::Strips { lines } => lines.iter().map(|line| line.m).collect(),
            Body::Boxes { rows, .. } => rows.iter().map(|row| row.m).collect(),
            Body::Intervals { rows, .. } => rows.iter().map(|row| row.m).collect(),
            Body::Bars { rows, .. } => rows.iter().map(|row| row.m).collect(),
            Body::Points { points } => points.iter().map(|point| point.m).collect(),
            Body::Squares(pairs) => pairs.mechanisms.clone(),
        };
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns the height on the page, in pixels.
    pub(super) fn height(&self) -> usize {
        match &self.body {
            Body::Lines { .. } if self.mechanisms().len() > MOST_LINES => {
                90 + 115 * self.mechanisms().len().div_ceil(3)
            }
            Body::Lines { .. } => 360,
            Body::Strips { lines } => 70 + 46 * lines.len(),
            Body::Boxes { rows, .. } => 70 + 36 * rows.len(),
            Body::Intervals { rows, .. } => 70 + 30 * rows.len(),
            Body::Bars { rows, .. } => 70 + 32 * rows.len(),
            Body::Points { .. } => 520,
            Body::Squares(pairs) => pairs.height(),
        }
    }
}

/// Returns the error about a name that none of the charts in `known` has.
pub(super) fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known = known.collect::<Vec<_>>().join(", ");
    format!("`{name}` is not the name of a chart; the charts are {known}")
}

/// Returns words as the name of a file: letters and digits in lower case, anything else a hyphen.
pub(super) fn slug(words: &str) -> String {
    let mut slug = String::new();
    for character in words.chars() {
        if character.is_ascii_alphanumeric() {
            slug.push(character.to_ascii_lowercase());
        } else if character == '\u{202f}' {
            // A narrow no-break space groups the digits of a number.
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.truncate(slug.trim_end_matches('-').len());
    slug
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_of_a_chart_becomes_a_safe_file_name() {
        assert_eq!(slug("loss 20 % · buffer 1\u{202f}410\u{202f}000\u{a0}B"), "loss-20-buffer-1410000-b");
        assert_eq!(slug("../../etc: PASSWD "), "etc-passwd");
    }
}
