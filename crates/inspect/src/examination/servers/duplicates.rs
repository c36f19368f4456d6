//! The case on duplicate requests.

use coapace_proto::{Code, Kind, Message};

use super::super::case::{Case, DatagramSchedule, ExaminationTarget};
use super::super::finding::Finding;
use super::super::packet::Packet;
use super::super::transcript::Transcript;
use super::request;

pub(super) const CONFIRMABLE: Case = Case {
    name: "duplicate-con",
    summary: "a confirmable request comes three times",
    clause: "RFC 7252 §4.5",
    seconds: [5, 5],
    begin: |target, outbox| ask(target, outbox, Kind::Confirmable),
    judge: |target, transcript| judge(target, transcript, Kind::Confirmable),
    ..super::CASE
};

pub(super) const NON_CONFIRMABLE: Case = Case {
    name: "duplicate-non",
    summary: "a non-confirmable request comes three times",
    clause: "RFC 7252 §4.5",
    seconds: [5, 5],
    begin: |target, outbox| ask(target, outbox, Kind::NonConfirmable),
    judge: |target, transcript| judge(target, transcript, Kind::NonConfirmable),
    ..super::CASE
};

const COPIES: usize = 3;
/// The number of the GET request.
const READ: u16 = 1;
/// The number of the POST request to the resource that counts.
const COUNT: u16 = 2;

fn ask(target: &ExaminationTarget, outbox: &mut DatagramSchedule, kind: Kind) {
    for copy in 0..COPIES as u64 {
        outbox.send(copy * 1_000, request(target, kind, Code::GET, READ, &target.resource));
        if let Some(counter) = &target.counter {
            outbox.send(copy * 1_000 + 400, request(target, kind, Code::POST, COUNT, counter));
        }
    }
}

fn judge(target: &ExaminationTarget, transcript: &Transcript, kind: Kind) -> Vec<Finding> {
    let mut findings = vec![judge_one(target, transcript, kind, READ, "GET")];
    findings.push(match &target.counter {
        Some(_) => judge_one(target, transcript, kind, COUNT, "POST"),
        None => Finding::not_tested(
            "to see whether a repeated POST is carried out again, give a resource with --counter",
        ),
    });
    findings
}

fn judge_one(
    target: &ExaminationTarget,
    transcript: &Transcript,
    kind: Kind,
    n: u16,
    method: &str,
) -> Finding {
    let (id, token) = (target.id(n), target.token(n));
    let is_answer =
        |packet: &&Packet| packet.is_answer(Kind::Acknowledgement, id) || packet.is_response(&token);
    let answers: Vec<&Packet> = transcript.received().filter(is_answer).collect();
    let numbers = || {
        let copies = transcript.sent().filter(|packet| packet.bytes.get(2..4) == Some(&id.to_be_bytes()[..]));
        copies.chain(answers.iter().copied()).map(|packet| packet.number).collect::<Vec<_>>()
    };
    if answers.is_empty() {
        return Finding::not_tested(format!("the {method} is not answered")).seen_in(numbers());
    }
    let bodies: Vec<Vec<u8>> = answers.iter().filter_map(|packet| packet.message().map(body)).collect();
    // Answers from a server's memory are equal (RFC 7252 §4.5). A second execution may give another answer.
    let repeats = bodies.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let finding = match kind {
        // Each copy should be acknowledged, because the acknowledgement before may be lost (RFC 7252 §4.5).
        Kind::Confirmable if answers.len() < COPIES => {
            Finding::warning(format!("{} of {COPIES} copies of a {method} are acknowledged", answers.len()))
        }
        _ if repeats > 0 && method == "POST" => {
            Finding::warning(format!("a {method} and its copies are executed {} times", repeats + 1))
        }
        _ if repeats > 0 => {
            Finding::note(format!("answers to copies of a {method} differ: it is executed again"))
        }
        Kind::Confirmable => Finding::ok(format!("copies of a {method} get equal answers")),
        _ if answers.len() == 1 => Finding::ok(format!("copies of a {method} are ignored")),
        _ => Finding::note(format!("a {method} and its copies are answered {} times", answers.len())),
    };
    finding.seen_in(numbers())
}

/// Returns the parts of an answer that are compared: code, options and payload, without the server's Message ID.
fn body(message: Message<'_>) -> Vec<u8> {
    [&[message.code.0], message.tail].concat()
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity;
    use super::super::super::packet::message;
    use super::super::super::rehearsal::{ScriptedDatagrams, rehearse, worst};
    use super::*;
    use coapace_proto::Options;

    /// Returns the findings about a server that counts POST requests. `remembers` is whether it recognises copies, and whether
    /// it then answers them.
    fn judged(case: &Case, remembers: bool, answers_copies: bool) -> Vec<Finding> {
        let target = ExaminationTarget {
            counter: Some(Options::new().uri_path("count")),
            ..ExaminationTarget::default()
        };
        let (mut count, mut seen) = (0u8, Vec::new());
        let server = |now, bytes: Option<&[u8]>, pending: &mut ScriptedDatagrams| {
            let Some(received) = bytes.and_then(|bytes| Message::parse(bytes).ok()) else { return };
            let is_copy = seen.contains(&received.message_id);
            if is_copy && !answers_copies {
                return;
            }
            seen.push(received.message_id);
            count += u8::from(received.code == Code::POST && !(remembers && is_copy));
            let kind = match received.kind {
                Kind::Confirmable => Kind::Acknowledgement,
                _ => Kind::NonConfirmable,
            };
            let id = received.message_id;
            let payload = if received.code == Code::POST { &[count][..] } else { b"read" };
            pending.push((now, message(kind, Code::CONTENT, id, &received.token, &Options::new(), payload)));
        };
        rehearse(case, &target, server)
    }

    #[test]
    fn a_server_that_recognises_duplicate_requests_passes() {
        assert_eq!(worst(&judged(&CONFIRMABLE, true, true)), Severity::Ok);
        assert_eq!(worst(&judged(&NON_CONFIRMABLE, true, false)), Severity::Ok);
        let findings = judged(&CONFIRMABLE, true, true);
        assert_eq!(findings[0].packets.len(), 6, "three copies and three answers");
    }

    #[test]
    fn a_server_that_repeats_or_ignores_duplicate_requests_is_warned() {
        for case in [CONFIRMABLE, NON_CONFIRMABLE] {
            let findings = judged(&case, false, true);
            assert_eq!(findings[1].severity, Severity::Warning, "{findings:?}");
        }
        assert_eq!(worst(&judged(&CONFIRMABLE, true, false)), Severity::Warning);
    }
}
