//! The case on bodies with Q-Block2.

use coap_numbers::option;
use coapace_proto::block::{Block, MAX_PAYLOADS};
use coapace_proto::{Code, Kind, Options};

use super::super::case::{Case, ExaminationTarget};
use super::super::finding::Finding;
use super::super::packet::Packet;
use super::super::transcript::Transcript;
use super::{acknowledge, needs_large, request, sent};

pub(super) const CASE: Case = Case {
    name: "q-block",
    summary: "a large representation with Q-Block2: a set of blocks, and two of them again",
    clause: "RFC 9177 §4.4",
    seconds: [4, 4],
    begin: |target, outbox| {
        let Some(large) = &target.large else { return };
        outbox.send(0, request(target, Kind::NonConfirmable, Code::GET, 1, &whole(large)));
        let [one, other] = AGAIN.map(|num| number(num, false));
        let two = large.clone().with_uint(option::Q_BLOCK2, one).with_uint(option::Q_BLOCK2, other);
        // Sooner than NON_TIMEOUT after the set, so that the server does not go on by itself.
        outbox.send(1_500, request(target, Kind::NonConfirmable, Code::GET, 2, &two));
    },
    react: |target, _, packet, outbox| {
        acknowledge(packet, outbox);
        // A stranger repeats its request with the value.
        if let (Some(large), Some(message)) = (&target.large, packet.message())
            && packet.is_response(&target.token(1))
            && let Some(echo) = message.value(option::ECHO)
        {
            let repeated = whole(large).with(option::ECHO, echo);
            outbox.send(0, request(target, Kind::NonConfirmable, Code::GET, REPEATED, &repeated));
        }
    },
    is_enough: |target, _| target.large.is_none(),
    lacks: needs_large,
    judge,
    ..super::CASE
};

/// The size exponent of blocks of 64 bytes.
const SMALL: u8 = 2;

/// The blocks that are requested again.
const AGAIN: [u32; 2] = [1, 3];

/// The number of the request that repeats the first one with the server's Echo value.
const REPEATED: u16 = 3;

fn number(num: u32, more: bool) -> u64 {
    Block::new(num, more, SMALL).map_or(0, Block::encode).into()
}

/// Returns the options of a request for all blocks of the large resource.
fn whole(large: &Options) -> Options {
    large.clone().with_uint(option::Q_BLOCK2, number(0, true))
}

fn judge(target: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    let answers = |n| -> Vec<&Packet> {
        transcript.received().filter(|packet| packet.is_response(&target.token(n))).collect()
    };
    let numbers =
        |n| sent(target, transcript, n).into_iter().chain(answers(n).into_iter().map(|packet| packet.number));
    // A server that first asks for an Echo value sends the body to the repeated request (RFC 9175 §2.4).
    let asks_echo =
        answers(1).iter().filter_map(|packet| packet.message()).any(|it| it.value(option::ECHO).is_some());
    let opening = if asks_echo { REPEATED } else { 1 };
    let first = answers(opening);
    let Some(message) = first.first().and_then(|packet| packet.message()) else {
        return vec![
            Finding::ok("Q-Block2 is not supported: the request is not answered").seen_in(numbers(opening)),
        ];
    };
    if message.code == Code::BAD_OPTION
        || message.code.is_success() && message.value(option::Q_BLOCK2).is_none()
    {
        return vec![
            match message.code {
                Code::BAD_OPTION => Finding::ok("Q-Block2 is not supported: 4.02"),
                // The client would take what it gets for the whole body.
                code => Finding::fault(format!(
                    "the server answers {code} as if Q-Block2 were missing, although this option is critical"
                ))
                .by("RFC 7252 §5.4.1"),
            }
            .seen_in(numbers(opening)),
        ];
    }
    let blocks = |n| -> Vec<u32> {
        let block = |packet: &&Packet| packet.message()?.q_block2().ok().flatten().map(Block::num);
        answers(n).iter().filter_map(block).collect()
    };
    vec![
        judge_set(&blocks(opening)).seen_in(numbers(opening)),
        judge_again(&blocks(2)).by("RFC 9177 §4.4").seen_in(numbers(2)),
    ]
}

/// Judges the numbers of the blocks that answer the request for the whole body.
fn judge_set(blocks: &[u32]) -> Finding {
    let mut sorted = blocks.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let is_whole = sorted.iter().zip(0..).all(|(&block, place)| block == place);
    let count = blocks.len();
    if !is_whole {
        Finding::fault(format!("blocks {blocks:?} come, although all from 0 on were requested"))
    } else if sorted.len() < count {
        Finding::warning(format!("{} of {count} blocks come twice", count - sorted.len()))
    } else if count > MAX_PAYLOADS as usize {
        Finding::fault(format!("a set of {count} blocks; the limit is {MAX_PAYLOADS} (MAX_PAYLOADS)"))
            .by("RFC 9177 §7.2")
    } else if count == 1 {
        Finding::note("the server sends one block, although all were requested")
    } else {
        Finding::ok(format!("the server sends a set of {count} blocks"))
    }
}

