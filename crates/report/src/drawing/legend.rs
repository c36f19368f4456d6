//! The names of mechanisms with their colours, dashes and marks, below a chart.

use super::super::font;
use super::super::panels::Named;
use super::canvas::{Anchor, Canvas, INK, Stroke};
use super::sizes::{MARGIN, TEXT};

const SWATCH: f64 = 30.0;
const GAP: f64 = 18.0;
const LINE: f64 = 18.0;

/// The parts of a mechanism's look that a chart uses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Line,
    LineAndMark,
    Mark,
}

/// Draws the legend from `top` on, in columns as wide as the longest name; returns its lower end.
pub(super) fn draw(canvas: &mut Canvas, names: &[&Named], sign: Sign, [width, top]: [f64; 2]) -> f64 {
    let longest = names.iter().map(|named| font::width(named.name, TEXT)).fold(0.0, f64::max);
    let column = SWATCH + 6.0 + longest + GAP;
    let columns = (((width - 2.0 * MARGIN + GAP) / column) as usize).clamp(1, names.len().max(1));
    let rows = names.len().div_ceil(columns);
    for (place, named) in names.iter().enumerate() {
        // Names go down the columns, because people read lists so.
        let (x, y) = (MARGIN + column * (place / rows) as f64, top + LINE * ((place % rows) as f64 + 0.5));
        let (colour, dash) = (named.style.css(), named.style.dasharray());
        if sign != Sign::Mark {
            canvas.line([x, y], [x + SWATCH, y], Stroke { colour, width: 2.0, dash });
        }
        if sign != Sign::Line {
            canvas.mark([x + SWATCH / 2.0, y], named.style.dash, 3.4, colour);
        }
        canvas.text([x + SWATCH + 6.0, y + TEXT * 0.36], named.name, TEXT, INK, Anchor::Start);
    }
    top + LINE * rows as f64
}
