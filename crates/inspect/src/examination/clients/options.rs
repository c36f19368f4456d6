//! Cases on responses with options that a client does not know.

use std::time::Duration;

use coapace_proto::block::Block;
use coapace_proto::{Kind, Options};

use super::super::case::{Case, DatagramSchedule, ExaminationTarget};
use super::super::finding::Finding;
use super::super::packet::{CRITICAL_OPTION, ELECTIVE_OPTION, Packet, empty};
use super::super::transcript::Transcript;
use super::{PAYLOAD, confirmable_response, content, has_lasted, is_confirmable, response};

/// The case on a critical option in a piggybacked response. The first request is answered with the first block of a
/// body and a critical option. A client silently ignores an acknowledgement that it rejects (RFC 7252 §4.2), so no
/// message shows the rejection. But a client that accepts the block asks for the next one. The second request is
/// answered with a first block without the option, which shows whether the client asks for further blocks at all.
pub(super) const PIGGYBACKED: Case = Case {
    name: "critical-piggybacked",
    summary: "the first block of a piggybacked response with a critical option that nobody knows",
    clause: "RFC 7252 §5.4.1",
    seconds: [8, 8],
    restarts: true,
    react: react_with_block,
    is_enough: |_, transcript| {
        !follow_ups(transcript, PROBE).is_empty()
            || !follow_ups(transcript, CONTROL).is_empty()
            || has_lasted(transcript, 6)
    },
    judge: judge_blocks,
    ..super::CASE
};

pub(super) const CRITICAL: Case = Case {
    name: "critical-separate",
    summary: "a confirmable response with a critical option that nobody knows",
    clause: "RFC 7252 §5.4.1, §4.2",
    react: |target, transcript, packet, outbox| {
        react_separately(target, transcript, packet, outbox, CRITICAL_OPTION);
    },
    judge: |_, transcript| judge_separate(transcript, Kind::Reset),
    ..SEPARATE
};

pub(super) const ELECTIVE: Case = Case {
    name: "elective-separate",
    summary: "a confirmable response with an elective option that nobody knows",
    clause: "RFC 7252 §5.4.1",
    react: |target, transcript, packet, outbox| {
        react_separately(target, transcript, packet, outbox, ELECTIVE_OPTION);
    },
    judge: |_, transcript| judge_separate(transcript, Kind::Acknowledgement),
    ..SEPARATE
};

/// The size exponent of the block with the option. A request for a further block has the exponent of the previous block.
const PROBE: u8 = 0;
/// The size exponent of the block without the option.
const CONTROL: u8 = 1;

/// Returns the block that a request asks for; `None` if it is the first one, or without Block2.
fn further_block(packet: &Packet) -> Option<Block> {
    let message = packet.message().filter(|_| packet.is_request())?;
    message.block2().ok().flatten().filter(|block| block.num() > 0)
}

/// Returns the packet numbers of the requests for further blocks of this size.
fn follow_ups(transcript: &Transcript, szx: u8) -> Vec<u32> {
    let of_size = |packet: &&Packet| further_block(packet).is_some_and(|block| block.szx() == szx);
    transcript.received().filter(of_size).map(|packet| packet.number).collect()
}

/// Returns the requests for the whole resource, without their copies.
fn wholes(transcript: &Transcript) -> impl Iterator<Item = &Packet> {
    let requests = transcript.requests().into_iter().map(|request| request.first());
    requests.filter(|packet| is_confirmable(packet) && further_block(packet).is_none())
}

fn react_with_block(
    _: &ExaminationTarget,
    transcript: &Transcript,
    packet: &Packet,
    outbox: &mut DatagramSchedule,
) {
    if !packet.is_request() {
        return;
    }
    let first_block = |szx: u8| {
        let options =
            Block::new(0, true, szx).map_or_else(Options::new, |block| Options::new().block2(block));
        // The payload has 8 bytes, and a block 16 · 2^szx.
        (options, PAYLOAD.repeat(2 << szx))
    };
    let (options, payload) = match (further_block(packet), place(transcript, packet)) {
        // The block that is asked for becomes the last one, so that the transfer ends.
        (Some(block), _) => {
            let last = Block::new(block.num(), false, block.szx());
            (last.map_or_else(Options::new, |block| Options::new().block2(block)), PAYLOAD.to_vec())
        }
        (None, Some(0)) => {
            let (options, payload) = first_block(PROBE);
            (options.with(CRITICAL_OPTION, b"?"), payload)
        }
        (None, Some(1)) => first_block(CONTROL),
        // Copies are among these: a client that ignores the block sends its request again, and is answered rightly.
        _ => (Options::new(), PAYLOAD.to_vec()),
    };
    outbox.answer(packet, 0, content(packet, &options, &payload));
}

