//! Bounds against simulated runs: no mechanism does better than the bounds that the scenario alone sets.

use std::sync::Arc;

use coapace_lab::experiment::{Trial, conduct};
use coapace_lab::results::{Better, Bound, CellResult, Metric, bound_of, bounds};
use coapace_run::contender::Contender;
use coapace_scenario::Scenario;

/// A share of a bound: completed exchanges are counted at the ends of a measured time, and means are over few seeds.
const TOLERANCE: f64 = 0.02;

/// Returns whether a value is better than the bound by more than `tolerance`, a fraction of the bound.
fn is_beaten(bound: &Bound, value: f64, tolerance: f64) -> bool {
    match bound.metric.better() {
        Better::Higher => value > bound.value * (1.0 + tolerance),
        Better::Lower | Better::Neither => value < bound.value * (1.0 - tolerance),
    }
}

#[test]
fn a_value_beats_a_bound_only_from_the_better_side() {
    let bound = |metric| Bound { metric, value: 10.0 };
    let [fct, throughput] = [Metric::MedianFct, Metric::Throughput].map(bound);
    assert!(is_beaten(&fct, 9.8, 0.01) && !is_beaten(&fct, 9.95, 0.01));
    assert!(is_beaten(&throughput, 10.2, 0.01) && !is_beaten(&throughput, 9.0, 0.01));
}

/// Returns the bounds of a scenario, and the results of the mechanisms.
fn run(
    scenario: &str,
    set: &[(&str, &str)],
    contenders: &[Contender],
    seeds: u32,
) -> (Vec<Bound>, Vec<CellResult>) {
    let set: Vec<_> = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let scenario = Arc::new(Scenario::load(scenario, &set).unwrap());
    let trials: Vec<_> =
        contenders.iter().map(|contender| Trial::new(&scenario, contender.clone(), seeds)).collect();
    (bounds(&scenario), conduct(&trials, 0, &|| ()))
}

fn parsed(labels: &[&str]) -> Vec<Contender> {
    labels.iter().map(|label| Contender::parse(label).unwrap()).collect()
}

#[test]
fn neither_a_mechanism_nor_tcp_beats_the_bound() {
    let conditions: &[(&str, &[(&str, &str)])] = &[
        ("nb-iot", &[("clients", "1"), ("workload.exchanges", "10")]),
        ("nb-iot", &[("clients", "60"), ("workload.exchanges", "10"), ("buffer", "2500")]),
        ("nb-iot", &[("clients", "60"), ("workload.exchanges", "10"), ("workload", "random")]),
        ("nb-iot", &[("clients", "10"), ("workload.exchanges", "10"), ("errors", "high")]),
        ("lossy-switch", &[("loss", "20 %"), ("workload.duration", "40 s"), ("workload.warm_up", "10 s")]),
        ("coexistence", &[("clients", "60"), ("workload.duration", "60 s"), ("workload.warm_up", "20 s")]),
    ];
    // A timer that fires long before any answer can come.
    let hasty = parsed(&["default:ack_timeout=20ms"]);
    let mut checked = 0;
    for (scenario, set) in conditions {
        let (bounds, results) = run(scenario, set, &[Contender::all(), hasty.clone()].concat(), 3);
        for result in results {
            let name = format!("{} {:?}: {}", scenario, set, result.cell.mechanism);
            for bound in &bounds {
                let Some(estimate) = bound.metric.estimate_in_all(&result.runs) else { continue };
                checked += 1;
                // Requests in bursts of losses hit the average less closely.
                let is_average = bound.metric == Metric::TransmissionsPerExchange;
                let tolerance = if is_average { 0.1 } else { TOLERANCE };
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
fn the_bound_of_the_last_client_is_tight_if_the_link_is_never_idle() {
    let (bounds, results) =
        run("nb-iot", &[("clients", "100"), ("workload.exchanges", "20")], &parsed(&["fasor-token"]), 2);
    let bound = bound_of(&bounds, Metric::FctMax).unwrap();
    let last = results[0].summary().value(Metric::FctMax).unwrap();
    assert!(last / bound.value < 1.1, "{last} s, where {} s are the least", bound.value);
}
