//! The reference page, `docs/scenarios.md`.

use std::fs;

use coapace_scenario::{json_schema, reference};

use crate::{load, parse, repository};

#[test]
fn the_page_of_scenarios_and_the_schema_are_up_to_date() {
    for (name, made) in [("docs/scenarios.md", reference()), ("docs/scenario.schema.json", json_schema())] {
        let path = repository(name);
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, &made).unwrap();
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == made, "rewrite {name}: BLESS=1 cargo test -p coapace-scenario --test scenario");
    }
}

#[test]
fn the_reference_page_has_every_key_of_a_run() {
    let page = reference();
    for line in load("nb-iot", &[("errors", "high")]).unwrap().canonical().lines() {
        let path = line.split(" = ").next().unwrap();
        let path = path.replace(".down.", ".up.").replace(".radio.", ".HOP.").replace(".backhaul.", ".HOP.");
        assert!(page.contains(&format!("| `{path}` |")), "{path}");
    }
}

#[test]
fn the_smallest_scenario_of_the_reference_page_is_valid() {
    let page = reference();
    let (_, example) = page.split_once("```toml\n").unwrap();
    assert_eq!(parse(example.split_once("```").unwrap().0, &[]).unwrap().clients.count, 3);
}
