//! The case on options, tokens and methods that a server does not know.

use coapace_proto::{Code, Kind, Options};

use super::super::case::{Case, ExaminationTarget};
use super::super::finding::Finding;
use super::super::packet::{CRITICAL_OPTION, ELECTIVE_OPTION, Packet, message};
use super::super::transcript::Transcript;
use super::{request, response, sent};

pub(super) const CRITICAL: Case = Case {
    name: "critical-option",
    summary: "a request with a critical option that nobody knows",
    clause: "RFC 7252 §5.4.1",
    seconds: [4, 4],
    begin: |target, outbox| {
        let options = target.resource.clone().with(CRITICAL_OPTION, b"?");
        outbox.send(0, request(target, Kind::Confirmable, Code::GET, 1, &options));
        outbox.send(500, request(target, Kind::NonConfirmable, Code::GET, 2, &options));
    },
    judge: judge_critical,
    ..super::CASE
};

pub(super) const ELECTIVE: Case = Case {
    name: "elective-option",
    summary: "a request with an elective option that nobody knows",
    clause: "RFC 7252 §5.4.1",
    seconds: [4, 4],
    begin: |target, outbox| {
        let options = target.resource.clone().with(ELECTIVE_OPTION, b"?");
        outbox.send(0, request(target, Kind::Confirmable, Code::GET, 1, &target.resource));
        outbox.send(500, request(target, Kind::Confirmable, Code::GET, 2, &options));
    },
    judge: judge_elective,
    ..super::CASE
};

pub(super) const TOKENS: Case = Case {
    name: "tokens",
    summary: "requests with tokens of 0, 1 and 8 bytes",
    clause: "RFC 7252 §5.3.2",
    seconds: [4, 4],
    begin: |target, outbox| {
        for (n, token) in (1..).zip(TOKEN_VALUES) {
            let kind = Kind::Confirmable;
            let bytes = message(kind, Code::GET, target.id(n), token, &target.resource, &[]);
            outbox.send(300 * u64::from(n), bytes);
        }
    },
    judge: judge_tokens,
    ..super::CASE
};

const TOKEN_VALUES: [&[u8]; 3] = [b"", b"\0", b"examined"];

pub(super) const METHODS: Case = Case {
    name: "unknown-method",
    summary: "a method that nobody knows, and a path that is not there",
    clause: "RFC 7252 §5.8",
    seconds: [4, 4],
    begin: |target, outbox| {
        // 0.31 is the last code of a method, and not assigned (RFC 7252 §12.1.1).
        outbox.send(0, request(target, Kind::Confirmable, Code(31), 1, &target.resource));
        let nowhere = Options::new().uri_path("coapace-examines/no-such-resource");
        outbox.send(500, request(target, Kind::Confirmable, Code::GET, 2, &nowhere));
    },
    judge: judge_methods,
    ..super::CASE
};

fn code(packet: &Packet) -> Code {
    packet.message().map_or(Code::EMPTY, |message| message.code)
}

/// Returns the packet numbers of the `n`th request and of its answer.
fn evidence(target: &ExaminationTarget, transcript: &Transcript, n: u16) -> Vec<u32> {
    let answer = response(target, transcript, n).map(|packet| packet.number);
    sent(target, transcript, n).into_iter().chain(answer).collect()
}

fn judge_critical(target: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    let confirmable = match response(target, transcript, 1).map(code) {
        Some(Code::BAD_OPTION) => Finding::ok("4.02 in answer to a confirmable request"),
        Some(other) => {
            Finding::fault(format!("{other} in answer to a confirmable request; it must be 4.02 Bad Option"))
        }
        None if transcript.received().any(|packet| packet.is_answer(Kind::Reset, target.id(1))) => {
            Finding::fault("a Reset in answer to a confirmable request; it must be 4.02 Bad Option")
        }
        None => Finding::fault("no answer to a confirmable request; it must be 4.02 Bad Option"),
    };
    // Silence is right for a non-confirmable request, so nothing can prove a mistake but an answer (RFC 7252 §4.3).
    let other = match response(target, transcript, 2).map(code) {
        None => Finding::ok("a non-confirmable request is rejected"),
        Some(code) => Finding::fault(format!(
            "{code} in answer to a non-confirmable request, which must be rejected by a Reset or silently"
        ))
        .by("RFC 7252 §5.4.1, §4.3"),
    };
    vec![confirmable.seen_in(evidence(target, transcript, 1)), other.seen_in(evidence(target, transcript, 2))]
}

fn judge_elective(target: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    let without = response(target, transcript, 1).map(code);
    let with = response(target, transcript, 2).map(code);
    let finding = match (without, with) {
        (None, _) => Finding::not_tested("the request is not answered without the option either"),
        (Some(without), Some(with)) if without == with => {
            Finding::ok(format!("{with} with and without the option"))
        }
        (Some(without), Some(with)) => {
            Finding::fault(format!("{with} with the option, {without} without it"))
        }
        (Some(_), None) => Finding::fault("a request with the option is not answered"),
    };
    let packets = evidence(target, transcript, 1).into_iter().chain(evidence(target, transcript, 2));
    vec![finding.seen_in(packets)]
}

