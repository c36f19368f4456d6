//! The keys of a scenario file.

use coapace_control::Duration;

use super::document::{Item, Value};
use super::error::Fault;
use super::kind::{HasName, Kind, Lines, Or, named, table};
use super::knobs::{Knobs, KnobsKind};
use super::scalar::{
    Bytes, Jitter, Line, Lists, Name, Percentage, Range, Rate, Scalar, Switch, Time, Whole, Words, one_of,
};
use super::schema::{Key, Keys, Misfit, keys};

keys! {
    /// A scenario.
    pub(super) struct File checked by messages_fit {
        /// Its name for people.
        title: String, Line(200);
        /// What it is for, in one sentence.
        summary: String, Line(500);
        /// Where its numbers come from: a paper, a specification, or that they are illustrative.
        source: String, Line(1000);
        /// The hosts that ask.
        clients: Clients, table();
        /// The hosts that answer.
        server: Server, table();
        /// What the clients do.
        workload: Workload, table();
        /// What lies between the clients and the servers.
        network: Network, table();
        /// CoAP over TCP (RFC 8323), for the mechanism `tcp`.
        tcp: Tcp, table();
        /// What is run when the command line does not say.
        defaults: Defaults, table();
        /// Short names for settings.
        knobs: Knobs, KnobsKind => Knobs::default();
    }
}

keys! {
    /// The hosts that ask. Each has one destination: its server.
    pub struct Clients checked by segments_fit {
        /// How many there are.
        count: u32, Whole(1, 1_000_000);
        /// NSTART: exchanges that a client may have outstanding (RFC 7252 §4.7).
        nstart: u16, Whole(1, 1_000) => 1;
        /// MAX_RETRANSMIT: retransmissions before an exchange is given up (RFC 7252 §4.8).
        max_retransmit: u8, Whole(0, 100) => 4;
        /// The path of the request, without a slash in front; each segment becomes a Uri-Path option of its bytes and
        /// one to three more (RFC 7252 §3.1).
        uri_path: String, Line(1_000) => "coap".to_owned();
        /// The clients start at random moments of this span, uniformly; 0 s starts all of them at once.
        start_spread: Duration, Time => Duration::ZERO;
    }
}

keys! {
    /// The hosts that answer. Every response is piggybacked on the acknowledgement.
    pub struct Server {
        /// How many there are, behind the same network. The clients are dealt out to them in turn: the first client asks
        /// the first server, the second the second.
        count: u32, Whole(1, 10_000) => 1;
        /// Bytes of the payload of a response, without the payload marker.
        payload_bytes: u32, Whole(0, 65_000) => 60;
        /// Whether a copy of a request is recognised by its Message ID and answered from memory (RFC 7252 §4.5). If not,
        /// the server answers every copy that reaches it anew.
        deduplication: bool, Switch => true;
        /// The time from a request to its response.
        processing_delay: Duration, Time => Duration::ZERO;
    }
}

keys! {
    /// What every client does: requests one after the other, the next when the last is answered.
    pub struct Workload completed by one_end, checked by workload_fits {
        /// `continuous`: the mechanism keeps its state throughout. `random`: the exchanges come in batches of random
        /// size, and after each batch all state is forgotten; over TCP each batch has a connection of its own.
        kind: WorkloadKind, one_of();
        /// Exchanges of a client; when the last is done, so is the client. Either this or `duration`: where that is given,
        /// the default is none.
        exchanges: Option<u32>, Or("none", Whole(1, 1_000_000)) => Some(50);
        /// How long the clients go on, from the start of the run; then it ends, and exchanges still open count as neither
        /// completed nor failed. For `continuous` only.
        duration: Option<Duration>, Or("none", Time) => None;
        /// The beginning of `duration` in which nothing is counted: what is measured is what happens after it.
        warm_up: Duration, Time => Duration::ZERO;
        /// The smallest batch of `random`, in exchanges.
        batch_min: u32, Whole(1, 1_000_000) => 1;
        /// The largest batch of `random`, in exchanges; sizes are uniform between both.
        batch_max: u32, Whole(1, 1_000_000) => 10;
        /// The time from a response to the next request.
        think_time: Duration, Time => Duration::ZERO;
    }
}

