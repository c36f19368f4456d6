//! Tests that the findings about a simulated capture agree with the simulated run.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use coapace_lab::search::generator::draw;
use coapace_run::contender::Contender;
use coapace_run::measured::quantile;
use coapace_run::{Observe, accounting, hop_names, run_tapped};
use coapace_scenario::Scenario;
use coapace_sim::{Event, Pcapng, Record, Tap, Time};

use super::fates::Fates;
use super::findings::Findings;
use super::traffic::{self, CaptureEnd, Reading};

/// The departures of requests and the arrivals of their answers, by client, exchange and transmission, which only a
/// simulation knows.
#[derive(Default)]
struct Truth {
    departures: BTreeMap<(u32, u32, u32), Time>,
    arrivals: BTreeMap<(u32, u32, u32), Time>,
}

impl Tap for Truth {
    fn record(&mut self, record: &Record<'_>) {
        let is_request = record.bytes.get(1).is_some_and(|&code| code != 0 && code < 32);
        let key = |client: u32| (client, record.mark.exchange, u32::from(record.mark.transmission));
        match (record.event, is_request) {
            (Event::Sent, true) => {
                self.departures.insert(key(record.from.0), record.time);
            }
            (Event::Delivered, false) => {
                self.arrivals.entry(key(record.to.0)).or_insert(record.time);
            }
            _ => {}
        }
    }
}

impl Truth {
    fn loss(&self) -> f64 {
        1.0 - self.arrivals.len() as f64 / self.departures.len() as f64
    }

    fn round_trips(&self) -> Vec<f64> {
        let rtt =
            |(key, at): (&(u32, u32, u32), &Time)| Some((*at - *self.departures.get(key)?).as_secs_f64());
        let mut rtts: Vec<f64> = self.arrivals.iter().filter_map(rtt).collect();
        rtts.sort_by(f64::total_cmp);
        rtts
    }
}

/// Captures a run like `coapace run --pcap`, and compares the findings beside the clients with the truth.
fn check(scenario: &Scenario, mechanism: &str, seed: u64, what: &str) {
    let contender = Contender::parse(mechanism).unwrap();
    // The server is the first node of a scenario with one.
    let file = Pcapng::new(Vec::new(), accounting(scenario), 0..scenario.server.count, &hop_names(scenario));
    let (_, (truth, file)) =
        run_tapped(scenario, &contender, seed, Observe::Totals, (Truth::default(), file));
    let file = file.finish().unwrap();
    let traffic =
        traffic::read(&*file, &Reading::default(), None, &mut || ControlFlow::Continue(())).unwrap();
    let fates = Fates::of(&traffic);
    let findings = Findings::of(&traffic, &fates, Some(CaptureEnd::Client));
    assert_eq!(findings.transmissions, truth.departures.len(), "{what}");
    let loss = findings.loss.unwrap();
    assert!((loss.share - truth.loss()).abs() < 0.02, "{what}: loss {} for {}", loss.share, truth.loss());
    let true_rtts = truth.round_trips();
    let rtts = findings.round_trips.unwrap();
    let named = [rtts.p5_s, rtts.p25_s, rtts.p50_s, rtts.p75_s, rtts.p95_s, rtts.p99_s];
    for (share, named) in [0.05, 0.25, 0.5, 0.75, 0.95, 0.99].into_iter().zip(named) {
        let truth = quantile(&true_rtts, share).unwrap();
        assert!((named / truth - 1.0).abs() < 0.05, "{what}: {share} quantile {named} s for {truth} s");
    }
}

#[test]
fn advise_recovers_loss_and_round_trips_of_built_in_scenarios() {
    for (name, clients) in
        [("nb-iot", "10"), ("nb-iot", "100"), ("lossy-lan", "10"), ("lte-m", "20"), ("satellite", "10")]
    {
        for mechanism in ["default", "cocoa", "fasor-token"] {
            let set = [("clients.count".to_owned(), clients.to_owned())];
            let scenario = Scenario::load(name, &set).unwrap();
            check(&scenario, mechanism, 5, &format!("{name}, {clients} clients, {mechanism}"));
        }
    }
    for errors in ["low", "medium", "high"] {
        let set =
            [("errors", errors), ("buffer", "14100")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let scenario = Scenario::load("nb-iot", &set).unwrap();
        check(&scenario, "default", 5, &format!("nb-iot, errors {errors}"));
    }
}

#[test]
fn advise_recovers_loss_and_round_trips_of_random_scenarios() {
    for place in 0..24 {
        let drawn = draw(5, place).unwrap();
        if drawn.scenario.network.mesh.is_none() {
            check(&drawn.scenario, "default", 1, &format!("{place}: {}", drawn.description));
        }
    }
}
