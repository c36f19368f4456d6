//! The case on malformed and unexpected datagrams.

use std::fmt;

use coapace_proto::{Code, Kind};

use super::super::case::{Case, DatagramSchedule, ExaminationTarget};
use super::super::finding::Finding;
use super::super::packet::Packet;
use super::super::transcript::Transcript;
use super::{request, response, sent};

pub(super) const CASE: Case = Case {
    name: "malformed",
    summary: "datagrams that are not CoAP messages, or not requests",
    clause: "RFC 7252 §3, §4.2, §4.3",
    seconds: [8, 8],
    begin,
    react: |_, _, _, _| {},
    judge,
    ..super::CASE
};

/// The treatment that RFC 7252 requires for a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// The datagram must be ignored.
    Silence,
    /// The datagram must be rejected with a Reset.
    Reset,
    /// The datagram must be rejected, with a Reset or silently.
    Either,
}

/// A test datagram: its name, the required treatment, and its bytes. The third and fourth byte are replaced by the Message ID.
struct MalformedDatagram(&'static str, Wanted, &'static [u8]);

const DATAGRAMS: &[MalformedDatagram] = &[
    MalformedDatagram("version 0", Wanted::Silence, b"\x00\x01\0\0"),
    MalformedDatagram("version 2", Wanted::Silence, b"\x80\x01\0\0"),
    MalformedDatagram("version 3", Wanted::Silence, b"\xc0\x01\0\0"),
    MalformedDatagram("token length 15", Wanted::Reset, b"\x4f\x01\0\0aaaaaaaaaaaaaaa"),
    MalformedDatagram("a token that is cut off", Wanted::Reset, b"\x44\x01\0\0ab"),
    MalformedDatagram("a payload marker without payload", Wanted::Reset, b"\x40\x01\0\0\xff"),
    MalformedDatagram("option delta 15", Wanted::Reset, b"\x40\x01\0\0\xf0"),
    MalformedDatagram("option length 15", Wanted::Reset, b"\x40\x01\0\0\x0f"),
    MalformedDatagram("an option that is cut off", Wanted::Reset, b"\x40\x01\0\0\xb5ab"),
    MalformedDatagram("an option extension that is cut off", Wanted::Reset, b"\x40\x01\0\0\xe0\x01"),
    MalformedDatagram("an empty message with a token", Wanted::Reset, b"\x41\x00\0\0a"),
    MalformedDatagram("an empty message with bytes behind it", Wanted::Reset, b"\x40\x00\0\0\xffab"),
    MalformedDatagram("code 1.00, of a reserved class", Wanted::Reset, b"\x40\x20\0\0"),
    MalformedDatagram("code 7.01, of a reserved class", Wanted::Reset, b"\x40\xe1\0\0"),
    MalformedDatagram("a response that nobody asked for", Wanted::Reset, b"\x44\x45\0\0none"),
    MalformedDatagram("an empty non-confirmable message", Wanted::Either, b"\x50\x00\0\0"),
    MalformedDatagram("a non-confirmable message with token length 15", Wanted::Either, b"\x5f\x01\0\0"),
    MalformedDatagram("an acknowledgement of nothing", Wanted::Silence, b"\x60\x00\0\0"),
    MalformedDatagram("a Reset of nothing", Wanted::Silence, b"\x70\x00\0\0"),
    MalformedDatagram("an acknowledgement with a request", Wanted::Silence, b"\x60\x01\0\0"),
    MalformedDatagram("a Reset with a token", Wanted::Silence, b"\x71\x00\0\0a"),
];

/// Datagrams that are too short for a header.
const STUBS: [&[u8]; 4] = [b"", b"@", b"@\x01", b"@\x01\x07"];

/// The number of the request that tests whether the server still answers.
const ALIVE: u16 = 800;
/// The number of the Message ID of the first test datagram.
const FIRST: u16 = 100;

