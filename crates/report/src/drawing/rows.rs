//! A row for each mechanism: quantiles, intervals or bars.

use super::super::chart::{Bar, Interval, Quartiles};
use super::super::style::Style;
use super::DrawingSheet;
use super::canvas::{Anchor, Canvas, INK, PAPER, SOFT, solid};
use super::frame::{BELOW, PlotFrame};
use super::sizes::{MARGIN, SMALL, TEXT};

const ROW: f64 = 26.0;

/// Draws the chart below its title; returns the width and the height of the picture. `of` returns the mechanism of a row and
/// its published value, and `draw` draws the content of a row.
pub(super) fn draw<R>(
    canvas: &mut Canvas,
    sheet: &DrawingSheet,
    rows: &[R],
    bound: Option<f64>,
    of: fn(&R) -> (usize, Option<f64>),
    draw: fn(&mut Canvas, &PlotFrame, &R, Style, f64),
) -> [f64; 2] {
    let DrawingSheet { chart, width, top, .. } = *sheet;
    // Names are left of the plane, so the longest one decides where it begins.
    let left = MARGIN + sheet.longest_name(rows.iter().map(|row| of(row).0)) + 12.0;
    let height = ROW * rows.len() as f64 + 8.0;
    let frame = PlotFrame { left, top, width: width - left - MARGIN - 6.0, height, x: &chart.x, y: &chart.y };
    frame.grid(canvas);
    frame.ticks_below(canvas);
    frame.title_below(canvas);
    if let Some(bound) = bound {
        let x = frame.across(bound);
        canvas.line([x, top], [x, top + height], solid(INK, 1.2));
        canvas.text([x + 4.0, top + height - 4.0], "bound", SMALL, SOFT, Anchor::START);
    }
    // The first row is at the top, where a table has it.
    let middle = |place: usize| top + 4.0 + ROW * (place as f64 + 0.5);
    for (place, row) in rows.iter().enumerate() {
        let at = [left - 10.0, middle(place) + TEXT * 0.36];
        canvas.text(at, sheet.name(of(row).0), TEXT, INK, Anchor::END);
    }
    for (place, row) in rows.iter().enumerate() {
        draw(canvas, &frame, row, sheet.style(of(row).0), middle(place));
    }
    let mut bottom = top + height + BELOW;
    // The diamond is explained only where there is one.
    if rows.iter().any(|row| of(row).1.is_some()) {
        let y = bottom + 6.0;
        canvas.mark([left + 4.0, y], 3, 3.4, INK);
        canvas.text([left + 14.0, y + SMALL * 0.36], "published", SMALL, SOFT, Anchor::START);
        bottom += 16.0;
    }
    [width, bottom + MARGIN / 2.0]
}

/// Draws the quantiles of a row, the number of clients that gave up, and the published median.
pub(super) fn quartiles(canvas: &mut Canvas, frame: &PlotFrame, row: &Quartiles, style: Style, y: f64) {
    // Without any known quantile, no box can be drawn.
    let last = row.q.iter().rev().copied().flatten().next();
    let end = last.map_or(frame.left, |last| draw_box(canvas, frame, row, last, style, y));
    if row.gave_up > 0 {
        let words = format!("→ {} gave up", row.gave_up);
        canvas.text([end + 6.0, y + SMALL * 0.36], &words, SMALL, SOFT, Anchor::START);
    }
    published(canvas, frame, row.published, y);
}

/// Draws a box from the 25 % to the 75 % quantile, and whiskers to the 10 % and 90 % quantiles; returns its right end.
/// A quantile that is unknown because clients gave up is drawn at `last`, the last known one.
fn draw_box(canvas: &mut Canvas, frame: &PlotFrame, row: &Quartiles, last: f64, style: Style, y: f64) -> f64 {
    let [p10, p25, median, p75, p90] = row.q.map(|value| frame.across(value.unwrap_or(last)));
    let colour = style.css();
    let stroke = solid(colour, 1.5);
    canvas.line([p10, y], [p25, y], stroke);
    canvas.line([p75, y], [p90, y], stroke);
    // An unknown quantile has no cap, because the whisker does not really end there.
    for (end, known) in [(p10, row.q[0]), (p90, row.q[4])] {
        if known.is_some() {
            canvas.line([end, y - 4.0], [end, y + 4.0], stroke);
        }
    }
    canvas.rect([p25, y - 7.0, p75 - p25, 14.0], colour, 0.22, Some(stroke));
    if row.q[2].is_some() {
        canvas.line([median, y - 7.0], [median, y + 7.0], solid(colour, 2.6));
    }
    p90.max(p75)
}

