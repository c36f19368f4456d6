//! The keys of a mesh: where nodes stand, what their radios do, and how datagrams find their way.

use coapace_sim::Span;
use coapace_sim::mesh::{
    Delivery, LogDistance, LowpanConfig, MacConfig, Propagation, RadioConfig, TwoRay, UnitDisk,
};
use coapace_sim::mobility::{GaussMarkov, Manhattan, Movement, Pursue, RandomWaypoint};
use coapace_sim::topology::TOPOLOGIES;

use crate::routing::Routing;
use crate::schema::document::TomlValue;
use crate::schema::kind::Or;
use crate::schema::measure::Measure;
use crate::schema::preset::Preset;
use crate::schema::scalar::{Choice, ListOf, OneLine, PERCENTAGE, SWITCH, Scalar, TIME, Whole};
use crate::schema::table::{Bare, Misfit, keys, table};
use crate::schema::words::{tagged, tagged_table};

/// The kind of a topology that a file has.
const FILE: &str = "file";

keys! {
    /// A mesh of IEEE 802.15.4 radios at 2.4 GHz (250 kbit/s) under 6LoWPAN, in place of hops. Its nodes are the border
    /// router, the sinks, which are the servers, and the clients: all others. The border router relays only, unless it is
    /// a sink.
    pub struct Mesh {
        /// The places of the nodes.
        topology: Topology, table();
        /// The radios: which nodes hear each other, and what energy that takes.
        radio: RadioConfig, table();
        /// The sharing of the channel.
        mac: Preset<MacConfig>, table();
        /// The division of datagrams into frames (RFC 4944, RFC 6282).
        lowpan: Preset<LowpanConfig>, table();
        /// The routes of datagrams.
        routing: Routing, tagged_table();
        /// The movement of nodes.
        mobility: Mobility, tagged_table();
    }
}

keys! {
    /// The places of the nodes, and which of them are border router and sinks.
    pub struct Topology checked by file_is_named {
        /// A topology that comes with the program, or `file`.
        kind: &'static str, Choice(topologies) => "grid";
        /// Nodes, border router and sinks among them. A file has its own number.
        nodes: u32, Whole(3, 100_000) => 36;
        /// The distance from a node to the next.
        spacing: f64, Measure("m", 0.01, 10_000.0) => 10.0;
        /// The width in nodes, where that has a meaning, like in a grid.
        columns: Option<u32>, Or("automatic", Whole(1, 100_000)) => None;
        /// The number from which random places are drawn: places belong to the scenario, not to the seed of a run.
        draw: u32, Whole(0, 1_000_000) => 1;
        /// For the kind `file`: a Cooja simulation (`.csc`), whose radio medium counts where `radio.propagation` is not
        /// said, or lines of `node time x y`, of which the first of each node counts. It is sought
        /// beside the scenario's own file, then in the working directory.
        file: Option<String>, Or("none", OneLine(1_000)) => None;
        /// The border router, by its number from 0, of a Cooja simulation in the order of the file; if it is not said, the topology's; of a file, the mote that a Cooja simulation describes as root, border router or sink, else 0.
        root: Option<u32>, Or("automatic", Whole(0, 99_999)) => None;
        /// The sinks by their numbers, the primary one first; if none is said, the topology's; of a file, the mote described as root, else 1.
        sinks: Vec<u32>, ListOf(16, Whole(0, 99_999), "numbers of nodes") => Vec::new();
    }
}

