//! `coapace new`, `coapace check`, and the text of a built-in scenario.

use std::fs;

use crate::common::{Scratch, coapace, command, finish};

#[test]
fn a_new_scenario_is_valid_and_does_not_overwrite_a_file() {
    let scratch = Scratch::new();
    let call = |arguments: &[&str]| finish(command().current_dir(scratch.path()).args(arguments), "");
    assert_eq!(
        call(&["new", "mine"]).success(),
        "mine.toml is written. Edit it, then: coapace check mine.toml; coapace run mine.toml\n"
    );
    let checked = call(&["check", "mine.toml"]).success();
    assert!(
        checked.starts_with("mine.toml: no mistake\n  20 clients, workload continuous; knobs: "),
        "{checked}"
    );
    assert!(checked.contains("seed 1: 1000 exchanges completed, 0 given up, "), "{checked}");
    let rows =
        call(&["run", "mine.toml", "--seeds", "1", "--set", "clients=2", "--format", "csv", "-q"]).success();
    assert_eq!(rows.lines().count(), 1 + 4, "a row for each default mechanism: {rows}");
    fs::write(scratch.path().join("mine.toml"), "title = 1\n").expect("the file can be written");
    assert_eq!(call(&["new", "mine.toml"]).failure(2), "mine.toml exists; choose another name");
    let text = fs::read_to_string(scratch.path().join("mine.toml")).expect("the file is there");
    assert_eq!(text, "title = 1\n");
}

#[test]
fn a_new_scenario_may_be_a_copy_of_a_built_in_one() {
    let scratch = Scratch::new();
    let call = |arguments: &[&str]| finish(command().current_dir(scratch.path()).args(arguments), "");
    call(&["new", "cell", "--from", "lte-m"]).success();
    let text = fs::read_to_string(scratch.path().join("cell.toml")).expect("the file is there");
    assert_eq!(text, coapace(&["list", "scenarios", "lte-m", "--toml"]).success());
    let failed = call(&["new", "other", "--from", "lte"]);
    assert_eq!(
        failed.failure(2),
        "lte: neither a built-in scenario nor a file; did you mean `lte-m`?",
        "{failed:?}"
    );
    assert!(!scratch.path().join("other.toml").exists());
    assert_eq!(
        coapace(&["list", "scenarios", "--toml"]).failure(2),
        "--toml needs a scenario, as in: coapace list scenarios nb-iot --toml"
    );
}

#[test]
fn an_error_in_a_checked_scenario_file_is_reported_with_its_line() {
    let scratch = Scratch::new();
    let text = coapace(&["list", "scenarios", "lte-m", "--toml"]).success();
    let path = scratch.path().join("cell.toml");
    fs::write(&path, text.replacen("mtu = 1_280", "mtuu = 1_280", 1)).expect("the file can be written");
    let failed = coapace(&["check", &path.to_string_lossy()]);
    assert!(
        failed.failure(1).contains("cell.toml:21: unknown key `network.mtuu`; did you mean `network.mtu`?"),
        "{failed:?}"
    );
}
