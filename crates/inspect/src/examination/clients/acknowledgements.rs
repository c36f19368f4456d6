//! Cases on acknowledgements and Resets that belong to no request, come twice, or end a request.

use std::time::Duration;

use coapace_proto::{Code, Kind, Message, Options};

use super::super::case::{Case, DatagramSchedule, ExaminationTarget};
use super::super::copies::MessageCopies;
use super::super::finding::Finding;
use super::super::packet::{Packet, empty, message};
use super::super::transcript::Transcript;
use super::{PAYLOAD, answer_second, has_lasted, is_confirmable, response};

pub(super) const UNKNOWN: Case = Case {
    name: "unknown-ack",
    summary: "an acknowledgement with a Message ID that no request has",
    clause: "RFC 7252 §5.3.2",
    seconds: [8, 8],
    react: |target, transcript, packet, outbox| {
        // A third of the numbers away, so that no open request of a counting client has it.
        let shift = |id: u16| id.wrapping_add(0x5555);
        forge(target, transcript, packet, outbox, |id, token| (shift(id), token.to_vec()));
    },
    is_enough: |_, transcript| has_second_copy(transcript),
    judge: |_, transcript| judge_forged(transcript, "an acknowledgement with an unknown Message ID"),
    ..super::CASE
};

pub(super) const WRONG_TOKEN: Case = Case {
    name: "wrong-token",
    summary: "a piggybacked response whose token no request has",
    clause: "RFC 7252 §5.3.2",
    seconds: [5, 5],
    react: |target, transcript, packet, outbox| {
        let other = |token: &[u8]| match token {
            [] => vec![0x55],
            token => token.iter().map(|byte| byte ^ 0x55).collect(),
        };
        forge(target, transcript, packet, outbox, |id, token| (id, other(token)));
    },
    is_enough: |_, transcript| has_second_copy(transcript),
    judge: |_, transcript| judge_forged(transcript, "a response with another token"),
    ..super::CASE
};

/// The time within which a client that accepts a forged answer continues with its next request, or ends.
const PROMPT: Duration = Duration::from_millis(1_500);

/// Answers the first request of the case wrongly: `change` returns another Message ID and token for the answer. Answers
/// its second copy correctly.
fn forge(
    target: &ExaminationTarget,
    transcript: &Transcript,
    packet: &Packet,
    outbox: &mut DatagramSchedule,
    change: impl Fn(u16, &[u8]) -> (u16, Vec<u8>),
) {
    let is_first = transcript.requests().first().is_some_and(|first| first.first().number == packet.number);
    match packet.message().filter(|_| is_first) {
        Some(received) => {
            let (id, token) = change(received.message_id, &received.token);
            let options = Options::new();
            let kind = Kind::Acknowledgement;
            outbox.answer(packet, 0, message(kind, Code::CONTENT, id, &token, &options, PAYLOAD));
        }
        None => answer_second(target, transcript, packet, outbox),
    }
}

fn has_second_copy(transcript: &Transcript) -> bool {
    transcript.requests().first().is_some_and(|first| first.packets.len() > 1)
}

fn judge_forged(transcript: &Transcript, what: &str) -> Vec<Finding> {
    let requests = transcript.requests();
    let Some(first) = requests.first() else { return Vec::new() };
    let (begun, lane) = (first.first(), first.first().lane);
    let forged = transcript.sent().find(|packet| packet.lane == lane);
    let evidence = [begun.number].into_iter().chain(forged.map(|packet| packet.number));
    let next = requests.iter().map(MessageCopies::first).find(|packet| packet.number > begun.number);
    // A client that takes the answer goes on to its next request, or its process ends.
    let ended = transcript.exit_after(lane, begun.at);
    let went_on = next.map(|packet| packet.at).into_iter().chain(ended).min();
    // Neither an acknowledgement nor a Reset may be answered, not even one that fits nothing (RFC 7252 §4.2).
    let reply = transcript.received().find(|packet| {
        packet.message().is_none_or(|message| matches!(message.kind, Kind::Reset | Kind::Acknowledgement))
    });
    if let Some(reply) = reply {
        let text = format!("{what} is answered; it has to be ignored");
        return vec![Finding::fault(text).by("RFC 7252 §4.2").seen_in(evidence.chain([reply.number]))];
    }
    // A copy proves that the client waits on, whatever else it sends.
    let finding = if first.packets.len() > 1 {
        Finding::ok(format!(
            "{what} is ignored: the request is sent again after {:.2} s",
            first.intervals()[0]
        ))
    } else if went_on.is_some_and(|at| at < begun.at + PROMPT) {
        Finding::fault(format!("{what} is taken for the answer"))
    } else {
        Finding::ok(format!("{what} is not taken for the answer"))
    };
    vec![finding.seen_in(evidence.chain(first.packets.get(1).map(|packet| packet.number)))]
}

pub(super) const REPEATED: Case = Case {
    name: "repeated-ack",
    summary: "every piggybacked response comes twice",
    clause: "RFC 7252 §4.2",
    seconds: [6, 6],
    react: |_, _, packet, outbox| {
        if packet.is_request() {
            outbox.answer(packet, 0, response(packet));
            outbox.answer(packet, 200, response(packet));
        }
    },
    is_enough: |_, transcript| has_lasted(transcript, 4),
    judge: |_, transcript| judge_repeated(transcript),
    ..super::CASE
};

fn judge_repeated(transcript: &Transcript) -> Vec<Finding> {
    let replies: Vec<u32> = transcript
        .received()
        .filter(|packet| packet.message().is_some_and(|message| message.code == Code::EMPTY))
        .map(|packet| packet.number)
        .collect();
    if !replies.is_empty() {
        return vec![Finding::fault("an acknowledgement is answered").seen_in(replies)];
    }
    let requests = transcript.requests();
    vec![
        stubborn(transcript, &requests, "acknowledged")
            .unwrap_or_else(|| Finding::ok(format!("{} requests, each sent once", requests.len()))),
    ]
}

