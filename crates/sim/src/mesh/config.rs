//! What a mesh is made of. Every number on which standards and stacks differ is a field with presets.

/// All of a mesh but its places.
#[derive(Clone, Debug, PartialEq)]
pub struct MeshConfig {
    /// Who hears whom.
    pub radio: RadioConfig,
    /// How nodes share the channel.
    pub mac: MacConfig,
    /// How datagrams become frames.
    pub lowpan: LowpanConfig,
    /// How they find their way.
    pub routing: RoutingConfig,
}

/// IEEE 802.15.4 at 2.4 GHz: 250 kbit/s, a symbol of 16 µs, 2 symbols a byte.
#[derive(Clone, Debug, PartialEq)]
pub struct RadioConfig {
    /// Who hears whom how well.
    pub propagation: Propagation,
    /// The share of frames that a link delivers, drawn for every frame and receiver between two bounds, from 0 to 1;
    /// what is lost to other transmissions is not in it.
    pub delivery: (f64, f64),
    /// Bytes in front of every frame: preamble, start of frame, length (6 in the standard).
    pub phy_header_bytes: u32,
    /// Nodes are switched on at random moments of this span, in nanoseconds.
    pub start_spread_ns: u64,
}

/// Who hears whom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Propagation {
    /// Cooja's unit disk graph medium: what overlaps in interference range destroys what is received, whatever its power.
    UnitDisk {
        /// Up to here frames are received, in metres.
        range_m: f64,
        /// Up to here transmissions destroy what is received.
        interference_m: f64,
        /// Up to here a transmission is noticed by clear channel assessment. A frame that is being received always is.
        sense_m: f64,
        /// The share of frames received at the very edge of `range_m`; at distance d it is 1 − (d/range)²·(1 − edge).
        edge_delivery: f64,
    },
    /// Power falls with the logarithm of distance, and each pair of nodes has an obstacle of its own between them
    /// (log-normal shadowing). What overlaps destroys a reception unless it is weaker by `capture_db`.
    LogDistance {
        /// Transmit power in dBm.
        power_dbm: f64,
        /// Loss over the first metre, in dB.
        first_metre_db: f64,
        /// How fast power falls: 2 in free space, 3 to 4 indoors.
        exponent: f64,
        /// The standard deviation of shadowing, in dB.
        shadowing_db: f64,
        /// Received power at which half of the frames are received, in dBm.
        sensitivity_dbm: f64,
        /// Received power from which clear channel assessment notices, in dBm.
        sense_dbm: f64,
        /// By how much a frame must be stronger than each that overlaps.
        capture_db: f64,
    },
    /// Two rays, one direct and one reflected by the ground, beside shadowing: near nodes may hear each other badly
    /// where the rays cancel. Otherwise as [`LogDistance`](Self::LogDistance).
    TwoRay {
        /// Transmit power in dBm.
        power_dbm: f64,
        /// Height of the antennas above ground, in metres.
        height_m: f64,
        /// The share of the amplitude that the ground reflects, from 0 to 1.
        reflection: f64,
        /// Received power at which half of the frames are received, in dBm.
        sensitivity_dbm: f64,
        /// Received power from which clear channel assessment notices, in dBm.
        sense_dbm: f64,
        /// By how much a frame must be stronger than each that overlaps.
        capture_db: f64,
    },
}

