//! The keys of a mesh: where nodes stand, what their radios do, and how datagrams find their way.

use coapace_sim::Span;
use coapace_sim::mesh::{LowpanConfig, Propagation as SimPropagation};
use coapace_sim::mobility::MOBILITIES;
use coapace_sim::topology::TOPOLOGIES;

use crate::mac::Mac;
use crate::routing::Routing;
use crate::schema::document::Value;
use crate::schema::kind::Or;
use crate::schema::measure::Measure;
use crate::schema::scalar::{Listed, OneLine, Percentage, Scalar, Time, Whole};
use crate::schema::table::{Misfit, keys, table};
use crate::schema::words::{tagged, tagged_table};

/// The kind of a topology or of mobility that a file has.
const FILE: &str = "file";

/// The kind of mobility of nodes that stand.
pub(crate) const NONE: &str = "none";

keys! {
    /// A mesh of IEEE 802.15.4 radios at 2.4 GHz (250 kbit/s) under 6LoWPAN, in place of hops. Its nodes are the border
    /// router, the sinks, which are the servers, and the clients: all others. The border router relays only, unless it is
    /// a sink.
    pub struct Mesh {
        /// Where the nodes stand.
        topology: Topology, table();
        /// Who hears whom, and what that costs.
        radio: Radio, table();
        /// How nodes share the channel.
        mac: Mac, table();
        /// How datagrams become frames (RFC 4944, RFC 6282).
        lowpan: Lowpan, table();
        /// How datagrams find their way.
        routing: Routing, tagged_table();
        /// Where nodes go.
        mobility: Mobility, table();
    }
}

keys! {
    /// Where the nodes stand, and which of them are border router and sinks.
    pub struct Topology checked by file_is_named {
        /// One of those that come with the program, or `file`.
        kind: &'static str, Listed(topologies) => "grid";
        /// Nodes, border router and sinks among them. A file has its own number.
        nodes: u32, Whole(3, 100_000) => 36;
        /// From a node to the next.
        spacing: f64, Measure("m", 0.01, 10_000.0) => 10.0;
        /// How wide it is, where that has a meaning, as in a grid.
        columns: Option<u32>, Or("automatic", Whole(1, 100_000)) => None;
        /// The number from which random places are drawn: places belong to the scenario, not to the seed of a run.
        draw: u32, Whole(0, 1_000_000) => 1;
        /// For the kind `file`: a Cooja simulation (`.csc`), whose radio medium counts where `radio.propagation` and
        /// `radio.delivery` are not said, or lines of `node time x y`, of which the first of each node counts. It is sought
        /// beside the scenario's own file, then in the working directory.
        file: Option<String>, Or("none", OneLine(1_000)) => None;
        /// The border router, by its number from 0, of a Cooja simulation in the order of the file; if it is not said, the topology's; of a file, the mote that a Cooja simulation describes as root, border router or sink, else 0.
        root: Option<u32>, Or("automatic", Whole(0, 99_999)) => None;
        /// The sinks by their numbers, the primary one first; if none is said, the topology's; of a file, the mote described as root, else 1.
        sinks: Vec<u32>, Nodes(16) => Vec::new();
    }
}

keys! {
    /// Who hears whom, and the current that a radio draws. The currents and the voltage are those of the CC2420's data
    /// sheet (transmitting at 0 dBm, receiving, idle without oscillator).
    pub struct Radio {
        /// Who hears whom.
        propagation: Propagation, tagged_table();
        /// The share of frames that a link delivers, collisions aside: one, or two between which it is drawn for every
        /// frame and receiver.
        delivery: (f64, f64), Delivery => (1.0, 1.0);
        /// Bytes in front of every frame: preamble, start of frame and length.
        phy_header_bytes: u32, Whole(0, 64) => 6;
        /// Nodes are switched on at random moments of this span.
        start_spread: Span, Time => Span::from_secs(1);
        /// Drawn while it sends.
        transmit_current: f64, Measure("mA", 0.0, 10_000.0) => 17.4;
        /// Drawn while it receives or listens.
        receive_current: f64, Measure("mA", 0.0, 10_000.0) => 18.8;
        /// Drawn while it is switched off.
        sleep_current: f64, Measure("mA", 0.0, 10_000.0) => 0.02;
        /// What it is supplied with.
        voltage: f64, Measure("V", 0.1, 100.0) => 3.0;
    }
}

tagged! {
    /// Who hears whom.
    pub enum Propagation {
        /// A disk.
        UnitDisk(UnitDisk) = "unit-disk",
        /// Power falls with the logarithm of distance.
        LogDistance(LogDistance) = "log-distance",
        /// A direct ray and one that the ground reflects.
        TwoRay(TwoRay) = "two-ray",
    }
}

