//! Sizes that all pictures share, in pixels of 1/96 inch.

/// From the edge of the picture to anything in it.
pub(super) const MARGIN: f64 = 14.0;
/// Letters of titles.
pub(super) const TITLE: f64 = 15.0;
/// Letters of names and of titles of axes.
pub(super) const TEXT: f64 = 11.5;
/// Letters of ticks.
pub(super) const SMALL: f64 = 10.5;