/// Draws a mark at the mean and a line over the interval, if there are any, and the published value.
pub(super) fn interval(canvas: &mut Canvas, frame: &PlotFrame, row: &Interval, style: Style, y: f64) {
    if let Some([low, mean, high]) = row.measured.map(|measured| measured.map(|value| frame.across(value))) {
        // With one seed both ends are the mean, and the mark alone is drawn.
        if high > low {
            canvas.line([low, y], [high, y], solid(style.css(), 2.0));
            for end in [low, high] {
                canvas.line([end, y - 4.0], [end, y + 4.0], solid(style.css(), 1.5));
            }
        }
        canvas.mark([mean, y], style.dash, 4.0, style.css());
    }
    published(canvas, frame, row.published, y);
}

fn published(canvas: &mut Canvas, frame: &PlotFrame, published: Option<f64>, y: f64) {
    if let Some(published) = published {
        let at = [frame.across(published), y + 9.0];
        // An edge in the colour of the paper, so that the diamond is visible on a box.
        canvas.mark(at, 3, 4.4, PAPER);
        canvas.mark(at, 3, 3.4, INK);
    }
}

/// Draws the first amount dark, the second pale behind it, and the share of the first in words.
pub(super) fn bar(canvas: &mut Canvas, frame: &PlotFrame, row: &Bar, style: Style, y: f64) {
    let colour = style.css();
    let [first, second] = row.amounts;
    let (zero, middle, end) = (frame.across(0.0), frame.across(first), frame.across(first + second));
    canvas.rect([zero, y - 7.0, middle - zero, 14.0], colour, 0.9, Some(solid(colour, 0.8)));
    canvas.rect([middle, y - 7.0, end - middle, 14.0], colour, 0.18, Some(solid(colour, 0.8)));
    // A share of nothing is not defined.
    let words = if first + second == 0.0 {
        "none".to_owned()
    } else {
        format!("{:.0}\u{a0}%", 100.0 * first / (first + second))
    };
    canvas.text([end + 5.0, y + SMALL * 0.36], &words, SMALL, SOFT, Anchor::START);
}

#[cfg(test)]
mod tests {
    use coapace_lab::papers::{Published, References};
    use coapace_lab::results::{Cell, CellResult, Metric};
    use coapace_run::measured::RunResult;
    use serde_json::Value;

    use super::*;
    use crate::panels::Charts;
    use crate::plates::Plates;
    use crate::view::View;
    use crate::{CellGroup, Report};

    /// Returns the results of 20 clients.
    fn result(mechanism: &str, finished: usize) -> CellResult {
        let fct_s = (0..20).map(|client| (client < finished).then_some(40.0 + client as f64)).collect();
        CellResult {
            cell: Cell { mechanism: mechanism.into(), clients: 20, ..Cell::default() },
            runs: vec![RunResult { seed: 1, fct_s, ..RunResult::default() }],
        }
    }

    #[test]
    fn a_published_value_is_drawn_even_if_clients_gave_up() {
        let results = vec![result("default", 20), result("cocoa", 1), result("fasor", 0)];
        let mut references = References::default();
        for result in &results {
            references.publish(&result.cell, Published::value(Metric::MedianFct, 25.0, ""));
        }
        let groups = CellGroup::by_conditions(results);
        let report = Report { groups, references, ..Report::default() };
        let charts = Charts::of(&View::of(&report));
        for name in ["fct-quantiles", "fct-median"] {
            let chart = charts.all().iter().find(|chart| chart.name == name).unwrap();
            let svg = super::super::svg(chart, charts.mechanisms(), &Plates::default());
            let diamonds = svg.lines().filter(|line| line.starts_with("<polygon") && line.contains(INK));
            assert_eq!(diamonds.count(), 3 + 1, "three rows and the legend: {svg}");
            let figure: Value = serde_json::from_str(&report.figure(Some(name)).unwrap()).unwrap();
            let traces = figure["data"].as_array().unwrap();
            let diamonds = traces.iter().filter(|trace| trace["marker"]["symbol"] == "diamond");
            assert_eq!(diamonds.count(), 3, "{name}");
            for words in ["→ 19 gave up", "→ 20 gave up"] {
                assert_eq!(svg.contains(words), name == "fct-quantiles", "{words}: {svg}");
            }
        }
    }
}
