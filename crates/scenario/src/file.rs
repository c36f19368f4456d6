//! The keys of a scenario file.

use std::sync::LazyLock;

use coapace_sim::Span;

use crate::hops::Hop;
use crate::hosts::{Answering, Clients, Server};
use crate::knobs::{KnobValues, Knobs, KnobsKind};
use crate::network::{NetworkTable, Tcp};
use crate::schema::document::{Item, TomlValue};
use crate::schema::error::Fault;
use crate::schema::kind::{KeyEntry, Lines};
use crate::schema::scalar::{ListOf, OneLine, Scalar, TIME, Whole};
use crate::schema::table::{Keys, Misfit, keys, table};
use crate::schema::unknown::elsewhere;
use crate::service::ServiceTime;
use crate::transfers::Direction;
use crate::workload::{Workload, WorkloadKind};

keys! {
    /// A scenario: the clients and servers, their messages, and the network between them.
    pub struct File completed by counted, checked by messages_fit {
        /// The title of the scenario, for people.
        title: String, OneLine(200);
        /// The purpose of the scenario, in one sentence.
        summary: String, OneLine(500);
        /// Where the numbers come from: a paper, a specification, or a note that they are illustrative.
        source: String, OneLine(1000);
        /// The hosts that send requests.
        clients: Clients, table();
        /// The hosts that answer requests.
        server: Server, table();
        /// The messages that clients and servers exchange: single requests, flows, or transfers of bodies.
        workload: Workload, table();
        /// The hops or the mesh between the clients and the servers.
        network: NetworkTable, table();
        /// The parameters of TCP, for CoAP over TCP (RFC 8323).
        tcp: Tcp, table();
        /// The mechanisms and seeds of a run if the command line names none.
        defaults: Defaults, table();
        /// Knobs: short names, each for one key, for several keys, or for a choice between groups of settings.
        knobs: Knobs, KnobsKind(Self::all_keys) => Knobs::default();
    }
}

keys! {
    /// The mechanisms and seeds of a run if the command line names none. They do not change the scenario's hash.
    pub struct Defaults {
        /// The mechanisms to compare, as on the command line: `NAME` or `NAME:parameter=value,…`, or `NAME+NAME` for
        /// clients that use different mechanisms.
        mechanisms: Vec<String>, ListOf(64, OneLine(200), "texts") => vec!["default".to_owned(), "cocoa".to_owned()];
        /// The number of runs of each mechanism. Each has a seed of its own, and so other random numbers.
        seeds: u32, Whole(1, 100_000) => 20;
    }
}

impl File {
    /// Returns the entries of all keys of a scenario file. The list is made once, because every setting of every
    /// condition is looked up in it.
    pub(crate) fn all_keys() -> &'static [KeyEntry] {
        static KEYS: LazyLock<Vec<KeyEntry>> = LazyLock::new(File::keys);
        &KEYS
    }

    /// Reads all keys of a scenario from the tree of its file.
    ///
    /// # Errors
    /// Returns the fault of the first wrong key.
    pub(crate) fn of(item: &Item) -> Result<Self, Fault> {
        Self::read(item, "").map_err(|fault| elsewhere(fault, Self::all_keys()))
    }

    /// Reads all keys of a scenario, and returns the effective value of every key that shapes a run.
    ///
    /// # Errors
    /// Returns the fault of the first wrong key.
    pub(crate) fn run_lines_of(item: &Item) -> Result<Lines, Fault> {
        Self::of(item).map(|file| file.run_lines())
    }

    /// Returns the name and the present value of every knob. `item` is the tree that the file was read from.
    pub(crate) fn knob_values(&self, item: &Item) -> KnobValues {
        self.knobs.values(item, &self.lines(), &self.run_lines(), Self::run_lines_of)
    }

    /// Returns the effective value of every key, defaults included.
    fn lines(&self) -> Lines {
        let mut lines = Lines::new();
        self.write("", &mut lines);
        lines
    }

    /// Returns the effective values of the keys that shape a run. The names of presets are left out, because the keys
    /// that a preset fills are listed themselves.
    pub(crate) fn run_lines(&self) -> Lines {
        // Everything outside of these tables describes a scenario and does not change its runs.
        const RUN: [&str; 5] = ["clients", "server", "workload", "network", "tcp"];
        const PRESETS: [&str; 3] =
            ["network.mesh.mac.preset", "network.mesh.lowpan.preset", "network.mesh.routing.preset"];
        let shapes = |path: &str| path.split_once('.').is_some_and(|(table, _)| RUN.contains(&table));
        self.lines()
            .into_iter()
            .filter(|(path, _)| shapes(path) && !PRESETS.contains(&path.as_str()))
            .collect()
    }
}

/// Sets `clients.count` to 1 in a file with a mesh that does not set it. The clients are counted later, when the
/// positions of the nodes are known.
fn counted(file: &Item) -> Item {
    let mut whole = file.clone();
    let mesh = file.get("network").and_then(|network| network.get("mesh"));
    if let Some(at) = mesh.and_then(Item::place_of_table)
        && let Some(clients) = whole.get_or_insert("clients", at, TomlValue::Table(Vec::new()))
    {
        // The least valid number. `cross_checks::place` replaces it.
        clients.get_or_insert("count", at, TomlValue::Integer(1));
    }
    whole
}

