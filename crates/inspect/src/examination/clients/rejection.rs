//! Cases on messages that a client must reject or ignore.

use std::time::Duration;

use coapace_proto::{Code, Kind, Options};

use super::super::case::{Case, DatagramSchedule, ExaminationTarget};
use super::super::finding::Finding;
use super::super::packet::{Packet, empty, message};
use super::super::transcript::Transcript;
use super::{PAYLOAD, is_confirmable, no_request, response};

pub(super) const PING: Case = Case {
    name: "client-ping",
    summary: "an empty confirmable message",
    clause: "RFC 7252 §4.3",
    react: |target, transcript, packet, outbox| {
        provoke(target, transcript, packet, outbox, &[empty(Kind::Confirmable, target.id(PROVOKED))]);
    },
    judge: |target, transcript| judge(target, transcript, "an empty confirmable message"),
    ..PROVOCATION
};

pub(super) const UNMATCHED: Case = Case {
    name: "unmatched",
    summary: "a confirmable response with a token that no request has",
    clause: "RFC 7252 §4.2",
    react: |target, transcript, packet, outbox| {
        let bytes = message(
            Kind::Confirmable,
            Code::CONTENT,
            target.id(PROVOKED),
            b"nobody's",
            &Options::new(),
            PAYLOAD,
        );
        provoke(target, transcript, packet, outbox, &[bytes]);
    },
    judge: |target, transcript| judge(target, transcript, "a response with an unknown token"),
    ..PROVOCATION
};

pub(super) const MALFORMED: Case = Case {
    name: "client-malformed",
    summary: "datagrams that are not CoAP messages",
    clause: "RFC 7252 §3, §4.2",
    react: |target, transcript, packet, outbox| {
        let numbered = (PROVOKED..).zip(DATAGRAMS).map(|(n, (_, bytes))| numbered(target, n, bytes));
        let datagrams: Vec<Vec<u8>> = numbered.collect();
        provoke(target, transcript, packet, outbox, &datagrams);
    },
    judge: judge_malformed,
    ..PROVOCATION
};

/// The number of the Message ID of the first message that the client must reject.
const PROVOKED: u16 = 900;

/// Malformed datagrams: their names and bytes. The third and fourth byte are replaced by the Message ID. A datagram of
/// another version must be ignored. A datagram with a format error may be rejected with a Reset or silently.
const DATAGRAMS: [(&str, &[u8]); 6] = [
    (OTHER_VERSION, b"\x80\x45\0\0"),
    ("token length 15", b"\x4f\x45\0\0"),
    ("a payload marker without payload", b"\x40\x45\0\0\xff"),
    ("option delta 15", b"\x40\x45\0\0\xf0"),
    ("a single byte", b"\x40"),
    ("an empty datagram", b""),
];

const OTHER_VERSION: &str = "version 2";

/// Returns a datagram with the `n`th Message ID, if it is long enough for one.
fn numbered(target: &ExaminationTarget, n: u16, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(place) = bytes.get_mut(2..4) {
        place.copy_from_slice(&target.id(n).to_be_bytes());
    }
    bytes
}

/// The common part of the cases: a request is left unanswered while the client gets messages to reject, and is answered
/// afterwards.
const PROVOCATION: Case = Case {
    seconds: [4, 4],
    is_enough: |_, transcript| {
        let answered = transcript.sent().filter(|packet| is_response(packet)).map(|packet| packet.at).next();
        answered.is_some_and(|at| transcript.until > at + Duration::from_millis(700))
    },
    lacks: |_, _| None,
    ..super::CASE
};

/// Returns whether this is the response that the client waits for.
fn is_response(packet: &Packet) -> bool {
    packet.message().is_some_and(|message| {
        matches!(message.kind, Kind::Acknowledgement | Kind::NonConfirmable) && message.code == Code::CONTENT
    })
}

fn provoke(
    _: &ExaminationTarget,
    transcript: &Transcript,
    packet: &Packet,
    outbox: &mut DatagramSchedule,
    datagrams: &[Vec<u8>],
) {
    if !packet.is_request() {
        return;
    }
    let is_first = transcript.received().filter(|packet| packet.is_request()).count() == 1;
    if is_first {
        for (place, bytes) in datagrams.iter().enumerate() {
            // Apart in time, so that a reply without a known Message ID belongs to the datagram before it.
            outbox.answer(packet, 50 * place as u64, bytes.clone());
        }
        // Before the first timeout of 2 s, so that no copy comes between.
        outbox.answer(packet, 1_000, response(packet));
    } else if transcript.copies_of(packet) > 1 || is_confirmable(packet) {
        outbox.answer(packet, 0, response(packet));
    }
}

