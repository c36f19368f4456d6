//! Judges an examination again, from its capture.
//!
//! ```sh
//! coapace examine --quick --pcap client.pcapng -- coap-client-notls -B 120 {uri}
//! cargo run --release -p coapace-inspect --example judge_again -- --quick client.pcapng
//! ```
//!
//! Prints a JSON object for each verdict, with the keys of `coapace examine --format json`. `evidence/examine/compare` runs it
//! at two commits, to compare their verdicts on equal packets. A capture does not show when a client ended, nor its exit code.
//! So the cases `upload-cut-short`, `request-too-large`, `large-response` and `group` may get another verdict here than in the
//! examination.

use std::error::Error;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::time::Duration;

use coapace_inspect::advice::headers;
use coapace_inspect::advice::lowpan::Lowpan;
use coapace_inspect::examination::{
    Case, ExaminationTarget, ExaminedSide, Finding, Packet, PacketDirection, Transcript, cases,
};
use coapace_proto::Options;
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{Block, OptionCode, PcapBlockOwned, PcapError, create_reader};
use serde_json::json;

/// The step by which the end of a case is searched after its last packet.
const STEP: Duration = Duration::from_millis(10);

/// The time from the start of the examination to its first packet, which the capture does not have.
const BEGUN: Duration = Duration::from_millis(10);

/// The name for the GET that precedes the cases of a server. Its Message ID is one less than the first of a case.
const GREETING: &str = "greeting";

/// A packet of the capture, with the name of its case and the address of the examiner's socket.
struct RecordedPacket {
    case: String,
    local: SocketAddr,
    packet: Packet,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (file, is_quick) = match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [file] => (*file, false),
        ["--quick", file] => (*file, true),
        _ => return Err("usage: judge_again [--quick] CAPTURE".into()),
    };
    let packets = read(&std::fs::read(file)?)?;
    let greeting = packets.iter().find(|recorded| recorded.case == GREETING);
    let greeting_id = greeting.and_then(|recorded| Some(recorded.packet.message()?.message_id));
    let side = if greeting.is_some() { ExaminedSide::Server } else { ExaminedSide::Client };
    // The judges ask only whether there is such a resource, and the packets show that by themselves.
    let some = Some(Options::new());
    let target = ExaminationTarget {
        is_quick,
        first_message_id: greeting_id.map_or(0, |id| id.wrapping_add(1)),
        observable: some.clone(),
        slow: some.clone(),
        large: some.clone(),
        counter: some,
        ..ExaminationTarget::default()
    };
    let mut out = io::stdout().lock();
    for case in cases(side) {
        let of_case = packets.iter().filter(|recorded| recorded.case == case.name);
        for finding in judge(case, &target, of_case) {
            let object = json!({
                "side": if side == ExaminedSide::Server { "server" } else { "client" },
                "case": case.name,
                "severity": finding.severity,
                "measured": finding.measured,
                "clause": if finding.clause.is_empty() { case.clause } else { finding.clause },
                "packets": finding.packets,
            });
            writeln!(out, "{object}")?;
        }
    }
    Ok(out.flush()?)
}

/// Returns the findings of a case from its packets; none without packets.
fn judge<'a>(
    case: &Case,
    target: &ExaminationTarget,
    packets: impl Iterator<Item = &'a RecordedPacket>,
) -> Vec<Finding> {
    let mut transcript = Transcript::default();
    let mut locals = Vec::new();
    for RecordedPacket { local, packet, .. } in packets {
        let lane = locals.iter().position(|known| known == local).unwrap_or_else(|| {
            locals.push(*local);
            locals.len() - 1
        });
        transcript.add(Packet { lane, ..packet.clone() });
    }
    let Some(first) = transcript.packets.first() else { return Vec::new() };
    // The examination went on behind the last packet until the case had seen enough, or its time was over.
    let latest = first.at + case.lasts(target.is_quick);
    while transcript.until < latest && !(case.is_enough)(target, &transcript) {
        transcript.until += STEP;
    }
    (case.judge)(target, &transcript)
}

/// Reads a capture of `coapace examine --pcap`: its first interface has what the examiner sent, the other what it received.
fn read(file: &[u8]) -> Result<Vec<RecordedPacket>, Box<dyn Error>> {
    let mut reader = create_reader(file.len().max(1), file).map_err(|error| error.to_string())?;
    let mut packets = Vec::new();
    let (mut number, mut begun) = (0, None);
    loop {
        let (length, block) = match reader.next() {
            Ok(read) => read,
            Err(PcapError::Eof) => return Ok(packets),
            Err(PcapError::Incomplete(_)) => {
                reader.refill().map_err(|error| error.to_string())?;
                continue;
            }
            Err(error) => return Err(format!("not a whole capture: {error}").into()),
        };
        if let PcapBlockOwned::NG(Block::EnhancedPacket(block)) = &block {
            number += 1;
            let at = Duration::from_nanos(u64::from(block.ts_high) << 32 | u64::from(block.ts_low));
            let comment = block.options.iter().find(|option| option.code == OptionCode::Comment);
            let comment = comment.and_then(|option| option.as_str().ok());
            // An empty packet is in place of a datagram that no header fits. It only counts.
            let datagram = headers::datagram(101, block.packet_data(), true, &mut Lowpan::default());
            if let (Some(case), Ok(datagram)) = (comment, datagram) {
                let is_sent = block.if_id == 0;
                let (local, peer) =
                    if is_sent { (datagram.from, datagram.to) } else { (datagram.to, datagram.from) };
                packets.push(RecordedPacket {
                    case: case.to_owned(),
                    local,
                    packet: Packet {
                        number,
                        at: BEGUN + at.saturating_sub(*begun.get_or_insert(at)),
                        lane: 0,
                        peer,
                        direction: if is_sent { PacketDirection::Sent } else { PacketDirection::Received },
                        bytes: datagram.payload.to_vec(),
                    },
                });
            }
        }
        reader.consume(length);
    }
}
