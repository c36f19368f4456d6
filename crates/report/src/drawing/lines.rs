//! Lines over an axis: all in one plane, or, if they are too many, each in a plane of its own.

use super::super::chart::{Curve, MOST_LINES};
use super::DrawingSheet;
use super::canvas::{Anchor, Canvas, Stroke, solid};
use super::frame::{BELOW, PlotFrame};
use super::legend::{self, LegendSign};
use super::sizes::{MARGIN, TEXT};

/// Draws the chart below `top`; returns the width and the height of the picture.
pub(super) fn draw(canvas: &mut Canvas, sheet: &DrawingSheet, lines: &[Curve]) -> [f64; 2] {
    let DrawingSheet { chart, width, top, .. } = *sheet;
    if chart.mechanisms().len() > MOST_LINES {
        return multiples(canvas, sheet, lines);
    }
    let left = sheet.left();
    let frame =
        PlotFrame { left, top, width: width - left - MARGIN, height: 300.0, x: &chart.x, y: &chart.y };
    frame.grid(canvas);
    frame.axes(canvas);
    // All bands first, so that none of them covers a line.
    for line in lines {
        band(canvas, &frame, line, sheet.style(line.m).css());
    }
    for line in lines {
        let style = sheet.style(line.m);
        curve(canvas, &frame, line, Stroke { colour: style.css(), width: 1.8, dash: style.dasharray() });
        if line.dots {
            // Smaller than marks, because a transfer may repeat many blocks.
            points(&frame, line).for_each(|at| canvas.mark(at, style.dash, 2.0, style.css()));
        }
        if line.marks {
            points(&frame, line).for_each(|at| canvas.mark(at, style.dash, 3.2, style.css()));
        }
    }
    let sign = if lines.iter().any(|line| line.marks) { LegendSign::LineAndMark } else { LegendSign::Line };
    let end = legend::draw(canvas, sheet, sign, top + frame.height + BELOW);
    [width, end + MARGIN]
}

/// Draws a plane for each mechanism, with all others in grey behind it.
fn multiples(canvas: &mut Canvas, sheet: &DrawingSheet, lines: &[Curve]) -> [f64; 2] {
    const HEIGHT: f64 = 96.0;
    const HEAD: f64 = TEXT + 7.0;
    const GAP: f64 = 12.0;
    let DrawingSheet { chart, width, top, .. } = *sheet;
    let shown = chart.mechanisms();
    // A plane must be as wide as the name above it. Many planes in three columns would make a page too long.
    let longest = sheet.longest_name(shown.iter().copied());
    let left = sheet.left();
    let inner = width - left - MARGIN;
    let columns = ((inner / (longest + GAP)) as usize).clamp(1, if shown.len() > 12 { 4 } else { 3 });
    let rows = shown.len().div_ceil(columns);
    let own = (inner - GAP * (columns - 1) as f64) / columns as f64;
    for (place, &m) in shown.iter().enumerate() {
        let (row, column) = (place / columns, place % columns);
        let frame = PlotFrame {
            left: left + (own + GAP) * column as f64,
            top: top + HEAD + (HEIGHT + HEAD + 8.0) * row as f64,
            width: own,
            height: HEIGHT,
            x: &chart.x,
            y: &chart.y,
        };
        frame.grid(canvas);
        if column == 0 {
            frame.ticks_beside(canvas);
        }
        // Nothing is below the last plane of a column.
        if place + columns >= shown.len() {
            frame.ticks_below(canvas);
        }
        let style = sheet.style(m);
        canvas.text([frame.left, frame.top - 5.0], sheet.name(m), TEXT, style.css(), Anchor::START);
        // The others first, so that no grey line crosses the mechanism's own.
        for line in lines.iter().filter(|line| line.m != m) {
            curve(canvas, &frame, line, solid("#cfcbc2", 0.8));
        }
        for line in lines.iter().filter(|line| line.m == m) {
            band(canvas, &frame, line, style.css());
            curve(canvas, &frame, line, solid(style.css(), 1.8));
            if line.dots {
                points(&frame, line).for_each(|at| canvas.mark(at, style.dash, 1.5, style.css()));
            }
        }
    }
    let bottom = top + (HEIGHT + HEAD + 8.0) * rows as f64 - 8.0;
    // One title for all planes, which share their axes.
    let all = PlotFrame { left, top, width: inner, height: bottom - top, x: &chart.x, y: &chart.y };
    all.title_beside(canvas);
    all.title_below(canvas);
    [width, bottom + BELOW + MARGIN / 2.0]
}

/// Draws the confidence interval around a line.
fn band(canvas: &mut Canvas, frame: &PlotFrame, line: &Curve, colour: &str) {
    // With one seed both ends of an interval are the mean.
    if line.low.is_empty() || line.low == line.high {
        return;
    }
    // The outline of one shape: along the upper ends, and back along the lower ones.
    let upper = line.x.iter().zip(&line.high).map(|(x, y)| frame.at(*x, *y));
    let lower = line.x.iter().zip(&line.low).rev().map(|(x, y)| frame.at(*x, *y));
    canvas.area(&upper.chain(lower).collect::<Vec<_>>(), colour, 0.14);
}

fn points(frame: &PlotFrame, line: &Curve) -> impl Iterator<Item = [f64; 2]> {
    line.x.iter().zip(&line.y).map(|(x, y)| frame.at(*x, *y))
}

/// Draws the line itself, if there is one. A line of steps stays level until its next value.
pub(super) fn curve(canvas: &mut Canvas, frame: &PlotFrame, line: &Curve, stroke: Stroke) {
    if line.dots {
        return;
    }
    let mut way: Vec<[f64; 2]> = Vec::with_capacity(line.x.len());
    for at in points(frame, line) {
        if line.steps
            && let Some([_, before]) = way.last().copied()
        {
            way.push([at[0], before]);
        }
        way.push(at);
    }
    canvas.path(&way, stroke);
}
