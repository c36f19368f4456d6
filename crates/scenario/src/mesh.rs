//! The keys of a mesh: the positions of its nodes, their radios, and the routes of datagrams.

use coapace_sim::Span;
use coapace_sim::mesh::{
    Delivery, LogDistance, LowpanConfig, MacConfig, Propagation, RadioConfig, TwoRay, UnitDisk,
};
use coapace_sim::mobility::{GaussMarkov, Manhattan, Movement, Pursue, RandomWaypoint};
use coapace_sim::topology::TOPOLOGIES;
use serde_json::{Value, json};

use crate::routing::Routing;
use crate::schema::document::TomlValue;
use crate::schema::json::any_of;
use crate::schema::kind::Or;
use crate::schema::measure::Measure;
use crate::schema::preset::Preset;
use crate::schema::scalar::{Choice, ListOf, OneLine, PERCENTAGE, SWITCH, Scalar, TIME, Whole};
use crate::schema::table::{Bare, Misfit, keys, table};
use crate::schema::words::{tagged, tagged_table};

/// The kind of a topology that is read from a file.
const FILE: &str = "file";

keys! {
    /// A mesh of IEEE 802.15.4 radios at 2.4 GHz (250 kbit/s) under 6LoWPAN, in place of hops. Its nodes are the border
    /// router, the sinks (the servers), and the clients (all other nodes). A border router that is not a sink only
    /// relays.
    pub struct Mesh {
        /// The positions of the nodes, and which nodes are the border router and the sinks.
        topology: Topology, table();
        /// The radios: which nodes hear each other, and the current that a radio draws.
        radio: RadioConfig, table();
        /// Medium access: how nodes share the channel.
        mac: Preset<MacConfig>, table();
        /// 6LoWPAN: the division of datagrams into frames (RFC 4944, RFC 6282).
        lowpan: Preset<LowpanConfig>, table();
        /// The routes of datagrams.
        routing: Routing, tagged_table();
        /// The movement of nodes.
        mobility: Mobility, tagged_table();
    }
}

keys! {
    /// The positions of the nodes, and which nodes are the border router and the sinks.
    pub struct Topology checked by file_is_named {
        /// The name of a built-in topology, or "file" for positions from a file.
        kind: &'static str, Choice(topologies) => "grid";
        /// The number of nodes, border router and sinks included. With the kind `file` it is not used: every position
        /// in the file is a node.
        nodes: u32, Whole(3, 100_000) => 36;
        /// The distance from a node to its nearest neighbours.
        spacing: f64, Measure("m", 0.01, 10_000.0) => 10.0;
        /// The width of a topology that has one, such as a grid, in nodes. With "automatic" the topology decides.
        columns: Option<u32>, Or("automatic", Whole(1, 100_000)) => None;
        /// The seed of a topology with random positions. Positions do not depend on the seeds of runs, so all runs of a
        /// scenario have the same positions.
        draw: u32, Whole(0, 1_000_000) => 1;
        /// For the kind `file`: a Cooja simulation (`.csc`), whose radio medium applies unless `radio.propagation` is
        /// set; or a file of lines `node time x y`, where the first line of each node has its position. The file is
        /// looked for in the folder of the scenario, then in the working directory.
        file: Option<String>, Or("none", OneLine(1_000)) => None;
        /// The number of the border router, from 0; motes of a Cooja simulation are numbered in the order of the file.
        /// "automatic" takes the border router of a built-in topology, or the first mote that a Cooja simulation
        /// describes as root, border router or sink, or else node 0.
        root: Option<u32>, Or("automatic", Whole(0, 99_999)) => None;
        /// The numbers of the sinks, the primary sink first. An empty list takes the sinks of a built-in topology, or
        /// the mote that a Cooja simulation describes as root, or else node 1.
        sinks: Vec<u32>, ListOf(16, Whole(0, 99_999), "numbers of nodes") => Vec::new();
    }
}

