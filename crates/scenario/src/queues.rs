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
        /// None: packets are dropped only if the buffer is full.
        DropTail(Bare) = "drop-tail",
        /// CoDel.
        Codel(Preset<CodelConfig>) = "codel",
        /// FQ-CoDel.
        FqCodel(Preset<FqCodelConfig>) = "fq-codel",
        /// PIE.
        Pie(Preset<PieConfig>) = "pie",
        /// RED.
        Red(Preset<RedConfig>) = "red",
    }
}

keys! {
    /// CoDel (RFC 8289). A queue of up to `network.mtu` bytes is never too long. The defaults shown are those of the preset
    /// `rfc-8289`; with another preset they are its own.
    for CodelConfig = CodelConfig::RFC_8289, checked by interval_is_longer {
        /// TARGET: the acceptable wait of a standing queue; at least the transmission time of the largest packet (RFC 8289 §4.4).
        target: TIME;
        /// INTERVAL: the time that a queue may be above the target; about the longest usual round-trip time.
        interval: TIME;
    }
    presets {
        /// The source of the other keys' defaults: RFC 8289 §4, or values chosen for 60 kbit/s and a round-trip time of 600 ms.
        "rfc-8289" => CodelConfig::RFC_8289,
        "slow-link" => CodelConfig::SLOW_LINK,
    }
}

keys! {
    /// FQ-CoDel (RFC 8290). A flow is the packets from one host to another. If the buffer is full, the longest queue loses its
    /// first packet. The defaults shown are those of the preset `rfc-8290`; with another preset they are its own.
    for FqCodelConfig = FqCodelConfig::RFC_8290 {
        ..codel: CodelConfig;
        /// The bytes that a queue may send in its turn.
        quantum_bytes: Whole(1, 65_535);
        /// The number of queues.
        flows: Whole(1, 65_536);
    }
    presets {
        /// The source of the other keys' defaults: RFC 8290 §5.2, or values chosen for 60 kbit/s and a round-trip time of 600 ms.
        "rfc-8290" => FqCodelConfig::RFC_8290,
        "slow-link" => FqCodelConfig::SLOW_LINK,
    }
}

keys! {
    /// PIE (RFC 8033). The defaults shown are those of the preset `rfc-8033`; with another preset they are its own.
    for PieConfig = PieConfig::RFC_8033, checked by updates_take_time {
        /// QDELAY_REF: the delay that is aimed at.
        target: TIME;
        /// T_UPDATE: the time from one correction of the probability to the next.
        update: TIME;
        /// MAX_BURST: the time during which an idle queue may grow without drops.
        max_burst: TIME;
        /// The weight of the deviation from the target.
        alpha: Measure("/s", 0.0, 1_000.0);
        /// The weight of the growth of the delay.
        beta: Measure("/s", 0.0, 1_000.0);
        /// MEAN_PKTSIZE: a queue of up to two such packets is never too long.
        mean_packet_bytes: Whole(0, 65_535);
        /// The largest probability at which packets are marked in place of being dropped (RFC 8033 §5.1).
        mark_limit: PERCENTAGE;
    }
    presets {
        /// The source of the other keys' defaults: RFC 8033 §4 (the size of a packet: RFC 8034), or values chosen for 60 kbit/s and
        /// a round-trip time of 600 ms.
        "rfc-8033" => PieConfig::RFC_8033,
        "slow-link" => PieConfig::SLOW_LINK,
    }
}

keys! {
    /// RED (Floyd, Jacobson 1993; RFC 2309), with lengths in packets. The defaults shown are those of the preset `gentle`; with
    /// another preset they are its own.
    for RedConfig = RedConfig::GENTLE, checked by thresholds_grow {
        /// min_th: the average length from which on packets are hit.
        min_packets: Whole(0, 1_000_000);
        /// max_th: the average length at which `max_probability` of the packets are hit.
        max_packets: Whole(1, 2_000_000);
        /// max_p.
        max_probability: PERCENTAGE;
        /// w_q: the weight of the present length in the average.
        weight: PERCENTAGE;
        /// Growth of the probability to 1 between `max_packets` and twice that, in place of a jump.
        gentle as is_gentle: SWITCH;
    }
    presets {
        /// The source of the other keys' defaults: Floyd's advice of 1997 and 2000, or Floyd, Jacobson 1993.
        "gentle" => RedConfig::GENTLE,
        "floyd-1993" => RedConfig::FLOYD_1993,
    }
}

impl Queue {
    /// Returns the configuration of the simulator, for packets of up to `mtu_bytes`.
    pub fn config(&self, mtu_bytes: u32) -> SimQueue {
        match self {
            Self::DropTail(_) => SimQueue::DropTail,
            Self::Codel(codel) => SimQueue::Codel(CodelConfig { mtu_bytes, ..codel.config }),
            Self::FqCodel(fq) => {
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
