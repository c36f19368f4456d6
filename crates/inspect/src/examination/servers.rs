//! Cases for stacks as servers, with the examiner as the client.

mod amplification;
mod blocks;
mod collapse;
mod duplicates;
mod large_request;
mod malformed;
mod observation;
mod options;
mod ping;
mod q_block;
mod separate;
mod silent_observer;

use coapace_proto::{Code, Kind, Options};

use super::case::{Case, DatagramSchedule, ExaminationTarget};
use super::finding::Finding;
use super::packet::{Packet, empty, message};
use super::transcript::Transcript;

/// All cases for servers. Long cases come first, so that short ones run beside them. Malformed datagrams come last,
/// because a server that crashes then has been examined already.
pub(super) const CASES: &[Case] = &[
    silent_observer::CASE,
    separate::SILENT,
    collapse::CASE,
    separate::CASE,
    observation::RESET,
    observation::CANCEL,
    duplicates::CONFIRMABLE,
    duplicates::NON_CONFIRMABLE,
    options::CRITICAL,
    options::ELECTIVE,
    options::TOKENS,
    options::METHODS,
    blocks::CASE,
    q_block::CASE,
    large_request::CASE,
    amplification::CASE,
    ping::CASE,
    malformed::CASE,
];

/// The values that cases for servers have unless they set others.
const CASE: Case = Case {
    name: "",
    summary: "",
    clause: "",
    seconds: [6, 6],
    lanes: [1, 1],
    restarts: false,
    asks_group: false,
    begin: |_, _| {},
    react: |_, _, packet, outbox| acknowledge(packet, outbox),
    is_enough: |_, _| false,
    lacks: |_, _| None,
    judge: |_, _| Vec::new(),
};

/// Returns the finding for a case that needs a large resource, if there is none; otherwise `None`.
fn needs_large(target: &ExaminationTarget, _: &Transcript) -> Option<Finding> {
    let has_none = target.large.is_none();
    has_none.then(|| Finding::not_tested("give a resource of more than 1024 bytes with --large"))
}

/// Acknowledges a packet if it is a confirmable response.
fn acknowledge(packet: &Packet, outbox: &mut DatagramSchedule) {
    if let Some(received) = packet.message()
        && received.kind == Kind::Confirmable
        && received.code.is_response()
    {
        outbox.answer(packet, 0, empty(Kind::Acknowledgement, received.message_id));
    }
}

/// Returns the `n`th request of a case, without payload.
fn request(target: &ExaminationTarget, kind: Kind, code: Code, n: u16, options: &Options) -> Vec<u8> {
    message(kind, code, target.id(n), &target.token(n), options, &[])
}

/// Returns the first response to the `n`th request; `None` if it is not answered.
fn response<'a>(target: &ExaminationTarget, transcript: &'a Transcript, n: u16) -> Option<&'a Packet> {
    let token = target.token(n);
    transcript.received().find(|packet| packet.is_response(&token))
}

/// Returns the number of the packet that first carried the `n`th request, as a list that is empty without such a
/// packet.
fn sent(target: &ExaminationTarget, transcript: &Transcript, n: u16) -> Vec<u32> {
    let id = target.id(n).to_be_bytes();
    let is_it = |packet: &&Packet| packet.bytes.get(2..4) == Some(&id[..]);
    // A list of one or none: callers chain it with the numbers of answers.
    transcript.sent().find(is_it).map(|packet| packet.number).into_iter().collect()
}
