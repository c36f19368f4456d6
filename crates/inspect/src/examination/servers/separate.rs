//! The case on separate responses and their retransmission.

use std::time::Duration;

use coapace_proto::{Code, Kind};

use super::super::case::{Case, ExaminationTarget};
use super::super::clients::{count, growth};
use super::super::copies::MessageCopies;
use super::super::finding::Finding;
use super::super::packet::{Packet, empty};
use super::super::transcript::Transcript;
use super::{request, sent};

pub(super) const CASE: Case = Case {
    name: "separate-response",
    summary: "a slow resource: the empty acknowledgement, and a response whose first two copies are lost",
    clause: "RFC 7252 §5.2.2",
    seconds: [28, 32],
    begin: |target, outbox| {
        if let Some(slow) = &target.slow {
            let bytes = request(target, Kind::Confirmable, Code::GET, 1, slow);
            outbox.send(0, bytes.clone());
            outbox.send(AGAIN, bytes);
        }
    },
    react: |_, transcript, packet, outbox| {
        if is_response(packet) && transcript.copies_of(packet) == ACKNOWLEDGED {
            let id = packet.message().map(|message| message.message_id).unwrap_or_default();
            outbox.answer(packet, 0, empty(Kind::Acknowledgement, id));
        }
    },
    is_enough: |target, transcript| {
        let acknowledged = transcript.sent().find(|packet| packet.is_empty_ack()).map(|packet| packet.at);
        target.slow.is_none()
            || acknowledged.is_some_and(|at| transcript.until > at + Duration::from_secs(13))
    },
    judge,
    ..super::CASE
};

pub(super) const SILENT: Case = Case {
    name: "separate-unacknowledged",
    summary: "a confirmable response that is never acknowledged",
    clause: "RFC 7252 §4.2",
    seconds: [0, 110],
    begin: |target, outbox| {
        if let Some(slow) = &target.slow {
            outbox.send(0, request(target, Kind::Confirmable, Code::GET, 1, slow));
        }
    },
    react: |_, _, _, _| {},
    is_enough: |target, _| target.slow.is_none() || target.is_quick,
    judge: judge_silent,
    ..super::CASE
};

/// The time from the request to its copy, in milliseconds.
const AGAIN: u64 = 800;
/// The number of the copy of the response that is acknowledged.
const ACKNOWLEDGED: usize = 3;

/// Returns whether this is a confirmable response.
fn is_response(packet: &Packet) -> bool {
    packet.is_received()
        && packet
            .message()
            .is_some_and(|message| message.kind == Kind::Confirmable && message.code.is_response())
}

/// Returns the finding for a case without a slow resource, or without a confirmable response from it; otherwise `None`.
fn missing(target: &ExaminationTarget, transcript: &Transcript) -> Option<Finding> {
    let token = target.token(1);
    let answer = transcript.received().find(|packet| packet.is_response(&token));
    let Some(message) = answer.and_then(Packet::message) else {
        let reason =
            if target.slow.is_none() { "give a resource that answers late with --slow" } else { "no answer" };
        return Some(Finding::not_tested(reason));
    };
    let packets = sent(target, transcript, 1).into_iter().chain(answer.map(|answer| answer.number));
    match message.kind {
        Kind::Confirmable => None,
        Kind::Acknowledgement => Some(
            Finding::not_tested("the answer is piggybacked: the resource answers at once").seen_in(packets),
        ),
        _ => Some(
            Finding::note("the response is non-confirmable: if its only copy is lost, it never arrives")
                .seen_in(packets),
        ),
    }
}

