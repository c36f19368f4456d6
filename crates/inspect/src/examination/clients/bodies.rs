//! Cases on bodies that a server accepts or sends in an unexpected way.

use coapace_proto::block::Block;
use coapace_proto::{Code, Kind, Options};

use super::super::case::{Case, DatagramSchedule, ExaminationTarget};
use super::super::finding::Finding;
use super::super::packet::{Packet, message};
use super::super::transcript::{Exit, Transcript};
use super::{content, has_lasted, response};

/// The case on a server without Block1: the examiner takes the first block for the whole body, and answers with success
/// without Block1.
pub(super) const CUT_SHORT: Case = Case {
    name: "upload-cut-short",
    summary: "a success without Block1 in answer to the first block of a body",
    clause: "RFC 7959 §2.3, §2.5",
    seconds: [8, 8],
    react: react_without_block1,
    is_enough: |_, transcript| !transcript.exits.is_empty() || has_lasted(transcript, 6),
    judge: judge_cut_short,
    ..super::CASE
};

/// The case on a constrained server: the examiner accepts few bytes in one message, and names its limit.
pub(super) const TOO_LARGE: Case = Case {
    name: "request-too-large",
    summary: "4.13 with Size1 64 to a request with more than 64 bytes",
    clause: "RFC 7959 §2.9.3",
    seconds: [8, 8],
    react: react_with_limit,
    is_enough: |_, transcript| !transcript.exits.is_empty() || has_lasted(transcript, 6),
    judge: judge_limit,
    ..super::CASE
};

/// The case on a large response: the examiner answers with one datagram that is larger than a datagram of CoAP should
/// be.
pub(super) const LARGE_RESPONSE: Case = Case {
    name: "large-response",
    summary: "a response of 8000 bytes in one datagram",
    clause: "RFC 7252 §4.6",
    seconds: [8, 8],
    react: react_largely,
    is_enough: |_, transcript| !transcript.exits.is_empty() || has_lasted(transcript, 6),
    judge: judge_large,
    ..super::CASE
};

/// The number of bytes that the server of [`TOO_LARGE`] accepts in one message. The next constant is the size exponent
/// of blocks of this size.
const LIMIT: usize = 64;
const LIMIT_SZX: u8 = 2;

/// The length of the body of [`LARGE_RESPONSE`] in bytes.
const LARGE: usize = 8_000;

/// Returns the block of the body that a request carries; `None` without Block1.
fn block1(packet: &Packet) -> Option<Block> {
    packet.message().filter(|_| packet.is_request())?.block1().ok().flatten()
}

/// Returns the block that a request asks for; `None` without Block2.
fn block2(packet: &Packet) -> Option<Block> {
    packet.message().filter(|_| packet.is_request())?.block2().ok().flatten()
}

/// Returns an answer to a request, piggybacked if the request is confirmable.
fn answer(request: &Packet, code: Code, options: &Options, payload: &[u8]) -> Vec<u8> {
    let Some(received) = request.message() else { return Vec::new() };
    let kind = if received.kind == Kind::Confirmable { Kind::Acknowledgement } else { Kind::NonConfirmable };
    message(kind, code, received.message_id, &received.token, options, payload)
}

/// Returns the first exit of the client's process after `packet`; `None` if it did not end, or if no command started it.
fn end_after<'a>(transcript: &'a Transcript, packet: &Packet) -> Option<&'a Exit> {
    transcript.exits.iter().find(|exit| exit.lane == packet.lane && exit.at >= packet.at)
}

fn react_without_block1(
    _: &ExaminationTarget,
    _: &Transcript,
    packet: &Packet,
    outbox: &mut DatagramSchedule,
) {
    if packet.is_request() {
        outbox.answer(packet, 0, answer(packet, Code::CHANGED, &Options::new(), &[]));
    }
}

fn judge_cut_short(_: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    let is_first = |packet: &&Packet| block1(packet).is_some_and(|block| block.num() == 0 && block.more());
    // A body in one block is whole with its first message, so a success to it proves nothing.
    let Some(first) = transcript.received().find(is_first) else {
        let text = "no body came in blocks; give a command that sends more than 1024 bytes";
        return vec![Finding::not_tested(text)];
    };
    let success = transcript.sent().find(|sent| sent.number > first.number).map(|sent| sent.number);
    let evidence = [first.number].into_iter().chain(success);
    let later = transcript.requests().into_iter().map(|request| request.first());
    let next = later.filter(|packet| packet.number > first.number).find(|packet| block1(packet).is_some());
    let bytes = first.message().map_or(0, |message| message.payload().len());
    vec![match (next, end_after(transcript, first)) {
        (Some(next), _) => {
            let text =
                "the client goes on with its blocks, so it does not take the success for the whole body";
            Finding::ok(text).seen_in(evidence.chain([next.number]))
        }
        // The user of the client takes this for a complete upload.
        (None, Some(Exit { code: 0, .. })) => {
            let text =
                format!("the client ends with success, although it sent only {bytes} bytes of a longer body");
            Finding::warning(text).seen_in(evidence)
        }
        (None, Some(Exit { code, .. })) => {
            Finding::ok(format!("the client ends with an error (exit code {code})")).seen_in(evidence)
        }
        (None, None) => Finding::not_tested("the client sends nothing more, and how it ended is not visible")
            .seen_in(evidence),
    }]
}

