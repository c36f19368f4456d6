//! The case on all timeouts of one exchange that is never answered.

use super::super::case::Case;
use super::super::copies::MessageCopies;
use super::super::finding::Finding;
use super::super::transcript::Transcript;

pub(super) const CASE: Case = Case {
    name: "backoff",
    summary: "timeouts, number of copies and the final wait of a request that is never answered",
    clause: "RFC 7252 §4.2",
    seconds: [25, 110],
    is_enough: |_, transcript| is_given_up(transcript),
    judge: |_, transcript| judge(transcript),
    ..super::CASE
};

/// Returns whether the first request was given up: its process has ended, or the next request has begun.
fn is_given_up(transcript: &Transcript) -> bool {
    let requests = transcript.requests();
    requests.len() > 1 || requests.first().is_some_and(|first| gave_up_at(transcript, first).is_some())
}

/// Returns the time at which a request was given up, in seconds since the examination began; `None` if it was not.
fn gave_up_at(transcript: &Transcript, request: &MessageCopies<'_>) -> Option<f64> {
    let (first, last) = (request.first(), request.last());
    let requests = transcript.requests();
    let next = requests
        .iter()
        .map(MessageCopies::first)
        .find(|other| other.number > first.number && other.lane == first.lane && other.bytes != first.bytes);
    let exit = transcript.exit_after(first.lane, last.at);
    next.map(|packet| packet.at).into_iter().chain(exit).min().map(|at| at.as_secs_f64())
}

fn judge(transcript: &Transcript) -> Vec<Finding> {
    let requests = transcript.requests();
    let Some(first) = requests.iter().find(|copies| super::is_confirmable(copies.first())) else {
        return Vec::new();
    };
    let given_up = gave_up_at(transcript, first);
    let mut findings = growth(&first.intervals());
    let intervals = first.intervals();
    findings.push(count(&intervals, given_up.is_some()));
    if let (Some(at), Some(last)) = (given_up, intervals.last()) {
        let begun = first.first().at.as_secs_f64();
        findings.push(final_wait(at - first.last().at.as_secs_f64(), *last, at - begun));
    }
    if !first.are_equal() {
        findings
            .push(Finding::note("copies with one Message ID have different bytes: the client marks them"));
    }
    // Requests are grouped by Message ID, so a copy with another one looks like a new request with the same token.
    let token = first.message().map(|message| message.token).unwrap_or_default();
    let renamed = requests.iter().find(|other| {
        !token.is_empty()
            && other.first().number > first.first().number
            && other.message().is_some_and(|message| message.token == token)
    });
    if let Some(renamed) = renamed {
        let other =
            "a copy with the same token has another Message ID: the server cannot tell that it is a copy";
        findings.push(Finding::warning(other).seen_in([first.first().number, renamed.first().number]));
    }
    // Findings about the whole exchange are proved by all of its copies.
    findings.into_iter().map(|finding| with_packets(finding, first)).collect()
}

fn with_packets(finding: Finding, copies: &MessageCopies<'_>) -> Finding {
    if finding.packets.is_empty() { finding.seen_in(copies.numbers()) } else { finding }
}

/// Judges how the timeouts of one message grow. `intervals` are the times between its copies in seconds.
pub(crate) fn growth(intervals: &[f64]) -> Vec<Finding> {
    let listed = intervals.iter().map(|interval| format!("{interval:.2}")).collect::<Vec<_>>().join(", ");
    let ratios: Vec<f64> = intervals.windows(2).map(|pair| pair[1] / pair[0]).collect();
    let finding = match super::super::statistics::range(&ratios) {
        None if intervals.is_empty() => Finding::fault("the message is not sent again"),
        None => Finding::not_tested(format!(
            "only one timeout, {listed} s; a verdict on growth needs two timeouts"
        )),
        Some((low, _)) if low < 1.15 => {
            Finding::fault(format!("timeouts {listed} s do not grow exponentially"))
        }
        Some((low, high)) if low >= 1.9 && high <= 2.1 => {
            Finding::ok(format!("timeouts {listed} s: each twice the last"))
        }
        Some((low, high)) => {
            Finding::note(format!("timeouts {listed} s grow by a factor of {low:.2} to {high:.2}, not 2"))
        }
    };
    vec![finding]
}

