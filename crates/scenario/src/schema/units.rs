//! Numbers with units: read strictly and exactly, written back the same way.

use serde_json::{Value, json};

/// A quantity, such as time. Each of its units has a size, which is the number of smallest units in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quantity {
    units: &'static [(&'static str, u64)],
    /// Other spellings of units that people use, in lower case, each with the unit that it means.
    spellings: &'static [(&'static str, &'static str)],
    /// The units that an error suggests for a number without a unit.
    likely: &'static [&'static str],
    /// The unit in which 0 is written.
    zero: &'static str,
    /// The size of the unit that a number without a unit has; `None` if such a number is refused.
    bare: Option<u64>,
}

/// Times, in microseconds. A number without a unit is seconds.
pub(crate) const TIME: Quantity = Quantity {
    units: &[("us", 1), ("ms", 1_000), ("s", 1_000_000), ("min", 60_000_000), ("h", 3_600_000_000)],
    spellings: &[
        ("usec", "us"),
        ("µs", "us"),
        ("μs", "us"),
        ("msec", "ms"),
        ("msecs", "ms"),
        ("millis", "ms"),
        ("milliseconds", "ms"),
        ("sec", "s"),
        ("secs", "s"),
        ("second", "s"),
        ("seconds", "s"),
        ("minute", "min"),
        ("minutes", "min"),
        ("mins", "min"),
        ("hour", "h"),
        ("hours", "h"),
        ("hr", "h"),
        ("hrs", "h"),
    ],
    likely: &["ms", "s"],
    zero: "s",
    bare: Some(1_000_000),
};

/// Bit rates, in bits per second.
pub(crate) const RATE: Quantity = Quantity {
    units: &[("bit/s", 1), ("kbit/s", 1_000), ("Mbit/s", 1_000_000), ("Gbit/s", 1_000_000_000)],
    spellings: &[
        ("bps", "bit/s"),
        ("bits/s", "bit/s"),
        ("kbps", "kbit/s"),
        ("kbit", "kbit/s"),
        ("kb/s", "kbit/s"),
        ("mbps", "Mbit/s"),
        ("mbit", "Mbit/s"),
        ("mb/s", "Mbit/s"),
        ("gbps", "Gbit/s"),
        ("gbit", "Gbit/s"),
        ("gb/s", "Gbit/s"),
    ],
    likely: &["bit/s", "kbit/s"],
    zero: "bit/s",
    bare: None,
};

/// Sizes, in bytes. Decimal prefixes are for powers of ten, binary ones (IEC 80000-13) for powers of two.
pub(crate) const SIZE: Quantity = Quantity {
    units: &[("B", 1), ("kB", 1_000), ("KiB", 1 << 10), ("MB", 1_000_000), ("MiB", 1 << 20)],
    spellings: &[("byte", "B"), ("bytes", "B"), ("k", "kB"), ("m", "MB"), ("ki", "KiB"), ("mi", "MiB")],
    likely: &["B", "kB"],
    zero: "B",
    bare: None,
};

/// Shares, in parts per thousand million. A number without a unit is a fraction of 1.
pub(crate) const SHARE: Quantity = Quantity {
    units: &[("%", SHARE_OF_PERCENT)],
    spellings: &[("percent", "%"), ("per cent", "%"), ("pct", "%")],
    likely: &["%"],
    zero: "%",
    bare: Some(100 * SHARE_OF_PERCENT),
};

const SHARE_OF_PERCENT: u64 = 10_000_000;

impl Quantity {
    /// Returns the JSON Schema of a text with a number and a unit. It does not bound the number.
    pub(crate) fn schema(self) -> Value {
        let units: Vec<_> = self.units.iter().map(|(name, _)| *name).collect();
        json!({ "type": "string", "pattern": format!(r"^[0-9]+(\.[0-9]{{1,9}})? ?({})$", units.join("|")) })
    }

    /// Reads a decimal number, at most one space, and a unit; or a number alone, if the quantity allows it. Returns
    /// `None` for anything else, and if the value is not a whole number of the smallest unit or exceeds 64 bits.
    pub(crate) fn parse(self, text: &str) -> Option<u64> {
        // A minus sign ends the number at once, so negative values are refused.
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let size = match unit {
            "" => self.bare?,
            unit => {
                let unit = unit.strip_prefix(' ').unwrap_or(unit);
                self.units.iter().find(|(name, _)| *name == unit)?.1
            }
        };

        let (whole, places) = number.split_once('.').map_or((number, None), |(w, p)| (w, Some(p)));
        // Nine places at most keep the product below within 128 bits.
        if places.is_some_and(|places| places.is_empty() || places.contains('.') || places.len() > 9) {
            return None;
        }
        let places = places.unwrap_or_default();
        let scale = 10u128.pow(places.len() as u32);
        let whole = u128::from(whole.parse::<u64>().ok()?);
        let fraction = if places.is_empty() { 0 } else { u128::from(places.parse::<u64>().ok()?) };
        let value = (whole * scale + fraction) * u128::from(size);
        // A value that is not whole in the smallest unit is refused rather than rounded, so that texts and values match.
        if value.is_multiple_of(scale) { u64::try_from(value / scale).ok() } else { None }
    }