pub(super) const RESET: Case = Case {
    name: "reset",
    summary: "a Reset to a request",
    clause: "RFC 7252 §4.2",
    seconds: [5, 5],
    react: |_, _, packet, outbox| {
        if let Some(received) = packet.message().filter(|_| packet.is_request() && is_confirmable(packet)) {
            outbox.answer(packet, 0, empty(Kind::Reset, received.message_id));
        }
    },
    // A client that makes one request after the other does not have to make thousands.
    is_enough: |_, transcript| has_lasted(transcript, 4) || transcript.packets.len() > 2_000,
    judge: |_, transcript| {
        let requests = transcript.requests();
        let ok = || Finding::ok("no copy after a Reset");
        let evidence = || transcript.packets.iter().take(2).map(|packet| packet.number);
        vec![stubborn(transcript, &requests, "reset").unwrap_or_else(|| ok().seen_in(evidence()))]
    },
    ..super::CASE
};

/// Returns a fault if a request is retransmitted although it was answered before; `None` if none is. `how` names the
/// kind of answer in the finding.
pub(super) fn stubborn(
    transcript: &Transcript,
    requests: &[MessageCopies<'_>],
    how: &str,
) -> Option<Finding> {
    /// Copies sent within this time after the answer may have crossed it.
    const CROSSING: Duration = Duration::from_millis(100);
    requests.iter().find_map(|copies| {
        let first = copies.first();
        let request = copies.message()?;
        // A separate response has another Message ID, and an empty acknowledgement has no token.
        let is_answer = |answer: &Message<'_>| {
            let is_to_message = answer.message_id == request.message_id && answer.kind != Kind::Confirmable;
            is_to_message || answer.code != Code::EMPTY && answer.token == request.token
        };
        let answer = transcript.sent().find(|packet| {
            packet.lane == first.lane
                && packet.peer == first.peer
                && packet.number > first.number
                && packet.message().is_some_and(|message| is_answer(&message))
        })?;
        let late = copies.packets.iter().find(|copy| copy.at > answer.at + CROSSING)?;
        let after = late.at.saturating_sub(answer.at).as_secs_f64();
        let text = format!("the request is sent again {after:.2} s after it was {how}");
        Some(Finding::fault(text).seen_in([first.number, answer.number, late.number]))
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity;
    use super::super::super::packet::PacketDirection;
    use super::super::super::rehearsal::{ScriptedDatagrams, client, rehearse, request, sound, worst};
    use super::*;

    const CASES: [Case; 4] = [UNKNOWN, WRONG_TOKEN, REPEATED, RESET];

    fn timeout(_: u16, copy: u32) -> u64 {
        2_300 << copy
    }

    #[test]
    fn a_client_that_matches_answers_by_token_and_message_id_passes() {
        for case in CASES {
            let findings = rehearse(&case, &ExaminationTarget::default(), client(3, timeout, sound));
            assert_eq!(worst(&findings), Severity::Ok, "{}: {findings:?}", case.name);
        }
    }

    #[test]
    fn a_client_that_accepts_any_answer_fails() {
        for case in [UNKNOWN, WRONG_TOKEN] {
            let credulous = client(1, timeout, |now, _, pending: &mut ScriptedDatagrams| {
                pending.clear();
                pending.push((now + 10, request(7)));
                true
            });
            let findings = rehearse(&case, &ExaminationTarget::default(), credulous);
            assert_eq!(worst(&findings), Severity::Fault, "{}: {findings:?}", case.name);
        }
    }

    #[test]
    fn a_client_that_answers_acknowledgements_fails() {
        for case in [UNKNOWN, WRONG_TOKEN, REPEATED] {
            let chatty = client(3, timeout, |now, received, pending: &mut ScriptedDatagrams| {
                pending.push((now, empty(Kind::Reset, received.message_id)));
                false
            });
            let findings = rehearse(&case, &ExaminationTarget::default(), chatty);
            assert_eq!(worst(&findings), Severity::Fault, "{}: {findings:?}", case.name);
        }
    }

    #[test]
    fn a_client_that_retransmits_after_an_answer_fails() {
        for case in [REPEATED, RESET] {
            let deaf = client(3, timeout, |_, _, _: &mut ScriptedDatagrams| true);
            let findings = rehearse(&case, &ExaminationTarget::default(), deaf);
            assert_eq!(worst(&findings), Severity::Fault, "{}: {findings:?}", case.name);
        }
    }

    #[test]
    fn a_copy_after_the_answer_to_another_request_is_no_fault() {
        let mut transcript = Transcript::default();
        let mut add = |direction, at, bytes| {
            let (number, at) = (transcript.packets.len() as u32 + 1, Duration::from_millis(at));
            let peer = ([127, 0, 0, 1], 5683).into();
            assert!(transcript.add(Packet { number, at, lane: 0, peer, direction, bytes }));
        };
        add(PacketDirection::Received, 0, request(1));
        add(PacketDirection::Received, 10, request(2));
        add(PacketDirection::Sent, 20, empty(Kind::Acknowledgement, 1_001));
        add(PacketDirection::Received, 2_400, request(2));
        assert!(stubborn(&transcript, &transcript.requests(), "acknowledged").is_none());
        transcript.packets[2].bytes = empty(Kind::Acknowledgement, 1_002);
        let fault = stubborn(&transcript, &transcript.requests(), "acknowledged").unwrap();
        assert_eq!(fault.measured, "the request is sent again 2.38 s after it was acknowledged");
    }
}
