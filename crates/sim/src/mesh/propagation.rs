//! Models of propagation: which nodes hear each other, and how well.

/// A model of propagation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Propagation {
    /// A frame is received within a range, and not beyond it.
    UnitDisk(UnitDisk),
    /// Received power falls with the logarithm of distance.
    LogDistance(LogDistance),
    /// Received power is the sum of two rays, one direct and one reflected by the ground.
    TwoRay(TwoRay),
}

/// Cooja's unit disk graph medium (contiki-ng/cooja, `radiomediums/UDGM.java`). A transmission in interference range destroys
/// any frame that it overlaps, whatever its power.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitDisk {
    /// The range within which frames are received, in metres.
    pub range_m: f64,
    /// The range within which transmissions destroy other frames, in metres.
    pub interference_m: f64,
    /// The range within which clear channel assessment notices a transmission, in metres. A node also notices any frame
    /// that it is receiving.
    pub sense_m: f64,
    /// True if nodes at exactly `interference_m` or `sense_m` are outside. In Cooja they are: only nodes nearer than the larger range
    /// are neighbours, and at exactly the range of reception the signal is too weak to be noticed.
    pub open_edge: bool,
    /// The share of frames that leave their sender. The other frames are not received, and disturb no node.
    pub success_ratio_tx: f64,
    /// The share of frames received at the very edge of `range_m`. At distance d the share is 1 − (d/range)²·(1 −
    /// ratio), and the outcome is drawn for each receiver. A frame that a receiver misses still destroys other frames
    /// there.
    pub success_ratio_rx: f64,
}

/// Received power that falls with the logarithm of distance. Each pair of nodes has an obstacle of its own between them
/// (log-normal shadowing). A transmission destroys a frame that it overlaps, unless the transmission is weaker than the
/// frame by `capture_db`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogDistance {
    /// Transmit power in dBm.
    pub power_dbm: f64,
    /// Loss over the first metre, in dB.
    pub first_metre_db: f64,
    /// The exponent of path loss: 2 in free space, 3 to 4 indoors.
    pub exponent: f64,
    /// The standard deviation of shadowing, in dB.
    pub shadowing_db: f64,
    /// Received power at which half of the frames are received, in dBm.
    pub sensitivity_dbm: f64,
    /// The least received power that clear channel assessment notices, in dBm.
    pub sense_dbm: f64,
    /// How much stronger than each overlapping frame a frame must be to survive, in dB.
    pub capture_db: f64,
}

/// Received power from two rays, one direct and one reflected by the ground, without shadowing. Near nodes may hear
/// each other badly where the rays cancel. Everything else is like [`LogDistance`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoRay {
    /// Transmit power in dBm.
    pub power_dbm: f64,
    /// Height of the antennas above ground, in metres.
    pub height_m: f64,
    /// The share of the amplitude that the ground reflects, from 0 to 1.
    pub reflection: f64,
    /// Received power at which half of the frames are received, in dBm.
    pub sensitivity_dbm: f64,
    /// The least received power that clear channel assessment notices, in dBm.
    pub sense_dbm: f64,
    /// How much stronger than each overlapping frame a frame must be to survive, in dB.
    pub capture_db: f64,
}

impl UnitDisk {
    /// Frames to 10 m, interference to 20 m, and no other loss.
    pub const NARROW: Self = Self {
        range_m: 10.0,
        interference_m: 20.0,
        sense_m: 10.0,
        open_edge: false,
        success_ratio_tx: 1.0,
        success_ratio_rx: 1.0,
    };
}

impl LogDistance {
    /// Sensitivity, clear channel assessment and capture of the CC2420's data sheet, and the loss of free space at 2.4 GHz over
    /// the first metre. Exponent and shadowing are illustrative.
    pub const CC2420: Self = Self {
        power_dbm: 0.0,
        first_metre_db: 40.0,
        exponent: 3.0,
        shadowing_db: 4.0,
        sensitivity_dbm: -95.0,
        sense_dbm: -77.0,
        capture_db: 3.0,
    };
}

impl TwoRay {
    /// The radio of [`LogDistance::CC2420`]. Height and reflection are illustrative.
    pub const CC2420: Self = Self {
        power_dbm: 0.0,
        height_m: 1.0,
        reflection: 0.7,
        sensitivity_dbm: -95.0,
        sense_dbm: -77.0,
        capture_db: 3.0,
    };
}
