//! The plane between two axes.

use super::super::axis::Axis;
use super::super::font;
use super::canvas::{Anchor, Canvas, GRID, INK, SOFT, solid};
use super::sizes::{MARGIN, SMALL, TEXT};

/// A plane between two axes, and its position in the picture.
#[derive(Clone, Copy)]
pub(super) struct PlotFrame<'a> {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) x: &'a Axis,
    pub(super) y: &'a Axis,
}

impl PlotFrame<'_> {
    /// Returns the horizontal position of a value in the picture.
    pub(super) fn across(&self, value: f64) -> f64 {
        self.left + self.x.place(value) * self.width
    }

    /// Returns the position of a point in the picture.
    pub(super) fn at(&self, x: f64, y: f64) -> [f64; 2] {
        [self.across(x), self.top + (1.0 - self.y.place(y)) * self.height]
    }

    /// Draws the lines of the grid and the frame around them.
    pub(super) fn grid(&self, canvas: &mut Canvas) {
        for tick in within(self.x) {
            let x = self.across(tick);
            canvas.line([x, self.top], [x, self.top + self.height], solid(GRID, 0.8));
        }
        for tick in within(self.y) {
            let [_, y] = self.at(self.x.range[0], tick);
            canvas.line([self.left, y], [self.left + self.width, y], solid(GRID, 0.8));
        }
        canvas.frame([self.left, self.top, self.width, self.height]);
    }

    /// Draws the ticks and titles of both axes.
    pub(super) fn axes(&self, canvas: &mut Canvas) {
        self.ticks_below(canvas);
        self.ticks_beside(canvas);
        self.title_below(canvas);
        self.title_beside(canvas);
    }

    /// Draws the ticks of the horizontal axis below the plane. A label that would touch the one before is left out.
    pub(super) fn ticks_below(&self, canvas: &mut Canvas) {
        let y = self.top + self.height;
        let mut free = f64::NEG_INFINITY;
        for tick in within(self.x) {
            let (x, label) = (self.across(tick), self.x.label(tick));
            let half = font::width(&label, SMALL) / 2.0;
            canvas.line([x, y], [x, y + 4.0], solid(SOFT, 0.8));
            if x - half > free {
                canvas.text([x, y + 6.0 + SMALL], &label, SMALL, INK, Anchor::MIDDLE);
                free = x + half + 4.0;
            }
        }
    }

    /// Draws the ticks of the vertical axis at the left of the plane.
    pub(super) fn ticks_beside(&self, canvas: &mut Canvas) {
        for tick in within(self.y) {
            let [_, y] = self.at(self.x.range[0], tick);
            canvas.line([self.left - 4.0, y], [self.left, y], solid(SOFT, 0.8));
            // 0.36 of its size is half the height of a digit, so the label is centred at its tick.
            canvas.text([self.left - 7.0, y + SMALL * 0.36], &self.y.label(tick), SMALL, INK, Anchor::END);
        }
    }

    /// Draws the title of the vertical axis, turned, at the left edge of the picture.
    pub(super) fn title_beside(&self, canvas: &mut Canvas) {
        let middle = [MARGIN + TEXT, self.top + self.height / 2.0];
        canvas.turned(middle, &self.y.title, TEXT, INK, Anchor::MIDDLE, -90);
    }

    /// Draws the title of the horizontal axis below its ticks.
    pub(super) fn title_below(&self, canvas: &mut Canvas) {
        let at = [self.left + self.width / 2.0, self.top + self.height + 20.0 + SMALL + TEXT];
        canvas.text(at, &self.x.title, TEXT, INK, Anchor::MIDDLE);
    }
}

/// The height of the ticks and the title below a plane.
pub(super) const BELOW: f64 = 20.0 + SMALL + TEXT + 6.0;

/// Returns the width that the ticks of a vertical axis need.
pub(super) fn room_beside(axis: &Axis) -> f64 {
    within(axis).map(|tick| font::width(&axis.label(tick), SMALL)).fold(0.0, f64::max) + 10.0
}

/// Returns the ticks between the ends of an axis.
fn within(axis: &Axis) -> impl Iterator<Item = f64> {
    let [low, high] = axis.range;
    // A tick at the very end may lie beyond it by a rounding error.
    let slack = (high - low).abs() * 1e-9;
    axis.ticks.iter().copied().filter(move |tick| (low - slack..=high + slack).contains(tick))
}
