//! The values of parameters in a search.

use std::fmt::Write;

use crate::number::measure;

/// The number of steps into which a range of values is divided.
const STEPS: u32 = 8;

/// A parameter that varies, and the values to try. The values of a range ascend; listed values keep their sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct Varied {
    /// The name of the parameter.
    pub parameter: String,
    /// The values of the parameter, as text.
    pub values: Vec<String>,
}

/// A mechanism with parameters to vary.
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    /// The mechanism with its fixed parameters, as named on the command line.
    pub mechanism: String,
    /// The parameters that vary.
    pub varied: Vec<Varied>,
}

/// A point of a [`Space`]: for each parameter the number of its value.
pub type SpacePoint = Vec<usize>;

impl Varied {
    /// Parses `PARAMETER=VALUE|VALUE|…` or `PARAMETER=LOW..HIGH`. A range is divided into eight steps of equal ratio,
    /// which give nine values in the unit of the low end. Both ends have the same unit or none, or both are times.
    ///
    /// # Errors
    /// Returns the error in one line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is neither PARAMETER=VALUE|VALUE|... nor PARAMETER=LOW..HIGH");
        let (parameter, values) = text.split_once('=').ok_or_else(wrong)?;
        let values: Vec<String> = match values.split_once("..") {
            Some((low, high)) => {
                let ((low, unit), (high, other)) =
                    (measure(low).ok_or_else(wrong)?, measure(high).ok_or_else(wrong)?);
                // 0 for units that do not convert, which the check below refuses.
                let high = in_unit(high, other, unit).unwrap_or(0.0);
                // Equal ratios need ends above 0.
                if low <= 0.0 || high <= low {
                    return Err(format!(
                        "{text:?}: a range must be LOW..HIGH, both times or in one unit, with 0 < LOW < HIGH"
                    ));
                }
                // Equal ratios, because twice as long matters as much at 1 s as at 10 s.
                let step = |step| low * (high / low).powf(f64::from(step) / f64::from(STEPS));
                (0..=STEPS).map(|place| format!("{}{unit}", rounded(step(place)))).collect()
            }
            // Not at commas, which separate the parameters of a mechanism.
            None => values.split('|').map(|value| value.trim().to_owned()).collect(),
        };
        if parameter.is_empty() || values.iter().any(String::is_empty) {
            return Err(wrong());
        }
        Ok(Self { parameter: parameter.trim().to_owned(), values })
    }
}

impl Space {
    /// Returns the mechanism at this point, as named on the command line.
    pub fn label(&self, point: &SpacePoint) -> String {
        let mut label = self.mechanism.clone();
        for (varied, &place) in self.varied.iter().zip(point) {
            // The mechanism may have fixed parameters already.
            let separator = if label.contains(':') { ',' } else { ':' };
            let _ = write!(label, "{separator}{}={}", varied.parameter, varied.values[place]);
        }
        label
    }
}

/// Returns a number converted to another unit; `None` if the units have different dimensions.
fn in_unit(number: f64, unit: &str, other: &str) -> Option<f64> {
    const TIMES: [(&str, f64); 3] = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    if unit == other {
        return Some(number);
    }
    let seconds = |unit: &str| TIMES.iter().find(|(name, _)| *name == unit).map(|(_, seconds)| seconds);
    Some(number * seconds(unit)? / seconds(other)?)
}

/// Returns a number with three significant digits, in the syntax of mechanisms.
fn rounded(value: f64) -> String {
    // Three significant digits, and at most four decimals for very small values.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 4")]
    let places = (2.0 - value.log10().floor()).clamp(0.0, 4.0) as usize;
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_searched_parameter_has_listed_values_or_a_range() {
        let listed = Varied::parse("variant=slow|normal").unwrap();
        assert_eq!(listed.values, ["slow", "normal"]);
        let range = Varied::parse("initial_rto=1s..16s").unwrap();
        assert_eq!(range.values[..3], ["1s", "1.41s", "2s"]);
        assert_eq!(range.values.len(), 9);
        assert_eq!(range.values[8], "16s");
        let range = Varied::parse("min_rto=10ms..1s").unwrap();
        assert_eq!([&range.values[0], &range.values[1], &range.values[8]], ["10ms", "17.8ms", "1000ms"]);
    }

    #[test]
    fn a_range_of_a_searched_parameter_without_unit_or_value_is_refused() {
        assert!(Varied::parse("k").unwrap_err().starts_with("\"k\" is neither"));
        assert!(Varied::parse("k=").is_err());
        assert!(Varied::parse("k=1s..3ms").unwrap_err().contains("one unit"));
        assert!(Varied::parse("k=1..3s").unwrap_err().contains("one unit"));
        assert!(Varied::parse("k=3..1").is_err());
    }

    #[test]
    fn a_label_of_a_searched_mechanism_parses_on_the_command_line() {
        let varied = vec![Varied::parse("k=2|4").unwrap(), Varied::parse("dither=1.1|1.5").unwrap()];
        let space = Space { mechanism: "linux-rto".into(), varied };
        assert_eq!(space.label(&vec![1, 0]), "linux-rto:k=4,dither=1.1");
    }
}
