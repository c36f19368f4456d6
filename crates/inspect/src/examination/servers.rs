//! Cases for stacks as servers. The examiner is the client.

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
use super::packet::{Packet, empty, message};
use super::transcript::Transcript;

/// All cases. Long ones come first, so that short ones run beside them. Malformed datagrams come last: a server that they end
/// has been examined by then.
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

/// The part that the cases for servers have in common.
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
    judge: |_, _| Vec::new(),
};

/// Acknowledges a confirmable response.
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

/// Returns the first response to the `n`th request.
fn response<'a>(target: &ExaminationTarget, transcript: &'a Transcript, n: u16) -> Option<&'a Packet> {
    let token = target.token(n);
    transcript.received().find(|packet| packet.is_response(&token))
}

/// Returns the number of the packet that carried the `n`th request first.
fn sent(target: &ExaminationTarget, transcript: &Transcript, n: u16) -> Vec<u32> {
    let id = target.id(n).to_be_bytes();
    let is_it = |packet: &&Packet| packet.bytes.get(2..4) == Some(&id[..]);
    transcript.sent().find(is_it).map(|packet| packet.number).into_iter().collect()
}
