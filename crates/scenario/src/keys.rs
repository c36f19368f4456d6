//! The keys of a scenario file.

use coapace_control::Duration;

use crate::flows::Flow;
use crate::hops::Hop;
use crate::knobs::{Knobs, KnobsKind};
use crate::mesh::Mesh;
use crate::schema::document::{Item, Value};
use crate::schema::kind::{Lines, Or, named, table};
use crate::schema::scalar::{Line, Lists, Switch, Time, Whole, one_of};
use crate::schema::table::{Keys, Misfit, keys};
use crate::schema::words::words;

keys! {
    /// A scenario.
    pub(crate) struct File completed by counted, checked by messages_fit {
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
        /// How many there are. In a mesh it is left out: all nodes but the border router and the sinks.
        count: u32, Whole(1, 1_000_000);
        /// NSTART: exchanges that a client may have outstanding (RFC 7252 §4.7). "none" leaves the bound to the mechanism, or to
        /// RFC 7252, which has 1.
        nstart: Option<u16>, Or("none", Whole(1, 1_000)) => None;
        /// MAX_RETRANSMIT: retransmissions before an exchange is given up (RFC 7252 §4.8).
        max_retransmit: u8, Whole(0, 100) => 4;
        /// Whether a client gives a server up no sooner than RFC 7252 would, and sends a silent one no more than RFC 7252 would,
        /// however short the timeouts of its mechanism are. "published" leaves that to the mechanism, as publications do.
        patience: Endurance, one_of() => Endurance::Rfc7252;
        /// The path of the request, without a slash in front; each segment becomes a Uri-Path option of its bytes and
        /// one to three more (RFC 7252 §3.1).
        uri_path: String, Line(1_000) => "coap".to_owned();
        /// When the clients start, from the start of the run. Flows have their own.
        start: Duration, Time => Duration::ZERO;
        /// From then on the clients start at random moments of this span, uniformly; 0 s starts all of them at once. Flows have
        /// their own.
        start_spread: Duration, Time => Duration::ZERO;
        /// PROBING_RATE in bytes per second: a rate of non-confirmable messages that is always allowed (RFC 7252 §4.7); above it
        /// they are an RTO apart. 0 allows no such rate.
        probing_rate: u32, Whole(0, 1_000_000) => 1;
        /// Of so many messages in a row one is confirmable (draft-ietf-core-cocoa-03 §5); 0 leaves every message as it is.
        confirmable_every: u8, Whole(0, 255) => 8;
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
    /// What every client does: requests one after the other, the next when the last is answered; or flows.
    pub struct Workload completed by one_end, checked by workload_fits {
        /// `continuous`: the mechanism keeps its state throughout. `random`: the exchanges come in batches of random
        /// size, and after each batch all state is forgotten; over TCP each batch has a connection of its own. `flows`: what
        /// `[[workload.flows]]` say, until `duration` is over.
        kind: WorkloadKind, one_of();
        /// Exchanges of a client; when the last is done, so is the client. Either this or `duration`: where that is given,
        /// the default is none.
        exchanges: Option<u32>, Or("none", Whole(1, 1_000_000)) => Some(50);
        /// How long the clients go on, from the start of the run; then it ends, and exchanges still open count as neither
        /// completed nor failed. Not for `random`.
        duration: Option<Duration>, Or("none", Time) => None;
        /// The beginning of `duration` in which nothing is counted: what is measured is what happens after it.
        warm_up: Duration, Time => Duration::ZERO;
        /// The smallest batch of `random`, in exchanges.
        batch_min: u32, Whole(1, 1_000_000) => 1;
        /// The largest batch of `random`, in exchanges; sizes are uniform between both.
        batch_max: u32, Whole(1, 1_000_000) => 10;
        /// The time from a response to the next request.
        think_time: Duration, Time => Duration::ZERO;
        /// A client makes requests at multiples of this after its first alone, and then only if the last is over; 0 s is any
        /// moment. UDP only; flows have their own.
        interval: Duration, Time => Duration::ZERO;
        /// What the clients send, for the kind `flows`.
        flows: Vec<Flow>, named(64) => Vec::new();
    }
}

keys! {
    /// The network: all clients at one end, the servers at the other, the same hops for everyone; or a mesh.
    pub struct Network completed by hopless, checked by hops_or_mesh {
        /// The version of IP: it decides the header, 20 or 40 bytes.
        ip: Ip, one_of() => Ip::V6;
        /// The largest IP packet in bytes, headers included.
        mtu: u32, Whole(68, 65_535) => 1_280;
        /// The hops from the clients to the servers, in the order that a packet passes them.
        up: Vec<Hop>, named(16);
        /// The hops from the servers to the clients, in the order that a packet passes them.
        down: Vec<Hop>, named(16);
        /// In place of hops: radios of which each hears some of the others.
        mesh: Option<Mesh>, Or("none", table()) => None;
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

words! {
    /// Whether a client remembers.
    pub enum WorkloadKind {
        /// The mechanism keeps its state throughout.
        Continuous = "continuous",
        /// Batches of random size; after each all state is forgotten.
        Random = "random",
        /// What the flows say.
        Flows = "flows",
    }
}

words! {
    /// What bounds how soon a client despairs of a server.
    pub enum Endurance {
        /// MAX_TRANSMIT_WAIT of RFC 7252 §4.8.2.
        Rfc7252 = "rfc7252",
        /// The timeouts of the mechanism alone.
        Published = "published",
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

impl File {
    /// The effective value of every key.
    pub(crate) fn lines(&self) -> Lines {
        let mut lines = Lines::new();
        self.write("", &mut lines);
        lines
    }

    /// Those that shape a run. Keys that came after the first hashes were written down are left out where they say what
    /// was so before them: the hash of an older scenario stays. A preset is left out, for it is in the keys that it fills.
    pub(crate) fn run_lines(&self) -> Lines {
        const RUN: [&str; 5] = ["clients", "server", "workload", "network", "tcp"];
        const LATER: [(&str, &str); 8] = [
            ("server.count", "1"),
            ("workload.duration", "\"none\""),
            ("workload.warm_up", "\"0 s\""),
            ("clients.start", "\"0 s\""),
            ("workload.interval", "\"0 s\""),
            ("clients.probing_rate", "1"),
            ("clients.confirmable_every", "8"),
            ("network.mesh", "\"none\""),
        ];
        const SHORT: [&str; 2] = ["network.mesh.mac.preset", "network.mesh.routing.preset"];
        let as_before = |line: &(String, String)| {
            LATER.contains(&(line.0.as_str(), line.1.as_str())) || SHORT.contains(&line.0.as_str())
        };
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
    let Workload { kind, exchanges, duration, warm_up, batch_min, batch_max, interval, flows, .. } = workload;
    match (kind, flows.is_empty()) {
        (WorkloadKind::Flows, true) => {
            return Err(Misfit::new("flows", "is missing: the kind \"flows\" needs one or more"));
        }
        (WorkloadKind::Continuous | WorkloadKind::Random, false) => {
            return Err(Misfit::new("flows", "needs the kind \"flows\""));
        }
        _ => {}
    }
    if *kind == WorkloadKind::Flows && *interval > Duration::ZERO {
        return Err(Misfit::new("interval", "does not go with the kind \"flows\": a flow has its own"));
    }
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
        (Some(_), None) if *kind == WorkloadKind::Flows => {
            Err(Misfit::new("duration", "is missing: the kind \"flows\" needs one"))
        }
        (None, Some(duration)) if warm_up >= duration => {
            Err(Misfit::new("warm_up", "must be shorter than `duration`"))
        }
        (Some(_), None) if *warm_up > Duration::ZERO => Err(Misfit::new("warm_up", "needs a `duration`")),
        _ => Ok(()),
    }
}

/// A mesh counts its clients itself, once its places are known; until then there is one.
fn counted(file: &Item) -> Item {
    let mut file = file.clone();
    let mesh = file.get("network").and_then(|network| network.get("mesh"));
    let Some(at) = mesh.filter(|mesh| matches!(mesh.value, Value::Table(_))).map(|mesh| mesh.at) else {
        return file;
    };
    let has_clients = file.get("clients").is_some();
    let Value::Table(members) = &mut file.value else { return file };
    if !has_clients {
        members.push(("clients".to_owned(), Item { at, value: Value::Table(Vec::new()) }));
    }
    let clients = members.iter_mut().find(|(key, _)| key == "clients").map(|(_, item)| &mut item.value);
    if let Some(Value::Table(clients)) = clients
        && clients.iter().all(|(key, _)| key != "count")
    {
        clients.push(("count".to_owned(), Item { at, value: Value::Integer(1) }));
    }
    file
}

/// A mesh has no hops.
fn hopless(network: &Item) -> Item {
    let mut network = network.clone();
    let mesh = network.get("mesh").filter(|mesh| matches!(mesh.value, Value::Table(_)));
    if let Some(at) = mesh.map(|mesh| mesh.at)
        && let Value::Table(members) = &mut network.value
    {
        for way in ["up", "down"] {
            if members.iter().all(|(key, _)| key != way) {
                members.push((way.to_owned(), Item { at, value: Value::List(Vec::new()) }));
            }
        }
    }
    network
}

fn hops_or_mesh(network: &Network) -> Result<(), Misfit> {
    for (way, hops) in [("up", &network.up), ("down", &network.down)] {
        match (hops.is_empty(), network.mesh.is_some()) {
            (true, false) => {
                return Err(Misfit::new(
                    way,
                    "must be 1 to 16 tables, each with a `name` of its own, not none",
                ));
            }
            (false, true) => {
                return Err(Misfit::new(way, "does not go with `network.mesh`: a network is hops or a mesh"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Nothing is fragmented above IP: a request and a response are one packet each, and every buffer can hold one.
fn messages_fit(file: &File) -> Result<(), Misfit> {
    flows_fit(file)?;
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

/// So is every message of a flow.
fn flows_fit(file: &File) -> Result<(), Misfit> {
    let path_bytes = file.clients.uri_path_bytes();
    let buffers = file.network.up.iter().chain(&file.network.down).filter_map(|hop| hop.buffer_bytes);
    let room = buffers.chain([u64::from(file.network.mtu)]).min().unwrap_or(u64::MAX);
    let headers = file.network.ip.header_bytes() + 8;
    for flow in &file.workload.flows {
        let misfit = |key: &str, problem: String| {
            Err(Misfit::new(format!("workload.flows.{}.{key}", flow.name), problem))
        };
        let least = flow.least_message_bytes(path_bytes);
        if flow.message_bytes.is_some_and(|bytes| bytes < least) {
            return misfit(
                "message_bytes",
                format!("must be {least} or more: header, token, options and a payload"),
            );
        }
        let (message, response) = (flow.sizes(path_bytes).1, 4 + 4 + 1 + flow.response_bytes);
        let longest = u64::from(headers + message.max(response));
        if longest > room {
            let key = if message > response { "message_bytes" } else { "response_bytes" };
            return misfit(
                key,
                format!("makes a packet of {longest} bytes, but `network.mtu` or a buffer holds {room}"),
            );
        }
        if file.workload.duration.is_some_and(|duration| flow.start >= duration) {
            return misfit("start", "must be before `workload.duration` is over".to_owned());
        }
    }
    let (kind, delay) = (file.workload.kind, file.server.processing_delay);
    if kind == WorkloadKind::Flows && delay > Duration::ZERO {
        return Err(Misfit::new("server.processing_delay", "must be 0 s with the workload \"flows\""));
    }
    Ok(())
}
