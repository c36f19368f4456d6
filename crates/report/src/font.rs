//! The font of charts in files: Liberation Sans. Its letters are as wide as in Arial and Helvetica, so an SVG looks the same
//! where the font is missing.

use std::sync::{Arc, LazyLock};

use svg2pdf::usvg::fontdb::Database;
use ttf_parser::Face;

/// The font file. Its licence lies beside it.
const FILE: &[u8] = include_bytes!("fonts/LiberationSans-Regular.ttf");

/// The name of the font and of its replacements, in CSS.
pub(super) const FAMILY: &str = "Liberation Sans, Arial, Helvetica, sans-serif";

static FACE: LazyLock<Face<'static>> = LazyLock::new(|| Face::parse(FILE, 0).expect("the file is a font"));

/// A database with this font alone, so that the fonts of the machine do not change a chart.
pub(super) static DATABASE: LazyLock<Arc<Database>> = LazyLock::new(|| {
    let mut fonts = Database::new();
    fonts.load_font_data(FILE.to_vec());
    fonts.set_sans_serif_family("Liberation Sans");
    Arc::new(fonts)
});

/// Returns the width of `text` in pixels, in letters of `size` pixels.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let advance = |character| {
        // Glyph 0 is the box that is drawn for a missing character.
        let glyph = FACE.glyph_index(character).unwrap_or_default();
        f64::from(FACE.glyph_hor_advance(glyph).unwrap_or(FACE.units_per_em() / 2))
    };
    text.chars().map(advance).sum::<f64>() * size / f64::from(FACE.units_per_em())
}

/// Breaks `text` between words into lines of at most `most` pixels. A word that is wider has a line of its own.
pub(super) fn lines(text: &str, size: f64, most: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    // Only at plain spaces: a no-break space keeps a number and its unit together.
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(" ", size) + width(word, size) <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_measured_and_broken_into_lines() {
        assert!(width("W", 10.0) > 2.0 * width("i", 10.0));
        assert!((width("0", 20.0) - 11.12).abs() < 0.1, "as in Arial: {}", width("0", 20.0));
        let broken = lines("one two three", 10.0, width("one two", 10.0) + 0.1);
        assert_eq!(broken, ["one two", "three"]);
    }

    #[test]
    fn every_character_of_the_report_is_in_the_font() {
        for character in "aZ09µ’–−±≥·→\u{a0}\u{202f}%()/:,*".chars() {
            assert!(
                FACE.glyph_index(character).is_some() || character == '\u{202f}',
                "{character:?} is missing"
            );
        }
    }
}
