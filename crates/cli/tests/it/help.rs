//! `--help`, `--version` and completion scripts.

use std::fs;

use crate::common::{Scratch, coapace};

/// Returns the commands that the help lists, each with its summary.
fn commands() -> Vec<(String, String)> {
    let help = coapace(&["--help"]).success();
    let listed = help.split_once("Laboratory:\n").expect("a list of commands").1;
    let lines = listed.lines().take_while(|line| *line != "Options:").filter(|line| line.starts_with("  "));
    let split = |line: &str| {
        let (name, summary) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        (name.to_owned(), summary.trim().to_owned())
    };
    lines.map(split).collect()
}

#[test]
fn every_command_has_a_summary() {
    let commands = commands();
    assert_eq!(commands.len(), 23, "{commands:?}");
    for (command, summary) in commands {
        assert!(summary.len() > 10, "{command}: {summary:?}");
    }
}

#[test]
fn every_option_has_a_help_text() {
    for (command, _) in commands() {
        let help = coapace(&[&command, "-h"]).success();
        // A description may begin with the name of another option, but is indented further.
        let is_option = |line: &&str| line.trim_start().starts_with('-') && !line.starts_with("          ");
        let options = help.lines().filter(is_option).count();
        let lines: Vec<&str> = help.lines().collect();
        for (place, line) in lines.iter().enumerate().filter(|(_, line)| is_option(line)) {
            let line = line.trim();
            // A description that does not fit beside its option is below it.
            let below = lines.get(place + 1).copied().unwrap_or_default();
            let words = line.split_once("  ").map_or(below, |(_, words)| words).trim();
            assert!(!words.is_empty() && !words.starts_with('-'), "{command} -h: {line}");
        }
        assert!(options >= 2, "{command} -h shows its options");
    }
}

/// Returns the description of an option, without line breaks.
fn described(command: &str, option: &str) -> String {
    let help = coapace(&[command, "--help"]).success();
    let lines = help.lines().skip_while(|line| !line.contains(&format!("{option} <"))).skip(1);
    let words: Vec<&str> = lines.take_while(|line| !line.is_empty()).map(str::trim).collect();
    words.join(" ")
}

#[test]
fn the_help_on_keys_is_equal_in_all_client_commands() {
    for option in ["--identity", "--key", "--keys"] {
        let words = described("serve", option);
        assert!(words.len() > 40, "{option}: {words:?}");
        assert_eq!(words, described("relay", option), "{option}");
    }
}

#[test]
fn the_examples_of_the_help_fit_a_terminal_of_80_columns() {
    let help = coapace(&["--help"]).success();
    let examples = help.split_once("Examples:").expect("examples").1;
    assert!(examples.lines().count() > 4);
    for line in examples.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn version_prints_the_commit_of_the_build() {
    let version = coapace(&["--version"]).success();
    let rest = version
        .trim()
        .strip_prefix(concat!("coapace ", env!("CARGO_PKG_VERSION"), " ("))
        .expect("the version");
    assert!(rest.ends_with(')') && rest.len() > 6, "{version}");
}

#[test]
fn a_completion_script_knows_every_command() {
    let commands = commands();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = coapace(&["completions", shell]).success();
        for (command, _) in &commands {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let scratch = Scratch::new();
    let path = |name: &str| scratch.file(name);
    coapace(&["man", &path("")]).success();
    assert!(fs::read_to_string(path("coapace.1")).expect("a page").contains(".SH EXTRA"));
    for (command, _) in commands() {
        let page = fs::read_to_string(path(&format!("coapace-{command}.1"))).expect("a page");
        assert!(page.contains(".SH OPTIONS"), "{command}: {page}");
    }
    let missing = path("missing");
    let refused = coapace(&["man", &missing]);
    assert!(refused.failure(1).contains(&missing));
}
