//! The keys of routing.

use coapace_sim::Span;
use coapace_sim::mesh::{RoutingConfig, RplConfig};

use crate::schema::document::{Item, Value};
use crate::schema::scalar::{Switch, Time, Whole, Words, one_of};
use crate::schema::table::{filled, keys};
use crate::schema::words::{tagged, words};

tagged! {
    /// How datagrams find their way.
    pub enum Routing {
        /// Known from the start.
        Shortest(Shortest) = "shortest",
        /// RPL.
        Rpl(Rpl) = "rpl",
    }
}

keys! {
    /// Shortest paths to and from every sink, known from the start and after every move, over links that deliver half of the
    /// frames or more.
    pub struct Shortest {}
}

keys! {
    /// RPL in storing mode (RFC 6550) with MRHOF over ETX (RFC 6719) and Trickle (RFC 6206). The defaults shown are those of
    /// the preset `contiki-3`; with another preset they are its own.
    pub struct Rpl completed by preset_fills, {
        /// Whose defaults the other keys have: Contiki 3.x on a Cooja mote, Contiki-NG's storing mode, or RFC 6550 and
        /// RFC 6719.
        preset: RplPreset, one_of() => RplPreset::Contiki3;
        /// The shortest interval of DIOs, Trickle's Imin.
        dio_interval_min: Span, Time => DEFAULT.dio_interval_min;
        /// DIOIntervalDoublings.
        dio_doublings: u8, Whole(0, 40) => DEFAULT.dio_doublings;
        /// DIORedundancyConstant: so many DIOs heard suppress one's own; 0 suppresses none.
        dio_redundancy: u8, Whole(0, 255) => DEFAULT.dio_redundancy;
        /// Whether the DIOs of a parent make a node send its DAO again.
        dio_refreshes_routes: bool, Switch => DEFAULT.dio_refreshes_routes;
        /// From the start to the first DIS of a node without a parent.
        dis_start: Span, Time => DEFAULT.dis_start;
        /// From one DIS to the next.
        dis_interval: Span, Time => DEFAULT.dis_interval;
        /// A DAO leaves between half of this and one and a half of it after there is reason to send it.
        dao_delay: Span, Time => DEFAULT.dao_delay;
        /// How long a route holds.
        route_lifetime: Span, Time => DEFAULT.route_lifetime;
        /// How long a route is still used after it was taken back.
        no_path_delay: Span, Time => DEFAULT.no_path_delay;
        /// MinHopRankIncrease.
        min_hop_rank_increase: u16, Whole(1, 10_000) => DEFAULT.min_hop_rank_increase;
        /// PARENT_SWITCH_THRESHOLD: by so much a path must cost less than the present one (RFC 6719 §5), in 1/128.
        parent_switch_threshold: u16, Whole(0, 10_000) => DEFAULT.parent_switch_threshold;
        /// DAGMaxRankIncrease; 0 is any.
        max_rank_increase: u16, Whole(0, 60_000) => DEFAULT.max_rank_increase;
        /// MAX_LINK_METRIC: the highest ETX of a usable link (RFC 6719 §5), in 1/128.
        max_link_metric: u16, Whole(128, 65_000) => DEFAULT.max_link_metric;
        /// MAX_PATH_COST (RFC 6719 §5), in 1/128.
        max_path_cost: u16, Whole(128, 65_000) => DEFAULT.max_path_cost;
        /// The ETX of a link of which nothing is known, in transmissions.
        initial_etx: u8, Whole(1, 255) => DEFAULT.initial_etx;
        /// A frame never acknowledged counts as so many transmissions.
        no_ack_etx: u8, Whole(1, 255) => DEFAULT.no_ack_etx;
        /// The weight of a frame in the ETX of a link of which little is known, in percent.
        etx_weight_early_percent: u8, Whole(1, 100) => DEFAULT.etx_weights.0;
        /// The same of other links.
        etx_weight_percent: u8, Whole(1, 100) => DEFAULT.etx_weights.1;
        /// From one probe of a neighbour to the next; 0 s is never.
        probing_interval: Span, Time => DEFAULT.probing_interval;
        /// Neighbours that a node remembers.
        max_neighbours: u16, Whole(1, 60_000) => DEFAULT.max_neighbours;
        /// Routes that a node stores.
        max_routes: u16, Whole(1, 60_000) => DEFAULT.max_routes;
    }
}

