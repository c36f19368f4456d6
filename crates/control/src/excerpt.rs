//! The beginning of a text, stored without allocation.

use core::fmt::{self, Write};

/// The longest excerpt in bytes.
const LONGEST: usize = 40;

/// The beginning of a text that an error message quotes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Excerpt {
    bytes: [u8; LONGEST],
    len: u8,
    is_cut: bool,
}

impl Excerpt {
    /// Returns the first 40 bytes of `text` as it is displayed, or a few less so that no character is cut.
    pub(crate) fn of(text: impl fmt::Display) -> Self {
        let mut excerpt = Self { bytes: [0; LONGEST], len: 0, is_cut: false };
        // The only error is a text that is too long, which `is_cut` records.
        let _ = write!(excerpt, "{text}");
        excerpt
    }
}

/// Returns the characters of the excerpt.
impl AsRef<str> for Excerpt {
    fn as_ref(&self) -> &str {
        // Only whole characters were written, so the bytes are always a text.
        self.bytes.get(..self.len.into()).and_then(|bytes| str::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

impl Write for Excerpt {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Whole characters are copied, so the bytes stay UTF-8 where the text is cut.
        for letter in text.chars() {
            let len = usize::from(self.len);
            // After a character that was left out, none that would still fit is added.
            let Some(room) = self.bytes.get_mut(len..len + letter.len_utf8()).filter(|_| !self.is_cut) else {
                self.is_cut = true;
                return Err(fmt::Error);
            };
            letter.encode_utf8(room);
            self.len += room.len() as u8;
        }
        Ok(())
    }
}

/// Writes the excerpt in quotes. Control characters are escaped, so that they have no effect on a terminal.
impl fmt::Debug for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_ref(), f)?;
        if self.is_cut { f.write_str("…") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::format;

    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters_and_marked_as_cut() {
        assert_eq!(format!("{:?}", Excerpt::of("fasr")), "\"fasr\"");
        assert_eq!(format!("{:?}", Excerpt::of("\u{1b}[31m")), "\"\\u{1b}[31m\"");
        let long = Excerpt::of("ä".repeat(30).as_str());
        assert_eq!((long.as_ref().chars().count(), format!("{long:?}").ends_with("\"…")), (20, true));
        let odd = Excerpt::of(format!("x{}", "ä".repeat(30)).as_str());
        assert_eq!(odd.as_ref().len(), 39);
    }
}
