//! Files of other simulators: positions and radios from Cooja, movements from BonnMotion.

pub(crate) mod csc;
pub(crate) mod positions;

use std::fmt::Display;

/// The largest file of another simulator that is read, in bytes.
pub(crate) const MAX_BYTES: usize = 256 << 20;

/// The farthest that a node may be from the origin along an axis, in metres.
const FARTHEST_M: f64 = 1e6;

/// Returns an error message: the number of the line, and the problem in this line.
fn in_line(line: impl Display, problem: impl Display) -> String {
    format!("line {line}: {problem}")
}

/// Returns an error if `text` has more than [`MAX_BYTES`].
fn bounded(text: &str) -> Result<(), String> {
    if text.len() > MAX_BYTES {
        return Err(format!("the file is larger than {} MiB", MAX_BYTES >> 20));
    }
    Ok(())
}

/// Reads a coordinate in metres.
///
/// # Errors
/// Returns a sentence that quotes `text` and names the limits.
fn coordinate(text: &str) -> Result<f64, String> {
    number(text, -FARTHEST_M, FARTHEST_M).ok_or_else(|| {
        format!("a coordinate must be a number from -{FARTHEST_M} to {FARTHEST_M}, not {}", shown(text))
    })
}

/// Reads a number; `None` unless it is between two bounds, both included.
fn number(text: &str, low: f64, high: f64) -> Option<f64> {
    // `f64` also reads `nan` and `inf`, which are in no range.
    text.trim().parse().ok().filter(|number| (low..=high).contains(number))
}

/// Returns a text from outside for an error message: short, on one line, in quotes.
fn shown(text: &str) -> String {
    const LONGEST: usize = 40;
    let text = text.trim();
    let short: String = text.chars().take(LONGEST).collect();
    // The debug form escapes quotes and control characters of a file from somebody else.
    format!("{short:?}{}", if short.len() < text.len() { " …" } else { "" })
}
