//! Mechanisms by name: `NAME` or `NAME:parameter=value,…`.

use core::fmt;
use core::str::FromStr;

use crate::{Entry, Mechanism, REGISTRY, SetError};

/// Why a text names no mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseMechanismError {
    /// There is none of this name.
    UnknownMechanism,
    /// A part after the colon is not `parameter=value`; holds its place, from 0.
    NotAnAssignment(usize),
    /// A parameter could not be set; holds its place among the parameters, from 0, and why.
    Parameter(usize, SetError),
}

impl FromStr for Mechanism {
    type Err = ParseMechanismError;

    fn from_str(text: &str) -> Result<Self, ParseMechanismError> {
        let (name, settings) = text.split_once(':').unwrap_or((text, ""));
        let mut mechanism = Entry::find(name).ok_or(ParseMechanismError::UnknownMechanism)?.mechanism;
        for (place, setting) in Self::settings(settings).enumerate() {
            let (parameter, value) = setting?;
            mechanism.set(parameter, value).map_err(|error| ParseMechanismError::Parameter(place, error))?;
        }
        Ok(mechanism)
    }
}

impl Mechanism {
    /// The parameters and values of `parameter=value,…`, the text behind the colon. What is empty is passed over.
    ///
    /// # Errors
    /// [`ParseMechanismError::NotAnAssignment`] in place of what has no `=`.
    pub fn settings(text: &str) -> impl Iterator<Item = Result<(&str, &str), ParseMechanismError>> {
        text.split(',').filter(|setting| !setting.is_empty()).enumerate().map(|(place, setting)| {
            let assignment = setting.split_once('=').ok_or(ParseMechanismError::NotAnAssignment(place));
            assignment.map(|(parameter, value)| (parameter.trim(), value.trim()))
        })
    }
}

impl Entry {
    /// The entry of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        REGISTRY.iter().find(|entry| entry.name == name)
    }
}

impl fmt::Display for ParseMechanismError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownMechanism => f.write_str("no mechanism of this name"),
            Self::NotAnAssignment(place) => write!(f, "parameter {}: expected name=value", place + 1),
            Self::Parameter(place, error) => write!(f, "parameter {}: {error}", place + 1),
        }
    }
}

impl fmt::Display for SetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownParameter => f.write_str("the mechanism has no parameter of this name"),
            Self::UnknownPreset => f.write_str("the mechanism has no preset of this name"),
            Self::BadValue(kind) => write!(f, "the value must be {kind}"),
        }
    }
}

impl core::error::Error for ParseMechanismError {}
impl core::error::Error for SetError {}
