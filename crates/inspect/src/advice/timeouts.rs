//! The timeouts of the clients of a capture, and the mechanism that they are closest to.

use std::collections::BTreeMap;

use coapace_control::{Controller, Cue, Draw, Duration, Instant, Mechanism, Outcome, Sample};
use coapace_run::measured::quantile;
use coapace_scenario::naming;
use coapace_sim::{Span, Time};
use serde::Serialize;

use super::exchanges::Exchange;
use super::traffic::Traffic;

/// Timeouts that clients used, as the time from a copy to the next shows them.
#[derive(Clone, Debug, Serialize)]
pub struct Timeouts {
    /// The number of exchanges with a retransmission.
    pub count: usize,
    /// The shortest time from the first copy to the second, in seconds.
    pub first_min_s: f64,
    /// The median of it.
    pub first_p50_s: f64,
    /// The longest.
    pub first_max_s: f64,
    /// The median ratio of one time to the time before; `None` without a second retransmission.
    pub growth: Option<f64>,
    /// The most retransmissions of an exchange.
    pub retransmissions: usize,
    /// The mechanism whose timeouts at the same moments are closest, as it is named on the command line.
    pub nearest: String,
    /// The mean difference to it, as a factor: 1.1 is 10 % more or less.
    pub difference: f64,
}

/// The exchanges that are looked at to find the nearest mechanism.
const ENOUGH: usize = 20_000;

impl Timeouts {
    /// Measures the timeouts; `None` if there is no retransmission.
    pub fn of(traffic: &Traffic) -> Option<Self> {
        let all = || traffic.of_clients().filter(|it| it.is_confirmable && it.copies.len() > 1);
        let waits = |it: &Exchange| -> Vec<f64> {
            it.copies.windows(2).map(|pair| (pair[1].at - pair[0].at).as_secs_f64()).collect()
        };
        let sorted = |values: &mut dyn Iterator<Item = f64>| {
            let mut values: Vec<f64> = values.collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let firsts = sorted(&mut all().filter_map(|it| waits(it).first().copied()));
        let ratios = sorted(&mut all().flat_map(|it| {
            let waits = waits(it);
            waits.windows(2).map(|pair| pair[1] / pair[0].max(1e-9)).collect::<Vec<_>>()
        }));
        let first_min_s = *firsts.first()?;
        let (nearest, difference) = nearest(traffic, &firsts)?;
        Some(Self {
            count: firsts.len(),
            first_min_s,
            first_p50_s: quantile(&firsts, 0.5)?,
            first_max_s: *firsts.last()?,
            growth: quantile(&ratios, 0.5),
            retransmissions: all().map(|it| it.copies.len() - 1).max().unwrap_or(0),
            nearest,
            difference: difference.exp(),
        })
    }
}

/// Returns the mechanism whose timeouts differ least from those of the capture, and the mean absolute logarithm of their ratio.
fn nearest(traffic: &Traffic, firsts: &[f64]) -> Option<(String, f64)> {
    let mut named: Vec<(String, Mechanism)> =
        naming::mechanisms().entries().map(|entry| (entry.name.to_owned(), entry.mechanism)).collect();
    // RFC 7252 with another ACK_TIMEOUT: first timeouts lie between it and one and a half of it.
    if let Some(low) = quantile(firsts, 0.02) {
        let label = format!("default:ack_timeout={}ms", (low * 1e3).round());
        if let Ok(mechanism) = naming::parse_mechanism(&label) {
            named.insert(1.min(named.len()), (label, mechanism));
        }
    }
    let mut of_life: BTreeMap<(u32, u32), Vec<&Exchange>> = BTreeMap::new();
    for exchange in traffic.of_clients().filter(|it| it.is_confirmable).take(ENOUGH) {
        of_life.entry((exchange.client, exchange.life)).or_default().push(exchange);
    }
    let distance = |mechanism: &Mechanism| {
        let (mut sum, mut count) = (0.0, 0u32);
        for own in of_life.values() {
            follow(mechanism, own, &mut |would, was| {
                sum += (would.max(1e-6) / was.max(1e-6)).ln().abs();
                count += 1;
            });
        }
        if count == 0 { f64::INFINITY } else { sum / f64::from(count) }
    };
    let mut distances = named.iter().map(|(label, mechanism)| (label.clone(), distance(mechanism)));
    // The first of several that are about as near: the plain one.
    let first = distances.next()?;
    Some(distances.fold(first, |best, next| if next.1 < best.1 * 0.97 { next } else { best }))
}

/// Replays one client's exchanges through `mechanism`, and calls `each(armed, waited)` for every retransmission, in seconds.
/// Dither is fixed at its midpoint.
fn follow(mechanism: &Mechanism, exchanges: &[&Exchange], each: &mut dyn FnMut(f64, f64)) {
    let mut state = mechanism.state();
    let Some(origin) = exchanges.first().map(|first| first.began_at()) else { return };
    let cue = |at: Time| Cue { now: instant(at - origin), draw: Draw::from_bits(1 << 31), outstanding: 1 };
    for exchange in exchanges {
        let (mut own, mut timeout) = mechanism.on_start(&mut state, cue(exchange.began_at()));
        for pair in exchange.copies.windows(2) {
            each(timeout.as_micros() as f64 / 1e6, (pair[1].at - pair[0].at).as_secs_f64());
            timeout = mechanism.on_retransmit(&mut state, &mut own, cue(pair[1].at));
        }
        let last = exchange.copies.last().map_or(Time::ZERO, |copy| copy.at);
        let (outcome, at) = match exchange.ended_at() {
            Some(at) if at >= last => {
                let since = |copy: Time| Duration::from_micros((at - copy).as_nanos() / 1_000);
                let retransmits = (exchange.copies.len() - 1).min(254) as u8;
                let sample = Sample::unmarked(since(exchange.began_at()), since(last), retransmits);
                (Outcome::Acked(sample), at)
            }
            _ => (Outcome::GivenUp, last),
        };
        mechanism.on_end(&mut state, own, outcome, cue(at));
    }
}

/// Returns a moment so long after the first. It is not 0, which mechanisms take for never.
pub(super) fn instant(since: Span) -> Instant {
    Instant::from_micros(1_000_000 + since.as_nanos() / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::simulated;
    use coapace_run::contender::Contender;
    use coapace_scenario::Scenario;

    fn timeouts(mechanism: &str) -> Timeouts {
        let set =
            [("errors", "high"), ("clients", "20")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let scenario = Scenario::load("nb-iot", &set).unwrap();
        Timeouts::of(&simulated::traffic(&scenario, &Contender::parse(mechanism).unwrap(), 3)).unwrap()
    }

    #[test]
    fn the_timer_of_rfc_7252_is_recognised() {
        let plain = timeouts("default");
        assert_eq!(plain.nearest, "default");
        assert!(plain.first_min_s >= 2.0 && plain.first_max_s <= 3.0 && plain.difference < 1.2, "{plain:?}");
        assert!((plain.growth.unwrap() - 2.0).abs() < 0.01);
        let slow = timeouts("default:ack_timeout=5s");
        assert!(slow.nearest.starts_with("default:ack_timeout=50") && slow.difference < 1.2, "{slow:?}");
    }

    #[test]
    fn adaptive_mechanisms_are_recognised() {
        for name in ["cocoa", "fasor", "linux-rto"] {
            assert_eq!(timeouts(name).nearest, name);
        }
    }
}
