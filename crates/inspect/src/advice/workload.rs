//! The clients of a capture and their requests.

use std::collections::BTreeMap;

use coapace_run::measured::quantile;
use coapace_sim::Time;

use super::exchanges::CapturedExchange;
use super::lives::Starts;
use super::traffic::Traffic;

/// The properties of clients and requests that a scenario needs.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedWorkload {
    /// The number of clients.
    pub clients: u32,
    /// The number of servers.
    pub servers: u32,
    /// The restarts of clients.
    pub starts: Starts,
    /// The smallest and largest number of exchanges between restarts of a client; `None` if clients do not restart
    /// regularly.
    pub batch: Option<[u32; 2]>,
    /// The median number of exchanges of a client.
    pub exchanges: u32,
    /// Whether the clients' numbers of exchanges differ by at most one.
    pub is_even: bool,
    /// The median pause between an answer and the next request, in seconds.
    pub pause_s: f64,
    /// Whether all pauses are about as long as the median.
    pub is_pause_constant: bool,
    /// The time from one request to the next, in seconds; `None` if this time varies, or if the pauses
    /// (`pause_s`) are constant.
    pub interval_s: Option<f64>,
    /// The time from the first request of the first client to the first request of the last, in seconds.
    pub spread_s: f64,
    /// The maximum number of exchanges that a client had outstanding at a time.
    pub outstanding: u16,
    /// The maximum number of retransmissions of an exchange.
    pub retransmissions: u8,
    /// The number of exchanges that were given up: neither answered nor outstanding at the end.
    pub given_up: u64,
    /// The number of retransmissions after which an exchange is given up; `None` if none was given up.
    pub max_retransmit: Option<u8>,
    /// The median time from the first copy of an exchange to giving the exchange up, in seconds. The time is inferred
    /// from the next request; `None` if no next request shows it.
    pub gives_up_after_s: Option<f64>,
    /// The median lengths of a request and of its answer as IP packets, in bytes.
    pub packet_bytes: [u32; 2],
    /// The median length of the token, in bytes.
    pub token_bytes: u8,
    /// Whether the servers have IPv4 addresses.
    pub is_ipv4: bool,
    /// The share of responses that are separate.
    pub separate: f64,
}

/// ACK_TIMEOUT (RFC 7252 §4.8) in seconds.
const ACK_TIMEOUT_S: f64 = 2.0;

/// Pauses of clients count as constant if they differ by at most this share of the median, or by 1 ms.
const CONSTANT: f64 = 0.05;

impl ObservedWorkload {
    /// Returns whether clients give up clearly sooner than RFC 7252 would give up after one retransmission fewer than
    /// they make. The comparison is with one fewer, because a patient endpoint with short timeouts makes one more copy
    /// than MAX_RETRANSMIT (decision 0039), but waits only as long as RFC 7252.
    pub fn is_impatient(&self) -> bool {
        self.gives_up_after_s.zip(self.max_retransmit).is_some_and(|(after_s, retransmissions)| {
            after_s < 0.95 * ACK_TIMEOUT_S * (f64::from(retransmissions).exp2() - 1.0)
        })
    }

