//! The kinds of networks in a set.

use std::fmt;

use coapace_scenario::ScenarioError;
use serde::{Deserialize, Serialize};

use super::costs::{Cost, OF_EXCHANGES, OF_MESSAGES};
use super::generator::{self, Drawn};
use super::meshes;

/// A kind of random networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Networks {
    /// Links, and a small mesh as every sixth network; clients finish after a number of exchanges.
    #[default]
    Mixed,
    /// Meshes of 10 to 60 radios, with flows of messages.
    Meshes,
}

impl Networks {
    /// Every kind.
    pub const ALL: [Self; 2] = [Self::Mixed, Self::Meshes];

    /// Returns the name of the kind.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Meshes => "meshes",
        }
    }

    /// Parses a name.
    ///
    /// # Errors
    /// Returns one line with the accepted names.
    pub fn parse(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|networks| networks.name() == name);
        found.ok_or_else(|| format!("networks is {name:?}, but must be \"mixed\" or \"meshes\""))
    }

    /// Returns whether these networks are of the default kind.
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "Serde asks for a reference")]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the costs that count for this kind, in sequence.
    pub fn costs(self) -> [Cost; 3] {
        match self {
            Self::Mixed => OF_EXCHANGES,
            Self::Meshes => OF_MESSAGES,
        }
    }

    /// Returns the number of scenarios that measure how a mechanism shares with `default`, in addition to `scenarios` for
    /// costs. Meshes have none.
    pub fn shared(self, scenarios: u32) -> u32 {
        match self {
            Self::Mixed => scenarios / 2,
            Self::Meshes => 0,
        }
    }

    /// Draws scenario number `place` of a set, from generator seed `seed`. The first `scenarios` are for costs; the shared
    /// scenarios follow.
    ///
    /// # Errors
    /// Returns the error of an invalid scenario, which is a bug of the generator.
    pub fn draw(self, seed: u64, scenarios: u32, place: u32) -> Result<Drawn, ScenarioError> {
        match self {
            Self::Mixed if place < scenarios => generator::draw(seed, place),
            Self::Mixed => generator::draw_shared(seed, place - scenarios),
            Self::Meshes => meshes::draw(seed, place),
        }
    }
}

impl fmt::Display for Networks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_networks_parses_back_from_its_text() {
        for networks in Networks::ALL {
            assert_eq!(Networks::parse(&networks.to_string()), Ok(networks));
        }
        assert!(Networks::parse("mesh").is_err_and(|error| error.contains("\"meshes\"")));
    }

    #[test]
    fn drawn_meshes_have_no_shared_bottlenecks() {
        let mesh =
            |networks: Networks, place| networks.draw(1, 12, place).unwrap().scenario.network.mesh.is_some();
        assert!((0..12).all(|place| mesh(Networks::Meshes, place)));
        assert!((0..12).all(|place| mesh(Networks::Mixed, place) == (place % 6 == 5)));
        assert_eq!(Networks::ALL.map(|networks| networks.shared(9)), [4, 0]);
    }

    #[test]
    fn a_drawn_scenario_depends_only_on_its_seed_and_number() {
        for networks in Networks::ALL {
            let hash = |seed, place| networks.draw(seed, 9, place).unwrap().scenario.hash();
            assert_eq!(hash(1, 3), hash(1, 3));
            assert_ne!(hash(1, 3), hash(2, 3));
            assert_ne!(hash(1, 3), hash(1, 4));
        }
    }
}