keys! {
    /// The unit disk graph of Cooja: what overlaps within the range of interference destroys what is received.
    pub struct UnitDisk checked by disks_grow {
        /// Up to here frames are received.
        range: f64, Measure("m", 0.01, 10_000.0) => 10.0;
        /// Up to here transmissions destroy what is received.
        interference: f64, Measure("m", 0.001, 100_000.0) => 20.0;
        /// Up to here a transmission is noticed when the channel is assessed.
        sense: f64, Measure("m", 0.0, 100_000.0) => 10.0;
        /// The share of frames received at the edge of the range; at distance d it is 1 − (d/range)²·(1 − edge).
        edge_delivery: f64, Percentage => 1.0;
    }
}

keys! {
    /// Log-distance path loss with log-normal shadowing. Sensitivity, the threshold of clear channel assessment and
    /// capture are those of the CC2420's data sheet; the others are illustrative.
    pub struct LogDistance {
        /// Transmit power.
        power: f64, Measure("dBm", -100.0, 50.0) => 0.0;
        /// Loss over the first metre: 40 dB is that of free space at 2.4 GHz.
        first_metre: f64, Measure("dB", 0.0, 200.0) => 40.0;
        /// How fast power falls: 2 in free space, 3 to 4 indoors.
        exponent: f64, Measure("", 0.0, 10.0) => 3.0;
        /// The standard deviation of what stands between two nodes.
        shadowing: f64, Measure("dB", 0.0, 50.0) => 4.0;
        /// The power at which half of the frames are received.
        sensitivity: f64, Measure("dBm", -200.0, 50.0) => -95.0;
        /// The power from which the channel is found busy.
        sense: f64, Measure("dBm", -200.0, 50.0) => -77.0;
        /// By how much a frame must be stronger than each that overlaps.
        capture: f64, Measure("dB", 0.0, 100.0) => 3.0;
    }
}

keys! {
    /// Two rays. Defaults as those of `log-distance`; height and reflection are illustrative.
    pub struct TwoRay {
        /// Transmit power.
        power: f64, Measure("dBm", -100.0, 50.0) => 0.0;
        /// Height of the antennas above ground.
        height: f64, Measure("m", 0.01, 1_000.0) => 1.0;
        /// The share of the amplitude that the ground reflects.
        reflection: f64, Percentage => 0.7;
        /// The power at which half of the frames are received.
        sensitivity: f64, Measure("dBm", -200.0, 50.0) => -95.0;
        /// The power from which the channel is found busy.
        sense: f64, Measure("dBm", -200.0, 50.0) => -77.0;
        /// By how much a frame must be stronger than each that overlaps.
        capture: f64, Measure("dB", 0.0, 100.0) => 3.0;
    }
}

keys! {
    /// How datagrams become frames. Defaults as in Contiki 3.x (core/net/ipv6/sicslowpan.c).
    pub struct Lowpan {
        /// The largest frame, MAC header and checksum included.
        max_frame_bytes: u16, Whole(64, 2_047) => 127;
        /// The hop limit of datagrams.
        hop_limit: u8, Whole(1, 255) => 64;
        /// Datagrams that a node puts together at the same time.
        reassembly_contexts: u8, Whole(1, 255) => 2;
        /// How long it waits for all fragments of one.
        reassembly_timeout: Span, Time => Span::from_millis(1_250);
    }
}

keys! {
    /// Where nodes go. In models the border router and the sinks stand still. Defaults as in BonnMotion, as far as it has them.
    pub struct Mobility checked by way_is_named {
        /// `none`, one of the models that come with the program, or `file`.
        kind: &'static str, Listed(mobilities) => "none";
        /// For the kind `file`: lines of `node time x y`, as BonnMotion writes them for Cooja.
        file: Option<String>, Or("none", OneLine(1_000)) => None;
        /// The slowest that a node moves.
        min_speed: f64, Measure("m/s", 0.001, 1_000.0) => 0.5;
        /// The fastest.
        max_speed: f64, Measure("m/s", 0.001, 1_000.0) => 1.5;
        /// The longest rest between two ways, in models that have any.
        pause: Span, Time => Span::from_secs(60);
        /// How far nodes may go beyond where the topology ends.
        margin: f64, Measure("m", 0.0, 100_000.0) => 0.0;
        /// From one position to the next.
        step: Span, Time => Span::from_secs(1);
        /// `gauss-markov`: how much of speed and direction stays from one step to the next.
        alpha: f64, Percentage => 0.75;
        /// `gauss-markov`: the standard deviation of speed.
        speed_deviation: f64, Measure("m/s", 0.0, 1_000.0) => 0.5;
        /// `gauss-markov`: the standard deviation of the direction.
        turn_deviation: f64, Measure("deg", 0.0, 360.0) => 22.5;
        /// `manhattan`: from a crossing to the next.
        block: f64, Measure("m", 0.01, 100_000.0) => 10.0;
        /// `manhattan`: the probability of a turn at a crossing.
        turn_probability: f64, Percentage => 0.5;
        /// `pursue`: the share of the way to the leader that a node makes for in one step.
        aggressiveness: f64, Percentage => 0.5;
        /// `pursue`: how far beside that it may come out.
        swerve: f64, Measure("m", 0.0, 100_000.0) => 0.5;
    }
}

