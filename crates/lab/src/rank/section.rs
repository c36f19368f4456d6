//! The sections of a ranking.

use coapace_control::Origin;
use coapace_scenario::naming::{bulk_alone, parse_any};

/// The section of a ranking that a mechanism belongs to.
///
/// Only published mechanisms with random timeouts are baselines. Without dither, clients that begin together stay in
/// step, and so have better values in some cells than in any network with real clocks. Mechanisms of this project and
/// of other crates are compared with published ones, and not with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// Published elsewhere and with random timeouts, with any parameters: a possible baseline.
    Published,
    /// Made by this project, with random timeouts.
    Coapace,
    /// A mechanism of another crate with random timeouts; a mix; or CoAP over TCP.
    Other,
    /// Without random timeouts, from any source.
    Undithered,
}

impl Section {
    /// Every section, in the sequence of a ranking.
    pub const ALL: [Self; 4] = [Self::Published, Self::Coapace, Self::Other, Self::Undithered];

    /// Returns the section of a mechanism from its text.
    pub fn of(label: &str) -> Self {
        // A mix and `tcp` are not the name of one mechanism.
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

    /// Returns whether mechanisms of this section are possible baselines.
    pub const fn is_yardstick(self) -> bool {
        matches!(self, Self::Published)
    }

    /// Returns the word for the section in rows.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Coapace => "coapace",
            Self::Other => "other",
            Self::Undithered => "undithered",
        }
    }

    /// Returns the heading of the section.
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
    fn only_published_mechanisms_with_random_timeouts_are_baselines_of_a_ranking() {
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
