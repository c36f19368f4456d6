//! Suggestions for unknown names ("did you mean …?").

use core::fmt::{self, Write};

/// The longest name that is compared, in characters.
const LONGEST: usize = 64;

/// Returns the name among `known` that `name` probably means; `None` if no known name is near enough.
///
/// A known name is near if at most a third of the letters of `name`, or one letter, are wrong, missing, needless or
/// swapped (the distance of Damerau and Levenshtein). It is also near if it begins with `name`, and `name` has three
/// letters or more. Case does not matter, and `_` equals `-`.
///
/// ```
/// assert_eq!(coapace_control::nearest("fasr", ["default", "fasor"]), Some("fasor"));
/// assert_eq!(coapace_control::nearest("linux", ["default", "linux-rto"]), Some("linux-rto"));
/// assert_eq!(coapace_control::nearest("zzz", ["default", "fasor"]), None);
/// ```
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let farthest = (name.chars().count() / 3).max(1);
    known
        .into_iter()
        .filter_map(|candidate| Some((distance(name, candidate)?, candidate)))
        .filter(|(distance, _)| *distance <= farthest)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Writes one line to `out`: that no `what` is called `name`, then a suggestion, then all known names.
///
/// # Errors
/// Fails if writing to `out` fails.
pub fn unknown<'a>(
    out: &mut impl Write,
    what: impl fmt::Display,
    name: impl fmt::Debug + AsRef<str>,
    known: impl Iterator<Item = &'a str> + Clone,
) -> fmt::Result {
    write!(out, "no {what} is called {name:?}")?;
    match nearest(name.as_ref(), known.clone()) {
        Some(meant) => write!(out, "; did you mean {meant}? There ")?,
        None => out.write_str(". There ")?,
    }
    let mut known = known.peekable();
    let Some(first) = known.next() else { return out.write_str("are none") };
    write!(out, "{} {first}", if known.peek().is_some() { "are" } else { "is" })?;
    while let Some(next) = known.next() {
        write!(out, "{} {next}", if known.peek().is_some() { "," } else { " and" })?;
    }
    Ok(())
}

/// Returns the number of edits from `candidate` to `name`; at most 1 if `name` has three letters or more and
/// `candidate` begins with it. Returns `None` if one of the two names is too long.
fn distance(name: &str, candidate: &str) -> Option<usize> {
    let (mut name_room, mut candidate_room) = (['\0'; LONGEST], ['\0'; LONGEST]);
    let (name, candidate) = (letters(name, &mut name_room)?, letters(candidate, &mut candidate_room)?);
    // A name that was cut short is near, however much is missing.
    if name.len() >= 3 && candidate.starts_with(name) {
        return Some(usize::from(candidate.len() > name.len()));
    }
    // Three rows of the table of distances between beginnings: the present one, the last, and the one before.
    let mut rows = [[0_u8; LONGEST + 1]; 3];
    for (column, cell) in rows[0].iter_mut().enumerate() {
        // No distance is above 64, so a byte holds it.
        *cell = column as u8;
    }
    for (row, &letter) in name.iter().enumerate() {
        rows.rotate_right(1);
        let [present, last, before] = &mut rows;
        present[0] = row as u8 + 1;
        for (column, &other) in candidate.iter().enumerate() {
            // A letter was replaced, is missing or is needless, or two are in the wrong order.
            let replaced = last[column] + u8::from(letter != other);
            let mut best = replaced.min(last[column + 1] + 1).min(present[column] + 1);
            // Two neighbours in the wrong order are one edit (Damerau).
            if row > 0 && column > 0 && letter == candidate[column - 1] && other == name[row - 1] {
                best = best.min(before[column - 1] + 1);
            }
            present[column + 1] = best;
        }
    }
    Some(usize::from(rows[0][candidate.len()]))
}

/// Writes the characters of `text` to `room` in lower case, and `_` as `-`, for comparisons. Returns `None` if `text`
/// has more than [`LONGEST`] characters.
fn letters<'a>(text: &str, room: &'a mut [char; LONGEST]) -> Option<&'a [char]> {
    let mut len = 0;
    for letter in text.chars() {
        *room.get_mut(len)? = if letter == '_' { '-' } else { letter.to_ascii_lowercase() };
        len += 1;
    }
    Some(&room[..len])
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::string::String;

    use super::*;

    #[test]
    fn a_missing_extra_wrong_or_swapped_letter_is_one_edit() {
        for name in ["coca", "cocooa", "cocoe", "ccooa", "COCOA"] {
            assert_eq!(nearest(name, ["default", "cocoa", "fasor"]), Some("cocoa"), "{name}");
        }
        assert_eq!(distance("kitten", "sitting"), Some(3));
        assert_eq!(distance("", "abc"), Some(3));
        assert_eq!(distance("max_rto", "max-rto"), Some(0));
    }

    #[test]
    fn the_suggestion_is_the_nearest_of_several_names() {
        assert_eq!(nearest("cocoa1", ["cocoa-plus", "cocoa", "coca"]), Some("cocoa"));
        assert_eq!(nearest("fullbackof", ["fullbackoff1", "fullbackoff2"]), Some("fullbackoff1"));
    }

    #[test]
    fn a_very_long_name_gets_no_suggestion() {
        assert_eq!(nearest(&"a".repeat(65), ["a"]), None);
        assert_eq!(nearest(&"a".repeat(64), ["a"]), None);
        assert_eq!(nearest("a", [String::from("a").repeat(65).as_str()]), None);
    }

    #[test]
    fn names_are_listed_with_commas_and_a_final_and() {
        let error = |known: &[&str]| {
            let mut message = String::new();
            unknown(&mut message, "colour", "gren", known.iter().copied()).unwrap();
            message
        };
        assert_eq!(error(&[]), "no colour is called \"gren\". There are none");
        assert_eq!(error(&["green"]), "no colour is called \"gren\"; did you mean green? There is green");
        assert!(error(&["red", "blue"]).ends_with(". There are red and blue"));
        assert!(error(&["red", "blue", "pink"]).ends_with(". There are red, blue and pink"));
    }
}
