//! The clients of a capture and what they ask.

use std::collections::BTreeMap;

use coapace_lab::results::quantile;
use coapace_sim::Time;

use super::exchanges::Exchange;
use super::traffic::Traffic;

/// The clients and their requests, as far as a scenario needs them.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The number of clients.
    pub clients: u32,
    /// The number of servers.
    pub servers: u32,
    /// The exchanges of a client: the median.
    pub exchanges: u32,
    /// Whether all clients have as many exchanges, to one.
    pub is_even: bool,
    /// The pause between an answer and the next request in seconds: the median.
    pub pause_s: f64,
    /// Whether all pauses are about as long as the median.
    pub is_pause_constant: bool,
    /// The time between two requests in seconds, if it is constant and pauses are not.
    pub interval_s: Option<f64>,
    /// The time over which the first requests of clients are spread, in seconds.
    pub spread_s: f64,
    /// The most exchanges that a client had open at a time.
    pub outstanding: u16,
    /// The most retransmissions of an exchange.
    pub retransmissions: u8,
    /// Exchanges that were given up: neither answered nor open at the end.
    pub given_up: u64,
    /// The bytes of a request and of its answer as IP packets: the medians.
    pub packet_bytes: [u32; 2],
    /// The bytes of the token: the median.
    pub token_bytes: u8,
    /// Whether the addresses are those of IPv4.
    pub is_ipv4: bool,
    /// The share of separate responses.
    pub separate: f64,
}

/// Pauses of clients that differ by less than this share, or 1 ms, are constant.
const CONSTANT: f64 = 0.05;

impl Workload {
    /// Describes the clients of a capture; `None` if there are none.
    pub fn of(traffic: &Traffic) -> Option<Self> {
        let mut of_pair: BTreeMap<u32, Vec<&Exchange>> = BTreeMap::new();
        for exchange in traffic.of_clients().filter(|exchange| exchange.is_confirmable) {
            of_pair.entry(exchange.pair).or_default().push(exchange);
        }
        let first_pair = *of_pair.keys().next()? as usize;
        let all = || of_pair.values().flatten();
        let mut servers: Vec<_> = of_pair.keys().map(|pair| traffic.pairs[*pair as usize].server).collect();
        servers.sort_unstable();
        servers.dedup();
        let mut counts: Vec<f64> = of_pair.values().map(|own| own.len() as f64).collect();
        counts.sort_by(f64::total_cmp);
        let (mut rests, mut periods, mut outstanding) = (Vec::new(), Vec::new(), 1);
        for own in of_pair.values() {
            for pair in own.windows(2) {
                periods.push((pair[1].began_at() - pair[0].began_at()).as_secs_f64());
                if let Some(ended) = pair[0].ended_at().filter(|ended| *ended <= pair[1].began_at()) {
                    rests.push((pair[1].began_at() - ended).as_secs_f64());
                }
            }
            outstanding = outstanding.max(most_open(own));
        }
        let starts: Vec<Time> = of_pair.values().map(|own| own[0].began_at()).collect();
        let (first, last) = (starts.iter().min()?, starts.iter().max()?);
        let (pause_s, is_pause_constant) = middle(&mut rests);
        let (interval_s, is_interval_constant) = middle(&mut periods);
        let median = |value: &dyn Fn(&Exchange) -> f64| {
            let mut values: Vec<f64> = all().map(|it| value(it)).filter(|value| *value >= 0.0).collect();
            values.sort_by(f64::total_cmp);
            quantile(&values, 0.5).unwrap_or(0.0)
        };
        let answered =
            |it: &Exchange| if it.response_bytes > 0 { f64::from(it.response_bytes) } else { -1.0 };
        let end = traffic.span.map_or(Time::ZERO, |(_, end)| end);
        let is_given_up = |it: &&&Exchange| {
            let last = it.copies.last().map_or(end, |copy| copy.at);
            let before = it.copies.iter().rev().nth(1).map_or(it.began_at(), |copy| copy.at);
            it.ended_at().is_none() && end > last + (last - before) * 2
        };
        let separate = all().filter(|it| {
            it.response_at.is_some_and(|at| it.answers.first().is_some_and(|answer| answer.at < at))
        });
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts and bytes")]
        Some(Self {
            clients: of_pair.len() as u32,
            servers: servers.len() as u32,
            exchanges: quantile(&counts, 0.5).unwrap_or(1.0).round() as u32,
            is_even: counts.last()? - counts.first()? <= 1.0,
            pause_s,
            is_pause_constant,
            interval_s: Some(interval_s).filter(|_| is_interval_constant && !is_pause_constant),
            spread_s: (*last - *first).as_secs_f64(),
            outstanding,
            retransmissions: all().map(|it| it.copies.len() - 1).max().unwrap_or(0) as u8,
            given_up: all().filter(is_given_up).count() as u64,
            packet_bytes: [median(&|it| f64::from(it.request_bytes)), median(&answered)]
                .map(|bytes| bytes as u32),
            token_bytes: median(&|it| f64::from(it.token_bytes)) as u8,
            is_ipv4: traffic.pairs[first_pair].server.is_ipv4(),
            separate: separate.count() as f64 / all().count().max(1) as f64,
        })
    }
}

/// Returns the median of times, and whether all but one in ten are close to it.
fn middle(times: &mut [f64]) -> (f64, bool) {
    times.sort_by(f64::total_cmp);
    let at = |share| quantile(times, share).unwrap_or(0.0);
    let (low, median, high) = (at(0.05), at(0.5), at(0.95));
    (median, high - low <= (CONSTANT * median).max(1e-3))
}

/// Returns the most exchanges of a client that were open at a time.
fn most_open(own: &[&Exchange]) -> u16 {
    let mut changes: Vec<(Time, i32)> = Vec::new();
    for exchange in own {
        let began = exchange.began_at();
        let last = exchange.copies.last().map_or(began, |copy| copy.at);
        changes.push((began, 1));
        changes.push((exchange.ended_at().unwrap_or(last).max(began), -1));
    }
    // An exchange that ends makes room for one that begins at that moment.
    changes.sort_unstable();
    let (mut open, mut most) = (0, 1);
    for (_, change) in changes {
        open += change;
        most = most.max(open);
    }
    u16::try_from(most).unwrap_or(1_000).min(1_000)
}
