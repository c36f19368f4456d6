//! Traces: every event in a line of CSV.

use std::io::{self, Write};

use coapace_control::Duration;

use crate::mesh::{FrameKind, FrameRecord};
use crate::{NodeEvent, NodeId, Record, Tap, Time};

/// Writes the [`COLUMNS`](Self::COLUMNS) of every event. The hop is empty for an event at a node. In a mesh, events of
/// frames between neighbours have lines, too (`frame sent`, `frame received`, `ack sent` …). Their hop is the node
/// where they happen, and a frame to all nodes has no receiver. The RTO, the parent and the rank of a node have lines
/// when they change.
#[derive(Debug)]
pub struct Trace<W> {
    writer: W,
    hops: Vec<String>,
    /// The last written RTO of each node.
    rtos: Vec<Option<Duration>>,
    /// The last written parent and rank of each node.
    routes: Vec<Option<(Option<NodeId>, u16)>>,
    result: io::Result<()>,
}

impl<W> Trace<W> {
    /// The columns of a trace, each with a description.
    pub const COLUMNS: &[(&str, &str)] = &[
        ("time_s", "The simulated time in seconds."),
        ("event", "What happened."),
        (
            "hop",
            "The hop where it happened, as `up.NAME` or `down.NAME`; `node N` for a frame and for the RTO and RPL of a node; empty for a packet at a node.",
        ),
        (
            "from",
            "The number of the node that sent the packet or the frame, or of the node whose RTO, route or message it is.",
        ),
        (
            "to",
            "The number of the node that receives the packet; of a frame, the next node, empty for all nodes; of `rpl parent`, the parent.",
        ),
        (
            "bytes",
            "The bytes on the wire or on the air, headers included; of a message of RPL, the bytes of its ICMPv6 message.",
        ),
        ("queue_bytes", "The bytes that wait in the hop's buffer after the event."),
        (
            "exchange",
            "The number of the exchange among the exchanges of its client, where the packet belongs to one.",
        ),
        ("transmission", "The number of the transmission, 0 for the first."),
        ("rank", "The node's rank in RPL, in 1/128 of a transmission; 65535 without a parent."),
        ("rto_s", "The node's RTO in seconds, from this moment on."),
    ];
}

impl<W: Write> Trace<W> {
    /// Writes the header of a trace, and returns the trace. `hops` are the names of
    /// [`Network::hop_names`](crate::Network::hop_names). Writes are small: give it a buffered writer.
    pub fn new(mut writer: W, hops: &[String]) -> Self {
        let names: Vec<_> = Self::COLUMNS.iter().map(|(name, _)| *name).collect();
        let result = writeln!(writer, "{}", names.join(","));
        let hops = hops.iter().map(|name| quoted(name)).collect();
        Self { writer, hops, rtos: Vec::new(), routes: Vec::new(), result }
    }

    /// Flushes the writer and returns it.
    ///
    /// # Errors
    /// The first error of the writer. Nothing was written after it.
    pub fn finish(mut self) -> io::Result<W> {
        self.result?;
        self.writer.flush()?;
        Ok(self.writer)
    }
}

/// Returns a field of CSV, in quotes if RFC 4180 asks for them.
fn quoted(name: &str) -> String {
    if name.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", name.replace('"', "\"\""))
    } else {
        name.into()
    }
}

impl<W: Write> Tap for Trace<W> {
    fn record(&mut self, record: &Record<'_>) {
        if self.result.is_err() {
            return;
        }
        let hop = record.hop.and_then(|hop| self.hops.get(usize::from(hop.0))).map_or("", String::as_str);
        let Record { time, from, to, mark, .. } = record;
        // `new` has quoted the names of hops. No other field needs quotes.
        self.result = writeln!(
            self.writer,
            "{time},{},{hop},{},{},{},{},{},{},,",
            record.event.name(),
            from.0,
            to.0,
            record.wire_bytes,
            record.queue_bytes,
            mark.exchange,
            mark.transmission,
        );
    }

