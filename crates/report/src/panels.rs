//! The charts of a page, sorted by its sections.

mod coexisting;
mod distributions;
mod intervals;
mod over_time;
mod published;

use std::collections::BTreeMap;
use std::ops::Range;

use super::chart::{Chart, slug};
use super::pairs::PairValue;
use super::style::{Style, styles};
use super::sweep;
use super::view::{Conditioned, View};

/// All charts of a page.
pub(super) struct Charts<'a> {
    mechanisms: Vec<StyledMechanism<'a>>,
    panels: Vec<Chart>,
    /// The numbers of the charts of each kind. A kind without charts has no entry.
    sections: BTreeMap<&'static str, Range<usize>>,
}

/// A chart and its number.
pub(super) type Numbered<'a> = (usize, &'a Chart);

/// A mechanism, and its colour and dash.
pub(super) struct StyledMechanism<'a> {
    pub(super) name: &'a str,
    pub(super) style: Style,
}

impl<'a> Charts<'a> {
    /// Makes the charts of a page.
    pub(super) fn of(view: &View<'a>) -> Self {
        let named = view.mechanisms.iter().zip(styles(&view.mechanisms));
        let mechanisms = named.map(|(name, style)| StyledMechanism { name, style }).collect();
        let mut charts = Self { mechanisms, panels: Vec::new(), sections: BTreeMap::new() };
        let each = |chart: fn(&Conditioned) -> Option<Chart>| view.groups.iter().filter_map(chart);
        // Charts are numbered in the order of these calls.
        charts.section("share", coexisting::chart(view, PairValue::Share));
        charts.section("kept", coexisting::chart(view, PairValue::Kept));
        charts.section("published", published::charts(view));
        charts.section("sweep", sweep::charts(view));
        charts.section("intervals", intervals::charts(view));
        charts.section("fct", each(distributions::fct));
        charts.section("delay", each(distributions::delay));
        charts.section("cdf", each(distributions::fct_cdf));
        charts.section("delay-cdf", each(distributions::delay_cdf));
        charts.section("retransmissions", each(intervals::retransmissions));
        charts.section("rto", each(over_time::rto));
        charts.section("arrived", each(over_time::arrived));
        charts.section("blocks", each(over_time::blocks));
        charts.section("window", each(over_time::windows));
        charts.section("queue", view.groups.iter().flat_map(over_time::queues));
        charts
    }

    /// Adds charts of one kind. The name of a chart is followed by its conditions, and by a number if that name is already used.
    fn section(&mut self, kind: &'static str, charts: impl IntoIterator<Item = Chart>) {
        let first = self.panels.len();
        for mut chart in charts {
            if !chart.conditions.is_empty() {
                chart.name = format!("{}--{}", chart.name, slug(&chart.conditions));
            }
            let is_free = |name: &String| self.panels.iter().all(|other| other.name != *name);
            // Two conditions may have one slug, such as `a b` and `a-b`.
            let numbered = (2..).map(|number| format!("{}-{number}", chart.name));
            let name = [chart.name.clone()].into_iter().chain(numbered).find(is_free);
            chart.name = name.unwrap_or_default();
            self.panels.push(chart);
        }
        if self.panels.len() > first {
            self.sections.insert(kind, first..self.panels.len());
        }
    }

    /// Returns the charts of one kind; `None` if there are none.
    pub(super) fn get(&self, kind: &str) -> Option<Vec<Numbered<'_>>> {
        let numbers = self.sections.get(kind)?;
        Some(numbers.clone().zip(&self.panels[numbers.clone()]).collect())
    }

    /// Returns every chart, sorted by their numbers.
    pub(super) fn all(&self) -> &[Chart] {
        &self.panels
    }

    /// Returns the mechanisms, sorted by their numbers.
    pub(super) fn mechanisms(&self) -> &[StyledMechanism<'a>] {
        &self.mechanisms
    }
}
