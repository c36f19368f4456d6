//! The measures of a capture that a scenario is fitted to.

use coapace_run::measured::quantile;

use std::collections::BTreeMap;

use super::fates::{Fate, Fates, Transmission};
use super::traffic::Traffic;

/// The quantiles of round-trip times that are compared.
pub const QUANTILES: [f64; 7] = [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99];

/// The number of consecutive answers from whose arrivals a rate is computed.
const TRAIN: usize = 30;

/// Measures of the traffic of clients.
#[derive(Clone, Debug)]
pub struct TrafficMeasures {
    /// The [`QUANTILES`] of round-trip times in seconds.
    pub rtt_s: [f64; 7],
    /// The share of transmissions that were lost, or whose answers were lost.
    pub loss: f64,
    /// The share of transmissions lost while round trips were at most their 30 % quantile.
    pub quiet_loss: f64,
    /// The share of transmissions lost while round trips were at least their 70 % quantile.
    pub busy_loss: f64,
    /// The correlation of the losses of consecutive transmissions.
    pub burstiness: f64,
    /// The mean number of transmissions per exchange.
    pub copies: f64,
    /// The share of spurious transmissions: an earlier copy of the exchange was answered, then or later.
    pub spurious: f64,
    /// Quantiles (25, 50 and 90 %) of the time from the first request of a client to the end of its last exchange, in seconds.
    pub completion_s: [f64; 3],
    /// The rate at which answers arrived when they arrived fastest, in bits per second of IP packets.
    pub peak_bps: f64,
    /// The number of transmissions whose fate is known.
    pub known: usize,
    /// The number of clients.
    pub clients: usize,
}

impl TrafficMeasures {
    /// Computes the measures from traffic and the fates of its transmissions.
    pub fn of(traffic: &Traffic, fates: &Fates) -> Self {
        let mut sorted: Vec<f64> = fates.round_trips().collect();
        sorted.sort_by(f64::total_cmp);
        let rtt_s = QUANTILES.map(|share| quantile(&sorted, share).unwrap_or(f64::NAN));
        let known: Vec<(f64, bool)> = fates
            .all
            .iter()
            .filter(|it| it.fate != Fate::Unknown)
            // A lost packet has no round-trip time, so the times of its neighbours show how long queues were.
            .map(|it| (fates.around.at(it.at), it.fate == Fate::Lost))
            .collect();
        let mut levels: Vec<f64> = known.iter().map(|(level, _)| *level).collect();
        levels.sort_by(f64::total_cmp);
        // Full buffers lose packets while round trips are long, bad links at any time. So losses are counted at both ends.
        let low = quantile(&levels, 0.3).unwrap_or(0.0);
        let high = quantile(&levels, 0.7).unwrap_or(f64::INFINITY);
        let losses: Vec<f64> = known.iter().map(|(_, lost)| f64::from(u8::from(*lost))).collect();
        let share = |is_meant: &dyn Fn(f64) -> bool| {
            let own = known.iter().filter(|(level, _)| is_meant(*level));
            mean(own.map(|(_, lost)| f64::from(u8::from(*lost))))
        };
        let exchanges = traffic.of_clients().count();
        Self {
            rtt_s,
            loss: mean(losses.iter().copied()),
            quiet_loss: share(&|level| level <= low),
            busy_loss: share(&|level| level >= high),
            // The losses are in the order of departure, so neighbours left one after the other.
            burstiness: correlation(&losses),
            copies: fates.all.len() as f64 / exchanges.max(1) as f64,
            spurious: spurious(fates.all.iter()) as f64 / fates.all.len().max(1) as f64,
            completion_s: completions(traffic),
            peak_bps: peak(traffic),
            known: known.len(),
            clients: traffic.starts.clients as usize,
        }
    }

    /// Returns the mean of each measure over several runs; `None` without a run.
    pub fn mean(all: &[Self]) -> Option<Self> {
        let first = all.first()?;
        let each = |value: &dyn Fn(&Self) -> f64| mean(all.iter().map(value));
        Some(Self {
            rtt_s: std::array::from_fn(|place| each(&|it| it.rtt_s[place])),
            loss: each(&|it| it.loss),
            quiet_loss: each(&|it| it.quiet_loss),
            busy_loss: each(&|it| it.busy_loss),
            burstiness: each(&|it| it.burstiness),
            copies: each(&|it| it.copies),
            spurious: each(&|it| it.spurious),
            completion_s: std::array::from_fn(|place| each(&|it| it.completion_s[place])),
            peak_bps: each(&|it| it.peak_bps),
            // Runs of one scenario are about equally large, so the first one shows the size of a sample.
            known: first.known,
            clients: first.clients,
        })
    }

