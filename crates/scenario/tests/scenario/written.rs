//! Tests of scenarios that are written as files and read again.

use std::fs;

use coapace_scenario::Scenario;

use crate::{SMALLEST, load, parse, repository};

fn again(scenario: &Scenario, what: &str) -> Scenario {
    let text = scenario.to_toml();
    let read = Scenario::parse(&scenario.name, "again", &text, &[]);
    read.unwrap_or_else(|error| panic!("{what}: {error}\n{text}"))
}

fn comes_back(scenario: &Scenario, what: &str) {
    let read = again(scenario, what);
    assert_eq!(read.canonical(), scenario.canonical(), "{what}");
    assert_eq!(read.hash(), scenario.hash());
    assert_eq!(read.defaults, scenario.defaults, "{what}");
}

#[test]
fn every_built_in_scenario_is_written_and_read_back_with_its_knobs_and_values() {
    for builtin in Scenario::builtins() {
        let scenario = load(builtin.name, &[]).unwrap();
        comes_back(&scenario, builtin.name);
        assert_eq!(again(&scenario, builtin.name).to_toml(), scenario.to_toml());
        let values = |scenario: &Scenario| {
            let mut values = scenario.knob_values().to_vec();
            values.sort();
            values
        };
        assert_eq!(values(&again(&scenario, builtin.name)), values(&scenario));
    }
}

#[test]
fn every_choice_of_every_knob_is_written_and_read_back() {
    for builtin in Scenario::builtins() {
        let scenario = load(builtin.name, &[]).unwrap();
        for (knob, _) in scenario.knob_values() {
            for choice in scenario.knob_choices(knob) {
                comes_back(&load(builtin.name, &[(knob, choice)]).unwrap(), &format!("{knob} {choice}"));
            }
        }
    }
}

#[test]
fn settings_of_any_kind_are_written_and_read_back() {
    for (name, set) in [
        ("nb-iot", &[("clients", "400"), ("buffer", "2500")][..]),
        ("nb-iot", &[("network.up.radio.delay", "70 ms"), ("server.service_time", "{ mean = \"1 s\" }")]),
        (
            "nb-iot",
            &[("network.up.backhaul.jitter", "[\"5 ms\", \"7 ms\"]"), ("title", "\"quoted\" \\ title")],
        ),
        ("nb-iot", &[("network.up", "[{ name = \"only\", rate = \"9 kbit/s\" }]")]),
        ("mesh-grid", &[("network.mesh.topology.nodes", "16")]),
    ] {
        comes_back(&load(name, set).unwrap_or_else(|error| panic!("{set:?}: {error}")), &format!("{set:?}"));
    }
    comes_back(&parse(SMALLEST, &[("defaults.mechanisms", "[\"cocoa\"]")]).unwrap(), "the smallest");
}

#[test]
fn a_knob_of_a_removed_hop_is_not_written() {
    let set = [("network.up", "[{ name = \"only\", rate = \"9 kbit/s\" }]")];
    let scenario = load("nb-iot", &set).unwrap();
    assert!(scenario.knob("buffer").is_some());
    let read = again(&scenario, "one hop");
    assert_eq!((read.knob("buffer"), read.knob("clients")), (None, Some("10")));
}

#[test]
fn a_written_scenario_finds_its_files_from_any_folder() {
    let folder = std::env::temp_dir().join(format!("coapace-written-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("places.dat"), "0 0 0 0\n1 0 10 0\n2 0 20 0\n").unwrap();
    let text = fs::read_to_string(repository("scenarios/mesh-grid.toml")).unwrap();
    fs::write(folder.join("own.toml"), text).unwrap();
    let set = [("network.mesh.topology", "{ kind = \"file\", file = \"places.dat\" }")];
    let scenario = load(folder.join("own.toml").to_str().unwrap(), &set);
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    comes_back(&scenario, "with places");
    fs::remove_dir_all(&folder).unwrap();
}
