//! Mechanisms by name: `NAME` or `NAME:parameter=value,…`.

use core::fmt;
use core::str::FromStr;

use crate::excerpt::Excerpt;
use crate::{
    BULK, Controller, Cue, Draw, Duration, Entry, Instant, Mechanism, Outcome, REGISTRY, Sample, SetError,
    State, unknown,
};

/// A set of mechanisms that can be found by name: the built-in ones of this crate, and own mechanisms of other crates.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mechanisms {
    own: &'static [Entry],
}

/// The value of a parameter, for display. The displayed text parses to the same value.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    mechanism: &'a Mechanism,
    name: &'a str,
}

/// The reason why a text cannot be parsed as a mechanism.
#[derive(Clone, Copy, Debug)]
pub enum ParseMechanismError {
    /// No mechanism has this name.
    UnknownMechanism {
        /// The name in the text.
        name: Excerpt,
        /// The mechanisms to choose from.
        known: Mechanisms,
    },
    /// No bulk mechanism has this name.
    UnknownBulk {
        /// The name in the text.
        name: Excerpt,
        /// The bulk mechanisms to choose from.
        known: Mechanisms,
    },
    /// The mechanism is for single exchanges, but a bulk mechanism is needed.
    NoBulk {
        /// The named mechanism.
        entry: &'static Entry,
        /// The bulk mechanisms to choose from.
        known: Mechanisms,
    },
    /// The mechanism is a bulk mechanism, but one for single exchanges is needed.
    NoSingle {
        /// The named mechanism.
        entry: &'static Entry,
        /// The mechanisms to choose from.
        known: Mechanisms,
    },
    /// A part of the text after the colon is not of the form `parameter=value`. Holds that part.
    NotAnAssignment(Excerpt),
    /// A parameter could not be set.
    Parameter {
        /// The mechanism whose parameter it is.
        entry: &'static Entry,
        /// The name of the parameter.
        name: Excerpt,
        /// The value in the text.
        value: Excerpt,
        /// The reason why the parameter could not be set.
        error: SetError,
    },
}

/// The reason why an own mechanism cannot be added to the built-in ones: its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadName {
    /// The name is empty, or has characters other than lower-case letters, digits and hyphens.
    Characters(&'static str),
    /// Another mechanism already has this name.
    Taken(&'static str),
}

impl Mechanisms {
    /// The mechanisms of this crate.
    pub const BUILT_IN: Self = Self { own: &[] };

    /// Returns the mechanisms of this crate and `own` ones.
    ///
    /// # Errors
    /// [`BadName`] if a name is taken, or could not be parsed as part of `NAME:parameter=value,…`.
    pub fn with(own: &'static [Entry]) -> Result<Self, BadName> {
        for (place, Entry { name, .. }) in own.iter().enumerate() {
            let earlier = own.get(..place).unwrap_or_default();
            if name.is_empty() || !name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-')) {
                return Err(BadName::Characters(name));
            }
            // A name must find one mechanism, for single exchanges and for bodies.
            if REGISTRY.iter().chain(BULK).chain(earlier).any(|other| other.name == *name) {
                return Err(BadName::Taken(name));
            }
        }
        Ok(Self { own })
    }

    /// Returns the entries for single exchanges. Own mechanisms come last.
    pub fn entries(self) -> impl Iterator<Item = &'static Entry> + Clone {
        REGISTRY.iter().chain(self.own)
    }

    /// Returns the entries of this crate that can carry a body. Bulk mechanisms come first, then mechanisms for single
    /// exchanges that limit the number of outstanding exchanges, such as `rtt-coap`. Own mechanisms with such a limit can also
    /// carry a body, but are not listed.
    pub fn bulk_entries(self) -> impl Iterator<Item = &'static Entry> + Clone {
        BULK.iter().chain(REGISTRY.iter().filter(|entry| has_window(entry)))
    }

    /// Returns the entry of the mechanism for single exchanges with this name; `None` if none has it.
    pub fn find(self, name: &str) -> Option<&'static Entry> {
        self.entries().find(|entry| entry.name == name)
    }

    /// Returns the entry of the mechanism with this name; `None` if there is none, or if it cannot carry a body.
    pub fn find_bulk(self, name: &str) -> Option<&'static Entry> {
        BULK.iter()
            .find(|entry| entry.name == name)
            .or_else(|| self.find(name).filter(|entry| has_window(entry)))
    }

    /// Parses `NAME` or `NAME:parameter=value,…` as a mechanism for single exchanges.
    ///
    /// # Errors
    /// [`ParseMechanismError`] names the mistake, and suggests a similar name.
    pub fn parse(self, text: &str) -> Result<Mechanism, ParseMechanismError> {
        Self::read(text, |name| {
            let unknown = || match self.find_bulk(name) {
                Some(entry) => ParseMechanismError::NoSingle { entry, known: self },
                None => ParseMechanismError::UnknownMechanism { name: Excerpt::of(name), known: self },
            };
            self.find(name).ok_or_else(unknown)
        })
    }

    /// Parses `NAME` or `NAME:parameter=value,…` as a bulk mechanism.
    ///
    /// # Errors
    /// [`ParseMechanismError`] names the mistake, and suggests a similar name.
    pub fn parse_bulk(self, text: &str) -> Result<Mechanism, ParseMechanismError> {
        Self::read(text, |name| match (self.find_bulk(name), self.find(name)) {
            (Some(entry), _) => Ok(entry),
            (None, Some(entry)) => Err(ParseMechanismError::NoBulk { entry, known: self }),
            (None, None) => Err(ParseMechanismError::UnknownBulk { name: Excerpt::of(name), known: self }),
        })
    }

    fn read(
        text: &str,
        find: impl FnOnce(&str) -> Result<&'static Entry, ParseMechanismError>,
    ) -> Result<Mechanism, ParseMechanismError> {
        let (name, settings) = text.split_once(':').unwrap_or((text, ""));
        let entry = find(name)?;
        let mut mechanism = entry.mechanism;
        for setting in Mechanism::settings(settings) {
            let (name, value) = setting?;
            mechanism.set(name, value).map_err(|error| {
                let (name, value) = (Excerpt::of(name), Excerpt::of(value));
                ParseMechanismError::Parameter { entry, name, value, error }
            })?;
        }
        Ok(mechanism)
    }
}