fn judge(target: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    let id = target.id(1);
    let acks: Vec<&Packet> =
        transcript.received().filter(|packet| packet.is_answer(Kind::Acknowledgement, id)).collect();
    let asked: Vec<&Packet> = transcript
        .sent()
        .filter(|packet| packet.message().is_some_and(|message| message.code == Code::GET))
        .collect();
    let mut findings = Vec::new();
    if let (Some(first), Some(ack)) = (asked.first(), acks.first()) {
        let after = (ack.at.saturating_sub(first.at)).as_secs_f64();
        let text = format!("the request is acknowledged after {after:.2} s");
        // A client with the timeouts of RFC 7252 sends again after 2 s at the earliest.
        let finding = if after > 2.0 { Finding::warning(text) } else { Finding::ok(text) };
        findings.push(finding.seen_in([first.number, ack.number]));
    }
    // The acknowledgement is judged even if no response came.
    if let Some(finding) = missing(target, transcript) {
        findings.push(finding);
        return findings;
    }
    if acks.is_empty() {
        findings.push(
            Finding::warning("the request is not acknowledged before it is answered")
                .seen_in(sent(target, transcript, 1)),
        );
    }
    let responses = transcript.messages(is_response);
    let Some(response) = responses.first() else { return findings };
    // A copy behind the response may get the response again instead (RFC 7252 §4.5), so it shows nothing.
    if let (Some(again), Some(first)) = (asked.get(1), acks.first())
        && again.at > first.at
        && again.at < response.first().at
    {
        let answer = acks.iter().find(|ack| ack.at >= again.at);
        let packets = [again.number].into_iter().chain(answer.map(|ack| ack.number));
        findings.push(match answer {
            Some(_) => {
                Finding::ok("a copy of the request is acknowledged, too").by("RFC 7252 §4.5").seen_in(packets)
            }
            None => Finding::warning("a copy of the request is not acknowledged")
                .by("RFC 7252 §4.5")
                .seen_in(packets),
        });
    }
    findings.extend(retransmissions(transcript, response));
    if responses.len() > 1 {
        let packets = responses.iter().map(|copies| copies.first().number);
        findings.push(
            Finding::warning(format!("{} responses to one request", responses.len()))
                .by("RFC 7252 §4.5")
                .seen_in(packets),
        );
    }
    findings
}

/// Judges the copies of a response. The examiner acknowledges copy [`ACKNOWLEDGED`] of them.
fn retransmissions(transcript: &Transcript, response: &MessageCopies<'_>) -> Vec<Finding> {
    let intervals = response.intervals();
    let listed = intervals.iter().map(|interval| format!("{interval:.2}")).collect::<Vec<_>>().join(", ");
    let Some(&first) = intervals.first() else {
        return vec![
            Finding::fault("the response is not sent again though nothing acknowledges it")
                .by("RFC 7252 §4.2")
                .seen_in(response.numbers()),
        ];
    };
    // Copies behind the acknowledgement are judged below. They say nothing about the growth.
    let before = &intervals[..intervals.len().min(ACKNOWLEDGED - 1)];
    // ACK_TIMEOUT with its random factor is 2 to 3 s (RFC 7252 §4.8). 3 % are granted for scheduling.
    let mut findings = vec![match first {
        first if first < 0.97 => {
            Finding::warning(format!("the response is sent again after {first:.2} s: below 1 s"))
        }
        first if !(1.94..=3.09).contains(&first) => {
            Finding::note(format!("the response is sent again after {first:.2} s; the default is 2–3 s"))
        }
        _ => Finding::ok(format!("the response is sent again after {listed} s")),
    }];
    findings.extend(growth(before).into_iter().filter(|_| before.len() > 1));
    let id = response.message().map(|message| message.message_id);
    let acknowledged = transcript
        .sent()
        .find(|packet| packet.is_empty_ack() && packet.message().map(|message| message.message_id) == id);
    if let Some(ack) = acknowledged {
        // A copy may have crossed the acknowledgement.
        let late = response.packets.iter().find(|copy| copy.at > ack.at + Duration::from_millis(100));
        if let Some(late) = late {
            let text = "the response is sent again after it was acknowledged";
            findings.push(Finding::fault(text).seen_in([ack.number, late.number]));
        }
    }
    for finding in findings.iter_mut().filter(|finding| finding.packets.is_empty()) {
        *finding = finding.clone().by("RFC 7252 §4.2").seen_in(response.numbers());
    }
    findings
}

