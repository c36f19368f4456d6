//! The keys of routing.

use coapace_control::Duration;
use coapace_sim::mesh::{RoutingConfig, RplConfig};

use super::scalar::{Time, Whole};
use super::schema::keys;
use super::words::tagged;

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
    /// Shortest paths to and from every sink, known from the start and after every move.
    pub struct Shortest {}
}

keys! {
    /// RPL in storing mode (RFC 6550) with MRHOF over ETX (RFC 6719). Defaults as in Contiki 3.x.
    pub struct Rpl {
        /// The shortest interval of DIOs, Trickle's Imin.
        dio_interval_min: Duration, Time => Duration::from_millis(4_096);
        /// DIOIntervalDoublings.
        dio_doublings: u8, Whole(0, 40) => 8;
        /// DIORedundancyConstant: so many DIOs heard suppress one's own; 0 suppresses none.
        dio_redundancy: u8, Whole(0, 255) => 10;
        /// From the start to the first DIS of a node without a parent.
        dis_start: Duration, Time => Duration::from_secs(5);
        /// From one DIS to the next.
        dis_interval: Duration, Time => Duration::from_secs(60);
        /// A DAO leaves at a random moment of this span after there is reason to send it.
        dao_delay: Duration, Time => Duration::from_secs(4);
        /// How long a route holds.
        route_lifetime: Duration, Time => Duration::from_secs(1_800);
        /// MinHopRankIncrease.
        min_hop_rank_increase: u16, Whole(1, 10_000) => 128;
        /// PARENT_SWITCH_THRESHOLD: by so much rank a parent must be better than the present one (RFC 6719 §5).
        parent_switch_threshold: u16, Whole(0, 10_000) => 96;
        /// DAGMaxRankIncrease; 0 is any.
        max_rank_increase: u16, Whole(0, 60_000) => 7 * 128;
        /// Neighbours that a node remembers.
        max_neighbours: u16, Whole(1, 60_000) => 300;
        /// Routes that a node stores.
        max_routes: u16, Whole(1, 60_000) => 300;
    }
}

impl Routing {
    /// As the simulator takes it.
    pub(crate) fn config(&self) -> RoutingConfig {
        let nanos = |span: Duration| span.as_micros().saturating_mul(1_000);
        match self {
            Self::Shortest(Shortest {}) => RoutingConfig::Shortest,
            Self::Rpl(rpl) => RoutingConfig::Rpl(RplConfig {
                dio_interval_min_ns: nanos(rpl.dio_interval_min),
                dio_doublings: rpl.dio_doublings,
                dio_redundancy: rpl.dio_redundancy,
                dis_start_ns: nanos(rpl.dis_start),
                dis_interval_ns: nanos(rpl.dis_interval),
                dao_delay_ns: nanos(rpl.dao_delay),
                route_lifetime_ns: nanos(rpl.route_lifetime),
                min_hop_rank_increase: rpl.min_hop_rank_increase,
                parent_switch_threshold: rpl.parent_switch_threshold,
                max_rank_increase: rpl.max_rank_increase,
                max_neighbours: rpl.max_neighbours,
                max_routes: rpl.max_routes,
            }),
        }
    }
}
