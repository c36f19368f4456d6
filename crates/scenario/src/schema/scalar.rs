//! Values written in one piece: numbers, words, and quantities with their units.

use coapace_sim::{Jitter, Span};
use serde_json::{Value, json};

use super::document::{Item, TomlValue, is_name, quoted, setting};
use super::error::{Fault, ValueOrigin, shown};
use super::json::any_of;
use super::kind::{Lines, ValueKind, listed, near};
use super::units;

/// A kind whose values are single numbers, words or quantities.
pub(crate) trait Scalar {
    type Value;
    fn accepts(&self) -> String;
    /// Returns the accepted values as a JSON Schema.
    fn schema(&self) -> Value;
    fn parse(&self, value: &TomlValue) -> Option<Self::Value>;
    /// Returns the value as a file has it.
    fn text(&self, value: &Self::Value) -> String;
    fn words(&self) -> Vec<&'static str> {
        Vec::new()
    }
    /// Returns a hint about the probable meaning of a refused value, which follows the error; empty if the meaning is
    /// not known.
    fn hint(&self, value: &TomlValue) -> String {
        near(&self.words(), value)
    }
}

impl<S: Scalar> ValueKind for S {
    type Value = S::Value;

    fn accepts(&self) -> String {
        Scalar::accepts(self)
    }

    fn schema(&self) -> Value {
        Scalar::schema(self)
    }

    fn read(&self, item: &Item, path: &str) -> Result<S::Value, Fault> {
        self.parse(&item.value).ok_or_else(|| self.refuse(item, path))
    }

    fn write(&self, value: &S::Value, path: &str, lines: &mut Lines) {
        lines.push((path.to_owned(), self.text(value)));
    }

    fn words(&self) -> Vec<&'static str> {
        Scalar::words(self)
    }

    fn hint(&self, value: &TomlValue) -> String {
        Scalar::hint(self, value)
    }
}

/// The kind of a whole number between two bounds, both included.
pub(crate) struct Whole<T>(pub(crate) T, pub(crate) T);

impl<T: Copy + Into<u64> + TryFrom<i64> + PartialOrd> Scalar for Whole<T> {
    type Value = T;
    fn accepts(&self) -> String {
        format!("a whole number from {} to {}", self.0.into(), self.1.into())
    }
    fn schema(&self) -> Value {
        json!({ "type": "integer", "minimum": self.0.into(), "maximum": self.1.into() })
    }
    fn parse(&self, value: &TomlValue) -> Option<T> {
        let TomlValue::Integer(integer) = value else { return None };
        T::try_from(*integer).ok().filter(|value| (self.0..=self.1).contains(value))
    }
    fn hint(&self, value: &TomlValue) -> String {
        unquoted(value, |inner| self.parse(inner).is_some())
    }
    fn text(&self, value: &T) -> String {
        Into::<u64>::into(*value).to_string()
    }
}

/// A kind of values that has no parameters, such as bounds. Its functions define it.
pub(crate) struct Plain<T> {
    accepts: &'static str,
    schema: fn() -> Value,
    parse: fn(&TomlValue) -> Option<T>,
    text: fn(&T) -> String,
    hint: fn(&TomlValue) -> String,
}

impl<T> Scalar for Plain<T> {
    type Value = T;
    fn accepts(&self) -> String {
        self.accepts.to_owned()
    }
    fn schema(&self) -> Value {
        (self.schema)()
    }
    fn parse(&self, value: &TomlValue) -> Option<T> {
        (self.parse)(value)
    }
    fn text(&self, value: &T) -> String {
        (self.text)(value)
    }
    fn hint(&self, value: &TomlValue) -> String {
        (self.hint)(value)
    }
}

/// Returns no hint, for kinds without hints.
const fn nothing(_: &TomlValue) -> String {
    String::new()
}

/// Returns the hint to leave out the quotes; empty unless the text within them is accepted.
fn unquoted(value: &TomlValue, is_accepted: impl Fn(&TomlValue) -> bool) -> String {
    let TomlValue::Text(text) = value else { return String::new() };
    let inner = setting(text, ValueOrigin::Line(1)).value;
    if is_accepted(&inner) { format!("; leave out the quotes: {}", shown(text)) } else { String::new() }
}

/// The kind of a key that is `true` or `false`.
pub(crate) const SWITCH: Plain<bool> = Plain {
    accepts: "true or false",
    schema: || json!({ "type": "boolean" }),
    parse: |value| if let TomlValue::Switch(switch) = value { Some(*switch) } else { None },
    text: bool::to_string,
    hint: |value| unquoted(value, |inner| matches!(inner, TomlValue::Switch(_))),
};

/// The kind of a text on one line, with at least one character and at most this many bytes.
pub(crate) struct OneLine(pub(crate) usize);

impl Scalar for OneLine {
    type Value = String;
    fn accepts(&self) -> String {
        format!("one line of text, at most {} bytes", self.0)
    }
    fn schema(&self) -> Value {
        // A schema counts characters, of which no text has more than bytes.
        json!({ "type": "string", "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]+$", "maxLength": self.0 })
    }
    fn parse(&self, value: &TomlValue) -> Option<String> {
        let TomlValue::Text(text) = value else { return None };
        // Errors and results show a text on one line, so it must not have control characters.
        let fits = (1..=self.0).contains(&text.len()) && !text.contains(char::is_control);
        fits.then(|| text.clone())
    }
    fn text(&self, value: &String) -> String {
        quoted(value)
    }
}

