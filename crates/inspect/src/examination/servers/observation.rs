//! The case on the end of an observation.

use std::time::Duration;

use coapace_proto::{Code, Kind};

use super::super::case::{Case, DatagramSchedule, ExaminationTarget};
use super::super::finding::Finding;
use super::super::packet::{Packet, empty, message};
use super::super::transcript::Transcript;
use super::acknowledge;

pub(super) const RESET: Case = Case {
    name: "observe-reset",
    summary: "a Reset to a notification",
    clause: "RFC 7641 §3.6",
    seconds: [16, 30],
    begin: register,
    react: |target, transcript, packet, outbox| {
        let Some(received) = packet.message() else { return };
        // A stack may answer a Reset to anything else than a notification, and that answer would get a Reset again.
        let all = notifications(target, transcript);
        if all.len() >= 2 && all.iter().any(|notification| notification.number == packet.number) {
            outbox.answer(packet, 0, empty(Kind::Reset, received.message_id));
        } else {
            acknowledge(packet, outbox);
        }
    },
    is_enough: |target, transcript| {
        target.observable.is_none() || is_seen(transcript, |packet| is_kind(packet, Kind::Reset))
    },
    lacks: missing,
    judge: |target, transcript| judge(target, transcript, |packet| is_kind(packet, Kind::Reset), "a Reset"),
    ..super::CASE
};

pub(super) const CANCEL: Case = Case {
    name: "observe-cancel",
    summary: "a GET with Observe 1",
    clause: "RFC 7641 §3.6",
    seconds: [16, 30],
    begin: register,
    react: |target, transcript, packet, outbox| {
        acknowledge(packet, outbox);
        if let Some(options) = &target.observable
            && notifications(target, transcript).len() == 2
            && !transcript.sent().any(is_cancellation)
        {
            // A cancellation is a GET with the token of the registration (RFC 7641 §3.6).
            let options = options.clone().observe(1);
            let (id, token) = (target.id(2), target.token(1));
            outbox.send(0, message(Kind::Confirmable, Code::GET, id, &token, &options, &[]));
        }
    },
    is_enough: |target, transcript| target.observable.is_none() || is_seen(transcript, is_cancellation),
    lacks: missing,
    judge: |target, transcript| judge(target, transcript, is_cancellation, "cancelling"),
    ..super::CASE
};

/// The time for which an ended observation is watched.
const WATCHED: Duration = Duration::from_secs(5);

pub(super) fn register(target: &ExaminationTarget, outbox: &mut DatagramSchedule) {
    if let Some(options) = &target.observable {
        let options = options.clone().observe(0);
        outbox.send(0, message(Kind::Confirmable, Code::GET, target.id(1), &target.token(1), &options, &[]));
    }
}

/// Returns the notifications so far: responses with Observe that are not the answer to the registration.
pub(super) fn notifications<'a>(target: &ExaminationTarget, transcript: &'a Transcript) -> Vec<&'a Packet> {
    let token = target.token(1);
    let is_notification = |packet: &&Packet| {
        packet.is_response(&token)
            && packet
                .message()
                .is_some_and(|message| message.kind != Kind::Acknowledgement && message.observe().is_some())
    };
    transcript.received().filter(is_notification).collect()
}

/// Returns the finding for a case that has no observation to judge; `None` if it has one.
pub(super) fn missing(target: &ExaminationTarget, transcript: &Transcript) -> Option<Finding> {
    if target.observable.is_none() {
        return Some(Finding::not_tested("give a resource that changes every second with --observe"));
    }
    let token = target.token(1);
    let Some(first) = transcript.received().find(|packet| packet.is_response(&token)) else {
        return Some(Finding::not_tested("the registration is not answered"));
    };
    let observes = first.message().is_some_and(|message| message.observe().is_some());
    (!observes).then(|| Finding::not_tested("the resource is not observable").seen_in([first.number]))
}