keys! {
    /// The radios: which nodes hear each other, and the current that a radio draws. The currents and the voltage come from the CC2420's data
    /// sheet (transmitting at 0 dBm, receiving, idle without oscillator).
    for RadioConfig = RadioConfig::UNIT_DISK {
        /// The model of propagation, which decides which nodes hear each other.
        propagation: tagged_table();
        /// The share of frames that a link delivers if there are no collisions: one share; or several, between which a
        /// share is drawn for every frame and receiver. Two are the bounds of a uniform distribution. More are
        /// quantiles of a distribution, in equal steps of probability from the least to the greatest.
        delivery: Shares(101);
        /// Bytes in front of every frame: preamble, start of frame and length.
        phy_header_bytes: Whole(0, 64);
        /// Bytes of checksum that a frame has on the air: 2 in the standard, none on a Cooja mote.
        checksum_bytes: Whole(0, 2);
        /// The time after the start of a run within which every node is switched on, at a random moment.
        start_spread: TIME;
        /// The current while a radio sends.
        transmit_current as transmit_ma: Measure("mA", 0.0, 10_000.0);
        /// The current while a radio receives or listens.
        receive_current as receive_ma: Measure("mA", 0.0, 10_000.0);
        /// The current while a radio is switched off.
        sleep_current as sleep_ma: Measure("mA", 0.0, 10_000.0);
        /// The supply voltage.
        voltage: Measure("V", 0.1, 100.0);
    }
}

tagged! {
    for Propagation {
        UnitDisk(UnitDisk) = "unit-disk",
        LogDistance(LogDistance) = "log-distance",
        TwoRay(TwoRay) = "two-ray",
    }
}

keys! {
    /// The unit disk graph of Cooja (UDGM). Within the range of interference, a transmission destroys every frame that
    /// it overlaps. The keys of both success ratios have Cooja's names.
    for UnitDisk = UnitDisk::NARROW, checked by disks_grow {
        /// The range within which frames are received.
        range as range_m: Measure("m", 0.01, 10_000.0);
        /// The range within which transmissions destroy other frames.
        interference as interference_m: Measure("m", 0.001, 100_000.0);
        /// The range within which a transmission is noticed when the channel is assessed.
        sense as sense_m: Measure("m", 0.0, 100_000.0);
        /// Whether a node at exactly the distance of a range is outside of it, as in Cooja. At exactly `range` it
        /// receives frames in either case.
        open_edge: SWITCH;
        /// The share of frames that leave their sender, drawn once for all receivers. Other frames reach no receiver,
        /// and disturb none.
        success_ratio_tx: PERCENTAGE;
        /// The share of frames received at the edge of `range`, drawn for each receiver. At distance d the share is 1 −
        /// (d/range)²·(1 − ratio). A frame that a receiver misses still destroys other frames there.
        success_ratio_rx: PERCENTAGE;
    }
}

keys! {
    /// Log-distance path loss with log-normal shadowing. Sensitivity, the threshold of clear channel assessment and
    /// capture come from the CC2420's data sheet; the others are illustrative.
    for LogDistance = LogDistance::CC2420 {
        /// Transmit power.
        power as power_dbm: Measure("dBm", -100.0, 50.0);
        /// Loss over the first metre: 40 dB, as in free space at 2.4 GHz.
        first_metre as first_metre_db: Measure("dB", 0.0, 200.0);
        /// The exponent of path loss: 2 in free space, 3 to 4 indoors.
        exponent: Measure("", 0.0, 10.0);
        /// The standard deviation of the loss that obstacles between two nodes add.
        shadowing as shadowing_db: Measure("dB", 0.0, 50.0);
        /// The received power at which half of the frames get through.
        sensitivity as sensitivity_dbm: Measure("dBm", -200.0, 50.0);
        /// The received power from which on a node finds the channel busy.
        sense as sense_dbm: Measure("dBm", -200.0, 50.0);
        /// The margin by which a frame must be stronger than each frame that overlaps it, to be received.
        capture as capture_db: Measure("dB", 0.0, 100.0);
    }
}

