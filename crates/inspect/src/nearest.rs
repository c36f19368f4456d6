//! Finds the mechanism nearest to the timeouts of clients, for examinations and captures alike.

use std::fmt;
use std::ops::Range;

use coapace_control::{
    Answer, Controller, Cue, DefaultTimer, Dither, Draw, Duration, Instant, Marking, Mechanism, Outcome,
    Sample, State,
};
use coapace_run::measured::quantile;
use coapace_scenario::naming;
use serde::Serialize;

/// The start time of replays. It is not 0, because mechanisms take a time of 0 as a sign that an event has never
/// happened.
pub(crate) const ORIGIN: Instant = Instant::from_micros(1_000_000);

/// An exchange of a client, as it was measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct MeasuredExchange {
    /// The departure of the first copy.
    pub(crate) begun: Instant,
    /// The times between copies, which are the expired timeouts.
    pub(crate) timeouts: Vec<Duration>,
    /// The time from the first copy to the answer, if it was answered.
    pub(crate) answered: Option<Duration>,
    /// The ordinal of the copy that was answered, if its marking shows it.
    pub(crate) named: Option<u8>,
    /// Whether another answer identified another copy, which shows the client that each copy has its own answer.
    pub(crate) is_named_again: bool,
}

impl MeasuredExchange {
    /// Makes an exchange from the times of its copies, of which there is at least one, and of its answers. Each answer
    /// has the ordinal of the answered copy, if it is known. Times ascend, and count from any origin.
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

    /// Returns the sample that a client gets from an answer that comes `since_first` after the first copy.
    /// `answers_each` is whether the client knows that each copy has its own answer. If not, an answer to an early copy
    /// may be the repetition that RFC 7252 §4.5 allows, and is not used.
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

/// Returns how the copies of a message are marked: by an option if one has it, else by Message IDs if they differ between the
/// first and the last copy, else by tokens.
pub(crate) fn marking(has_option: bool, [first, last]: [u16; 2], by_token: Marking) -> Marking {
    if has_option {
        Marking::Option
    } else if first != last {
        Marking::FreshMessageId
    } else {
        by_token
    }
}

/// The mechanism nearest to the timeouts of clients.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Nearest {
    /// The mechanism, as named on the command line.
    pub mechanism: String,
    /// The distance of the timeouts from the mechanism's timeouts: the sum of two terms. The first is how far the
    /// clients' times are outside of the range that the mechanism draws timeouts from. The second is how unevenly
    /// timeouts are distributed within this range. Both are natural logarithms of ratios, so 0.1 is about 10 %.
    pub distance: f64,
    /// The other mechanisms whose distance differs from the distance of `mechanism` only by chance, the nearest first.
    pub alike: Vec<String>,
    /// The next mechanism, whose distance is clearly larger, and its distance; `None` without such a mechanism.
    pub next: Option<(String, f64)>,
    /// The stacks that ship the mechanism as their timer, by the names of their presets of `default`.
    pub stacks: Vec<String>,
}

/// Mechanisms whose distances differ by less than this are considered alike.
const RESOLUTION: f64 = 0.04;

/// The distance above which a mechanism does not explain the timeouts.
const FAR: f64 = 0.15;

/// The share of first timeouts that may lie below the ACK_TIMEOUT of a fitted `default`.
const BELOW: f64 = 0.02;

/// The unevenness that chance explains, times the square root of the number of timeouts. It is subtracted from the
/// measured unevenness. For uniform random numbers the product is 0.31 on average.
const CHANCE: f64 = 0.45;

/// The unevenness of a timer with ticks, whose timeouts may lie anywhere within their range. It is not 0, so that a
/// mechanism that explains them more closely is nearer.
const VAGUE: f64 = 0.04;

/// The presets of `default` that are not timers of stacks.
const NO_STACKS: [&str; 1] = ["rfc7252"];

