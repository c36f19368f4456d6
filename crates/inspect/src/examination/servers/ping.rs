//! The case on empty messages (CoAP ping).

use coapace_proto::Kind;

use super::super::case::{Case, ExaminationTarget};
use super::super::finding::Finding;
use super::super::packet::empty;
use super::super::transcript::Transcript;
use super::sent;

pub(super) const CASE: Case = Case {
    name: "ping",
    summary: "an empty confirmable message",
    clause: "RFC 7252 §4.3",
    seconds: [3, 3],
    begin: |target, outbox| outbox.send(0, empty(Kind::Confirmable, target.id(1))),
    is_enough: |_, transcript| transcript.received().next().is_some(),
    judge,
    ..super::CASE
};

fn judge(target: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    let packets =
        sent(target, transcript, 1).into_iter().chain(transcript.received().map(|packet| packet.number));
    let finding = match transcript.received().next() {
        // A Reset is empty (RFC 7252 §4.2), and so has no bytes after the header.
        Some(answer) if answer.is_answer(Kind::Reset, target.id(1)) && answer.bytes.len() == 4 => {
            Finding::ok("a ping is answered with a Reset")
        }
        Some(_) => Finding::fault("a ping is answered with something else than a Reset"),
        None => Finding::fault("a ping is not answered with a Reset"),
    };
    vec![finding.seen_in(packets)]
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity;
    use super::super::super::rehearsal::{ScriptedDatagrams, rehearse, worst};
    use super::*;

    #[test]
    fn only_a_reset_with_the_message_id_of_the_ping_passes() {
        let judged = |answer: Option<Vec<u8>>| {
            let server = |now, bytes: Option<&[u8]>, pending: &mut ScriptedDatagrams| {
                pending.extend(bytes.and(answer.clone()).map(|answer| (now, answer)));
            };
            worst(&rehearse(&CASE, &ExaminationTarget::default(), server))
        };
        assert_eq!(judged(Some(empty(Kind::Reset, 1))), Severity::Ok);
        assert_eq!(judged(Some(empty(Kind::Reset, 2))), Severity::Fault);
        assert_eq!(judged(Some(empty(Kind::Acknowledgement, 1))), Severity::Fault);
        assert_eq!(judged(None), Severity::Fault);
    }
}
