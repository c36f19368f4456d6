//! Files of other simulators: places and radios of Cooja, movements of BonnMotion.

pub(crate) mod csc;
pub(crate) mod positions;

use std::fmt;

/// The largest file that is read, in bytes.
pub(crate) const MAX_BYTES: usize = 256 << 20;

/// The farthest that a node may be from the origin along an axis, in metres.
const FARTHEST_M: f64 = 1e6;

/// The error of a file that cannot be used: one line of text, with the number of the line in the file if one is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ImportError {
    line: Option<u32>,
    problem: String,
}

impl ImportError {
    fn at(line: u32, problem: impl Into<String>) -> Self {
        Self { line: Some(line), problem: problem.into() }
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.problem),
            None => f.write_str(&self.problem),
        }
    }
}

impl std::error::Error for ImportError {}

/// Refuses a text of more than [`MAX_BYTES`].
fn bounded(text: &str) -> Result<(), ImportError> {
    if text.len() > MAX_BYTES {
        let problem = format!("the file is larger than {} MiB", MAX_BYTES >> 20);
        return Err(ImportError { line: None, problem });
    }
    Ok(())
}

/// Reads a coordinate in metres.
///
/// # Errors
/// Returns a sentence on what is wrong.
fn coordinate(text: &str) -> Result<f64, String> {
    number(text, -FARTHEST_M, FARTHEST_M).ok_or_else(|| {
        format!("a coordinate must be a number from -{FARTHEST_M} to {FARTHEST_M}, not {}", shown(text))
    })
}

/// Reads a number; `None` unless it is between two bounds, both included.
fn number(text: &str, low: f64, high: f64) -> Option<f64> {
    text.trim().parse().ok().filter(|number| (low..=high).contains(number))
}

/// Returns the message of another library, at most 200 characters of it, without control characters that a terminal would
/// obey.
fn plain(message: &str) -> String {
    message.chars().take(200).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Returns a text from outside for an error message: short, on one line, in quotes.
fn shown(text: &str) -> String {
    const LONGEST: usize = 40;
    let text = text.trim();
    let short: String = text.chars().take(LONGEST).collect();
    format!("{short:?}{}", if short.len() < text.len() { " …" } else { "" })
}
