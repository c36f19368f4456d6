//! The mechanism that a client's timeouts are nearest to.

use coapace_control::{Controller, Cue, Draw, Duration, Instant, Mechanism, Outcome, REGISTRY, Sample};

/// One exchange as it was measured.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// The departure of the first copy.
    pub(crate) begun: Instant,
    /// The times between copies, which are the timeouts that passed.
    pub(crate) timeouts: Vec<Duration>,
    /// The time from the first copy to the answer, if there was one.
    pub(crate) answered: Option<Duration>,
}

/// A mechanism and the distance of what was measured from what it would have armed.
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

/// Replays the exchanges through every mechanism of the registry. Returns them with the nearest first; nothing if no timeout was
/// measured.
pub(crate) fn nearest(exchanges: &[Measured]) -> Vec<Nearness> {
    let replayed = REGISTRY.iter().filter_map(|entry| {
        Some(Nearness { name: entry.name, distance: distance(&entry.mechanism, exchanges)? })
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

fn distance(mechanism: &Mechanism, exchanges: &[Measured]) -> Option<f64> {
    const MIDDLE: Draw = Draw::from_bits(1 << 31);
    const TOP: Draw = Draw::from_bits(u32::MAX);
    let mut state = mechanism.state();
    let mut score = Score::default();
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
            Some(since_first) => {
                let since_last = since_first - now.since(measured.begun);
                Outcome::Acked(Sample::unmarked(since_first, since_last, measured.timeouts.len() as u8))
            }
            None => Outcome::GivenUp,
        };
        let end = measured.answered.map_or(now, |since_first| measured.begun + since_first);
        mechanism.on_end(&mut state, exchange, outcome, cue(end, MIDDLE));
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
                let sample = Sample::unmarked(since, rtt, timeouts.len() as u8);
                mechanism.on_end(&mut state, exchange, Outcome::Acked(sample), cue(now));
                Measured { begun, timeouts, answered: Some(since) }
            })
            .collect()
    }

    #[test]
    fn a_mechanism_is_nearest_to_itself() {
        for name in ["default", "cocoa", "peak-hopper", "coap-eifel"] {
            let all = nearest(&shown(name, 300));
            let own = all.iter().find(|nearness| nearness.name == name).unwrap();
            assert!(own.distance - all[0].distance < RESOLUTION, "{name}: {all:?}");
            assert!(own.distance < FAR, "{name}: {all:?}");
        }
    }

    #[test]
    fn mechanisms_that_differ_are_told_apart() {
        let all = nearest(&shown("default", 300));
        let cocoa = all.iter().find(|nearness| nearness.name == "cocoa").unwrap();
        assert!(cocoa.distance > all[0].distance + RESOLUTION, "{all:?}");
        assert!(described(&all).unwrap().contains("default"), "{all:?}");
    }

    #[test]
    fn without_a_timeout_nothing_is_said() {
        let quiet = Measured { begun: Instant::ZERO, timeouts: Vec::new(), answered: None };
        assert_eq!(described(&nearest(&[quiet])), None);
    }
}