keys! {
    /// The network: all clients at one end, the servers at the other, the same hops for everyone.
    pub struct Network {
        /// The version of IP: it decides the header, 20 or 40 bytes.
        ip: Ip, one_of() => Ip::V6;
        /// The largest IP packet in bytes, headers included.
        mtu: u32, Whole(68, 65_535) => 1_280;
        /// The hops from the clients to the servers, in the order that a packet passes them.
        up: Vec<Hop>, named(16);
        /// The hops from the servers to the clients, in the order that a packet passes them.
        down: Vec<Hop>, named(16);
    }
}

keys! {
    /// One hop in one direction. A packet waits for the link (`buffer_bytes`), is sent (`rate`), may be lost (`loss`), and
    /// what is left arrives later (`delay`, `jitter`, `reordering`).
    pub struct Hop checked by buffer_has_a_rate {
        /// Its name in dotted paths and in results; unique among the hops of one direction.
        name: String, Name;
        /// Bits per second of IP packets, headers included.
        rate: Option<u64>, Or("unlimited", Rate) => None;
        /// Bytes of IP packets that may wait; a packet that does not fit is dropped (drop-tail).
        buffer_bytes: Option<u64>, Or("unlimited", Bytes) => None;
        /// How long every packet travels.
        delay: Duration, Time => Duration::ZERO;
        /// Further delay of each packet, uniform between two times. Packets may overtake each other.
        jitter: Jitter, Range => Jitter::default();
        /// Packets lost: a share of them at random, or a table of two states with a share each.
        loss: Loss, LossKind => Loss::Random(0.0);
        /// Packets held back so that later ones overtake them.
        reordering: Option<Reordering>, Or("none", table()) => None;
    }
}

keys! {
    /// Loss in bursts: a two-state Markov chain that makes one step with every packet (Gilbert 1960, Elliott 1963).
    pub struct Burst checked by average_between {
        /// The share of packets lost in the good state.
        good: f64, Percentage => 0.0;
        /// The share of packets lost in the bad state.
        bad: f64, Percentage;
        /// The share of packets lost on average; it fixes how long the good state lasts.
        average: f64, Percentage;
        /// The mean length of the bad state, in packets.
        mean_bad_packets: u32, Whole(1, 10_000) => 4;
    }
}

keys! {
    /// Packets held back.
    pub struct Reordering {
        /// The share of packets held back.
        probability: f64, Percentage;
        /// How long.
        delay: Duration, Time;
    }
}

keys! {
    /// CoAP over TCP (RFC 8323), simulated with the TCP of smoltcp. Used by the mechanism `tcp` only.
    pub struct Tcp {
        /// Whether the clients of the workload `continuous` have their connection, and the capabilities exchanged, before
        /// the clock starts. Those of `random` always connect within.
        connect_first: bool, Switch => true;
        /// Nagle's algorithm (RFC 896).
        nagle: bool, Switch => true;
        /// How long an acknowledgement waits for data to travel with (RFC 9293 §3.8.6.3); 0 s delays none.
        delayed_ack: Duration, Time => Duration::from_millis(200);
        /// The timeout of the first SYN is 1 s, doubling to 60 s; this multiplies it: 200 makes it 2 s, doubling to 120 s.
        /// Timeouts of data are smoltcp's, 1 s to 60 s.
        handshake_timeout_percent: u32, Whole(100, 1_000) => 100;
    }
}

keys! {
    /// What is run when the command line does not say. It does not count for the hash of the scenario.
    pub struct Defaults {
        /// The mechanisms to compare, each as the command line takes it: `NAME` or `NAME:parameter=value,…`, or a mix of
        /// several, `NAME+NAME`.
        mechanisms: Vec<String>, Lists(64, Line(200)) => vec!["default".to_owned(), "cocoa".to_owned()];
        /// How many seeds: repetitions with other random numbers.
        seeds: u32, Whole(1, 100_000) => 20;
    }
}