keys! {
    /// Two rays, one direct and one reflected by the ground. The defaults are taken from `log-distance`; height and reflection are
    /// illustrative.
    for TwoRay = TwoRay::CC2420 {
        /// Transmit power.
        power as power_dbm: Measure("dBm", -100.0, 50.0);
        /// Height of the antennas above ground.
        height as height_m: Measure("m", 0.01, 1_000.0);
        /// The share of the amplitude that the ground reflects.
        reflection: PERCENTAGE;
        /// The received power at which half of the frames get through.
        sensitivity as sensitivity_dbm: Measure("dBm", -200.0, 50.0);
        /// The received power from which on a node finds the channel busy.
        sense as sense_dbm: Measure("dBm", -200.0, 50.0);
        /// The margin by which a frame must be stronger than each frame that overlaps it, to be received.
        capture as capture_db: Measure("dB", 0.0, 100.0);
    }
}

keys! {
    /// The division of datagrams into frames. The defaults shown belong to the preset `contiki-3`; every preset has its
    /// own.
    for LowpanConfig = LowpanConfig::CONTIKI_3 {
        /// The largest frame, MAC header and checksum included.
        max_frame_bytes: Whole(64, 2_047);
        /// The hop limit of datagrams.
        hop_limit: Whole(1, 255);
        /// The maximum number of datagrams that a node reassembles at the same time.
        reassembly_contexts: Whole(1, 255);
        /// The time that a node waits for all fragments of a datagram.
        reassembly_timeout: TIME;
        /// Whether newer datagrams end the reassembly of older ones. Then a datagram that arrives in one frame ends all
        /// reassemblies of the node, and a first fragment from another sender ends one if the node has no room left. If
        /// not, a first fragment that finds no room is dropped.
        prefer_new: SWITCH;
    }
    presets {
        /// The source of the other keys' defaults. `contiki-3`: Contiki 3.x (core/net/ipv6/sicslowpan.c).
        /// `contiki-2.7`: Contiki 2.7 on a Z1 (core/net/sicslowpan.c).
        "contiki-3" => LowpanConfig::CONTIKI_3,
        "contiki-2.7" => LowpanConfig::CONTIKI_2_7,
    }
}

tagged! {
    /// The movement of nodes.
    pub enum Mobility {
        /// Nodes do not move.
        None(Bare) = "none",
        /// Each node moves straight to a random destination, pauses, and moves on to the next.
        RandomWaypoint(RandomWaypoint) = "random-waypoint",
        /// The speed and direction of a node vary a little around their means at every step.
        GaussMarkov(GaussMarkov) = "gauss-markov",
        /// Nodes move along the streets of a grid, and turn at some crossings.
        Manhattan(Manhattan) = "manhattan",
        /// All nodes follow a leader, which moves from one random destination to the next.
        Pursue(Pursue) = "pursue",
        /// Nodes take the positions that a file gives them over time.
        File(Waypoints) = "file",
    }
}

keys! {
    /// Positions over time from a file.
    pub struct Waypoints {
        /// The name of a file with lines `node time x y`, as BonnMotion writes them for Cooja.
        file: String, OneLine(1_000);
    }
}

keys! {
    /// The keys that the models `random-waypoint`, `gauss-markov`, `manhattan` and `pursue` have in common. The border
    /// router and the sinks do not move. The defaults come from BonnMotion, where it has any.
    for Movement = Movement::DEFAULT, checked by way_fits {
        /// The slowest speed of a node.
        min_speed as speed_m_s.0: Measure("m/s", 0.001, 1_000.0);
        /// The fastest speed of a node.
        max_speed as speed_m_s.1: Measure("m/s", 0.001, 1_000.0);
        /// The distance by which nodes may leave the rectangle around the positions of the topology.
        margin as margin_m: Measure("m", 0.0, 100_000.0);
        /// The time from one position of a moving node to its next.
        step: TIME;
    }
}

keys! {
    /// Each node moves straight to a random destination, pauses, and moves on to the next.
    for RandomWaypoint = RandomWaypoint::DEFAULT {
        ..movement: Movement;
        /// The longest pause at a destination.
        pause: TIME;
    }
}

