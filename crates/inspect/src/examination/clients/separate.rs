//! The case on separate responses.

use coapace_proto::{Kind, Options};

use super::super::case::{Case, DatagramSchedule, ExaminationTarget};
use super::super::finding::Finding;
use super::super::packet::{Packet, empty};
use super::super::transcript::Transcript;
use super::acknowledgements::stubborn;
use super::{confirmable_response, has_lasted, is_confirmable};

pub(super) const CASE: Case = Case {
    name: "separate",
    summary: "an empty acknowledgement, and later a confirmable response that comes twice",
    clause: "RFC 7252 §5.2.2",
    seconds: [8, 8],
    react: |target, transcript, packet, outbox| react(target, transcript, packet, outbox, true),
    is_enough: |_, transcript| has_lasted(transcript, 6),
    judge,
    ..super::CASE
};

pub(super) const UNANNOUNCED: Case = Case {
    name: "separate-unannounced",
    summary: "a confirmable response whose empty acknowledgement was lost",
    clause: "RFC 7252 §5.2.2",
    seconds: [6, 6],
    react: |target, transcript, packet, outbox| react(target, transcript, packet, outbox, false),
    is_enough: |_, transcript| has_lasted(transcript, 5),
    judge,
    ..super::CASE
};

fn react(
    target: &ExaminationTarget,
    transcript: &Transcript,
    packet: &Packet,
    outbox: &mut DatagramSchedule,
    is_announced: bool,
) {
    let Some(received) = packet.message() else { return };
    if !packet.is_request() || !is_confirmable(packet) || transcript.copies_of(packet) > 1 {
        return;
    }
    // The number of the request within the case makes the Message ID of the response.
    let own = target.id(transcript.requests().len() as u16);
    let response = confirmable_response(packet, own, &Options::new());
    if is_announced {
        outbox.answer(packet, 0, empty(Kind::Acknowledgement, received.message_id));
    }
    // The longer wait is beyond the first timeout: a client that would send again after an acknowledgement does so. The shorter one
    // ends before it, so that the response comes before any copy.
    let wait = if is_announced { 3_300 } else { 500 };
    outbox.answer(packet, wait, response.clone());
    outbox.answer(packet, wait + 250, response);
}

fn judge(_: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    let requests = transcript.requests();
    let mut findings: Vec<Finding> = stubborn(transcript, &requests, "answered").into_iter().collect();
    // One response with its copy is enough to judge; the first is as good as any.
    let responses = || transcript.sent().filter(|packet| is_confirmable(packet));
    let Some(first) = responses().next() else {
        findings.push(Finding::not_tested("the case ended before the response was sent"));
        return findings;
    };
    let second = responses().skip(1).find(|packet| packet.bytes == first.bytes && packet.lane == first.lane);
    let id = first.message().map(|message| message.message_id).unwrap_or_default();
    // Both copies have one Message ID. The place of an acknowledgement shows which of them it answers.
    let end = second.map_or(u32::MAX, |second| second.number);
    let answers = |kind| transcript.received().filter(move |packet| packet.is_answer(kind, id));
    let acknowledged = |from: u32, to: u32| {
        answers(Kind::Acknowledgement).find(|packet| packet.number > from && packet.number < to)
    };
    let numbers = |answer: Option<&Packet>, sent: &Packet| {
        [sent.number].into_iter().chain(answer.map(|answer| answer.number)).collect::<Vec<_>>()
    };
    let answer = acknowledged(first.number, end);
    findings.push(match answer {
        Some(answer) => Finding::ok("the response is acknowledged").seen_in(numbers(Some(answer), first)),
        // A Reset says that the client does not know the token, although its request is open.
        None if answers(Kind::Reset).next().is_some() => {
            Finding::fault("the response is rejected with a Reset").seen_in([first.number])
        }
        None => Finding::fault("the response is not acknowledged").seen_in([first.number]),
    });
    if let Some(second) = second {
        let ended = transcript.exit_after(first.lane, first.at).is_some_and(|at| at <= second.at);
        let answer = acknowledged(second.number, u32::MAX);
        findings.push(match answer {
            Some(answer) => Finding::ok("the copy of the response is acknowledged, too")
                .by("RFC 7252 §4.5")
                .seen_in(numbers(Some(answer), second)),
            None if ended => Finding::not_tested("the client had ended before the copy of the response came"),
            None => {
                let is_reset = answers(Kind::Reset).any(|packet| packet.number > second.number);
                let reset = "is answered with a Reset, not with the same acknowledgement";
                let how = if is_reset { reset } else { "is not acknowledged again" };
                let text = format!("a copy of the response {how}");
                Finding::warning(text).by("RFC 7252 §4.5").seen_in(numbers(None, second))
            }
        });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity;
    use super::super::super::rehearsal::{ScriptedDatagrams, client, rehearse, sound, worst};
    use super::*;

    fn timeout(_: u16, copy: u32) -> u64 {
        2_300 << copy
    }

    #[test]
    fn a_client_that_acknowledges_a_separate_response_and_its_copy_passes() {
        for case in [CASE, UNANNOUNCED] {
            let findings = rehearse(&case, &ExaminationTarget::default(), client(1, timeout, sound));
            assert_eq!(worst(&findings), Severity::Ok, "{findings:?}");
            assert_eq!(findings.len(), 2);
        }
    }

    #[test]
    fn a_client_that_rejects_a_copy_of_the_response_is_warned_and_one_that_ignores_it_fails() {
        let mut seen = 0;
        let forgetful = client(1, timeout, |now, received, pending: &mut ScriptedDatagrams| {
            seen += u32::from(received.kind == Kind::Confirmable);
            let is_copy = received.kind == Kind::Confirmable && seen > 1;
            if is_copy {
                pending.push((now, empty(Kind::Reset, received.message_id)));
            }
            is_copy
        });
        let findings = rehearse(&CASE, &ExaminationTarget::default(), forgetful);
        assert_eq!(worst(&findings), Severity::Warning, "{findings:?}");

        let silent =
            client(1, timeout, |_, received, _: &mut ScriptedDatagrams| received.kind == Kind::Confirmable);
        let findings = rehearse(&CASE, &ExaminationTarget::default(), silent);
        assert_eq!(worst(&findings), Severity::Fault, "{findings:?}");
    }

    #[test]
    fn a_client_that_retransmits_after_the_empty_acknowledgement_fails() {
        let deaf = client(1, timeout, |_, received, _: &mut ScriptedDatagrams| {
            received.kind == Kind::Acknowledgement
        });
        let findings = rehearse(&CASE, &ExaminationTarget::default(), deaf);
        assert!(findings[0].measured.starts_with("the request is sent again"), "{findings:?}");
        assert_eq!(findings[0].severity, Severity::Fault);
    }
}
