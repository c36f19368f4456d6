//! The case on an observer that has vanished.

use coapace_proto::Kind;

use super::super::case::{Case, ExaminationTarget};
use super::super::clients::growth;
use super::super::finding::Finding;
use super::super::packet::Packet;
use super::super::transcript::Transcript;
use super::observation::{missing, notifications, register};

pub(super) const CASE: Case = Case {
    name: "silent-observer",
    summary: "an observer that registers and is silent from then on: rate, timeouts, and when it is dropped",
    clause: "RFC 7641 §4.5",
    seconds: [25, 150],
    begin: register,
    react: |_, _, _, _| {},
    is_enough: |target, _| target.observable.is_none(),
    lacks: missing,
    judge,
    ..super::CASE
};

/// The time without a notification after which an observer counts as dropped, in seconds: longer than the longest
/// timeout, 48 s.
const DROPPED: f64 = 55.0;

/// PROBING_RATE in bytes per second (RFC 7252 §4.8).
const PROBING_RATE: f64 = 1.0;

fn judge(target: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    let all = notifications(target, transcript);
    let Some((first, last)) = all.first().zip(all.last()) else {
        return vec![Finding::not_tested("no notification came")];
    };
    // Forty packets are evidence enough, and a page of numbers is not.
    let numbers: Vec<u32> = all.iter().map(|packet| packet.number).take(40).collect();
    let is_confirmable =
        |packet: &Packet| packet.message().is_some_and(|message| message.kind == Kind::Confirmable);
    // A server may mix both kinds (RFC 7641 §4.5). Different rules hold for them.
    let (confirmable, others): (Vec<&Packet>, Vec<&Packet>) =
        all.iter().partition(|packet| is_confirmable(packet));
    let mut findings = Vec::new();
    findings.extend(confirmable_ones(transcript, &confirmable));
    findings.extend(rate(&others));
    let watched = transcript.until.saturating_sub(last.at).as_secs_f64();
    let whole = last.at.saturating_sub(first.at).as_secs_f64();
    findings.push(
        if watched > DROPPED {
            Finding::ok(format!(
                "the observer is dropped: the last of {} datagrams came after {whole:.0} s",
                all.len()
            ))
        } else if target.is_quick {
            Finding::not_tested("to see whether the observer is dropped takes 150 s: leave out --quick")
        } else {
            Finding::fault(format!(
                "the observer is still notified after {whole:.0} s, with {} datagrams",
                all.len()
            ))
        }
        .seen_in(numbers),
    );
    findings
}

/// Judges confirmable notifications that are never acknowledged.
fn confirmable_ones(transcript: &Transcript, sent: &[&Packet]) -> Vec<Finding> {
    if sent.is_empty() {
        return Vec::new();
    }
    let numbers: Vec<u32> = sent.iter().map(|packet| packet.number).take(40).collect();
    let is_one = |packet: &Packet| sent.iter().any(|one| one.number == packet.number);
    let messages = transcript.messages(is_one);
    // A newer representation may take the place of an older one in the same exchange (RFC 7641 §4.5.2). Then no older message
    // is sent again.
    let is_outstanding = |place: usize| {
        messages[..place].iter().any(|older| older.last().number > messages[place].first().number)
    };
    let overlapping = (1..messages.len()).filter(|&place| is_outstanding(place)).count();
    if overlapping > 0 {
        let text = format!(
            "{} of {} confirmable notifications are sent while another is outstanding",
            overlapping,
            messages.len()
        );
        let longest = messages.iter().max_by_key(|copies| copies.packets.len());
        let single = longest.map(|copies| growth(&copies.intervals())).unwrap_or_default();
        let finding = Finding::warning(text).by("RFC 7641 §4.5.1");
        return [finding].into_iter().chain(single).map(|finding| finding.seen_in(numbers.clone())).collect();
    }
    if let [only] = sent {
        // A server may give up before MAX_RETRANSMIT, as one does that sends a stranger little (RFC 9175 §2.4).
        let text = "the only confirmable notification is not sent again: the server gives up early";
        return vec![Finding::note(text).by("RFC 7252 §4.2").seen_in([only.number])];
    }
    let intervals: Vec<f64> =
        sent.windows(2).map(|pair| pair[1].at.saturating_sub(pair[0].at).as_secs_f64()).collect();
    growth(&intervals).into_iter().map(|finding| finding.seen_in(numbers.clone())).collect()
}