/// Returns the number of a request among the requests for the whole resource; `None` for a copy.
fn place(transcript: &Transcript, packet: &Packet) -> Option<usize> {
    wholes(transcript).position(|request| request.number == packet.number)
}

fn judge_blocks(target: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    let requests = transcript.requests();
    // The first confirmable request got the block with the option.
    let probe = requests.iter().find(|request| is_confirmable(request.first()));
    let Some(probe) = probe else { return Vec::new() };
    let answer = transcript.answers(probe).next().map(|packet| packet.number);
    let evidence = [probe.first().number].into_iter().chain(answer);
    let (taken, control) = (follow_ups(transcript, PROBE), follow_ups(transcript, CONTROL));
    // A request for the block after the one with the option is a fault, whatever else was sent, so it is looked for first.
    let finding = if let Some(next) = taken.first() {
        Finding::fault("the client asks for the next block of a response that it has to reject")
            .seen_in(evidence.chain([*next]))
    } else if let [_, copy, ..] = probe.packets[..] {
        let after = probe.intervals()[0];
        Finding::ok(format!("the response is ignored: the request is sent again after {after:.2} s"))
            .seen_in(evidence.chain([copy.number]))
    } else if let Some(next) = control.first() {
        Finding::ok("the client asks for the next block only of the response without the option")
            .seen_in(evidence.chain([*next]))
    } else if wholes(transcript).nth(1).is_some() {
        let text =
            "the client asks for no further blocks at all, so nothing shows whether it rejects the option";
        Finding::not_tested(text).seen_in(evidence)
    } else if target.has_command && transcript.exit_after(probe.first().lane, probe.first().at).is_none() {
        Finding::ok("the client goes on waiting for a response").seen_in(evidence)
    } else {
        let text = "no second request came, so nothing shows whether the client asks for further blocks";
        Finding::not_tested(text).seen_in(evidence)
    };
    vec![finding]
}

/// The common part of two cases: the first request is acknowledged and answered separately, all others are answered at
/// once.
const SEPARATE: Case = Case {
    seconds: [4, 4],
    is_enough: |_, transcript| {
        let sent = transcript.sent().find(|packet| is_confirmable(packet)).map(|packet| packet.at);
        sent.is_some_and(|at| transcript.until > at + Duration::from_millis(700))
    },
    ..super::CASE
};

fn react_separately(
    target: &ExaminationTarget,
    transcript: &Transcript,
    packet: &Packet,
    outbox: &mut DatagramSchedule,
    option: u16,
) {
    let Some(received) = packet.message().filter(|_| packet.is_request()) else { return };
    let is_first = place(transcript, packet) == Some(0);
    if is_first {
        let options = Options::new().with(option, b"?");
        outbox.answer(packet, 0, empty(Kind::Acknowledgement, received.message_id));
        outbox.answer(packet, 200, confirmable_response(packet, target.id(1), &options));
    } else if wholes(transcript).next().is_none_or(|first| first.bytes != packet.bytes) {
        outbox.answer(packet, 0, response(packet));
    }
}

/// Judges the client's reply to the separate response. Its type must be `wanted`.
fn judge_separate(transcript: &Transcript, wanted: Kind) -> Vec<Finding> {
    let Some(response) = transcript.sent().find(|packet| is_confirmable(packet)) else {
        return vec![Finding::not_tested("the case ended before the response was sent")];
    };
    let id = response.message().map(|message| message.message_id).unwrap_or_default();
    let word = |kind| if kind == Kind::Reset { "rejected with a Reset" } else { "acknowledged" };
    let reply = [Kind::Acknowledgement, Kind::Reset].into_iter().find_map(|kind| {
        let packet = transcript.received().find(|packet| packet.is_answer(kind, id))?;
        Some((kind, packet.number))
    });
    let has_to = word(wanted);
    vec![match reply {
        Some((kind, number)) if kind == wanted => {
            Finding::ok(format!("the response is {has_to}")).seen_in([response.number, number])
        }
        Some((kind, number)) => {
            let text = format!("the response is {}; it has to be {has_to}", word(kind));
            Finding::fault(text).seen_in([response.number, number])
        }
        None => Finding::fault(format!("the response is ignored; it has to be {has_to}"))
            .seen_in([response.number]),
    }]
}