impl Nearest {
    /// Returns whether `mechanism` is the nearest, or among those considered alike.
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
        let Self { mechanism, distance, alike, next, stacks } = self;
        if !self.is_near() {
            return write!(f, "no mechanism is near; the nearest is {mechanism} (distance {distance:.2})");
        }
        write!(f, "nearest mechanism: {mechanism} (distance {distance:.2}")?;
        match next {
            _ if !alike.is_empty() => write!(f, ", not distinct from {}", alike.join(", "))?,
            Some((next, distance)) => write!(f, ", the next is {next} ({distance:.2})")?,
            None => {}
        }
        write!(f, ")")?;
        if !stacks.is_empty() {
            write!(f, "; the timer of {}", stacks.join(", "))?;
        }
        Ok(())
    }
}

/// Returns the mechanism nearest to the timeouts of clients; `None` if no timeout passed, or no mechanism has this
/// marking. The exchanges are replayed through every known mechanism that marks its copies as these clients do, through
/// the timers of stacks, and through `default` with an ACK_TIMEOUT that is fitted to the first timeouts. A client that
/// restarted without its estimates counts as another client.
pub(crate) fn nearest(clients: &[Vec<MeasuredExchange>], marking: Marking) -> Option<Nearest> {
    let marks = |mechanism: &Mechanism| mechanism.limits(&mechanism.state()).marking;
    let candidates = naming::mechanisms().entries().filter(|entry| marks(&entry.mechanism) == marking);
    let mut all: Vec<(String, f64)> = candidates
        .filter_map(|entry| Some((entry.name.to_owned(), distance(&entry.mechanism, clients)?)))
        .collect();
    // One of many timers of stacks may be a little nearer by chance, and a fitted value is a little nearer by itself. So they count only
    // if they are distinctly nearer than everything simpler.
    let plain = all.iter().find(|(name, _)| name == "default").map(|(_, distance)| *distance);
    if let Some(plain) = plain {
        let of_stacks = stacks().filter(|(_, timer)| *timer != DefaultTimer::DEFAULT);
        let near: Vec<_> = of_stacks
            .filter_map(|(name, timer)| {
                let distance = distance(&Mechanism::Default(timer), clients)?;
                (distance + RESOLUTION < plain).then(|| (format!("default:preset={name}"), distance))
            })
            .collect();
        let simpler = near.iter().map(|(_, distance)| *distance).fold(plain, f64::min);
        all.extend(near);
        all.extend(fitted(clients).filter(|(_, distance)| distance + RESOLUTION < simpler));
    }
    all.sort_by(|one, other| one.1.total_cmp(&other.1));
    let mut behind = all.into_iter().peekable();
    let (mechanism, distance) = behind.next()?;
    let mut alike = Vec::new();
    // The list is sorted, so the first one that is farther by more than chance ends the equals.
    while let Some((name, _)) = behind.next_if(|other| other.1 - distance < RESOLUTION) {
        alike.push(name);
    }
    let stacks = timers_of(&mechanism);
    Some(Nearest { mechanism, distance, alike, next: behind.next(), stacks })
}

/// Returns the presets of `default` that are the timers of stacks.
fn stacks() -> impl Iterator<Item = (&'static str, DefaultTimer)> {
    let presets =
        DefaultTimer::PRESETS.iter().map(|preset| preset.name).filter(|name| !NO_STACKS.contains(name));
    presets.filter_map(|name| {
        let mut timer = DefaultTimer::DEFAULT;
        timer.set("preset", name).ok().map(|()| (name, timer))
    })
}

/// Returns the names of the stacks whose timer is this mechanism.
fn timers_of(mechanism: &str) -> Vec<String> {
    let Ok(Mechanism::Default(own)) = naming::parse_mechanism(mechanism) else { return Vec::new() };
    stacks().filter(|(_, timer)| *timer == own).map(|(name, _)| name.to_owned()).collect()
}

/// Returns the name of `default` with an ACK_TIMEOUT inferred from the first timeouts, and its distance; `None` without
/// a timeout.
fn fitted(clients: &[Vec<MeasuredExchange>]) -> Option<(String, f64)> {
    let firsts = clients.iter().flatten().filter_map(|one| one.timeouts.first());
    let mut firsts: Vec<f64> = firsts.map(|timeout| timeout.as_micros() as f64 / 1e3).collect();
    firsts.sort_by(f64::total_cmp);
    let name = format!("default:ack_timeout={}ms", quantile(&firsts, BELOW)?.round());
    let distance = distance(&naming::parse_mechanism(&name).ok()?, clients)?;
    Some((name, distance))
}