    /// Describes the clients of a capture; `None` if there are none.
    pub fn of(traffic: &Traffic) -> Option<Self> {
        let mut of_client: BTreeMap<u32, Vec<&CapturedExchange>> = BTreeMap::new();
        for exchange in traffic.of_clients().filter(|exchange| exchange.is_confirmable) {
            of_client.entry(exchange.client).or_default().push(exchange);
        }
        let all = || of_client.values().flatten();
        let server = |it: &CapturedExchange| traffic.pairs[it.pair as usize].server;
        let mut servers: Vec<_> = of_client.values().map(|own| server(own[0])).collect();
        servers.sort_unstable();
        servers.dedup();
        let mut counts: Vec<f64> = of_client.values().map(|own| own.len() as f64).collect();
        counts.sort_by(f64::total_cmp);
        let (mut rests, mut periods, mut outstanding) = (Vec::new(), Vec::new(), 1);
        for own in of_client.values() {
            // Across a step of the clock, the time between two exchanges is unknown.
            for pair in own.windows(2).filter(|pair| pair[0].steps == pair[1].steps) {
                periods.push((pair[1].began_at() - pair[0].began_at()).as_secs_f64());
                if let Some(ended) = pair[0].ended_at().filter(|ended| *ended <= pair[1].began_at()) {
                    rests.push((pair[1].began_at() - ended).as_secs_f64());
                }
            }
            outstanding = outstanding.max(most_open(own));
        }
        let starts: Vec<Time> = of_client.values().map(|own| own[0].began_at()).collect();
        let (first, last) = (starts.iter().min()?, starts.iter().max()?);
        let (pause_s, is_pause_constant) = middle(&mut rests);
        let (interval_s, is_interval_constant) = middle(&mut periods);
        let median = |value: &dyn Fn(&CapturedExchange) -> f64| {
            let mut values: Vec<f64> = all().map(|it| value(it)).filter(|value| *value >= 0.0).collect();
            values.sort_by(f64::total_cmp);
            quantile(&values, 0.5).unwrap_or(0.0)
        };
        // The median leaves out exchanges without an answer, which have no length.
        let answered =
            |it: &CapturedExchange| if it.response_bytes > 0 { f64::from(it.response_bytes) } else { -1.0 };
        let end = traffic.span.map_or(Time::ZERO, |(_, end)| end);
        let given_up: Vec<&CapturedExchange> = all().filter(|it| is_given_up(it, end)).copied().collect();
        let retransmissions = all().map(|it| it.copies.len() - 1).max().unwrap_or(0).min(100) as u8;
        let separate = all().filter(|it| {
            it.response_at.is_some_and(|at| it.answers.first().is_some_and(|answer| answer.at < at))
        });
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts and bytes")]
        Some(Self {
            clients: of_client.len() as u32,
            servers: servers.len() as u32,
            starts: traffic.starts,
            batch: of_lives(of_client.values()).filter(|_| traffic.starts.are_usual()),
            exchanges: quantile(&counts, 0.5).unwrap_or(1.0).round() as u32,
            is_even: counts.last()? - counts.first()? <= 1.0,
            pause_s,
            is_pause_constant,
            interval_s: Some(interval_s).filter(|_| is_interval_constant && !is_pause_constant),
            spread_s: (*last - *first).as_secs_f64(),
            outstanding,
            retransmissions,
            given_up: given_up.len() as u64,
            // An exchange that was answered may have needed more copies than the ones that were given up.
            max_retransmit: usual_retransmissions(&given_up).map(|usual| usual.max(retransmissions)),
            // With several open exchanges, the next request does not show when one of them was given up.
            gives_up_after_s: given_up_after(of_client.values(), end, pause_s).filter(|_| outstanding == 1),
            packet_bytes: [median(&|it| f64::from(it.request_bytes)), median(&answered)]
                .map(|bytes| bytes as u32),
            token_bytes: median(&|it| f64::from(it.token_bytes)) as u8,
            is_ipv4: servers.first()?.is_ipv4(),
            separate: separate.count() as f64 / all().count().max(1) as f64,
        })
    }
}

/// Returns the median of times, and whether at least nine in ten of the times are close to it.
fn middle(times: &mut [f64]) -> (f64, bool) {
    times.sort_by(f64::total_cmp);
    let at = |share| quantile(times, share).unwrap_or(0.0);
    let (low, median, high) = (at(0.05), at(0.5), at(0.95));
    (median, high - low <= (CONSTANT * median).max(1e-3))
}

/// Returns whether an exchange was given up, in a capture that ends at `end`. An exchange whose next copy was not yet
/// due at the end was not given up.
fn is_given_up(exchange: &CapturedExchange, end: Time) -> bool {
    let last = exchange.copies.last().map_or(end, |copy| copy.at);
    // The next timeout is about twice the last one, so another copy may come within that time.
    let before = exchange.copies.iter().rev().nth(1).map_or(exchange.began_at(), |copy| copy.at);
    exchange.ended_at().is_none() && end > last + (last - before) * 2
}

/// Returns the most common number of retransmissions of exchanges that were given up; `None` without such an exchange.
/// A client that is switched off makes fewer.
fn usual_retransmissions(given_up: &[&CapturedExchange]) -> Option<u8> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for exchange in given_up {
        *counts.entry(exchange.copies.len() - 1).or_default() += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map(|(retransmissions, _)| retransmissions.min(100) as u8)
}

