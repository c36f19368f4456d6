//! The keys of a hop.

use coapace_sim::{Jitter, Reordering, Span};
use serde_json::Value;

use crate::queues::Queue;
use crate::schema::document::{Item, TomlValue};
use crate::schema::error::Fault;
use crate::schema::json::any_of;
use crate::schema::kind::{KeyEntry, Lines, Or, ValueKind};
use crate::schema::scalar::{BYTES, NAME, PERCENTAGE, RANGE, RATE, SWITCH, Scalar, TIME, Whole};
use crate::schema::table::{Bare, Keys, Misfit, keys, table};
use crate::schema::words::word_or_table;

keys! {
    /// One hop in one direction. A packet waits in the buffer (`buffer_bytes`, `queue`) and is sent (`rate`). Then it
    /// is lost (`loss`), or it arrives after a delay (`delay`, `jitter`, `reordering`).
    pub struct Hop checked by queue_has_a_rate {
        /// The name of the hop in dotted paths and in results; unique among the hops of one direction.
        name: String, NAME;
        /// The rate of the link in bits per second, for IP packets with headers.
        rate: Option<u64>, Or("unlimited", RATE) => None;
        /// The size of the buffer: bytes of IP packets that may wait for the link. A packet that does not fit is
        /// dropped.
        buffer_bytes: Option<u64>, Or("unlimited", BYTES) => None;
        /// The queue management of the buffer: the name of a kind, or a table with the kind and its parameters.
        queue: Queue, word_or_table() => Queue::DropTail(Bare {});
        /// Whether the queue marks ECN-capable packets (`network.ecn_capable`) where it would drop them (RFC 3168). `drop-tail` marks
        /// nothing.
        ecn: bool, SWITCH => false;
        /// The propagation delay of every packet.
        delay: Span, TIME => Span::ZERO;
        /// Further delay of each packet, drawn uniformly between two times. Packets may overtake each other.
        jitter: Jitter, RANGE => Jitter::default();
        /// The loss of packets: the probability that a packet is lost, or a table for losses in bursts.
        loss: Loss, LossKind => Loss::Random(0.0);
        /// Reordering: some packets are held back, so that later ones overtake them.
        reordering: Option<Reordering>, Or("none", table()) => None;
    }
}

keys! {
    /// Loss in bursts: a two-state Markov chain that makes one step with every packet (Gilbert 1960, Elliott 1963).
    pub struct Burst checked by average_between {
        /// The share of packets lost in the good state.
        good: f64, PERCENTAGE => 0.0;
        /// The share of packets lost in the bad state.
        bad: f64, PERCENTAGE;
        /// The share of packets lost on average over both states. The mean length of the good state follows from it.
        average: f64, PERCENTAGE;
        /// The mean length of the bad state, in packets.
        mean_bad_packets: u32, Whole(1, 10_000) => 4;
    }
}

keys! {
    /// Reordering: some packets are held back, so that later ones overtake them.
    for Reordering {
        /// The share of packets that are held back.
        probability: f64, PERCENTAGE;
        /// The further delay of a packet that is held back.
        delay: Span, TIME;
    }
}

/// The loss of packets.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// Each packet is lost with this probability, independently of the others.
    Random(f64),
    /// Packets are lost in bursts.
    Burst(Burst),
}

/// The kind of the key `loss`: a percentage, or the table of a [`Burst`].
struct LossKind;

impl ValueKind for LossKind {
    type Value = Loss;
    fn accepts(&self) -> String {
        format!("{}, or {}", ValueKind::accepts(&PERCENTAGE), table::<Burst>().accepts())
    }
    fn schema(&self) -> Value {
        any_of([ValueKind::schema(&PERCENTAGE), table::<Burst>().schema()])
    }
    fn read(&self, item: &Item, path: &str) -> Result<Loss, Fault> {
        match item.value {
            // A table names its wrong key itself, which says more than the two accepted forms.
            TomlValue::Table(_) => Burst::read(item, path).map(Loss::Burst),
            _ => PERCENTAGE.parse(&item.value).map(Loss::Random).ok_or_else(|| self.refuse(item, path)),
        }
    }
    fn write(&self, value: &Loss, path: &str, lines: &mut Lines) {
        match value {
            Loss::Random(share) => PERCENTAGE.write(share, path, lines),
            Loss::Burst(burst) => burst.write(path, lines),
        }
    }
    fn hint(&self, value: &TomlValue) -> String {
        ValueKind::hint(&PERCENTAGE, value)
    }
    fn keys(&self) -> Vec<KeyEntry> {
        Burst::keys()
    }
}

impl Burst {
    /// Returns the mean length of the good state, in packets, that gives the [`average`](Self::average) loss.
    pub fn mean_good_packets(&self) -> f64 {
        // Solves average = (good·G + bad·B)/(G + B) for G, where G and B are the mean lengths of the two states.
        f64::from(self.mean_bad_packets) * (self.bad - self.average) / (self.average - self.good)
    }
}

fn queue_has_a_rate(hop: &Hop) -> Result<(), Misfit> {
    let problem = "needs a `rate`: on an unlimited link nothing waits";
    Misfit::unless(hop.rate.is_some() || hop.buffer_bytes.is_none(), "buffer_bytes", problem)?;
    Misfit::unless(hop.rate.is_some() || hop.queue.is_drop_tail(), "queue", problem)
}

fn average_between(burst: &Burst) -> Result<(), Misfit> {
    // First, because an average equal to `good` would divide by zero below.
    let is_between = burst.good < burst.average && burst.average < burst.bad;
    Misfit::unless(is_between, "average", "must lie between `good` and `bad` and equal neither")?;
    // The chain of states changes once a packet at most.
    let problem = "is too small: the good state would last less than one packet";
    Misfit::unless(burst.mean_good_packets() >= 1.0, "mean_bad_packets", problem)
}
