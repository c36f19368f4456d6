//! Every packet of one run as a table, and every frame of a mesh.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, Field, Schema};
use coapace_proto::{Kind, Message};
use coapace_run::contender::Contender;
use coapace_run::{Observe, hop_names, run_tapped};
use coapace_scenario::Scenario;
use coapace_sim::mesh::{Content, FrameKind, FrameRecord};
use coapace_sim::{Record, Tap, Transport};

use crate::Table;

/// The packets and frames of one run.
#[derive(Clone, Debug)]
pub struct Frames {
    /// A row for each event, at most as many as the limit. See [`frames()`] for the columns.
    pub table: Table,
    /// The number of all events, even if the table has fewer rows.
    pub events: u64,
}

/// Runs `scenario` once, and returns the events of its packets and frames, at most the first `limit`:
///
/// * `time_s`; the `event`, as in traces (`sent`, `queued`, `lost`, …; for frames in a mesh `frame sent`,
///   `ack received`, …); the `hop` where the event happened, as `up.NAME`, `down.NAME` or, for a frame, `node N`; an
///   event at an end has no `hop`
/// * `from` and `to`, the numbers of the nodes of this hop; `source` and `destination`, the numbers of the packet's
///   ends. The two pairs differ only in frames of a mesh. A frame to all nodes has no `to`
/// * `bytes` with headers, and `queue_bytes` of the hop after the event
/// * `exchange`, counted by its client from 0, and `transmission`, 0 for the first
/// * for a CoAP message over UDP, its `type` (`CON`, `NON`, `ACK`, `RST`), `code` (`GET`, `2.05 Content`), `message_id`
///   and `token` in hexadecimal digits
///
/// # Errors
/// An error of Arrow.
pub fn frames(
    scenario: &Scenario,
    contender: &Contender,
    seed: u64,
    limit: usize,
) -> Result<Frames, ArrowError> {
    let tap = FrameColumns { hops: hop_names(scenario), limit, ..FrameColumns::default() };
    run_tapped(scenario, contender, seed, Observe::Totals, tap).1.finish()
}

/// The columns that are being filled.
#[derive(Debug, Default)]
struct FrameColumns {
    hops: Vec<String>,
    limit: usize,
    events: u64,
    time: Float64Builder,
    event: StringBuilder,
    hop: StringBuilder,
    ends: [Int64Builder; 4],
    bytes: Int64Builder,
    queue_bytes: Int64Builder,
    exchange: Int64Builder,
    transmission: Int64Builder,
    kind: StringBuilder,
    code: StringBuilder,
    message_id: Int64Builder,
    token: StringBuilder,
}

impl FrameColumns {
    /// Counts an event. Returns whether the event gets a row: false if the limit of rows is reached.
    fn count(&mut self) -> bool {
        self.events += 1;
        self.events <= self.limit as u64
    }

    /// Appends four numbers of nodes: `from` and `to` of the hop, `source` and `destination` of the packet.
    fn append_ends(&mut self, ends: [Option<u32>; 4]) {
        for (column, end) in self.ends.iter_mut().zip(ends) {
            column.append_option(end.map(i64::from));
        }
    }

    /// Appends the type, code, Message ID and token of the CoAP message in `bytes`; unknown values without such a
    /// message.
    fn append_message(&mut self, bytes: Option<&[u8]>) {
        // The columns stay empty for a payload that is not CoAP.
        let message = bytes.and_then(|bytes| Message::parse(bytes).ok());
        self.kind.append_option(message.map(|message| match message.kind {
            Kind::Confirmable => "CON",
            Kind::NonConfirmable => "NON",
            Kind::Acknowledgement => "ACK",
            Kind::Reset => "RST",
        }));
        self.code.append_option(message.map(|message| message.code.to_string()));
        self.message_id.append_option(message.map(|message| message.message_id.into()));
        let digits = message.map(|message| {
            message.token.iter().fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"))
        });
        self.token.append_option(digits);
    }

    fn finish(mut self) -> Result<Frames, ArrowError> {
        let [from, to, source, destination] = &mut self.ends;
        let columns: [(&str, ArrayRef); 15] = [
            ("time_s", Arc::new(self.time.finish())),
            ("event", Arc::new(self.event.finish())),
            ("hop", Arc::new(self.hop.finish())),
            ("from", Arc::new(from.finish())),
            ("to", Arc::new(to.finish())),
            ("source", Arc::new(source.finish())),
            ("destination", Arc::new(destination.finish())),
            ("bytes", Arc::new(self.bytes.finish())),
            ("queue_bytes", Arc::new(self.queue_bytes.finish())),
            ("exchange", Arc::new(self.exchange.finish())),
            ("transmission", Arc::new(self.transmission.finish())),
            ("type", Arc::new(self.kind.finish())),
            ("code", Arc::new(self.code.finish())),
            ("message_id", Arc::new(self.message_id.finish())),
            ("token", Arc::new(self.token.finish())),
        ];
        let (fields, arrays): (Vec<_>, Vec<_>) = columns
            .into_iter()
            .map(|(name, array)| (Field::new(name, array.data_type().clone(), true), array))
            .unzip();
        let table = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?.into();
        Ok(Frames { table, events: self.events })
    }
}

