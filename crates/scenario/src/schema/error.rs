//! Errors of a scenario, each in one line.

use std::fmt;

use coapace_control::nearest;

/// The reason why a scenario cannot be used: one line that names the place, the key and the accepted values.
///
/// `scenarios/x.toml:12: unknown key `clinets`; did you mean `clients`?`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file or the built-in scenario, with the line; or the setting as it was given.
    place: String,
    message: String,
    usage: bool,
}

impl ScenarioError {
    /// Makes an error about a file, at this place.
    pub(crate) fn new(place: &str, message: &str) -> Self {
        Self { place: shown(place), message: message.to_owned(), usage: false }
    }

    /// Marks the error as a mistake in the request: in a name or a setting.
    pub(crate) fn of_usage(self) -> Self {
        Self { usage: true, ..self }
    }

    /// Returns whether the mistake is in the request (a name, a setting), not in a file.
    pub fn is_usage(&self) -> bool {
        self.usage
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)
    }
}

impl std::error::Error for ScenarioError {}

/// The place where a value was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueOrigin {
    /// A line of the file, from 1.
    Line(usize),
    /// One of the settings, by its index from 0.
    Setting(usize),
}

/// An error that does not name its file yet.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) at: ValueOrigin,
    pub(crate) message: String,
    /// The unknown key that the error is about, if it resembles no key of its table.
    pub(crate) stray: Option<Stray>,
}

/// An unknown key, which may be a key of another table.
#[derive(Clone, Debug)]
pub(crate) struct Stray {
    pub(crate) name: String,
    /// The error message without a suggestion.
    pub(crate) line: String,
}

impl Fault {
    pub(crate) fn new(at: ValueOrigin, message: impl Into<String>) -> Self {
        Self { at, message: message.into(), stray: None }
    }

    /// Returns the error with its place: the name of the file and the line, or the setting as it was given.
    pub(crate) fn named(&self, file: &str, settings: &[(String, String)]) -> ScenarioError {
        let place = match self.at {
            ValueOrigin::Line(line) => format!("{file}:{line}"),
            ValueOrigin::Setting(place) => match settings.get(place) {
                Some((key, value)) => format!("--set {key}={value}"),
                None => "--set".to_owned(),
            },
        };
        let error = ScenarioError::new(&place, &self.message);
        // A setting belongs to the request, also if the key that it spoils is in the file.
        if matches!(self.at, ValueOrigin::Setting(_)) { error.of_usage() } else { error }
    }
}

/// Returns text from outside as an error shows it: short, on one line, without characters that control a terminal.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 100;
    // U+FFFD shows where a control character was.
    let mut shown: String =
        text.chars().take(LONGEST).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

/// Returns `; did you mean `x`?` for the candidate that resembles `name`, or an empty text if none does.
pub(crate) fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, candidates).map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}