    /// Returns the probable meaning of a refused text, as a question: another spelling of a unit, or a missing one.
    pub(crate) fn hint(self, text: &str) -> Option<String> {
        let text = text.trim();
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        if !unit.is_empty() && self.parse(text).is_some() {
            // The text is valid, so its number is out of range.
            return None;
        }
        let unit = unit.trim().to_lowercase();
        let units: Vec<&str> = if unit.is_empty() {
            self.likely.to_vec()
        } else {
            let spelt = self.spellings.iter().find(|(spelling, _)| *spelling == unit).map(|(_, unit)| *unit);
            // A unit of this quantity in other letters, such as `KBIT/S`.
            let own = || self.units.iter().map(|(name, _)| *name).find(|name| name.to_lowercase() == unit);
            spelt.or_else(own).into_iter().collect()
        };
        let meant = units.iter().map(|unit| format!("{number} {unit}"));
        // A suggestion that would be refused, too, is left out.
        let meant: Vec<_> =
            meant.filter(|meant| self.parse(meant).is_some()).map(|it| format!("\"{it}\"")).collect();
        (!meant.is_empty()).then(|| format!("; did you mean {}?", meant.join(" or ")))
    }

    /// Writes `value` in the largest unit that makes it a whole number; a share in per cent, with decimals.
    pub(crate) fn write(self, value: u64) -> String {
        // A share: its one unit has 10⁷ parts, so seven decimals show every part.
        if self.units.len() == 1 {
            let (unit, size) = self.units[0];
            let decimals = format!("{:07}", value % size);
            let number = format!("{}.{decimals}", value / size);
            return format!("{} {unit}", number.trim_end_matches('0').trim_end_matches('.'));
        }
        if value == 0 {
            return format!("0 {}", self.zero);
        }
        // Units are listed from the smallest to the largest. The first has the size 1, so one always fits.
        let fits = |(_, size): &&(&str, u64)| value.is_multiple_of(*size);
        let (unit, size) = self.units.iter().rev().find(fits).unwrap_or(&self.units[0]);
        format!("{} {unit}", value / size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_parsed_exactly() {
        assert_eq!(TIME.parse("200 ms"), Some(200_000));
        assert_eq!(TIME.parse("1.5s"), Some(1_500_000));
        assert_eq!(TIME.parse("0.000001 s"), Some(1));
        assert_eq!(TIME.parse("2 min"), Some(120_000_000));
        assert_eq!((TIME.parse("200"), TIME.parse("0.5")), (Some(200_000_000), Some(500_000)));
        assert_eq!((SHARE.parse("0.1"), SHARE.parse("10%")), (Some(100_000_000), Some(100_000_000)));
        assert_eq!(RATE.parse("60 kbit/s"), Some(60_000));
        assert_eq!(SIZE.parse("1.41 MB"), Some(1_410_000));
        assert_eq!(SIZE.parse("14 KiB"), Some(14_336));
        assert_eq!(SHARE.parse("2 %"), Some(20_000_000));
        assert_eq!(SHARE.parse("0.0000001 %"), Some(1));
    }

    #[test]
    fn text_that_is_not_a_quantity_is_refused() {
        for text in [
            "",
            "ms",
            " 200 ms",
            "200  ms",
            "200 ms ",
            "200 MS",
            "-1 ms",
            "+1 ms",
            "1e3 ms",
            ".5 s",
            "5. s",
            "1.2.3 s",
            "1_000 ms",
            "0.5 us",
            "0.0000000001 s",
            "18446744073709551615 h",
            "99999999999999999999 us",
            "１ s",
        ] {
            assert_eq!(TIME.parse(text), None, "{text:?}");
        }
        assert_eq!((RATE.parse("60 kbps"), RATE.parse("60"), SIZE.parse("60")), (None, None, None));
        assert_eq!(SHARE.parse("0.00000001 %"), None, "finer than a share is counted");
    }

    #[test]
    fn the_error_of_a_missing_or_misspelt_unit_suggests_the_unit() {
        for (quantity, text, meant) in [
            (TIME, "300", "; did you mean \"300 ms\" or \"300 s\"?"),
            (TIME, "300 msec", "; did you mean \"300 ms\"?"),
            (TIME, "5 Minutes", "; did you mean \"5 min\"?"),
            (TIME, "2  S", "; did you mean \"2 s\"?"),
            (TIME, "0.5µs", ""),
            (TIME, "1e3", ""),
            (RATE, "62.5 kbps", "; did you mean \"62.5 kbit/s\"?"),
            (RATE, "1MBit/s", "; did you mean \"1 Mbit/s\"?"),
            (SIZE, "14 kib", "; did you mean \"14 KiB\"?"),
            (SHARE, "5 percent", "; did you mean \"5 %\"?"),
            (SHARE, "5", "; did you mean \"5 %\"?"),
            (SHARE, "-5 %", ""),
        ] {
            assert_eq!(quantity.hint(text).unwrap_or_default(), meant, "{text}");
        }
    }

    #[test]
    fn a_written_quantity_parses_back_unchanged() {
        for quantity in [TIME, RATE, SIZE, SHARE] {
            for value in [0, 1, 7, 999, 1_000, 1_024, 60_000, 62_500, 10_000_000, 123_456_789, u64::MAX / 3] {
                assert_eq!(quantity.parse(&quantity.write(value)), Some(value), "{}", quantity.write(value));
            }
        }
        assert_eq!(TIME.write(200_000), "200 ms");
        assert_eq!(TIME.write(60_000_000), "1 min");
        assert_eq!(SHARE.write(25_000_000), "2.5 %");
    }
}