/// The deviations of clients' timeouts from the timeouts of one mechanism, collected by a replay.
#[derive(Default)]
struct Score {
    /// Whether the mechanism's first timeouts last until the next tick. Exchanges often begin just after a tick, so
    /// these timeouts are not spread evenly.
    waits_for_ticks: bool,
    /// The number of timeouts that were compared.
    count: usize,
    /// The sum of the logarithms of the ratios by which timeouts lie outside of their ranges.
    outside: f64,
    /// The places of timeouts within their ranges, from 0 to 1; none for a timeout that is not random.
    places: Vec<f64>,
    /// The sum of the logarithmic widths of the ranges.
    width: f64,
    /// For answers that came later than the mechanism would have waited: the sum of the logarithms of the ratios of
    /// both times.
    hasty: f64,
}

impl Score {
    /// Compares a measured timeout with the timeouts that a mechanism arms, one for each random draw. Returns the range
    /// of the draws whose timeouts are nearest to the measured one, as places from 0 to 1.
    fn compare(&mut self, measured: Duration, armed: impl Fn(Draw) -> Duration) -> Range<f64> {
        let real = |time: Duration| time.as_micros().max(1) as f64;
        // Timeouts grow with the draw, so the least and the greatest draw bound them.
        let [at, low, high] = [measured, armed(Draw::ZERO), armed(draw_at(1.0))].map(real);
        self.count += 1;
        if high <= low {
            self.outside += (low / at).ln().max((at / high).ln()).max(0.0);
            return 0.5..0.5;
        }
        self.width += (high / low).ln();
        let linear = |place: f64| low + place * (high - low);
        // On a straight line each timeout has one draw. Otherwise, as with ticks, the draws that arm it are searched.
        let (nearest, places) = if (real(armed(draw_at(PROBE))) - linear(PROBE)).abs() < 0.01 * (high - low) {
            let place = ((at - low) / (high - low)).clamp(0.0, 1.0);
            (linear(place), place..place)
        } else {
            step(at, |place| real(armed(draw_at(place))))
        };
        self.outside += (nearest / at).ln().abs();
        // Equal timeouts are spread over all draws that arm them.
        let spread = (self.places.len() as f64 * GOLDEN).fract();
        self.places.push(places.start + spread * (places.end - places.start));
        places
    }

    /// Returns the mean distance of the timeouts from the mechanism; `None` if no timeout was compared.
    fn distance(mut self) -> Option<f64> {
        if self.count == 0 {
            return None;
        }
        let (count, random) = (self.count as f64, self.places.len() as f64);
        self.places.sort_by(f64::total_cmp);
        let even = |place: usize| (place as f64 + 0.5) / random;
        let sum: f64 = self.places.iter().enumerate().map(|(place, at)| (at - even(place)).abs()).sum();
        let uneven = match (self.waits_for_ticks, self.places.is_empty()) {
            (_, true) => 0.0,
            (true, false) => VAGUE,
            (false, false) => (sum / random - CHANCE / random.sqrt()).max(0.0),
        };
        Some((self.outside + self.hasty) / count + uneven * self.width / count)
    }
}

/// Returns the timeout nearest to `at`, and the range of draws that arm it, as places from 0 to 1. It is meant for a
/// mechanism that arms few different timeouts, as a timer with ticks does.
fn step(at: f64, armed: impl Fn(f64) -> f64) -> (f64, Range<f64>) {
    // The least place from which on a condition holds. Timeouts grow with the draw.
    let from = |is_beyond: &dyn Fn(f64) -> bool| {
        let (mut below, mut above) = (0.0, 1.0);
        // 32 halvings reach the resolution of a draw.
        for _ in 0..32 {
            let middle = f64::midpoint(below, above);
            if is_beyond(armed(middle)) { above = middle } else { below = middle }
        }
        above
    };
    let first = from(&|timeout| timeout >= at);
    // The draw just before may arm the last timeout below `at`, which may be nearer.
    let [one, other] = [armed(first), armed((first - 1e-6).max(0.0))];
    let nearest = if (one / at).ln().abs() <= (other / at).ln().abs() { one } else { other };
    (nearest, from(&|timeout| timeout >= nearest)..from(&|timeout| timeout > nearest))
}