fn react_with_limit(_: &ExaminationTarget, _: &Transcript, packet: &Packet, outbox: &mut DatagramSchedule) {
    let Some(received) = packet.message().filter(|_| packet.is_request()) else { return };
    // The limit is checked first: a block may be too large, too.
    let answered = match block1(packet) {
        _ if received.payload().len() > LIMIT => {
            answer(packet, Code::REQUEST_ENTITY_TOO_LARGE, &Options::new().size1(LIMIT as u32), &[])
        }
        Some(block) => {
            let code = if block.more() { Code::CONTINUE } else { Code::CHANGED };
            answer(packet, code, &Options::new().block1(block), &[])
        }
        None => response(packet),
    };
    outbox.answer(packet, 0, answered);
}

fn judge_limit(_: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    let size = |packet: &Packet| packet.message().map_or(0, |message| message.payload().len());
    let Some(large) = transcript.received().find(|packet| packet.is_request() && size(packet) > LIMIT) else {
        let text = "no request came with more than 64 bytes; give a command that sends some";
        return vec![Finding::not_tested(text)];
    };
    let refusal = transcript.sent().find(|sent| sent.number > large.number).map(|sent| sent.number);
    let evidence = [large.number].into_iter().chain(refusal);
    let is_smaller = |packet: &&Packet| block1(packet).is_some_and(|block| block.szx() <= LIMIT_SZX);
    let smaller = transcript.received().filter(|packet| packet.number > large.number).find(is_smaller);
    // A program may end with 0 after any response: its exit code says nothing here.
    vec![match smaller {
        Some(block) => {
            let text = format!("after 4.13 the client sends blocks of {} bytes", size(block));
            Finding::ok(text).seen_in(evidence.chain([block.number]))
        }
        None => Finding::note("the client does not try blocks of the size that 4.13 names").seen_in(evidence),
    }]
}

fn react_largely(_: &ExaminationTarget, _: &Transcript, packet: &Packet, outbox: &mut DatagramSchedule) {
    if !packet.is_request() {
        return;
    }
    let body = vec![b'x'; LARGE];
    let answered = match block2(packet) {
        None => content(packet, &Options::new(), &body),
        Some(asked) => {
            let end = (asked.offset() + asked.size()).min(LARGE);
            let block = Block::new(asked.num(), end < LARGE, asked.szx());
            // A client may ask for a block behind the end.
            let payload = body.get(asked.offset()..end).unwrap_or_default();
            content(packet, &block.map_or_else(Options::new, |block| Options::new().block2(block)), payload)
        }
    };
    outbox.answer(packet, 0, answered);
}

fn judge_large(_: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    let requests = transcript.requests();
    let Some(asked) = requests.iter().find(|request| block2(request.first()).is_none()) else {
        return vec![Finding::not_tested(
            "all requests of the client ask for blocks, so no large response was sent",
        )];
    };
    let large = transcript.answers(asked).next().map(|sent| sent.number);
    let evidence = asked.numbers().take(3).chain(large);
    let mut later = transcript.received().filter(|packet| packet.number > asked.first().number);
    let block = later.find(|packet| block2(packet).is_some());
    vec![match (block, end_after(transcript, asked.first())) {
        (Some(block), _) => Finding::ok("after the large response, the client asks for blocks")
            .seen_in(evidence.chain([block.number])),
        (None, Some(Exit { code: 0, .. })) if asked.packets.len() == 1 => {
            Finding::ok("the client accepts 8000 bytes in one datagram").seen_in(evidence)
        }
        // Copies show that the client ignored the response, whatever its exit code.
        (None, _) if asked.packets.len() > 1 => {
            let text = "the client ignores the response and sends its request again";
            Finding::note(text).seen_in(evidence)
        }
        (None, Some(Exit { code, .. })) => {
            let text =
                format!("the client ends with an error (exit code {code}) and does not ask for blocks");
            Finding::note(text).seen_in(evidence)
        }
        // Without a command no end is seen. Then a next request shows that the client took the response.
        (None, None) => {
            let another = requests.iter().any(|other| other.first().number > asked.first().number);
            if another {
                Finding::ok("the client accepts the response and goes on to its next request")
                    .seen_in(evidence)
            } else {
                Finding::not_tested("the client sends nothing more, and how it ended is not visible")
                    .seen_in(evidence)
            }
        }
    }]
}

#[cfg(test)]
mod tests {
    use coapace_proto::Message;

    use super::super::super::finding::Severity;
    use super::super::super::packet::PacketDirection;
    use super::super::super::rehearsal::{ScriptedDatagrams, rehearse, worst};
    use super::*;

    /// Returns a client's PUT with this part of its body.
    fn put(id: u16, block: Option<Block>, payload: &[u8]) -> Vec<u8> {
        let options = block.map_or_else(Options::new, |block| Options::new().block1(block));
        let options = options.uri_path("examined");
        message(Kind::Confirmable, Code::PUT, id, b"body", &options, payload)
    }