/// Unslotted CSMA/CA and what stacks make of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MacConfig {
    /// Whether the channel is assessed before a frame is sent; if not, it is sent at once.
    pub csma: bool,
    /// Whether frames to one node are acknowledged, and sent again if not.
    pub acknowledgements: bool,
    /// How backoffs are drawn.
    pub backoff: Backoff,
    /// macMinBE.
    pub min_be: u8,
    /// macMaxBE.
    pub max_be: u8,
    /// macMaxCSMABackoffs: backoffs after a busy channel before the attempt is over.
    pub max_csma_backoffs: u8,
    /// macMaxFrameRetries: a frame is sent so often once more when no acknowledgement comes.
    pub max_frame_retries: u8,
    /// What follows when the channel was busy too often.
    pub channel_busy: ChannelBusy,
    /// How long the channel is assessed, in nanoseconds; what counts is its end.
    pub cca_ns: u64,
    /// From a clear channel to the first bit of a frame.
    pub turnaround_ns: u64,
    /// From the last bit of a frame to the first of its acknowledgement.
    pub ack_turnaround_ns: u64,
    /// From the last bit of a frame until its acknowledgement must have come whole.
    pub ack_wait_ns: u64,
    /// From an attempt to the next thing a node does: the interframe space, in nanoseconds.
    pub spacing_ns: u64,
    /// Frames that a node has room for, those of all its queues together.
    pub queue_frames: u16,
    /// Queues of a node, one for each neighbour that it has frames for, each with a backoff of its own; `None` is one queue
    /// for all. At most 15.
    pub neighbour_queues: Option<u8>,
    /// Of how many senders, those heard last, a node recognises the last frame when it comes again (core/net/mac/mac-sequence.c
    /// of Contiki).
    pub duplicates: u8,
}

/// How a backoff is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// A whole number of units from 0 to 2^BE − 1 (IEEE 802.15.4-2015 §6.2.5.1).
    Units {
        /// A unit, in nanoseconds.
        unit_ns: u64,
    },
    /// A whole number of ticks from 0 to (2^BE − 1)·`ticks` − 1; none where BE is 0 (Contiki 3.x and Contiki-NG).
    Ticks {
        /// A tick of the clock, in nanoseconds.
        tick_ns: u64,
        /// Ticks in a unit.
        ticks: u32,
    },
    /// None before the first attempt; then a unit and a random part of as many units as there were attempts, of three at
    /// most (Contiki 2.x), in microseconds.
    Linear {
        /// A unit, in nanoseconds.
        unit_ns: u64,
    },
}

/// What follows when the channel was busy too often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelBusy {
    /// The frame is dropped (the standard).
    Drop,
    /// It counts as sent without an acknowledgement (Contiki).
    Attempt,
}

/// RFC 4944 and RFC 6282.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowpanConfig {
    /// The largest frame in bytes, MAC header and checksum included: 127 in the standard.
    pub max_frame_bytes: u16,
    /// The hop limit of datagrams.
    pub hop_limit: u8,
    /// Datagrams that a node puts together at the same time.
    pub reassembly_contexts: u8,
    /// How long it waits for all fragments of one, in nanoseconds.
    pub reassembly_timeout_ns: u64,
}

/// How datagrams find their way.
#[derive(Clone, Debug, PartialEq)]
pub enum RoutingConfig {
    /// Shortest paths to and from every sink, known from the start and at every move.
    Shortest,
    /// RPL in storing mode (RFC 6550).
    Rpl(RplConfig),
}

