//! The look of mechanisms: one colour, one dash and one mark each, on every page and in every chart.

use coapace_scenario::Hash64;

/// Colours that readers with any colour vision can distinguish: Okabe and Ito's, tuned to white paper, the first of
/// them neutral.
pub(super) const COLOURS: [&str; 8] =
    ["#57534e", "#0072b2", "#d55e00", "#009e73", "#c2609a", "#e0930a", "#3fa4dd", "#a69b00"];

/// The colour of text, as in `report.css` for a light ground. The next constant is the colour of less important text.
pub(super) const INK: &str = "#1c1b19";
pub(super) const SOFT: &str = "#605d57";
/// The colour of paper. The next constants are the colours of lines, of the lines of a grid, and of a ground that is a
/// little darker than paper.
pub(super) const PAPER: &str = "#ffffff";
pub(super) const LINE: &str = "#dedad2";
pub(super) const GRID: &str = "#ebe8e1";
pub(super) const SHADE: &str = "#f4f1ea";
/// The blue end of the scale of a heat map. The next constant is the orange end. Text in the colour of ink is readable
/// on both.
pub(super) const BLUE: &str = "#5aa9dd";
pub(super) const ORANGE: &str = "#f08a45";

/// Each colour of charts on a light ground, and the colour that replaces it on a dark ground: first the mechanisms' colours, then
/// the colours of `report.css`.
pub(super) const DARK: [(&str, &str); 16] = [
    (COLOURS[0], "#b8b3a9"),
    (COLOURS[1], "#4b9fdb"),
    (COLOURS[2], "#f0803c"),
    (COLOURS[3], "#2bbd92"),
    (COLOURS[4], "#e29cc6"),
    (COLOURS[5], "#f2b33d"),
    (COLOURS[6], "#93d0f5"),
    (COLOURS[7], "#e9df4a"),
    (INK, "#e8e5de"),
    (SOFT, "#a09c93"),
    (PAPER, "#16181b"),
    (LINE, "#34373b"),
    (GRID, "#272a2e"),
    (SHADE, "#1f2226"),
    (BLUE, "#00669f"),
    (ORANGE, "#b65000"),
];

/// Dashes: lengths in pixels on and off. The first is a solid line.
pub(super) const DASHES: [&str; 6] = ["", "7 4", "2 3", "8 3 2 3", "14 5", "14 4 3 4"];

/// A colour and a dash, by their indices in [`COLOURS`] and [`DASHES`]. The dash also chooses the mark of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Style {
    pub(super) colour: usize,
    pub(super) dash: usize,
}

impl Style {
    /// Returns the colour in CSS.
    pub(super) fn css(self) -> &'static str {
        COLOURS[self.colour % COLOURS.len()]
    }

    /// Returns the value of `stroke-dasharray`; empty for a solid line.
    pub(super) fn dasharray(self) -> &'static str {
        DASHES[self.dash % DASHES.len()]
    }
}

/// The mechanisms by families: a family has a colour, and each of its members a dash.
const FAMILIES: [&[&str]; 8] = [
    &["default", "tcp", "coap-eifel"],
    &["cocoa", "cocoa0", "cocoa-plus", "cocoa-strong"],
    &["fasor", "fasor-token", "fasor-option"],
    &["rtt-coap"],
    &["cocoa-plus-plus", "cocoa-i"],
    &["fullbackoff1", "fullbackoff2", "gst-coap", "fullbackoff1-cocoa", "fullbackoff2-cocoa"],
    &["linux-rto", "basic-rto", "peak-hopper"],
    &["gsrtc"],
];

/// Returns the styles of these labels. A mechanism always has the same style. A variant with parameters has the colour of its
/// mechanism, and its parameters choose the dash. If the page has that dash already, the variant takes the next free one.
pub(super) fn styles(labels: &[&str]) -> Vec<Style> {
    let mut styles: Vec<Option<Style>> = labels.iter().map(|label| known(label)).collect();
    for (place, label) in labels.iter().enumerate() {
        if styles[place].is_some() {
            continue;
        }
        let Hash64(hash) = Hash64::of(label.bytes());
        // The name of the mechanism without its parameters.
        let base = label.split([':', '+', '*']).next().unwrap_or_default();
        let colour = match known(base) {
            // A mix has several mechanisms, so it must not look like its first one.
            Some(style) if !label.contains('+') => style.colour,
            _ => hash as usize % COLOURS.len(),
        };
        // Other bits than the colour's, so that colour and dash do not depend on each other.
        let first = (hash >> 8) as usize;
        let mut candidates = (0..DASHES.len() * COLOURS.len()).map(|step| Style {
            colour: (colour + step / DASHES.len()) % COLOURS.len(),
            dash: (first + step) % DASHES.len(),
        });
        let free = candidates.clone().find(|style| !styles.contains(&Some(*style)));
        // With more labels than looks, two labels share one.
        styles[place] = free.or_else(|| candidates.next());
    }
    styles.into_iter().flatten().collect()
}

/// Returns the style of a mechanism without parameters that is listed in [`FAMILIES`].
fn known(name: &str) -> Option<Style> {
    FAMILIES.iter().enumerate().find_map(|(colour, family)| {
        family.iter().position(|member| *member == name).map(|dash| Style { colour, dash })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use coapace_run::contender::Contender;

    #[test]
    fn every_mechanism_of_the_registry_has_its_own_line_style() {
        let labels: Vec<String> = Contender::all().into_iter().map(|contender| contender.label).collect();
        let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
        let styles = styles(&labels);
        assert_eq!(styles.len(), labels.len());
        for (place, style) in styles.iter().enumerate() {
            let twin = styles[..place].iter().position(|other| other == style);
            assert_eq!(twin.map(|twin| labels[twin]), None, "{} looks like another", labels[place]);
        }
    }

    #[test]
    fn the_line_style_of_a_mechanism_does_not_depend_on_the_others() {
        let alone = styles(&["fasor"]);
        assert_eq!(styles(&["default", "cocoa", "tcp", "fasor"])[3], alone[0]);
        let variant = "cocoa:preset=libcoap-2019";
        assert_eq!(styles(&[variant])[0], styles(&["default", variant])[1]);
        assert_eq!(styles(&[variant])[0].colour, styles(&["cocoa"])[0].colour);
    }

    #[test]
    fn variants_of_a_mechanism_on_one_page_have_different_line_styles() {
        let labels: Vec<String> = (1..=9).map(|k| format!("fasor:k={k}")).collect();
        let labels: Vec<&str> = labels.iter().map(String::as_str).chain(["fasor", "a+b", "b+a"]).collect();
        let styles = styles(&labels);
        assert!(
            styles.iter().enumerate().all(|(place, style)| !styles[..place].contains(style)),
            "{styles:?}"
        );
    }
}