words! {
    /// Whose RPL it is.
    pub enum RplPreset {
        /// Contiki 3.x.
        Contiki3 = "contiki-3",
        /// Contiki-NG.
        ContikiNg = "contiki-ng",
        /// RFC 6550 and RFC 6719.
        Standard = "standard",
    }
}

/// What is shown as defaults.
const DEFAULT: RplConfig = RplConfig::CONTIKI_3;

impl RplPreset {
    /// What it stands for.
    pub const fn config(self) -> RplConfig {
        match self {
            Self::Contiki3 => RplConfig::CONTIKI_3,
            Self::ContikiNg => RplConfig::CONTIKI_NG,
            Self::Standard => RplConfig::STANDARD,
        }
    }
}

impl Rpl {
    /// A preset as it is.
    fn of(preset: RplPreset) -> Self {
        let config = preset.config();
        Self {
            preset,
            dio_interval_min: config.dio_interval_min,
            dio_doublings: config.dio_doublings,
            dio_redundancy: config.dio_redundancy,
            dio_refreshes_routes: config.dio_refreshes_routes,
            dis_start: config.dis_start,
            dis_interval: config.dis_interval,
            dao_delay: config.dao_delay,
            route_lifetime: config.route_lifetime,
            no_path_delay: config.no_path_delay,
            min_hop_rank_increase: config.min_hop_rank_increase,
            parent_switch_threshold: config.parent_switch_threshold,
            max_rank_increase: config.max_rank_increase,
            max_link_metric: config.max_link_metric,
            max_path_cost: config.max_path_cost,
            initial_etx: config.initial_etx,
            no_ack_etx: config.no_ack_etx,
            etx_weight_early_percent: config.etx_weights.0,
            etx_weight_percent: config.etx_weights.1,
            probing_interval: config.probing_interval,
            max_neighbours: config.max_neighbours,
            max_routes: config.max_routes,
        }
    }

    /// Returns the configuration of the simulator.
    fn config(&self) -> RplConfig {
        RplConfig {
            dio_interval_min: self.dio_interval_min,
            dio_doublings: self.dio_doublings,
            dio_redundancy: self.dio_redundancy,
            dio_refreshes_routes: self.dio_refreshes_routes,
            dis_start: self.dis_start,
            dis_interval: self.dis_interval,
            dao_delay: self.dao_delay,
            route_lifetime: self.route_lifetime,
            no_path_delay: self.no_path_delay,
            min_hop_rank_increase: self.min_hop_rank_increase,
            parent_switch_threshold: self.parent_switch_threshold,
            max_rank_increase: self.max_rank_increase,
            max_link_metric: self.max_link_metric,
            max_path_cost: self.max_path_cost,
            initial_etx: self.initial_etx,
            no_ack_etx: self.no_ack_etx,
            etx_weights: (self.etx_weight_early_percent, self.etx_weight_percent),
            probing_interval: self.probing_interval,
            max_neighbours: self.max_neighbours,
            max_routes: self.max_routes,
        }
    }
}

impl Routing {
    /// Returns the configuration of the simulator.
    pub fn config(&self) -> RoutingConfig {
        match self {
            Self::Shortest(Shortest {}) => RoutingConfig::Shortest,
            Self::Rpl(rpl) => RoutingConfig::Rpl(rpl.config()),
        }
    }
}

/// What the preset says stands where the file says nothing.
fn preset_fills(rpl: &Item) -> Item {
    let preset = match rpl.get("preset").map(|item| &item.value) {
        Some(Value::Text(word)) => RplPreset::ALL.iter().find(|(_, known)| known == word),
        _ => RplPreset::ALL.first(),
    };
    // An unknown word is refused when it is read.
    preset.map_or_else(|| rpl.clone(), |&(preset, _)| filled(rpl, &Rpl::of(preset)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_comes_back_as_the_simulator_has_it() {
        for (preset, word) in RplPreset::ALL {
            assert_eq!(Rpl::of(*preset).config(), preset.config(), "{word}");
        }
    }
}
