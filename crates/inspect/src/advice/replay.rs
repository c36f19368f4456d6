//! Replays of a capture: the timeouts and transmissions that each mechanism would have had with the capture's round
//! trips and losses.
//!
//! The model: a client makes the exchanges of the capture, with the pauses between them. A transmission is lost with
//! the probability estimated from the capture. The random number that decides this depends only on the client, the
//! exchange and the number of the transmission, so all mechanisms have the same losses. A transmission that is not lost
//! is answered after the round-trip time of its exchange, or of an exchange nearby if its own was never answered.
//!
//! A replay cannot show the effect of the mechanism on the network: a mechanism that sends more would have met longer
//! queues. Simulations of a scenario fitted to the capture show that effect.

use std::collections::BTreeMap;

use coapace_control::{Answer, Controller, Cue, Duration, Instant, Marking, Mechanism, Outcome, Sample};
use coapace_run::measured::quantile;
use coapace_scenario::naming;
use coapace_sim::{Luck, Span, Stream};
use serde::Serialize;

use super::exchanges::CapturedExchange;
use super::fates::{Fate, Fates};
use super::traffic::Traffic;
use super::workload::ObservedWorkload;
use crate::nearest::{Nearest, ORIGIN};

/// The maximum number of exchanges that are replayed.
const MOST: usize = 200_000;

/// The result of one mechanism in a replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replayed {
    /// The name of the mechanism.
    pub mechanism: String,
    /// The number of replayed exchanges.
    pub exchanges: u64,
    /// The median of the timeouts of first transmissions, in seconds.
    pub first_timeout_s: f64,
    /// The number of retransmissions.
    pub retransmissions: u64,
    /// The number of spurious retransmissions: an earlier copy was answered, then or later.
    pub spurious: u64,
    /// The number of exchanges that were given up.
    pub given_up: u64,
    /// The mean time from the start of an exchange to its answer, in seconds.
    pub mean_s: f64,
    /// The 95 % quantile of the time from the start of an exchange to its answer, in seconds.
    pub p95_s: f64,
}

/// An exchange of the capture, as used by a replay.
struct ReplayStep {
    /// The time since the previous exchange ended; zero for the first.
    pause: Span,
    /// The round-trip time of the exchange.
    rtt: Span,
}

/// The exchanges of a capture on which mechanisms are replayed.
pub struct Replay {
    /// The exchanges of each life of each client. A client that restarts begins another life and loses its estimates.
    lives: Vec<Vec<ReplayStep>>,
    loss: f64,
    max_retransmit: u8,
    luck: Stream,
}

