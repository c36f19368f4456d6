//! The mechanism that clients' timeouts are nearest to: one judgement for examinations and captures.

use std::fmt;

use coapace_control::{
    Answer, Controller, Cue, Draw, Duration, Instant, Marking, Mechanism, Outcome, Sample,
};
use coapace_run::measured::quantile;
use coapace_scenario::naming;
use serde::Serialize;

/// The moment from which replays count. It is not 0, which mechanisms take for never.
pub(crate) const ORIGIN: Instant = Instant::from_micros(1_000_000);

/// One exchange as it was measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MeasuredExchange {
    /// The departure of the first copy.
    pub(crate) begun: Instant,
    /// The times between copies, which are the timeouts that passed.
    pub(crate) timeouts: Vec<Duration>,
    /// The time from the first copy to the answer, if there was one.
    pub(crate) answered: Option<Duration>,
    /// The ordinal of the copy that was answered, if its marking shows it.
    pub(crate) named: Option<u8>,
    /// Whether a later answer named another copy, so that the client knows that each copy has an answer of its own.
    pub(crate) is_named_again: bool,
}

impl MeasuredExchange {
    /// Returns an exchange from the times of its copies, at least one, and of its answers. An answer may name the ordinal of a copy. Times
    /// ascend, and count from any origin.
    pub(crate) fn new(copies: &[Duration], answers: &[(Duration, Option<u8>)]) -> Self {
        let [first, last] =
            [copies.first(), copies.last()].map(|time| time.copied().unwrap_or(Duration::ZERO));
        // A copy behind an answer shows that the client never got that answer.
        let answer = answers.iter().find(|(at, _)| *at >= last);
        let named = answer.and_then(|(_, copy)| *copy);
        let is_other = |copy: u8| named.is_some_and(|named| named != copy);
        Self {
            begun: ORIGIN + first,
            timeouts: copies.windows(2).map(|pair| pair[1] - pair[0]).collect(),
            answered: answer.map(|(at, _)| *at - first),
            named,
            is_named_again: answers.iter().filter_map(|(_, copy)| *copy).any(is_other),
        }
    }

    /// Returns the sample that a client gets. `answers_each` says whether it knows that each copy has an answer of its own. If not,
    /// an answer to an early copy may be the repetition that RFC 7252 §4.5 allows, and is not believed.
    fn sample(&self, since_first: Duration, answers_each: bool) -> Sample {
        let passed =
            |count: usize| self.timeouts[..count].iter().fold(Duration::ZERO, |sum, &timeout| sum + timeout);
        let retransmits = self.timeouts.len() as u8;
        let answered = self.named.and_then(|ordinal| {
            let since = since_first - passed(usize::from(ordinal).min(self.timeouts.len()));
            let timeout = self.timeouts.get(usize::from(ordinal));
            let is_believed = answers_each || timeout.is_none_or(|&timeout| since < timeout);
            is_believed.then_some(Answer { ordinal, since })
        });
        Sample {
            answered,
            ..Sample::unmarked(since_first, since_first - passed(self.timeouts.len()), retransmits)
        }
    }
}

/// The mechanism that clients are nearest to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Nearest {
    /// The mechanism, as it is named on the command line.
    pub mechanism: String,
    /// How far the timeouts are from its timeouts: the sum of two terms. One is how far timeouts lie outside of the range that the
    /// mechanism draws from, the other how unevenly they lie within it. Both are natural logarithms of ratios, so 0.1 is about 10 %.
    pub distance: f64,
    /// The mechanisms that are no farther away than chance allows, the nearest first.
    pub alike: Vec<String>,
    /// The first mechanism behind these, and its distance.
    pub next: Option<(String, f64)>,
}

/// Mechanisms whose distances differ by less are alike.
const RESOLUTION: f64 = 0.04;

/// A mechanism that is farther away than this does not explain the timeouts.
const FAR: f64 = 0.15;

/// The share of first timeouts that may lie below the ACK_TIMEOUT of a fitted `default`.
const BELOW: f64 = 0.02;