/// The kind of a name that can be part of a dotted path.
pub(crate) const NAME: Plain<String> = Plain {
    accepts: "a name of at most 32 lower-case letters, digits, `-` and `_`, a letter first",
    schema: name_schema,
    parse: |value| if let TomlValue::Text(text) = value { is_name(text).then(|| text.clone()) } else { None },
    text: |name| quoted(name),
    hint: nothing,
};

/// Returns the JSON Schema of names.
pub(crate) fn name_schema() -> Value {
    json!({ "type": "string", "pattern": "^[a-z][a-z0-9_-]{0,31}$" })
}

/// Returns the text of a quantity, which may be a number without quotes; `None` for values that cannot be quantities.
fn quantity(value: &TomlValue) -> Option<String> {
    match value {
        // `Other` is a floating-point number, kept as text so that its decimals are exact.
        TomlValue::Text(text) | TomlValue::Other(text) => Some(text.clone()),
        TomlValue::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns a hint about the probable meaning of a refused quantity; empty if the meaning is not known.
fn quantity_hint(of: units::Quantity, value: &TomlValue) -> String {
    quantity(value).and_then(|text| of.hint(&text)).unwrap_or_default()
}

/// Reads a span of time up to 24 h in a flag of the command, written as in scenarios: `200 ms`, `1.5s`, `2 min`. A
/// number without a unit is seconds, as in flags of other commands. Returns `None` for anything else.
pub fn parse_time(text: &str) -> Option<Span> {
    const LONGEST: Span = Span::from_secs(24 * 3_600);
    units::TIME.parse(text).map(Span::from_micros).filter(|span| *span <= LONGEST)
}

/// Reads a share from 0 to 1 as scenarios have it: `10 %`, `0.1`. Returns `None` for anything else, and for a bare 1,
/// which might mean 1 %.
pub fn parse_share(text: &str) -> Option<f64> {
    let share = units::SHARE.parse(text).filter(|share| *share <= WHOLE_SHARE && text != "1")?;
    Some(share as f64 / WHOLE_SHARE as f64)
}

/// The kind of a span of time, exact to the microsecond.
pub(crate) const TIME: Plain<Span> = Plain {
    accepts: "a time up to 24 h in us, ms, s, min or h, such as \"200 ms\"",
    schema: || {
        any_of([
            units::TIME.schema(),
            json!({ "const": 0 }),
            json!({ "type": "string", "pattern": "^0+(\\.0+)?$" }),
        ])
    },
    parse: |value| {
        let text = quantity(value)?;
        // A file without the unit may mean seconds or milliseconds; nothing at all is the same in both.
        let has_unit = !text.ends_with(|last: char| last.is_ascii_digit());
        parse_time(&text).filter(|span| has_unit || *span == Span::ZERO)
    },
    text: |span| quoted(&units::TIME.write(span.as_micros())),
    hint: |value| quantity_hint(units::TIME, value),
};

/// The kind of a bit rate, in bits per second.
pub(crate) const RATE: Plain<u64> = Plain {
    accepts: "a rate from 1 bit/s to 1000 Gbit/s, such as \"60 kbit/s\"",
    schema: || units::RATE.schema(),
    parse: |value| {
        let TomlValue::Text(text) = value else { return None };
        // A rate must be a text: a bare number could mean bit/s or kbit/s.
        units::RATE.parse(text).filter(|rate| (1..=1_000_000_000_000).contains(rate))
    },
    text: |rate| quoted(&units::RATE.write(*rate)),
    hint: |value| quantity_hint(units::RATE, value),
};

/// The kind of a number of bytes. It needs no unit, because the name of the key says bytes.
pub(crate) const BYTES: Plain<u64> = Plain {
    accepts: "a number of bytes from 1 to 1000000000000, or a size such as \"1.41 MB\"",
    schema: || {
        any_of([
            json!({ "type": "integer", "minimum": 1, "maximum": 1_000_000_000_000_u64 }),
            units::SIZE.schema(),
        ])
    },
    parse: |value| {
        let bytes = match value {
            TomlValue::Integer(bytes) => u64::try_from(*bytes).ok()?,
            TomlValue::Text(text) => units::SIZE.parse(text)?,
            _ => return None,
        };
        (1..=1_000_000_000_000).contains(&bytes).then_some(bytes)
    },
    text: u64::to_string,
    // Quotes first: a whole number of bytes needs none.
    hint: |value| match unquoted(value, |inner| BYTES.parse(inner).is_some()) {
        hint if hint.is_empty() => quantity_hint(units::SIZE, value),
        hint => hint,
    },
};

/// The number of parts that make a probability of 1. A percentage is a whole number of these parts.
const WHOLE_SHARE: u64 = 1_000_000_000;

/// The kind of a probability in \[0, 1\], written as a percentage.
pub(crate) const PERCENTAGE: Plain<f64> = Plain {
    accepts: "a percentage from 0 % to 100 %, such as \"2 %\"",
    // A schema cannot tell 1.0 from 1, which a file must write as 100 %.
    schema: || {
        let text = json!({ "type": "string", "pattern": "^(0(\\.[0-9]{1,9})?|1\\.0{1,9})$" });
        any_of([units::SHARE.schema(), json!({ "type": "number", "minimum": 0, "maximum": 1 }), text])
    },
    parse: |value| parse_share(&quantity(value)?),
    text: |share| {
        // Exact: a value that was read is within half a part of the whole number it came from.
        let parts = (share.clamp(0.0, 1.0) * WHOLE_SHARE as f64).round();
        #[allow(clippy::cast_sign_loss)]
        quoted(&units::SHARE.write(parts as u64))
    },
    hint: |value| quantity_hint(units::SHARE, value),
};

/// The kind of two times, the shorter first.
pub(crate) const RANGE: Plain<Jitter> = Plain {
    accepts: "two times, the shorter first, such as [\"10 ms\", \"20 ms\"]",
    schema: || json!({ "type": "array", "minItems": 2, "maxItems": 2, "items": Scalar::schema(&TIME) }),
    parse: |value| {
        let TomlValue::List(list) = value else { return None };
        let [min, max] = list.as_slice() else { return None };
        let range = Jitter { min: TIME.parse(&min.value)?, max: TIME.parse(&max.value)? };
        (range.min <= range.max).then_some(range)
    },
    text: |Jitter { min, max }| format!("[{}, {}]", TIME.text(min), TIME.text(max)),
    hint: |value| {
        let TomlValue::List(list) = value else { return quantity_hint(units::TIME, value) };
        if let Some(wrong) = list.iter().find(|item| TIME.parse(&item.value).is_none()) {
            return format!("; {} is not a time{}", wrong.show(), Scalar::hint(&TIME, &wrong.value));
        }
        let times: Vec<_> = list.iter().filter_map(|item| TIME.parse(&item.value)).collect();
        match times.as_slice() {
            [longer, shorter] => {
                format!(
                    "; the longer one is first: did you mean [{}, {}]?",
                    TIME.text(shorter),
                    TIME.text(longer)
                )
            }
            times => format!("; there are {}", times.len()),
        }
    },
};

/// The kind of a list: the most values, the kind of each value, and the plural noun for the values in messages.
pub(crate) struct ListOf<S>(pub(crate) usize, pub(crate) S, pub(crate) &'static str);

impl<S: Scalar> Scalar for ListOf<S> {
    type Value = Vec<S::Value>;
    fn accepts(&self) -> String {
        format!("a list of at most {} {}", self.0, self.2)
    }
    fn schema(&self) -> Value {
        json!({ "type": "array", "maxItems": self.0, "items": self.1.schema() })
    }
    fn parse(&self, value: &TomlValue) -> Option<Self::Value> {
        let TomlValue::List(list) = value else { return None };
        if list.len() > self.0 {
            return None;
        }
        list.iter().map(|item| self.1.parse(&item.value)).collect()
    }
    fn hint(&self, value: &TomlValue) -> String {
        let TomlValue::List(list) = value else { return String::new() };
        // The first wrong value is enough: the next error shows the next one.
        let wrong = list.iter().find(|item| self.1.parse(&item.value).is_none());
        wrong.map_or_else(String::new, |item| {
            format!("; its item {} is wrong{}", item.show(), self.1.hint(&item.value))
        })
    }
    fn text(&self, value: &Self::Value) -> String {
        let texts: Vec<_> = value.iter().map(|value| self.1.text(value)).collect();
        format!("[{}]", texts.join(", "))
    }
}

/// The kind of a key that takes one of several words. The function returns each word with its value.
pub(crate) struct Choice<T>(pub(crate) fn() -> Vec<(&'static str, T)>);

impl<T: Copy + PartialEq> Scalar for Choice<T> {
    type Value = T;
    fn accepts(&self) -> String {
        listed(&Scalar::words(self))
    }
    fn schema(&self) -> Value {
        json!({ "enum": Scalar::words(self) })
    }
    fn parse(&self, value: &TomlValue) -> Option<T> {
        let TomlValue::Text(text) = value else { return None };
        (self.0)().into_iter().find(|(word, _)| word == text).map(|(_, value)| value)
    }
    fn text(&self, value: &T) -> String {
        // Every value was read from this list, so it has a word.
        let own = (self.0)().into_iter().find(|(_, other)| other == value);
        own.map_or_else(String::new, |(word, _)| quoted(word))
    }
    fn words(&self) -> Vec<&'static str> {
        (self.0)().into_iter().map(|(word, _)| word).collect()
    }
}

/// An enumeration whose values are words in a file.
pub(crate) trait Words: Copy + PartialEq + 'static {
    const ALL: &'static [(&'static str, Self)];
}

/// Returns the kind of a key that takes one of the words of `T`.
pub(crate) const fn one_of<T: Words>() -> Choice<T> {
    Choice(|| T::ALL.to_vec())
}
