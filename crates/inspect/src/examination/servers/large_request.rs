//! The case on a request that is larger than a datagram of CoAP should be.

use coapace_proto::{Code, Kind, Options};

use super::super::case::{Case, ExaminationTarget};
use super::super::finding::Finding;
use super::super::packet::{Packet, message};
use super::super::transcript::Transcript;
use super::{request, response, sent};

pub(super) const CASE: Case = Case {
    name: "large-request",
    summary: "a POST of 3000 bytes in one datagram, to a resource that is not there",
    clause: "RFC 7252 §4.6, §5.9.2.9",
    seconds: [6, 6],
    begin: |target, outbox| {
        let id = target.id(LARGE);
        // A POST may change a resource, so it goes to one that should not exist.
        let options = Options::new().uri_path("no-such-resource");
        let bytes =
            message(Kind::Confirmable, Code::POST, id, &target.token(LARGE), &options, &[b'x'; 3_000]);
        outbox.send(0, bytes);
        outbox.send(2_500, request(target, Kind::Confirmable, Code::GET, ALIVE, &target.resource));
    },
    is_enough: |target, transcript| response(target, transcript, ALIVE).is_some(),
    judge,
    ..super::CASE
};

/// The number of the large request, and of the request that tests whether the server still answers.
const LARGE: u16 = 1;
const ALIVE: u16 = 2;

fn judge(target: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    let evidence = sent(target, transcript, LARGE);
    let answer = response(target, transcript, LARGE);
    let message = answer.and_then(Packet::message);
    let numbers = evidence.iter().copied().chain(answer.map(|packet| packet.number));
    let mut findings = vec![
        match message {
            Some(message) if message.code == Code::REQUEST_ENTITY_TOO_LARGE => match message.size1() {
                Some(size) => Finding::ok(format!("4.13 with Size1 {size}")),
                None => Finding::warning("4.13 without Size1, so the client does not know which size to try"),
            },
            Some(message) => {
                Finding::ok(format!("the server reads the request, and answers {}", message.code))
            }
            None => Finding::note("no answer, so a client repeats the request until it gives up"),
        }
        .seen_in(numbers),
    ];
    if response(target, transcript, ALIVE).is_none() {
        let numbers = evidence.into_iter().chain(sent(target, transcript, ALIVE));
        findings.push(
            Finding::fault("the server does not answer any more").by("RFC 7252 §11.1").seen_in(numbers),
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity;
    use super::super::super::rehearsal::{ScriptedDatagrams, rehearse, worst};
    use super::*;
    use coapace_proto::Message;

    /// Returns the findings about a server that gives this answer to a request of more than 2048 bytes, and 2.05 to others.
    fn judged(large: Option<&(Code, Options)>, survives: bool) -> Severity {
        let mut is_alive = true;
        let server = |now, question: Option<&[u8]>, pending: &mut ScriptedDatagrams| {
            let Some(received) = question.and_then(|question| Message::parse(question).ok()) else { return };
            let is_large = received.payload().len() > 2_048;
            let answer = if is_large { large.cloned() } else { Some((Code::CONTENT, Options::new())) };
            if let Some((code, options)) = answer.filter(|_| is_alive) {
                let (kind, id) = (Kind::Acknowledgement, received.message_id);
                pending.push((now, message(kind, code, id, &received.token, &options, &[])));
            }
            is_alive &= survives || !is_large;
        };
        let target =
            ExaminationTarget { resource: Options::new().uri_path("hello"), ..ExaminationTarget::default() };
        worst(&rehearse(&CASE, &target, server))
    }

    #[test]
    fn a_server_refuses_a_large_request_with_4_13_and_its_limit() {
        let too_large = Code::REQUEST_ENTITY_TOO_LARGE;
        assert_eq!(judged(Some(&(too_large, Options::new().size1(2_048))), true), Severity::Ok);
        assert_eq!(judged(Some(&(too_large, Options::new())), true), Severity::Warning);
        assert_eq!(judged(Some(&(Code::NOT_FOUND, Options::new())), true), Severity::Ok);
        assert_eq!(judged(None, true), Severity::Note);
        assert_eq!(judged(None, false), Severity::Fault);
    }
}
