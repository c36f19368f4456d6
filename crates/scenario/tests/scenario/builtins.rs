//! Tests of the built-in scenarios. Every published cell of the thesis can be set.

use std::fs;

use coapace_scenario::{Ip, Loss, Scenario, WorkloadKind};
use coapace_sim::Span;

use crate::{load, repository};

#[test]
fn an_unknown_scenario_is_an_error() {
    assert_eq!(
        load("nb-iott", &[]).unwrap_err(),
        "nb-iott: neither a built-in scenario nor a file; did you mean `nb-iot`?"
    );
    assert!(load("nowhere/x.toml", &[]).unwrap_err().starts_with("nowhere/x.toml: "));
}

#[test]
fn a_built_in_scenario_equals_its_file() {
    assert!(Scenario::builtin("nb-iot").is_some());
    for builtin in Scenario::builtins() {
        let path = repository("scenarios").join(format!("{}.toml", builtin.name));
        let from_file = load(path.to_str().unwrap(), &[]).unwrap();
        assert_eq!(from_file, load(builtin.name, &[]).unwrap());
    }
}

#[test]
fn the_built_in_testbed_has_the_parameters_of_the_thesis() {
    let scenario = load("nb-iot", &[]).unwrap();
    assert_eq!(scenario.clients.uri_path_bytes(), 6);
    assert_eq!(scenario.clients.max_retransmit, 20);
    assert!(!scenario.server.deduplication);
    assert_eq!((scenario.workload.batch_min, scenario.workload.batch_max), (1, 10));
    assert_eq!((scenario.network.ip, scenario.network.mtu), (Ip::V4, 296));

    let [radio, backhaul] = scenario.network.up.as_slice() else { panic!("up has two hops") };
    assert_eq!((radio.name.as_str(), backhaul.name.as_str()), ("radio", "backhaul"));
    assert_eq!((radio.rate, radio.delay), (Some(60_000), Span::from_millis(200)));
    assert_eq!((backhaul.rate, backhaul.jitter.min), (None, Span::from_millis(10)));

    let [backhaul, radio] = scenario.network.down.as_slice() else { panic!("down has two hops") };
    assert_eq!((radio.name.as_str(), backhaul.name.as_str()), ("radio", "backhaul"));
    assert_eq!((radio.rate, radio.delay), (Some(30_000), Span::from_millis(400)));
    assert_eq!(backhaul.jitter.max, Span::from_millis(20));

    // The published measurement has 50 clients and 50 responses of 93 bytes each: 62.0 s.
    let response = scenario.network.ip.header_bytes() + 8 + 4 + 1 + scenario.server.payload_bytes;
    assert_eq!(response, 93);
}

#[test]
fn knobs_reach_every_published_cell_of_the_thesis() {
    let published = fs::read_to_string(repository("papers/raitahila2019/published.csv")).unwrap();
    let mut lines = published.lines();
    assert!(lines.next().unwrap().starts_with("workload,clients,buffer_bytes,link_errors,"));
    let mut cells = 0;
    for line in lines {
        let cell: Vec<_> = line.split(',').collect();
        let [workload, clients, buffer, errors] = cell[..4] else { panic!("{line}") };
        let set = [("workload", workload), ("clients", clients), ("buffer", buffer), ("errors", errors)];
        let scenario = load("nb-iot", &set).unwrap();

        let values: Vec<_> = scenario.knob_values().iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(values, set, "the reported values are those that were set");
        assert_eq!(scenario.clients.count.to_string(), clients);
        assert_eq!(scenario.workload.kind == WorkloadKind::Random, workload == "random");
        let average = match errors {
            "none" => 0.0,
            "low" => 0.02,
            "medium" => 0.1,
            _ => 0.18,
        };
        for radio in [&scenario.network.up[0], &scenario.network.down[1]] {
            assert_eq!(radio.buffer_bytes.unwrap().to_string(), buffer);
            assert!((average_loss(&radio.loss) - average).abs() < 1e-12, "{line}");
        }
        assert_eq!(scenario.defaults.seeds, if errors == "none" { 20 } else { 40 });
        cells += 1;
    }
    assert!(cells > 70, "{cells} cells");
}

/// Computes the share from the two states and their lengths, because the file states an average.
fn average_loss(loss: &Loss) -> f64 {
    match loss {
        Loss::Random(share) => *share,
        Loss::Burst(burst) => {
            let (good, bad) = (burst.mean_good_packets(), f64::from(burst.mean_bad_packets));
            (good * burst.good + bad * burst.bad) / (good + bad)
        }
    }
}

#[test]
fn the_medium_level_of_burst_losses_alternates_about_twelve_good_and_three_bad_packets() {
    let scenario = load("nb-iot", &[("errors", "medium")]).unwrap();
    let Loss::Burst(burst) = &scenario.network.down[1].loss else { panic!("no burst") };
    assert!((burst.mean_good_packets() - 12.0).abs() < 1e-9);
}