    /// Returns the distance between these measures and `other`: a mean of weighted squared differences. Each difference
    /// is divided by about the smallest one that is noticeable.
    pub fn distance(&self, other: &Self) -> f64 {
        let ratio = |a: f64, b: f64, unit: f64| {
            let square = ((a.max(1e-6) / b.max(1e-6)).ln() / unit).powi(2);
            // One measure that is far off must not outweigh all others.
            if square.is_finite() { square.min(1e4) } else { 1e4 }
        };
        let share = |a: f64, b: f64| {
            // The error of a share among `of` transmissions, plus one percentage point.
            let of = self.known.min(other.known).max(1) as f64;
            let error = (a.max(b).max(0.01) * (1.0 - a.min(0.99)) / of).sqrt() * 1.5 + 0.01;
            ((a - b) / error).powi(2)
        };
        let mut squares = Vec::new();
        for (place, weight) in [(1, 0.5), (2, 1.0), (3, 2.0), (4, 1.0), (5, 1.0)] {
            squares.push(weight * ratio(self.rtt_s[place], other.rtt_s[place], 0.05));
        }
        // Behind a long queue, only the spread shows jitter. Jitter keeps clients from acting in step.
        for (low, high) in [(2, 4), (3, 5)] {
            let spread = |it: &Self| (it.rtt_s[high] - it.rtt_s[low]).max(2e-3 * it.rtt_s[3]);
            squares.push(ratio(spread(self), spread(other), 0.2).min(25.0));
        }
        squares.push(share(self.loss, other.loss) * 2.0);
        squares.push(share(self.quiet_loss, other.quiet_loss) * 0.5);
        squares.push(share(self.busy_loss, other.busy_loss) * 0.5);
        squares.push(((self.burstiness - other.burstiness) / 0.05).powi(2) * 0.5);
        squares.push(share(self.spurious, other.spurious));
        squares.push(ratio(self.copies, other.copies, 0.03));
        for place in 0..3 {
            // The times of few clients that wait long after losses say little.
            let chance = (self.copies - 1.0).min(1.0) * 0.5 / (self.clients.max(1) as f64).sqrt();
            squares.push(ratio(self.completion_s[place], other.completion_s[place], 0.05 + chance));
        }
        squares.push(ratio(self.peak_bps, other.peak_bps, 0.1) * 0.5);
        squares.iter().sum::<f64>() / squares.len() as f64
    }
}

/// Returns how many of these transmissions are spurious: an earlier copy of the exchange was answered, then or later.
pub fn spurious<'a>(transmissions: impl Iterator<Item = &'a Transmission> + Clone) -> u64 {
    let mut first_answered: BTreeMap<u32, u8> = BTreeMap::new();
    for it in transmissions.clone().filter(|it| matches!(it.fate, Fate::Answered(..))) {
        let first = first_answered.entry(it.exchange).or_insert(it.copy);
        *first = it.copy.min(*first);
    }
    let is_spurious =
        |exchange: &u32, copy: u8| first_answered.get(exchange).is_some_and(|first| copy > *first);
    transmissions.filter(|it| is_spurious(&it.exchange, it.copy)).count() as u64
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0u64), |(sum, count), value| (sum + value, count + 1));
    if count == 0 { 0.0 } else { sum / count as f64 }
}

/// Returns the correlation of each number with the next one; 0 if all are equal.
pub fn correlation(values: &[f64]) -> f64 {
    let mean = mean(values.iter().copied());
    let variance: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let common: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    if variance > 0.0 { common / variance } else { 0.0 }
}

/// Returns the 25, 50 and 90 % quantiles of the time that clients took for all their exchanges, in seconds.
fn completions(traffic: &Traffic) -> [f64; 3] {
    let mut of_client: BTreeMap<u32, (coapace_sim::Time, coapace_sim::Time)> = BTreeMap::new();
    for exchange in traffic.of_clients() {
        let began = exchange.began_at();
        let last = exchange.copies.last().map_or(began, |copy| copy.at);
        let ended = exchange.ended_at().unwrap_or(last);
        let span = of_client.entry(exchange.client).or_insert((began, ended));
        *span = (span.0.min(began), span.1.max(ended));
    }
    let mut times: Vec<f64> =
        of_client.values().map(|(began, ended)| (*ended - *began).as_secs_f64()).collect();
    times.sort_by(f64::total_cmp);
    [0.25, 0.5, 0.9].map(|share| quantile(&times, share).unwrap_or(0.0))
}

/// Returns the 95 % quantile of the rates at which [`TRAIN`] consecutive answers arrived, in bits per second; 0 if
/// there are fewer answers.
fn peak(traffic: &Traffic) -> f64 {
    let mut arrivals: Vec<(coapace_sim::Time, u32)> = Vec::new();
    for exchange in traffic.of_clients() {
        arrivals.extend(exchange.answers.iter().map(|answer| (answer.at, exchange.response_bytes)));
    }
    arrivals.sort_unstable();
    let mut rates: Vec<f64> = arrivals
        .windows(TRAIN + 1)
        .map(|train| {
            // The first answer only begins the interval. Several answers may have one time.
            let bytes: u32 = train.iter().skip(1).map(|arrival| arrival.1).sum();
            f64::from(bytes) * 8.0 / (train[TRAIN].0 - train[0].0).as_secs_f64().max(1e-9)
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    quantile(&rates, 0.95).unwrap_or(0.0)
}