/// Returns whether a mechanism limits the number of outstanding exchanges. This calls [`Controller::state`] and
/// [`Controller::limits`] of the mechanism.
fn has_window(entry: &Entry) -> bool {
    entry.mechanism.limits(&entry.mechanism.state()).nstart.is_some()
}

/// Parses `NAME` or `NAME:parameter=value,…` as a mechanism of this crate for single exchanges. [`Mechanisms::parse`]
/// also parses own mechanisms.
impl FromStr for Mechanism {
    type Err = ParseMechanismError;

    fn from_str(text: &str) -> Result<Self, ParseMechanismError> {
        Mechanisms::BUILT_IN.parse(text)
    }
}

impl Mechanism {
    /// Splits `parameter=value,…`, the text after the colon, into pairs of parameter and value. Skips empty parts.
    ///
    /// # Errors
    /// [`ParseMechanismError::NotAnAssignment`] for a part without `=`.
    pub fn settings(text: &str) -> impl Iterator<Item = Result<(&str, &str), ParseMechanismError>> {
        text.split(',').filter(|setting| !setting.is_empty()).map(|setting| {
            let assignment = setting.split_once('=');
            let (name, value) =
                assignment.ok_or(ParseMechanismError::NotAnAssignment(Excerpt::of(setting)))?;
            Ok((name.trim(), value.trim()))
        })
    }

    /// Returns the value of the parameter `name`, which is displayed like the text after `=`; `None` if no parameter
    /// has this name.
    pub fn get<'a>(&'a self, name: &'a str) -> Option<Shown<'a>> {
        let is_known = self.parameters().iter().any(|parameter| parameter.name == name);
        is_known.then_some(Shown { mechanism: self, name })
    }

    /// Returns whether the first timeout of an exchange is random, both before the first sample and after a sample of 2 s.
    /// Without this dither, clients that lost packets together retransmit together (RFC 7252 §4.2).
    pub fn dithers(&self) -> bool {
        let cue = |draw, seconds: u64| {
            let now = Instant::from_millis(seconds * 1_000);
            Cue { now, draw: Draw::from_bits(draw), outstanding: 1 }
        };
        let is_dithered = |state: &State, seconds: u64| {
            // Each call gets a copy of the state, because the start of an exchange may change it.
            let timeout = |draw| self.on_start(&mut { *state }, cue(draw, seconds)).1;
            // The least and the greatest draw differ in every dither.
            timeout(0) != timeout(u32::MAX)
        };
        let mut state = self.state();
        let is_dithered_at_first = is_dithered(&state, 0);
        let (exchange, _) = self.on_start(&mut state, cue(0, 0));
        let rtt = Duration::from_secs(2);
        self.on_end(&mut state, exchange, Outcome::Acked(Sample::unmarked(rtt, rtt, 0)), cue(0, 2));
        is_dithered_at_first && is_dithered(&state, 2)
    }

