//! Text for people: text from the network made safe for a terminal, and lines on standard error.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _, stderr};

use crate::arguments::Arguments;

/// Escapes the characters that control a terminal or change the direction of text, like `\u001b`, which is also how JSON writes
/// them. Line breaks and tabs stay.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    // Most texts need no copy.
    if !text.chars().any(is_obeyed) {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        // A carriage return overwrites the line, unless a line feed follows.
        if is_obeyed(c) && !(c == '\r' && rest.peek() == Some(&'\n')) {
            let _ = write!(plain, "\\u{:04x}", u32::from(c));
        } else {
            plain.push(c);
        }
    }
    plain.into()
}

/// Writes a line to standard error, and ignores errors.
pub(crate) fn tell(text: &str) {
    let text = if stderr().is_terminal() { shown(text) } else { text.into() };
    let _ = writeln!(stderr(), "{text}");
}

fn is_obeyed(c: char) -> bool {
    // Marks, embeddings, overrides and isolates of Unicode's bidirectional algorithm can make a text look like another one.
    let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || c.is_control() && !matches!(c, '\n' | '\t')
}

/// Writes an error message as one line to standard error. If that fails, only the exit code reports the error.
pub(crate) fn complain(message: &str) {
    tell(&format!("coapace: {message}"));
}

/// Returns a number with its noun: "1 run", "2 runs".
pub(crate) fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Prints a remark to standard error, unless `--quiet` is given. A remark is not a result.
pub(crate) fn remark(arguments: &Arguments, text: &str) {
    if !arguments.quiet {
        tell(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_other_characters_stay() {
        for (text, plain) in [
            ("a\tb\r\nc\n", "a\tb\r\nc\n"),
            ("täglich 5 °C \u{1f600}", "täglich 5 °C \u{1f600}"),
            ("\u{1b}]0;title\u{7}", "\\u001b]0;title\\u0007"),
            ("\u{9b}2J\u{7f}\0", "\\u009b2J\\u007f\\u0000"),
            ("ok\rno\r", "ok\\u000dno\\u000d"),
            ("\u{202e}txt", "\\u202etxt"),
        ] {
            assert_eq!(shown(text), plain);
        }
    }
}