/// Returns the median time from the first copy of an exchange to giving it up, in seconds. This is the time to the next
/// request, less the usual pause `pause_s`. Pairs of exchanges with a restart or a step of the clock between them do
/// not count.
fn given_up_after<'a>(
    clients: impl Iterator<Item = &'a Vec<&'a CapturedExchange>>,
    end: Time,
    pause_s: f64,
) -> Option<f64> {
    let pairs = clients.flat_map(|own| own.windows(2));
    let given_up = pairs
        .filter(|pair| pair[0].life == pair[1].life && pair[0].steps == pair[1].steps)
        .filter(|pair| is_given_up(pair[0], end));
    let mut times: Vec<f64> =
        given_up.map(|pair| (pair[1].began_at() - pair[0].began_at()).as_secs_f64() - pause_s).collect();
    times.sort_by(f64::total_cmp);
    quantile(&times, 0.5)
}

/// Returns the 2 % and the 98 % quantile of the number of exchanges between two restarts of a client. The exchanges
/// after the last restart do not count, because more may follow after the capture.
fn of_lives<'a>(clients: impl Iterator<Item = &'a Vec<&'a CapturedExchange>>) -> Option<[u32; 2]> {
    let mut counts: Vec<f64> = Vec::new();
    for own in clients {
        let lives: Vec<_> = own.chunk_by(|one, next| one.life == next.life).collect();
        counts.extend(lives.iter().rev().skip(1).map(|life| life.len() as f64));
    }
    counts.sort_by(f64::total_cmp);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "counts")]
    let count = |share: f64| quantile(&counts, share).map(|count| count.round() as u32);
    Some([count(0.02)?, count(0.98)?])
}

/// Returns the most exchanges that a client had outstanding at a time.
fn most_open(own: &[&CapturedExchange]) -> u16 {
    let mut changes: Vec<(Time, i32)> = Vec::new();
    for exchange in own {
        let began = exchange.began_at();
        let last = exchange.copies.last().map_or(began, |copy| copy.at);
        changes.push((began, 1));
        changes.push((exchange.ended_at().unwrap_or(last).max(began), -1));
    }
    // At one moment, ends sort before beginnings, so exchanges that follow each other at once do not overlap.
    changes.sort_unstable();
    let (mut open, mut most) = (0, 1);
    for (_, change) in changes {
        open += change;
        most = most.max(open);
    }
    // A scenario allows an NSTART of at most 1,000.
    u16::try_from(most).unwrap_or(1_000).min(1_000)
}

#[cfg(test)]
mod tests {
    use coapace_run::contender::Contender;
    use coapace_scenario::Scenario;

    use super::super::simulated;
    use super::*;

    #[test]
    fn exchanges_that_are_given_up_reveal_the_retransmissions_and_patience_of_clients() {
        let workload = |mechanism: &str, patience: &str| {
            let set = [
                ("clients", "20"),
                ("workload.exchanges", "50"),
                ("clients.max_retransmit", "1"),
                ("clients.patience", patience),
            ];
            let set = set.map(|(key, value)| (key.to_owned(), value.to_owned()));
            let scenario = Scenario::load("lossy-lan", &set).unwrap();
            ObservedWorkload::of(&simulated::traffic(&scenario, &Contender::parse(mechanism).unwrap(), 3))
                .unwrap()
        };
        // Patience makes one more copy where timeouts are short.
        let cases = [
            ("default", "published", 1, false),
            ("default", "rfc7252", 1, false),
            ("peak-hopper", "published", 1, true),
            ("peak-hopper", "rfc7252", 2, false),
        ];
        for (mechanism, patience, retransmissions, is_impatient) in cases {
            let workload = workload(mechanism, patience);
            assert!(workload.given_up > 10, "{mechanism}: {}", workload.given_up);
            assert_eq!(workload.max_retransmit, Some(retransmissions), "{mechanism}, {patience}");
            assert_eq!(workload.is_impatient(), is_impatient, "{mechanism}: {:?}", workload.gives_up_after_s);
        }
    }
}
