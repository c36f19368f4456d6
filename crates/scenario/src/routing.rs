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
        /// Routes found by RPL (RFC 6550).
        Rpl(Preset<RplConfig>) = "rpl",
    }
}

keys! {
    /// RPL in storing mode (RFC 6550) with MRHOF over ETX (RFC 6719) and Trickle (RFC 6206). The defaults shown belong to
    /// the preset `contiki-3`; every preset has its own.
    for RplConfig = RplConfig::CONTIKI_3 {
        /// Imin of Trickle: the shortest interval of DIOs.
        dio_interval_min: TIME;
        /// DIOIntervalDoublings: the most times that the interval of DIOs doubles (RFC 6550 §8.3.1).
        dio_doublings: Whole(0, 40);
        /// DIORedundancyConstant: a node that hears this many DIOs in an interval leaves out its own; with 0 it never does.
        dio_redundancy: Whole(0, 255);
        /// Whether every DIO that the root sends to all neighbours requests new DAOs (Contiki).
        dio_refreshes_routes: SWITCH;
        /// The time from the start of a run until the root begins to announce itself. Contiki's border router waits for
        /// a prefix.
        root_start: TIME;
        /// The time from the start to the first DIS of a node without a parent.
        dis_start: TIME;
        /// The time from one DIS of such a node to its next.
        dis_interval: TIME;
        /// The mean delay of a DAO after its cause. Each delay is drawn from half of this to one and a half of it.
        dao_delay: TIME;
        /// The lifetime of a route.
        route_lifetime: TIME;
        /// The interval at whose end a node chooses its parent again, if frames have changed the ETX of its links. With
        /// 0 s it chooses at once.
        selection_interval: TIME;
        /// Whether a node never chooses one of its children, to which it has a route, as its parent. Contiki relies on
        /// ranks for this.
        excludes_children: SWITCH;
        /// Whether a node without a route for a packet that goes down sends it back to the sender, which deletes its
        /// route at once (RFC 6550 §11.2.2.3). If not, the node drops the packet, and sends a no-path DAO that
        /// withdraws the route (Contiki).
        sends_back: SWITCH;
        /// The time for which a route is still used after a no-path DAO has withdrawn it.
        no_path_delay: TIME;
        /// MinHopRankIncrease: the least increase of the rank from a parent to its child (RFC 6550 §3.5.1).
        min_hop_rank_increase: Whole(1, 10_000);
        /// PARENT_SWITCH_THRESHOLD: the least gain of a new path over the present one (RFC 6719 §5), in 1/128 of a
        /// transmission.
        parent_switch_threshold: Whole(0, 10_000);
        /// DAGMaxRankIncrease: the largest rise of a node's rank above its lowest rank so far; 0 allows any rise.
        max_rank_increase: Whole(0, 60_000);
        /// MAX_LINK_METRIC: the highest ETX of a usable link (RFC 6719 §5), in 1/128 of a transmission.
        max_link_metric: Whole(128, 65_000);
        /// MAX_PATH_COST: the highest cost of a usable path (RFC 6719 §5), in 1/128 of a transmission.
        max_path_cost: Whole(128, 65_000);
        /// The ETX of a link before the first frame over it, in transmissions.
        initial_etx: Whole(1, 255);
        /// The number of transmissions that count in the ETX for a frame that was never acknowledged.
        no_ack_etx: Whole(1, 255);
        /// The weight of a new frame in the ETX of a link that has sent few frames, in percent.
        etx_weight_early_percent as etx_weights.0: Whole(0, 100);
        /// The weight of a new frame in the ETX of other links, in percent.
        etx_weight_percent as etx_weights.1: Whole(0, 100);
        /// The mean time from one probe of a neighbour to the next. With 0 s there are no probes.
        probing_interval: TIME;
        /// The maximum number of neighbours that a node remembers.
        max_neighbours: Whole(1, 60_000);
        /// The maximum number of routes that a node stores.
        max_routes: Whole(1, 60_000);
        /// The maximum number of routes that the border router stores. "same" means `max_routes`.
        max_root_routes: Or("same", Whole(1, 60_000));
    }
    presets {
        /// The source of the other keys' defaults. `contiki-3`: Contiki 3.x on a Cooja mote. `contiki-2.7`: the same
        /// with the tables of a Z1 under Contiki 2.7. `contiki-ng`: Contiki-NG's storing mode. `standard`: RFC 6550 and
        /// RFC 6719.
        "contiki-3" => RplConfig::CONTIKI_3,
        "contiki-2.7" => RplConfig::CONTIKI_2_7,
        "contiki-ng" => RplConfig::CONTIKI_NG,
        "standard" => RplConfig::STANDARD,
    }
}

impl Routing {
    /// Returns this routing as a configuration of the simulator.
    pub fn config(&self) -> RoutingConfig {
        match self {
            Self::Shortest(_) => RoutingConfig::Shortest,
            Self::Rpl(rpl) => RoutingConfig::Rpl(rpl.config),
        }
    }
}
