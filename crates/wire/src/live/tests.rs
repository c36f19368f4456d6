//! Live runs over a fast link, which take a fraction of a second.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use coapace_run::Observe;
use coapace_run::contender::Contender;
use coapace_scenario::Scenario;

use super::{Live, LiveError, fits, run};

const LIMIT: Duration = Duration::from_mins(1);

/// Returns a scenario with a fast link.
fn scenario(settings: &[(&str, &str)]) -> Arc<Scenario> {
    let fast = [
        ("clients", "4"),
        ("network.up.radio.rate", "10 Mbit/s"),
        ("network.down.radio.rate", "10 Mbit/s"),
        ("network.up.radio.delay", "1 ms"),
        ("network.down.radio.delay", "1 ms"),
        ("network.up.backhaul.jitter", r#"["0 ms", "1 ms"]"#),
        ("network.down.backhaul.jitter", r#"["0 ms", "1 ms"]"#),
    ];
    let all = fast.iter().chain(settings).map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    Arc::new(Scenario::load("nb-iot", &all.collect::<Vec<_>>()).unwrap())
}

fn contender(label: &str) -> Contender {
    Contender::parse(label).unwrap()
}

fn live<'a>(
    scenario: &'a Scenario,
    contender: &'a Contender,
    limit: Duration,
    stop: &'a AtomicBool,
) -> Live<'a> {
    Live { scenario, contender, seed: 1, observe: Observe::Series, peer: None, limit, stop }
}

#[test]
fn a_live_run_completes_and_counts_all_exchanges_like_a_simulated_one() {
    let scenario = scenario(&[("workload.exchanges", "5")]);
    for label in ["default", "fasor-token", "cocoa+ebb"] {
        let contender = contender(label);
        let (result, health) = run(&live(&scenario, &contender, LIMIT, &AtomicBool::new(false))).unwrap();
        let simulated = coapace_run::run(&scenario, &contender, 1, Observe::Totals);
        assert_eq!((&result.exchanges, result.given_up), (&vec![5; 4], 0), "{label}");
        assert_eq!((result.exchanges, result.drops, result.losses), (simulated.exchanges, 0, 0), "{label}");
        assert!(result.fct_s.iter().all(|fct| fct.is_some_and(|fct| fct > 0.010)), "{:?}", result.fct_s);
        assert_eq!(result.rto.len(), 3, "the series of three clients");
        assert_eq!(result.populations.len(), simulated.populations.len());
        assert!(health.departures >= 40 && result.requests_sent >= 20, "{health:?}");
    }
}

#[test]
fn a_live_run_with_a_duration_ends_in_time_and_leaves_out_the_warm_up() {
    let settings =
        [("workload.duration", "300 ms"), ("workload.warm_up", "100 ms"), ("workload.exchanges", "none")];
    let (scenario, contender) = (scenario(&settings), contender("default"));
    let (result, _) = run(&live(&scenario, &contender, LIMIT, &AtomicBool::new(false))).unwrap();
    assert!((result.duration_s - 0.2).abs() < 1e-9 && result.fct_s.is_empty() && result.completed() > 0);
}

#[test]
fn a_live_transfer_takes_as_long_as_in_the_simulator_in_both_directions() {
    for (direction, protocol) in [("down", "block"), ("up", "q-block")] {
        let set = [("bytes", "40_000"), ("direction", direction), ("protocol", protocol)];
        let set: Vec<_> = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let (scenario, contender) = (Scenario::load("fota-lte-m", &set).unwrap(), contender("default"));
        let simulated = coapace_run::run(&scenario, &contender, 1, Observe::Totals);
        let (result, _) = run(&live(&scenario, &contender, LIMIT, &AtomicBool::new(false))).unwrap();
        let [expected, own] = [&simulated, &result].map(|run| &run.transfers[0]);
        assert_eq!((own.completed_s.len(), own.failed, own.arrived_bytes), (1, 0, 40_000), "{own:?}");
        // A busy machine makes it later.
        let [expected_s, own_s] = [expected, own].map(|own| own.completed_s[0].1);
        assert!((0.9..2.0).contains(&(own_s / expected_s)), "{own_s} s, {expected_s} s in the simulator");
        assert!(own.link_share().is_some());
    }
}

#[test]
fn a_live_run_ends_when_interrupted_or_after_its_time_limit() {
    let (scenario, contender) = (scenario(&[]), contender("default"));
    let stopped = run(&live(&scenario, &contender, LIMIT, &AtomicBool::new(true))).unwrap_err();
    assert!(matches!(stopped, LiveError::Stopped), "{stopped}");
    let late = run(&live(&scenario, &contender, Duration::ZERO, &AtomicBool::new(false))).unwrap_err();
    assert!(late.to_string().starts_with("default, seed 1: given up after 0 s with 0 exchanges"), "{late}");
}

#[test]
fn a_scenario_that_cannot_run_live_is_refused_beforehand() {
    let mesh = Scenario::load("mesh-grid", &[]).unwrap();
    assert!(fits(&mesh, &contender("default")).unwrap_err().contains("it has a mesh"));
    let set = |key: &str, value: &str| vec![(key.to_owned(), value.to_owned())];
    let beside = Scenario::load("fota-lte-m", &set("clients", "2")).unwrap();
    assert!(fits(&beside, &contender("default")).unwrap_err().contains("take part in one"));
    let over_tcp = Scenario::load("fota-lte-m", &set("protocol", "tcp")).unwrap();
    assert!(fits(&over_tcp, &contender("default")).unwrap_err().contains("a transfer over TCP"));
    let two = scenario(&[("server.count", "2")]);
    assert!(fits(&two, &contender("default")).unwrap_err().contains("one server"));
    let many = scenario(&[("clients", "5001")]);
    assert!(fits(&many, &contender("tcp")).unwrap_err().contains("at most 5000 clients"));
    let slow = scenario(&[("server.service_time", "1 s")]);
    assert!(fits(&slow, &contender("tcp")).unwrap_err().contains("answer at once"));
    assert_eq!(fits(&slow, &contender("default")), Ok(()));
}
