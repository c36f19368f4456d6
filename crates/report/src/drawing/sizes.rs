//! Sizes that all pictures share, in pixels of 1/96 inch.

/// The distance from the edge of the picture to anything in it.
pub(super) const MARGIN: f64 = 14.0;
/// The size of titles.
pub(super) const TITLE: f64 = 15.0;
/// The size of names and of titles of axes.
pub(super) const TEXT: f64 = 11.5;
/// The size of labels at ticks.
pub(super) const SMALL: f64 = 10.5;