    fn get(id: u16, block: Option<Block>) -> Vec<u8> {
        let options = Options::new().uri_path("examined");
        let options = block.map_or(options.clone(), |block| options.block2(block));
        message(Kind::Confirmable, Code::GET, id, b"body", &options, &[])
    }

    /// Returns the findings about a client that sends `first`, and then the datagram that `next` makes from the first answer.
    /// If there is none, it ends with `code`.
    fn judged(
        case: &Case,
        first: &[u8],
        next: impl Fn(&Message<'_>) -> Option<Vec<u8>>,
        code: Option<u8>,
    ) -> Severity {
        let mut answered = false;
        let findings =
            rehearse(case, &ExaminationTarget::default(), |now, bytes, pending: &mut ScriptedDatagrams| {
                let Some(bytes) = bytes else { return pending.push((0, first.to_vec())) };
                let received = Message::parse(bytes).unwrap();
                if !std::mem::replace(&mut answered, true) {
                    pending.extend(next(&received).map(|bytes| (now + 10, bytes)));
                }
            });
        let Some(code) = code else { return worst(&findings) };
        // A rehearsal has no processes: the end is added to the transcript of the same packets.
        let peer = "192.0.2.1:5683".parse().unwrap();
        let packet = |number, direction, bytes| Packet {
            number,
            at: std::time::Duration::from_millis(number.into()),
            lane: 0,
            peer,
            direction,
            bytes,
        };
        let mut transcript = Transcript::default();
        let request = packet(1, PacketDirection::Received, first.to_vec());
        transcript.add(request.clone());
        let mut outbox = DatagramSchedule::default();
        (case.react)(&ExaminationTarget::default(), &transcript, &request, &mut outbox);
        transcript.add(packet(2, PacketDirection::Sent, outbox.due.remove(0).bytes));
        transcript.exits.push(Exit { lane: 0, at: std::time::Duration::from_millis(3), code });
        worst(&case.findings(&ExaminationTarget::default(), &transcript))
    }

    fn block(num: u32, more: bool, szx: u8) -> Option<Block> {
        Block::new(num, more, szx)
    }

    #[test]
    fn a_client_must_not_take_success_for_the_first_block_as_success_for_the_body() {
        let first = || put(1, block(0, true, 6), &[b'x'; 1024]);
        let goes_on = |received: &Message<'_>| {
            assert_eq!((received.code, received.block1()), (Code::CHANGED, Ok(None)));
            Some(put(2, block(1, false, 6), b"rest"))
        };
        assert_eq!(judged(&CUT_SHORT, &first(), goes_on, None), Severity::Ok);
        assert_eq!(judged(&CUT_SHORT, &first(), |_| None, Some(1)), Severity::Ok);
        assert_eq!(judged(&CUT_SHORT, &first(), |_| None, Some(0)), Severity::Warning);
        assert_eq!(judged(&CUT_SHORT, &first(), |_| None, None), Severity::NotTested);
        assert_eq!(judged(&CUT_SHORT, &put(1, None, b"short"), |_| None, Some(0)), Severity::NotTested);
    }

    #[test]
    fn a_client_retries_with_the_block_size_of_a_4_13() {
        let first = || put(1, None, &[b'x'; 500]);
        let smaller = |received: &Message<'_>| {
            assert_eq!((received.code, received.size1()), (Code::REQUEST_ENTITY_TOO_LARGE, Some(64)));
            Some(put(2, block(0, true, 2), &[b'x'; 64]))
        };
        assert_eq!(judged(&TOO_LARGE, &first(), smaller, None), Severity::Ok);
        assert_eq!(judged(&TOO_LARGE, &first(), |_| None, Some(3)), Severity::Note);
        assert_eq!(judged(&TOO_LARGE, &first(), |_| None, Some(0)), Severity::Note);
        assert_eq!(judged(&TOO_LARGE, &put(1, None, b"short"), |_| None, Some(0)), Severity::NotTested);
    }

    #[test]
    fn a_client_may_accept_a_large_response_or_ask_for_blocks() {
        let asks = |received: &Message<'_>| {
            assert_eq!(received.payload().len(), LARGE);
            Some(get(2, block(0, false, 6)))
        };
        assert_eq!(judged(&LARGE_RESPONSE, &get(1, None), asks, None), Severity::Ok);
        let again = |_: &Message<'_>| Some(get(1, None));
        assert_eq!(judged(&LARGE_RESPONSE, &get(1, None), again, None), Severity::Note);
        assert_eq!(judged(&LARGE_RESPONSE, &get(1, None), |_| None, Some(0)), Severity::Ok);
        assert_eq!(judged(&LARGE_RESPONSE, &get(1, None), |_| None, Some(1)), Severity::Note);
        let first = get(1, block(0, false, 6));
        assert_eq!(judged(&LARGE_RESPONSE, &first, |_| None, Some(0)), Severity::NotTested);
    }
}