/// Judges the numbers of the blocks that answer the request for the blocks [`AGAIN`].
fn judge_again(blocks: &[u32]) -> Finding {
    let lacks = AGAIN.iter().any(|num| !blocks.contains(num));
    let has_others = blocks.iter().any(|num| !AGAIN.contains(num));
    if has_others {
        Finding::fault(format!("blocks {blocks:?} come, although {AGAIN:?} were requested again"))
    } else if lacks {
        Finding::warning(format!("the blocks {AGAIN:?} were requested again, and only {blocks:?} come"))
    } else {
        Finding::ok(format!("the blocks {AGAIN:?} come again when they are asked for"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity;
    use super::super::super::packet::message;
    use super::super::super::rehearsal::{ScriptedDatagrams, rehearse, worst};
    use super::*;
    use coapace_proto::Message;

    /// Returns the worst severity of a server that answers a request for some blocks with the blocks that `blocks` returns
    /// for them.
    fn judged(blocks: impl Fn(&[u32]) -> Vec<u32>) -> Severity {
        let target = ExaminationTarget {
            large: Some(Options::new().uri_path("large")),
            ..ExaminationTarget::default()
        };
        let server = |now, question: Option<&[u8]>, pending: &mut ScriptedDatagrams| {
            let Some(received) = question.and_then(|question| Message::parse(question).ok()) else { return };
            let asked: Vec<u32> = Options::of(&received)
                .iter()
                .filter(|&(number, _)| number == option::Q_BLOCK2)
                .map(|(_, value)| value.iter().fold(0, |sum, &byte| sum << 8 | u32::from(byte)) >> 4)
                .collect();
            for (n, num) in blocks(&asked).into_iter().enumerate() {
                let options = Options::new().q_block2(Block::new(num, true, SMALL).unwrap());
                let answer = message(
                    Kind::NonConfirmable,
                    Code::CONTENT,
                    now as u16 + n as u16,
                    &received.token,
                    &options,
                    &[b'x'; 64],
                );
                pending.push((now + n as u64, answer));
            }
        };
        worst(&rehearse(&CASE, &target, server))
    }

    #[test]
    fn a_set_of_q_block2_has_at_most_ten_blocks_and_missing_ones_are_sent_again() {
        let set = |count: u32| {
            move |asked: &[u32]| if asked == [0] { (0..count).collect() } else { asked.to_vec() }
        };
        assert_eq!(judged(set(10)), Severity::Ok);
        assert_eq!(judged(set(3)), Severity::Ok);
        assert_eq!(judged(set(1)), Severity::Note);
        assert_eq!(judged(set(11)), Severity::Fault);
        assert_eq!(
            judged(|asked| if asked == [0] { vec![0, 2, 3] } else { asked.to_vec() }),
            Severity::Fault
        );
        assert_eq!(
            judged(|asked| if asked == [0] { vec![0, 1, 1] } else { asked.to_vec() }),
            Severity::Warning
        );
        assert_eq!(judged(|asked| if asked == [0] { vec![0, 1] } else { vec![1] }), Severity::Warning);
        assert_eq!(judged(|asked| if asked == [0] { vec![0, 1] } else { vec![1, 2, 3] }), Severity::Fault);
    }

    #[test]
    fn a_server_without_q_block_rejects_or_ignores_it() {
        let answered = |code: Option<Code>| {
            let target = ExaminationTarget {
                large: Some(Options::new().uri_path("large")),
                ..ExaminationTarget::default()
            };
            worst(&rehearse(&CASE, &target, |now, question, pending: &mut ScriptedDatagrams| {
                let received = question.and_then(|question| Message::parse(question).ok());
                if let (Some(received), Some(code)) = (received, code) {
                    let (kind, options) = (Kind::NonConfirmable, Options::new());
                    pending.push((now, message(kind, code, now as u16, &received.token, &options, b"x")));
                }
            }))
        };
        assert_eq!(answered(None), Severity::Ok);
        assert_eq!(answered(Some(Code::BAD_OPTION)), Severity::Ok);
        assert_eq!(answered(Some(Code::CONTENT)), Severity::Fault);
        assert_eq!(worst(&rehearse(&CASE, &ExaminationTarget::default(), |_, _, _| {})), Severity::NotTested);
    }
}
