//! Datagrams that are no messages, or that a server has no use for.

use coapace_proto::{Code, Kind};

use super::super::case::{Case, Outbox, Target};
use super::super::finding::Finding;
use super::super::packet::Packet;
use super::super::transcript::Transcript;
use super::{request, response, sent};

pub(super) const CASE: Case = Case {
    name: "malformed",
    summary: "datagrams that are no messages, or no requests",
    clause: "RFC 7252 §3, §4.2, §4.3",
    seconds: [8, 8],
    begin,
    react: |_, _, _, _| {},
    judge,
    ..super::CASE
};

/// What RFC 7252 wants for a datagram.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// It has to be ignored.
    Silence,
    /// It has to be rejected, with a Reset.
    Reset,
    /// It is rejected, with a Reset or silently.
    Either,
}

/// A datagram: its name, what is wanted, and its bytes. The third and fourth are replaced by the Message ID.
struct Datagram(&'static str, Wanted, &'static [u8]);

const DATAGRAMS: &[Datagram] = &[
    Datagram("version 0", Wanted::Silence, b"\x00\x01\0\0"),
    Datagram("version 2", Wanted::Silence, b"\x80\x01\0\0"),
    Datagram("version 3", Wanted::Silence, b"\xc0\x01\0\0"),
    Datagram("token length 15", Wanted::Reset, b"\x4f\x01\0\0aaaaaaaaaaaaaaa"),
    Datagram("a token that is cut off", Wanted::Reset, b"\x44\x01\0\0ab"),
    Datagram("a payload marker without payload", Wanted::Reset, b"\x40\x01\0\0\xff"),
    Datagram("option delta 15", Wanted::Reset, b"\x40\x01\0\0\xf0"),
    Datagram("option length 15", Wanted::Reset, b"\x40\x01\0\0\x0f"),
    Datagram("an option that is cut off", Wanted::Reset, b"\x40\x01\0\0\xb5ab"),
    Datagram("an option extension that is cut off", Wanted::Reset, b"\x40\x01\0\0\xe0\x01"),
    Datagram("an empty message with a token", Wanted::Reset, b"\x41\x00\0\0a"),
    Datagram("an empty message with bytes behind it", Wanted::Reset, b"\x40\x00\0\0\xffab"),
    Datagram("code 1.00, of a reserved class", Wanted::Reset, b"\x40\x20\0\0"),
    Datagram("code 7.01, of a reserved class", Wanted::Reset, b"\x40\xe1\0\0"),
    Datagram("a response that nobody asked for", Wanted::Reset, b"\x44\x45\0\0none"),
    Datagram("an empty non-confirmable message", Wanted::Either, b"\x50\x00\0\0"),
    Datagram("a non-confirmable message with token length 15", Wanted::Either, b"\x5f\x01\0\0"),
    Datagram("an acknowledgement of nothing", Wanted::Silence, b"\x60\x00\0\0"),
    Datagram("a Reset of nothing", Wanted::Silence, b"\x70\x00\0\0"),
    Datagram("an acknowledgement with a request", Wanted::Silence, b"\x60\x01\0\0"),
    Datagram("a Reset with a token", Wanted::Silence, b"\x71\x00\0\0a"),
];

/// Datagrams that are too short for a header.
const STUBS: [&[u8]; 4] = [b"", b"@", b"@\x01", b"@\x01\x07"];

/// The number of the request that shows whether the server still answers.
const ALIVE: u16 = 800;
/// The number of the first datagram.
const FIRST: u16 = 100;

fn begin(target: &Target, outbox: &mut Outbox) {
    for (n, Datagram(_, _, bytes)) in (FIRST..).zip(DATAGRAMS) {
        let mut bytes = bytes.to_vec();
        bytes[2..4].copy_from_slice(&target.id(n).to_be_bytes());
        outbox.send(150 * u64::from(n - FIRST), bytes);
    }
    for (place, stub) in STUBS.iter().enumerate() {
        outbox.send(3_500 + 100 * place as u64, stub.to_vec());
    }
    // A lost datagram must not look like a crash.
    let alive = request(target, Kind::Confirmable, Code::GET, ALIVE, &target.resource);
    for after in [4_500, 6_500] {
        outbox.send(after, alive.clone());
    }
}

