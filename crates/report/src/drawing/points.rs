//! Measured over published figures, and the diagonal on which both are equal.

use super::super::chart::Point;
use super::super::headline::MET;
use super::Sheet;
use super::canvas::{Canvas, GRID, SOFT, solid};
use super::frame::{BELOW, Frame};
use super::legend::{self, Sign};
use super::sizes::MARGIN;

/// Draws the chart below `top`; returns the width and the height of the picture.
pub(super) fn draw(canvas: &mut Canvas, sheet: &Sheet, points: &[Point]) -> [f64; 2] {
    let Sheet { chart, width, top, .. } = *sheet;
    let left = sheet.left();
    let side = width - left - MARGIN;
    let frame = Frame { left, top, width: side, height: side * 0.75, x: &chart.x, y: &chart.y };
    frame.grid(canvas);
    let [low, high] = chart.x.range;
    let edge = |x: f64, factor: f64| frame.at(x, x * factor);
    let band = [edge(low, 1.0 - MET), edge(high, 1.0 - MET), edge(high, 1.0 + MET), edge(low, 1.0 + MET)];
    canvas.area(&band, GRID, 1.0);
    canvas.line(frame.at(low, low), frame.at(high, high), solid(SOFT, 1.0));
    frame.axes(canvas);
    for point in points {
        let style = sheet.style(point.m);
        canvas.mark(frame.at(point.published, point.measured), style.dash, 3.6, style.css());
    }
    let end = legend::draw(canvas, sheet, Sign::Mark, top + frame.height + BELOW);
    [width, end + MARGIN]
}
