//! The keys of the queue of a hop.

use coapace_sim::{CodelConfig, FqCodelConfig, PieConfig, Queue as SimQueue, RedConfig, Span};

use crate::schema::measure::Measure;
use crate::schema::preset::Preset;
use crate::schema::scalar::{PERCENTAGE, SWITCH, TIME, Whole};
use crate::schema::table::{Bare, Misfit, keys};
use crate::schema::words::tagged;

tagged! {
    /// The management of a hop's queue.
    pub enum Queue {
        /// No management: packets are dropped only if the buffer is full.
        DropTail(Bare) = "drop-tail",
        /// CoDel (RFC 8289).
        Codel(Preset<CodelConfig>) = "codel",
        /// FQ-CoDel (RFC 8290).
        FqCodel(Preset<FqCodelConfig>) = "fq-codel",
        /// PIE (RFC 8033).
        Pie(Preset<PieConfig>) = "pie",
        /// RED (Floyd, Jacobson 1993).
        Red(Preset<RedConfig>) = "red",
    }
}

keys! {
    /// CoDel (RFC 8289). A queue of at most `network.mtu` bytes never counts as too long. The defaults shown belong to
    /// the preset `rfc-8289`; every preset has its own.
    for CodelConfig = CodelConfig::RFC_8289, checked by interval_is_longer {
        /// TARGET: the acceptable delay in the queue. It should be at least the transmission time of the largest packet
        /// (RFC 8289 §4.4).
        target: TIME;
        /// INTERVAL: the time for which the delay may exceed the target before packets are dropped; about the longest
        /// usual round-trip time.
        interval: TIME;
    }
    presets {
        /// The source of the other keys' defaults. `rfc-8289`: RFC 8289 §4. `slow-link`: values chosen for 60 kbit/s
        /// and a round-trip time of 600 ms.
        "rfc-8289" => CodelConfig::RFC_8289,
        "slow-link" => CodelConfig::SLOW_LINK,
    }
}

keys! {
    /// FQ-CoDel (RFC 8290). All packets from one host to another are one flow. If the buffer is full, the first packet
    /// of the longest queue is dropped. The defaults shown belong to the preset `rfc-8290`; every preset has its own.
    for FqCodelConfig = FqCodelConfig::RFC_8290 {
        ..codel: CodelConfig;
        /// The quantum: the number of bytes that a queue may send in each of its turns.
        quantum_bytes: Whole(1, 65_535);
        /// The number of queues. A hash assigns each flow to one of them.
        flows: Whole(1, 65_536);
    }
    presets {
        /// The source of the other keys' defaults. `rfc-8290`: RFC 8290 §5.2. `slow-link`: values chosen for 60 kbit/s
        /// and a round-trip time of 600 ms.
        "rfc-8290" => FqCodelConfig::RFC_8290,
        "slow-link" => FqCodelConfig::SLOW_LINK,
    }
}

keys! {
    /// PIE (RFC 8033). The defaults shown belong to the preset `rfc-8033`; every preset has its own.
    for PieConfig = PieConfig::RFC_8033, checked by updates_take_time {
        /// QDELAY_REF: the target for the delay in the queue.
        target: TIME;
        /// T_UPDATE: the time from one update of the drop probability to the next.
        update: TIME;
        /// MAX_BURST: the time for which a queue that was idle may grow without drops.
        max_burst: TIME;
        /// The weight of the delay's deviation from the target, in an update of the drop probability.
        alpha: Measure("/s", 0.0, 1_000.0);
        /// The weight of the delay's growth since the last update, in an update of the drop probability.
        beta: Measure("/s", 0.0, 1_000.0);
        /// MEAN_PKTSIZE: the assumed size of a packet. A queue of up to two such packets never counts as too long.
        mean_packet_bytes: Whole(0, 65_535);
        /// The largest drop probability at which ECN-capable packets are marked in place of being dropped (RFC 8033
        /// §5.1).
        mark_limit: PERCENTAGE;
    }
    presets {
        /// The source of the other keys' defaults. `rfc-8033`: RFC 8033 §4, with the packet size of RFC 8034.
        /// `slow-link`: values chosen for 60 kbit/s and a round-trip time of 600 ms.
        "rfc-8033" => PieConfig::RFC_8033,
        "slow-link" => PieConfig::SLOW_LINK,
    }
}

keys! {
    /// RED (Floyd, Jacobson 1993; RFC 2309). Queue lengths are counted in packets. The defaults shown belong to the
    /// preset `gentle`; every preset has its own.
    for RedConfig = RedConfig::GENTLE, checked by thresholds_grow {
        /// min_th: the average queue length above which packets are dropped or marked at random.
        min_packets: Whole(0, 1_000_000);
        /// max_th: the average queue length at which packets are dropped or marked with the probability
        /// `max_probability`.
        max_packets: Whole(1, 2_000_000);
        /// max_p: the share of packets that are dropped or marked at `max_packets`.
        max_probability: PERCENTAGE;
        /// w_q: the weight of the present queue length in the average.
        weight: PERCENTAGE;
        /// Whether the probability grows from `max_probability` to 1 between `max_packets` and twice that length. If
        /// not, it jumps to 1 at `max_packets`.
        gentle as is_gentle: SWITCH;
    }
    presets {
        /// The source of the other keys' defaults. `gentle`: Floyd's advice of 1997 and 2000. `floyd-1993`: Floyd,
        /// Jacobson 1993.
        "gentle" => RedConfig::GENTLE,
        "floyd-1993" => RedConfig::FLOYD_1993,
    }
}

impl Queue {
    /// Returns this queue management as a configuration of the simulator, for packets of up to `mtu_bytes`.
    pub fn config(&self, mtu_bytes: u32) -> SimQueue {
        match self {
            Self::DropTail(_) => SimQueue::DropTail,
            Self::Codel(codel) => SimQueue::Codel(CodelConfig { mtu_bytes, ..codel.config }),
            Self::FqCodel(fq) => {
                // The MTU is a key of the network: CoDel drops nothing while less than one packet waits (RFC 8289).
                let codel = CodelConfig { mtu_bytes, ..fq.config.codel };
                SimQueue::FqCodel(FqCodelConfig { codel, ..fq.config })
            }
            Self::Pie(pie) => SimQueue::Pie(pie.config),
            Self::Red(red) => SimQueue::Red(red.config),
        }
    }

    /// Returns whether packets are dropped only if the buffer is full.
    pub fn is_drop_tail(&self) -> bool {
        matches!(self, Self::DropTail(_))
    }
}

fn interval_is_longer(codel: &CodelConfig) -> Result<(), Misfit> {
    Misfit::unless(codel.interval > codel.target, "interval", "must be longer than `target`")
}

fn updates_take_time(pie: &PieConfig) -> Result<(), Misfit> {
    Misfit::unless(pie.update >= Span::from_micros(100), "update", "must be 100 us or more")
}

fn thresholds_grow(red: &RedConfig) -> Result<(), Misfit> {
    let problem = format!("must be above `min_packets`, which is {}", red.min_packets);
    Misfit::unless(red.max_packets > red.min_packets, "max_packets", problem)
}