/// Declares an enumeration by its words.
macro_rules! words {
    ($(#[doc = $doc:literal])+ pub enum $name:ident { $($(#[doc = $word_doc:literal])+ $variant:ident = $word:literal,)+ }) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[doc = $word_doc])+ $variant,)+ }

        impl $name {
            /// As in a scenario file.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl Words for $name {
            const ALL: &'static [(Self, &'static str)] = &[$((Self::$variant, $word)),+];
        }
    };
}

words! {
    /// Whether a client remembers.
    pub enum WorkloadKind {
        /// The mechanism keeps its state throughout.
        Continuous = "continuous",
        /// Batches of random size; after each all state is forgotten.
        Random = "random",
    }
}

words! {
    /// The version of IP.
    pub enum Ip {
        /// Header of 20 bytes.
        V4 = "ipv4",
        /// Header of 40 bytes.
        V6 = "ipv6",
    }
}

/// How packets are lost.
#[derive(Clone, Debug, PartialEq)]
pub enum Loss {
    /// Each with this probability, whatever happened to the others.
    Random(f64),
    /// In bursts.
    Burst(Burst),
}

/// A percentage, or the table of a [`Burst`].
struct LossKind;

impl Kind for LossKind {
    type Value = Loss;
    fn accepts(&self) -> String {
        format!("{}, or {}", Kind::accepts(&Percentage), table::<Burst>().accepts())
    }
    fn read(&self, item: &Item, path: &str) -> Result<Loss, Fault> {
        match item.value {
            Value::Table(_) => Burst::read(item, path).map(Loss::Burst),
            _ => Percentage.parse(&item.value).map(Loss::Random).ok_or_else(|| self.refuse(item, path)),
        }
    }
    fn write(&self, value: &Loss, path: &str, lines: &mut Lines) {
        match value {
            Loss::Random(share) => Percentage.write(share, path, lines),
            Loss::Burst(burst) => burst.write(path, lines),
        }
    }
    fn keys(&self) -> Vec<Key> {
        Burst::keys()
    }
}

impl Burst {
    /// The mean length of the good state, in packets, that makes [`average`](Self::average) what it is.
    pub fn mean_good_packets(&self) -> f64 {
        f64::from(self.mean_bad_packets) * (self.bad - self.average) / (self.average - self.good)
    }
}

impl File {
    /// The effective value of every key.
    pub(super) fn lines(&self) -> Lines {
        let mut lines = Lines::new();
        self.write("", &mut lines);
        lines
    }

    /// Those that shape a run. Keys that came after the first hashes were written down are left out where they say what
    /// was so before them: the hash of an older scenario stays.
    pub(super) fn run_lines(&self) -> Lines {
        const RUN: [&str; 5] = ["clients", "server", "workload", "network", "tcp"];
        const LATER: [(&str, &str); 3] =
            [("server.count", "1"), ("workload.duration", "\"none\""), ("workload.warm_up", "\"0 s\"")];
        let as_before = |line: &(String, String)| LATER.contains(&(line.0.as_str(), line.1.as_str()));
        let shapes = |path: &str| path.split_once('.').is_some_and(|(table, _)| RUN.contains(&table));
        self.lines().into_iter().filter(|line| shapes(&line.0) && !as_before(line)).collect()
    }
}

impl Ip {
    /// Bytes of the header.
    pub const fn header_bytes(self) -> u32 {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }
}

impl Clients {
    /// The segments of the path: the values of the Uri-Path options.
    pub fn uri_path_segments(&self) -> impl Iterator<Item = &str> {
        self.uri_path.split('/')
    }

    /// Bytes of the Uri-Path options: the first has option delta 11, the others 0 (RFC 7252 §3.1).
    pub fn uri_path_bytes(&self) -> u32 {
        let extended = |len| u32::from(len >= 13) + u32::from(len >= 269);
        self.uri_path_segments().map(|segment| 1 + extended(segment.len()) + segment.len() as u32).sum()
    }
}

impl HasName for Hop {
    fn name(&self) -> &str {
        &self.name
    }
}