fn judge_silent(target: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    if target.is_quick && target.slow.is_some() {
        return vec![Finding::not_tested("the case takes 110 s: leave out --quick")];
    }
    if let Some(finding) = missing(target, transcript) {
        return vec![finding];
    }
    let responses = transcript.messages(is_response);
    let Some(response) = responses.first() else { return Vec::new() };
    let intervals = response.intervals();
    let longest = intervals.iter().fold(0.0, |longest: f64, interval| longest.max(*interval));
    let watched = (transcript.until.saturating_sub(response.last().at)).as_secs_f64();
    let mut findings = growth(&intervals);
    // The next timeout would be twice the longest. After that and a tenth more, the server has given up.
    findings.push(count(&intervals, watched > 2.2 * longest));
    findings.into_iter().map(|finding| finding.seen_in(response.numbers())).collect()
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity;
    use super::super::super::packet::message;
    use super::super::super::rehearsal::{ScriptedDatagrams, rehearse, worst};
    use super::*;
    use coapace_proto::{Message, Options};

    /// Returns the findings about a server that acknowledges after `ack` milliseconds, and responds after 1.5 s with copies at
    /// `timeouts`.
    fn judged(case: &Case, ack: Option<u64>, timeouts: &[u64], hears: bool) -> Vec<Finding> {
        let target =
            ExaminationTarget { slow: Some(Options::new().uri_path("slow")), ..ExaminationTarget::default() };
        let mut is_known = false;
        let server = |now, bytes: Option<&[u8]>, pending: &mut ScriptedDatagrams| {
            let Some(received) = bytes.and_then(|bytes| Message::parse(bytes).ok()) else { return };
            if received.kind == Kind::Acknowledgement {
                if hears {
                    pending.clear();
                }
                return;
            }
            pending.extend(ack.map(|after| (now + after, empty(Kind::Acknowledgement, received.message_id))));
            if !is_known {
                let options = Options::new();
                let kind = Kind::Confirmable;
                let response = message(kind, Code::CONTENT, 9, &received.token, &options, b"late");
                let mut at = now + 1_500;
                pending.push((at, response.clone()));
                for timeout in timeouts {
                    at += timeout;
                    pending.push((at, response.clone()));
                }
            }
            is_known = true;
        };
        rehearse(case, &target, server)
    }

    const RIGHT: [u64; 4] = [2_400, 4_800, 9_600, 19_200];

    #[test]
    fn a_server_that_repeats_a_separate_response_as_in_rfc_7252_passes() {
        let findings = judged(&CASE, Some(100), &RIGHT, true);
        assert_eq!(worst(&findings), Severity::Ok, "{findings:?}");
        assert_eq!(worst(&judged(&SILENT, Some(100), &RIGHT, true)), Severity::Ok);
    }

    #[test]
    fn a_late_empty_acknowledgement_is_a_warning() {
        assert_eq!(worst(&judged(&CASE, Some(2_100), &RIGHT, true)), Severity::Warning);
        assert_eq!(worst(&judged(&CASE, None, &RIGHT, true)), Severity::Warning);
    }

    #[test]
    fn a_separate_response_with_one_copy_linear_backoff_or_no_end_after_the_ack_is_a_fault() {
        assert_eq!(worst(&judged(&CASE, Some(0), &[], true)), Severity::Fault);
        assert_eq!(worst(&judged(&CASE, Some(0), &[2_000, 2_000, 2_000], true)), Severity::Fault);
        assert_eq!(worst(&judged(&CASE, Some(0), &RIGHT, false)), Severity::Fault);
        assert_eq!(worst(&judged(&SILENT, Some(0), &[2_000; 4], true)), Severity::Fault);
    }
}