#[cfg(test)]
mod tests {
    use coapace_proto::{Code, Message};

    use super::super::super::finding::Severity;
    use super::super::super::packet::message;
    use super::super::super::rehearsal::{ScriptedDatagrams, client, rehearse, request, sound, worst};
    use super::*;

    fn timeout(_: u16, copy: u32) -> u64 {
        2_300 << copy
    }

    fn is_unknown(received: &Message<'_>) -> bool {
        received.code.is_response() && received.value(CRITICAL_OPTION).is_some()
    }

    /// Sends a request for the block after one that is not the last.
    fn ask_for_next(now: u64, received: &Message<'_>, pending: &mut ScriptedDatagrams) {
        let Some(block) = received.block2().unwrap().filter(|block| block.more()) else { return };
        let next = Options::new().uri_path("examined").block2(Block::new(1, false, block.szx()).unwrap());
        pending.push((now, message(Kind::Confirmable, Code::GET, 5_000, b"next", &next, &[])));
    }

    #[test]
    fn a_client_that_rejects_only_unknown_critical_options_passes() {
        for case in [PIGGYBACKED, CRITICAL, ELECTIVE] {
            let findings = rehearse(&case, &ExaminationTarget::default(), client(2, timeout, sound));
            assert_eq!(worst(&findings), Severity::Ok, "{}: {findings:?}", case.name);
            assert!(findings[0].packets.len() > 1);
        }
    }

    #[test]
    fn a_client_that_gives_up_its_request_passes_only_if_it_also_asks_for_allowed_blocks() {
        for asks in [true, false] {
            let quick = client(2, timeout, |now, received, pending: &mut ScriptedDatagrams| {
                if is_unknown(received) {
                    // It goes on to its next request.
                    pending.clear();
                    pending.push((now + 10, request(1)));
                    return true;
                }
                if asks {
                    ask_for_next(now, received, pending);
                }
                false
            });
            let findings = rehearse(&PIGGYBACKED, &ExaminationTarget::default(), quick);
            let wanted = if asks { Severity::Ok } else { Severity::NotTested };
            assert_eq!(worst(&findings), wanted, "{findings:?}");
        }
    }

    #[test]
    fn a_client_that_keeps_waiting_passes_only_if_its_process_can_be_watched() {
        for has_command in [true, false] {
            let patient = client(1, timeout, |_, _, pending: &mut ScriptedDatagrams| {
                pending.clear();
                true
            });
            let target = ExaminationTarget { has_command, ..ExaminationTarget::default() };
            let findings = rehearse(&PIGGYBACKED, &target, patient);
            let wanted = if has_command { Severity::Ok } else { Severity::NotTested };
            assert_eq!(worst(&findings), wanted, "{findings:?}");
        }
    }

    #[test]
    fn a_client_that_asks_for_the_next_block_of_a_response_it_must_reject_fails() {
        let credulous = client(2, timeout, |now, received, pending: &mut ScriptedDatagrams| {
            pending.clear();
            ask_for_next(now, received, pending);
            true
        });
        let findings = rehearse(&PIGGYBACKED, &ExaminationTarget::default(), credulous);
        assert_eq!(worst(&findings), Severity::Fault, "{findings:?}");
    }

    #[test]
    fn a_client_that_ignores_a_separate_response_with_an_unknown_critical_option_fails() {
        for (case, wrong) in [(CRITICAL, Kind::Acknowledgement), (ELECTIVE, Kind::Reset)] {
            for is_silent in [true, false] {
                let broken = client(1, timeout, |now, received, pending: &mut ScriptedDatagrams| {
                    let is_meant = received.kind == Kind::Confirmable;
                    if is_meant && !is_silent {
                        pending.push((now, empty(wrong, received.message_id)));
                    }
                    is_meant
                });
                let findings = rehearse(&case, &ExaminationTarget::default(), broken);
                assert_eq!(worst(&findings), Severity::Fault, "{}: {findings:?}", case.name);
            }
        }
    }
}