/// Judges the rate of non-confirmable notifications; `None` if there are fewer than three.
fn rate(sent: &[&Packet]) -> Option<Finding> {
    let (first, last) = sent.first().zip(sent.last())?;
    let seconds = last.at.saturating_sub(first.at).as_secs_f64();
    if sent.len() < 3 {
        return None;
    }
    let gap = seconds / (sent.len() - 1) as f64;
    // The last notification ends the time, so its bytes do not count.
    let bytes: usize = sent[..sent.len() - 1].iter().map(|packet| packet.bytes.len()).sum();
    let rate = bytes as f64 / seconds;
    let text = format!(
        "{} non-confirmable notifications, {gap:.1} s apart, {rate:.1} bytes a second (PROBING_RATE is {PROBING_RATE:.0})",
        sent.len()
    );
    // Without an estimate of the round-trip time, not more than one in 3 s on average.
    let finding = if gap < 2.9 { Finding::warning(text) } else { Finding::ok(text) };
    Some(finding.by("RFC 7641 §4.5.1").seen_in(sent.iter().map(|packet| packet.number).take(40)))
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity;
    use super::super::super::packet::message;
    use super::super::super::rehearsal::{ScriptedDatagrams, rehearse, worst};
    use super::*;
    use coapace_proto::{Code, Message, Options};

    /// Returns the findings about a server with these notifications: times in milliseconds, types and Message IDs.
    fn judged(sent: &[(u64, Kind, u16)]) -> Vec<Finding> {
        let target = ExaminationTarget {
            observable: Some(Options::new().uri_path("clock")),
            ..ExaminationTarget::default()
        };
        let server = |now, bytes: Option<&[u8]>, pending: &mut ScriptedDatagrams| {
            let Some(received) = bytes.and_then(|bytes| Message::parse(bytes).ok()) else { return };
            let options = Options::new().observe(1);
            let answer = |kind, id| message(kind, Code::CONTENT, id, &received.token, &options, b"12345678");
            pending.push((now, answer(Kind::Acknowledgement, received.message_id)));
            pending.extend(sent.iter().map(|&(after, kind, id)| (now + after, answer(kind, id))));
        };
        rehearse(&CASE, &target, server)
    }

    #[test]
    fn a_server_may_drop_a_silent_observer_after_one_notification() {
        let findings = judged(&[(1_000, Kind::Confirmable, 70)]);
        assert_eq!(worst(&findings), Severity::Note, "{findings:?}");
        assert!(findings[1].measured.starts_with("the observer is dropped"), "{findings:?}");
    }

    #[test]
    fn a_server_that_updates_an_unacknowledged_notification_and_gives_up_passes() {
        let times = [1_000, 3_500, 8_500, 18_500, 38_500];
        let sent: Vec<_> = (0..).zip(times).map(|(n, at)| (at, Kind::Confirmable, 70 + n)).collect();
        let findings = judged(&sent);
        assert_eq!(worst(&findings), Severity::Ok, "{findings:?}");
        assert!(findings[1].measured.starts_with("the observer is dropped"), "{findings:?}");
    }

    #[test]
    fn a_server_that_never_stops_notifying_a_silent_observer_fails() {
        let sent: Vec<_> = (1..150).map(|n| (1_000 * u64::from(n), Kind::NonConfirmable, n)).collect();
        let findings = judged(&sent);
        assert_eq!(findings[0].severity, Severity::Warning, "the rate: {findings:?}");
        assert_eq!(findings[1].severity, Severity::Fault, "{findings:?}");
    }

    #[test]
    fn several_outstanding_notifications_to_one_observer_are_a_warning() {
        let times = [(1_000, 1), (2_000, 2), (3_400, 1), (4_500, 2), (8_000, 1), (9_400, 2)];
        let sent: Vec<_> = times.iter().map(|&(at, id)| (at, Kind::Confirmable, id)).collect();
        let findings = judged(&sent);
        assert_eq!(worst(&findings), Severity::Warning, "{findings:?}");
    }
}
