//! The case on Message IDs and tokens.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;

use super::super::case::{Case, ExaminationTarget};
use super::super::copies::MessageCopies;
use super::super::finding::Finding;
use super::super::transcript::Transcript;
use super::response;

pub(super) const CASE: Case = Case {
    name: "identifiers",
    summary: "Message IDs and tokens of many requests, from several starts of the client",
    clause: "RFC 7252 §4.4",
    seconds: [12, 20],
    lanes: [2, 2],
    restarts: true,
    react: |_, _, packet, outbox| {
        if packet.is_request() {
            outbox.answer(packet, 0, response(packet));
        }
    },
    is_enough: |target, transcript| is_enough(target, transcript),
    judge: |_, transcript| judge(transcript),
    lacks: |_, _| None,
    ..super::CASE
};

/// The number of requests that are enough to reveal a pattern.
const WANTED: usize = 60;
/// The number of starts of the client that are enough to reveal how its first Message ID is chosen.
const STARTS: usize = 4;

fn is_enough(target: &ExaminationTarget, transcript: &Transcript) -> bool {
    let requests = transcript.received().count();
    // A command that makes requests without end is never started often enough.
    requests >= WANTED && (transcript.exits.len() >= STARTS || !target.has_command) || requests >= 20 * WANTED
}

fn judge(transcript: &Transcript) -> Vec<Finding> {
    let requests = transcript.requests();
    if requests.is_empty() {
        return vec![Finding::not_tested("no request came")];
    }
    vec![reuse(&requests), beginnings(&requests), tokens(&requests)]
}