impl Replay {
    /// Prepares a replay from the exchanges of clients. `loss` is the share of lost transmissions.
    pub fn new(traffic: &Traffic, fates: &Fates, loss: f64) -> Self {
        // Fates are in the order of departure, so the first answered copy of an exchange comes first.
        let mut first_rtt: BTreeMap<u32, f64> = BTreeMap::new();
        for it in &fates.all {
            if let Fate::Answered(rtt, _) = it.fate {
                first_rtt.entry(it.exchange).or_insert(rtt);
            }
        }
        let own = || (0u32..).zip(&traffic.exchanges).filter(|(_, it)| it.is_confirmable);
        let mut of_life: BTreeMap<(u32, u32), Vec<(u32, &CapturedExchange)>> = BTreeMap::new();
        // Notifications and separate responses follow the mechanism of the server, which is not replayed.
        let of_clients = own().filter(|(_, it)| it.from == super::exchanges::From::Client);
        for (number, exchange) in of_clients.take(MOST) {
            of_life.entry((exchange.client, exchange.life)).or_default().push((number, exchange));
        }
        let life = |exchanges: &Vec<(u32, &CapturedExchange)>| {
            let mut before = None;
            let step = |(number, exchange): &(u32, &CapturedExchange)| {
                let began = exchange.began_at();
                // Exchanges that overlap have no pause: the difference of times does not fall below 0.
                let pause = before.map_or(Span::ZERO, |before| began - before);
                let last = exchange.copies.last().map_or(began, |copy| copy.at);
                before = Some(exchange.ended_at().unwrap_or(last));
                let rtt_s = first_rtt.get(number).copied().unwrap_or_else(|| fates.around.at(began));
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a time in nanoseconds"
                )]
                let rtt = Span::from_nanos((rtt_s * 1e9) as u64);
                ReplayStep { pause, rtt }
            };
            exchanges.iter().map(step).collect()
        };
        let workload = ObservedWorkload::of(traffic);
        let most = workload.as_ref().map_or(0, |workload| workload.retransmissions);
        let measured = workload.and_then(|workload| workload.max_retransmit);
        Self {
            lives: of_life.values().map(life).collect(),
            loss: loss.clamp(0.0, 1.0),
            // If no exchange was given up, it is MAX_RETRANSMIT of RFC 7252 §4.8, or more if the capture shows more.
            max_retransmit: measured.unwrap_or(most.clamp(4, 100)),
            // A constant seed, so that a second call prints the same table.
            luck: Luck::new(0).stream("advice"),
        }
    }

    /// Replays every known mechanism. `own` is the mechanism nearest to the clients. It is replayed, too, if it
    /// explains the clients' timeouts and is not among the known mechanisms.
    pub fn all(&self, own: Option<&Nearest>) -> Vec<Replayed> {
        let known = naming::mechanisms();
        let own = own.filter(|own| own.is_near() && known.find(&own.mechanism).is_none());
        let own =
            own.and_then(|own| Some((own.mechanism.as_str(), naming::parse_mechanism(&own.mechanism).ok()?)));
        let entries = known.entries().map(|entry| (entry.name, entry.mechanism));
        entries.chain(own).map(|(name, mechanism)| self.one(name, &mechanism)).collect()
    }

    /// Replays one mechanism.
    pub fn one(&self, name: &str, mechanism: &Mechanism) -> Replayed {
        let mut result = Replayed {
            mechanism: name.to_owned(),
            exchanges: 0,
            first_timeout_s: 0.0,
            retransmissions: 0,
            spurious: 0,
            given_up: 0,
            mean_s: 0.0,
            p95_s: 0.0,
        };
        let (mut times, mut firsts) = (Vec::new(), Vec::new());
        for (life, steps) in (0u64..).zip(&self.lives) {
            // A client that restarts forgets its estimates.
            let mut state = mechanism.state();
            let mut now = Span::ZERO;
            for (number, step) in (0u64..).zip(steps) {
                now += step.pause;
                // A mechanism that paces messages may put it off.
                let next = mechanism.limits(&state).next_confirmable.since(instant(now));
                now += span(next);
                let taken = self.exchange(mechanism, &mut state, now, step.rtt, (life, number), &mut result);
                firsts.push(taken.first_timeout.as_micros() as f64 / 1e6);
                if taken.is_answered {
                    times.push(taken.time.as_secs_f64());
                }
                now += taken.time;
                result.exchanges += 1;
            }
        }
        times.sort_by(f64::total_cmp);
        firsts.sort_by(f64::total_cmp);
        result.first_timeout_s = quantile(&firsts, 0.5).unwrap_or(0.0);
        result.mean_s = times.iter().sum::<f64>() / times.len().max(1) as f64;
        result.p95_s = quantile(&times, 0.95).unwrap_or(0.0);
        result
    }

    fn exchange(
        &self,
        mechanism: &Mechanism,
        state: &mut coapace_control::State,
        began: Span,
        rtt: Span,
        (client, number): (u64, u64),
        result: &mut Replayed,
    ) -> ExchangeCourse {
        let cue = |at: Span, transmission: u8| Cue {
            now: instant(at),
            draw: self.luck.draw(client, number, u64::from(transmission)),
            outstanding: 1,
        };
        // Losses have keys above 1000, apart from the draws of the timeouts.
        let is_lost = |copy: u8| self.luck.unit(client, number, 1_000 + u64::from(copy)) < self.loss;
        let (mut exchange, first_timeout) = mechanism.on_start(state, cue(began, 0));
        let mut departures = vec![began];
        let mut deadline = began + span(first_timeout);
        // The copy that is answered first and the time of its answer.
        let mut answer: Option<(u8, Span)> = (!is_lost(0)).then(|| (0, began + rtt));
        loop {
            if let Some((copy, at)) = answer.filter(|(_, at)| *at <= deadline) {
                // At most 100 retransmissions are made, so no number overflows.
                let retransmits = (departures.len() - 1) as u8;
                let since =
                    |departure: Span| Duration::from_micros((at.as_nanos() - departure.as_nanos()) / 1_000);
                let is_marked = mechanism.limits(state).marking != Marking::None;
                let departure = departures[usize::from(copy)];
                // Without marks a client cannot know which copy was answered (RFC 6298 §3), so the sample does not say it.
                let sample = Sample {
                    since_first: since(began),
                    since_last: since(departures[usize::from(retransmits)]),
                    retransmits,
                    answered: is_marked.then(|| Answer { ordinal: copy, since: since(departure) }),
                };
                // Copies have ordinals of at most 100, so 200 is a draw of its own.
                mechanism.on_end(state, exchange, Outcome::Acked(sample), cue(at, 200));
                // The answer to this copy was on its way when the later ones left.
                result.spurious += u64::from(retransmits - copy);
                let time = Span::from_nanos(at.as_nanos() - began.as_nanos());
                return ExchangeCourse { time, first_timeout, is_answered: true };
            }
            let copy = departures.len() as u8;
            if copy > self.max_retransmit {
                mechanism.on_end(state, exchange, Outcome::GivenUp, cue(deadline, 200));
                result.given_up += 1;
                let time = Span::from_nanos(deadline.as_nanos() - began.as_nanos());
                return ExchangeCourse { time, first_timeout, is_answered: false };
            }
            let timeout = mechanism.on_retransmit(state, &mut exchange, cue(deadline, copy));
            result.retransmissions += 1;
            departures.push(deadline);
            // All copies have the same round-trip time, so the first that is not lost has the first answer.
            if answer.is_none() && !is_lost(copy) {
                answer = Some((copy, deadline + rtt));
            }
            deadline += span(timeout);
        }
    }
}

