//! The case that tests whether timeouts follow the round-trip time, and which mechanism they are nearest to.

use std::time::Duration;

use coapace_control::{self as control, Marking};

use super::super::case::{Case, DatagramSchedule, ExaminationTarget};
use super::super::copies::MessageCopies;
use super::super::finding::Finding;
use super::super::packet::Packet;
use super::super::statistics::{median, range};
use super::super::transcript::Transcript;
use super::{is_confirmable, response};
use crate::nearest::{MeasuredExchange, nearest};

pub(super) const CASE: Case = Case {
    name: "adaptation",
    summary: "first timeouts after round trips of 20 ms and of 1.2 s, and the mechanism they are nearest to",
    clause: "RFC 7252 §4.7",
    seconds: [35, 60],
    react,
    is_enough: |target, transcript| {
        // One exchange more shows that the last probe is over.
        transcript.exchanges().len() > AdaptationPhase::all(target) || !transcript.exits.is_empty()
    },
    judge,
    ..super::CASE
};

/// The number of exchanges that are answered after 20 ms, before the first probes. A probe is an exchange whose first
/// copy is lost.
const FAST: usize = 12;
/// The number of exchanges that are answered after 1.2 s, before the second probes.
const SLOW: usize = 6;
const FAST_RTT: Duration = Duration::from_millis(20);
const SLOW_RTT: Duration = Duration::from_millis(1_200);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AdaptationPhase {
    Fast,
    /// The first copy of each request is lost, so that its timeout can be measured.
    ProbeAfterFast,
    Slow,
    ProbeAfterSlow,
}

impl AdaptationPhase {
    /// Returns the number of probes after each of the two round-trip times. A probe is an exchange whose timeout is
    /// measured.
    fn probes(target: &ExaminationTarget) -> usize {
        if target.is_quick { 3 } else { 6 }
    }

    /// Returns the number of exchanges of all phases.
    fn all(target: &ExaminationTarget) -> usize {
        FAST + SLOW + 2 * Self::probes(target)
    }

    /// Returns the phase of the `n`th exchange.
    fn of(target: &ExaminationTarget, n: usize) -> Self {
        let probes = Self::probes(target);
        match n {
            n if n < FAST => Self::Fast,
            n if n < FAST + probes => Self::ProbeAfterFast,
            n if n < FAST + probes + SLOW => Self::Slow,
            _ => Self::ProbeAfterSlow,
        }
    }
}

/// Answers every copy after a round trip, as on a long path. The first copy of a probe is lost.
fn react(
    target: &ExaminationTarget,
    transcript: &Transcript,
    packet: &Packet,
    outbox: &mut DatagramSchedule,
) {
    let exchanges = transcript.exchanges();
    let is_own = |copies: &MessageCopies<'_>| copies.last().number == packet.number;
    // A mechanism may give a copy another Message ID, so exchanges are counted, and not messages.
    let Some(place) = exchanges.iter().position(is_own) else { return };
    let phase = AdaptationPhase::of(target, place);
    let is_probe = matches!(phase, AdaptationPhase::ProbeAfterFast | AdaptationPhase::ProbeAfterSlow);
    // A non-confirmable request is not sent again, so its loss would only stop the client.
    let is_lost = is_probe && is_confirmable(packet) && exchanges[place].packets.len() == 1;
    if !is_lost {
        let rtt = if phase == AdaptationPhase::Slow { SLOW_RTT } else { FAST_RTT };
        outbox.answer(packet, rtt.as_millis() as u64, response(packet));
    }
}

fn judge(target: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    let requests = transcript.exchanges();
    let in_phase = |phase| {
        requests
            .iter()
            .enumerate()
            .filter(move |(n, _)| AdaptationPhase::of(target, *n) == phase)
            .map(|(_, copies)| copies)
    };
    let timeouts = |phase| -> Vec<f64> {
        in_phase(phase).filter_map(|copies| copies.intervals().first().copied()).collect()
    };
    let (fast, slow) = (timeouts(AdaptationPhase::ProbeAfterFast), timeouts(AdaptationPhase::ProbeAfterSlow));
    let (Some(fast_range), Some(slow_range)) = (range(&fast), range(&slow)) else {
        return vec![Finding::not_tested(format!(
            "{} requests in one process; this case needs a client that makes {} requests one after the other",
            requests.len(),
            AdaptationPhase::all(target)
        ))];
    };
    let packets = in_phase(AdaptationPhase::ProbeAfterFast)
        .chain(in_phase(AdaptationPhase::ProbeAfterSlow))
        .flat_map(MessageCopies::numbers);
    let text = format!(
        "first timeouts of {:.2}–{:.2} s after round trips of 20 ms, {:.2}–{:.2} s after 1.2 s",
        fast_range.0, fast_range.1, slow_range.0, slow_range.1
    );
    let ratio = median(&slow).zip(median(&fast)).map_or(1.0, |(slow, fast)| slow / fast);
    // Medians of dithered timeouts of 2 to 3 s differ by less than 1.5. Timeouts below 2 s have followed the round trips of 20 ms.
    let adapts = ratio > 1.5 || fast_range.1 < 1.9;
    let first = if adapts {
        Finding::note(format!("adapts: {text}"))
    } else {
        Finding::ok(format!("does not adapt: {text}"))
    };
    let mut findings = vec![first.seen_in(packets)];
    // The first exchanges after the change teach the client.
    let late: Vec<_> =
        in_phase(AdaptationPhase::Slow).skip(3).filter(|copies| copies.packets.len() > 1).collect();
    if let Some(one) = late.first() {
        let text = format!(
            "{} of {} requests are sent again before the answer, after three round trips of 1.2 s",
            late.len(),
            SLOW - 3
        );
        findings.push(Finding::warning(text).seen_in(one.numbers()));
    }
    let measured: Vec<MeasuredExchange> =
        requests.iter().map(|copies| measured(transcript, copies)).collect();
    let marking = requests.iter().map(MessageCopies::marking).find(|&marking| marking != Marking::None);
    findings.push(match nearest(&[measured], marking.unwrap_or_default()) {
        Some(nearest) if nearest.is_near() && !adapts => Finding::ok(nearest.to_string()),
        Some(nearest) => Finding::note(nearest.to_string()),
        None => Finding::note("no known mechanism numbers its copies in the way that this client does"),
    });
    findings
}