/// Judges whether a Message ID was reused too soon.
fn reuse(requests: &[MessageCopies<'_>]) -> Finding {
    // Copies that differ in the last byte of the token alone are marked (draft-ietf-core-fasor-02 §4.5), not reused.
    let base = |bytes: &[u8]| {
        let length = usize::from(bytes.first().copied().unwrap_or(0) & 15);
        bytes.get(4..4 + length.saturating_sub(1)).unwrap_or_default().to_vec()
    };
    let reused = requests.iter().find_map(|copies| {
        let first = copies.first();
        let other = copies.packets.iter().find(|copy| base(&copy.bytes) != base(&first.bytes))?;
        Some([first.number, other.number])
    });
    match reused {
        Some(packets) => {
            Finding::fault("a Message ID is used for two requests within EXCHANGE_LIFETIME, 247 s")
                .seen_in(packets)
        }
        None => Finding::ok(format!("{} requests, each with its own Message ID", requests.len())),
    }
}

/// Judges whether the first Message ID of a client can be guessed.
fn beginnings(requests: &[MessageCopies<'_>]) -> Finding {
    let mut first: HashMap<(usize, SocketAddr), (u16, u32)> = HashMap::new();
    for copies in requests {
        let Some(message) = copies.message() else { continue };
        let packet = copies.first();
        // Each process has an address of its own, and only its first Message ID counts.
        first.entry((packet.lane, packet.peer)).or_insert((message.message_id, packet.number));
    }
    let packets = first.values().map(|(_, number)| *number).take(8).collect::<Vec<_>>();
    let ids: HashSet<u16> = first.values().map(|(id, _)| *id).collect();
    let mut listed: Vec<u16> = ids.iter().copied().collect();
    listed.sort_unstable();
    // After 65535 comes 0, so Message IDs lie on a circle. All are beside its widest gap, which begins at the highest.
    let next = listed.iter().cycle().skip(1);
    let gaps = listed.iter().zip(next).map(|(id, next)| (next.wrapping_sub(*id), *next, *id));
    let (_, low, high) = gaps.max().unwrap_or_default();
    let spread = high.wrapping_sub(low);
    let count = first.len();
    let finding = match count {
        0..3 => Finding::not_tested(format!(
            "{count} starts of the client are too few to show whether its first Message ID is random"
        )),
        // The chance that so many random numbers lie within 1 of 64 parts is below 1 in 500. Processes
        // that share one counter are at most as far apart as the number of their requests.
        _ if usize::from(spread) < 1_024.max(2 * requests.len()) => Finding::warning(format!(
            "the first Message IDs of {count} addresses are close together, between {low} and {high}"
        )),
        _ => Finding::ok(format!("the first Message IDs of {count} addresses are far apart")),
    };
    finding.seen_in(packets)
}

/// Judges whether tokens can be guessed.
fn tokens(requests: &[MessageCopies<'_>]) -> Finding {
    const CLAUSE: &str = "RFC 7252 §5.3.1";
    let packets: Vec<u32> = requests.iter().map(|copies| copies.first().number).take(6).collect();
    let all: Vec<(usize, SocketAddr, Vec<u8>)> = requests
        .iter()
        .filter_map(|copies| {
            let packet = copies.first();
            Some((packet.lane, packet.peer, copies.message()?.token.to_vec()))
        })
        .collect();
    let longest = all.iter().map(|(.., token)| token.len()).max().unwrap_or(0);
    if longest == 0 {
        return Finding::warning("tokens are empty: anybody who knows the address can forge a response")
            .by(CLAUSE)
            .seen_in(packets);
    }
    // Fewer steps may be small by chance.
    if all.len() < 8 {
        return Finding::not_tested(format!(
            "{} tokens of {longest} bytes are too few for a verdict",
            all.len()
        ))
        .by(CLAUSE);
    }
    // A counter may have its most or its least significant byte first.
    let steps = |is_reversed: bool| {
        let number = |token: &[u8]| {
            let mut bytes = token.to_vec();
            if is_reversed {
                bytes.reverse();
            }
            bytes.iter().take(8).fold(0u64, |number, byte| number << 8 | u64::from(*byte))
        };
        // Each process has a counter of its own, so steps are taken within one address.
        let mut last: HashMap<(usize, SocketAddr), u64> = HashMap::new();
        let mut steps = Vec::new();
        for (lane, peer, token) in &all {
            let number = number(token);
            if let Some(before) = last.insert((*lane, *peer), number) {
                steps.push(before.abs_diff(number));
            }
        }
        steps
    };
    // Random tokens of two bytes come this close in less than one of a hundred steps.
    let counts = |steps: Vec<u64>| {
        !steps.is_empty() && steps.iter().filter(|step| **step <= 256).count() * 10 >= steps.len() * 8
    };
    let distinct: HashSet<&[u8]> = all.iter().map(|(.., token)| &token[..]).collect();
    let sources: HashSet<(usize, SocketAddr)> = all.iter().map(|(lane, peer, _)| (*lane, *peer)).collect();
    // A token may be used again once its request is over (RFC 7252 §5.3.1), but it can then be guessed.
    let finding = if distinct.len() * 2 < all.len() {
        let (tokens, asked, sources) = (distinct.len(), all.len(), sources.len());
        Finding::warning(format!("{tokens} different tokens in {asked} requests from {sources} addresses"))
    } else if longest > 1 && (counts(steps(false)) || counts(steps(true))) {
        Finding::warning(format!("tokens of {longest} bytes count up: the next can be guessed"))
    } else if longest < 4 {
        Finding::note(format!("tokens have only {longest} bytes: 32 random bits are recommended"))
    } else {
        Finding::ok(format!("tokens of {longest} bytes: {} of them show no pattern", all.len()))
    };
    finding.by(CLAUSE).seen_in(packets)
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity;
    use super::super::super::packet::{Packet, PacketDirection, message};
    use super::super::super::rehearsal::{ScriptedDatagrams, client, rehearse, sound};
    use super::*;
    use coapace_proto::{Code, Kind, Options};
    use std::time::Duration;

    fn judged(peer: impl FnMut(u64, Option<&[u8]>, &mut ScriptedDatagrams)) -> Vec<Finding> {
        rehearse(&CASE, &ExaminationTarget::default(), peer)
    }

    fn asks(id: impl Fn(u16) -> u16, token: impl Fn(u16) -> Vec<u8>) -> Vec<Finding> {
        judged(|_, bytes, pending| {
            if bytes.is_none() {
                let options = Options::new();
                let request = |n| message(Kind::Confirmable, Code::GET, id(n), &token(n), &options, &[]);
                pending.extend((0..WANTED as u16).map(|n| (u64::from(n) * 10, request(n))));
            }
        })
    }

    #[test]
    fn random_tokens_and_new_message_ids_pass() {
        let findings = judged(client(80, |_, copy| 2_000 << copy, sound));
        assert_eq!(findings[0].severity, Severity::Ok);
        assert_eq!(findings[2].severity, Severity::Ok, "{findings:?}");
        // One process does not show where others begin.
        assert_eq!(findings[1].severity, Severity::NotTested);
    }

    #[test]
    fn a_message_id_that_is_reused_too_early_is_a_fault() {
        let findings = asks(|n| n % 16, |n| vec![1, n as u8, 3, 4]);
        assert_eq!(findings[0].severity, Severity::Fault, "{findings:?}");
    }

    #[test]
    fn empty_equal_and_counting_tokens_are_warnings() {
        for token in [|_| Vec::new(), |_| vec![7; 4], |n: u16| vec![0, 0, (n >> 8) as u8, n as u8]] {
            let findings = asks(|n| n, token);
            assert_eq!(findings[2].severity, Severity::Warning, "{findings:?}");
        }
    }

    #[test]
    fn message_ids_that_begin_close_together_across_the_wrap_are_a_warning() {
        let of = |ids: [u16; 3]| {
            let mut transcript = Transcript::default();
            for (id, number) in ids.into_iter().zip(1u8..) {
                let bytes = message(Kind::Confirmable, Code::GET, id, &[number; 4], &Options::new(), &[]);
                let (at, direction) = (Duration::from_secs(number.into()), PacketDirection::Received);
                let peer = SocketAddr::from(([192, 0, 2, number], 40_000));
                transcript.add(Packet { number: number.into(), at, lane: 0, peer, direction, bytes });
            }
            beginnings(&transcript.requests())
        };
        let close = of([65_530, 5, 20]);
        assert_eq!(close.severity, Severity::Warning, "{close:?}");
        assert!(close.measured.ends_with("between 65530 and 20"), "{close:?}");
        assert_eq!(of([20, 65_530, 30_000]).severity, Severity::Ok);
        assert_eq!(of([7, 7, 7]).severity, Severity::Warning);
    }
}