fn begin(target: &ExaminationTarget, outbox: &mut DatagramSchedule) {
    for (n, MalformedDatagram(_, _, bytes)) in (FIRST..).zip(DATAGRAMS) {
        let mut bytes = bytes.to_vec();
        bytes[2..4].copy_from_slice(&target.id(n).to_be_bytes());
        // Apart in time, so that an answer with a Message ID of the server belongs to the datagram before it.
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

/// How a server answers a test datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerKind {
    Reset,
    Acknowledgement,
    Response(Code),
}

impl AnswerKind {
    fn of(packet: &Packet) -> Self {
        // An answer may be malformed itself, so only its first bytes are read.
        match packet.bytes.get(..2) {
            Some(&[first, _]) if first >> 4 & 3 == 3 => Self::Reset,
            Some(&[_, code]) if code != 0 => Self::Response(Code(code)),
            _ => Self::Acknowledgement,
        }
    }
}

impl fmt::Display for AnswerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reset => f.write_str("a Reset"),
            Self::Acknowledgement => f.write_str("an acknowledgement"),
            Self::Response(code) => code.fmt(f),
        }
    }
}

/// The datagrams that got the same wrong answer: their names, and the packets.
struct DatagramGroup {
    answer: Option<AnswerKind>,
    wanted: Wanted,
    names: Vec<&'static str>,
    packets: Vec<u32>,
}

impl DatagramGroup {
    fn finding(&self) -> Finding {
        let names = self.names.join(", ");
        let finding = match (self.answer, self.wanted) {
            (None, _) => Finding::note(format!("ignored instead of rejected with a Reset: {names}")),
            (Some(answer), Wanted::Silence) => {
                Finding::fault(format!("{answer} in answer to a message that must be ignored: {names}"))
            }
            (Some(AnswerKind::Response(code)), _) if !code.is_success() => Finding::warning(format!(
                "{code} in answer to a message that must be rejected with a Reset: {names}"
            )),
            (Some(answer), _) => {
                Finding::fault(format!("{answer} in answer to a message that must be rejected: {names}"))
            }
        };
        finding.seen_in(self.packets.iter().copied())
    }
}

/// Returns the packets that answer the `n`th datagram. A message with a Message ID chosen by the server counts as an answer to
/// the previous datagram.
fn answers_to<'a>(target: &ExaminationTarget, transcript: &'a Transcript, n: u16) -> Vec<&'a Packet> {
    let number_of = |packet: &Packet| {
        let id = packet.bytes.get(2..4)?;
        let n = u16::from_be_bytes([id[0], id[1]]).wrapping_sub(target.id(0));
        (n == ALIVE || (FIRST..).zip(DATAGRAMS).any(|(known, _)| known == n)).then_some(n)
    };
    let mut last = None;
    let mut seen: Vec<&[u8]> = Vec::new();
    let mut answers = Vec::new();
    for packet in &transcript.packets {
        if !packet.is_received() {
            last = number_of(packet);
        } else if !seen.contains(&&packet.bytes[..]) {
            // A server sends confirmable answers again, because nothing acknowledges them; copies are not further answers.
            seen.push(&packet.bytes);
            if number_of(packet).or(last) == Some(n) {
                answers.push(packet);
            }
        }
    }
    answers
}

