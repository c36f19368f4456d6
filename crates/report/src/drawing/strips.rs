//! Strips below one another, on one scale.

use super::super::chart::Curve;
use super::DrawingSheet;
use super::canvas::{Anchor, Canvas, INK, solid};
use super::frame::{BELOW, PlotFrame, room_beside};
use super::lines::curve;
use super::sizes::{MARGIN, TEXT};

const HEIGHT: f64 = 44.0;
const GAP: f64 = 6.0;

/// Draws the chart below `top`; returns the width and the height of the picture.
pub(super) fn draw(canvas: &mut Canvas, sheet: &DrawingSheet, lines: &[Curve]) -> [f64; 2] {
    let DrawingSheet { chart, width, top, .. } = *sheet;
    let longest = sheet.longest_name(lines.iter().map(|line| line.m));
    // A strip is too low for more ticks than the first and the last.
    let mut scale = chart.y.clone();
    scale.ticks.retain(|tick| *tick <= chart.y.range[1]);
    if let (Some(&first), Some(&last)) = (scale.ticks.first(), scale.ticks.last()) {
        scale.ticks = vec![first, last];
    }
    // The name of a mechanism is beside its strip, and takes the place of a legend.
    let left = MARGIN + longest + 10.0 + room_beside(&scale);
    let strip = |place: usize| PlotFrame {
        left,
        top: top + TEXT + 4.0 + (HEIGHT + GAP) * place as f64,
        width: width - left - MARGIN - 6.0,
        height: HEIGHT,
        x: &chart.x,
        y: &scale,
    };
    canvas.text([MARGIN, top + TEXT - 2.0], &chart.y.title, TEXT, INK, Anchor::START);
    for (place, line) in lines.iter().enumerate() {
        let (frame, style) = (strip(place), sheet.style(line.m));
        frame.grid(canvas);
        frame.ticks_beside(canvas);
        let name = [MARGIN, frame.top + HEIGHT / 2.0 + TEXT * 0.36];
        canvas.text(name, sheet.name(line.m), TEXT, style.css(), Anchor::START);
        curve(canvas, &frame, line, solid(style.css(), 1.0));
    }
    // All strips share the axis of time, which is below the last one.
    let last = strip(lines.len().saturating_sub(1));
    last.ticks_below(canvas);
    last.title_below(canvas);
    [width, last.top + HEIGHT + BELOW + MARGIN / 2.0]
}