/// The place of the draw that is tried to see whether timeouts grow with the draw evenly or in steps.
const PROBE: f64 = 0.3;

/// The golden ratio: fractions of its multiples are spread evenly.
const GOLDEN: f64 = 0.618_033_988_749_895;

/// Returns the random draw at a place, which goes from 0 for the least draw to 1 for the greatest.
#[allow(clippy::cast_sign_loss, reason = "a place is from 0 to 1")]
fn draw_at(place: f64) -> Draw {
    Draw::from_bits((place * f64::from(u32::MAX)) as u32)
}

/// Returns the distance of the clients' timeouts from the timeouts of `mechanism`, see [`Nearest::distance`];
/// `None` if no timeout was measured.
fn distance(mechanism: &Mechanism, clients: &[Vec<MeasuredExchange>]) -> Option<f64> {
    let waits_for_ticks = matches!(mechanism, Mechanism::Default(timer) if timer.dither == Dither::Phase);
    let mut score = Score { waits_for_ticks, ..Score::default() };
    for exchanges in clients {
        follow(mechanism, exchanges, &mut score);
    }
    score.distance()
}

/// Returns the draw within the range `places` with which the mechanism's later timeouts, too, are nearest to the
/// measured ones.
fn best_draw(mechanism: &Mechanism, state: State, measured: &MeasuredExchange, places: Range<f64>) -> Draw {
    const TRIES: u32 = 64;
    let later = measured.timeouts.get(1..).unwrap_or_default();
    if places.is_empty() || later.is_empty() {
        return draw_at(places.start);
    }
    let off = |draw: Draw| {
        let cue = Cue { now: measured.begun, draw, outstanding: 1 };
        let (mut state, mut now) = (state, measured.begun);
        let (mut exchange, _) = mechanism.on_start(&mut state, cue);
        let mut off = 0.0;
        for (passed, timeout) in measured.timeouts.iter().zip(later) {
            now = now + *passed;
            let armed = mechanism.on_retransmit(&mut state, &mut exchange, Cue { now, ..cue });
            off += (armed.as_micros().max(1) as f64 / timeout.as_micros().max(1) as f64).ln().abs();
        }
        off
    };
    let tried = |n: u32| {
        draw_at(places.start + (places.end - places.start) * (f64::from(n) + 0.5) / f64::from(TRIES))
    };
    (0..TRIES).map(tried).min_by(|one, other| off(*one).total_cmp(&off(*other))).unwrap_or_default()
}

/// Replays one client's exchanges through a mechanism, and adds the deviations to `score`.
fn follow(mechanism: &Mechanism, exchanges: &[MeasuredExchange], score: &mut Score) {
    const MIDDLE: Draw = Draw::from_bits(1 << 31);
    const TOP: Draw = Draw::from_bits(u32::MAX);
    let mut state = mechanism.state();
    // Copies with Message IDs of their own are different requests to a server, so each gets an answer.
    let mut answers_each = mechanism.limits(&state).marking == Marking::FreshMessageId;
    for measured in exchanges {
        let mut now = measured.begun;
        let cue = |now, draw| Cue { now, draw, outstanding: 1 };
        // Copies of the state give the bounds of each range. The state itself then gets the draw that is nearest to the measured
        // timeout.
        let armed = |draw| mechanism.on_start(&mut { state }, cue(now, draw)).1;
        let draw = if let Some(&timeout) = measured.timeouts.first() {
            let places = score.compare(timeout, armed);
            best_draw(mechanism, state, measured, places)
        } else {
            // No timeout passed, so the client's timeout was longer than this.
            let waited = measured.answered.unwrap_or(Duration::ZERO).as_micros().max(1) as f64;
            score.hasty += (waited / armed(TOP).as_micros().max(1) as f64).ln().max(0.0);
            MIDDLE
        };
        let (mut exchange, _) = mechanism.on_start(&mut state, cue(now, draw));
        for (place, &passed) in measured.timeouts.iter().enumerate() {
            now = now + passed;
            let armed = |draw| mechanism.on_retransmit(&mut { state }, &mut { exchange }, cue(now, draw));
            let next = measured.timeouts.get(place + 1);
            let draw = next.map_or(MIDDLE, |&timeout| draw_at(score.compare(timeout, armed).start));
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
mod tests;
