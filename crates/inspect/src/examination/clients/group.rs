//! The case on requests to a multicast group.

use coapace_proto::{Code, Kind, Options};

use super::super::case::{Case, DatagramSchedule, ExaminationTarget};
use super::super::finding::Finding;
use super::super::packet::{Packet, message};
use super::super::transcript::Transcript;
use super::{PAYLOAD, has_lasted};

/// The case on a multicast request: the examiner listens at 224.0.1.187, All CoAP Nodes, and answers like two members
/// of the group.
pub(super) const CASE: Case = Case {
    name: "group",
    summary: "a request to All CoAP Nodes (--group)",
    clause: "RFC 7252 §8.1",
    seconds: [8, 8],
    asks_group: true,
    react,
    is_enough: |_, transcript| has_lasted(transcript, 6),
    judge,
    lacks: |_, _| None,
    ..super::CASE
};

/// The times after which the two members answer, in milliseconds: within the Leisure of 5 s (RFC 7252 §8.2).
const LEISURE: [u64; 2] = [200, 700];

fn react(
    target: &ExaminationTarget,
    transcript: &Transcript,
    packet: &Packet,
    outbox: &mut DatagramSchedule,
) {
    let Some(request) = packet.message().filter(|_| packet.is_request()) else { return };
    // Members answer a copy of a request once (RFC 7252 §4.5).
    if transcript.copies_of(packet) > 1 {
        return;
    }
    // Each member has a Message ID of its own, as members are endpoints of their own.
    for (n, after) in (1..).zip(LEISURE) {
        let id = target.id(n);
        let options = Options::new();
        let answer = message(Kind::NonConfirmable, Code::CONTENT, id, &request.token, &options, PAYLOAD);
        outbox.answer(packet, after, answer);
    }
}

fn judge(_: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    let requests = transcript.requests();
    let Some(request) = requests.first() else {
        let text = "no request came; packets to 224.0.1.187 have to reach the interface of --listen";
        return vec![Finding::not_tested(text)];
    };
    let is_confirmable = super::is_confirmable(request.first());
    let numbers = request.numbers().take(4);
    // Every member would acknowledge it, all at once (RFC 7252 §8.1).
    if is_confirmable {
        let copies = request.packets.len();
        let text =
            format!("the request is confirmable and was sent {copies} times; it has to be non-confirmable");
        return vec![Finding::fault(text).seen_in(numbers)];
    }
    let is_reset = |packet: &&Packet| packet.message().is_some_and(|message| message.kind == Kind::Reset);
    let mut findings = vec![Finding::ok("the request is non-confirmable").seen_in(numbers)];
    findings.extend(transcript.received().find(is_reset).map(|reset| {
        let text = "the client rejects the response of a group member with a Reset";
        Finding::fault(text).by("RFC 7252 §8.2").seen_in([reset.number])
    }));
    findings
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity;
    use super::super::super::packet::empty;
    use super::super::super::rehearsal::{ScriptedDatagrams, rehearse, worst};
    use super::*;
    use coapace_proto::Message;

    fn judged(kind: Kind, rejects: bool) -> Severity {
        let findings =
            rehearse(&CASE, &ExaminationTarget::default(), |now, bytes, pending: &mut ScriptedDatagrams| {
                let Some(bytes) = bytes else {
                    let options = Options::new().uri_path("examined");
                    return pending.push((0, message(kind, Code::GET, 7, b"abcd", &options, &[])));
                };
                let received = Message::parse(bytes).unwrap();
                assert_eq!((received.kind, &received.token[..]), (Kind::NonConfirmable, &b"abcd"[..]));
                if rejects {
                    pending.push((now, empty(Kind::Reset, received.message_id)));
                }
            });
        worst(&findings)
    }

    #[test]
    fn a_client_must_ask_a_group_without_confirmation_and_accept_answers_of_all_members() {
        assert_eq!(judged(Kind::NonConfirmable, false), Severity::Ok);
        assert_eq!(judged(Kind::NonConfirmable, true), Severity::Fault);
        assert_eq!(judged(Kind::Confirmable, false), Severity::Fault);
    }

    #[test]
    fn without_a_request_to_the_group_nothing_is_tested() {
        assert_eq!(worst(&rehearse(&CASE, &ExaminationTarget::default(), |_, _, _| {})), Severity::NotTested);
    }
}
