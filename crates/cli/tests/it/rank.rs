//! `coapace rank`.

use std::fs;

use coapace_control::REGISTRY;

use crate::common::{Scratch, coapace, column};

/// Two short cells.
const SHORT: [&str; 9] =
    ["rank", "nb-iot", "--set", "clients=2,20", "--set", "workload.exchanges=4", "--seeds", "2", "--quiet"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SHORT[..], more].concat()
}

#[test]
fn rank_compares_every_mechanism_with_the_best_published_one_with_random_timeouts() {
    let out = coapace(&with(&["--format", "csv"])).success();
    let own = |name| column(&out, name).into_iter().map(str::to_owned).collect::<Vec<String>>();
    let (mechanisms, best) = (own("mechanism"), own("best"));
    assert_eq!(mechanisms.len(), REGISTRY.len() * 5 * 2, "values and cells");
    for entry in REGISTRY {
        assert_eq!(mechanisms.iter().filter(|name| *name == entry.name).count(), 10, "{}", entry.name);
    }
    assert!(best.iter().all(|name| name != "linux-rto" && name != "basic-rto" && name != "tcp"), "{best:?}");
    let sections = own("section");
    for (mechanism, section) in mechanisms.iter().zip(&sections) {
        assert_eq!(mechanism.ends_with("-rto"), section.as_str() == "undithered", "{mechanism}");
    }
}

#[test]
fn a_ranking_does_not_depend_on_the_number_of_threads() {
    for form in [&["--format", "csv"][..], &["--format", "json"], &[]] {
        let on = |jobs| {
            let named = ["-m", "default", "-m", "cocoa", "-m", "linux-rto", "--jobs", jobs];
            coapace(&with(&[&named[..], form].concat())).success()
        };
        assert_eq!(on("1"), on("2"), "{form:?}");
    }
}

#[test]
fn rank_on_a_scenario_file_recommends_a_mechanism_and_names_its_costs() {
    let scratch = Scratch::new();
    let file = scratch.file("my.toml");
    let builtin = include_str!("../../../../scenarios/nb-iot.toml");
    fs::write(&file, builtin.replace("exchanges = 50", "exchanges = 3")).expect("a file");
    let out = coapace(&["rank", &file, "--seeds", "2", "-q", "-m", "default", "-m", "fasor-token"]).success();
    let first = out.lines().next().expect("a line");
    assert!(
        first.starts_with("Use ")
            && first.contains("median FCT")
            && first.contains(" bytes for a destination"),
        "{first}"
    );
    assert!(
        out.contains("FCT of the last client s") && out.lines().any(|line| line.trim().starts_with("bound ")),
        "{out}"
    );
}

#[test]
fn a_suite_file_names_scenarios_relative_to_itself() {
    let scratch = Scratch::new();
    let (suite, scenario) = (scratch.file("suite.toml"), scratch.file("mine.toml"));
    fs::write(&scenario, include_str!("../../../../scenarios/nb-iot.toml")).expect("a file");
    let text = "title = 'Mine'\n[[entries]]\nscenario = 'mine.toml'\nseeds = 2\nset = { clients = [2, 3], 'workload.exchanges' = 2 }\n";
    fs::write(&suite, text).expect("a file");
    let out = coapace(&["rank", &suite, "-q", "-m", "default", "-m", "cocoa"]).success();
    assert!(out.contains("over 2 cells") && out.contains("  3 clients"), "{out}");
    fs::write(&suite, text.replace("mine.toml", "none.toml")).expect("a file");
    let outcome = coapace(&["rank", &suite, "-q"]);
    let error = outcome.failure(1);
    assert!(error.contains("entry 1: ") && error.contains("none.toml"), "{error}");
}

#[test]
fn the_report_of_a_ranking_has_a_heat_map_with_links_to_its_cells() {
    let scratch = Scratch::new();
    let file = scratch.file("rank.html");
    coapace(&with(&["-m", "default", "-m", "cocoa", "--report", &file])).success();
    let html = fs::read_to_string(file).expect("the report");
    for part in ["<section id=\"cell-2\">", "<a href=\"#cell-2\" title=", "coapace rank nb-iot"] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn an_invalid_suite_is_refused() {
    for (words, expected) in [
        (&["rank", "publishd"][..], "a suite is published, bottleneck, mesh, lossy"),
        (&["rank", "nb-iot", "-m", "linux-rto"], "none is among these: name another"),
        (&["rank", "nb-iot", "-m", "cocoa", "-m", "cocoa"], "\"cocoa\" is named twice"),
        (&["rank", "mesh-grid", "-m", "cocoa", "-m", "tcp"], "can run neither flows nor meshes"),
        (&["rank", "nb-iot", "--set", "clients=1,,2"], "a value is missing beside a comma"),
    ] {
        let outcome = coapace(words);
        let error = outcome.failure(2);
        assert!(error.contains(expected), "{words:?}: {error}");
    }
}
