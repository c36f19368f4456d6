//! The charts of a page, in the order of its sections.

mod coexisting;
mod distributions;
mod intervals;
mod over_time;
mod published;

use serde::Serialize;

use super::chart::{Chart, slug};
use super::pairs::PairFigure;
use super::style::Style;
use super::sweep;
use super::view::View;

/// All charts of a page.
#[derive(Serialize)]
pub(super) struct Charts<'a> {
    mechanisms: Vec<Named<'a>>,
    panels: Vec<Chart>,
    #[serde(skip)]
    sections: Vec<Section>,
}

/// A mechanism, and its colour and dash.
#[derive(Serialize)]
pub(super) struct Named<'a> {
    pub(super) name: &'a str,
    #[serde(flatten)]
    pub(super) style: Style,
}

/// The charts of one kind.
pub(super) struct Section {
    /// The name of the kind.
    pub(super) kind: &'static str,
    /// The number, the caption and the height in pixels of each chart.
    pub(super) panels: Vec<(usize, String, usize)>,
}

impl<'a> Charts<'a> {
    /// Makes the charts of a page.
    pub(super) fn of(view: &View<'a>) -> Self {
        let named = view.mechanisms.iter().zip(&view.styles);
        let mechanisms = named.map(|(name, style)| Named { name, style: *style }).collect();
        let mut charts = Self { mechanisms, panels: Vec::new(), sections: Vec::new() };
        charts.section("share", coexisting::chart(view, PairFigure::Share));
        charts.section("kept", coexisting::chart(view, PairFigure::Kept));
        charts.section("published", published::charts(view));
        charts.section("sweep", sweep::charts(view));
        charts.section("intervals", intervals::charts(view));
        charts.section("fct", distributions::fct(view));
        charts.section("delay", distributions::delay(view));
        charts.section("cdf", distributions::fct_cdf(view));
        charts.section("delay-cdf", distributions::delay_cdf(view));
        charts.section("retransmissions", intervals::retransmissions(view));
        charts.section("rto", over_time::rto(view));
        charts.section("queue", over_time::queues(view));
        charts
    }

    /// Adds charts with their captions. A name that is taken gets the chart's conditions behind it, and then a number.
    fn section(&mut self, kind: &'static str, charts: impl IntoIterator<Item = (String, Chart)>) {
        let mut section = Section { kind, panels: Vec::new() };
        for (caption, mut chart) in charts {
            if !chart.conditions.is_empty() {
                chart.name = format!("{}--{}", chart.name, slug(&chart.conditions));
            }
            let is_free = |name: &String| self.panels.iter().all(|other| other.name != *name);
            let numbered = (2..).map(|number| format!("{}-{number}", chart.name));
            let name = [chart.name.clone()].into_iter().chain(numbered).find(is_free);
            chart.name = name.unwrap_or_default();
            section.panels.push((self.panels.len(), caption, chart.height()));
            self.panels.push(chart);
        }
        self.sections.push(section);
    }

    /// Returns the charts of one kind; `None` if there are none.
    pub(super) fn get(&self, kind: &str) -> Option<&Section> {
        self.sections.iter().find(|section| section.kind == kind && !section.panels.is_empty())
    }

    /// Returns every chart, in the order of their numbers.
    pub(super) fn all(&self) -> &[Chart] {
        &self.panels
    }

    /// Returns the mechanisms, in the order of their numbers.
    pub(super) fn mechanisms(&self) -> &[Named<'a>] {
        &self.mechanisms
    }
}
