//! The timeouts of the clients in a capture, and the nearest mechanism.

use std::collections::BTreeMap;

use coapace_control::{Duration, Marking};
use coapace_run::measured::quantile;
use coapace_sim::Time;
use serde::Serialize;

use super::exchanges::CapturedExchange;
use super::traffic::Traffic;
use crate::nearest::{MeasuredExchange, Nearest, nearest};

/// The timeouts that clients used, measured as the time from a copy to the next.
#[derive(Clone, Debug, Serialize)]
pub struct UsedTimeouts {
    /// The number of exchanges with a retransmission.
    pub count: usize,
    /// The shortest time from the first copy to the second, in seconds.
    pub first_min_s: f64,
    /// The median time from the first copy to the second, in seconds.
    pub first_p50_s: f64,
    /// The longest time from the first copy to the second, in seconds.
    pub first_max_s: f64,
    /// The median ratio of an interval between copies to the interval before; `None` without a second retransmission.
    pub growth: Option<f64>,
    /// The maximum number of retransmissions of an exchange.
    pub retransmissions: usize,
    /// The nearest mechanism; `None` if no known one marks its copies like these clients.
    pub nearest: Option<Nearest>,
}

/// The maximum number of exchanges that are used to find the nearest mechanism.
const ENOUGH: usize = 20_000;

impl UsedTimeouts {
    /// Measures the timeouts; `None` if there was no retransmission.
    pub fn of(traffic: &Traffic) -> Option<Self> {
        let all = || traffic.of_clients().filter(|it| it.is_confirmable && it.copies.len() > 1);
        let waits = |it: &CapturedExchange| -> Vec<f64> {
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
            // A capture with a coarse clock may give two copies one time.
            waits.windows(2).map(|pair| pair[1] / pair[0].max(1e-9)).collect::<Vec<_>>()
        }));
        let first_min_s = *firsts.first()?;
        // A mechanism may mark retransmissions only, so the first marked message decides.
        let marking = all().map(CapturedExchange::marking).find(|&marking| marking != Marking::None);
        Some(Self {
            count: firsts.len(),
            first_min_s,
            first_p50_s: quantile(&firsts, 0.5)?,
            first_max_s: *firsts.last()?,
            growth: quantile(&ratios, 0.5),
            retransmissions: all().map(|it| it.copies.len() - 1).max().unwrap_or(0),
            // A client that restarts begins without estimates, so each life is followed from its start.
            nearest: nearest(&lives(traffic), marking.unwrap_or_default()),
        })
    }
}

/// Returns the exchanges of each life of each client: a client that restarts begins another life.
fn lives(traffic: &Traffic) -> Vec<Vec<MeasuredExchange>> {
    let mut lives: BTreeMap<(u32, u32), Vec<&CapturedExchange>> = BTreeMap::new();
    for exchange in traffic.of_clients().filter(|it| it.is_confirmable).take(ENOUGH) {
        lives.entry((exchange.client, exchange.life)).or_default().push(exchange);
    }
    let measured_from = |exchanges: Vec<&CapturedExchange>| {
        let origin = exchanges.first().map_or(Time::ZERO, |first| first.began_at());
        exchanges.into_iter().map(|exchange| measured(exchange, origin)).collect()
    };
    lives.into_values().map(measured_from).collect()
}

fn measured(exchange: &CapturedExchange, origin: Time) -> MeasuredExchange {
    let since = |at: Time| Duration::from_micros((at - origin).as_nanos() / 1_000);
    let copies: Vec<Duration> = exchange.copies.iter().map(|copy| since(copy.at)).collect();
    let mut answers: Vec<_> = exchange.answers.iter().map(|answer| (since(answer.at), answer.copy)).collect();
    // A separate response ends an exchange whose acknowledgement was lost.
    answers.extend(exchange.response_at.map(|at| (since(at), None)));
    answers.sort_by_key(|(at, _)| *at);
    MeasuredExchange::new(&copies, &answers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advice::simulated;
    use coapace_run::contender::Contender;
    use coapace_scenario::Scenario;

    fn timeouts(mechanism: &str) -> UsedTimeouts {
        let set =
            [("errors", "high"), ("clients", "20")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let scenario = Scenario::load("nb-iot", &set).unwrap();
        UsedTimeouts::of(&simulated::traffic(&scenario, &Contender::parse(mechanism).unwrap(), 3)).unwrap()
    }

    #[test]
    fn advise_recognises_the_timer_of_rfc_7252() {
        let plain = timeouts("default");
        let nearest = plain.nearest.as_ref().unwrap();
        assert_eq!(nearest.mechanism, "default");
        assert!(plain.first_min_s >= 2.0 && plain.first_max_s <= 3.0 && nearest.is_near(), "{plain:?}");
        assert!((plain.growth.unwrap() - 2.0).abs() < 0.01);
        let slow = timeouts("default:ack_timeout=5s").nearest.unwrap();
        assert!(slow.mechanism.starts_with("default:ack_timeout=50") && slow.is_near(), "{slow:?}");
    }

    #[test]
    fn advise_recognises_adaptive_mechanisms() {
        for name in ["cocoa", "fasor", "linux-rto"] {
            assert_eq!(timeouts(name).nearest.unwrap().mechanism, name);
        }
        // Copies with an ordinal in the token leave only mechanisms that mark them so.
        for name in ["ebb", "fasor-token", "fasor-option"] {
            let found = timeouts(name).nearest.unwrap();
            assert!(found.is_near() && found.names(name), "{name}: {found:?}");
        }
    }
}
