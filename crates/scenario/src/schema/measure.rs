//! Measured quantities: decimal numbers with one unit, which may be negative.

use serde_json::{Value, json};

use super::document::{TomlValue, quoted};
use super::json::any_of;
use super::scalar::Scalar;

/// The kind of a number in this unit, between two bounds, both included. If the unit is empty, the number has none.
pub(crate) struct Measure(pub(crate) &'static str, pub(crate) f64, pub(crate) f64);

/// The maximum number of decimals of a number. An `f64` reproduces six decimals exactly in the text that is hashed.
const DECIMALS: usize = 6;

impl Scalar for Measure {
    type Value = f64;

    fn accepts(&self) -> String {
        let Self(unit, least, most) = self;
        // An example within the bounds, as near to 10 as they allow.
        let example = self.text(&most.min(least.max(10.0)));
        match *unit {
            "" => format!("a number from {least} to {most}, with decimals as text, such as \"2.5\""),
            unit => format!("{least} to {most} {unit}, such as {example}"),
        }
    }

    fn schema(&self) -> Value {
        let Self(unit, least, most) = self;
        // Anchored, because a pattern of JSON Schema matches anywhere in a text.
        let number = format!(r"^-?[0-9]+(\.[0-9]{{1,{DECIMALS}}})?");
        match *unit {
            "" => any_of([
                json!({ "type": "number", "minimum": least, "maximum": most }),
                json!({ "type": "string", "pattern": number + "$" }),
            ]),
            unit => json!({ "type": "string", "pattern": format!("{number} ?{unit}$") }),
        }
    }

    fn parse(&self, value: &TomlValue) -> Option<f64> {
        let Self(unit, least, most) = self;
        let number = match value {
            TomlValue::Integer(number) if unit.is_empty() => number.to_string(),
            TomlValue::Text(text) => {
                let number = text.strip_suffix(unit)?;
                number.strip_suffix(' ').unwrap_or(number).to_owned()
            }
            TomlValue::Other(text) if unit.is_empty() => text.clone(),
            _ => return None,
        };
        // `f64` would also read exponents, `+1`, `inf` and `.5`. The JSON Schema refuses them in texts, too.
        let digits = number.strip_prefix('-').unwrap_or(&number);
        let (whole, decimals) = digits.split_once('.').unwrap_or((digits, "0"));
        let is_plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_plain(whole) || !is_plain(decimals) || decimals.len() > DECIMALS {
            return None;
        }
        number.parse().ok().filter(|number| (*least..=*most).contains(number))
    }

    fn text(&self, value: &f64) -> String {
        // The shortest decimals that read back as the same number.
        // -0 equals 0, and equal values must have equal texts, or hashes would differ.
        let number = if *value == 0.0 { 0.0 } else { *value };
        quoted(format!("{number} {}", self.0).trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(measure: &Measure, text: &str) -> Option<f64> {
        measure.parse(&TomlValue::Text(text.to_owned()))
    }

    #[test]
    fn numbers_are_read_with_their_unit_and_written_back() {
        let power = Measure("dBm", -150.0, 30.0);
        for (text, value) in [("-95 dBm", -95.0), ("0dBm", 0.0), ("-0 dBm", 0.0), ("2.5 dBm", 2.5)] {
            let read_value = read(&power, text).unwrap();
            assert!((read_value - value).abs() < 1e-12, "{text}");
            let written = power.text(&read_value);
            assert_eq!(read(&power, written.trim_matches('"')), Some(value), "{written}");
        }
        assert_eq!(power.text(&-0.0), "\"0 dBm\"");
        assert_eq!(Measure("", 0.0, 10.0).parse(&TomlValue::Integer(3)), Some(3.0));
        assert_eq!(read(&Measure("", 0.0, 10.0), "2.7"), Some(2.7));
    }

    #[test]
    fn a_value_without_its_unit_is_refused() {
        let metres = Measure("m", 0.0, 1_000.0);
        for text in [
            "10",
            "10 mm",
            "m",
            "10  m",
            "1e3 m",
            "-1 m",
            "1001 m",
            "1. m",
            ".5 m",
            "inf m",
            "1.0000001 m",
            "--1 m",
        ] {
            assert_eq!(read(&metres, text), None, "{text}");
        }
        assert_eq!(metres.parse(&TomlValue::Integer(10)), None);
    }
}