keys! {
    /// The speed and direction of a node vary a little around their means at every step.
    for GaussMarkov = GaussMarkov::DEFAULT {
        ..movement: Movement;
        /// The share of its speed and direction that a node keeps from one step to the next.
        alpha: PERCENTAGE;
        /// The standard deviation of the speed.
        speed_deviation as speed_deviation_m_s: Measure("m/s", 0.0, 1_000.0);
        /// The standard deviation of the direction.
        turn_deviation as turn_deviation_deg: Measure("deg", 0.0, 360.0);
    }
}

keys! {
    /// Nodes move along the streets of a grid, and turn at some crossings.
    for Manhattan = Manhattan::DEFAULT {
        ..movement: Movement;
        /// The distance from a crossing to the next.
        block as block_m: Measure("m", 0.01, 100_000.0);
        /// The probability that a node turns at a crossing.
        turn_probability: PERCENTAGE;
    }
}

keys! {
    /// All nodes follow a leader, which moves from one random destination to the next.
    for Pursue = Pursue::DEFAULT {
        ..movement: Movement;
        /// The share of its distance to the leader that a node tries to cover in one step.
        aggressiveness: PERCENTAGE;
        /// The largest random deviation, along each axis, from the point that a node aims at in a step.
        swerve as swerve_m: Measure("m", 0.0, 100_000.0);
    }
}

/// Returns the names of all topologies: the built-in ones, and `file`.
fn topologies() -> Vec<(&'static str, &'static str)> {
    TOPOLOGIES.iter().map(|topology| topology.name).chain([FILE]).map(|name| (name, name)).collect()
}

fn file_is_named(topology: &Topology) -> Result<(), Misfit> {
    let (is_file, is_named) = (topology.kind == FILE, topology.file.is_some());
    Misfit::unless(!is_file || is_named, "file", "is missing: the kind \"file\" needs its name")?;
    // A named file would otherwise be ignored, and the mesh would be a grid.
    Misfit::unless(is_file || !is_named, "file", "needs the kind \"file\"")
}

fn way_fits(movement: &Movement) -> Result<(), Misfit> {
    let (slowest, fastest) = movement.speed_m_s;
    Misfit::unless(slowest <= fastest, "max_speed", "must not be below `min_speed`")?;
    Misfit::unless(movement.step >= Span::from_millis(1), "step", "must be 1 ms or more")
}

fn disks_grow(disk: &UnitDisk) -> Result<(), Misfit> {
    Misfit::unless(disk.interference_m >= disk.range_m, "interference", "must not be below `range`")
}

/// The kind of `radio.delivery`: one share, or a list of at most this many shares in ascending order.
struct Shares(usize);

impl Scalar for Shares {
    type Value = Delivery;
    fn accepts(&self) -> String {
        format!("{}, or 2 to {} in ascending order", Scalar::accepts(&PERCENTAGE), self.0)
    }
    fn schema(&self) -> Value {
        let share = Scalar::schema(&PERCENTAGE);
        any_of([share.clone(), json!({ "type": "array", "minItems": 2, "maxItems": self.0, "items": share })])
    }
    fn parse(&self, value: &TomlValue) -> Option<Delivery> {
        Delivery::new(match value {
            TomlValue::List(list) if (2..=self.0).contains(&list.len()) => {
                list.iter().map(|share| PERCENTAGE.parse(&share.value)).collect::<Option<_>>()?
            }
            // One share is written without a list.
            TomlValue::List(_) => return None,
            one => vec![PERCENTAGE.parse(one)?],
        })
    }
    fn text(&self, delivery: &Delivery) -> String {
        let shares: Vec<_> = match delivery.quantiles() {
            // A list has two shares or more, so a single one is written twice to be read again.
            [one] => [one, one].map(|share| PERCENTAGE.text(share)).into(),
            shares => shares.iter().map(|share| PERCENTAGE.text(share)).collect(),
        };
        format!("[{}]", shares.join(", "))
    }
    fn hint(&self, value: &TomlValue) -> String {
        Scalar::hint(&PERCENTAGE, value)
    }
}
