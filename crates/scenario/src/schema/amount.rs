//! Amounts: numbers with a unit.

use std::fmt;
use std::str::FromStr;

use super::scalar::Words;
use super::units::{Quantity, RATE, SHARE, SIZE, TIME};
use super::words::words;

/// A time, rate, size or share with its unit, as scenarios have it: `200 ms`, `60 kbit/s`, `14 KiB`, `5 %`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount {
    /// The quantity that is measured, such as a time.
    pub dimension: Dimension,
    /// The number of smallest units: microseconds, bits per second, bytes, parts per thousand million.
    pub value: u64,
}

words! {
    /// The quantity that an amount measures. Each has units of its own.
    pub enum Dimension {
        /// A span of time.
        Time = "time",
        /// A bit rate.
        Rate = "rate",
        /// A number of bytes.
        Size = "size",
        /// A part of a whole, in percent.
        Share = "share",
    }
}

impl Dimension {
    fn quantity(self) -> Quantity {
        match self {
            Self::Time => TIME,
            Self::Rate => RATE,
            Self::Size => SIZE,
            Self::Share => SHARE,
        }
    }
}

impl Amount {
    /// Reads a number with its unit; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        // Without a unit it could measure anything.
        text.ends_with(|last: char| !last.is_ascii_digit() && last != '.').then_some(())?;
        let read = |dimension: Dimension| Some(Self { dimension, value: dimension.quantity().parse(text)? });
        // No two quantities share a unit, so the first that reads the text is the only one.
        Dimension::ALL.iter().find_map(|(_, dimension)| read(*dimension))
    }

    /// Returns the number of seconds, bits per second or bytes, or the share from 0 to 1.
    pub fn number(self) -> f64 {
        let value = self.value as f64;
        match self.dimension {
            // Values below 2^53 are exact as floating-point numbers: 285 years in microseconds.
            Dimension::Time => value / 1e6,
            Dimension::Rate | Dimension::Size => value,
            Dimension::Share => value / 1e9,
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.dimension.quantity().write(self.value))
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Dimension {
    type Err = ();
    fn from_str(word: &str) -> Result<Self, ()> {
        Self::ALL.iter().find(|(known, _)| *known == word).map(|(_, dimension)| *dimension).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_a_number_with_a_unit_and_is_written_as_read() {
        for (text, dimension, number) in [
            ("200 ms", Dimension::Time, 0.2),
            ("60 kbit/s", Dimension::Rate, 60_000.0),
            ("14 KiB", Dimension::Size, 14_336.0),
            ("0.5 %", Dimension::Share, 0.005),
        ] {
            let amount = Amount::parse(text).unwrap();
            assert_eq!((amount.dimension, amount.number()), (dimension, number), "{text}");
            assert_eq!(amount.to_string(), text);
            assert_eq!(dimension.to_string().parse(), Ok(dimension));
        }
        for text in ["", "5", "0.5", "none", "5 apples", "%", "5 % 5 %", "[\"0 s\", \"1 s\"]"] {
            assert_eq!(Amount::parse(text), None, "{text}");
        }
    }
}
