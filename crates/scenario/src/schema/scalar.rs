//! Values written in one piece: numbers, words, and quantities with their units.

use coapace_sim::{Jitter, Span};

use super::document::{Item, TomlValue, is_name, quoted, setting};
use super::error::{Fault, ValueOrigin, shown};
use super::kind::{Lines, ValueKind, listed, near};
use super::units;

/// A kind whose values are written in one piece.
pub(crate) trait Scalar {
    type Value;
    fn accepts(&self) -> String;
    fn parse(&self, value: &TomlValue) -> Option<Self::Value>;
    /// Returns the value like a file has it.
    fn text(&self, value: &Self::Value) -> String;
    fn words(&self) -> Vec<&'static str> {
        Vec::new()
    }
    /// Returns the probable meaning of a refused value, to follow the error.
    fn hint(&self, value: &TomlValue) -> String {
        near(&self.words(), value)
    }
}

impl<S: Scalar> ValueKind for S {
    type Value = S::Value;

    fn accepts(&self) -> String {
        Scalar::accepts(self)
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

/// A whole number within bounds, both included.
pub(crate) struct Whole<T>(pub(crate) T, pub(crate) T);

impl<T: Copy + Into<u64> + TryFrom<i64> + PartialOrd> Scalar for Whole<T> {
    type Value = T;
    fn accepts(&self) -> String {
        format!("a whole number from {} to {}", self.0.into(), self.1.into())
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

/// A kind without parameters.
pub(crate) struct Plain<T> {
    accepts: &'static str,
    parse: fn(&TomlValue) -> Option<T>,
    text: fn(&T) -> String,
    hint: fn(&TomlValue) -> String,
}

impl<T> Scalar for Plain<T> {
    type Value = T;
    fn accepts(&self) -> String {
        self.accepts.to_owned()
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

/// The hint of kinds that have none.
const fn nothing(_: &TomlValue) -> String {
    String::new()
}

/// Returns the hint to leave out the quotes, if the text within them is accepted.
fn unquoted(value: &TomlValue, is_accepted: impl Fn(&TomlValue) -> bool) -> String {
    let TomlValue::Text(text) = value else { return String::new() };
    let inner = setting(text, ValueOrigin::Line(1)).value;
    if is_accepted(&inner) { format!("; leave out the quotes: {}", shown(text)) } else { String::new() }
}

/// `true` or `false`.
pub(crate) const SWITCH: Plain<bool> = Plain {
    accepts: "true or false",
    parse: |value| if let TomlValue::Switch(switch) = value { Some(*switch) } else { None },
    text: bool::to_string,
    hint: |value| unquoted(value, |inner| matches!(inner, TomlValue::Switch(_))),
};

/// One line of text, of at least one character and at most so many bytes.
pub(crate) struct OneLine(pub(crate) usize);

impl Scalar for OneLine {
    type Value = String;
    fn accepts(&self) -> String {
        format!("one line of text, at most {} bytes", self.0)
    }
    fn parse(&self, value: &TomlValue) -> Option<String> {
        let TomlValue::Text(text) = value else { return None };
        let fits = (1..=self.0).contains(&text.len()) && !text.contains(char::is_control);
        fits.then(|| text.clone())
    }
    fn text(&self, value: &String) -> String {
        quoted(value)
    }
}

/// A name that can be part of a dotted path.
pub(crate) const NAME: Plain<String> = Plain {
    accepts: "a name of at most 32 lower-case letters, digits, `-` and `_`, a letter first",
    parse: |value| if let TomlValue::Text(text) = value { is_name(text).then(|| text.clone()) } else { None },
    text: |name| quoted(name),
    hint: nothing,
};

/// Returns the text of a quantity: a number needs no quotes.
fn quantity(value: &TomlValue) -> Option<String> {
    match value {
        TomlValue::Text(text) | TomlValue::Other(text) => Some(text.clone()),
        TomlValue::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns the probable meaning of a refused quantity.
fn quantity_hint(of: units::Quantity, value: &TomlValue) -> String {
    quantity(value).and_then(|text| of.hint(&text)).unwrap_or_default()
}

/// Reads a span of time up to 24 h in a flag of the command, written as in scenarios: `200 ms`, `1.5s`, `2 min`. A number without a
/// unit is seconds, as in flags of other commands.
pub fn parse_time(text: &str) -> Option<Span> {
    const LONGEST: Span = Span::from_secs(24 * 3_600);
    units::TIME.parse(text).map(Span::from_micros).filter(|span| *span <= LONGEST)
}

/// Reads a share from 0 to 1 as scenarios have it: `10 %`, `0.1`. A bare 1 is refused, for it might mean 1 %.
pub fn parse_share(text: &str) -> Option<f64> {
    let share = units::SHARE.parse(text).filter(|share| *share <= WHOLE_SHARE && text != "1")?;
    Some(share as f64 / WHOLE_SHARE as f64)
}

/// A span of time, exact to the microsecond.
pub(crate) const TIME: Plain<Span> = Plain {
    accepts: "a time up to 24 h in us, ms, s, min or h, such as \"200 ms\"",
    parse: |value| {
        let text = quantity(value)?;
        // A file without the unit may mean seconds or milliseconds; nothing at all is the same in both.
        let has_unit = !text.ends_with(|last: char| last.is_ascii_digit());
        parse_time(&text).filter(|span| has_unit || *span == Span::ZERO)
    },
    text: |span| quoted(&units::TIME.write(span.as_micros())),
    hint: |value| quantity_hint(units::TIME, value),
};

/// A bit rate, in bits per second.
pub(crate) const RATE: Plain<u64> = Plain {
    accepts: "a rate from 1 bit/s to 1000 Gbit/s, such as \"60 kbit/s\"",
    parse: |value| {
        let TomlValue::Text(text) = value else { return None };
        units::RATE.parse(text).filter(|rate| (1..=1_000_000_000_000).contains(rate))
    },
    text: |rate| quoted(&units::RATE.write(*rate)),
    hint: |value| quantity_hint(units::RATE, value),
};

/// A number of bytes, with a unit or without one: the name of the key has the unit.
pub(crate) const BYTES: Plain<u64> = Plain {
    accepts: "a number of bytes from 1 to 1000000000000, or a size such as \"1.41 MB\"",
    parse: |value| {
        let bytes = match value {
            TomlValue::Integer(bytes) => u64::try_from(*bytes).ok()?,
            TomlValue::Text(text) => units::SIZE.parse(text)?,
            _ => return None,
        };
        (1..=1_000_000_000_000).contains(&bytes).then_some(bytes)
    },
    text: u64::to_string,
    hint: |value| match unquoted(value, |inner| BYTES.parse(inner).is_some()) {
        hint if hint.is_empty() => quantity_hint(units::SIZE, value),
        hint => hint,
    },
};

/// Parts of a probability of 1, as a percentage counts them.
const WHOLE_SHARE: u64 = 1_000_000_000;

/// A probability in \[0, 1\], written as a percentage.
pub(crate) const PERCENTAGE: Plain<f64> = Plain {
    accepts: "a percentage from 0 % to 100 %, such as \"2 %\"",
    parse: |value| parse_share(&quantity(value)?),
    text: |share| {
        // Exact: a value that was read is within half a part of the whole number it came from.
        let parts = (share.clamp(0.0, 1.0) * WHOLE_SHARE as f64).round();
        #[allow(clippy::cast_sign_loss)]
        quoted(&units::SHARE.write(parts as u64))
    },
    hint: |value| quantity_hint(units::SHARE, value),
};

/// Two times, the shorter first.
pub(crate) const RANGE: Plain<Jitter> = Plain {
    accepts: "two times, the shorter first, such as [\"10 ms\", \"20 ms\"]",
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

/// A list of at most so many values of a kind, which the text names.
pub(crate) struct ListOf<S>(pub(crate) usize, pub(crate) S, pub(crate) &'static str);

impl<S: Scalar> Scalar for ListOf<S> {
    type Value = Vec<S::Value>;
    fn accepts(&self) -> String {
        format!("a list of at most {} {}", self.0, self.2)
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
        let wrong = list.iter().find(|item| self.1.parse(&item.value).is_none());
        wrong
            .map_or_else(String::new, |item| format!("; {} is none{}", item.show(), self.1.hint(&item.value)))
    }
    fn text(&self, value: &Self::Value) -> String {
        let texts: Vec<_> = value.iter().map(|value| self.1.text(value)).collect();
        format!("[{}]", texts.join(", "))
    }
}

/// One of several values, each by its word.
pub(crate) struct Choice<T>(pub(crate) fn() -> Vec<(&'static str, T)>);

impl<T: Copy + PartialEq> Scalar for Choice<T> {
    type Value = T;
    fn accepts(&self) -> String {
        listed(&Scalar::words(self))
    }
    fn parse(&self, value: &TomlValue) -> Option<T> {
        let TomlValue::Text(text) = value else { return None };
        (self.0)().into_iter().find(|(word, _)| word == text).map(|(_, value)| value)
    }
    fn text(&self, value: &T) -> String {
        let own = (self.0)().into_iter().find(|(_, other)| other == value);
        own.map_or_else(String::new, |(word, _)| quoted(word))
    }
    fn words(&self) -> Vec<&'static str> {
        (self.0)().into_iter().map(|(word, _)| word).collect()
    }
}

/// An enumeration by its words.
pub(crate) trait Words: Copy + PartialEq + 'static {
    const ALL: &'static [(&'static str, Self)];
}

/// Returns the kind of the words of `T`.
pub(crate) const fn one_of<T: Words>() -> Choice<T> {
    Choice(|| T::ALL.to_vec())
}