impl Lowpan {
    /// Returns the configuration of the simulator.
    pub fn config(&self) -> LowpanConfig {
        LowpanConfig {
            max_frame_bytes: self.max_frame_bytes,
            hop_limit: self.hop_limit,
            reassembly_contexts: self.reassembly_contexts,
            reassembly_timeout: self.reassembly_timeout,
        }
    }
}

/// Returns the kinds of topologies.
fn topologies() -> Vec<&'static str> {
    TOPOLOGIES.iter().map(|topology| topology.name).chain([FILE]).collect()
}

/// Returns the kinds of mobility.
fn mobilities() -> Vec<&'static str> {
    [NONE].into_iter().chain(MOBILITIES.iter().map(|mobility| mobility.name)).chain([FILE]).collect()
}

fn file_is_named(topology: &Topology) -> Result<(), Misfit> {
    goes_with_file(topology.kind, topology.file.as_deref())
}

fn way_is_named(mobility: &Mobility) -> Result<(), Misfit> {
    if mobility.min_speed > mobility.max_speed {
        return Err(Misfit::new("max_speed", "must not be below `min_speed`"));
    }
    if mobility.step < Span::from_millis(1) {
        return Err(Misfit::new("step", "must be 1 ms or more"));
    }
    goes_with_file(mobility.kind, mobility.file.as_deref())
}

fn goes_with_file(kind: &str, file: Option<&str>) -> Result<(), Misfit> {
    match (kind, file) {
        (FILE, None) => Err(Misfit::new("file", "is missing: the kind \"file\" needs its name")),
        (FILE, Some(_)) | (_, None) => Ok(()),
        (_, Some(_)) => Err(Misfit::new("file", "needs the kind \"file\"")),
    }
}

fn disks_grow(disk: &UnitDisk) -> Result<(), Misfit> {
    if disk.interference < disk.range {
        return Err(Misfit::new("interference", "must not be below `range`"));
    }
    Ok(())
}

/// One share, or two in ascending order.
struct Delivery;

impl Scalar for Delivery {
    type Value = (f64, f64);
    fn accepts(&self) -> String {
        format!("{}, or two in ascending order", Scalar::accepts(&Percentage))
    }
    fn parse(&self, value: &Value) -> Option<(f64, f64)> {
        let (least, most) = match value {
            Value::List(list) => match list.as_slice() {
                [least, most] => (Percentage.parse(&least.value)?, Percentage.parse(&most.value)?),
                _ => return None,
            },
            one => (Percentage.parse(one)?, Percentage.parse(one)?),
        };
        (least <= most).then_some((least, most))
    }
    fn text(&self, (least, most): &(f64, f64)) -> String {
        format!("[{}, {}]", Percentage.text(least), Percentage.text(most))
    }
}

/// At most so many nodes by their numbers.
struct Nodes(usize);

impl Scalar for Nodes {
    type Value = Vec<u32>;
    fn accepts(&self) -> String {
        format!("a list of at most {} numbers of nodes", self.0)
    }
    fn parse(&self, value: &Value) -> Option<Vec<u32>> {
        let Value::List(list) = value else { return None };
        if list.len() > self.0 {
            return None;
        }
        list.iter().map(|item| Whole(0, 99_999).parse(&item.value)).collect()
    }
    fn text(&self, value: &Vec<u32>) -> String {
        let texts: Vec<_> = value.iter().map(u32::to_string).collect();
        format!("[{}]", texts.join(", "))
    }
}

impl Propagation {
    /// Returns the configuration of the simulator.
    pub fn config(&self) -> SimPropagation {
        match self {
            Self::UnitDisk(disk) => SimPropagation::UnitDisk {
                range_m: disk.range,
                interference_m: disk.interference,
                sense_m: disk.sense,
                edge_delivery: disk.edge_delivery,
            },
            Self::LogDistance(loss) => SimPropagation::LogDistance {
                power_dbm: loss.power,
                first_metre_db: loss.first_metre,
                exponent: loss.exponent,
                shadowing_db: loss.shadowing,
                sensitivity_dbm: loss.sensitivity,
                sense_dbm: loss.sense,
                capture_db: loss.capture,
            },
            Self::TwoRay(rays) => SimPropagation::TwoRay {
                power_dbm: rays.power,
                height_m: rays.height,
                reflection: rays.reflection,
                sensitivity_dbm: rays.sensitivity,
                sense_dbm: rays.sense,
                capture_db: rays.capture,
            },
        }
    }
}