/// The duration and the first timeout of a replayed exchange, and whether it was answered.
struct ExchangeCourse {
    time: Span,
    first_timeout: Duration,
    is_answered: bool,
}

fn instant(since: Span) -> Instant {
    ORIGIN + Duration::from_micros(since.as_nanos() / 1_000)
}

fn span(duration: Duration) -> Span {
    Span::from_nanos(duration.as_micros().saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay(rtt_ms: u64, loss: f64) -> Replay {
        let rtt = Span::from_nanos(rtt_ms * 1_000_000);
        let client = || (0..50).map(|_| ReplayStep { pause: Span::ZERO, rtt }).collect();
        Replay {
            lives: vec![client(), client()],
            loss,
            max_retransmit: 4,
            luck: Luck::new(0).stream("advice"),
        }
    }

    #[test]
    fn without_losses_an_exchange_takes_its_round_trip() {
        for result in replay(300, 0.0).all(None) {
            assert!((result.mean_s - 0.3).abs() < 1e-9 && result.given_up == 0, "{result:?}");
        }
        let default = &replay(300, 0.0).all(None)[0];
        assert_eq!((default.retransmissions, default.spurious, default.exchanges), (0, 0, 100));
    }

    #[test]
    fn a_round_trip_longer_than_the_timeout_makes_spurious_copies() {
        let results = replay(5_000, 0.0).all(None);
        let of = |name: &str| results.iter().find(|result| result.mechanism == name).unwrap();
        // 2 to 3 s, and then twice that: one copy before the answer always, a second from 6 s on never.
        assert_eq!((of("default").retransmissions, of("default").spurious), (100, 100));
        assert!(of("cocoa").spurious < 50, "{:?}", of("cocoa"));
    }

    #[test]
    fn all_mechanisms_meet_the_same_luck_and_total_loss_ends() {
        let results = replay(100, 0.3).all(None);
        assert!(results.iter().all(|result| result.given_up == results[0].given_up));
        let lost = replay(100, 1.0).one("default", &"default".parse().unwrap());
        assert_eq!((lost.given_up, lost.retransmissions), (100, 400));
    }
}
