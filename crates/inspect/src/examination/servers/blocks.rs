//! The case on the sizes of blocks.

use coapace_proto::block::Block;
use coapace_proto::{Code, Kind};

use super::super::case::{Case, ExaminationTarget};
use super::super::finding::Finding;
use super::super::transcript::Transcript;
use super::{needs_large, request, response, sent};

pub(super) const CASE: Case = Case {
    name: "blocks",
    summary: "a large representation: without Block2, its first block of 64 bytes, and the second",
    clause: "RFC 7959 §2.4",
    seconds: [5, 5],
    begin: |target, outbox| {
        let Some(large) = &target.large else { return };
        outbox.send(0, request(target, Kind::Confirmable, Code::GET, 1, large));
        for (n, num) in [(2, 0), (3, 1)] {
            let Some(block) = Block::new(num, false, SMALL) else { continue };
            let options = large.clone().block2(block);
            outbox.send(400 * u64::from(n), request(target, Kind::Confirmable, Code::GET, n, &options));
        }
    },
    is_enough: |target, _| target.large.is_none(),
    lacks: needs_large,
    judge,
    ..super::CASE
};

/// The size exponent of blocks of 64 bytes.
const SMALL: u8 = 2;
/// The largest message that should be sent, in bytes (RFC 7252 §4.6).
const LARGEST: usize = 1_152;

fn judge(target: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    let numbers = |n| {
        let answer = response(target, transcript, n).map(|packet| packet.number);
        sent(target, transcript, n).into_iter().chain(answer).collect::<Vec<_>>()
    };
    let Some(unasked) = response(target, transcript, 1) else {
        return vec![Finding::not_tested("the large resource is not answered")];
    };
    // A server may first make sure that the address is not forged, before it sends much there (RFC 9175 §2.4).
    let refuses = unasked.message().is_some_and(|message| message.code == Code::UNAUTHORIZED);
    let finding = match unasked.bytes.len() {
        _ if refuses => {
            Finding::ok("the server asks an unknown client for an Echo value first").by("RFC 9175 §2.4")
        }
        size if size > LARGEST => Finding::warning(format!(
            "the server answers a request without Block2 with {size} bytes; the limit is {LARGEST}"
        ))
        .by("RFC 7252 §4.6"),
        size => Finding::ok(format!("the server answers a request without Block2 with {size} bytes"))
            .by("RFC 7252 §4.6"),
    };
    let mut findings = vec![finding.seen_in(numbers(1))];
    for (n, num) in [(2, 0), (3, 1)] {
        let Some(answer) = response(target, transcript, n) else {
            findings.push(
                Finding::warning(format!("the server does not answer the request for block {num}"))
                    .seen_in(numbers(n)),
            );
            continue;
        };
        let Some(message) = answer.message() else { continue };
        let block = message.block2().ok().flatten();
        let payload = message.payload().len();
        findings.push(
            match block {
                _ if !message.code.is_success() => Finding::note(format!(
                    "the server answers {} to a request for block {num} of 64 bytes",
                    message.code
                )),
                None if payload > 64 => Finding::warning(format!(
                    "{payload} bytes without Block2, although block {num} of 64 bytes was requested"
                )),
                None => Finding::not_tested(format!(
                    "the representation has {payload} bytes, which fit into one block"
                )),
                // The client would put these bytes at the wrong place of the body.
                Some(block) if block.num() != num => Finding::fault(format!(
                    "the server sends block {}, although block {num} was requested",
                    block.num()
                )),
                Some(_) if payload > 64 => Finding::warning(format!(
                    "the server sends {payload} bytes in block {num}, although 64 bytes were requested"
                )),
                Some(_) => Finding::ok(format!("block {num} has {payload} bytes, as requested")),
            }
            .seen_in(numbers(n)),
        );
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity;
    use super::super::super::packet::message;
    use super::super::super::rehearsal::{ScriptedDatagrams, rehearse, worst};
    use super::*;
    use coapace_proto::{Message, Options};

    /// Returns the findings about a server with blocks of this exponent, or of the requested one if it `obeys`.
    fn judged(szx: u8, obeys: bool, shifts: bool) -> Severity {
        let target = ExaminationTarget {
            large: Some(Options::new().uri_path("large")),
            ..ExaminationTarget::default()
        };
        let server = |now, question: Option<&[u8]>, pending: &mut ScriptedDatagrams| {
            let Some(received) = question.and_then(|question| Message::parse(question).ok()) else { return };
            let asked = received.block2().unwrap();
            let szx = asked.filter(|_| obeys).map_or(szx, |block| block.szx().min(szx));
            let num = asked.map_or(0, Block::num) + u32::from(shifts);
            let options = Options::new().block2(Block::new(num, true, szx).unwrap());
            let payload = vec![b'x'; 16 << szx];
            let (kind, id) = (Kind::Acknowledgement, received.message_id);
            pending.push((now, message(kind, Code::CONTENT, id, &received.token, &options, &payload)));
        };
        worst(&rehearse(&CASE, &target, server))
    }

    #[test]
    fn a_server_must_send_blocks_of_the_requested_size() {
        assert_eq!(judged(6, true, false), Severity::Ok);
        assert_eq!(judged(6, false, false), Severity::Warning);
        assert_eq!(judged(6, true, true), Severity::Fault);
    }

    #[test]
    fn without_a_large_resource_nothing_is_tested() {
        assert_eq!(worst(&rehearse(&CASE, &ExaminationTarget::default(), |_, _, _| {})), Severity::NotTested);
    }
}
