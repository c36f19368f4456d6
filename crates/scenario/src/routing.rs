//! The keys of routing.

use coapace_sim::mesh::{RoutingConfig, RplConfig};

use crate::schema::kind::Or;
use crate::schema::preset::Preset;
use crate::schema::scalar::{SWITCH, TIME, Whole};
use crate::schema::table::{Bare, keys};
use crate::schema::words::tagged;

tagged! {
    /// The routes of datagrams.
    pub enum Routing {
        /// Shortest paths to and from every sink, known from the start and after every move, over links that deliver half of the
        /// frames or more.
        Shortest(Bare) = "shortest",
        /// RPL.
        Rpl(Preset<RplConfig>) = "rpl",
    }
}

keys! {
    /// RPL in storing mode (RFC 6550) with MRHOF over ETX (RFC 6719) and Trickle (RFC 6206). The defaults shown are those of
    /// the preset `contiki-3`; with another preset they are its own.
    for RplConfig = RplConfig::CONTIKI_3 {
        /// The shortest interval of DIOs, Trickle's Imin.
        dio_interval_min: TIME;
        /// DIOIntervalDoublings.
        dio_doublings: Whole(0, 40);
        /// DIORedundancyConstant: so many DIOs heard suppress one's own; 0 suppresses none.
        dio_redundancy: Whole(0, 255);
        /// Requests for new DAOs in every DIO that the root sends to all (Contiki).
        dio_refreshes_routes: SWITCH;
        /// The time from the start to the first DIS of a node without a parent.
        dis_start: TIME;
        /// The time from one DIS to the next.
        dis_interval: TIME;
        /// A DAO leaves between half of this and one and a half of it after there is reason to send it.
        dao_delay: TIME;
        /// The lifetime of a route.
        route_lifetime: TIME;
        /// The interval at whose end a node chooses its parent again after frames have changed what it knows of links; 0 s is at once.
        selection_interval: TIME;
        /// A child, to which the node has a route, cannot become its parent. Contiki leaves it to ranks.
        excludes_children: SWITCH;
        /// A packet that goes down and finds no route is sent back, and the route deleted at once (RFC 6550 §11.2.2.3). If not, it is
        /// dropped, and a no-path DAO takes the route back (Contiki).
        sends_back: SWITCH;
        /// The time that a route is still used after it was taken back.
        no_path_delay: TIME;
        /// MinHopRankIncrease.
        min_hop_rank_increase: Whole(1, 10_000);
        /// PARENT_SWITCH_THRESHOLD: the least gain of a new path over the present one (RFC 6719 §5), in 1/128.
        parent_switch_threshold: Whole(0, 10_000);
        /// DAGMaxRankIncrease; 0 is any.
        max_rank_increase: Whole(0, 60_000);
        /// MAX_LINK_METRIC: the highest ETX of a usable link (RFC 6719 §5), in 1/128.
        max_link_metric: Whole(128, 65_000);
        /// MAX_PATH_COST (RFC 6719 §5), in 1/128.
        max_path_cost: Whole(128, 65_000);
        /// The ETX of a link of which nothing is known, in transmissions.
        initial_etx: Whole(1, 255);
        /// A frame never acknowledged counts as so many transmissions.
        no_ack_etx: Whole(1, 255);
        /// The weight of a frame in the ETX of a link of which little is known, in percent.
        etx_weight_early_percent as etx_weights.0: Whole(0, 100);
        /// The weight of a frame in the ETX of other links, in percent.
        etx_weight_percent as etx_weights.1: Whole(0, 100);
        /// The time from one probe of a neighbour to the next; 0 s is never.
        probing_interval: TIME;
        /// Neighbours that a node remembers.
        max_neighbours: Whole(1, 60_000);
        /// Routes that a node stores.
        max_routes: Whole(1, 60_000);
        /// Routes that the border router stores; `same` is `max_routes`.
        max_root_routes: Or("same", Whole(1, 60_000));
    }
    presets {
        /// The source of the other keys' defaults: Contiki 3.x on a Cooja mote, that with the tables of a Z1 under Contiki 2.7,
        /// Contiki-NG's storing mode, or RFC 6550 and RFC 6719.
        "contiki-3" => RplConfig::CONTIKI_3,
        "contiki-2.7" => RplConfig::CONTIKI_2_7,
        "contiki-ng" => RplConfig::CONTIKI_NG,
        "standard" => RplConfig::STANDARD,
    }
}

impl Routing {
    /// Returns the configuration of the simulator.
    pub fn config(&self) -> RoutingConfig {
        match self {
            Self::Shortest(_) => RoutingConfig::Shortest,
            Self::Rpl(rpl) => RoutingConfig::Rpl(rpl.config),
        }
    }
}
