//! Charts as files: which charts are written, and in which form.

use std::str::FromStr;

use super::chart::{Chart, unknown};

/// The charts that are written as files, and their form.
#[derive(Clone, Debug)]
pub struct Plates {
    /// The charts: their names, columns such as `median_fct_s`, or `all`. If the list is empty, the charts that compare
    /// conditions are chosen, or all charts if there is only one condition.
    pub charts: Vec<String>,
    /// The size.
    pub size: PlateSize,
    /// Whether a chart has its title and its conditions above it.
    pub titles: bool,
}

impl Default for Plates {
    fn default() -> Self {
        Self { charts: Vec::new(), size: PlateSize::Page, titles: true }
    }
}

/// The size of charts in files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlateSize {
    /// 640 pixels of 1/96 inch, or wider if names are long.
    #[default]
    Page,
    /// A column of an IEEE paper: 3.5 inches.
    Column,
    /// Both columns of an IEEE paper: 7.16 inches.
    Double,
    /// A slide of 16:9: 1280 by 720 pixels.
    Slide,
}

impl PlateSize {
    /// Every size by its name.
    pub const ALL: [(&'static str, Self); 4] =
        [("page", Self::Page), ("column", Self::Column), ("double", Self::Double), ("slide", Self::Slide)];

    /// Returns the width in which a chart is drawn, in pixels of 1/96 inch.
    pub(super) const fn width(self) -> f64 {
        match self {
            Self::Page | Self::Slide => 640.0,
            Self::Column => 3.5 * 96.0,
            Self::Double => 7.16 * 96.0,
        }
    }

    /// Returns the width and the height of the file for a chart of this drawn size, in pixels of 1/96 inch.
    pub(super) fn outer(self, [width, height]: [f64; 2]) -> [f64; 2] {
        match self {
            Self::Page => [width, height],
            Self::Column | Self::Double => [self.width(), height * self.width() / width],
            Self::Slide => [1280.0, 720.0],
        }
    }
}

impl FromStr for PlateSize {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.iter().find(|(known, _)| *known == name);
        known
            .map(|(_, size)| *size)
            .ok_or_else(|| format!("the size is `{name}`, but must be page, column, double or slide"))
    }
}

impl Plates {
    /// Returns the charts that are written.
    ///
    /// # Errors
    /// Returns one line with the names of the charts if a name is unknown.
    pub(super) fn choose<'a>(&self, all: &'a [Chart]) -> Result<Vec<&'a Chart>, String> {
        if self.charts.is_empty() {
            let compare: Vec<_> = all.iter().filter(|chart| !chart.is_of_one_condition()).collect();
            return Ok(if compare.is_empty() { all.iter().collect() } else { compare });
        }
        let mut chosen = Vec::new();
        for name in &self.charts {
            let named: Vec<usize> =
                (0..all.len()).filter(|&place| name == "all" || all[place].is_named(name)).collect();
            let compare = named.iter().copied().filter(|&place| !all[place].is_of_one_condition());
            // The name of a column means its chart over a knob, if there is one.
            let compare: Vec<usize> =
                compare.filter(|&place| name != "all" && all[place].name != *name).collect();
            if named.is_empty() {
                return Err(unknown(name, all.iter().map(|chart| chart.name.as_str())));
            }
            chosen.extend(if compare.is_empty() { named } else { compare });
        }
        // Two names may mean one chart, such as `all` and a column; it is written once, in the order of the page.
        chosen.sort_unstable();
        chosen.dedup();
        Ok(chosen.into_iter().map(|place| &all[place]).collect())
    }
}