impl Tap for FrameColumns {
    fn record(&mut self, record: &Record<'_>) {
        // Counted above the limit, too, so that the caller can say how many rows are missing.
        if !self.count() {
            return;
        }
        self.time.append_value(record.time.as_secs_f64());
        self.event.append_value(record.event.name());
        self.hop.append_option(record.hop.and_then(|hop| self.hops.get(usize::from(hop.0))));
        // Hops have no nodes of their own: sender and receiver are the ends of the path.
        let [from, to] = [record.from, record.to].map(|node| Some(node.0));
        self.append_ends([from, to, from, to]);
        self.bytes.append_value(record.wire_bytes.into());
        // The ends of a path have no queue, which differs from an empty one.
        let queued = record.hop.and(i64::try_from(record.queue_bytes).ok());
        self.queue_bytes.append_option(queued);
        self.exchange.append_value(record.mark.exchange.into());
        self.transmission.append_value(record.mark.transmission.into());
        self.append_message((record.transport == Transport::Udp).then_some(record.bytes));
    }

    fn frame(&mut self, record: &FrameRecord<'_>) {
        if !self.count() {
            return;
        }
        let frame = record.frame;
        let kind = match frame.kind {
            FrameKind::Data => "frame",
            FrameKind::Ack => "ack",
        };
        self.time.append_value(record.time.as_secs_f64());
        self.event.append_value(format!("{kind} {}", record.event.name()));
        self.hop.append_value(format!("node {}", record.node.0));
        let source = record.datagram.map(|datagram| datagram.source.0);
        let destination = record.datagram.and_then(|datagram| datagram.dest).map(|node| node.0);
        self.append_ends([Some(frame.from.0), frame.to.map(|to| to.0), source, destination]);
        self.bytes.append_value(frame.bytes.into());
        // Nodes of a mesh queue frames for the channel. A record of a frame does not have their bytes.
        self.queue_bytes.append_null();
        // Frames of RPL carry no exchange, so these columns are empty.
        let message = record.datagram.and_then(|datagram| match datagram.content {
            Content::Udp(bytes) => Some(bytes),
            Content::Icmpv6(_) => None,
        });
        self.exchange.append_option(message.map(|_| record.mark.exchange.into()));
        self.transmission.append_option(message.map(|_| record.mark.transmission.into()));
        self.append_message(message);
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{Array, StringArray};
    use coapace_run::run;

    use super::*;

    fn of(scenario: &str, settings: &[(&str, &str)], mechanism: &str, limit: usize) -> (Frames, u64) {
        let settings: Vec<_> =
            settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let scenario = Scenario::load(scenario, &settings).unwrap();
        let contender = Contender::parse(mechanism).unwrap();
        let sent = run(&scenario, &contender, 1, Observe::Totals).requests_sent;
        (frames(&scenario, &contender, 1, limit).unwrap(), sent)
    }

    fn texts<'a>(frames: &'a Frames, name: &str) -> &'a StringArray {
        frames.table.batch().column_by_name(name).unwrap().as_string()
    }

    #[test]
    fn the_table_of_frames_has_a_row_with_the_header_of_every_request_sent() {
        let (frames, sent) = of("nb-iot", &[("clients", "50"), ("buffer", "2500")], "fasor-token", 1_000_000);
        assert_eq!(frames.events, frames.table.batch().num_rows() as u64);
        let [event, kind, code, token] = ["event", "type", "code", "token"].map(|name| texts(&frames, name));
        let requests: Vec<usize> =
            (0..event.len()).filter(|&row| event.value(row) == "sent" && code.value(row) == "GET").collect();
        assert_eq!(requests.len() as u64, sent);
        assert!(requests.iter().all(|&row| kind.value(row) == "CON"));
        assert!(requests.iter().any(|&row| !token.value(row).is_empty()));
        let retransmissions = frames.table.batch().column_by_name("transmission").unwrap();
        let retransmissions = retransmissions.as_primitive::<Int64Type>();
        assert!(requests.iter().any(|&row| retransmissions.value(row) > 0));
        assert!(code.iter().flatten().any(|code| code == "2.05 Content"));
    }

    #[test]
    fn frames_of_a_mesh_have_a_hop_a_source_and_a_destination() {
        let (frames, _) = of("mesh-grid", &[], "default", 20_000);
        let (event, hop) = (texts(&frames, "event"), texts(&frames, "hop"));
        let row = (0..event.len()).find(|&row| event.value(row) == "frame sent").unwrap();
        assert!(hop.value(row).starts_with("node "));
        assert!(event.iter().flatten().any(|event| event == "ack received" || event == "ack sent"));
    }

    #[test]
    fn events_above_the_limit_are_counted_and_left_out_of_the_table() {
        let (all, _) = of("lossy-lan", &[], "default", 1_000_000);
        let (some, _) = of("lossy-lan", &[], "default", 7);
        assert_eq!((some.table.batch().num_rows(), some.events), (7, all.events));
        assert_eq!(some.table.batch(), &all.table.batch().slice(0, 7));
        let (tcp, _) = of("nb-iot", &[("clients", "1")], "tcp", 100);
        assert_eq!(texts(&tcp, "type").null_count(), tcp.table.batch().num_rows(), "no CoAP over UDP");
    }
}
