//! The case that emulates an NB-IoT link with a hundred observers like the examiner.

use coapace_proto::Kind;

use super::super::bottleneck::{BottleneckEntry, HOSTS, occupied, replies};
use super::super::case::{Case, DatagramSchedule, ExaminationTarget, ExaminedSide};
use super::super::clients::verdict;
use super::super::finding::Finding;
use super::super::packet::{Packet, empty};
use super::super::transcript::Transcript;
use super::observation::{missing, notifications, register};

pub(super) const CASE: Case = Case {
    name: "nb-iot",
    summary: "a hundred observers like the examiner behind an NB-IoT link with an endless queue: load and spurious notifications",
    clause: "RFC 7641 §4.5.1",
    seconds: [30, 90],
    begin: register,
    react,
    is_enough: |target, transcript| target.observable.is_none() || transcript.received().count() >= MOST,
    lacks: missing,
    judge,
    ..super::CASE
};

/// The number of packets of a server after which the case ends.
const MOST: usize = 1_000;

/// The least number of notifications for a verdict.
const LEAST: usize = 4;

/// If notifications need more than this share of the link, its queue grows without end. It is a little above the whole
/// link.
const OVERLOAD: f64 = 1.05;

/// Acknowledges each confirmable response at the time at which the emulated link would have delivered the
/// acknowledgement.
fn react(_: &ExaminationTarget, transcript: &Transcript, packet: &Packet, outbox: &mut DatagramSchedule) {
    // A packet waits behind all earlier ones, so the link is computed again from the first packet on.
    let entries: Vec<BottleneckEntry<'_>> =
        transcript.received().map(|packet| BottleneckEntry::new(packet, acknowledgement(packet))).collect();
    if let Some(Some(at)) = replies(ExaminedSide::Server, &entries).pop() {
        outbox.answer(packet, at.saturating_sub(outbox.now).as_millis() as u64, acknowledgement(packet));
    }
}

/// Returns the acknowledgement of a confirmable response; no bytes for other packets.
fn acknowledgement(packet: &Packet) -> Vec<u8> {
    let confirmable = packet.message().filter(|_| is_confirmable(packet));
    confirmable.map(|message| empty(Kind::Acknowledgement, message.message_id)).unwrap_or_default()
}

fn is_confirmable(packet: &Packet) -> bool {
    packet.message().is_some_and(|message| message.kind == Kind::Confirmable && message.code.is_response())
}

fn judge(target: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    let all = notifications(target, transcript);
    let Some(first) = all.first().filter(|_| all.len() >= LEAST) else {
        return vec![Finding::not_tested(format!(
            "{} notifications came; a verdict needs {LEAST}",
            all.len()
        ))];
    };
    let seconds = transcript.until.saturating_sub(first.at).as_secs_f64();
    // Every packet takes a hundred times its time on the link, because all observers get one.
    let load = all.iter().map(|packet| occupied(packet.bytes.len())).sum::<f64>() / seconds;
    let confirmable: Vec<&Packet> = all.iter().copied().filter(|packet| is_confirmable(packet)).collect();
    // A server should not have two confirmable notifications under way to a client (RFC 7641 §4.5.1).
    let is_spurious = |place: &usize| {
        let sent = confirmable[*place];
        confirmable[..*place].iter().any(|earlier| !is_acknowledged(transcript, earlier, sent))
    };
    let spurious = (0..confirmable.len()).filter(is_spurious).count();
    let text = format!(
        "with {HOSTS} observers, {} notifications in {seconds:.0} s take {:.0} % of the link; {spurious} of {} confirmable ones \
         are sent while another is on its way",
        all.len(),
        load * 100.0,
        confirmable.len(),
    );
    let finding = if load > OVERLOAD {
        Finding::warning(format!("overloads: {text}"))
    } else {
        verdict(spurious as f64 / confirmable.len().max(1) as f64, text)
    };
    vec![finding.seen_in(all.iter().map(|packet| packet.number))]
}

/// Returns whether a notification was acknowledged before a later packet was sent.
fn is_acknowledged(transcript: &Transcript, notification: &Packet, later: &Packet) -> bool {
    let id = notification.bytes.get(2..4);
    let mut acks = transcript.sent().filter(|sent| sent.is_empty_ack() && sent.bytes.get(2..4) == id);
    acks.any(|ack| ack.number > notification.number && ack.number < later.number)
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity;
    use super::super::super::packet::message;
    use super::super::super::rehearsal::{ScriptedDatagrams, rehearse, worst};
    use super::*;
    use coapace_proto::{Code, Message, Options};

    /// Returns the findings about a server that sends a notification of type `kind` every `gap` milliseconds.
    fn judged(gap: u64, kind: Kind) -> Vec<Finding> {
        let target = ExaminationTarget {
            observable: Some(Options::new().uri_path("clock")),
            ..ExaminationTarget::default()
        };
        let server = |now, bytes: Option<&[u8]>, pending: &mut ScriptedDatagrams| {
            let Some(received) = bytes.and_then(|bytes| Message::parse(bytes).ok()) else { return };
            if received.kind != Kind::Confirmable {
                return;
            }
            let options = Options::new().observe(1);
            let answer = |kind, id| message(kind, Code::CONTENT, id, &received.token, &options, b"12345678");
            pending.push((now, answer(Kind::Acknowledgement, received.message_id)));
            pending.extend((1..90_000 / gap).map(|n| (now + n * gap, answer(kind, n as u16))));
        };
        rehearse(&CASE, &target, server)
    }

    #[test]
    fn one_notification_a_second_overloads_the_link_and_one_in_4_s_does_not() {
        let often = judged(1_000, Kind::NonConfirmable);
        assert_eq!(worst(&often), Severity::Warning, "{often:?}");
        assert!(often[0].measured.starts_with("overloads"), "{often:?}");
        assert_eq!(worst(&judged(4_000, Kind::NonConfirmable)), Severity::Ok);
        assert_eq!(worst(&judged(4_000, Kind::Confirmable)), Severity::Ok);
    }

    #[test]
    fn confirmable_notifications_before_the_acknowledgement_are_spurious() {
        // 46 bytes take 1.2 s, and the acknowledgement comes 1.8 s after the notification.
        let hasty = judged(1_500, Kind::Confirmable);
        assert!(hasty[0].measured.starts_with("collapses"), "{hasty:?}");
    }
}
