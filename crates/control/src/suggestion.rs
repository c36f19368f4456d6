//! Suggestions for names that are not known ("did you mean …?").

use core::fmt::{self, Write};

/// The longest name that is compared, in letters.
const LONGEST: usize = 64;

/// Returns the name among `known` that was probably meant by `name`, if one is near enough.
///
/// A name is near if at most a third of the letters of `name` are wrong, missing, needless or in the wrong order (the
/// distance of Damerau and Levenshtein). It is near, too, if `name` has three letters or more and is its beginning. Case
/// does not count, and `_` equals `-`.
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

/// Writes one line: that no `what` has this `name`, the name that was probably meant, and all known names.
///
/// # Errors
/// Fails if `out` does.
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

/// Returns the number of edits from `candidate` to `name`, or 1 if `name` is the beginning of `candidate`. Returns `None`
/// if one of them is too long.
fn distance(name: &str, candidate: &str) -> Option<usize> {
    let (mut name_room, mut candidate_room) = (['\0'; LONGEST], ['\0'; LONGEST]);
    let (name, candidate) = (letters(name, &mut name_room)?, letters(candidate, &mut candidate_room)?);
    if name.len() >= 3 && candidate.starts_with(name) {
        return Some(usize::from(candidate.len() > name.len()));
    }
    // Three rows of the table of distances between beginnings: the present one, the last, and the one before.
    let mut rows = [[0_u8; LONGEST + 1]; 3];
    for (column, cell) in rows[0].iter_mut().enumerate() {
        *cell = column as u8;
    }
    for (row, &letter) in name.iter().enumerate() {
        rows.rotate_right(1);
        let [present, last, before] = &mut rows;
        present[0] = row as u8 + 1;
        for (column, &other) in candidate.iter().enumerate() {
            let replaced = last[column] + u8::from(letter != other);
            let mut best = replaced.min(last[column + 1] + 1).min(present[column] + 1);
            if row > 0 && column > 0 && letter == candidate[column - 1] && other == name[row - 1] {
                best = best.min(before[column - 1] + 1);
            }
            present[column + 1] = best;
        }
    }
    Some(usize::from(rows[0][candidate.len()]))
}

/// Writes the letters of `text` to `room`, in the form in which they are compared. Returns `None` if they are too many.
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
    fn a_letter_too_few_too_many_wrong_or_out_of_order_is_one_edit() {
        for name in ["coca", "cocooa", "cocoe", "ccooa", "COCOA"] {
            assert_eq!(nearest(name, ["default", "cocoa", "fasor"]), Some("cocoa"), "{name}");
        }
        assert_eq!(distance("kitten", "sitting"), Some(3));
        assert_eq!(distance("", "abc"), Some(3));
        assert_eq!(distance("max_rto", "max-rto"), Some(0));
    }

    #[test]
    fn the_nearest_of_several_is_meant() {
        assert_eq!(nearest("cocoa1", ["cocoa-plus", "cocoa", "coca"]), Some("cocoa"));
        assert_eq!(nearest("fullbackof", ["fullbackoff1", "fullbackoff2"]), Some("fullbackoff1"));
    }

    #[test]
    fn what_is_too_long_is_near_nothing() {
        assert_eq!(nearest(&"a".repeat(65), ["a"]), None);
        assert_eq!(nearest(&"a".repeat(64), ["a"]), None);
        assert_eq!(nearest("a", [String::from("a").repeat(65).as_str()]), None);
    }

    #[test]
    fn what_there_is_is_listed_as_people_do() {
        let told = |known: &[&str]| {
            let mut told = String::new();
            unknown(&mut told, "colour", "gren", known.iter().copied()).unwrap();
            told
        };
        assert_eq!(told(&[]), "no colour is called \"gren\". There are none");
        assert_eq!(told(&["green"]), "no colour is called \"gren\"; did you mean green? There is green");
        assert!(told(&["red", "blue"]).ends_with(". There are red and blue"));
        assert!(told(&["red", "blue", "pink"]).ends_with(". There are red, blue and pink"));
    }
}