/// Checks that a request and a response fit into one packet each, and into every buffer on the way. IP fragmentation is
/// not simulated.
fn messages_fit(file: &File) -> Result<(), Misfit> {
    flows_fit(file)?;
    transfers_fit(file)?;
    // The UDP header, the CoAP header and a token of one byte, or three. A response has a payload marker, too.
    let token = if file.server.may_separate() { 3 } else { 1 };
    let headers = file.network.ip.header_bytes() + 8 + 4 + token;
    // Sums of `u32` that do not overflow: payloads have 65000 bytes at most, and paths 1000 and their option headers.
    let request = headers + file.clients.uri_path_bytes();
    let response = headers + 1 + file.server.payload_bytes;
    let mtu = file.network.mtu;
    for (path, what, bytes) in
        [("clients.uri_path", "request", request), ("server.payload_bytes", "response", response)]
    {
        let problem = format!("makes a {what} of {bytes} bytes, but `network.mtu` is {mtu}");
        Misfit::unless(bytes <= mtu, path, problem)?;
    }
    for (way, hops, bytes) in [("up", &file.network.up, request), ("down", &file.network.down, response)] {
        for hop in hops {
            // A buffer smaller than one message would drop every message.
            let Some(buffer) = hop.buffer_bytes else { continue };
            let path = format!("network.{way}.{}.buffer_bytes", hop.name);
            let problem = format!("must hold one message of {bytes} bytes, not `{buffer}`");
            Misfit::unless(buffer >= u64::from(bytes), path, problem)?;
        }
    }
    Ok(())
}

/// Checks that every message with a block fits into one packet, and into every buffer, and that transfers start before the run ends.
fn transfers_fit(file: &File) -> Result<(), Misfit> {
    for transfer in &file.workload.transfers {
        // Blocks travel in one direction. What comes back is shorter: a header and options.
        let hops = match transfer.direction {
            Direction::Down => &file.network.down,
            Direction::Up => &file.network.up,
        };
        let room = packet_room(file, hops);
        // The UDP header has 8 bytes (RFC 768).
        let packet = u64::from(file.network.ip.header_bytes() + 8 + transfer.message_bytes());
        let problem = format!("makes a packet of {packet} bytes, but `network.mtu` or a buffer holds {room}");
        Misfit::unless(packet <= room, transfer.path("block_bytes"), problem)?;
        if let Some(duration) = file.workload.duration {
            let [start, end] = [transfer.start, duration].map(|span| TIME.text(&span));
            let problem = format!("of {start} must be before the end of `workload.duration`, which is {end}");
            Misfit::unless(transfer.start < duration, transfer.path("start"), problem)?;
        }
    }
    Ok(())
}

/// Returns the size in bytes of the largest packet that fits into the MTU and into the buffers of these hops.
fn packet_room<'a>(file: &File, hops: impl IntoIterator<Item = &'a Hop>) -> u64 {
    let buffers = hops.into_iter().filter_map(|hop| hop.buffer_bytes);
    buffers.chain([u64::from(file.network.mtu)]).min().unwrap_or(u64::MAX)
}

/// Checks that every message of a flow fits into one packet, and into every buffer.
fn flows_fit(file: &File) -> Result<(), Misfit> {
    let path_bytes = file.clients.uri_path_bytes();
    // A flow has messages both ways, requests up or notifications down, so hops of both directions limit it.
    let room = packet_room(file, file.network.up.iter().chain(&file.network.down));
    // The UDP header has 8 bytes (RFC 768).
    let headers = file.network.ip.header_bytes() + 8;
    for flow in &file.workload.flows {
        let least = flow.least_message_bytes(path_bytes);
        let problem = format!("must be {least} or more: header, token, options and a payload");
        // A flow with `payload_bytes` has no length of its own to check.
        let has_room = flow.message_bytes.is_none_or(|bytes| bytes >= least);
        Misfit::unless(has_room, flow.path("message_bytes"), problem)?;
        // A response has a header, a token and a payload marker, which is counted even without a payload.
        let (message, response) = (flow.sizes(path_bytes).1, 4 + 4 + 1 + flow.response_bytes);
        let longest = u64::from(headers + message.max(response));
        let longer = if message > response { "message_bytes" } else { "response_bytes" };
        let problem =
            format!("makes a packet of {longest} bytes, but `network.mtu` or a buffer holds {room}");
        Misfit::unless(longest <= room, flow.path(longer), problem)?;
        if let Some(duration) = file.workload.duration {
            let [start, end] = [flow.start, duration].map(|span| TIME.text(&span));
            let problem = format!("of {start} must be before the end of `workload.duration`, which is {end}");
            Misfit::unless(flow.start < duration, flow.path("start"), problem)?;
        }
    }
    // A sink of flows answers at once, on the acknowledgement. Other values would be ignored, so they are refused.
    let Server { processing_delay, service_time, response, acknowledge_after, .. } = &file.server;
    let is_piggybacked = *response == Answering::Piggybacked;
    let problem = "must be 0 s unless `server.response` is \"separate\" or \"separate-non\"";
    Misfit::unless(!is_piggybacked || *acknowledge_after == Span::ZERO, "server.acknowledge_after", problem)?;
    for (key, value, fits) in [
        ("processing_delay", "0 s", *processing_delay == Span::ZERO),
        ("service_time", "0 s", *service_time == ServiceTime::default()),
        ("response", "\"piggybacked\"", is_piggybacked),
    ] {
        let problem = format!("must be {value} with the workload \"flows\"");
        Misfit::unless(fits || file.workload.kind != WorkloadKind::Flows, format!("server.{key}"), problem)?;
    }
    Ok(())
}