    fn frame(&mut self, record: &FrameRecord<'_>) {
        if self.result.is_err() {
            return;
        }
        let FrameRecord { time, event, node, frame, .. } = record;
        let kind = match frame.kind {
            FrameKind::Data => "frame",
            FrameKind::Ack => "ack",
        };
        let to = frame.to.map(|to| to.0.to_string()).unwrap_or_default();
        let (event, from, bytes) = (event.name(), frame.from.0, frame.bytes);
        self.result = writeln!(self.writer, "{time},{kind} {event},node {},{from},{to},{bytes},,,,,", node.0);
    }

    fn watches_nodes(&self) -> bool {
        true
    }

    fn node(&mut self, time: Time, node: NodeId, event: NodeEvent) {
        if self.result.is_err() {
            return;
        }
        let number = node.0;
        self.result = match event {
            NodeEvent::Rto(rto) if changes(&mut self.rtos, node, rto) => {
                let rto_s = rto.as_micros() as f64 / 1e6;
                writeln!(self.writer, "{time},rto,node {number},{number},,,,,,,{rto_s}")
            }
            NodeEvent::Route { parent, rank } => {
                let before = self.routes.get(number as usize).copied().flatten();
                // The node reports after every event. Only a change is a line.
                if !changes(&mut self.routes, node, (parent, rank)) {
                    return;
                }
                let what = if before.is_none_or(|(before, _)| before != parent) { "parent" } else { "rank" };
                let parent = parent.map(|parent| parent.0.to_string()).unwrap_or_default();
                writeln!(self.writer, "{time},rpl {what},node {number},{number},{parent},,,,,{rank},")
            }
            NodeEvent::Rpl { message, to, bytes, rank } => {
                let to = to.map(|to| to.0.to_string()).unwrap_or_default();
                writeln!(self.writer, "{time},rpl {message},node {number},{number},{to},{bytes},,,,{rank},")
            }
            NodeEvent::Rto(_) => return,
        };
    }
}

/// Remembers the value of a node. Returns whether it differs from the value before.
fn changes<T: Copy + PartialEq>(known: &mut Vec<Option<T>>, node: NodeId, value: T) -> bool {
    let place = node.0 as usize;
    if known.len() <= place {
        known.resize(place + 1, None);
    }
    known[place].replace(value) != Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trace_records_the_state_of_a_node_when_it_changes() {
        let mut trace = Trace::new(Vec::new(), &[]);
        let route = |parent, rank| NodeEvent::Route { parent: Some(NodeId(parent)), rank };
        for (second, event) in [
            (1, NodeEvent::Rto(Duration::from_millis(2_000))),
            (2, NodeEvent::Rto(Duration::from_millis(2_000))),
            (3, NodeEvent::Rto(Duration::from_millis(900))),
            (4, route(0, 384)),
            (5, route(0, 300)),
            (6, route(4, 300)),
            (7, NodeEvent::Rpl { message: "dio", to: None, bytes: 76, rank: 300 }),
        ] {
            trace.node(Time::from_secs(second), NodeId(3), event);
        }
        let text = String::from_utf8(trace.finish().unwrap()).unwrap();
        let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|row| row.split(',').collect()).collect();
        assert!(rows.iter().all(|row| row.len() == Trace::<Vec<u8>>::COLUMNS.len()), "{text}");
        let events: Vec<_> = rows.iter().map(|row| (row[1], row[4], row[9], row[10])).collect();
        assert_eq!(
            events,
            [
                ("rto", "", "", "2"),
                ("rto", "", "", "0.9"),
                ("rpl parent", "0", "384", ""),
                ("rpl rank", "0", "300", ""),
                ("rpl parent", "4", "300", ""),
                ("rpl dio", "", "300", ""),
            ]
        );
        assert!(events.iter().all(|(event, ..)| NodeEvent::NAMES.iter().any(|(name, _)| name == event)));
    }
}