keys! {
    /// The radios: which nodes hear each other, and the current that a radio draws. The currents and the voltage are those of the CC2420's data
    /// sheet (transmitting at 0 dBm, receiving, idle without oscillator).
    for RadioConfig = RadioConfig::UNIT_DISK {
        /// The model of propagation: which nodes hear each other.
        propagation: tagged_table();
        /// The share of frames that a link delivers, collisions aside. It is one share, or drawn for every frame and receiver:
        /// uniformly between two shares, or from more, which are the quantiles of a distribution at equal distances from the
        /// least to the greatest.
        delivery: Shares(101);
        /// Bytes in front of every frame: preamble, start of frame and length.
        phy_header_bytes: Whole(0, 64);
        /// Bytes of a frame's checksum that take time: 2 in the standard, none on a Cooja mote.
        checksum_bytes: Whole(0, 2);
        /// Nodes are switched on at random moments of this span.
        start_spread: TIME;
        /// The current while a radio sends.
        transmit_current as transmit_ma: Measure("mA", 0.0, 10_000.0);
        /// The current while it receives or listens.
        receive_current as receive_ma: Measure("mA", 0.0, 10_000.0);
        /// The current while it is switched off.
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
    /// The unit disk graph of Cooja (UDGM), with Cooja's names of both ratios: within the range of interference a transmission
    /// destroys every frame that it overlaps.
    for UnitDisk = UnitDisk::NARROW, checked by disks_grow {
        /// The range within which frames are received.
        range as range_m: Measure("m", 0.01, 10_000.0);
        /// The range within which transmissions destroy other frames.
        interference as interference_m: Measure("m", 0.001, 100_000.0);
        /// The range within which a transmission is noticed when the channel is assessed.
        sense as sense_m: Measure("m", 0.0, 100_000.0);
        /// Nodes at exactly the distance of a range are outside, as in Cooja; at exactly `range` they still receive.
        open_edge: SWITCH;
        /// The share of frames that leave their sender, drawn once for all receivers. Nobody receives the others, and they
        /// disturb nobody.
        success_ratio_tx: PERCENTAGE;
        /// The share of frames received at the edge of the range, drawn for each receiver; at distance d it is
        /// 1 − (d/range)²·(1 − ratio). A frame that a receiver misses still destroys others there.
        success_ratio_rx: PERCENTAGE;
    }
}

keys! {
    /// Log-distance path loss with log-normal shadowing. Sensitivity, the threshold of clear channel assessment and
    /// capture are those of the CC2420's data sheet; the others are illustrative.
    for LogDistance = LogDistance::CC2420 {
        /// Transmit power.
        power as power_dbm: Measure("dBm", -100.0, 50.0);
        /// Loss over the first metre: 40 dB is that of free space at 2.4 GHz.
        first_metre as first_metre_db: Measure("dB", 0.0, 200.0);
        /// The exponent of path loss: 2 in free space, 3 to 4 indoors.
        exponent: Measure("", 0.0, 10.0);
        /// The standard deviation of the obstacle between two nodes.
        shadowing as shadowing_db: Measure("dB", 0.0, 50.0);
        /// The power at which half of the frames are received.
        sensitivity as sensitivity_dbm: Measure("dBm", -200.0, 50.0);
        /// The power from which the channel is found busy.
        sense as sense_dbm: Measure("dBm", -200.0, 50.0);
        /// The lead that a frame needs over each that overlaps.
        capture as capture_db: Measure("dB", 0.0, 100.0);
    }
}

keys! {
    /// Two rays, one direct and one reflected by the ground. The defaults are those of `log-distance`; height and reflection are
    /// illustrative.
    for TwoRay = TwoRay::CC2420 {
        /// Transmit power.
        power as power_dbm: Measure("dBm", -100.0, 50.0);
        /// Height of the antennas above ground.
        height as height_m: Measure("m", 0.01, 1_000.0);
        /// The share of the amplitude that the ground reflects.
        reflection: PERCENTAGE;
        /// The power at which half of the frames are received.
        sensitivity as sensitivity_dbm: Measure("dBm", -200.0, 50.0);
        /// The power from which the channel is found busy.
        sense as sense_dbm: Measure("dBm", -200.0, 50.0);
        /// The lead that a frame needs over each that overlaps.
        capture as capture_db: Measure("dB", 0.0, 100.0);
    }
}

keys! {
    /// The division of datagrams into frames. The defaults shown are those of the preset `contiki-3`; with another preset
    /// they are its own.
    for LowpanConfig = LowpanConfig::CONTIKI_3 {
        /// The largest frame, MAC header and checksum included.
        max_frame_bytes: Whole(64, 2_047);
        /// The hop limit of datagrams.
        hop_limit: Whole(1, 255);
        /// Datagrams that a node puts together at the same time.
        reassembly_contexts: Whole(1, 255);
        /// The time that a node waits for all fragments of a datagram.
        reassembly_timeout: TIME;
        /// Preference of newer datagrams: any datagram of one frame ends all that are being put together, and a first fragment
        /// of another sender ends one if there is no room. If not, that fragment is dropped.
        prefer_new: SWITCH;
    }
    presets {
        /// The source of the other keys' defaults: Contiki 3.x (core/net/ipv6/sicslowpan.c), or Contiki 2.7 on a Z1
        /// (core/net/sicslowpan.c).
        "contiki-3" => LowpanConfig::CONTIKI_3,
        "contiki-2.7" => LowpanConfig::CONTIKI_2_7,
    }
}

tagged! {
    /// The movement of nodes.
    pub enum Mobility {
        /// Nodes stand.
        None(Bare) = "none",
        /// Straight to a destination drawn at random, a pause, and on to the next.
        RandomWaypoint(RandomWaypoint) = "random-waypoint",
        /// Speed and direction change a little at every step around their means.
        GaussMarkov(GaussMarkov) = "gauss-markov",
        /// Along the streets of a grid, with turns at crossings.
        Manhattan(Manhattan) = "manhattan",
        /// After a leader who goes to one random destination after the other.
        Pursue(Pursue) = "pursue",
        /// From position to position of a file.
        File(Waypoints) = "file",
    }
}

keys! {
    /// Positions from a file.
    pub struct Waypoints {
        /// Lines of `node time x y`, as BonnMotion writes them for Cooja.
        file: String, OneLine(1_000);
    }
}

keys! {
    /// The keys of every model: `random-waypoint`, `gauss-markov`, `manhattan` and `pursue`. The border router and the sinks stand
    /// still. The defaults are those of BonnMotion, where it has any.
    for Movement = Movement::DEFAULT, checked by way_fits {
        /// The slowest speed of a node.
        min_speed as speed_m_s.0: Measure("m/s", 0.001, 1_000.0);
        /// The fastest speed.
        max_speed as speed_m_s.1: Measure("m/s", 0.001, 1_000.0);
        /// The distance that nodes may go beyond the places of the topology.
        margin as margin_m: Measure("m", 0.0, 100_000.0);
        /// The time from one position to the next.
        step: TIME;
    }
}

keys! {
    /// Straight to a destination drawn at random, a pause, and on to the next.
    for RandomWaypoint = RandomWaypoint::DEFAULT {
        ..movement: Movement;
        /// The longest rest between two ways.
        pause: TIME;
    }
}

keys! {
    /// Speed and direction change a little at every step around their means.
    for GaussMarkov = GaussMarkov::DEFAULT {
        ..movement: Movement;
        /// The share of speed and direction that stays from one step to the next.
        alpha: PERCENTAGE;
        /// The standard deviation of speed.
        speed_deviation as speed_deviation_m_s: Measure("m/s", 0.0, 1_000.0);
        /// The standard deviation of the direction.
        turn_deviation as turn_deviation_deg: Measure("deg", 0.0, 360.0);
    }
}

keys! {
    /// Along the streets of a grid, with turns at crossings.
    for Manhattan = Manhattan::DEFAULT {
        ..movement: Movement;
        /// The distance from a crossing to the next.
        block as block_m: Measure("m", 0.01, 100_000.0);
        /// The probability of a turn at a crossing.
        turn_probability: PERCENTAGE;
    }
}

keys! {
    /// After a leader who goes to one random destination after the other.
    for Pursue = Pursue::DEFAULT {
        ..movement: Movement;
        /// The share of the way to the leader that a node aims at in one step.
        aggressiveness: PERCENTAGE;
        /// The largest deviation from that point along each axis.
        swerve as swerve_m: Measure("m", 0.0, 100_000.0);
    }
}

/// Returns the kinds of topologies.
fn topologies() -> Vec<(&'static str, &'static str)> {
    TOPOLOGIES.iter().map(|topology| topology.name).chain([FILE]).map(|name| (name, name)).collect()
}

fn file_is_named(topology: &Topology) -> Result<(), Misfit> {
    let (is_file, is_named) = (topology.kind == FILE, topology.file.is_some());
    Misfit::unless(!is_file || is_named, "file", "is missing: the kind \"file\" needs its name")?;
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

/// One share, or up to so many in ascending order.
struct Shares(usize);

impl Scalar for Shares {
    type Value = Delivery;
    fn accepts(&self) -> String {
        format!("{}, or 2 to {} in ascending order", Scalar::accepts(&PERCENTAGE), self.0)
    }
    fn parse(&self, value: &TomlValue) -> Option<Delivery> {
        Delivery::new(match value {
            TomlValue::List(list) if (2..=self.0).contains(&list.len()) => {
                list.iter().map(|share| PERCENTAGE.parse(&share.value)).collect::<Option<_>>()?
            }
            TomlValue::List(_) => return None,
            one => vec![PERCENTAGE.parse(one)?],
        })
    }
    fn text(&self, delivery: &Delivery) -> String {
        let shares: Vec<_> = match delivery.quantiles() {
            [one] => [one, one].map(|share| PERCENTAGE.text(share)).into(),
            shares => shares.iter().map(|share| PERCENTAGE.text(share)).collect(),
        };
        format!("[{}]", shares.join(", "))
    }
    fn hint(&self, value: &TomlValue) -> String {
        Scalar::hint(&PERCENTAGE, value)
    }
}