impl Nearest {
    /// Returns whether this mechanism is the nearest, or like it.
    pub fn names(&self, mechanism: &str) -> bool {
        self.mechanism == mechanism || self.alike.iter().any(|other| other == mechanism)
    }

    /// Returns whether the mechanism explains the timeouts.
    pub fn is_near(&self) -> bool {
        self.distance <= FAR
    }
}

impl fmt::Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mechanism, distance, alike, next } = self;
        if !self.is_near() {
            return write!(f, "no mechanism is near; the nearest is {mechanism} (distance {distance:.2})");
        }
        write!(f, "nearest mechanism: {mechanism} (distance {distance:.2}")?;
        match next {
            _ if !alike.is_empty() => write!(f, ", not distinct from {}", alike.join(", "))?,
            Some((next, distance)) => write!(f, ", the next is {next} ({distance:.2})")?,
            None => {}
        }
        write!(f, ")")
    }
}

/// Replays the exchanges through every known mechanism that marks its copies as these clients do, and through `default` with an
/// ACK_TIMEOUT that is fitted to the first timeouts. A client that restarted without its estimates counts as another one. Returns the
/// nearest mechanism; `None` if no timeout passed, or no mechanism has the marking.
pub(crate) fn nearest(clients: &[Vec<MeasuredExchange>], marking: Marking) -> Option<Nearest> {
    let marks = |mechanism: &Mechanism| mechanism.limits(&mechanism.state()).marking;
    let candidates = naming::mechanisms().entries().filter(|entry| marks(&entry.mechanism) == marking);
    let mut all: Vec<(String, f64)> = candidates
        .filter_map(|entry| Some((entry.name.to_owned(), distance(&entry.mechanism, clients)?)))
        .collect();
    // A fitted value is a little nearer by itself, so it counts only where it is distinctly nearer.
    let plain = all.iter().find(|(name, _)| name == "default").map(|(_, distance)| *distance);
    let fitted = plain.and_then(|plain| Some((plain, fitted(clients)?)));
    all.extend(fitted.filter(|(plain, (_, distance))| distance + RESOLUTION < *plain).map(|(_, own)| own));
    all.sort_by(|one, other| one.1.total_cmp(&other.1));
    let mut behind = all.into_iter().peekable();
    let (mechanism, distance) = behind.next()?;
    let mut alike = Vec::new();
    while let Some((name, _)) = behind.next_if(|other| other.1 - distance < RESOLUTION) {
        alike.push(name);
    }
    Some(Nearest { mechanism, distance, alike, next: behind.next() })
}

/// Returns `default` with the ACK_TIMEOUT that the first timeouts show, and its distance.
fn fitted(clients: &[Vec<MeasuredExchange>]) -> Option<(String, f64)> {
    let firsts = clients.iter().flatten().filter_map(|one| one.timeouts.first());
    let mut firsts: Vec<f64> = firsts.map(|timeout| timeout.as_micros() as f64 / 1e3).collect();
    firsts.sort_by(f64::total_cmp);
    let name = format!("default:ack_timeout={}ms", quantile(&firsts, BELOW)?.round());
    let distance = distance(&naming::parse_mechanism(&name).ok()?, clients)?;
    Some((name, distance))
}

/// The deviations that a replay collects.
#[derive(Default)]
struct Score {
    /// The logarithms of the ratios by which timeouts lie outside of their ranges.
    outside: f64,
    /// The places of timeouts within their ranges, from 0 to 1, and the logarithmic widths of the ranges.
    places: Vec<(f64, f64)>,
    /// Answers for which the mechanism would not have waited, as logarithms of ratios.
    hasty: f64,
}

