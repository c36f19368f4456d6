//! `coapace list`.

use crate::common::coapace;
use coapace_control::REGISTRY;

#[test]
fn every_registered_mechanism_is_listed_with_its_state_size_and_summary() {
    let list = coapace(&["list", "mechanisms"]).success();
    for entry in REGISTRY {
        let bytes = entry.mechanism.state_bytes().to_string();
        let row = list.lines().find(|line| line.split_whitespace().next() == Some(entry.name));
        let row = row.unwrap_or_else(|| panic!("{} is not listed", entry.name));
        assert_eq!(row.split_whitespace().nth(1), Some(bytes.as_str()), "{row}");
        assert!(row.ends_with(entry.summary), "{row}");
    }
    assert!(list.lines().any(|line| line.starts_with("tcp ")), "TCP can be named too");
}

#[test]
fn every_mechanism_is_described_with_its_source_parameters_and_presets() {
    let list = coapace(&["list", "mechanisms"]).success();
    for entry in REGISTRY {
        let heading = format!("\n{}  ({})\n", entry.name, entry.source);
        let (_, rest) =
            list.split_once(&heading).unwrap_or_else(|| panic!("{} is not described", entry.name));
        let section = rest.split("\n\n").next().unwrap_or_default();
        for parameter in entry.mechanism.parameters() {
            let value = entry.mechanism.get(parameter.name).expect("a value").to_string();
            let line = section.lines().find(|line| line.split_whitespace().next() == Some(parameter.name));
            assert_eq!(
                line.and_then(|line| line.split_whitespace().nth(1)),
                Some(value.as_str()),
                "{}",
                parameter.name
            );
        }
        for preset in entry.mechanism.presets() {
            assert!(section.contains(&format!("preset={} ", preset.name)), "{}: {}", entry.name, preset.name);
        }
    }
}

#[test]
fn a_listed_scenario_shows_the_default_of_each_knob() {
    let list = coapace(&["list", "scenarios"]).success();
    let (mut scenario, mut has_clients) = ("", false);
    let mut knobs = 0;
    for line in list.lines().take_while(|line| !line.is_empty()) {
        match line.trim_start().strip_prefix("--set ") {
            None => {
                scenario = line.split_whitespace().next().expect("a name");
                let of_it = list.split(line).nth(1).unwrap_or_default().lines().skip(1);
                has_clients = of_it
                    .map_while(|line| line.trim_start().strip_prefix("--set "))
                    .any(|setting| setting.starts_with("clients="));
            }
            Some(setting) => {
                knobs += 1;
                // The default is followed by the other choices.
                let setting = setting.split("  (or ").next().unwrap_or(setting);
                let mut run =
                    vec!["run", scenario, "--set", setting, "--seeds", "1", "--mechanism", "default"];
                // The last of two settings of a knob counts. So the knob is read, and one client keeps the run
                // short. In a mesh the number of clients follows from the topology.
                if has_clients {
                    run.extend(["--set", "clients=1"]);
                }
                coapace(&[&run[..], &["--quiet", "--format", "csv"]].concat()).success();
            }
        }
    }
    assert!(knobs >= 4, "{list}");
}

#[test]
fn papers_are_listed_by_the_key_for_reproduce() {
    let list = coapace(&["list", "papers"]).success();
    assert!(list.starts_with("raitahila2019 "), "{list}");
    assert!(list.contains("University of Helsinki, 2019"), "{list}");
}

#[test]
fn one_mechanism_is_listed_with_its_parameters_presets_and_notes() {
    for entry in REGISTRY {
        let printed = coapace(&["list", "mechanisms", entry.name]).success();
        assert!(printed.starts_with(&format!("{}: {}\n", entry.name, entry.summary)), "{printed}");
        for part in [
            entry.source,
            entry.notes.status,
            entry.notes.use_when,
            entry.notes.avoid_when,
            entry.notes.hazards,
        ] {
            assert!(printed.contains(part), "{part}: {printed}");
        }
        for parameter in entry.mechanism.parameters() {
            assert!(printed.contains(&format!("  {} ", parameter.name)), "{}: {printed}", parameter.name);
        }
    }
    let set = coapace(&["list", "mechanisms", "default:ack_timeout=1min"]).success();
    assert!(
        set.lines()
            .any(|line| line.split_whitespace().collect::<Vec<_>>()[..].starts_with(&["ack_timeout", "60s"])),
        "{set}"
    );
    assert!(coapace(&["list", "mechanisms", "coca"]).failure(2).contains("did you mean cocoa?"));
}

#[test]
fn one_scenario_or_one_paper_can_be_listed_alone() {
    let printed = coapace(&["list", "scenarios", "nb-iot"]).success();
    for part in ["Raitahila 2019", "\n--set errors=none  (or low, medium, high)\n", "\nclients.count = 10\n"]
    {
        assert!(printed.contains(part), "{part}: {printed}");
    }
    assert!(coapace(&["list", "scenarios", "nb-ito"]).failure(2).contains("did you mean `nb-iot`?"));
    assert_eq!(coapace(&["list", "papers", "meng2017"]).success().lines().count(), 2);
    assert!(coapace(&["list", "papers", "meng"]).failure(2).contains("`meng` is not the name of a paper"));
}
