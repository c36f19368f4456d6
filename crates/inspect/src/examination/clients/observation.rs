//! The case on notifications that are reordered, repeated and lost.

use coapace_proto::{Kind, Options};

use super::super::case::{Case, DatagramSchedule, ExaminationTarget};
use super::super::finding::Finding;
use super::super::packet::Packet;
use super::super::transcript::Transcript;
use super::{confirmable_response, has_lasted, response, response_with};

pub(super) const CASE: Case = Case {
    name: "observer",
    summary: "confirmable notifications: one is lost, one is late, one comes twice",
    clause: "RFC 7641 §3.5",
    seconds: [10, 10],
    react,
    is_enough: |_, transcript| has_lasted(transcript, 5),
    judge,
    ..super::CASE
};

/// The notifications that the examiner sends: milliseconds after the registration, index of the Message ID (equal for
/// copies), and Observe sequence number. Sequence number 4 is lost, 5 comes after 6, and 6 comes twice.
const NOTIFICATIONS: [(u64, u16, u32); 5] =
    [(400, 1, 3), (900, 2, 6), (1_300, 3, 5), (1_700, 2, 6), (2_300, 4, 7)];

fn is_registration(packet: &Packet) -> bool {
    packet.is_request() && packet.message().is_some_and(|message| message.observe() == Some(0))
}

fn react(
    target: &ExaminationTarget,
    transcript: &Transcript,
    packet: &Packet,
    outbox: &mut DatagramSchedule,
) {
    if !packet.is_request() {
        return;
    }
    if !is_registration(packet) {
        return outbox.answer(packet, 0, response(packet));
    }
    outbox.answer(packet, 0, response_with(packet, &Options::new().observe(2)));
    // A client may register again. Its second observation would get the same Message IDs.
    let is_first = transcript.received().filter(|packet| is_registration(packet)).count() == 1;
    for (after, number, sequence) in NOTIFICATIONS.into_iter().filter(|_| is_first) {
        let options = Options::new().observe(sequence);
        outbox.answer(packet, after, confirmable_response(packet, target.id(number), &options));
    }
}

fn judge(target: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    if !transcript.received().any(is_registration) {
        return vec![Finding::not_tested("the client does not observe; give a command that does")];
    }
    let mut unanswered = Vec::new();
    let mut evidence = Vec::new();
    let mut rejected = Vec::new();
    let notifications: Vec<&Packet> =
        transcript.sent().filter(|packet| super::is_confirmable(packet)).collect();
    for (place, notification) in notifications.iter().enumerate() {
        let id = notification.message().map(|message| message.message_id).unwrap_or_default();
        // A copy has the Message ID of its original, so an answer belongs to the last of the two before it.
        let next = notifications.get(place + 1).map_or(u32::MAX, |next| next.number);
        let within = |packet: &&Packet| packet.number > notification.number && packet.number < next;
        let find = |kind| transcript.received().filter(within).find(|packet| packet.is_answer(kind, id));
        evidence.push(notification.number);
        if let Some(reset) = find(Kind::Reset) {
            rejected.extend([notification.number, reset.number]);
        } else if find(Kind::Acknowledgement).is_none() {
            unanswered.push((place, notification.number));
        }
    }
    let ended = transcript
        .exits
        .first()
        .is_some_and(|exit| notifications.last().is_some_and(|last| exit.at < last.at));
    // A client that has ended can acknowledge nothing, so this is not a fault.
    if notifications.len() < NOTIFICATIONS.len() || ended {
        return vec![Finding::not_tested("the client ended before all notifications were sent")];
    }
    let mut findings = Vec::new();
    if !rejected.is_empty() {
        findings.push(Finding::fault("a notification is rejected with a Reset").seen_in(rejected));
    }
    // Places 1 and 3 have one Message ID. Only the later of them is the copy.
    let is_copy = |place: usize| target.id(NOTIFICATIONS[place].1) == target.id(2) && place > 1;
    let (copies, others): (Vec<_>, Vec<_>) = unanswered.into_iter().partition(|(place, _)| is_copy(*place));
    if !others.is_empty() {
        let text = format!("{} of 4 notifications are not acknowledged", others.len());
        findings.push(Finding::fault(text).seen_in(others.into_iter().map(|(_, number)| number)));
    }
    if !copies.is_empty() {
        let text = "a copy of a notification is not acknowledged again";
        let packets = copies.into_iter().map(|(_, number)| number);
        findings.push(Finding::warning(text).by("RFC 7252 §4.5").seen_in(packets));
    }
    if findings.is_empty() {
        findings.push(
            Finding::ok("all notifications are acknowledged, also the late one and the copy")
                .seen_in(evidence),
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity;
    use super::super::super::packet::{empty, message};
    use super::super::super::rehearsal::{ScriptedDatagrams, rehearse, worst};
    use super::*;
    use coapace_proto::{Code, Message};

    /// Returns the findings about an observer; `answers` returns the type of its answer to the `n`th notification.
    fn judged(answers: impl Fn(usize) -> Option<Kind>) -> Vec<Finding> {
        let mut seen = 0;
        let peer = |now, bytes: Option<&[u8]>, pending: &mut ScriptedDatagrams| {
            let Some(bytes) = bytes else {
                let options = Options::new().observe(0).uri_path("examined");
                pending.push((0, message(Kind::Confirmable, Code::GET, 7, b"abcd", &options, &[])));
                return;
            };
            let received = Message::parse(bytes).unwrap();
            if received.kind == Kind::Confirmable {
                pending.extend(answers(seen).map(|kind| (now, empty(kind, received.message_id))));
                seen += 1;
            }
        };
        rehearse(&CASE, &ExaminationTarget::default(), peer)
    }

    #[test]
    fn a_client_must_acknowledge_every_confirmable_notification() {
        assert_eq!(worst(&judged(|_| Some(Kind::Acknowledgement))), Severity::Ok);
        let findings = judged(|n| (n != 2).then_some(Kind::Acknowledgement));
        assert_eq!(worst(&findings), Severity::Fault, "the late one is ignored");
        let findings = judged(|n| (n != 3).then_some(Kind::Acknowledgement));
        assert_eq!(worst(&findings), Severity::Warning, "the copy is ignored");
        let findings = judged(|n| Some(if n == 4 { Kind::Reset } else { Kind::Acknowledgement }));
        assert_eq!(worst(&findings), Severity::Fault, "the last one is rejected");
    }
}