    /// Returns the names of the parameters whose values differ from the entry's. Both mechanisms are of the same kind.
    fn differing<'a>(&'a self, entry: &'a Entry) -> impl Iterator<Item = &'static str> + 'a {
        let names = self.parameters().iter().map(|parameter| parameter.name);
        // The values have different types, so their texts are compared.
        let value = |mechanism: &Self, name| mechanism.get(name).map(Excerpt::of);
        names.filter(move |name| value(self, name) != value(&entry.mechanism, name))
    }
}

/// Writes the shortest text that parses to this mechanism: a name, and the parameters that differ from the entry of
/// that name.
impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = if let Self::Own(own) = self { Some(own.entry()) } else { None };
        let named =
            REGISTRY.iter().chain(BULK).chain(&own).filter(|entry| entry.mechanism.kind() == self.kind());
        // Each kind has an entry, so there always is one.
        let Some(entry) = named.min_by_key(|entry| self.differing(entry).count()) else { return Ok(()) };
        f.write_str(entry.name)?;
        let separators = core::iter::once(':').chain(core::iter::repeat(','));
        for (name, separator) in self.differing(entry).zip(separators) {
            write!(f, "{separator}{name}=")?;
            self.show(name, f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.mechanism.show(self.name, f)
    }
}

impl Entry {
    /// Returns the built-in entry for single exchanges with this name; `None` if none has it.
    pub fn find(name: &str) -> Option<&'static Self> {
        Mechanisms::BUILT_IN.find(name)
    }
}

/// Writes one line: the mistake, a suggested name, and the names to choose from.
impl fmt::Display for ParseMechanismError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownMechanism { name, known } => {
                unknown(f, "mechanism", name, known.entries().map(|entry| entry.name))
            }
            Self::UnknownBulk { name, known } => {
                unknown(f, "bulk mechanism", name, known.bulk_entries().map(|entry| entry.name))
            }
            // The name is known, but in the other list. This says more than that it is unknown.
            Self::NoBulk { entry: Entry { name, .. }, known } => {
                write!(f, "{name} is a mechanism for single exchanges (--cc); bulk mechanisms: ")?;
                list(f, known.bulk_entries())
            }
            Self::NoSingle { entry: Entry { name, .. }, known } => {
                write!(f, "{name} is a bulk mechanism (--bulk); mechanisms for single exchanges: ")?;
                list(f, known.entries())
            }
            Self::NotAnAssignment(text) => {
                write!(f, "{text:?} is not parameter=value; a mechanism is NAME or NAME:parameter=value,...")
            }
            Self::Parameter { entry, name, value, error } => match error {
                SetError::UnknownParameter => {
                    // `preset` is set like a parameter, so it is offered, too.
                    let known = entry.mechanism.parameters().iter().map(|parameter| parameter.name);
                    unknown(f, format_args!("parameter of {}", entry.name), name, known.chain(["preset"]))
                }
                SetError::UnknownPreset => {
                    let known = entry.mechanism.presets().iter().map(|preset| preset.name);
                    unknown(f, format_args!("preset of {}", entry.name), value, known)
                }
                SetError::BadValue(kind) => {
                    write!(f, "{} of {} is {kind}, not {value:?}", name.as_ref(), entry.name)
                }
            },
        }
    }
}

/// Writes the names of entries, with commas between them.
fn list(f: &mut fmt::Formatter<'_>, entries: impl Iterator<Item = &'static Entry>) -> fmt::Result {
    for (place, entry) in entries.enumerate() {
        write!(f, "{}{}", if place > 0 { ", " } else { "" }, entry.name)?;
    }
    Ok(())
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

impl fmt::Display for BadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Characters(name) => {
                write!(f, "a mechanism cannot be called {name:?}: use lower-case letters, digits and hyphens")
            }
            Self::Taken(name) => write!(f, "there is a mechanism called {name:?}; give yours another name"),
        }
    }
}

impl core::error::Error for ParseMechanismError {}
impl core::error::Error for SetError {}
impl core::error::Error for BadName {}
