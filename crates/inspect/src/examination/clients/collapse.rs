//! The case that emulates an NB-IoT link with a hundred clients like the examined one.

use coapace_proto::Options;

use super::super::bottleneck::{BottleneckEntry, HOSTS, occupied, replies};
use super::super::case::{Case, DatagramSchedule, ExaminationTarget, ExaminedSide};
use super::super::copies::MessageCopies;
use super::super::finding::Finding;
use super::super::packet::Packet;
use super::super::statistics::median;
use super::super::transcript::Transcript;
use super::{content, is_confirmable};

pub(super) const CASE: Case = Case {
    name: "nb-iot",
    summary: "spurious copies of a hundred clients like it behind an NB-IoT link with an endless queue",
    clause: "RFC 8085 §3.1.1",
    seconds: [30, 110],
    restarts: true,
    react,
    is_enough: |_, transcript| transcript.received().count() >= MOST,
    judge: |_, transcript| judge(transcript),
    ..super::CASE
};

/// The payload of answers, as long as in the scenario.
const PAYLOAD: [u8; 60] = [b'x'; 60];

/// The number of packets of a client after which the case ends.
const MOST: usize = 1_000;

/// The least number of answered exchanges for a verdict.
const LEAST: usize = 4;

/// The share of spurious copies from which on the link counts as collapsed. It is half of all copies, less a margin for
/// single copies in a few exchanges.
pub(crate) const COLLAPSED: f64 = 0.45;

/// The share of spurious copies from which on the finding is a note.
pub(crate) const WASTED: f64 = 0.1;

/// Answers each copy of a request at the time at which the emulated link would have delivered the answer.
fn react(_: &ExaminationTarget, transcript: &Transcript, packet: &Packet, outbox: &mut DatagramSchedule) {
    if !packet.is_request() {
        return;
    }
    // A packet waits behind all earlier ones, so the link is computed again from the first packet on.
    let requests = transcript.received().filter(|packet| packet.is_request());
    let entries: Vec<BottleneckEntry<'_>> =
        requests.map(|packet| BottleneckEntry::new(packet, answer(packet))).collect();
    if let Some(Some(at)) = replies(ExaminedSide::Client, &entries).pop() {
        outbox.answer(packet, at.saturating_sub(outbox.now).as_millis() as u64, answer(packet));
    }
}

fn answer(request: &Packet) -> Vec<u8> {
    content(request, &Options::new(), &PAYLOAD)
}

/// The number of copies of some exchanges, and how many of the copies are spurious.
struct CopyCounts {
    copies: usize,
    spurious: usize,
}

impl CopyCounts {
    fn of(exchanges: &[&MessageCopies<'_>]) -> Self {
        let copies = exchanges.iter().map(|copies| copies.packets.len()).sum();
        Self { copies, spurious: copies - exchanges.len() }
    }

    fn share(&self) -> f64 {
        self.spurious as f64 / self.copies as f64
    }
}

fn judge(transcript: &Transcript) -> Vec<Finding> {
    let exchanges = transcript.exchanges();
    let answered: Vec<(&MessageCopies<'_>, &Packet)> = { exchanges.iter() }
        .filter(|copies| is_confirmable(copies.first()))
        .filter_map(|copies| Some((copies, transcript.answers(copies).next()?)))
        .collect();
    if answered.len() < LEAST {
        let text = format!("only {} requests were answered; a verdict needs {LEAST}", answered.len());
        return vec![Finding::not_tested(text)];
    }
    let all: Vec<&MessageCopies<'_>> = answered.iter().map(|(copies, _)| *copies).collect();
    // A client that adapts has learnt the round-trip time in the first half.
    let (begun, late) = (all.len() / 2, &answered[all.len() / 2..]);
    let (sent, in_all) = (CopyCounts::of(&all[begun..]), CopyCounts::of(&all));
    let seconds = |from: &Packet, to: &Packet| to.at.saturating_sub(from.at).as_secs_f64();
    let trips: Vec<f64> = late.iter().map(|(copies, answer)| seconds(copies.first(), answer)).collect();
    let whole = seconds(all[begun].first(), late[late.len() - 1].1);
    // Only first answers are of use. Answers to copies take the link, too.
    let of_use: f64 = late.iter().map(|(_, answer)| occupied(answer.bytes.len())).sum();
    let text = format!(
        "with {HOSTS} like it, {} of {} copies are spurious after {begun} exchanges ({:.0} %; {} of {} in all), round trips take \
         {:.1} s, and first answers {:.0} % of the link",
        sent.spurious,
        sent.copies,
        sent.share() * 100.0,
        in_all.spurious,
        in_all.copies,
        median(&trips).unwrap_or_default(),
        of_use / whole * 100.0,
    );
    let packets = all[begun..].iter().flat_map(|copies| copies.numbers());
    vec![verdict(sent.share(), text).seen_in(packets)]
}

/// Returns the finding for a share of spurious copies. `text` describes the measurement.
pub(crate) fn verdict(share: f64, text: String) -> Finding {
    match share {
        share if share >= COLLAPSED => Finding::warning(format!("collapses: {text}")),
        share if share >= WASTED => Finding::note(text),
        _ => Finding::ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity;
    use super::super::super::rehearsal::{client, rehearse, sound, worst};
    use super::*;

    fn judged(timeout: impl Fn(u16, u32) -> u64) -> Vec<Finding> {
        rehearse(&CASE, &ExaminationTarget::default(), client(60, timeout, sound))
    }

    #[test]
    fn a_hundred_clients_with_the_timeouts_of_rfc_7252_cause_congestion_collapse() {
        let findings = judged(|exchange, copy| (2_000 + 130 * u64::from(exchange % 7)) << copy);
        assert_eq!(worst(&findings), Severity::Warning, "{findings:?}");
        assert!(findings[0].measured.starts_with("collapses"), "{findings:?}");
        assert!(findings[0].measured.contains("first answers 5"), "half of the link: {findings:?}");
    }

    #[test]
    fn a_hundred_clients_that_learn_the_rto_cause_no_congestion_collapse() {
        let learnt = judged(|exchange, copy| (if exchange < 4 { 2_000 } else { 8_000 }) << copy);
        assert_eq!(worst(&learnt), Severity::Ok, "{learnt:?}");
        let often = judged(|exchange, copy| (if exchange % 4 == 0 { 2_000 } else { 8_000 }) << copy);
        assert_eq!(worst(&often), Severity::Note, "{often:?}");
    }

    #[test]
    fn one_request_is_not_enough_for_a_verdict() {
        let findings =
            rehearse(&CASE, &ExaminationTarget::default(), client(1, |_, copy| 2_000 << copy, sound));
        assert_eq!(worst(&findings), Severity::NotTested);
    }
}
