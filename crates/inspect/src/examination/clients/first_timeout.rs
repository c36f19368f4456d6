//! The case on the first timeout, over many exchanges.

use super::super::case::{Case, ExaminationTarget};
use super::super::finding::Finding;
use super::super::statistics::{chance_of_narrow, critical_distance, distance_from_uniform, range};
use super::super::transcript::Transcript;
use super::answer_second;

pub(super) const CASE: Case = Case {
    name: "first-timeout",
    summary: "the first timeout and its random part: every first copy is lost",
    clause: "RFC 7252 §4.2",
    seconds: [25, 60],
    lanes: [2, 4],
    restarts: true,
    react: answer_second,
    is_enough: |target, transcript| first_timeouts(transcript).len() >= wanted(target),
    judge,
    ..super::CASE
};

/// Returns the number of timeouts to measure.
fn wanted(target: &ExaminationTarget) -> usize {
    if target.is_quick { 12 } else { 40 }
}

/// The share by which scheduling may lengthen or shorten a timeout.
const NOISE: f64 = 0.03;

/// Returns the time between the first and the second copy of each request in seconds, with the numbers of both packets.
fn first_timeouts(transcript: &Transcript) -> Vec<(f64, [u32; 2])> {
    let requests = transcript.requests();
    let twice = requests.iter().filter_map(|copies| {
        let second = copies.packets.get(1)?;
        Some((*copies.intervals().first()?, [copies.first().number, second.number]))
    });
    twice.collect()
}

fn judge(_: &ExaminationTarget, transcript: &Transcript) -> Vec<Finding> {
    let measured = first_timeouts(transcript);
    let timeouts: Vec<f64> = measured.iter().map(|(timeout, _)| *timeout).collect();
    let packets: Vec<u32> = measured.iter().flat_map(|(_, packets)| *packets).collect();
    let Some((low, high)) = range(&timeouts) else {
        let numbers = transcript.requests().iter().map(|copies| copies.first().number).collect::<Vec<_>>();
        return vec![Finding::fault("a lost request is not sent again").seen_in(numbers)];
    };
    let count = timeouts.len();
    let span = format!("first timeouts of {low:.2}–{high:.2} s over {count} exchanges");
    let base = if low < 1.0 - NOISE {
        Finding::warning(format!("{span}: below 1 s")).by("RFC 7252 §4.8.1")
    } else if low >= 2.0 * (1.0 - NOISE) && high <= 3.0 * (1.0 + NOISE) {
        Finding::ok(format!("{span}: between ACK_TIMEOUT and ACK_TIMEOUT · ACK_RANDOM_FACTOR, 2–3 s"))
    } else {
        Finding::note(format!("{span}; the default is 2–3 s")).by("RFC 7252 §4.8")
    };
    vec![base.seen_in(packets.clone()), dither(&timeouts, low, high).seen_in(packets)]
}

/// Judges whether first timeouts are random, as they should be. `low` and `high` are the shortest and the longest, in
/// seconds.
fn dither(timeouts: &[f64], low: f64, high: f64) -> Finding {
    const SHOULD: &str = "RFC 7252 §4.8.1";
    let count = timeouts.len();
    let factor = high / low;
    // Timeouts of 2 s that differ by 3 % lie within 60 ms: 6 % of the range from 2 to 3 s.
    let chance = chance_of_narrow(count.max(1), (2.0 * NOISE).min(1.0));
    // Differences of this size come from scheduling, and prove no randomness.
    if factor < 1.0 + NOISE {
        if count < 3 {
            return Finding::not_tested(format!(
                "{count} timeouts are too few to show whether they are random"
            ));
        }
        return Finding::warning(format!(
            "not random: the timeouts differ by {:.1} % (chance {chance:.0e} with ACK_RANDOM_FACTOR 1.5)",
            (factor - 1.0) * 100.0
        ))
        .by(SHOULD);
    }
    if count < 6 {
        return Finding::note(format!(
            "random: the longest is {factor:.2} times the shortest; {count} timeouts are too few to judge their distribution"
        ));
    }
    // RFC 7252 §4.2 draws from ACK_TIMEOUT to ACK_TIMEOUT · ACK_RANDOM_FACTOR.
    let distance = distance_from_uniform(timeouts, 2.0, 3.0);
    let critical = critical_distance(count);
    let values = format!("Kolmogorov–Smirnov {distance:.2}, critical at 1 %: {critical:.2}");
    if distance <= critical {
        Finding::ok(format!("random: consistent with uniform over 2–3 s ({values})")).by(SHOULD)
    } else {
        Finding::note(format!(
            "random: the longest is {factor:.2} times the shortest, but not uniform over 2–3 s ({values})"
        ))
        .by(SHOULD)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::finding::Severity;
    use super::super::super::rehearsal::{client, rehearse, sound, worst};
    use super::*;

    fn judged(timeout: impl Fn(u16, u32) -> u64) -> Vec<Finding> {
        let target = ExaminationTarget::default();
        let long = Case { seconds: [1_000, 1_000], ..CASE };
        rehearse(&long, &target, client(60, timeout, sound))
    }

    #[test]
    fn a_random_first_timeout_of_2_to_3_s_passes() {
        let findings = judged(|exchange, copy| (2_000 + u64::from(exchange) * 617 % 1_000) << copy);
        assert_eq!(worst(&findings), Severity::Ok, "{findings:?}");
        assert!(findings[0].measured.contains("40 exchanges"), "{findings:?}");
    }

    #[test]
    fn a_fixed_or_short_first_timeout_is_a_warning() {
        let findings = judged(|_, copy| 2_000 << copy);
        assert_eq!(findings[0].severity, Severity::Ok);
        assert_eq!(findings[1].severity, Severity::Warning, "{findings:?}");
        let findings = judged(|exchange, copy| (400 + u64::from(exchange) * 617 % 200) << copy);
        assert_eq!(findings[0].severity, Severity::Warning, "{findings:?}");
    }

    #[test]
    fn a_wide_range_of_first_timeouts_is_a_note_and_a_missing_retransmission_a_fault() {
        let findings = judged(|exchange, copy| (3_000 + u64::from(exchange) * 617 % 4_500) << copy);
        assert_eq!(worst(&findings), Severity::Note, "{findings:?}");
        let findings = judged(|_, _| 10_000_000);
        assert_eq!(worst(&findings), Severity::Fault, "{findings:?}");
    }
}
