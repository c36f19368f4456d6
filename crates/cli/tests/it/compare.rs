//! `coapace` without a command, `coapace reproduce`, and the remarks beside their results.

use std::fs;

use crate::common::{Scratch, coapace, column, command, finish};
use coapace_control::REGISTRY;

#[test]
fn run_without_mechanisms_compares_all_of_them_and_writes_a_report() {
    let scratch = Scratch::new();
    let outcome = finish(command().current_dir(scratch.path()), "");
    assert!(outcome.stderr.contains("report: coapace-report.html"), "{}", outcome.stderr);
    let table = outcome.success();
    for name in REGISTRY.iter().map(|entry| entry.name).chain(["tcp"]) {
        let called = |word: &str| word == name || word.starts_with(&format!("{name}:"));
        // Rows of the table are indented. Sentences on which mechanism is fastest are not.
        let rows = table.lines().filter(|line| line.starts_with(' '));
        let rows = rows.filter(|line| line.split_whitespace().any(called)).count();
        assert_eq!(rows, 2, "{name} has a row for each buffer:\n{table}");
    }
    let (said, _) = table.split_once("\nbuffer 2500\n").expect("a block for each buffer");
    let said: Vec<&str> = said.lines().skip(2).filter(|line| !line.is_empty()).collect();
    assert!(
        said.len() == 2 && said[0].starts_with("The safest choice is "),
        "two sentences come first: {said:?}"
    );
    assert!(
        said[1].starts_with("With buffer 2500, ")
            && said[1].contains("; with buffer 1\u{202f}410\u{202f}000, "),
        "{said:?}"
    );
    let report = fs::read_to_string(scratch.path().join("coapace-report.html")).expect("the report");
    for name in REGISTRY.iter().map(|entry| entry.name).chain(["tcp"]) {
        assert!(report.contains(name), "{name}");
    }
    assert_eq!(fs::read_dir(scratch.path()).expect("the folder").count(), 1, "nothing else is written");
}

#[test]
fn a_reproduction_has_a_row_for_each_published_value_and_counts_the_near_ones() {
    let published = include_str!("../../../../papers/raitahila2019/published.csv").lines().count() - 1;
    let outcome = coapace(&["reproduce", "raitahila2019", "--quick", "--format", "csv"]);
    let is_summary = |line: &&str| line.starts_with("raitahila2019 published values: ");
    let summary = outcome.stderr.lines().find(is_summary).expect("a summary").to_owned();
    assert!(outcome.stderr.lines().any(|line| line == "quick: 2 seeds"), "{}", outcome.stderr);
    let rows = outcome.success();
    let values: Vec<&str> =
        column(&rows, "relative_error").into_iter().filter(|error| !error.is_empty()).collect();
    assert_eq!(values.len(), published, "the others have part in published orders alone");

    let errors: Vec<f64> = values.iter().map(|error| error.parse::<f64>().expect("a number").abs()).collect();
    let near = errors.iter().filter(|error| **error <= 0.05).count();
    assert!(summary.contains(&format!("{near} of {published} within 5 %")), "{summary}");
}

#[test]
fn published_rankings_are_printed_as_held_or_not_held_with_their_ratios_and_a_total() {
    let outcome = coapace(&["reproduce", "meng2017", "--seeds", "2", "--format", "csv", "--orders"]);
    let summary = outcome.stderr.lines().last().expect("a summary").to_owned();
    let rows = outcome.success();
    let numbers = |name| -> Vec<f64> {
        column(&rows, name).iter().map(|field| field.parse().expect("a number")).collect()
    };
    let (ratios, low, high) = (numbers("ratio"), numbers("ratio_low"), numbers("ratio_high"));
    let relations = column(&rows, "relation");
    let (held, verdicts) = (column(&rows, "held"), column(&rows, "verdict"));
    assert_eq!(
        held.len(),
        50,
        "9 numbers of clients, 7 losses, 10 delays, one of them twice; two orders each"
    );
    for place in 0..held.len() {
        assert!(low[place] <= ratios[place] && ratios[place] <= high[place]);
        let (bound, limit) = if relations[place] == ">" { (1.0, 1.0 / 0.95) } else { (0.95, 1.0) };
        let expected = match (low[place] > bound, high[place] <= limit) {
            (true, _) => "held",
            (_, true) => "not held",
            _ => "inconclusive",
        };
        assert_eq!(verdicts[place], expected);
        assert_eq!(held[place] == "true", expected == "held");
    }
    assert!(held.is_sorted(), "what did not hold comes first: false before true");
    let count = held.iter().filter(|held| **held == "true").count();
    assert!(summary.starts_with(&format!("meng2017 published orders: {count} of 50 held")), "{summary}");
}

#[test]
fn reproduce_shows_other_mechanisms_beside_those_of_the_paper() {
    let scratch = Scratch::new();
    let report = scratch.file("meng.html");
    let table =
        coapace(&["reproduce", "meng2017", "--seeds", "1", "-m", "fasor", "--report", &report]).success();
    let rows = table.lines().filter(|line| line.starts_with("fasor "));
    assert_eq!(rows.count(), 25, "it is beside the others");
    let verdicts =
        table.lines().filter(|line| line.ends_with(" inconclusive") && !line.starts_with("meng2017")).count();
    assert_eq!(verdicts, 50, "one seed has no interval, so nothing is decided:\n{table}");
    let summary = table.lines().last().expect("a summary");
    assert!(summary.starts_with("meng2017 published orders: "), "{table}");
    let page = fs::read_to_string(&report).expect("the report");
    for knob in ["clients", "loss", "delay"] {
        assert!(page.contains(&format!("\"name\":\"throughput-over-{knob}--")), "over {knob}");
    }
}

#[test]
fn quiet_suppresses_all_output_but_the_results() {
    let scratch = Scratch::new();
    let (report, pcap) = (scratch.file("r.html"), scratch.file("r.pcapng"));
    let run = ["run", "nb-iot", "--set", "clients=2", "--seeds", "2", "--mechanism", "default"];
    let loud = coapace(&[&run[..], &["--report", &report, "--pcap", &pcap]].concat());
    assert!(
        loud.stderr.contains("report: ") && loud.stderr.contains("captured: default, seed 1"),
        "{loud:?}"
    );
    let quiet = coapace(&[&run[..], &["--report", &report, "--pcap", &pcap, "--quiet"]].concat());
    assert_eq!(quiet.stderr, "");
    assert_eq!(quiet.success(), loud.success());
}

#[test]
fn no_progress_bar_is_drawn_if_output_goes_to_a_pipe() {
    let outcome =
        coapace(&["run", "nb-iot", "--set", "clients=5", "--seeds", "10", "--mechanism", "default"]);
    assert!(!outcome.stderr.contains(['\r', '\u{1b}', '█', '░']), "{outcome:?}");
    let table = outcome.success();
    assert!(!table.contains(['\r', '\u{1b}']), "{table:?}");
}
