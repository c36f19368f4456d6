//! `--help`, `--version` and completion scripts.

use crate::common::coapace;

const COMMANDS: [&str; 20] = [
    "run",
    "coexist",
    "reproduce",
    "trace",
    "list",
    "bench",
    "completions",
    "get",
    "put",
    "post",
    "delete",
    "fetch",
    "patch",
    "ipatch",
    "request",
    "observe",
    "discover",
    "ping",
    "serve",
    "load",
];

/// The options of a command that makes requests.
const REQUEST: &[&str] = &[
    "<URI>",
    "-e <TEXT>",
    "--payload",
    "-f, --file",
    "-t, --content-format",
    "-A, --accept",
    "-O, --option",
    "-N, --non",
    "-b, --block-size",
    "--cc",
    "--nstart",
    "--ack-timeout",
    "--max-retransmit",
    "-B, --timeout",
    "-u, --identity",
    "-k, --key",
    "--ca",
    "--cert",
    "--private-key",
    "--pcap",
    "--json",
];

/// The options of each command, without those that all commands have.
const OPTIONS: [(&str, &[&str]); 15] = [
    ("coexist", &["[SCENARIO]", "--set", "--mechanism", "--seeds", "--format", "--report", "--figures"]),
    (
        "run",
        &[
            "<SCENARIO>",
            "--set",
            "--mechanism",
            "--seeds",
            "--format",
            "--each",
            "--report",
            "--figures",
            "--film",
            "--pcap",
            "--trace",
        ],
    ),
    ("reproduce", &["<PAPER>", "--quick", "--mechanism", "--orders", "--format", "--report", "--figures"]),
    ("trace", &["<MECHANISM>", "at_ms,event,draw,answered", "at_ms,event,timeout_ms,rto_ms,next_ms"]),
    ("list", &["mechanisms", "scenarios", "papers"]),
    ("bench", &[]),
    ("get", REQUEST),
    ("request", &["-m, --method"]),
    (
        "ipatch",
        &[
            "-o, --output",
            "-v, --verbose",
            "--stats",
            "--repeat",
            "--count",
            "--pcap",
            "3 answered with another code",
        ],
    ),
    (
        "observe",
        &["<URI>", "-s, --duration", "--count", "-b, --block-size", "-A, --accept", "-o, --output", "--json"],
    ),
    (
        "discover",
        &["<URI>", "[FILTER]", "-u, --identity", "--ca", "--pcap", "--json", "-O, --option", "--cc"],
    ),
    ("ping", &["--count", "--cc", "--ca", "-B, --timeout", "--json", "1 no answer"]),
    (
        "serve",
        &[
            "--bind",
            "--no-udp",
            "--dtls",
            "--tcp",
            "--group",
            "-u, --identity",
            "-k, --key",
            "--tls",
            "--ws",
            "--wss",
            "--cert",
            "--private-key",
            "--ca",
            "--directory",
            "--writable",
            "--resource",
            "--demo",
            "--cc",
            "--threads",
            "--memory",
            "--max-peers",
            "--max-observers",
            "--pcap",
            "--metrics",
            "--keys",
            "--log",
            "-v, --verbose",
            "--pcap-as-coap",
        ],
    ),
    ("load", REQUEST),
    ("completions", &["bash", "zsh", "fish"]),
];

#[test]
fn the_help_names_every_command_with_a_summary() {
    let help = coapace(&["--help"]).success();
    for command in COMMANDS {
        let line = help.lines().find(|line| line.trim_start().starts_with(&format!("{command} ")));
        let summary =
            line.and_then(|line| line.trim_start().split_once("  ")).map(|(_, summary)| summary.trim());
        assert!(summary.is_some_and(|summary| summary.len() > 10), "{command}: {line:?}");
    }
}

#[test]
fn the_help_of_a_command_names_each_of_its_options_and_those_of_all() {
    for (command, options) in OPTIONS {
        let help = coapace(&[command, "--help"]).success();
        for option in options.iter().chain(&["--quiet", "--jobs", "--help"]) {
            assert!(help.contains(option), "{command} --help says nothing of {option}");
        }
    }
}

#[test]
fn no_option_is_without_a_word_on_it() {
    for command in COMMANDS {
        let help = coapace(&[command, "-h"]).success();
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
        assert!(options >= 3, "{command} -h shows its options");
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
fn the_version_says_which_commit_it_was_built_from() {
    let version = coapace(&["--version"]).success();
    let rest = version
        .trim()
        .strip_prefix(concat!("coapace ", env!("CARGO_PKG_VERSION"), " ("))
        .expect("the version");
    assert!(rest.ends_with(')') && rest.len() > 6, "{version}");
}

#[test]
fn a_completion_script_knows_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = coapace(&["completions", shell]).success();
        for command in COMMANDS {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
}
