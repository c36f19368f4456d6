//! Every event as a line of CSV.

use std::io::{self, Write};

use crate::mesh::{FrameKind, FrameRecord};
use crate::{Record, Tap};

/// Writes `time_s,event,hop,from,to,bytes,queue_bytes,exchange,transmission`, bytes being those on the wire. The hop is
/// empty for what happens at a node. Of a mesh, what happens to frames is among it (`frame sent`, `frame received`, `ack sent`
/// …), from a node to the next; the hop is then the node where it happens, and to nobody is to everyone.
#[derive(Debug)]
pub struct Trace<W> {
    writer: W,
    hops: Vec<String>,
    result: io::Result<()>,
}

impl<W: Write> Trace<W> {
    /// A trace with the names of the hops as [`Network::hop_names`](crate::Network::hop_names) gives them. Writes are
    /// small: give it a buffered writer.
    pub fn new(mut writer: W, hops: &[String]) -> Self {
        let result = writeln!(writer, "time_s,event,hop,from,to,bytes,queue_bytes,exchange,transmission");
        Self { writer, hops: hops.iter().map(|name| quoted(name)).collect(), result }
    }

    /// The writer, flushed.
    ///
    /// # Errors
    /// The first that writing met; nothing was written after it.
    pub fn finish(mut self) -> io::Result<W> {
        self.result?;
        self.writer.flush()?;
        Ok(self.writer)
    }
}

/// As RFC 4180 wants it.
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
        self.result = writeln!(
            self.writer,
            "{time},{},{hop},{},{},{},{},{},{}",
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
        self.result = writeln!(self.writer, "{time},{kind} {event},node {},{from},{to},{bytes},,,", node.0);
    }
}