fn is_kind(packet: &Packet, kind: Kind) -> bool {
    packet.message().is_some_and(|message| message.kind == kind)
}

fn is_cancellation(packet: &Packet) -> bool {
    packet.message().is_some_and(|message| message.observe() == Some(1))
}

/// Returns whether the message that ends the observation was sent, and [`WATCHED`] has passed since then.
fn is_seen(transcript: &Transcript, is_end: impl Fn(&Packet) -> bool) -> bool {
    let end = transcript.sent().find(|packet| is_end(packet));
    end.is_some_and(|end| transcript.until >= end.at + WATCHED)
}

fn judge(
    target: &ExaminationTarget,
    transcript: &Transcript,
    is_end: impl Fn(&Packet) -> bool,
    how: &str,
) -> Vec<Finding> {
    /// Notifications sent within this time after the message that ends the observation may have crossed it.
    const CROSSING: Duration = Duration::from_millis(200);
    let all = notifications(target, transcript);
    let Some(end) = transcript.sent().find(|packet| is_end(packet)) else {
        return vec![Finding::not_tested(format!("{} notifications came; a verdict needs two", all.len()))];
    };
    // A server may send both kinds in turn, so the kind of the last one before the end is named.
    let last = all.iter().rfind(|packet| packet.at <= end.at).copied();
    let is_confirmable = last.is_some_and(|last| is_kind(last, Kind::Confirmable));
    // A notification that was on its way when the end was sent is not a fault.
    let late: Vec<u32> =
        all.iter().filter(|packet| packet.at > end.at + CROSSING).map(|packet| packet.number).collect();
    let kind = if is_confirmable { "confirmable" } else { "non-confirmable" };
    let packets =
        last.into_iter().map(|last| last.number).chain([end.number]).chain(late.iter().copied().take(4));
    let watched = transcript.until.saturating_sub(end.at).as_secs_f64();
    let finding = match late.len() {
        0 => {
            Finding::ok(format!("{how} ends the observation ({kind} notifications): none for {watched:.0} s"))
        }
        count => Finding::fault(format!("{count} notifications in {watched:.0} s after {how} ({kind})")),
    };
    vec![finding.seen_in(packets)]
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity;
    use super::super::super::rehearsal::{ScriptedDatagrams, rehearse, worst};
    use super::*;
    use coapace_proto::{Message, Options};

    /// Returns the findings about a server that notifies once a second, and removes observers if it `forgets`.
    fn judged(case: &Case, kind: Kind, forgets: bool) -> Severity {
        let target = ExaminationTarget {
            observable: Some(Options::new().uri_path("clock")),
            ..ExaminationTarget::default()
        };
        let server = |now, bytes: Option<&[u8]>, pending: &mut ScriptedDatagrams| {
            let Some(received) = bytes.and_then(|bytes| Message::parse(bytes).ok()) else { return };
            if received.observe() == Some(0) {
                let notification = |kind, id, sequence| {
                    let options = Options::new().observe(sequence);
                    message(kind, Code::CONTENT, id, &received.token, &options, b"now")
                };
                pending.push((now, notification(Kind::Acknowledgement, received.message_id, 1)));
                pending
                    .extend((1..20u16).map(|n| {
                        (now + 1_000 * u64::from(n), notification(kind, 500 + n, 1 + u32::from(n)))
                    }));
            } else if forgets && (received.kind == Kind::Reset || received.observe() == Some(1)) {
                pending.clear();
            }
        };
        worst(&rehearse(case, &target, server))
    }

    #[test]
    fn a_server_that_notifies_after_deregistration_or_a_reset_fails() {
        for case in [RESET, CANCEL] {
            for kind in [Kind::Confirmable, Kind::NonConfirmable] {
                assert_eq!(judged(&case, kind, true), Severity::Ok, "{}", case.name);
                assert_eq!(judged(&case, kind, false), Severity::Fault, "{}", case.name);
            }
        }
    }
}
