//! The sections of a ranking.

use coapace_control::Origin;
use coapace_scenario::naming::{bulk_alone, parse_any};

/// The section of a ranking that a mechanism belongs to.
///
/// Only published mechanisms that dither are yardsticks. Clients without dither stay in step in a scenario in which they begin
/// together. So they win cells that no network with real clocks would give them. Mechanisms of this project and of other crates
/// are compared with published ones, and not with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// Published elsewhere and dithered, with any parameters: a yardstick.
    Published,
    /// Made by this project, and dithered.
    Coapace,
    /// A mechanism of another crate, dithered; a mix; or CoAP over TCP.
    Other,
    /// Without dither, wherever it comes from.
    Undithered,
}

impl Section {
    /// Every section, in the order of a ranking.
    pub const ALL: [Self; 4] = [Self::Published, Self::Coapace, Self::Other, Self::Undithered];

    /// Returns the section of a mechanism, by the text that named it.
    pub fn of(label: &str) -> Self {
        let Ok((mechanism, entry)) = parse_any(label) else { return Self::Other };
        // A body of many blocks keeps no step with others.
        let keeps_step = !mechanism.dithers() && bulk_alone(label).is_none();
        if keeps_step {
            return Self::Undithered;
        }
        match entry.origin {
            Origin::Published => Self::Published,
            Origin::Coapace => Self::Coapace,
            Origin::Own => Self::Other,
        }
    }

    /// Returns whether its mechanisms are yardsticks for the others.
    pub const fn is_yardstick(self) -> bool {
        matches!(self, Self::Published)
    }

    /// Returns the word for it in rows.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Coapace => "coapace",
            Self::Other => "other",
            Self::Undithered => "undithered",
        }
    }

    /// Returns the heading above its mechanisms.
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Published => "Published, with dither",
            Self::Coapace => "Made here",
            Self::Other => "Others",
            Self::Undithered => "Without dither, never the best",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_yardstick_was_published_and_dithers() {
        for (label, section) in [
            ("cocoa", Section::Published),
            ("fasor:preset=libcoap-2019", Section::Published),
            ("linux-rto", Section::Undithered),
            ("basic-rto", Section::Undithered),
            ("default:ack_random_factor=1", Section::Undithered),
            ("tcp", Section::Other),
            ("cocoa+default", Section::Other),
        ] {
            assert_eq!(Section::of(label), section, "{label}");
            assert_eq!(section.is_yardstick(), section == Section::Published);
        }
    }
}