/// Judges the number of retransmissions of one message. `intervals` are the times between its copies.
pub(crate) fn count(intervals: &[f64], is_given_up: bool) -> Finding {
    let text = format!("{} retransmissions", intervals.len());
    match (intervals.len(), is_given_up) {
        (5.., _) => Finding::warning(format!("{text}: more than MAX_RETRANSMIT, 4")).by("RFC 7252 §4.8"),
        (_, false) => Finding::not_tested(format!("{text} until the case ended; more may have followed")),
        (4, true) => Finding::ok(format!("{text}: MAX_RETRANSMIT")).by("RFC 7252 §4.8"),
        (_, true) => Finding::note(format!("{text}; MAX_RETRANSMIT is 4 by default")).by("RFC 7252 §4.8"),
    }
}

/// Judges the time from the last copy to giving up. All times are in seconds; `total` is the time since the first copy.
fn final_wait(wait: f64, last_interval: f64, total: f64) -> Finding {
    let text =
        format!("the exchange is given up {wait:.2} s after the last copy, {total:.2} s after the first");
    // RFC 7252 §4.2 doubles the timeout once more, and waits that long for the answer to the last copy.
    if wait < 0.5 * last_interval {
        Finding::note(format!("{text}: the client hardly waits for an answer to the last copy"))
    } else if total > 93.0 * 1.03 {
        Finding::note(format!("{text}: longer than MAX_TRANSMIT_WAIT, 93 s")).by("RFC 7252 §4.8.2")
    } else {
        Finding::ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::case::ExaminationTarget;
    use super::super::super::finding::Severity;
    use super::super::super::packet::message;
    use super::super::super::rehearsal::{ScriptedDatagrams, client, rehearse, request, sound, worst};
    use super::*;
    use coapace_proto::{Code, Kind, Options};

    /// Returns the findings about a client that gives up after `timeouts`, and then makes another request.
    fn judged(timeouts: &[u64]) -> Vec<Finding> {
        let peer = |_, bytes: Option<&[u8]>, pending: &mut ScriptedDatagrams| {
            assert!(bytes.is_none(), "nothing is answered");
            let mut at = 0;
            for timeout in timeouts {
                pending.push((at, request(0)));
                at += timeout;
            }
            pending.push((at, request(1)));
        };
        rehearse(&CASE, &ExaminationTarget::default(), peer)
    }

    #[test]
    fn the_backoff_of_rfc_7252_passes() {
        let findings = judged(&[2_500, 5_000, 10_000, 20_000, 40_000]);
        assert_eq!(worst(&findings), Severity::Ok, "{findings:?}");
        assert!(findings[0].measured.contains("2.50, 5.00, 10.00, 20.00"), "{findings:?}");
        assert!(findings[2].measured.contains("40.00 s after the last copy"), "{findings:?}");
        assert_eq!(findings[0].packets, [1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_linear_backoff_fails() {
        let findings = judged(&[2_000, 2_000, 2_000, 2_000, 2_000]);
        assert_eq!(findings[0].severity, Severity::Fault);
    }

    #[test]
    fn another_backoff_factor_more_retransmissions_and_no_final_wait_are_findings() {
        let findings = judged(&[2_000, 3_000, 4_500, 6_750, 100]);
        assert_eq!(worst(&findings), Severity::Note);
        assert!(findings[2].measured.contains("hardly waits"), "{findings:?}");
        let findings = judged(&[2_000, 4_000, 8_000, 16_000, 32_000, 30_000]);
        assert_eq!(findings[1].severity, Severity::Warning, "{findings:?}");
    }

    #[test]
    fn a_retransmission_with_a_new_message_id_is_a_warning() {
        let peer = |_, _: Option<&[u8]>, pending: &mut ScriptedDatagrams| {
            let copy = |id| message(Kind::Confirmable, Code::GET, id, b"abcd", &Options::new(), &[]);
            pending.extend([(0, copy(1)), (2_000, copy(2))]);
        };
        let findings =
            rehearse(&Case { is_enough: |_, _| false, ..CASE }, &ExaminationTarget::default(), peer);
        assert_eq!(findings.last().unwrap().severity, Severity::Warning, "{findings:?}");
    }

    #[test]
    fn a_quick_examination_does_not_see_the_client_give_up() {
        let quick = ExaminationTarget { is_quick: true, ..ExaminationTarget::default() };
        let findings = rehearse(&CASE, &quick, client(1, |_, copy| 2_000 << copy, sound));
        assert_eq!(findings[1].severity, Severity::NotTested, "{findings:?}");
        assert_eq!(findings[0].severity, Severity::Ok);
    }
}
