//! Bounds against simulated runs: no mechanism does better than what the scenario alone sets.

use std::sync::Arc;

use coapace_lab::experiment::{Trial, conduct};
use coapace_lab::results::{Better, Bound, CellResult, Holds, Metric, bound_of};
use coapace_run::contender::Contender;
use coapace_scenario::Scenario;

/// A share of a bound: completed exchanges are counted at the ends of a measured time, and means are over few seeds.
const TOLERANCE: f64 = 0.02;

/// Returns whether a figure is better than the bound by more than `tolerance`, a fraction of the bound.
fn is_beaten(bound: &Bound, figure: f64, tolerance: f64) -> bool {
    match bound.metric.better() {
        Better::Higher => figure > bound.value * (1.0 + tolerance),
        Better::Lower | Better::Neither => figure < bound.value * (1.0 - tolerance),
    }
}

#[test]
fn a_bound_is_beaten_from_the_side_that_is_better() {
    let bound = |metric| Bound { metric, value: 10.0, holds: Holds::Always };
    let [fct, throughput] = [Metric::MedianFct, Metric::Throughput].map(bound);
    assert!(is_beaten(&fct, 9.8, 0.01) && !is_beaten(&fct, 9.95, 0.01));
    assert!(is_beaten(&throughput, 10.2, 0.01) && !is_beaten(&throughput, 9.0, 0.01));
}

fn run(scenario: &str, set: &[(&str, &str)], contenders: &[Contender], seeds: u32) -> Vec<CellResult> {
    let set: Vec<_> = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let scenario = Arc::new(Scenario::load(scenario, &set).unwrap());
    let trials: Vec<_> =
        contenders.iter().map(|contender| Trial::new(&scenario, contender.clone(), seeds)).collect();
    conduct(&trials, 0, &|| ())
}

fn parsed(labels: &[&str]) -> Vec<Contender> {
    labels.iter().map(|label| Contender::parse(label).unwrap()).collect()
}

#[test]
fn no_mechanism_and_not_tcp_is_better_than_a_bound_that_always_holds() {
    let conditions: &[(&str, &[(&str, &str)])] = &[
        ("nb-iot", &[("clients", "1"), ("workload.exchanges", "10")]),
        ("nb-iot", &[("clients", "60"), ("workload.exchanges", "10"), ("buffer", "2500")]),
        ("nb-iot", &[("clients", "60"), ("workload.exchanges", "10"), ("workload", "random")]),
        ("nb-iot", &[("clients", "10"), ("workload.exchanges", "10"), ("errors", "high")]),
        ("lossy-switch", &[("loss", "20 %"), ("workload.duration", "40 s"), ("workload.warm_up", "10 s")]),
        ("coexistence", &[("clients", "60"), ("workload.duration", "60 s"), ("workload.warm_up", "20 s")]),
    ];
    // A timer that fires long before any answer can be there.
    let hasty = parsed(&["default:ack_timeout=20ms"]);
    let mut checked = 0;
    for (scenario, set) in conditions {
        for result in run(scenario, set, &[Contender::all(), hasty.clone()].concat(), 3) {
            let name = format!("{} {:?}: {}", scenario, set, result.cell.mechanism);
            for bound in &result.bounds {
                let is_strict = matches!(bound.holds, Holds::Always | Holds::OnAverage);
                let Some(estimate) = bound.metric.estimate_in_all(&result.runs).filter(|_| is_strict) else {
                    continue;
                };
                checked += 1;
                // Requests in bursts of losses hit the average less closely.
                let tolerance = if bound.holds == Holds::OnAverage { 0.1 } else { TOLERANCE };
                assert!(
                    !is_beaten(bound, estimate.mean, tolerance),
                    "{name}: {bound:?} and {}",
                    estimate.mean
                );
            }
        }
    }
    assert!(checked > 300, "{checked}");
}

#[test]
fn the_bound_of_the_last_client_is_tight_where_the_link_is_never_idle() {
    let results =
        run("nb-iot", &[("clients", "100"), ("workload.exchanges", "20")], &parsed(&["fasor-token"]), 2);
    let bound = bound_of(&results[0].bounds, Metric::FctMax).unwrap();
    let last = results[0].summary().value(Metric::FctMax).unwrap();
    assert!(last / bound.value < 1.1, "{last} s, where {} s are the least", bound.value);
}

#[test]
fn whoever_sends_nothing_in_vain_is_not_faster_than_losses_allow_and_whoever_does_may_be() {
    let set = [("loss", "20 %"), ("clients", "20"), ("workload.duration", "140 s")];
    let results = run(
        "lossy-switch",
        &set,
        &parsed(&["default:ack_timeout=95ms,ack_random_factor=1", "default:ack_timeout=20ms"]),
        3,
    );
    let bound = bound_of(&results[0].bounds, Metric::ExchangeTime).unwrap();
    assert_eq!(bound.holds, Holds::Patiently);
    let time = |result: &CellResult| result.summary().value(Metric::ExchangeTime).unwrap();
    let needless = |result: &CellResult| result.summary().value(Metric::Unnecessary).unwrap();
    assert!(needless(&results[0]) == 0.0 && !is_beaten(&bound, time(&results[0]), TOLERANCE));
    assert!(
        needless(&results[1]) > 100.0 && is_beaten(&bound, time(&results[1]), TOLERANCE),
        "{}",
        time(&results[1])
    );
}