fn judge(target: &ExaminationTarget, transcript: &Transcript, what: &str) -> Vec<Finding> {
    if transcript.received().next().is_none() {
        return no_request(transcript).into_iter().collect();
    }
    let id = target.id(PROVOKED);
    // The provocation is sent before any response.
    let Some(provocation) = transcript.sent().next() else { return Vec::new() };
    let answer = |kind| transcript.received().find(move |packet| packet.is_answer(kind, id));
    let finding = if let Some(reset) = answer(Kind::Reset) {
        Finding::ok(format!("{what} is rejected with a Reset")).seen_in([provocation.number, reset.number])
    } else if let Some(ack) = answer(Kind::Acknowledgement) {
        Finding::fault(format!("{what} is acknowledged; it has to be rejected with a Reset"))
            .seen_in([provocation.number, ack.number])
    } else {
        Finding::fault(format!("{what} is ignored; it has to be rejected with a Reset"))
            .seen_in([provocation.number])
    };
    vec![finding]
}

fn judge_malformed(_: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    let Some(request) = transcript.received().next() else {
        return no_request(transcript).into_iter().collect();
    };
    let datagrams: Vec<&Packet> = transcript.sent().filter(|packet| !is_response(packet)).collect();
    // The right answer comes last. A client that ends before it took a malformed datagram for the answer, or crashed.
    let right =
        transcript.sent().find(|packet| is_response(packet)).map(|packet| packet.at).unwrap_or_default();
    let mut resets = 0;
    let mut findings = Vec::new();
    for answer in transcript.received().filter(|packet| !packet.is_request()) {
        let place = datagrams.iter().position(|sent| sent.bytes.get(2..4) == answer.bytes.get(2..4));
        // An answer without a Message ID of ours counts for the datagram before it.
        let before = datagrams.iter().rposition(|sent| sent.number < answer.number).unwrap_or(0);
        let meant = place.unwrap_or(before);
        let name = DATAGRAMS.get(meant).map_or("a datagram", |(name, _)| *name);
        let is_reset = answer.message().is_some_and(|message| message.kind == Kind::Reset);
        if is_reset && place.is_some() && name != OTHER_VERSION {
            resets += 1;
            continue;
        }
        let what = if is_reset { "a Reset" } else { "a message" };
        let wanted = match name {
            OTHER_VERSION => "it has to be ignored",
            _ => "it is rejected with a Reset or silently",
        };
        let packets = datagrams.get(meant).map(|packet| packet.number).into_iter().chain([answer.number]);
        findings.push(Finding::fault(format!("{what} in answer to {name}; {wanted}")).seen_in(packets));
    }
    let all = || datagrams.iter().map(|packet| packet.number);
    if transcript.exit_after(request.lane, Duration::ZERO).is_some_and(|at| at < right) {
        findings.push(Finding::fault("the client ended before its answer came").seen_in(all()));
    }
    if findings.is_empty() {
        let text = format!(
            "{resets} of {} datagrams are answered with a Reset, and the client keeps waiting",
            DATAGRAMS.len()
        );
        findings.push(Finding::ok(text).seen_in(all()));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity;
    use super::super::super::rehearsal::{ScriptedDatagrams, client, rehearse, sound, worst};
    use super::*;

    const CASES: [Case; 3] = [PING, UNMATCHED, MALFORMED];

    fn timeout(_: u16, copy: u32) -> u64 {
        2_300 << copy
    }

    #[test]
    fn a_client_that_rejects_unexpected_messages_with_a_reset_passes() {
        for case in CASES {
            let findings = rehearse(&case, &ExaminationTarget::default(), client(2, timeout, sound));
            assert_eq!(worst(&findings), Severity::Ok, "{}: {findings:?}", case.name);
            assert!(!findings[0].packets.is_empty());
        }
    }

    #[test]
    fn a_client_that_ignores_or_acknowledges_unexpected_messages_fails() {
        for case in [PING, UNMATCHED] {
            for is_silent in [true, false] {
                let broken = client(2, timeout, |now, received, pending: &mut ScriptedDatagrams| {
                    let is_provoked = received.kind == Kind::Confirmable;
                    if is_provoked && !is_silent {
                        pending.push((now, empty(Kind::Acknowledgement, received.message_id)));
                    }
                    is_provoked
                });
                let findings = rehearse(&case, &ExaminationTarget::default(), broken);
                assert_eq!(worst(&findings), Severity::Fault, "{}: {findings:?}", case.name);
            }
        }
    }

    #[test]
    fn a_client_that_acknowledges_malformed_datagrams_fails() {
        let mut sound = client(2, timeout, sound);
        let broken = |now, bytes: Option<&[u8]>, pending: &mut ScriptedDatagrams| match bytes {
            Some(bytes @ [0x4f, ..]) => {
                pending.push((now, empty(Kind::Acknowledgement, u16::from_be_bytes([bytes[2], bytes[3]]))));
            }
            bytes => sound(now, bytes, pending),
        };
        let findings = rehearse(&MALFORMED, &ExaminationTarget::default(), broken);
        assert_eq!(worst(&findings), Severity::Fault, "{findings:?}");
    }
}