fn measured(transcript: &Transcript, copies: &MessageCopies<'_>) -> MeasuredExchange {
    let since = |packet: &Packet| control::Duration::from(packet.at);
    let times: Vec<_> = copies.packets.iter().map(|copy| since(copy)).collect();
    let named = |answer| copies.named_by(answer).map(|ordinal| ordinal as u8);
    let answers: Vec<_> = transcript.answers(copies).map(|answer| (since(answer), named(answer))).collect();
    MeasuredExchange::new(&times, &answers)
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity;
    use super::super::super::rehearsal::{client, played, rehearse, sound, worst};
    use super::*;
    use crate::advice::capture::{Ending, Point};
    use crate::advice::datagram::CapturedDatagram;
    use crate::advice::timeouts::UsedTimeouts;
    use crate::advice::traffic::{Reading, Traffic, TrafficCollector};
    use coapace_sim::Time;

    const DITHER: [u64; 8] = [100, 830, 410, 960, 270, 560, 680, 20];

    fn judged(count: u16, timeout: impl Fn(u16, u32) -> u64) -> Vec<Finding> {
        let target = ExaminationTarget { is_quick: true, ..ExaminationTarget::default() };
        rehearse(&CASE, &target, client(count, timeout, sound))
    }

    #[test]
    fn a_client_with_the_timeouts_of_rfc_7252_is_nearest_to_default() {
        let findings = judged(40, |exchange, copy| (2_000 + DITHER[usize::from(exchange % 8)]) << copy);
        assert_eq!(findings[0].severity, Severity::Ok, "{findings:?}");
        assert!(findings[1].measured.contains("nearest mechanism: default"), "{findings:?}");
    }

    #[test]
    fn a_client_that_adapts_its_timeout_gets_a_note_and_a_hasty_one_a_warning() {
        let adapting = judged(40, |exchange, copy| (if exchange < 17 { 400 } else { 2_600 }) << copy);
        assert_eq!(worst(&adapting), Severity::Note, "{adapting:?}");
        assert!(adapting[0].measured.starts_with("adapts"), "{adapting:?}");
        let hasty = judged(40, |_, copy| 500 << copy);
        assert_eq!(worst(&hasty), Severity::Warning, "{hasty:?}");
    }

    /// Reads the packets of a transcript as a capture.
    fn captured(transcript: &Transcript) -> Traffic {
        let (client, server) = (([192, 0, 2, 1], 40_000).into(), ([192, 0, 2, 2], 5683).into());
        let mut observer = TrafficCollector::new(Reading::default());
        for packet in &transcript.packets {
            let (from, to) = if packet.is_received() { (client, server) } else { (server, client) };
            let datagram = CapturedDatagram {
                from,
                to,
                payload: &packet.bytes,
                identification: 0,
                ip_bytes: packet.bytes.len() as u32 + 28,
                is_whole: true,
                point: Point::Interface,
            };
            observer.datagram(Time::from_nanos(packet.at.as_nanos() as u64), &datagram);
        }
        observer.finish(Ending::Complete)
    }

    #[test]
    fn advise_on_a_capture_of_the_examination_names_the_same_mechanism() {
        let patterns: [fn(u16, u32) -> u64; 3] = [
            |exchange, copy| (2_000 + DITHER[usize::from(exchange % 8)]) << copy,
            |exchange, copy| (if exchange < 17 { 400 } else { 2_600 }) << copy,
            |_, copy| 500 << copy,
        ];
        let target = ExaminationTarget { is_quick: true, ..ExaminationTarget::default() };
        for timeout in patterns {
            let transcript = played(&CASE, &target, client(40, timeout, sound));
            let examined = judge(&target, &transcript).pop().unwrap().measured;
            let advised =
                UsedTimeouts::of(&captured(&transcript)).and_then(|timeouts| timeouts.nearest).unwrap();
            assert_eq!(examined, advised.to_string());
        }
    }

    #[test]
    fn one_request_is_not_enough_for_a_verdict() {
        assert_eq!(worst(&judged(1, |_, copy| 2_000 << copy)), Severity::NotTested);
    }
}
