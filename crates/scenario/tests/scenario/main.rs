//! Tests of scenario files: correct ones are read, wrong ones are refused with a clear error, and every published cell can be
//! set.

mod builtins;
mod canonical;
mod keys;
mod reference;
mod settings;
mod spoilt;
mod values;
mod workload;
mod written;

use std::path::{Path, PathBuf};

use coapace_scenario::Scenario;

/// The smallest valid scenario. The line numbers in the tests count from its first line.
const SMALLEST: &str = r#"title = "A wire"
summary = "Two hosts."
source = "illustrative"

[clients]
count = 3

[workload]
kind = "continuous"

[[network.up]]
name = "wire"

[[network.down]]
name = "wire"
"#;

fn settings(settings: &[(&str, &str)]) -> Vec<(String, String)> {
    settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn load(name: &str, set: &[(&str, &str)]) -> Result<Scenario, String> {
    Scenario::load(name, &settings(set)).map_err(|error| error.to_string())
}

fn parse(text: &str, set: &[(&str, &str)]) -> Result<Scenario, String> {
    Scenario::parse("x", "scenarios/x.toml", text, &settings(set)).map_err(|error| error.to_string())
}

/// Returns the error of the smallest scenario with `from` replaced by `to`.
fn refused(from: &str, to: &str) -> String {
    assert!(SMALLEST.contains(from), "{from:?}");
    parse(&SMALLEST.replacen(from, to, 1), &[]).unwrap_err()
}

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}