#[test]
fn a_median_below_the_bound_of_fair_sharing_lets_the_last_clients_wait() {
    let results = run("nb-iot", &[("clients", "200"), ("workload.exchanges", "20")], &Contender::all(), 2);
    for result in results {
        let summary = result.summary();
        let value = |metric| summary.value(metric);
        let Some((median, last)) = value(Metric::MedianFct).zip(value(Metric::FctMax)) else { continue };
        let bound = bound_of(&result.bounds, Metric::MedianFct).unwrap();
        assert_eq!(bound.holds, Holds::Fairly);
        assert!(!is_beaten(&bound, median, 0.0) || last > bound.value, "{}", result.cell.mechanism);
    }
}

const SHORTEST: (&str, &str) = ("network.mesh.routing", "{ kind = \"shortest\" }");
const STANDARD: (&str, &str) = ("network.mesh.mac", "{ preset = \"standard\" }");
const LOG_DISTANCE: (&str, &str) = ("network.mesh.radio.propagation", "{ kind = \"log-distance\" }");
const WIDE: (&str, &str) = (
    "network.mesh.radio.propagation",
    "{ kind = \"unit-disk\", range = \"50 m\", interference = \"100 m\", sense = \"100 m\" }",
);
const NO_PAUSE: (&str, &str) = ("workload.interval", "0 s");
const TEN: (&str, &str) = ("workload.exchanges", "10");
const SHORT: (&str, &str) = ("workload.duration", "200 s");

/// Meshes under more load than they carry: all clients beside the sink, several hops, two sinks, moving nodes, and radios that sleep.
const MESHES: &[(&str, &[(&str, &str)])] = &[
    ("rathod-grid", &[STANDARD, SHORTEST, NO_PAUSE, WIDE]),
    ("rathod-grid", &[TEN]),
    ("rathod-grid", &[TEN, SHORTEST, NO_PAUSE]),
    ("rathod-grid", &[TEN, SHORTEST, NO_PAUSE, STANDARD]),
    ("rathod-grid", &[TEN, SHORTEST, NO_PAUSE, LOG_DISTANCE]),
    ("rathod-half-dumbbell", &[NO_PAUSE, SHORT]),
    ("rathod-half-dumbbell", &[NO_PAUSE, SHORTEST, STANDARD, SHORT]),
    ("rathod-mesh", &[("topology", "grid"), SHORT]),
    ("rathod-mesh", &[("topology", "chain"), ("mac", "csma"), SHORT]),
    ("rathod-mesh", &[("topology", "flower"), NO_PAUSE, SHORT]),
    ("rathod-mesh", &[("topology", "dumbbell"), NO_PAUSE, ("mac", "csma"), SHORT]),
    ("rathod-mesh", &[("mobility", "random-waypoint"), ("reach", "wide"), SHORT]),
    ("mesh-grid", &[("load", "200 kbit/s"), SHORT]),
    ("mesh-grid", &[("load", "200 kbit/s"), SHORTEST, ("ldr", "static"), STANDARD, SHORT]),
    ("mesh-mobile", &[("load", "300 kbit/s"), SHORT]),
    ("mesh-sleepy", &[("interval", "100 ms"), ("workload.duration", "8 min")]),
    ("mesh-sleepy", &[("interval", "1 s"), ("radio", "tsch-11"), SHORTEST, ("workload.duration", "8 min")]),
    ("mesh-sleepy", &[("interval", "1 s"), ("radio", "tsch-101"), SHORTEST, ("workload.duration", "8 min")]),
    ("concentric", &[SHORTEST, ("duration", "400 s")]),
];

#[test]
fn no_run_carries_more_than_the_air_around_the_sinks_of_a_mesh() {
    let contenders = parsed(&["default", "cocoa", "ebb", "rtt-coap", "default:ack_timeout=50ms"]);
    let mut checked = 0;
    for (scenario, set) in MESHES {
        for result in run(scenario, set, &contenders, 2) {
            let name = format!("{} {:?}: {}", scenario, set, result.cell.mechanism);
            for (bound, run) in
                result.bounds.iter().flat_map(|bound| result.runs.iter().map(move |run| (bound, run)))
            {
                let alone = std::slice::from_ref(run);
                let Some(estimate) = bound.metric.estimate_in_all(alone) else { continue };
                if matches!(bound.holds, Holds::Always | Holds::OnAverage) {
                    checked += 1;
                    assert!(
                        !is_beaten(bound, estimate.mean, TOLERANCE),
                        "{name}: {bound:?} and {}",
                        estimate.mean
                    );
                }
            }
        }
    }
    assert!(checked > 200, "{checked}");
}
