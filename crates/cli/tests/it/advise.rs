//! `coapace advise`.

use crate::common::{Scratch, coapace};

/// Captures a run of 5 clients with losses, which keep their state.
fn captured(scratch: &Scratch) -> String {
    captured_of(scratch, "continuous")
}

/// Captures one of a kind of workload.
fn captured_of(scratch: &Scratch, kind: &str) -> String {
    let file = scratch.file(&format!("{kind}.pcapng"));
    let kind = format!("workload.kind={kind}");
    let set =
        ["--set", "clients=5", "--set", "errors=high", "--set", "workload.exchanges=20", "--set", &kind];
    let run = ["run", "nb-iot", "-m", "default", "--seeds", "1", "--quiet", "--pcap", &file];
    coapace(&[&run[..], &set].concat()).success();
    file
}

#[test]
fn a_capture_becomes_findings_replays_and_a_scenario_that_can_be_ranked() {
    let scratch = Scratch::new();
    let capture = captured(&scratch);
    let scenario = scratch.file("mine.toml");
    let set = ["--scenario", &scenario, "--set", "workload.kind=random"];
    let told = coapace(&[&["advise", &capture, "-m", "cocoa", "-m", "default"][..], &set].concat()).success();
    for part in ["100 of 5 clients", "beside the clients", "closest to default", "cocoa", "Guessed:"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let text = std::fs::read_to_string(&scenario).expect("it is written");
    assert!(text.contains("kind = \"random\"") && text.contains("# Guessed:"), "{text}");
    let rank = ["rank", &scenario, "-m", "default", "-m", "cocoa", "--seeds", "2", "--quiet"];
    assert!(coapace(&rank).success().contains("cocoa"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_scenario_that_cannot_be_written_does_not_cost_the_findings_or_the_capture() {
    let scratch = Scratch::new();
    let capture = captured(&scratch);
    let told = coapace(&["advise", &capture, "-q", "-m", "default", "--scenario", "/dev/full"]);
    assert!(told.failure(1).starts_with("cannot write /dev/full: "), "{told:?}");
    assert!(told.stdout.contains("100 of 5 clients"), "{told:?}");
    let same = scratch.file("./continuous.pcapng");
    let told = coapace(&["advise", &capture, "--scenario", &same]);
    assert_eq!(told.failure(2), "CAPTURE and --scenario need a file each");
}

#[test]
fn clients_that_start_anew_are_told_and_become_batches() {
    let scratch = Scratch::new();
    for (kind, told) in [("random", "5 clients started anew"), ("continuous", "no client started anew")] {
        let capture = captured_of(&scratch, kind);
        let scenario = scratch.file(&format!("{kind}.toml"));
        let out = coapace(&["advise", &capture, "-m", "default", "--scenario", &scenario]).success();
        assert!(out.contains(told) && out.contains("of 5 clients"), "{out}");
        let text = std::fs::read_to_string(&scenario).expect("it is written");
        assert!(text.contains(&format!("kind = \"{kind}\"")), "{text}");
    }
}

#[test]
fn programs_get_one_object_or_a_row_for_each_mechanism() {
    let scratch = Scratch::new();
    let capture = captured(&scratch);
    let json = coapace(&["advise", &capture, "--format", "json"]).success();
    let json: serde_json::Value = serde_json::from_str(&json).expect("an object");
    assert_eq!(json["findings"]["exchanges"], 100, "{json}");
    assert!(json["replays"].as_array().is_some_and(|all| all.len() > 5), "{json}");
    let csv = coapace(&["advise", &capture, "--format", "csv", "-m", "cocoa"]).success();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 2, "{csv}");
    assert!(lines[0].starts_with("mechanism,exchanges,") && lines[1].starts_with("cocoa,100,"), "{csv}");
}

#[test]
fn what_cannot_be_used_is_told_in_one_line() {
    let scratch = Scratch::new();
    let text = scratch.file("text.pcap");
    std::fs::write(&text, "no capture at all, but longer than a header").expect("it is written");
    assert!(coapace(&["advise", &text]).failure(1).contains("neither pcap nor pcapng"));
    std::fs::write(&text, "").expect("it is written");
    assert!(coapace(&["advise", &text]).failure(1).contains("empty"));
    let missing = scratch.file("missing.pcap");
    assert!(coapace(&["advise", &missing]).failure(1).contains("cannot read"));
    // A capture of nothing: the header of a pcap file.
    std::fs::write(&text, b"\xd4\xc3\xb2\xa1\x02\0\x04\0\0\0\0\0\0\0\0\0\xff\xff\0\0\x65\0\0\0")
        .expect("it is written");
    assert!(coapace(&["advise", &text]).failure(1).contains("--port"));
    let capture = captured(&scratch);
    let scenario = scratch.file("mine.toml");
    let wrong = ["advise", &capture, "--scenario", &scenario, "--set", "network.up.rate=3"];
    assert!(coapace(&wrong).failure(2).contains("network.up.rate"), "a setting");
    let server = ["advise", &capture, "--scenario", &scenario, "--side", "server"];
    assert!(coapace(&server).failure(1).contains("--side client"));
    assert!(coapace(&["advise", &capture, "-m", "nobody"]).failure(2).contains("nobody"));
}