fn judge(target: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    let mut groups: Vec<DatagramGroup> = Vec::new();
    let (mut treated, mut rejected, mut right) = (0, 0, Vec::new());
    for (n, MalformedDatagram(name, wanted, _)) in (FIRST..).zip(DATAGRAMS) {
        let answers = answers_to(target, transcript, n);
        let numbers =
            sent(target, transcript, n).into_iter().chain(answers.iter().map(|packet| packet.number));
        let all: Vec<AnswerKind> = answers.iter().map(|packet| AnswerKind::of(packet)).collect();
        // An answer that is not a Reset is always wrong, so it decides if there are several.
        let answer = all.iter().find(|answer| **answer != AnswerKind::Reset).or(all.first()).copied();
        let is_right = match answer {
            None => *wanted != Wanted::Reset,
            Some(AnswerKind::Reset) => *wanted != Wanted::Silence,
            Some(_) => false,
        };
        if is_right {
            treated += 1;
            rejected += usize::from(answer.is_some());
            right.extend(numbers);
            continue;
        }
        // A stack often makes one mistake with many datagrams, which is one finding.
        let known = groups.iter_mut().find(|group| group.answer == answer && group.wanted == *wanted);
        if let Some(group) = known {
            group.names.push(name);
            group.packets.extend(numbers);
        } else {
            let packets = numbers.collect();
            groups.push(DatagramGroup { answer, wanted: *wanted, names: vec![name], packets });
        }
    }
    let mut findings: Vec<Finding> = groups.iter().map(DatagramGroup::finding).collect();
    let alive = target.id(ALIVE).to_be_bytes();
    // The request that shows whether the server is alive gets an answer by right, and so does not count.
    let count = |is_received| -> usize {
        let counted = transcript.packets.iter().filter(|packet| packet.bytes.get(2..4) != Some(&alive[..]));
        counted.filter(|packet| packet.is_received() == is_received).map(|packet| packet.bytes.len()).sum()
    };
    let (input, output) = (count(false), count(true));
    if response(target, transcript, ALIVE).is_none() {
        let text = "the server does not answer any more";
        findings.push(Finding::fault(text).seen_in(sent(target, transcript, ALIVE)));
    } else if output > input {
        let text = format!("{input} bytes of malformed datagrams bring {output} bytes of answers");
        findings.push(Finding::warning(text).by("RFC 7252 §11.3"));
    }
    if treated > 0 {
        let of = DATAGRAMS.len();
        let text = format!(
            "{treated} of {of} datagrams are treated as required, {rejected} of them rejected with a Reset"
        );
        findings.push(Finding::ok(text).seen_in(right));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity;
    use super::super::super::packet::{empty, message};
    use super::super::super::rehearsal::{ScriptedDatagrams, rehearse, worst};
    use super::*;
    use coapace_proto::{Malformed, Message, Options};

    fn judged(break_it: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Vec<Finding> {
        let server = |now, bytes: Option<&[u8]>, pending: &mut ScriptedDatagrams| {
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
        rehearse(
            &CASE,
            &ExaminationTarget { first_message_id: 0x4100, ..ExaminationTarget::default() },
            server,
        )
    }

    #[test]
    fn a_server_that_rejects_or_ignores_malformed_messages_as_required_passes() {
        let findings = judged(|_| None);
        assert_eq!(worst(&findings), Severity::Ok, "{findings:?}");
        assert_eq!(findings.len(), 1);
    }

    #[test]
    fn a_server_that_answers_other_protocol_versions_fails() {
        let findings = judged(|bytes| {
            (bytes.first() == Some(&0x80))
                .then(|| empty(Kind::Reset, u16::from_be_bytes([bytes[2], bytes[3]])))
        });
        assert_eq!(findings[0].severity, Severity::Fault, "{findings:?}");
    }

    #[test]
    fn a_server_that_answers_a_reset_fails() {
        let findings = judged(|bytes| {
            let is_reset = bytes.first() == Some(&0x70);
            is_reset.then(|| message(Kind::Confirmable, Code::NOT_FOUND, 7, b"", &Options::new(), b""))
        });
        let text = "4.04 Not Found in answer to a message that must be ignored: a Reset of nothing";
        assert!(findings[0].measured.contains(text), "{findings:?}");
    }

    #[test]
    fn a_server_that_processes_malformed_messages_fails() {
        let findings = judged(|bytes| {
            let id = u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]);
            (bytes.last() == Some(&0xff))
                .then(|| message(Kind::Acknowledgement, Code::CONTENT, id, b"", &Options::new(), b""))
        });
        assert_eq!(worst(&findings), Severity::Fault, "{findings:?}");
    }

    #[test]
    fn a_server_that_dies_from_malformed_messages_fails_and_a_silent_one_gets_a_note() {
        let target = ExaminationTarget::default();
        let findings = rehearse(&CASE, &target, |_, _, _| {});
        assert_eq!(worst(&findings), Severity::Fault, "{findings:?}");
        assert_eq!(findings[0].severity, Severity::Note, "{findings:?}");
    }
}
