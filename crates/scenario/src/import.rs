//! Files of other simulators: places and radios of Cooja, movements of BonnMotion.

pub mod csc;
pub mod positions;

use std::fmt;

/// The largest file that is read, in bytes.
pub const MAX_BYTES: usize = 256 << 20;

/// How far from the origin a node may be, in metres.
const FARTHEST_M: f64 = 1e6;

/// Why a file cannot be used: one line, with the line of the file if there is one to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportError {
    line: Option<u32>,
    problem: String,
}

impl ImportError {
    fn new(line: Option<u32>, problem: impl Into<String>) -> Self {
        Self { line, problem: problem.into() }
    }

    fn at(line: u32, problem: impl Into<String>) -> Self {
        Self::new(Some(line), problem)
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

/// A text that is larger than what is read is not looked at.
fn bounded(text: &str) -> Result<(), ImportError> {
    if text.len() > MAX_BYTES {
        return Err(ImportError::new(None, format!("the file is larger than {} MiB", MAX_BYTES >> 20)));
    }
    Ok(())
}

/// A coordinate in metres; says what is wrong with it.
fn coordinate(text: &str) -> Result<f64, String> {
    number(text, -FARTHEST_M, FARTHEST_M).ok_or_else(|| {
        format!("a coordinate must be a number from -{FARTHEST_M} to {FARTHEST_M}, not {}", shown(text))
    })
}

/// A number between two bounds.
fn number(text: &str, low: f64, high: f64) -> Option<f64> {
    text.trim().parse().ok().filter(|number| (low..=high).contains(number))
}

/// Returns the message of another library about a text from outside, without anything that a terminal obeys.
fn plain(message: &str) -> String {
    message.chars().take(200).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Text from outside as an error shows it: short, on one line, in quotes.
fn shown(text: &str) -> String {
    const LONGEST: usize = 40;
    let text = text.trim();
    let short: String = text.chars().take(LONGEST).collect();
    format!("{short:?}{}", if short.len() < text.len() { " …" } else { "" })
}