fn judge(target: &Target, transcript: &Transcript) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut ignored = Vec::new();
    let (mut rejected, mut right) = (0, Vec::new());
    for (n, Datagram(name, wanted, _)) in (FIRST..).zip(DATAGRAMS) {
        let id = target.id(n).to_be_bytes();
        let answers: Vec<&Packet> =
            transcript.received().filter(|packet| packet.bytes.get(2..4) == Some(&id[..])).collect();
        let numbers: Vec<u32> = sent(target, transcript, n)
            .into_iter()
            .chain(answers.iter().map(|packet| packet.number))
            .collect();
        let is_reset = |packet: &&Packet| packet.bytes.first().is_some_and(|first| first >> 4 & 3 == 3);
        let other = answers.iter().copied().find(|packet| !is_reset(packet));
        match (other, wanted) {
            (Some(other), _) => {
                let code = other.message().map_or(Code::EMPTY, |message| message.code);
                let told =
                    if code == Code::EMPTY { "an acknowledgement".to_owned() } else { code.to_string() };
                let text = format!("{told} to {name}");
                let finding = match code.is_success() || code == Code::EMPTY {
                    true => Finding::fault(text),
                    false => Finding::warning(format!("{text}; it is to be rejected with a Reset")),
                };
                findings.push(finding.seen_in(numbers));
            }
            (None, Wanted::Silence) if !answers.is_empty() => {
                findings.push(
                    Finding::fault(format!("{name} is answered; it has to be ignored")).seen_in(numbers),
                );
            }
            (None, Wanted::Reset) if answers.is_empty() => ignored.push((*name, numbers)),
            (None, _) => {
                rejected += usize::from(!answers.is_empty());
                right.extend(numbers);
            }
        }
    }
    if !ignored.is_empty() {
        let names = ignored.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        let packets = ignored.into_iter().flat_map(|(_, numbers)| numbers);
        findings.push(
            Finding::note(format!("ignored instead of rejected with a Reset: {names}")).seen_in(packets),
        );
    }
    let (input, output) = transcript
        .packets
        .iter()
        .filter(|packet| packet.bytes.get(2..4) != Some(&target.id(ALIVE).to_be_bytes()[..]))
        .fold((0, 0), |(input, output), packet| match packet.is_received() {
            true => (input, output + packet.bytes.len()),
            false => (input + packet.bytes.len(), output),
        });
    if response(target, transcript, ALIVE).is_none() {
        let text = "the server does not answer any more";
        findings.push(Finding::fault(text).seen_in(sent(target, transcript, ALIVE)));
    } else if output > input {
        let text = format!("{input} bytes of malformed datagrams bring {output} bytes of answers");
        findings.push(Finding::warning(text).by("RFC 7252 §11.3"));
    }
    if !right.is_empty() {
        let of = DATAGRAMS.len();
        let text = format!("{rejected} of {of} rejected with a Reset, and the server still answers");
        findings.push(Finding::ok(text).seen_in(right));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity;
    use super::super::super::packet::{empty, message};
    use super::super::super::rehearsal::{Pending, rehearse, worst};
    use super::*;
    use coapace_proto::{Malformed, Message, Options};

    fn judged(break_it: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Vec<Finding> {
        let server = |now, bytes: Option<&[u8]>, pending: &mut Pending| {
            let Some(bytes) = bytes else { return };
            if let Some(answer) = break_it(bytes) {
                pending.push((now, answer));
                return;
            }
            match Message::parse(bytes) {
                Ok(received) if received.code == Code::GET && received.kind == Kind::Confirmable => {
                    let (id, token, options) = (received.message_id, received.token, Options::new());
                    let kind = Kind::Acknowledgement;
                    pending.push((now, message(kind, Code::CONTENT, id, &token, &options, b"")));
                }
                Ok(Message { kind: Kind::Confirmable, message_id, .. })
                | Err(Malformed::Format { kind: Kind::Confirmable, message_id }) => {
                    pending.push((now, empty(Kind::Reset, message_id)));
                }
                _ => {}
            }
        };
        rehearse(&CASE, &Target { first_message_id: 0x4100, ..Target::default() }, server)
    }

    #[test]
    fn a_server_that_rejects_and_ignores_is_right() {
        let findings = judged(|_| None);
        assert_eq!(worst(&findings), Severity::Ok, "{findings:?}");
        assert_eq!(findings.len(), 1);
    }

    #[test]
    fn a_server_that_answers_other_versions_is_at_fault() {
        let findings = judged(|bytes| {
            (bytes.first() == Some(&0x80))
                .then(|| empty(Kind::Reset, u16::from_be_bytes([bytes[2], bytes[3]])))
        });
        assert_eq!(findings[0].severity, Severity::Fault, "{findings:?}");
    }

    #[test]
    fn a_server_that_processes_what_is_malformed_is_at_fault() {
        let findings = judged(|bytes| {
            let id = u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]);
            (bytes.last() == Some(&0xff))
                .then(|| message(Kind::Acknowledgement, Code::CONTENT, id, b"", &Options::new(), b""))
        });
        assert_eq!(worst(&findings), Severity::Fault, "{findings:?}");
    }

    #[test]
    fn a_server_that_dies_is_at_fault_and_a_silent_one_is_noted() {
        let target = Target::default();
        let findings = rehearse(&CASE, &target, |_, _, _| {});
        assert_eq!(worst(&findings), Severity::Fault, "{findings:?}");
        assert_eq!(findings[0].severity, Severity::Note, "{findings:?}");
    }
}