impl Score {
    /// Compares a timeout with the range that a mechanism draws it from. Returns the draw that is nearest to it.
    fn compare(&mut self, measured: Duration, low: Duration, high: Duration) -> Draw {
        let [at, low, high] = [measured, low, high].map(|time| time.as_micros().max(1) as f64);
        self.outside += (low / at).ln().max((at / high).ln()).max(0.0);
        let place = if high > low { ((at - low) / (high - low)).clamp(0.0, 1.0) } else { 0.5 };
        self.places.push((place, (high / low).ln().max(0.0)));
        #[allow(clippy::cast_sign_loss, reason = "a place is from 0 to 1")]
        Draw::from_bits((place * f64::from(u32::MAX)) as u32)
    }

    /// Returns the mean distance, or `None` if nothing was compared.
    fn distance(mut self) -> Option<f64> {
        let count = self.places.len() as f64;
        if self.places.is_empty() {
            return None;
        }
        let width = self.places.iter().map(|(_, width)| width).sum::<f64>() / count;
        self.places.sort_by(|one, other| one.0.total_cmp(&other.0));
        let even = |place: usize| (place as f64 + 0.5) / count;
        let uneven: f64 =
            self.places.iter().enumerate().map(|(place, (at, _))| (at - even(place)).abs()).sum();
        Some((self.outside + self.hasty) / count + uneven / count * width)
    }
}

/// Returns how far these clients are from a mechanism; `None` without a timeout.
fn distance(mechanism: &Mechanism, clients: &[Vec<MeasuredExchange>]) -> Option<f64> {
    let mut score = Score::default();
    for exchanges in clients {
        follow(mechanism, exchanges, &mut score);
    }
    score.distance()
}

