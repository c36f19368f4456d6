//! The case on the number of outstanding requests (NSTART).

use super::super::case::Case;
use super::super::finding::Finding;
use super::super::packet::Packet;
use super::super::transcript::Transcript;
use super::has_lasted;

pub(super) const CASE: Case = Case {
    name: "nstart",
    summary: "the confirmable requests that are outstanding while nothing is answered",
    clause: "RFC 7252 §4.7",
    seconds: [6, 6],
    is_enough: |_, transcript| has_lasted(transcript, 4),
    judge: |_, transcript| judge(transcript),
    ..super::CASE
};

fn judge(transcript: &Transcript) -> Vec<Finding> {
    let is_counted = |packet: &Packet| packet.is_request() && super::is_confirmable(packet);
    let requests = transcript.messages(is_counted);
    let numbers: Vec<u32> = requests.iter().map(|copies| copies.first().number).take(10).collect();
    let finding = match requests.len() {
        1 => {
            Finding::ok("1 request outstanding; this shows nothing unless the command makes several at once")
        }
        count => Finding::warning(format!("{count} requests outstanding within 4 s; NSTART is 1")),
    };
    vec![finding.seen_in(numbers)]
}

#[cfg(test)]
mod tests {
    use super::super::super::case::ExaminationTarget;
    use super::super::super::finding::Severity;
    use super::super::super::rehearsal::{ScriptedDatagrams, client, rehearse, request, sound, worst};
    use super::*;

    #[test]
    fn one_outstanding_request_passes_and_four_fail() {
        let patient = client(4, |_, copy| 2_000 << copy, sound);
        assert_eq!(worst(&rehearse(&CASE, &ExaminationTarget::default(), patient)), Severity::Ok);
        let greedy = |_, _: Option<&[u8]>, pending: &mut ScriptedDatagrams| {
            pending.extend((0..4).map(|n| (u64::from(n), request(n))));
            pending.push((5_000, request(0)));
        };
        let findings = rehearse(&CASE, &ExaminationTarget::default(), greedy);
        assert_eq!(worst(&findings), Severity::Warning);
        assert!(findings[0].measured.starts_with("4 requests outstanding"), "{findings:?}");
    }
}
