//! Cases for stacks as clients, with the examiner as the server.

mod acknowledgements;
mod adaptation;
mod backoff;
mod bodies;
mod collapse;
mod concurrency;
mod first_timeout;
mod group;
mod identifiers;
mod observation;
mod options;
mod rejection;
mod separate;

use coapace_proto::{Code, Kind, Options};

use super::case::{Case, DatagramSchedule, ExaminationTarget};
use super::finding::Finding;
use super::packet::{Packet, message};
use super::transcript::Transcript;

pub(super) use backoff::{count, growth};
pub(super) use collapse::verdict;

/// All cases for clients. Long cases come first, so that short ones run beside them.
pub(super) const CASES: &[Case] = &[
    backoff::CASE,
    collapse::CASE,
    adaptation::CASE,
    first_timeout::CASE,
    identifiers::CASE,
    acknowledgements::UNKNOWN,
    acknowledgements::WRONG_TOKEN,
    acknowledgements::REPEATED,
    acknowledgements::RESET,
    separate::CASE,
    separate::UNANNOUNCED,
    rejection::PING,
    rejection::UNMATCHED,
    rejection::MALFORMED,
    options::PIGGYBACKED,
    options::CRITICAL,
    options::ELECTIVE,
    concurrency::CASE,
    bodies::CUT_SHORT,
    bodies::TOO_LARGE,
    bodies::LARGE_RESPONSE,
    group::CASE,
    observation::CASE,
];

const PAYLOAD: &[u8] = b"examined";

/// The values that cases for clients have unless they set others.
const CASE: Case = Case {
    name: "",
    summary: "",
    clause: "",
    seconds: [10, 10],
    lanes: [1, 1],
    restarts: false,
    asks_group: false,
    begin: nothing,
    react: ignore,
    is_enough: never,
    lacks: |_, transcript| no_request(transcript),
    judge: |_, _| Vec::new(),
};

fn nothing(_: &ExaminationTarget, _: &mut DatagramSchedule) {}

fn ignore(_: &ExaminationTarget, _: &Transcript, _: &Packet, _: &mut DatagramSchedule) {}

fn never(_: &ExaminationTarget, _: &Transcript) -> bool {
    false
}

/// Returns a 2.05 response: piggybacked to a confirmable request, non-confirmable to a non-confirmable request.
fn response(request: &Packet) -> Vec<u8> {
    response_with(request, &Options::new())
}

fn response_with(request: &Packet, options: &Options) -> Vec<u8> {
    content(request, options, PAYLOAD)
}

fn content(request: &Packet, options: &Options, payload: &[u8]) -> Vec<u8> {
    let Some(received) = request.message() else { return Vec::new() };
    let kind = match received.kind {
        Kind::Confirmable => Kind::Acknowledgement,
        _ => Kind::NonConfirmable,
    };
    message(kind, Code::CONTENT, received.message_id, &received.token, options, payload)
}

/// Returns a confirmable 2.05 response to a request, with the Message ID `message_id`.
fn confirmable_response(request: &Packet, message_id: u16, options: &Options) -> Vec<u8> {
    let token = request.message().map(|received| received.token).unwrap_or_default();
    message(Kind::Confirmable, Code::CONTENT, message_id, &token, options, PAYLOAD)
}

/// Answers the second copy of every confirmable request, and the first copy of every other request.
fn answer_second(
    _: &ExaminationTarget,
    transcript: &Transcript,
    packet: &Packet,
    outbox: &mut DatagramSchedule,
) {
    if packet.is_request() && (!is_confirmable(packet) || transcript.copies_of(packet) >= 2) {
        outbox.answer(packet, 0, response(packet));
    }
}

fn is_confirmable(packet: &Packet) -> bool {
    packet.message().is_some_and(|message| message.kind == Kind::Confirmable)
}

/// Returns the finding for a case that received no confirmable request; `None` if it received one.
fn no_request(transcript: &Transcript) -> Option<Finding> {
    let mut requests = transcript.received().filter(|packet| packet.is_request()).peekable();
    if requests.peek().is_none() {
        return Some(Finding::not_tested("no request came"));
    }
    let has_confirmable = requests.any(is_confirmable);
    (!has_confirmable).then(|| Finding::not_tested("the requests are non-confirmable"))
}

/// Returns whether `seconds` have passed since the first packet.
fn has_lasted(transcript: &Transcript, seconds: u64) -> bool {
    let first = transcript.packets.first().map(|packet| packet.at);
    first.is_some_and(|first| transcript.until >= first + std::time::Duration::from_secs(seconds))
}
