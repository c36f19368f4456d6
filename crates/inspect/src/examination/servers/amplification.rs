//! The case on bytes that a server sends to an unverified address.

use coapace_proto::{Code, Kind, Options};

use super::super::case::{Case, ExaminationTarget};
use super::super::finding::Finding;
use super::super::transcript::Transcript;
use super::{request, response, sent};

pub(super) const CASE: Case = Case {
    name: "amplification",
    summary: "bytes of answers for each byte of requests from an address that was never heard before",
    clause: "RFC 9175 §2.4",
    seconds: [4, 4],
    begin: |target, outbox| {
        for (n, (_, options)) in (1..).zip(asked(target)) {
            outbox.send(300 * u64::from(n), request(target, Kind::Confirmable, Code::GET, n, &options));
        }
    },
    react: |_, _, _, _| {},
    judge,
    ..super::CASE
};

/// The largest answer in bytes that counts as harmless, because its amplification is of little use to an attacker. A
/// server should prevent larger answers if they also exceed the request by more than the next constant, a factor (RFC
/// 9175 §2.4).
const HARMLESS_BYTES: usize = 136;
const HARMLESS_FACTOR: usize = 3;

/// Returns the resources to request, each with its name in findings.
fn asked(target: &ExaminationTarget) -> Vec<(&'static str, Options)> {
    let mut asked = vec![
        ("the resource", target.resource.clone()),
        ("/.well-known/core", Options::new().uri_path(".well-known/core")),
    ];
    asked.extend(target.large.clone().map(|large| ("the large resource", large)));
    asked
}

fn judge(target: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    let factors = (1..).zip(asked(target)).filter_map(|(n, (name, options))| {
        let answer = response(target, transcript, n)?;
        let question = request(target, Kind::Confirmable, Code::GET, n, &options).len();
        let packets: Vec<u32> = sent(target, transcript, n).into_iter().chain([answer.number]).collect();
        // A victim receives the headers of IP and UDP, too.
        let headers = if answer.peer.ip().to_canonical().is_ipv4() { 28 } else { 48 };
        Some((name, question, answer.bytes.len(), headers, packets))
    });
    let worst = factors.max_by(|one, other| {
        let factor = |(_, question, answer, ..): &(_, usize, usize, _, _)| *answer as f64 / *question as f64;
        factor(one).total_cmp(&factor(other))
    });
    let Some((name, question, answer, headers, packets)) = worst else {
        return vec![Finding::not_tested("no answer")];
    };
    let factor = answer as f64 / question as f64;
    let text =
        format!("at most {factor:.1} times as many bytes: {question} of a request bring {answer} ({name})");
    let is_harmful = answer + headers > HARMLESS_FACTOR * (question + headers) && answer > HARMLESS_BYTES;
    let finding = if is_harmful { Finding::warning(text) } else { Finding::ok(text) };
    vec![finding.seen_in(packets)]
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity;
    use super::super::super::packet::message;
    use super::super::super::rehearsal::{ScriptedDatagrams, rehearse, worst};
    use super::*;
    use coapace_proto::Message;

    #[test]
    fn a_server_that_sends_unverified_clients_large_answers_is_warned() {
        let judged = |bytes: usize| {
            let server = |now, question: Option<&[u8]>, pending: &mut ScriptedDatagrams| {
                let Some(received) = question.and_then(|question| Message::parse(question).ok()) else {
                    return;
                };
                let (id, token) = (received.message_id, received.token);
                let payload = vec![b'x'; bytes];
                let kind = Kind::Acknowledgement;
                pending.push((now, message(kind, Code::CONTENT, id, &token, &Options::new(), &payload)));
            };
            worst(&rehearse(&CASE, &ExaminationTarget::default(), server))
        };
        assert_eq!(judged(30), Severity::Ok);
        assert_eq!(judged(1_024), Severity::Warning);
    }
}
