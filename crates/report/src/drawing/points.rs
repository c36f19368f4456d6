//! Measured over published figures, and the diagonal on which both are equal.

use super::super::chart::{Chart, Point};
use super::super::headline::MET;
use super::super::panels::Named;
use super::canvas::{Canvas, GRID, SOFT, solid};
use super::frame::{BELOW, Frame, room_beside};
use super::legend::{self, Sign};
use super::sizes::{MARGIN, TEXT};

/// Draws the chart below `top`; returns the width and the height of the picture.
pub(super) fn draw(
    canvas: &mut Canvas,
    chart: &Chart,
    points: &[Point],
    mechanisms: &[Named],
    [width, top]: [f64; 2],
) -> [f64; 2] {
    let left = MARGIN + TEXT + 8.0 + room_beside(&chart.y);
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
        let style = mechanisms[point.m].style;
        canvas.mark(frame.at(point.published, point.measured), style.dash, 3.6, style.css());
    }
    let names: Vec<&Named> = chart.mechanisms().into_iter().map(|m| &mechanisms[m]).collect();
    let end = legend::draw(canvas, &names, Sign::Mark, [width, top + frame.height + BELOW]);
    [width, end + MARGIN]
}
