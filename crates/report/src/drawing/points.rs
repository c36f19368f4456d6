//! Measured values over published ones, and the diagonal on which both are equal.

use super::super::chart::PublishedPoint;
use super::super::headline::MET;
use super::DrawingSheet;
use super::canvas::{Canvas, GRID, SOFT, solid};
use super::frame::{BELOW, PlotFrame};
use super::legend::{self, LegendSign};
use super::sizes::MARGIN;

/// Draws the chart below `top`; returns the width and the height of the picture.
pub(super) fn draw(canvas: &mut Canvas, sheet: &DrawingSheet, points: &[PublishedPoint]) -> [f64; 2] {
    let DrawingSheet { chart, width, top, .. } = *sheet;
    let left = sheet.left();
    let side = width - left - MARGIN;
    let frame = PlotFrame { left, top, width: side, height: side * 0.75, x: &chart.x, y: &chart.y };
    frame.grid(canvas);
    let [low, high] = chart.x.range;
    // A factor of the diagonal, which is a parallel to it on logarithmic axes.
    let edge = |x: f64, factor: f64| frame.at(x, x * factor);
    let band = [edge(low, 1.0 - MET), edge(high, 1.0 - MET), edge(high, 1.0 + MET), edge(low, 1.0 + MET)];
    canvas.area(&band, GRID, 1.0);
    canvas.line(frame.at(low, low), frame.at(high, high), solid(SOFT, 1.0));
    frame.axes(canvas);
    for point in points {
        let style = sheet.style(point.m);
        canvas.mark(frame.at(point.published, point.measured), style.dash, 3.6, style.css());
    }
    let end = legend::draw(canvas, sheet, LegendSign::Mark, top + frame.height + BELOW);
    [width, end + MARGIN]
}
