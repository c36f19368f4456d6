//! Numbers formatted for people and for files.

/// Returns `x` with at least `digits` significant digits but at most nine decimals, never in scientific notation.
pub fn significant(x: f64, digits: i32) -> String {
    if x == 0.0 || !x.is_finite() {
        return if x == 0.0 { "0".into() } else { "–".into() };
    }
    let magnitude = x.abs().log10().floor() as i32;
    // Negative if the number has more digits before the point than asked for: then it has no decimals.
    let decimals = usize::try_from(digits - 1 - magnitude).unwrap_or(0).min(9);
    format!("{x:.decimals$}")
}

/// Returns the [`significant`] digits, or a dash for an unknown number.
pub fn significant_or_dash(x: Option<f64>, digits: i32) -> String {
    x.map_or_else(|| "–".into(), |x| significant(x, digits))
}

/// Returns `half`, the half-width of a confidence interval, with as many decimals as `mean` has if it is written with
/// this number of [`significant`] digits. A half-width above zero that would be printed as zero becomes `<` and one
/// unit of the last decimal, such as `<0.01`.
pub fn half_interval(half: f64, mean: f64, digits: i32) -> String {
    let decimals = significant(mean, digits).split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let text = format!("{half:.decimals$}");
    // Zero would say that the seeds agree exactly.
    if half > 0.0 && text.parse() == Ok(0.0) {
        return format!("<{:.decimals$}", 10_f64.powf(-(decimals as f64)));
    }
    text
}

/// Returns a mean count as text, with two decimals below 10, one below 100, and none from 100 on.
pub fn count(x: f64) -> String {
    match x {
        0.0 => "0".into(),
        _ if x < 10.0 => format!("{x:.2}"),
        _ if x < 100.0 => format!("{x:.1}"),
        _ => format!("{x:.0}"),
    }
}

/// Returns a fraction as a signed percentage with typographic minus and space.
pub fn percent(fraction: f64) -> String {
    // Rounded first, so that a value printed as zero has no sign.
    let tenths = (fraction * 1000.0).round();
    if tenths == 0.0 {
        "0.0\u{a0}%".into()
    } else {
        format!("{:+.1}\u{a0}%", tenths / 10.0).replace('-', "−")
    }
}

/// Returns a number for a CSV field: at most six decimals, no trailing zeros; empty if it is unknown.
pub(crate) fn field(x: Option<f64>) -> String {
    let Some(x) = x.filter(|x| x.is_finite()) else { return String::new() };
    let text = format!("{x:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    // Some readers of CSV take -0 for another number than 0.
    if text == "-0" { "0".into() } else { text.into() }
}

/// Reads the number and the unit of a value such as `1.5s` or `3`; `None` if it does not begin with a number.
pub(crate) fn measure(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit))
}

/// Returns a whole number with narrow no-break spaces between groups of three digits, from five digits on.
pub(crate) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    if digits.len() < 5 {
        return digits;
    }
    // The first group has one to three digits.
    let (first, rest) = digits.split_at((digits.len() - 1) % 3 + 1);
    let groups = rest.as_bytes().chunks(3).map(String::from_utf8_lossy);
    groups.fold(first.to_owned(), |text, group| text + "\u{202f}" + &group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_with_digits_according_to_their_size() {
        assert_eq!(significant(527.513, 4), "527.5");
        assert_eq!(significant(2425.32, 4), "2425");
        assert_eq!(significant(33.003, 4), "33.00");
        assert_eq!(significant(0.012_34, 3), "0.0123");
        assert_eq!(significant(0.0, 4), "0");
        assert_eq!(significant_or_dash(None, 4), "–");
    }

    #[test]
    fn the_half_width_of_an_interval_has_as_many_decimals_as_its_mean() {
        assert_eq!(half_interval(1.26, 67.04, 3), "1.3");
        assert_eq!(half_interval(12.7, 2425.32, 4), "13");
        assert_eq!(half_interval(0.000_6, 1.0, 4), "0.001");
        assert_eq!(half_interval(0.0, 1.0, 3), "0.00");
        assert_eq!(half_interval(0.0, 0.0, 3), "0");
    }

    #[test]
    fn a_small_half_width_of_an_interval_is_not_printed_as_zero() {
        assert_eq!(half_interval(4e-9, 1.0, 4), "<0.001");
        assert_eq!(half_interval(0.000_21, 3.79, 3), "<0.01");
        assert_eq!(half_interval(0.04, 124.7, 4), "<0.1");
        assert_eq!(half_interval(0.5, 2425.0, 4), "<1", "a half rounds to the even number, 0");
    }

    #[test]
    fn numbers_in_csv_have_no_trailing_zeros() {
        assert_eq!(field(Some(33.003)), "33.003");
        assert_eq!(field(Some(62.0)), "62");
        assert_eq!(field(Some(-1e-9)), "0");
        assert_eq!(field(Some(f64::NAN)), "");
        assert_eq!(field(None), "");
    }

    #[test]
    fn percentages_have_a_sign_unless_they_are_zero() {
        assert_eq!(percent(0.071), "+7.1\u{a0}%");
        assert_eq!(percent(-0.0564), "−5.6\u{a0}%");
        assert_eq!(percent(-0.0001), "0.0\u{a0}%");
    }

    #[test]
    fn large_numbers_are_printed_in_groups_of_three_digits() {
        assert_eq!(thousands(2500), "2500");
        assert_eq!(thousands(1_410_000), "1\u{202f}410\u{202f}000");
    }
}