fn judge_tokens(target: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    let mut packets = Vec::new();
    for (n, token) in (1..).zip(TOKEN_VALUES) {
        // An empty token fits every piggybacked response without one, so the Message ID has to fit, too.
        let is_answer = |packet: &&Packet| {
            packet.is_response(token)
                && packet.message().is_some_and(|message| {
                    message.kind != Kind::Acknowledgement || message.message_id == target.id(n)
                })
        };
        let Some(answer) = transcript.received().find(is_answer) else {
            let text =
                format!("a request with a token of {} bytes gets no response with this token", token.len());
            return vec![Finding::fault(text).seen_in(sent(target, transcript, n))];
        };
        packets.push(answer.number);
    }
    vec![Finding::ok("every response has the token of its request").seen_in(packets)]
}

fn judge_methods(target: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    let rejected = transcript.received().any(|packet| packet.is_answer(Kind::Reset, target.id(1)));
    let method = match response(target, transcript, 1).map(code) {
        Some(Code::METHOD_NOT_ALLOWED) => Finding::ok("4.05 in answer to method 0.31"),
        Some(other) => {
            Finding::fault(format!("{other} in answer to method 0.31; it must be 4.05 Method Not Allowed"))
        }
        None if rejected => {
            Finding::fault("a Reset in answer to method 0.31; it must be 4.05 Method Not Allowed")
        }
        None => Finding::fault("no answer to method 0.31; it must be 4.05 Method Not Allowed"),
    };
    let path = match response(target, transcript, 2).map(code) {
        Some(Code::NOT_FOUND) => Finding::ok("4.04 in answer to a path that does not exist"),
        Some(other) => Finding::note(format!("{other} in answer to a path that should not exist")),
        None => Finding::warning("no answer to a request for a path that does not exist"),
    };
    vec![
        method.seen_in(evidence(target, transcript, 1)),
        path.by("RFC 7252 §5.9.2.5").seen_in(evidence(target, transcript, 2)),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity;
    use super::super::super::packet::empty;
    use super::super::super::rehearsal::{ScriptedDatagrams, rehearse, worst};
    use super::*;
    use coapace_proto::Message;

    /// Returns the findings about a server that answers each message with the code from `answer`; `None` is a Reset, the empty
    /// code no answer.
    fn judged(case: &Case, answer: impl Fn(&Message<'_>) -> Option<Code>, token: Option<&[u8]>) -> Severity {
        let target =
            ExaminationTarget { resource: Options::new().uri_path("here"), ..ExaminationTarget::default() };
        let server = |now, bytes: Option<&[u8]>, pending: &mut ScriptedDatagrams| {
            let Some(received) = bytes.and_then(|bytes| Message::parse(bytes).ok()) else { return };
            let kind = match received.kind {
                Kind::Confirmable => Kind::Acknowledgement,
                _ => Kind::NonConfirmable,
            };
            let (id, token) = (received.message_id, token.unwrap_or(&received.token));
            match answer(&received) {
                None => pending.push((now, empty(Kind::Reset, id))),
                Some(Code::EMPTY) => {}
                Some(code) => pending.push((now, message(kind, code, id, token, &Options::new(), b""))),
            }
        };
        worst(&rehearse(case, &target, server))
    }

    fn sound(received: &Message<'_>) -> Option<Code> {
        let is_known = received.options().all(|(number, _)| number != CRITICAL_OPTION);
        let is_here = received.uri_path().next() == Some(b"here");
        match received.kind {
            _ if received.code != Code::GET => Some(Code::METHOD_NOT_ALLOWED),
            Kind::Confirmable if !is_known => Some(Code::BAD_OPTION),
            _ if !is_known => None,
            _ if is_here => Some(Code::CONTENT),
            _ => Some(Code::NOT_FOUND),
        }
    }

    #[test]
    fn a_server_that_handles_unknown_options_as_required_passes() {
        for case in [CRITICAL, ELECTIVE, TOKENS, METHODS] {
            assert_eq!(judged(&case, sound, None), Severity::Ok, "{}", case.name);
        }
    }

    #[test]
    fn a_server_that_ignores_unknown_critical_options_fails() {
        let talkative = |received: &Message<'_>| {
            let is_known = received.options().all(|(number, _)| number != CRITICAL_OPTION);
            Some(if is_known { Code::CONTENT } else { Code::BAD_OPTION })
        };
        assert_eq!(judged(&CRITICAL, talkative, None), Severity::Fault, "4.02 to a non-confirmable request");
        for case in [CRITICAL, METHODS] {
            assert_eq!(judged(&case, |_| Some(Code::CONTENT), None), Severity::Fault, "{}", case.name);
            assert_eq!(judged(&case, |_| None, None), Severity::Fault, "{}", case.name);
        }
        let picky = |received: &Message<'_>| {
            let is_plain = received.options().all(|(number, _)| number < 1_000);
            Some(if is_plain { Code::CONTENT } else { Code::BAD_OPTION })
        };
        assert_eq!(judged(&ELECTIVE, picky, None), Severity::Fault);
        assert_eq!(judged(&TOKENS, sound, Some(b"x")), Severity::Fault);
    }
}