/// Replays one client's exchanges through a mechanism.
fn follow(mechanism: &Mechanism, exchanges: &[MeasuredExchange], score: &mut Score) {
    const MIDDLE: Draw = Draw::from_bits(1 << 31);
    const TOP: Draw = Draw::from_bits(u32::MAX);
    let mut state = mechanism.state();
    let mut answers_each = mechanism.limits(&state).marking == Marking::FreshMessageId;
    for measured in exchanges {
        let mut now = measured.begun;
        let cue = |now, draw| Cue { now, draw, outstanding: 1 };
        // Copies of the state give the bounds of each range. The state itself then gets the draw that is nearest to the measured
        // timeout.
        let armed = |draw| mechanism.on_start(&mut { state }, cue(now, draw)).1;
        let draw = if let Some(&timeout) = measured.timeouts.first() {
            score.compare(timeout, armed(Draw::ZERO), armed(TOP))
        } else {
            let waited = measured.answered.unwrap_or(Duration::ZERO).as_micros().max(1) as f64;
            score.hasty += (waited / armed(TOP).as_micros().max(1) as f64).ln().max(0.0);
            MIDDLE
        };
        let (mut exchange, _) = mechanism.on_start(&mut state, cue(now, draw));
        for (place, &passed) in measured.timeouts.iter().enumerate() {
            now = now + passed;
            let armed = |draw| mechanism.on_retransmit(&mut { state }, &mut { exchange }, cue(now, draw));
            let next = measured.timeouts.get(place + 1);
            let draw = next.map_or(MIDDLE, |&timeout| score.compare(timeout, armed(Draw::ZERO), armed(TOP)));
            mechanism.on_retransmit(&mut state, &mut exchange, cue(now, draw));
        }
        let outcome = match measured.answered {
            Some(since_first) => Outcome::Acked(measured.sample(since_first, answers_each)),
            None => Outcome::GivenUp,
        };
        let end = measured.answered.map_or(now, |since_first| measured.begun + since_first);
        mechanism.on_end(&mut state, exchange, outcome, cue(end, MIDDLE));
        answers_each |= measured.is_named_again;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what a client with this mechanism would show: every fourth exchange loses its first copy.
    fn shown(name: &str, rtt_ms: u64) -> Vec<MeasuredExchange> {
        let mechanism: Mechanism = name.parse().unwrap();
        let mut state = mechanism.state();
        let mut now = Instant::ZERO;
        let rtt = Duration::from_millis(rtt_ms);
        (0..48u32)
            .map(|n| {
                let cue =
                    |now| Cue { now, draw: Draw::from_bits(n.wrapping_mul(2_654_435_769)), outstanding: 1 };
                let begun = now;
                let (mut exchange, timeout) = mechanism.on_start(&mut state, cue(now));
                let timeouts = if n % 4 == 3 { vec![timeout] } else { Vec::new() };
                for &passed in &timeouts {
                    now = now + passed;
                    mechanism.on_retransmit(&mut state, &mut exchange, cue(now));
                }
                now = now + rtt;
                let since = now.since(begun);
                let tells = matches!(marking_of(name), Marking::TokenOnRetransmit | Marking::FreshMessageId);
                let named = tells.then_some(timeouts.len() as u8);
                let measured =
                    MeasuredExchange { begun, timeouts, answered: Some(since), named, is_named_again: false };
                let outcome = Outcome::Acked(measured.sample(since, false));
                mechanism.on_end(&mut state, exchange, outcome, cue(now));
                measured
            })
            .collect()
    }

    fn marking_of(name: &str) -> Marking {
        let mechanism: Mechanism = name.parse().unwrap();
        mechanism.limits(&mechanism.state()).marking
    }

    #[test]
    fn a_mechanism_is_nearest_to_itself() {
        let names = [
            "default",
            "cocoa",
            "peak-hopper",
            "coap-eifel",
            "ebb",
            "ebb-plain",
            "fasor",
            "fasor-token",
            "cocoa-i",
        ];
        for name in names {
            let found = nearest(&[shown(name, 300)], marking_of(name)).unwrap();
            assert!(found.is_near() && found.names(name), "{name}: {found:?}");
            let own = distance(&name.parse().unwrap(), &[shown(name, 300)]).unwrap();
            assert!(own < FAR, "{name}: {own}");
        }
    }

    #[test]
    fn default_and_cocoa_are_distinct() {
        let found = nearest(&[shown("default", 300)], Marking::None).unwrap();
        assert!(found.names("default") && !found.names("cocoa"), "{found:?}");
        assert!(found.to_string().contains("default"), "{found}");
    }

    #[test]
    fn default_with_another_ack_timeout_is_recognised() {
        let found = nearest(&[shown("default:ack_timeout=5s", 300)], Marking::None).unwrap();
        assert!(found.mechanism.starts_with("default:ack_timeout=5") && found.is_near(), "{found:?}");
    }

    #[test]
    fn without_a_timeout_nothing_is_said() {
        let quiet = MeasuredExchange {
            begun: Instant::ZERO,
            timeouts: Vec::new(),
            answered: None,
            named: None,
            is_named_again: false,
        };
        assert_eq!(nearest(&[vec![quiet]], Marking::None), None);
    }

    #[test]
    fn mechanisms_with_another_marking_are_left_out() {
        let found = nearest(&[shown("ebb", 300)], Marking::TokenOnRetransmit).unwrap();
        let mut others = found.alike.iter().chain(found.next.iter().map(|(name, _)| name)).peekable();
        assert!(others.peek().is_some(), "{found:?}");
        assert!(others.all(|name| marking_of(name) == Marking::TokenOnRetransmit), "{found:?}");
        assert_eq!(nearest(&[shown("ebb", 300)], Marking::Token), None, "no mechanism has it by default");
    }

    #[test]
    fn an_answer_to_an_early_copy_is_believed_from_a_peer_that_answers_each() {
        let measured = MeasuredExchange {
            begun: Instant::ZERO,
            timeouts: vec![Duration::from_millis(50), Duration::from_millis(75)],
            answered: None,
            named: Some(0),
            is_named_again: true,
        };
        let since = Duration::from_millis(1_200);
        assert_eq!(measured.sample(since, false).answered, None);
        assert_eq!(measured.sample(since, true).answered, Some(Answer { ordinal: 0, since }));
        let last = MeasuredExchange { named: Some(2), ..measured };
        let answer = Answer { ordinal: 2, since: Duration::from_millis(1_075) };
        assert_eq!(last.sample(since, false).answered, Some(answer));
    }
}