fn segments_fit(clients: &Clients) -> Result<(), Misfit> {
    // RFC 7252 §5.10.
    if clients.uri_path_segments().all(|segment| (1..=255).contains(&segment.len())) {
        return Ok(());
    }
    Err(Misfit::new("uri_path", "must have segments of 1 to 255 bytes with single slashes between them"))
}

/// A workload with a duration is not to have a number of exchanges only because that has a default.
fn one_end(workload: &Item) -> Item {
    let lasts = |item: &Item| !matches!(&item.value, Value::Text(text) if text == "none");
    let mut workload = workload.clone();
    if let Some(at) = workload.get("duration").filter(|item| lasts(item)).map(|item| item.at)
        && let Value::Table(members) = &mut workload.value
        && members.iter().all(|(key, _)| key != "exchanges")
    {
        members.push(("exchanges".to_owned(), Item { at, value: Value::Text("none".to_owned()) }));
    }
    workload
}

fn workload_fits(workload: &Workload) -> Result<(), Misfit> {
    let Workload { kind, exchanges, duration, warm_up, batch_min, batch_max, .. } = workload;
    if batch_min > batch_max {
        return Err(Misfit::new("batch_max", format!("must not be below `batch_min`, which is {batch_min}")));
    }
    match (exchanges, duration) {
        (Some(exchanges), Some(_)) => {
            let problem =
                format!("does not go with `exchanges`, which is {exchanges}: make one of them \"none\"");
            Err(Misfit::new("duration", problem))
        }
        (None, None) => Err(Misfit::new("exchanges", "must not be \"none\" without a `duration`")),
        (None, Some(_)) if *kind == WorkloadKind::Random => {
            Err(Misfit::new("duration", "needs the kind \"continuous\": batches are of `exchanges`"))
        }
        (None, Some(duration)) if warm_up >= duration => {
            Err(Misfit::new("warm_up", "must be shorter than `duration`"))
        }
        (Some(_), None) if *warm_up > Duration::ZERO => Err(Misfit::new("warm_up", "needs a `duration`")),
        _ => Ok(()),
    }
}

fn buffer_has_a_rate(hop: &Hop) -> Result<(), Misfit> {
    if hop.buffer_bytes.is_none() || hop.rate.is_some() {
        return Ok(());
    }
    Err(Misfit::new("buffer_bytes", "needs a `rate`: on an unlimited link nothing waits"))
}

fn average_between(burst: &Burst) -> Result<(), Misfit> {
    if burst.good >= burst.average || burst.average >= burst.bad {
        return Err(Misfit::new("average", "must lie between `good` and `bad` and equal neither"));
    }
    if burst.mean_good_packets() < 1.0 {
        let problem = "is too small: the good state would last less than one packet";
        return Err(Misfit::new("mean_bad_packets", problem));
    }
    Ok(())
}

/// Nothing is fragmented: a request and a response are one packet each, and every buffer can hold one.
fn messages_fit(file: &File) -> Result<(), Misfit> {
    // UDP header, CoAP header, a token of one byte; a response has a payload marker, too.
    let headers = file.network.ip.header_bytes() + 8 + 4 + 1;
    let request = headers + file.clients.uri_path_bytes();
    let response = headers + 1 + file.server.payload_bytes;
    let mtu = file.network.mtu;
    for (path, what, bytes) in
        [("clients.uri_path", "request", request), ("server.payload_bytes", "response", response)]
    {
        if bytes > mtu {
            let problem = format!("makes a {what} of {bytes} bytes, but `network.mtu` is {mtu}");
            return Err(Misfit::new(path, problem));
        }
    }
    for (way, hops, bytes) in [("up", &file.network.up, request), ("down", &file.network.down, response)] {
        for hop in hops {
            if let Some(buffer) = hop.buffer_bytes.filter(|buffer| *buffer < u64::from(bytes)) {
                let path = format!("network.{way}.{}.buffer_bytes", hop.name);
                return Err(Misfit::new(
                    path,
                    format!("must hold one message of {bytes} bytes, not `{buffer}`"),
                ));
            }
        }
    }
    Ok(())
}
