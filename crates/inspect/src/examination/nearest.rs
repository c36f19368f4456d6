//! The mechanism that a client's timeouts are nearest to.

use coapace_control::{
    Answer, Controller, Cue, Draw, Duration, Instant, Marking, Mechanism, Outcome, REGISTRY, Sample,
};

/// One exchange as it was measured.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// The departure of the first copy.
    pub(crate) begun: Instant,
    /// The times between copies, which are the timeouts that passed.
    pub(crate) timeouts: Vec<Duration>,
    /// The time from the first copy to the answer, if there was one.
    pub(crate) answered: Option<Duration>,
    /// The ordinal of the copy that was answered, if its marking tells it.
    pub(crate) named: Option<u8>,
    /// Whether a later answer named another copy, so that the client knows that each copy has an answer of its own.
    pub(crate) is_named_again: bool,
}

impl Measured {
    /// Returns the facts that a client has. `answers_each` says whether it knows that each copy has an answer of its own. If not, an
    /// answer to an early copy may be the repetition that RFC 7252 §4.5 allows, and is not believed.
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

/// A mechanism, and how far the measured timeouts are from those that it would have armed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Nearness {
    pub(crate) name: &'static str,
    /// The mean of two terms over all timeouts: how far each lies outside of the range that the mechanism draws from, and how
    /// unevenly they lie within it. Both are natural logarithms of ratios, so 0.1 is about 10 %.
    pub(crate) distance: f64,
}

/// Two mechanisms whose distances differ by less are not told apart.
pub(crate) const RESOLUTION: f64 = 0.04;

/// A mechanism that is farther away than this does not explain the timeouts.
pub(crate) const FAR: f64 = 0.15;

/// Replays the exchanges through every mechanism of the registry that marks its copies like the client. Returns them with the
/// nearest first; nothing if no timeout was measured, or no mechanism has the marking.
pub(crate) fn nearest(exchanges: &[Measured], marking: Marking) -> Vec<Nearness> {
    let marks = |mechanism: &Mechanism| mechanism.limits(&mechanism.state()).marking;
    let alike = REGISTRY.iter().filter(|entry| marks(&entry.mechanism) == marking);
    let replayed = alike.filter_map(|entry| {
        let distance = distance(&entry.mechanism, exchanges, marking)?;
        Some(Nearness { name: entry.name, distance })
    });
    let mut all: Vec<Nearness> = replayed.collect();
    all.sort_by(|one, other| one.distance.total_cmp(&other.distance));
    all
}

/// What a replay collects.
#[derive(Default)]
struct Score {
    /// The logarithms of the ratios by which timeouts lie outside of their ranges.
    outside: f64,
    /// The places of timeouts within their ranges, from 0 to 1, and the logarithmic widths of these.
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

fn distance(mechanism: &Mechanism, exchanges: &[Measured], marking: Marking) -> Option<f64> {
    const MIDDLE: Draw = Draw::from_bits(1 << 31);
    const TOP: Draw = Draw::from_bits(u32::MAX);
    let mut state = mechanism.state();
    let mut score = Score::default();
    let mut answers_each = marking == Marking::FreshMessageId;
    for measured in exchanges {
        let mut now = measured.begun;
        let cue = |now, draw| Cue { now, draw, outstanding: 1 };
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
    score.distance()
}

/// Says which mechanism is nearest, and which cannot be told from it.
pub(crate) fn described(all: &[Nearness]) -> Option<String> {
    let first = all.first()?;
    if first.distance > FAR {
        return Some(format!(
            "no mechanism is near; the nearest is {} (distance {:.2})",
            first.name, first.distance
        ));
    }
    let alike = all[1..].iter().take_while(|other| other.distance - first.distance < RESOLUTION);
    let alike: Vec<&str> = alike.map(|other| other.name).collect();
    let told = match &alike[..] {
        [] => all.get(1).map_or_else(String::new, |second| {
            format!(", the next is {} ({:.2})", second.name, second.distance)
        }),
        alike => format!(", not told from {}", alike.join(", ")),
    };
    Some(format!("nearest mechanism: {} (distance {:.2}{told})", first.name, first.distance))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what a client with this mechanism would show: every fourth exchange loses its first copy.
    fn shown(name: &str, rtt_ms: u64) -> Vec<Measured> {
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
                    Measured { begun, timeouts, answered: Some(since), named, is_named_again: false };
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
            let all = nearest(&shown(name, 300), marking_of(name));
            let own = all.iter().find(|nearness| nearness.name == name).unwrap();
            assert!(own.distance - all[0].distance < RESOLUTION, "{name}: {all:?}");
            assert!(own.distance < FAR, "{name}: {all:?}");
        }
    }

    #[test]
    fn mechanisms_that_differ_are_told_apart() {
        let all = nearest(&shown("default", 300), Marking::None);
        let cocoa = all.iter().find(|nearness| nearness.name == "cocoa").unwrap();
        assert!(cocoa.distance > all[0].distance + RESOLUTION, "{all:?}");
        assert!(described(&all).unwrap().contains("default"), "{all:?}");
    }

    #[test]
    fn without_a_timeout_nothing_is_said() {
        let quiet = Measured {
            begun: Instant::ZERO,
            timeouts: Vec::new(),
            answered: None,
            named: None,
            is_named_again: false,
        };
        assert_eq!(described(&nearest(&[quiet], Marking::None)), None);
    }

    #[test]
    fn mechanisms_with_another_marking_are_left_out() {
        let all = nearest(&shown("ebb", 300), Marking::TokenOnRetransmit);
        assert!(all.len() >= 2 && all.iter().all(|one| marking_of(one.name) == Marking::TokenOnRetransmit));
        assert!(nearest(&shown("ebb", 300), Marking::Token).is_empty(), "no mechanism has it by default");
    }

    #[test]
    fn an_answer_to_an_early_copy_is_believed_from_a_peer_that_answers_each() {
        let measured = Measured {
            begun: Instant::ZERO,
            timeouts: vec![Duration::from_millis(50), Duration::from_millis(75)],
            answered: None,
            named: Some(0),
            is_named_again: true,
        };
        let since = Duration::from_millis(1_200);
        assert_eq!(measured.sample(since, false).answered, None);
        assert_eq!(measured.sample(since, true).answered, Some(Answer { ordinal: 0, since }));
        let last = Measured { named: Some(2), ..measured };
        let answer = Answer { ordinal: 2, since: Duration::from_millis(1_075) };
        assert_eq!(last.sample(since, false).answered, Some(answer));
    }
}