/// RPL (RFC 6550), storing mode, with MRHOF (RFC 6719) over ETX and Trickle (RFC 6206).
///
/// Ranks and ETX are in the same unit, 1/128 of a transmission (RFC 6551 §4.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RplConfig {
    /// Trickle's Imin, in nanoseconds: 2^DIOIntervalMin ms.
    pub dio_interval_min_ns: u64,
    /// DIOIntervalDoublings.
    pub dio_doublings: u8,
    /// DIORedundancyConstant: so many heard suppress one's own; 0 suppresses none.
    pub dio_redundancy: u8,
    /// Whether every DIO that the root sends to all asks for new DAOs, by a higher DTSN (Contiki).
    pub dio_refreshes_routes: bool,
    /// From the start to the first DIS of a node without a parent, in nanoseconds.
    pub dis_start_ns: u64,
    /// From one DIS to the next.
    pub dis_interval_ns: u64,
    /// A DAO is sent at a random moment between half of this and one and a half of it after there is reason to, in
    /// nanoseconds.
    pub dao_delay_ns: u64,
    /// How long a route holds, in nanoseconds; it is renewed when a half to three quarters of it have passed. On the wire
    /// it is whole minutes, of 255 at most.
    pub route_lifetime_ns: u64,
    /// How long a route is still used after a no-path DAO took it back, in nanoseconds; a new one mostly comes before.
    pub no_path_delay_ns: u64,
    /// MinHopRankIncrease: the least by which rank rises from one node to the next; the rank of the root.
    pub min_hop_rank_increase: u16,
    /// PARENT_SWITCH_THRESHOLD: by so much a path must cost less than the present one (RFC 6719 §5), in 1/128.
    pub parent_switch_threshold: u16,
    /// DAGMaxRankIncrease: by so much a node's rank may rise before it has to leave; 0 is any.
    pub max_rank_increase: u16,
    /// MAX_LINK_METRIC: the highest ETX of a usable link (RFC 6719 §5), in 1/128.
    pub max_link_metric: u16,
    /// MAX_PATH_COST (RFC 6719 §5), in 1/128.
    pub max_path_cost: u16,
    /// The ETX of a link before anything is known of it, in transmissions.
    pub initial_etx: u8,
    /// A frame never acknowledged counts as so many transmissions.
    pub no_ack_etx: u8,
    /// The weight in percent, 0 to 100, of a frame in a link's ETX: while little is known of the link, and after.
    pub etx_weights: (u8, u8),
    /// From one probe of a neighbour's link, a DIO to it alone, to the next, in nanoseconds; 0 is never. The moment is
    /// random between half and one and a half of it.
    pub probing_interval_ns: u64,
    /// Neighbours that a node remembers.
    pub max_neighbours: u16,
    /// Routes that a node stores.
    pub max_routes: u16,
}

impl RplConfig {
    /// Contiki 3.x, as on a Cooja mote: core/net/rpl/{rpl-conf.h,rpl-private.h,rpl-mrhof.c}, core/net/link-stats.c,
    /// platform/cooja/contiki-conf.h.
    ///
    /// Other platforms remember fewer neighbours and routes: 8 and 20 where nothing else is said
    /// (core/contiki-default-conf.h).
    pub const CONTIKI_3: Self = Self {
        dio_interval_min_ns: 4_096_000_000,
        dio_doublings: 8,
        dio_redundancy: 10,
        dio_refreshes_routes: true,
        dis_start_ns: 5_000_000_000,
        dis_interval_ns: 60_000_000_000,
        dao_delay_ns: 4_000_000_000,
        route_lifetime_ns: 1_800_000_000_000,
        no_path_delay_ns: 60_000_000_000,
        min_hop_rank_increase: 128,
        parent_switch_threshold: 96,
        max_rank_increase: 7 * 128,
        max_link_metric: 1_024,
        max_path_cost: 32_768,
        initial_etx: 2,
        no_ack_etx: 10,
        etx_weights: (30, 15),
        probing_interval_ns: 120_000_000_000,
        max_neighbours: 300,
        max_routes: 300,
    };

    /// Contiki-NG's storing mode, as on a Cooja mote: os/net/routing/rpl-classic, os/net/link-stats.c,
    /// arch/platform/cooja/contiki-conf.h. (What Contiki-NG uses by itself, rpl-lite, has no storing mode.)
    pub const CONTIKI_NG: Self = Self {
        no_ack_etx: 16,
        etx_weights: (25, 10),
        probing_interval_ns: 60_000_000_000,
        ..Self::CONTIKI_3
    };

    /// The defaults of RFC 6550 §17 and RFC 6719 §5. On DIS, ETX, probing and tables they are silent: those are
    /// [`CONTIKI_3`](Self::CONTIKI_3)'s.
    pub const STANDARD: Self = Self {
        dio_interval_min_ns: 8_000_000,
        dio_doublings: 20,
        dio_refreshes_routes: false,
        dao_delay_ns: 1_000_000_000,
        min_hop_rank_increase: 256,
        parent_switch_threshold: 192,
        max_rank_increase: 0,
        max_link_metric: 512,
        ..Self::CONTIKI_3
    };
}
