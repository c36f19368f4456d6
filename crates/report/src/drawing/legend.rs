//! The names of mechanisms with their colours, dashes and marks, below a chart.

use super::DrawingSheet;
use super::canvas::{Anchor, Canvas, INK, Stroke};
use super::sizes::{MARGIN, TEXT};

const SWATCH: f64 = 30.0;
const GAP: f64 = 18.0;
const LINE: f64 = 18.0;

/// The sign beside a name in the legend: the mechanism's line, its mark or both, as the chart draws them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LegendSign {
    Line,
    LineAndMark,
    Mark,
}

/// Draws the mechanisms of a chart from `top` on, in columns as wide as the longest name; returns the lower end.
pub(super) fn draw(canvas: &mut Canvas, sheet: &DrawingSheet, sign: LegendSign, top: f64) -> f64 {
    let shown = sheet.chart.mechanisms();
    let column = SWATCH + 6.0 + sheet.longest_name(shown.iter().copied()) + GAP;
    // The last column has no gap behind it, so one gap is added to the room.
    let columns = (((sheet.width - 2.0 * MARGIN + GAP) / column) as usize).clamp(1, shown.len().max(1));
    let rows = shown.len().div_ceil(columns);
    for (place, &m) in shown.iter().enumerate() {
        // Names go down the columns, because people read lists so.
        let (x, y) = (MARGIN + column * (place / rows) as f64, top + LINE * ((place % rows) as f64 + 0.5));
        let style = sheet.style(m);
        let (colour, dash) = (style.css(), style.dasharray());
        if sign != LegendSign::Mark {
            canvas.line([x, y], [x + SWATCH, y], Stroke { colour, width: 2.0, dash });
        }
        if sign != LegendSign::Line {
            canvas.mark([x + SWATCH / 2.0, y], style.dash, 3.4, colour);
        }
        canvas.text([x + SWATCH + 6.0, y + TEXT * 0.36], sheet.name(m), TEXT, INK, Anchor::START);
    }
    top + LINE * rows as f64
}
